"""Which records each shadow release is made of, and which targets are among them.

The intruder knows the methods and records of the same population. Half of the shadows are made with a target's record, half without it, and a
classifier learns to distinguish the two (Shokri, Stronati, Song & Shmatikov 2017; Stadler, Oprisanu & Troncoso 2022; Meeus et al. 2023). Three backgrounds:

    half    each shadow is made of a random half of the records, so that one shadow serves all targets at once: every target is in about half of them
            (Carlini, Chien, Nasr, Song, Terzis & Tramèr 2022). The intruder does not know who else is in the data
    all     the intruder knows all other records; each target has shadows of its own, the whole table with its record and without it
    canaries  all records but the targets are in every shadow, and each target by a coin of its own: one release asks about all targets at once
            (Steinke, Nasr & Jagielski 2023)

and two meanings of "without":

    record  another record stands in its place, so that the number of records says nothing; of ``removable`` releases with all other records
            known it is left out, which is the neighbour that a privacy account speaks of
    values  its variables that the release shows as they are stay, and those that the release changes are another record's: who is in a partly
            synthetic table is seen by the former, and the secret is the latter

Shadows are independent of each other, given the background.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from ..data.arrays import Integers
from ..data.microdata import Microdata

Background = Literal["half", "all", "canaries"]
Question = Literal["record", "values"]
UNASKED = -1
OTHERS = 50
"""Records of which one stands in a target's place where all other records are known."""


@dataclass(frozen=True, eq=False)
class Shadow:
    """The ``rows`` (h,) that a shadow is made of, the rows whose changed values stand in them, ``values`` (h,), and of each of T targets whether
    it is in it, ``present`` (T,): 1, 0, or ``UNASKED``. ``other`` is the row that stands for the one target, -1 where there is none.
    """

    rows: Integers
    values: Integers
    present: Integers
    other: int = -1

    def data(self, whole: Microdata, changed: tuple[str, ...]) -> Microdata:
        """The confidential records of the shadow."""
        frame = whole.frame.iloc[self.rows].reset_index(drop=True)
        if not np.array_equal(self.rows, self.values):
            others = whole.frame.iloc[self.values]
            frame = frame.assign(**{name: others[name].set_axis(frame.index) for name in changed})
        weights = None if whole.weights is None else whole.weights[self.rows]
        return replace(whole.alone, frame=frame, weights=weights, kinds=None)


@dataclass(frozen=True, slots=True)
class Design:
    """``number`` shadows of ``records`` records, about half of them with each of the ``targets``, rows (T,).

    ``pools`` are the rows of which one stands for each target, (T, p), where all other records are known.
    """

    records: int
    targets: tuple[int, ...]
    number: int
    background: Background
    question: Question
    removable: bool = False
    pools: tuple[tuple[int, ...], ...] = ()

    @property
    def shadows(self) -> int:
        """How many releases are made."""
        return self.number * len(self.targets) if self.background == "all" else self.number

    @property
    def size(self) -> int:
        """Records of a shadow with its target."""
        return self.records // 2 if self.background == "half" else self.records

    @property
    def removes(self) -> bool:
        """Whether "without" leaves the target out and puts nobody in its place."""
        return self.removable and self.background != "half" and self.question == "record"

    def shadow(self, number: int, rng: np.random.Generator) -> Shadow:
        """Shadow ``number`` from 0, by a generator of its own."""
        targets = np.asarray(self.targets)
        if self.background == "all":
            return self._known(number, rng)
        if self.background == "canaries":
            return self._canaries(rng)
        if self.question == "record":
            rows = rng.permutation(self.records)[: self.size]
            return Shadow(rows, rows, np.isin(targets, rows).astype(np.int64))
        rest = rng.permutation(np.setdiff1d(np.arange(self.records), targets))
        rows = rng.permutation(np.concatenate([targets, rest[: self.size - len(targets)]]))
        present = rng.integers(2, size=len(targets))
        values = rows.copy()
        place = np.argsort(rows)[np.searchsorted(np.sort(rows), targets)]
        outside = rest[self.size - len(targets) :]
        without = np.flatnonzero(present == 0)
        values[place[without]] = rng.choice(outside, len(without), replace=False)
        return Shadow(rows, values, present)

    def _known(self, number: int, rng: np.random.Generator) -> Shadow:
        asked, turn = divmod(number, self.number)
        target = self.targets[asked]
        present = np.full(len(self.targets), UNASKED)
        present[asked] = turn % 2
        rows = np.arange(self.records)
        other = int(rng.choice(self.pools[asked]))
        if turn % 2:
            return Shadow(rows, rows, present, other)
        if self.removes:
            rows = np.delete(rows, target)
            return Shadow(rows, rows, present)
        values = rows.copy()
        values[target] = other
        return Shadow(values if self.question == "record" else rows, values, present, other)

    def _canaries(self, rng: np.random.Generator) -> Shadow:
        targets = np.asarray(self.targets)
        present = rng.integers(2, size=len(targets))
        rows = np.arange(self.records)
        if self.removes:
            rows = np.delete(rows, targets[present == 0])
            return Shadow(rows, rows, present)
        values = rows.copy()
        for k in np.flatnonzero(present == 0):
            values[targets[k]] = rng.choice(self.pools[k])
        return Shadow(values if self.question == "record" else rows, values, present)

    def enough(self) -> bool:
        """Whether there are records for such shadows."""
        return (
            self.size - len(self.targets) >= max(2, len(self.targets))
            if self.background == "half"
            else self.records - len(self.targets) >= 2
        )


def pools_of(records: int, targets: Integers, rng: np.random.Generator) -> tuple[tuple[int, ...], ...]:
    """For each target at most ``OTHERS`` rows at random that are no targets, one of which stands in its place."""
    others = np.setdiff1d(np.arange(records), targets)
    return tuple(tuple(rng.choice(others, min(OTHERS, len(others)), replace=False).tolist()) for _ in targets)
