"""How many records of a dataset were drawn anew because they broke a constraint: by step and rule, each once and as often as it was."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Mask = NDArray[np.bool_]
Broke = tuple[NDArray[np.intp], Mapping[str, Mask]]
"""The records (k,) that a draw was of, and which of them broke each rule afterwards, each (k,)."""


@dataclass(frozen=True, slots=True)
class Redrawn:
    """How many of the ``of`` records of a dataset the step at ``step`` drew anew because they broke ``constraint``.

    ``records`` counts each once, ``redraws`` each as often as it was drawn anew for that, ``left`` those that break it all the same in the
    end. Without a ``constraint`` it is of records that broke any, without a ``step`` of those that any step drew anew.
    """

    step: str
    target: str
    constraint: str
    of: int
    records: int
    redraws: int
    left: int


@dataclass
class Tally:
    """What the steps of one dataset drew anew, in their order."""

    steps: list[Redrawn] = field(default_factory=list)
    _masks: list[tuple[Mask, Mask]] = field(default_factory=list)

    def add(self, step: str, target: str, draws: Sequence[Broke], of: int) -> None:
        """Count the draws of a step: what broke a rule in the last is left so, what broke one before was drawn anew."""
        for name in (*draws[0][1], ""):
            (again, redraws), (left, _) = _marked(draws[:-1], name, of), _marked(draws[-1:], name, of)
            self.steps.append(Redrawn(step, target, name, of, int(again.sum()), redraws, int(left.sum())))
        self._masks.append((again, left))

    @property
    def all(self) -> tuple[Redrawn, ...]:
        """By step and rule, and last of the whole dataset; nothing where no step was held to a rule."""
        if not self._masks:
            return ()
        again, left = (np.any(masks, axis=0) for masks in zip(*self._masks, strict=True))
        redraws = sum(one.redraws for one in self.steps if not one.constraint)
        whole = Redrawn("", "", "", len(again), int(again.sum()), redraws, int(left.sum()))
        return (*self.steps, whole)


def _marked(draws: Sequence[Broke], name: str, of: int) -> tuple[Mask, int]:
    """Which records (of,) broke the rule of that name in any of these draws, and in how many draws they did; any rule where it is empty."""
    found, times = np.zeros(of, dtype=np.bool_), 0
    for rows, broke in draws:
        own = broke[name] if name else np.any(list(broke.values()), axis=0)
        found[rows[own]] = True
        times += int(own.sum())
    return found, times
