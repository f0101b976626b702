"""Shadow releases: which records each is made from, and which targets are among them.

The intruder knows the methods and records of the same population. About half of the shadows contain a target's record,
and a classifier learns to distinguish the two kinds (Shokri, Stronati, Song & Shmatikov 2017; Stadler, Oprisanu &
Troncoso 2022; Meeus et al. 2023). There are three backgrounds:

    half      each shadow is made from a random half of the records, so that one shadow serves all targets (Carlini,
              Chien, Nasr, Song, Terzis & Tramèr 2022); the intruder does not know who else is in the data
    all       the intruder knows all other records; each target has its own shadows of the whole table
    canaries  all records but the targets are in every shadow, each target by an independent coin (Steinke, Nasr &
              Jagielski 2023)

and two meanings of "without":

    record    another record replaces the target's; ``removable`` releases with known background leave it out
    values    the variables that the release changes are those of another record

Where units have several records all of this is about units: a household is in a shadow with all its records or with
none. If other members stayed in the data of the shadows without a person, these would look like those with the person.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from ..data.arrays import Integers
from ..data.microdata import Microdata
from ..data.units import Units

Background = Literal["half", "all", "canaries"]
Question = Literal["record", "values"]
NOT_A_TARGET = -1
MOST_REPLACEMENTS = 50
"""Largest number of candidate replacements of a target."""


@dataclass(frozen=True, eq=False)
class ShadowSample:
    """Records that a shadow release is made from.

    rows: rows of the confidential data, (h,)
    value_rows: rows that supply the changed variables, (h,)
    target_present: 1 or 0 for each of T targets, or ``NOT_A_TARGET``, (T,)
    replacement: row (unit, if there are units) that replaces the only target, -1 if none
    number_rows: rows that supply the number of the unit, (h,); None without units
    """

    rows: Integers
    value_rows: Integers
    target_present: Integers
    replacement: int = -1
    number_rows: Integers | None = None

    def make_data(self, whole: Microdata, changed: tuple[str, ...]) -> Microdata:
        """Return the confidential records of the shadow; ``changed`` are the variables that the release changes."""
        frame = whole.frame.iloc[self.rows].reset_index(drop=True)
        if not np.array_equal(self.rows, self.value_rows):
            others = whole.frame.iloc[self.value_rows]
            frame = frame.assign(**{name: others[name].set_axis(frame.index) for name in changed})
        if self.number_rows is not None and whole.schema.unit is not None:
            # A unit that stands in another's place takes its number too: twice the same number would be one unit.
            numbers = whole.frame[whole.schema.unit].iloc[self.number_rows]
            frame = frame.assign(**{whole.schema.unit: numbers.set_axis(frame.index)})
        weights = None if whole.weights is None else whole.weights[self.rows]
        return replace(whole.without_controls, frame=frame, weights=weights, kinds=None)


@dataclass(frozen=True, slots=True)
class ShadowDesign:
    """Design of the shadow releases of an audit, about half of them with each target.

    records: number of confidential records; of units, if there are ``units``
    targets: rows of the targets, or their units, (T,)
    n_shadows: number of shadows; for each target with background "all"
    background: what the intruder knows: "half", "all" or "canaries"
    question: meaning of "without": "record" or "values"
    removable: whether a release may have one record fewer
    pools: candidate replacement rows (units) of each target, (T, p), if all other records are known
    units: units of the records, of which a shadow takes all records or none; None where every record is one
    """

    records: int
    targets: tuple[int, ...]
    n_shadows: int
    background: Background
    question: Question
    removable: bool = False
    pools: tuple[tuple[int, ...], ...] = ()
    units: Units | None = None

    @property
    def n_releases(self) -> int:
        """Return the number of shadow releases."""
        return self.n_shadows * len(self.targets) if self.background == "all" else self.n_shadows

    @property
    def shadow_size(self) -> int:
        """Return the number of records, or units, of a shadow with its target."""
        return self.records // 2 if self.background == "half" else self.records

    @property
    def removes_target(self) -> bool:
        """Return whether "without" removes the target without a replacement."""
        # This is the neighbour in the definition of differential privacy; elsewhere the number of records must say
        # nothing.
        return self.removable and self.background != "half" and self.question == "record"

    def draw_shadow(self, number: int, rng: np.random.Generator) -> ShadowSample:
        """Draw shadow ``number``, counted from 0, with a generator of its own."""
        drawn = self._draw_rows(number, rng)
        return drawn if self.units is None else self._records_of_units(drawn, self.units)

    def _records_of_units(self, drawn: ShadowSample, units: Units) -> ShadowSample:
        """Return the records of a sample whose rows are units."""
        if self.question == "record":
            sizes = units.sizes[drawn.rows]
            # The unit that was there before lends its number to that which replaces it.
            numbers = drawn.rows if drawn.number_rows is None else drawn.number_rows
            rows = units.records_of(drawn.rows)
            return replace(
                drawn, rows=rows, value_rows=rows, number_rows=np.repeat(units.first_records[numbers], sizes)
            )
        values = [
            # A donor of another size gives its records from the first on, or some of them twice.
            np.resize(units.records_of(np.array([donor])), units.sizes[own])
            for own, donor in zip(drawn.rows, drawn.value_rows, strict=True)
        ]
        rows = units.records_of(drawn.rows)
        return replace(drawn, rows=rows, value_rows=np.concatenate(values), number_rows=rows)

    def _draw_rows(self, number: int, rng: np.random.Generator) -> ShadowSample:
        """Draw the rows of a shadow, which are units where there are any."""
        targets = np.asarray(self.targets)
        if self.background == "all":
            return self._draw_with_all_known(number, rng)
        if self.background == "canaries":
            return self._draw_with_canaries(rng)
        if self.question == "record":
            rows = rng.permutation(self.records)[: self.shadow_size]
            return ShadowSample(rows, rows, np.isin(targets, rows).astype(np.int64))
        rest = rng.permutation(np.setdiff1d(np.arange(self.records), targets))
        rows = rng.permutation(np.concatenate([targets, rest[: self.shadow_size - len(targets)]]))
        present = rng.integers(2, size=len(targets))
        values = rows.copy()
        place = np.argsort(rows)[np.searchsorted(np.sort(rows), targets)]
        outside = rest[self.shadow_size - len(targets) :]
        without = np.flatnonzero(present == 0)
        values[place[without]] = self._draw_donors(targets[without], outside, rng)
        return ShadowSample(rows, values, present)

    def _draw_donors(self, receivers: Integers, outside: Integers, rng: np.random.Generator) -> Integers:
        """Draw a row from ``outside`` for each receiver, none twice: a unit of the same size where one is left."""
        if self.units is None:
            return np.asarray(rng.choice(outside, len(receivers), replace=False))
        left, donors, sizes = rng.permutation(outside), np.empty(len(receivers), dtype=np.int64), self.units.sizes
        for place, receiver in enumerate(receivers):
            # argmax finds the first of the same size, and the first of all where there is none
            chosen = int(np.argmax(sizes[left] == sizes[receiver]))
            donors[place] = left[chosen]
            left = np.delete(left, chosen)
        return donors

    def _draw_with_all_known(self, number: int, rng: np.random.Generator) -> ShadowSample:
        """Draw a shadow of one target, all other records being known; every second one contains the target."""
        asked, turn = divmod(number, self.n_shadows)
        target = self.targets[asked]
        present = np.full(len(self.targets), NOT_A_TARGET)
        present[asked] = turn % 2
        rows = np.arange(self.records)
        other = int(rng.choice(self.pools[asked]))
        if turn % 2:
            return ShadowSample(rows, rows, present, other)
        if self.removes_target:
            rows = np.delete(rows, target)
            return ShadowSample(rows, rows, present)
        values = rows.copy()
        values[target] = other
        return ShadowSample(values if self.question == "record" else rows, values, present, other, rows)

    def _draw_with_canaries(self, rng: np.random.Generator) -> ShadowSample:
        """Draw a shadow that contains each target with probability 1/2."""
        targets = np.asarray(self.targets)
        present = rng.integers(2, size=len(targets))
        rows = np.arange(self.records)
        if self.removes_target:
            rows = np.delete(rows, targets[present == 0])
            return ShadowSample(rows, rows, present)
        values = rows.copy()
        for k in np.flatnonzero(present == 0):
            values[targets[k]] = rng.choice(self.pools[k])
        return ShadowSample(values if self.question == "record" else rows, values, present, number_rows=rows)

    def has_enough_records(self) -> bool:
        """Return whether there are enough records for such shadows."""
        return (
            self.shadow_size - len(self.targets) >= max(2, len(self.targets))
            if self.background == "half"
            else self.records - len(self.targets) >= 2
        )


def draw_replacement_pools(
    records: int, targets: Integers, rng: np.random.Generator, sizes: Integers | None = None
) -> tuple[tuple[int, ...], ...]:
    """Draw for each target at most ``MOST_REPLACEMENTS`` random rows that are not targets.

    With ``sizes`` (n,) rows are units, and units of the target's size are drawn where there are any.
    """
    others = np.setdiff1d(np.arange(records), targets)
    pools = []
    for target in targets:
        alike = others if sizes is None else others[sizes[others] == sizes[target]]
        among = alike if len(alike) else others
        pools.append(tuple(rng.choice(among, min(MOST_REPLACEMENTS, len(among)), replace=False).tolist()))
    return tuple(pools)
