"""Values of terms of the earlier records of units (``sfumato.engine.constraints.unit_terms``), place by place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
import pandas as pd

from ..data.arrays import Booleans, Floats, Integers
from ..data.conditions import Condition
from ..data.microdata import SECONDS_OF_DAY, Microdata, units_of
from ..data.schema import Kind, Schema
from ..data.units import Units
from .evaluation import PossibleValues, evaluate_rule
from .unit_terms import FOLLOWING, PLACE, SIZE, UnitTerm, drop_out_variable

UNITS_OF_PLACE = 10
"""The fewest units that have a record at the last place that is a level of its own."""


@dataclass(frozen=True, eq=False)
class PlaceLevels:
    """Levels of ``place``: 1 up to ``last``, which stands for all later places too."""

    last: int

    @classmethod
    def of_units(cls, units: Units, largest: int | None = None) -> PlaceLevels:
        """Create the levels of these units: the last place is ``largest``, or one that enough units have."""
        sizes = np.sort(units.sizes)[::-1]
        if largest is not None:
            return cls(min(largest, int(sizes[0])))
        return cls(max(1, int(sizes[min(UNITS_OF_PLACE, len(sizes)) - 1])))

    def column(self, places: Integers) -> pd.Series:
        """Return the column of these places (n,), from 1."""
        levels = pd.CategoricalDtype([str(place) for place in range(1, self.last + 1)], ordered=True)
        return pd.Series(pd.Categorical.from_codes(np.minimum(places, self.last) - 1, dtype=levels))


@dataclass(eq=False)
class EarlierRecords:
    """Values of terms, at one place of all units after another.

    Units with a record at a place are the first ones of those at the place before; ``keep`` leaves others out.
    """

    terms: Sequence[UnitTerm]
    place: int = 1
    _held: dict[str, list[Floats]] = field(default_factory=dict)
    _running: dict[str, Floats] = field(default_factory=dict)
    _seen: dict[str, Floats] = field(default_factory=dict)

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the variables whose values ``add`` needs."""
        return tuple(dict.fromkeys(term.column for term in self.terms if term.column))

    @property
    def conditions(self) -> dict[str, Condition]:
        """Return the conditions of the counts, by text of the term."""
        return {term.text: term.condition for term in self.terms if term.condition is not None}

    def value(self, term: UnitTerm, sizes: Integers) -> Floats | None:
        """Return the values of a term at this place, for the first units, which have ``sizes`` (units,), (units,).

        It is None where none of them has the record.
        """
        units = len(sizes)
        if term.function == FOLLOWING:
            return (sizes - self.place).astype(np.float64)
        if term.function == "count":
            return self._running[term.text][:units] if self.place > 1 else np.zeros(units)
        if self.place == 1 or (term.function == "previous" and self.place <= term.lag):
            return None
        if term.function == "previous":
            return self._held[term.column][-term.lag][:units]
        if term.function == "mean":
            with np.errstate(invalid="ignore"):
                return (self._running[term.text] / self._seen[term.text])[:units]
        return self._running[term.text][:units]

    def add(self, numbers: Mapping[str, Floats], holds: Mapping[str, Booleans]) -> None:
        """Add the records at this place: their numbers by variable, and whether they satisfy each condition, (units,)."""
        for term in self.terms:
            if term.condition is not None:
                self._add_to(term.text, holds[term.text].astype(np.float64))
            elif term.function == "mean":
                own = numbers[term.column]
                self._add_to(term.text, np.nan_to_num(own))
                self._add_to(term.text, (~np.isnan(own)).astype(np.float64), self._seen)
            elif term.function == "first" and self.place == 1:
                self._running[term.text] = numbers[term.column]
            elif term.function in ("least", "largest"):
                self._bound_by(term, numbers[term.column])
        for name in {term.column for term in self.terms if term.function == "previous"}:
            most = max(term.lag for term in self.terms if term.column == name and term.function == "previous")
            self._held[name] = [*self._held.get(name, []), numbers[name]][-most:]
        self.place += 1

    def keep(self, stays: Booleans) -> None:
        """Leave out the units (units,) without a further record."""
        self._held = {name: [one[: len(stays)][stays] for one in own] for name, own in self._held.items()}
        for sums in (self._running, self._seen):
            for name, own in sums.items():
                sums[name] = own[: len(stays)][stays]

    def _add_to(self, name: str, values: Floats, sums: dict[str, Floats] | None = None) -> None:
        """Add values (units,) to the sums of the first units."""
        sums = self._running if sums is None else sums
        if self.place == 1:
            sums[name] = values.copy()
        else:
            sums[name][: len(values)] += values

    def _bound_by(self, term: UnitTerm, values: Floats) -> None:
        """Move the extremes of the first units by their values (units,)."""
        if self.place == 1:
            self._running[term.text] = values.copy()
            return
        bound = np.fmin if term.function == "least" else np.fmax
        own = self._running[term.text]
        own[: len(values)] = bound(own[: len(values)], values)


@dataclass(frozen=True, eq=False)
class TermColumns:
    """Columns of terms, as tables for fits and draws have them.

    confidential: confidential records
    values: numbers of each term for these, by its text, (n,); NaN where the record has no value
    absent: marks of where no record of the unit has a value, (n,)
    edges: by variable with numbers, the number of a record that does not exist
    levels: by term with levels, the codes of those that some record has, (k,)
    most: most records of a unit, where levels and counts are all that can be, whichever occur; None elsewhere
    """

    confidential: Microdata
    values: Mapping[str, Floats]
    absent: Mapping[str, Booleans]
    edges: Mapping[str, float]
    levels: Mapping[str, Integers]
    most: int | None = None

    @classmethod
    def of_data(cls, confidential: Microdata, terms: Sequence[UnitTerm], most: int | None = None) -> TermColumns:
        """Create the columns of terms of the confidential records."""
        values, absent = _values_of_terms(confidential, terms)
        positive = confidential.effective_weights > 0
        levels: dict[str, Integers] = {}
        for term in terms:
            if _has_levels(term, confidential):
                if most is not None:
                    levels[term.text] = np.arange(len(confidential.column(term.column).cat.categories))
                    continue
                own = values[term.text][~absent[term.text] & positive]
                levels[term.text] = np.unique(own[~np.isnan(own)]).astype(np.int64)
        return cls(confidential, values, absent, _edges_of_numbers(confidential, terms), levels, most)

    @classmethod
    def for_drawing(cls, confidential: Microdata, terms: Sequence[UnitTerm], most: int | None = None) -> TermColumns:
        """Create the columns of terms without their values for the confidential records, which take much memory."""
        of_levels = [term for term in terms if _has_levels(term, confidential)]
        with_levels = cls.of_data(confidential, of_levels, most)
        return cls(confidential, {}, {}, _edges_of_numbers(confidential, terms), with_levels.levels, most)

    def confidential_column(self, term: UnitTerm) -> pd.Series:
        """Return the column of a term for the confidential records, (n,)."""
        return self.column(term, self.values[term.text], self.absent[term.text])

    def column(self, term: UnitTerm, values: Floats, absent: Booleans) -> pd.Series:
        """Return the column of a term from its numbers (n,); ``absent`` marks where no record of the unit has one."""
        if not term.column and self.most is not None:
            dtype = pd.CategoricalDtype(levels_of_counts(self.most), ordered=True)
            codes = np.clip(values, 0, self.most - 1).astype(np.int64)
            return pd.Series(pd.Categorical.from_codes(codes, dtype=dtype), name=term.text)
        if not term.column:
            return pd.Series(values.astype(np.int64), name=term.text)
        variable = self.confidential.schema[term.column]
        if variable.kind.has_levels:
            own: Any = cast("pd.CategoricalDtype", self.confidential.column(term.column).dtype)
            used = self.levels[term.text]
            # No coefficient is of a level that no record before another one has; should one be drawn, it counts as none.
            code_of = np.zeros(len(own.categories) + 1, dtype=np.int64)
            code_of[used], code_of[-1] = np.arange(1, len(used) + 1), -1
            codes = code_of[np.where(np.isnan(values), len(own.categories), values).astype(np.int64)]
            levels = [level_of_no_record(own.categories), *own.categories[used]]
            dtype = pd.CategoricalDtype(levels, ordered=variable.kind is Kind.ORDINAL)
            return pd.Series(pd.Categorical.from_codes(np.where(absent, 0, codes), dtype=dtype), name=term.text)
        numbers = np.where(absent, self.edges[term.column], values)
        if variable.kind is not Kind.DATE:
            return pd.Series(numbers, name=term.text)
        missing = np.isnan(numbers)
        seconds = np.rint(np.where(missing, 0.0, numbers) * SECONDS_OF_DAY).astype("datetime64[s]")
        seconds[missing] = np.datetime64("NaT")
        return pd.Series(seconds, name=term.text)


def _has_levels(term: UnitTerm, data: Microdata) -> bool:
    """Return whether a term has levels."""
    return bool(term.column) and data.schema[term.column].kind.has_levels


def _edges_of_numbers(data: Microdata, terms: Sequence[UnitTerm]) -> dict[str, float]:
    """Return, by variable with numbers, the number below all of its own that is nearest to them, of a date a second
    earlier.
    """
    counted, found = data.with_positive_weight, {}
    for name in {term.column for term in terms if term.column and not _has_levels(term, data)}:
        smallest = float(counted.present_numbers(name).min())
        is_date = data.schema[name].kind is Kind.DATE
        found[name] = smallest - 1 / SECONDS_OF_DAY if is_date else float(np.nextafter(smallest, -np.inf))
    return found


def levels_of_counts(most: int) -> list[str]:
    """Return the numbers of earlier or later records that a unit of up to ``most`` records can have."""
    return [str(count) for count in range(most)]


def level_of_no_record(levels: Sequence[str]) -> str:
    """Return the name of the level of a record that does not exist, which no other level has."""
    name = "no record"
    while name in levels:
        name = f"({name})"
    return name


def numbers_and_conditions(
    table: Microdata, records: EarlierRecords, schema: Schema
) -> tuple[dict[str, Floats], dict[str, Booleans]]:
    """Return the numbers by variable and the marks by condition, each (n,), that earlier records are made of."""
    values = PossibleValues(table, schema)
    holds = {text: evaluate_rule(condition, values).holds for text, condition in records.conditions.items()}
    return {name: table.numbers(name) for name in records.columns}, holds


def _values_of_terms(data: Microdata, terms: Sequence[UnitTerm]) -> tuple[dict[str, Floats], dict[str, Booleans]]:
    """Return the numbers of each term for all records, by its text, (n,), and where no record of the unit has one."""
    units = units_of(data)
    by_size = np.argsort(-units.sizes, kind="stable")
    records = EarlierRecords(terms)
    numbers, holds = numbers_and_conditions(data, records, data.schema)
    values = {term.text: np.full(len(data), np.nan) for term in terms}
    absent = {term.text: np.ones(len(data), dtype=np.bool_) for term in terms}
    for place in range(1, int(units.sizes.max()) + 1 if terms else 1):
        alive = by_size[: int((units.sizes >= place).sum())]
        rows = units.order[units.starts[alive] + place - 1]
        for term in terms:
            found = records.value(term, units.sizes[alive])
            if found is not None:
                values[term.text][rows], absent[term.text][rows] = found, False
        records.add(
            {name: own[rows] for name, own in numbers.items()}, {text: own[rows] for text, own in holds.items()}
        )
    return values, absent


@dataclass(frozen=True, eq=False)
class DropOut:
    """Drop-out of units: a unit's last record, unless nobody has a later one.

    Nobody has a record after the largest size of a unit, or after the last value of the variable that orders records.

    largest_size: of a unit
    last: last value of the variable that orders records; infinite where none does
    places: places of the records after which a unit dropped out, ascending, (k,)
    """

    largest_size: int
    last: float
    places: Integers

    @classmethod
    def of_data(cls, data: Microdata) -> DropOut:
        """Create from confidential records."""
        # Records of weight 0 leave no trace.
        units, counted = units_of(data), data.effective_weights > 0
        ranks = _order_numbers(data, data)
        largest = int(units.places[counted].max())
        last = float(np.nanmax(ranks[counted], initial=-np.inf)) if len(ranks) else np.inf
        own = cls(largest, last, np.empty(0, dtype=np.int64))
        return replace(own, places=np.unique(units.places[own.mark_records(data) & counted]))

    def mark_records(self, data: Microdata) -> Booleans:
        """Mark the confidential records after which a unit dropped out, (n,)."""
        units = units_of(data)
        sizes = units.sizes[units.unit_of]
        return np.asarray((units.places == sizes) & ~self.mark_ends(units.places, _order_numbers(data, data)))

    def mark_ends(self, places: Integers, ranks: Floats) -> Booleans:
        """Mark the records (n,) that nobody's record follows; ``ranks`` (n,) order them, or are empty."""
        return np.asarray((places >= self.largest_size) | ((ranks >= self.last) if len(ranks) else False))

    def ends_after(self, place: int, drawn: Microdata, confidential: Microdata, name: str) -> tuple[Booleans, Booleans]:
        """Return which drawn records (n,) at a place are their unit's last, and which of them drop out."""
        dropped = drawn.numbers(name) == 1
        if place not in self.places:
            dropped[:] = False
        ends = self.mark_ends(np.full(len(drawn), place), _order_numbers(drawn, confidential))
        dropped &= ~ends
        return ends | dropped, dropped


def _order_numbers(table: Microdata, confidential: Microdata) -> Floats:
    """Return the numbers by which records of a unit are ordered, (n,), or none where nothing says the order."""
    name = confidential.schema.order
    known = name in confidential.schema and name not in confidential.generalised
    return table.numbers(name) if known else np.empty(0)


def drop_out_column(data: Microdata, name: str) -> pd.Series:
    """Return the yes/no column of drop-out of confidential records, (n,)."""
    yes = DropOut.of_data(data).mark_records(data)
    levels = pd.CategoricalDtype(list(drop_out_variable(name).levels))
    return pd.Series(pd.Categorical.from_codes(yes.astype(np.int8), dtype=levels), data.frame.index, name=name)


def with_unit_terms(data: Microdata, terms: Sequence[UnitTerm], schema: Schema) -> Microdata:
    """Return all records with columns of the terms, ``size`` and ``place``, as a table of ``schema``.

    Where ``schema`` has a place of private steps, terms have all levels and counts that can be, whichever occur.
    Kinds of missing values are left out.
    """
    units = units_of(data)
    made = TermColumns.of_data(data, terms, schema.unit_records if schema.place else None)
    columns = {term.text: made.confidential_column(term) for term in terms}
    if SIZE in schema:
        columns[SIZE] = pd.Series(units.sizes[units.unit_of])
    columns[PLACE] = PlaceLevels.of_units(units, data.schema.largest_unit).column(units.places)
    frame = data.frame[[name for name in schema.names if name in data.frame]]
    columns = {name: column.set_axis(frame.index) for name, column in columns.items()}
    return replace(data, schema=schema, frame=frame.assign(**columns), kinds=None)


def unit_table(data: Microdata, schema: Schema) -> Microdata:
    """Return one row a unit: the unit variables of its first record and its ``size``, as a table of ``schema``."""
    units = units_of(data)
    names = [name for name in schema.names if name in data.frame]
    frame = data.frame[names].iloc[units.first_records].reset_index(drop=True).assign(**{SIZE: units.sizes})
    # A record of weight 0 must leave no trace, and its unit's row is of it too.
    weights = None if data.weights is None else -units.largest_by_unit(-data.weights)
    return replace(data, schema=schema, frame=frame, kinds=None, weights=weights)
