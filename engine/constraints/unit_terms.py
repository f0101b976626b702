"""Terms of the earlier records of a unit, by which a synthesis step predicts the next record.

    term := ("first" | "least" | "largest" | "mean") "(" column ")"
          | "previous(" column ["," lag] ")"
          | "count(" condition ")"
          | "size - place"

``first(age)`` is the value of the unit's first record, ``previous(age, 2)`` that of the record before the last one;
``least``, ``largest`` and ``mean`` are over all earlier records, and ``count(relation = "child")`` is the number of
those that satisfy a condition. ``size`` is the number of records of the unit, ``place`` that of the record within it, and
``size - place`` the number of records that follow.

Where a unit has no such record, a variable with levels has a level of its own. A number lies just below all others: a
tree can split it off, and in a regression the levels of ``place`` take up the difference. A count is 0.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
import pandas as pd

from ..data.arrays import Booleans, Floats, Integers
from ..data.conditions import Condition, parse_condition
from ..data.microdata import SECONDS_OF_DAY, Microdata
from ..data.schema import Kind, Schema, Variable
from ..data.units import Units
from ..errors import BadInput
from .constraints import bound_terms, columns_of_term
from .evaluation import PossibleValues, evaluate_rule

SIZE, PLACE = "size", "place"
OF_NUMBERS = ("least", "largest", "mean")
FUNCTIONS = ("first", "previous", *OF_NUMBERS, "count")
FOLLOWING = "size - place"
MOST_PLACES_BACK = 50
UNITS_OF_PLACE = 10
"""The fewest units that have a record at the last place that is a level of its own."""
_CALL = re.compile(rf"(?<![\w`])(?P<function>{'|'.join(FUNCTIONS)})\(")
_LAGGED = re.compile(r"(?P<column>.+?)\s*,\s*(?P<lag>\d+)")


@dataclass(frozen=True, slots=True)
class UnitTerm:
    """Term of the earlier records of a unit.

    text: the term as written, which is the name of its column
    function: one of ``FUNCTIONS``, or ``FOLLOWING``
    column: the variable; empty for a count and for the records that follow
    lag: number of records before, of ``previous``
    condition: what a counted record satisfies
    """

    text: str
    function: str
    column: str = ""
    lag: int = 1
    condition: Condition | None = None

    def declare(self, schema: Schema) -> Variable:
        """Return the declaration of its column, in a table of this schema."""
        if not self.column:
            return Variable(self.text, Kind.COUNT)
        kind = schema[self.column].kind
        if kind.has_levels:
            return Variable(self.text, Kind.ORDINAL if kind is Kind.ORDINAL else Kind.CATEGORICAL)
        return Variable(self.text, kind if kind is Kind.DATE else Kind.CONTINUOUS)


def find_unit_terms(value: object, schema: Schema, place: str) -> Iterator[UnitTerm]:
    """Yield the distinct terms that the texts of a step's table contain, at any depth. Raises BadInput at ``place``."""
    found = [text for text in _texts(value) if text not in schema]
    if any(FOLLOWING in text for text in found) and FOLLOWING not in schema:
        yield UnitTerm(FOLLOWING, FOLLOWING)
    texts = dict.fromkeys(call for text in found for call in _calls(text))
    for text in texts:
        if text not in schema:
            yield _parse_unit_term(text, schema, place)


def _texts(value: object) -> Iterator[str]:
    """Yield every text of a table of a recipe, keys included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from (*_texts(key), *_texts(item))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)


def _calls(text: str) -> Iterator[str]:
    """Yield the outermost calls of a unit function in a text, each up to its closing bracket."""
    end = 0
    for found in _CALL.finditer(text):
        if found.start() < end:
            continue
        depth, quote = 0, ""
        for at in range(found.end() - 1, len(text)):
            letter = text[at]
            if quote:
                quote = "" if letter == quote else quote
            elif letter in "'\"`":
                quote = letter
            else:
                depth += (letter == "(") - (letter == ")")
            if not depth:
                end = at + 1
                yield text[found.start() : end]
                break


def _parse_unit_term(text: str, schema: Schema, place: str) -> UnitTerm:
    """Return the parsed term. Raises BadInput at ``place``."""
    call = _CALL.match(text)
    assert call is not None
    function, inside = call["function"], text[call.end() : -1].strip()
    if function == "count":
        return UnitTerm(text, function, condition=_parse_count(text, inside, schema, place))
    lagged = _LAGGED.fullmatch(inside) if function == "previous" and inside not in schema else None
    column, lag = (lagged["column"], int(lagged["lag"])) if lagged else (inside, 1)
    variable = schema.require_variable(column, place)
    _require_of_records(text, column, schema, place)
    if not 1 <= lag <= MOST_PLACES_BACK:
        raise BadInput(place, f"{text} looks {lag} records back; write a number from 1 to {MOST_PLACES_BACK}")
    if (
        function in OF_NUMBERS
        and variable.kind.has_levels
        and (variable.kind is not Kind.ORDINAL or function == "mean")
    ):
        raise BadInput(
            place, f'{text}: "{column}" has levels, not numbers; use count({column} = "..."), first or previous'
        )
    return UnitTerm(text, function, column, lag)


def _parse_count(text: str, inside: str, schema: Schema, place: str) -> Condition:
    """Return the condition of a count. Raises BadInput at ``place``."""
    try:
        condition = parse_condition(inside)
    except ValueError as error:
        raise BadInput(place, str(error)) from None
    for bound in bound_terms(condition, schema, place):
        for column in columns_of_term(bound):
            _require_of_records(text, column, schema, place)
    return condition


def _require_of_records(text: str, column: str, schema: Schema, place: str) -> None:
    """Raise BadInput where a term reads a variable that names a record, or that all records of a unit share."""
    if schema[column].role.is_identifier:
        raise BadInput(place, f'{text}: "{column}" is an identifier, which predicts nothing; use another variable')
    if schema[column].level == "unit":
        raise BadInput(place, f'{text}: all records of a unit have the same "{column}"; use the variable itself')


def implied_variables() -> tuple[Variable, Variable]:
    """Return the declarations of the number of records of a unit, and of a record's place among them."""
    return (
        Variable(SIZE, Kind.COUNT, bounds=(1.0, None), title="records of the unit"),
        Variable(PLACE, Kind.ORDINAL, title="place of the record within its unit"),
    )


def units_of(data: Microdata) -> Units:
    """Return the units of the records; every record is a unit of its own where the table has none."""
    return Units.from_codes(np.arange(len(data))) if data.units is None else data.units


@dataclass(frozen=True, eq=False)
class PlaceLevels:
    """Levels of ``place``: 1 up to ``last``, which stands for all later places too."""

    last: int

    @classmethod
    def of_units(cls, units: Units) -> PlaceLevels:
        """Create the levels of these units: the last place is one that enough units have."""
        sizes = np.sort(units.sizes)[::-1]
        return cls(max(1, int(sizes[min(UNITS_OF_PLACE, len(sizes)) - 1])))

    def column(self, places: Integers) -> pd.Series:
        """Return the column of these places (n,), from 1."""
        levels = pd.CategoricalDtype([str(place) for place in range(1, self.last + 1)], ordered=True)
        return pd.Series(pd.Categorical.from_codes(np.minimum(places, self.last) - 1, dtype=levels))


@dataclass(eq=False)
class EarlierRecords:
    """Values of terms, at one place of all units after another.

    Units with more records come first, so that those with a record at a place are the first ones of all.
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

    ``edges`` has, by variable with numbers, the number of a record that does not exist.
    """

    confidential: Microdata
    terms: Sequence[UnitTerm]
    edges: Mapping[str, float]

    @classmethod
    def of_data(cls, confidential: Microdata, terms: Sequence[UnitTerm]) -> TermColumns:
        """Create the columns of terms of the confidential records."""
        counted = confidential.with_positive_weight
        names = {term.column for term in terms if term.column and not confidential.schema[term.column].kind.has_levels}
        return cls(confidential, terms, {name: _just_below(counted, name) for name in names})

    def column(self, term: UnitTerm, values: Floats, absent: Booleans) -> pd.Series:
        """Return the column of a term from its numbers (n,); ``absent`` marks where no record of the unit has one."""
        if not term.column:
            return pd.Series(values.astype(np.int64), name=term.text)
        variable = self.confidential.schema[term.column]
        if variable.kind.has_levels:
            own: Any = cast("pd.CategoricalDtype", self.confidential.column(term.column).dtype)
            levels = [_new_level(own.categories), *own.categories]
            codes = np.where(np.isnan(values), -1, values).astype(np.int64)
            codes = np.where(absent, 0, np.where(codes < 0, -1, codes + 1))
            dtype = pd.CategoricalDtype(levels, ordered=variable.kind is Kind.ORDINAL)
            return pd.Series(pd.Categorical.from_codes(codes, dtype=dtype), name=term.text)
        numbers = np.where(absent, self.edges[term.column], values)
        if variable.kind is not Kind.DATE:
            return pd.Series(numbers, name=term.text)
        missing = np.isnan(numbers)
        seconds = np.rint(np.where(missing, 0.0, numbers) * SECONDS_OF_DAY).astype("datetime64[s]")
        seconds[missing] = np.datetime64("NaT")
        return pd.Series(seconds, name=term.text)


def _just_below(data: Microdata, name: str) -> float:
    """Return the number below all numbers of a variable that is nearest to them, of a date a second earlier."""
    smallest = float(data.present_numbers(name).min())
    return (
        smallest - 1 / SECONDS_OF_DAY if data.schema[name].kind is Kind.DATE else float(np.nextafter(smallest, -np.inf))
    )


def _new_level(levels: Sequence[str]) -> str:
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


def with_unit_terms(data: Microdata, terms: Sequence[UnitTerm], schema: Schema) -> Microdata:
    """Return all records with columns of the terms, ``size`` and ``place``, as a table of ``schema``.

    Identifiers and kinds of missing values are left out, so that no model can follow a unit to its later records.
    """
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
    made = TermColumns.of_data(data, terms)
    columns = {term.text: made.column(term, values[term.text], absent[term.text]) for term in terms}
    columns[SIZE] = pd.Series(units.sizes[units.unit_of])
    columns[PLACE] = PlaceLevels.of_units(units).column(units.places)
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
