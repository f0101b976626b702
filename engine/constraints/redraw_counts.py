"""Counts of the records of a dataset that were redrawn because they violated a constraint, by step and rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Mask = NDArray[np.bool_]
DrawViolations = tuple[NDArray[np.intp], Mapping[str, Mask]]
"""The records (k,) that a draw was of, and which of them broke each rule afterwards, each (k,)."""


@dataclass(frozen=True, slots=True)
class RedrawCounts:
    """Counts of the ``of`` records of a dataset that the step at ``step`` redrew because they violated ``constraint``.

    records: redrawn records, each counted once
    redraws: redraws of these records
    left: records that still violate it in the end

    Without a ``constraint`` the counts are of records that violated any, without a ``step`` of those that any step
    redrew.
    """

    step: str
    target: str
    constraint: str
    of: int
    records: int
    redraws: int
    left: int


@dataclass
class RedrawTally:
    """Counts of the redraws of one dataset, by step in order."""

    steps: list[RedrawCounts] = field(default_factory=list)
    _masks: list[tuple[Mask, Mask]] = field(default_factory=list)

    def add_step(self, step: str, target: str, draws: Sequence[DrawViolations], of: int) -> None:
        """Count the draws of a step: records that violate a rule in the last one are left so, those that did before
        were redrawn.
        """
        for name in (*draws[0][1], ""):
            (again, redraws), (left, _) = (
                _violating_records(draws[:-1], name, of),
                _violating_records(draws[-1:], name, of),
            )
            self.steps.append(RedrawCounts(step, target, name, of, int(again.sum()), redraws, int(left.sum())))
        self._masks.append((again, left))

    @property
    def all_counts(self) -> tuple[RedrawCounts, ...]:
        """Return the counts by step and rule, and last those of the whole dataset; empty where no step had a rule."""
        if not self._masks:
            return ()
        again, left = (np.any(masks, axis=0) for masks in zip(*self._masks, strict=True))
        redraws = sum(one.redraws for one in self.steps if not one.constraint)
        whole = RedrawCounts("", "", "", len(again), int(again.sum()), redraws, int(left.sum()))
        return (*self.steps, whole)


def add_counts(parts: Sequence[tuple[RedrawCounts, ...]]) -> tuple[RedrawCounts, ...]:
    """Return the counts of several tables of one dataset together, by step and rule, and last those of the whole dataset.

    A record is in one table.
    """
    found: dict[tuple[str, str, str], RedrawCounts] = {}
    for one in (one for part in parts for one in part):
        key = one.step, one.target, one.constraint
        known = found.get(key, RedrawCounts(*key, 0, 0, 0, 0))
        sums = known.of + one.of, known.records + one.records, known.redraws + one.redraws, known.left + one.left
        found[key] = RedrawCounts(*key, *sums)
    whole = found.pop(("", "", ""), None)
    return () if whole is None else (*found.values(), whole)


def _violating_records(draws: Sequence[DrawViolations], name: str, of: int) -> tuple[Mask, int]:
    """Return a mask of the records (of,) that violated the rule of that name in any of these draws, and the number of
    violations.

    An empty name stands for any rule.
    """
    found, times = np.zeros(of, dtype=np.bool_), 0
    for rows, broke in draws:
        own = broke[name] if name else np.any(list(broke.values()), axis=0)
        found[rows[own]] = True
        times += int(own.sum())
    return found, times
