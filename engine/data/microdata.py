"""Microdata: a schema and a frame that conforms to it, under one declared missing-value policy."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..errors import BadInput, EngineError, NotComputable, near_miss_hint
from ..wording import agreeing_word, count_noun
from .affected_group import AffectedGroup
from .date_texts import read_dates
from .distinct_values import count_codes, decode_text_categorical, factorize_column
from .long_arrays import compress_column, compute_column, is_long
from .missing_codes import mask_missing_codes, missing_value_codes
from .recoding_rules import RecodeRule
from .schema import Kind, MissingPolicy, Origin, Role, Schema, UnitDeclaration, Variable
from .spelling import level_spellings, looks_like_header, may_be_thousands, read_numbers, spell_as_whole
from .units import Units, code_unit_numbers

LARGEST_COUNT = 2**53
HASHED_AT_ONCE = 1 << 18
"""Records."""

SECONDS_OF_DAY = 86_400
"""Seconds."""
_ISO_DATE = r"\d{4}-\d{2}-\d{2}"

FOUR_DIGIT_YEARS = (-719_162.0, 2_932_897.0)
"""Days from 1970 to the first of the year 1 and to that of the year 10000."""


@dataclass(frozen=True, eq=False)
class Microdata:
    """Validated table: n records of the schema's variables.

    schema: the variables
    frame: their columns, one dtype a kind: categorical, ordinal (ordered) and binary variables are pandas categoricals
        of text, counts int64, continuous variables float64, dates datetime64[s]. Missing values, which only
        ``MissingPolicy.KEEP`` admits, are NaN or NaT; counts are then float64 with whole numbers. No variable lacks all
        its values. Record i of a partially synthetic table is record i of the confidential one
    origin: whether the table is confidential, synthetic or anonymised
    dropped: number of records that the missing-value policy removed
    file_records: number of the file's records before any was dropped, sampled or held out; 0 where it is not known
    missing_counts: how many of these lack a value, by variable of which each kept record has one; a record counts for
        each value that it lacks. Empty where none was dropped
    classes: equivalence class of each *confidential* record of an anonymised table, -1 where it was suppressed, (n,);
        the other records are in their order. None for any other table
    generalised: variables that contain labels of intervals or tree nodes, which only ``frame`` provides
    linked: False where the link of released to confidential records is unknown
    weights: influence of each confidential record on the models of a release, in [0, 1], (n,); None where all are 1.
        Only fits, and measures that use them, read them
    controls: records of the same variables that no release was made of (``with_controls``), or None. Only measures that
        declare ``controls`` receive them
    kinds: for the k variables with missing codes, the code of each missing value, (n, k). None where no code occurs. No
        method reads them
    withheld: variables that were removed before a synthesis step draws, with the step's place (``without_variables``)
    recoding: public rules by which confidential records were made coarser (``sfumato.engine.data.recoding``)
    affected_group: group of which most records were dropped beyond chance; None where there is none, or none was looked for
    """

    schema: Schema
    frame: pd.DataFrame
    origin: Origin = "confidential"
    dropped: int = 0
    file_records: int = 0
    missing_counts: Mapping[str, int] = field(default_factory=dict)
    classes: NDArray[np.int64] | None = None
    generalised: frozenset[str] = frozenset()
    linked: bool = True
    weights: NDArray[np.float64] | None = None
    controls: Microdata | None = None
    kinds: pd.DataFrame | None = None
    withheld: Mapping[str, str] = field(default_factory=dict)
    recoding: Mapping[str, RecodeRule] = field(default_factory=dict)
    affected_group: AffectedGroup | None = None

    def __len__(self) -> int:
        return len(self.frame)

    @property
    def complete_share(self) -> float:
        """Return the share of the file's records that the missing-value policy kept, whether sampled or not."""
        # Without the number of the file's records, these records are all that were kept.
        return 1 - self.dropped / (self.file_records or max(1, len(self) + self.dropped))

    def dropped_after(self, earlier: Microdata) -> Microdata:
        """Return the same records, which were left of those of ``earlier``, with the records counted that it dropped."""
        if not earlier.dropped:
            return self
        # a variable that both lack is counted by each
        names = {**earlier.missing_counts, **self.missing_counts}
        counts = {name: earlier.missing_counts.get(name, 0) + self.missing_counts.get(name, 0) for name in names}
        return replace(
            self, dropped=earlier.dropped + self.dropped, file_records=earlier.file_records, missing_counts=counts
        )

    def with_weights(self, weights: NDArray[np.float64]) -> Microdata:
        """Return the same records with these weights (n,).

        Raises EngineError where they are not one number a record in [0, 1], or are all 0.
        """
        weights = np.asarray(weights, dtype=np.float64)
        if weights.shape != (len(self),) or not ((weights >= 0) & (weights <= 1)).all() or not weights.any():
            raise EngineError("weights are one number a record, from 0 to 1, not all of them 0")
        # No weights, so that a run with weights of 1 has the same random streams and results.
        return replace(self, weights=None if (weights == 1).all() else weights)

    @property
    def with_positive_weight(self) -> Microdata:
        """Return the records with a weight above 0."""
        if self.weights is None:
            return self
        # Records of weight 0 must leave no trace in what is fitted, not even a level.
        some = self.weights > 0
        return replace(self, frame=self.frame[some].reset_index(drop=True), weights=self.weights[some], kinds=None)

    @property
    def effective_weights(self) -> NDArray[np.float64]:
        """Return the weight of every record, (n,): 1 without weights."""
        return np.ones(len(self)) if self.weights is None else self.weights

    def select_rows(self, rows: slice | list[int]) -> Microdata:
        """Return some records, sharing memory if they are consecutive; their levels keep their codes.

        Classes, controls and kinds of missing values are dropped.
        """
        weights = None if self.weights is None else self.weights[rows]
        return Microdata(
            self.schema,
            self.frame.iloc[rows],
            self.origin,
            generalised=self.generalised,
            linked=self.linked,
            weights=weights,
            recoding=self.recoding,
        )

    def with_controls(self, controls: Microdata) -> Microdata:
        """Return the same records with control records, recoded to the same level codes.

        Raises EngineError where their variables differ.
        """
        if controls.schema != self.schema:
            raise EngineError("control records have the same variables as the confidential ones")
        columns = {}
        for variable in self.schema:
            if variable.kind.has_levels:
                values, own = controls.frame[variable.name], self.frame[variable.name].cat.categories
                if not values.cat.categories.equals(own):
                    # Levels that only controls have come last, so that the codes of the others stay the same.
                    columns[variable.name] = values.cat.set_categories(
                        [*own, *(c for c in values.cat.categories if c not in own)]
                    )
        return replace(self, controls=replace(controls, frame=controls.frame.assign(**columns)))

    @property
    def without_controls(self) -> Microdata:
        """Return the same records without any controls."""
        return self if self.controls is None else replace(self, controls=None)

    @cached_property
    def sha256(self) -> str:
        """Return a hash of the variables' names, kinds and levels and of all values, in the order of the records."""
        # It binds random streams to the data and stays internal, since it confirms a guess of a missing value. Weights
        # are excluded: the same records are measured by the same random numbers.
        return self._hash_variables(self.schema)

    @cached_property
    def sha256_in_any_order(self) -> str:
        """Return the same hash with the variables in the order of their names, so that their order does not matter."""
        ordered = sorted(self.schema, key=lambda variable: variable.name)
        return self.sha256 if ordered == list(self.schema) else self._hash_variables(ordered)

    def _hash_variables(self, variables: Iterable[Variable]) -> str:
        return hash_variables(variables, self, len(self), lambda _: (self,))

    @cached_property
    def units(self) -> Units | None:
        """Return the units of the records; None where every record is a unit of its own.

        A record without a number is a unit of its own. Records of a unit are in the order that the schema names.
        """
        name = self.schema.unit
        if name is None or name not in self.frame:
            return None
        found = Units.from_codes(code_unit_numbers(self.frame[name]), self._order_ranks())
        return found if len(found) < len(self) else None

    def limit_units(self, rng: np.random.Generator) -> Microdata:
        """Return the records with at most ``schema.largest_unit`` of each unit: its first ones, or random ones without an order.

        Records without the number of a unit are left out.
        """
        name, most = self.schema.unit, self.schema.largest_unit
        if name is None or most is None:
            return self
        # Counted as one unit, records without a number would push out each other, and a person who leaves would change
        # twice as many counts. Counted as units of their own, one person has any number of them.
        kept = ~self.missing_mask(name)
        if self.units is not None:
            units = self.units
            if self._order_ranks() is None:
                units = Units.from_codes(units.unit_of, rng.permutation(len(self)))
            kept &= units.places <= most
        if kept.all():
            return self
        weights = None if self.weights is None else self.weights[kept]
        return replace(self, frame=self.frame[kept].reset_index(drop=True), weights=weights, kinds=None)

    def with_units(self, declared: UnitDeclaration) -> Microdata:
        """Return the same records with what a recipe declares of their units, which a stored table lacks."""
        number, order, largest = declared
        variables = tuple(replace(one, role=Role.UNIT) if one.name == number else one for one in self.schema)
        own = order if order in self.schema else ""
        schema = replace(self.schema, variables=variables, order=own, largest_unit=largest)
        if schema.unit_declaration == self.schema.unit_declaration:
            return self
        controls = None if self.controls is None else self.controls.with_units(declared)
        return replace(self, schema=schema, controls=controls)

    def _order_ranks(self) -> NDArray[np.float64] | None:
        """Return the numbers by which records of a unit are ordered, (n,); None where that is their place in the table."""
        name = self.schema.order
        # labels of a generalisation have no order
        known = name in self.schema and name in self.frame and name not in self.generalised
        return self.numbers(name) if known else None

    def require_units(self) -> Units:
        """Return the units of the records, also where each has one record.

        Raises NotComputable where nothing says which records are of one unit.
        """
        if self.units is not None:
            return self.units
        name = self.schema.unit
        if name is None or name not in self.frame or bool(self.missing_mask(name).all()):
            raise NotComputable("the release does not say which of its records are of one unit")
        return Units.from_codes(np.arange(len(self)))

    @property
    def n_units(self) -> int:
        """Return the number of units, which is that of the records where each is a unit of its own."""
        return len(self) if self.units is None else len(self.units)

    @property
    def linked_records(self) -> NDArray[np.intp]:
        """Return the confidential record, from 0, that each record is the released version of, ascending: (len(self),).

        Raises NotComputable where the records are not linked.
        """
        self.require_linked()
        return np.arange(len(self)) if self.classes is None else np.flatnonzero(self.classes >= 0)

    def require_linked(self) -> None:
        """Raise NotComputable where the link of released to confidential records is unknown."""
        if not self.linked:
            raise NotComputable("the release is not in the original's order and does not say which record is whose")

    def without_variables(self, names: Collection[str], place: str) -> Microdata:
        """Return the same records without these variables.

        Reading one raises EngineError, which names the step at ``place``.
        """
        kept = self.schema.select_variables([name for name in self.schema.names if name not in names])
        columns = {name: self.frame[name] for name in kept.names}
        frame = pd.DataFrame(columns, index=self.frame.index, copy=False)
        return replace(
            self, schema=kept, frame=frame, kinds=None, withheld={**self.withheld, **dict.fromkeys(names, place)}
        )

    def column(self, name: str) -> pd.Series:
        """Return the values of one variable, (n,). Raises NotComputable where they are labels of a generalisation."""
        if name in self.generalised:
            raise NotComputable(f'"{name}" is generalised: its labels cannot be compared with the confidential values')
        return self._frame_column(name)

    def numbers(self, name: str) -> NDArray[np.float64]:
        """Return one variable as floats, (n,): level codes, numbers, or days since 1970; NaN where missing.

        A time of day is a fraction of the day, to the second; ``to_column`` converts back. Raises NotComputable as
        ``column`` does.
        """
        values, kind = self.column(name), self.schema[name].kind
        if not kind.has_levels and kind is not Kind.DATE:
            if values.dtype == np.float64 or not is_long(len(values)):
                return values.to_numpy(dtype=np.float64)
            return compute_column(len(values), np.float64, lambda rows: values.iloc[rows].to_numpy(dtype=np.float64))
        if kind.has_levels:
            own: Any = values.array  # its accessor takes ten times as long
            return compute_column(len(values), np.float64, lambda rows: _numbers_of_codes(own.codes[rows]))
        seconds = values.to_numpy(dtype="datetime64[s]")
        return compute_column(len(values), np.float64, lambda rows: _seconds_to_days(seconds[rows]))

    def missing_mask(self, name: str) -> NDArray[np.bool_]:
        """Mark the records without a value of this variable, (n,)."""
        return np.asarray(self._frame_column(name).array.isna(), dtype=np.bool_)

    def any_missing_mask(self, names: Iterable[str]) -> NDArray[np.bool_]:
        """Mark the records without a value of some of these variables, (n,)."""
        found = np.zeros(len(self), dtype=np.bool_)
        for name in names:
            found |= self.missing_mask(name)
        return found

    def _frame_column(self, name: str) -> pd.Series:
        """Return one column of the frame. Raises EngineError where it is withheld."""
        if name in self.withheld:
            raise EngineError(
                f'{self.withheld[name]}: the method reads the confidential "{name}" when it draws, before it is synthesised; '
                "use another method, or have its author correct it"
            )
        return self.frame[name]

    def may_have_missing(self, name: str) -> bool:
        """Return whether a record may lack a value of this variable: the recipe declares it, or some record here has
        none.
        """
        return self.schema[name].may_be_missing or bool(self.missing_mask(name).any())

    def present_numbers(self, name: str) -> NDArray[np.float64]:
        """Return the numbers of the records that have a value, (k,)."""
        numbers = self.numbers(name)
        return compress_column(numbers, compute_column(len(numbers), np.bool_, lambda rows: ~np.isnan(numbers[rows])))

    def with_columns(self, columns: dict[str, pd.Series], origin: Origin) -> Microdata:
        """Return a copy with the named columns replaced, the others unchanged.

        Where all are replaced, they may have any length.
        """
        whole = len(columns) == len(self.schema)
        frame = (
            pd.DataFrame({name: columns[name] for name in self.schema.names}) if whole else self.frame.assign(**columns)
        )
        return Microdata(self.schema, frame, origin, linked=self.linked)


def units_of(data: Microdata) -> Units:
    """Return the units of the records; every record is a unit of its own where the table has none."""
    return Units.from_codes(np.arange(len(data))) if data.units is None else data.units


def hash_variables(
    variables: Iterable[Variable], head: Microdata, records: int, blocks_of: Callable[[str], Iterable[Microdata]]
) -> str:
    """Return the hash of variables of a table of ``records`` records, which comes in blocks.

    ``head`` has their levels, and ``blocks_of`` a variable returns the records that have it, block by block. The hash
    does not depend on where blocks end.
    """
    found = hashlib.sha256()
    for variable in variables:
        name, masks, lengths, has_missing = variable.name, [], [], False
        levels = list(head.frame[name].cat.categories) if variable.kind.has_levels else []
        found.update(json.dumps([name, variable.kind.value, levels, records]).encode())
        for block in blocks_of(name):
            values, missing = block.frame[name], block.missing_mask(name)
            for first in range(0, len(values), HASHED_AT_ONCE):
                some = slice(first, first + HASHED_AT_ONCE)
                found.update(_hashed_values(values.iloc[some], missing[some], variable.kind).tobytes())
            has_missing |= bool(missing.any())
            masks.append(missing if missing.any() else np.zeros((), dtype=np.bool_))
            lengths.append(len(missing))
        # A missing number is hashed as 0, so the mask distinguishes both. One without missing values takes no memory.
        if has_missing:
            whole = [np.broadcast_to(mask, length) for mask, length in zip(masks, lengths, strict=True)]
            found.update(np.packbits(np.concatenate(whole)).tobytes())
        else:
            found.update(bytes(-(-records // 8)))
    return found.hexdigest()


def _hashed_values(values: pd.Series, missing: NDArray[np.bool_], kind: Kind) -> NDArray[Any]:
    """Return the values (n,) in eight bytes each: codes, seconds since 1970 or floats.

    It is 0 where a number or a date is missing.
    """
    if kind.has_levels:
        # Little-endian, so that the hash is the same on every machine.
        return np.asarray(values.cat.codes.to_numpy(dtype="<i8"))
    if kind is Kind.DATE:
        return np.where(missing, 0, values.to_numpy(dtype="datetime64[s]").astype("<i8"))
    return np.where(missing, 0.0, values.to_numpy(dtype="<f8"))


def _numbers_of_codes(codes: NDArray[np.integer[Any]]) -> NDArray[np.float64]:
    """Return codes of levels as numbers, NaN where there is none."""
    numbers = codes.astype(np.float64)
    numbers[codes < 0] = np.nan
    return numbers


def _seconds_to_days(moments: NDArray[np.datetime64]) -> NDArray[np.float64]:
    """Return moments as days, with times of day to the nearest 2^-20 (0.08 seconds), NaN where there is none."""
    days, rest = np.divmod(moments.astype(np.int64), SECONDS_OF_DAY)
    # Binary fractions, so that moments that are whole days apart differ by exactly whole numbers.
    found = np.asarray(days + np.rint(rest * (2**20 / SECONDS_OF_DAY)) / 2**20, dtype=np.float64)
    return np.where(missing, np.nan, found) if (missing := np.isnat(moments)).any() else found


def to_column(values: Any, confidential: Microdata, variable: Variable, place: str) -> pd.Series:
    """Convert drawn values (n,), as ``Microdata.numbers`` returns them, to a column with the dtype of the confidential
    one.

    Dates are rounded to the second. NaN is a missing value where the variable may have some. Raises EngineError where a
    value is impossible for the variable.
    """
    like = confidential.column(variable.name)
    if variable.kind.has_levels:
        codes, levels = np.where(np.isnan(values), -1, values).astype(np.int64), cast("pd.CategoricalDtype", like.dtype)
        return pd.Series(pd.Categorical.from_codes(codes, dtype=levels), name=variable.name)
    numbers = np.asarray(values, dtype=np.float64)
    low = -np.inf if variable.lower is None else variable.lower
    high = np.inf if variable.upper is None else variable.upper
    if variable.kind is Kind.DATE:
        # the whole of the last day is inside
        outside = (numbers < low) | (np.floor(numbers) > high)
        outside |= (numbers < FOUR_DIGIT_YEARS[0]) | (numbers > FOUR_DIGIT_YEARS[1])
    else:
        outside = (numbers < low) | (numbers > high)
    unknown = ~np.isfinite(numbers)
    if unknown.any() and confidential.may_have_missing(variable.name):
        unknown &= ~np.isnan(numbers)
    if outside.any() or unknown.any():
        raise EngineError(
            f'{place}: {int((outside | unknown).sum()):,} drawn values of "{variable.name}" leave its bounds'
        )
    if variable.kind is Kind.DATE:
        numbers = np.rint(numbers * SECONDS_OF_DAY)
    floats = variable.kind is Kind.COUNT and variable.may_be_missing  # whether or not a value of these data is missing
    return pd.Series(numbers, name=variable.name).astype("float64" if floats else like.dtype)


def schema_with_levels(confidential: Microdata) -> Schema:
    """Return the schema of the confidential data with the levels found there, which labels of generalised values may
    stand for.
    """
    found = []
    for variable in confidential.schema:
        levels = variable.levels
        if variable.kind.has_levels:
            levels = tuple(str(level) for level in confidential.column(variable.name).cat.categories)
        found.append(replace(variable, levels=levels))
    return replace(confidential.schema, variables=tuple(found))


def conform_to_schema(
    raw: pd.DataFrame,
    schema: Schema,
    policy: MissingPolicy = MissingPolicy.REFUSE,
    origin: Origin = "confidential",
    place: str = "variables",
    tags: pd.DataFrame | None = None,
    complete_cases: Sequence[str] = (),
) -> Microdata:
    """Return microdata of the schema's variables from a frame as it was read.

    Missing codes become missing values, the policy is applied, and each column is converted to its kind, however its
    values are written (``sfumato.engine.data.spelling``). ``tags``, of the same index, give the kind of missing value
    of cells that the frame has no value in. A policy that keeps missing values drops records without a value of
    ``complete_cases``. Raises BadInput that names the column, the rule and how many records break
    it, never a value.
    """
    raw = raw.set_axis([str(name) for name in raw.columns], axis=1)
    check_columns(raw.columns, schema, place)
    coded = pd.DataFrame({v.name: mask_missing_codes(raw[v.name], v) for v in schema}, index=raw.index)
    missing = coded.isna()
    kept = policy is MissingPolicy.KEEP and origin == "confidential"
    required = missing[list(complete_cases)]
    if policy is MissingPolicy.KEEP and required.to_numpy().any():
        whole = ~required.any(axis=1)
        if not whole.any():
            raise no_records_error(len(raw))
        found = conform_to_schema(raw[whole], schema, policy, origin, place, None if tags is None else tags[whole])
        return replace(found, **_dropping_record(required))
    kinds = missing_value_codes(raw, schema, tags) if kept else None
    dropped: dict[str, Any] = {}
    if policy is not MissingPolicy.KEEP and missing.to_numpy().any():
        if policy is MissingPolicy.REFUSE:
            name = missing.sum().idxmax()
            raise BadInput(
                f"{place}.{name}",
                f'{int(missing[name].sum()):,} of {len(raw):,} records have no value; say missing = "drop" under [data] '
                'to leave such records out, missing = "keep" to treat missing as a value, or leave the column out',
            )
        dropped = _dropping_record(missing)
        coded = coded[~missing.any(axis=1)]
    if not len(coded):
        raise no_records_error(dropped.get("dropped", 0))
    coded = coded.reset_index(drop=True)
    columns = {v.name: _convert_present(coded[v.name], v, f"{place}.{v.name}") for v in schema}
    return Microdata(schema, pd.DataFrame(columns), origin, kinds=kinds, **dropped)


def _dropping_record(missing: pd.DataFrame) -> dict[str, Any]:
    """Return what ``Microdata`` records of dropping each record (n,) that lacks one of k values, from the mask (n, k)."""
    counts = {str(name): int(count) for name, count in missing.sum().items()}
    return {"dropped": int(missing.any(axis=1).sum()), "file_records": len(missing), "missing_counts": counts}


def no_records_error(dropped: int) -> BadInput:
    """Return the error for a table of which the missing-value policy leaves no record."""
    return BadInput(
        "data", "no record is left" + (f" after dropping {dropped:,} with missing values" if dropped else "")
    )


def _convert_present(values: pd.Series, variable: Variable, place: str) -> pd.Series:
    """Return the column with its present values converted to their kind, missing ones in their places."""
    present = values.dropna()
    if not len(present):
        raise BadInput(place, "no record has a value; leave the column out")
    converted = _convert_to_kind(present, variable, place)
    if len(present) == len(values):
        return converted
    # By place, which takes a tenth of the time of matching the numbers of the records.
    place_of = np.full(len(values), -1)
    place_of[values.notna().to_numpy()] = np.arange(len(present))
    held: Any = (
        converted.array if isinstance(converted.dtype, pd.api.extensions.ExtensionDtype) else converted.to_numpy()
    )
    filled = pd.api.extensions.take(held, place_of, allow_fill=True)
    return pd.Series(filled, index=values.index, name=converted.name, dtype=filled.dtype)


def check_columns(names: Iterable[str], schema: Schema, place: str = "variables") -> None:
    """Raise BadInput where a variable is not exactly one column of a file with these names."""
    found = Counter(names)
    for variable in schema:
        if variable.name not in found:
            if (
                found.keys().isdisjoint(schema.names)
                # The message quotes the file's names only where they cannot be values of a record: some are the
                # schema's, or none can be a number or a date.
                and not looks_like_header(found)
                and not near_miss_hint(variable.name, found)
            ):
                raise BadInput(
                    f"{place}.{variable.name}",
                    f'no column "{variable.name}", nor any other that is asked for; the first line of the file must hold the names',
                )
            Schema(tuple(Variable(name, Kind.CATEGORICAL) for name in found)).require_variable(
                variable.name, f"{place}.{variable.name}"
            )
        if (copies := found[variable.name]) > 1:
            raise BadInput(
                f"{place}.{variable.name}",
                f"the file has {count_noun(copies, 'column')} of this name; rename all but one",
            )


def _convert_to_kind(values: pd.Series, variable: Variable, place: str) -> pd.Series:
    """Return a column without missing values, converted to the variable's kind. Raises BadInput."""
    if variable.kind.has_levels:
        return _convert_levels(values, variable, place)
    if variable.kind is Kind.DATE:
        return _convert_dates(values, variable, place)
    return _convert_numbers(decode_text_categorical(values), variable, place)


def _convert_levels(values: pd.Series, variable: Variable, place: str) -> pd.Series:
    """Return a column as a categorical of text levels. Raises BadInput."""
    codes, some = factorize_column(values)
    text = _align_spellings(_to_text(some), variable)
    found = text.unique()
    levels = list(variable.levels) or _sort_naturally(list(found))
    code_of = {level: code for code, level in enumerate(levels)}
    strange = [level for level in found if level not in code_of]
    if strange:
        count = int(count_codes(codes, len(text))[text.isin(strange)].sum())
        raise BadInput(
            f"{place}.levels",
            f"{count_noun(count, 'record')} {agreeing_word(count, 'has', 'have')} a level that is not listed ({len(strange)} such levels){_difference_hint(strange, levels)}",
        )
    if variable.kind is Kind.BINARY and len(levels) > 2:
        raise BadInput(
            f"{place}.kind", f'binary, but the column has {count_noun(len(levels), "level")}; use "categorical"'
        )
    dtype = pd.CategoricalDtype(levels, ordered=variable.kind is Kind.ORDINAL)
    level = np.array([code_of[one] for one in text], dtype=np.intp)
    return pd.Series(pd.Categorical.from_codes(level[codes], dtype=dtype), index=values.index)


def _align_spellings(text: pd.Series, variable: Variable) -> pd.Series:
    """Return the texts with whole numbers spelt as the listed levels, or as ``1`` for ``1.0`` where none are listed and
    all are whole.
    """
    found = list(text.unique())
    whole = [spell_as_whole(level) for level in found]
    if (whole == found and not variable.levels) or set(found) <= set(variable.levels):
        return text
    numbers = all(level.removeprefix("-").isdecimal() for level in whole)
    spellings = level_spellings(found, variable.levels or (whole if numbers else found))
    return text.map(lambda level: spellings.get(level, level)) if spellings else text


def _difference_hint(strange: Sequence[str], levels: Sequence[str]) -> str:
    """Return a hint at the only difference of unlisted levels from listed ones, such as capitals; empty without one."""
    plain: dict[str, Callable[[str], str]] = {
        "blanks": str.strip,
        "upper and lower case": lambda level: level.strip().casefold(),
        "zeros before them": lambda level: level.strip().lstrip("0"),
    }
    for what, without in plain.items():
        if {without(level) for level in strange} <= {without(level) for level in levels}:
            return f"; but for {what} they would be: write them alike"
    return ""


def _to_text(values: pd.Series) -> pd.Series:
    """Return the values as texts, whole floats without a decimal point."""
    if pd.api.types.is_float_dtype(values.dtype) and np.isfinite(values).all() and (values == np.floor(values)).all():
        values = values.astype("int64")
    text = values if isinstance(values.dtype, pd.StringDtype) else values.astype("str")
    return text.astype("object")


def _sort_naturally(levels: list[str]) -> list[str]:
    """Return levels sorted as numbers where all are, else as texts."""
    try:
        numbers = {level: float(level) for level in levels}
    except ValueError:
        return sorted(levels)
    if not all(map(math.isfinite, numbers.values())):
        return sorted(levels)
    return sorted(levels, key=lambda level: (numbers[level], level))


def _convert_dates(values: pd.Series, variable: Variable, place: str) -> pd.Series:
    """Return a column as dates to the second, in UTC without a zone. Raises BadInput."""
    codes, some = factorize_column(values)
    counts = count_codes(codes, len(some))
    some = _to_text(some) if pd.api.types.is_numeric_dtype(some.dtype) else decode_text_categorical(some)
    form = None if pd.api.types.is_datetime64_any_dtype(some.dtype) else variable.date_form
    if form is None:
        dates = _read_iso_dates(some)
    else:
        texts = some.astype("str")
        dates = pd.Series(read_dates(texts.tolist(), form))
        # A file from elsewhere may have the same dates in ISO 8601, which no other form is mistaken for.
        if (other := dates.isna() & texts.str.match(_ISO_DATE)).any():
            dates = dates.astype("datetime64[us]").mask(other, _read_iso_dates(texts[other]))
    wrong = int(counts[dates.isna()].sum())
    if wrong:
        written = variable.format if form is not None else "2019-07-31"
        hint = "" if form is not None else ', or as format says: format = "dd.mm.yyyy"'
        raise BadInput(
            place,
            f"{count_noun(wrong, 'record')} {agreeing_word(wrong, 'is', 'are')} not a date; dates are written {written}{hint}",
        )
    whole = dates.astype("datetime64[s]")
    if finer := int(counts[whole != dates].sum()):
        raise BadInput(
            place,
            f"{count_noun(finer, 'record')} {agreeing_word(finer, 'has', 'have')} a time finer than a second; round it to seconds, or leave the column out",
        )
    if variable.bounds is not None:
        days = whole.to_numpy().astype("datetime64[D]").astype(np.int64)
        _check_bounds(pd.Series(days[codes]), variable, place)
    return pd.Series(whole.to_numpy()[codes], index=values.index)


def _read_iso_dates(values: pd.Series) -> pd.Series:
    """Return the moments of values (k,), dates already or ISO 8601, in UTC without a zone; NaT where there is none."""
    return pd.to_datetime(values, errors="coerce", format="ISO8601", utc=True).dt.tz_localize(None)


def _convert_numbers(values: pd.Series, variable: Variable, place: str) -> pd.Series:
    """Return a column as whole or real numbers within the variable's bounds. Raises BadInput."""
    if pd.api.types.is_datetime64_any_dtype(values.dtype):
        raise BadInput(place, f'the column holds dates, not a {variable.kind}; is it "date"?')
    numbers = read_numbers(values)
    found = numbers.to_numpy()
    wrong = int((~np.isfinite(found)).sum())
    # Read either way, such a column could be wrong by a factor of a thousand.
    if wrong and may_be_thousands(values):
        raise BadInput(
            place,
            f"{count_noun(wrong, 'record')} {agreeing_word(wrong, 'has', 'have')} a comma that may be decimal or one of thousands; write a decimal point",
        )
    if wrong:
        raise BadInput(
            place,
            f'{count_noun(wrong, "record")} {agreeing_word(wrong, "is", "are")} not a number, as a {variable.kind} must be; is it "categorical"?',
        )
    if variable.kind is Kind.COUNT:
        wrong = int((found != np.floor(found)).sum())
        if wrong:
            raise BadInput(
                place,
                f'{count_noun(wrong, "record")} {agreeing_word(wrong, "is", "are")} not whole numbers, as a count must be; is it "continuous"?',
            )
        # Beyond 2^53 a double does not hold every whole number.
        if wrong := int((np.abs(found) >= LARGEST_COUNT).sum()):
            raise BadInput(
                place,
                f'{count_noun(wrong, "record")} {agreeing_word(wrong, "is", "are")} 2^53 or more, too large to count exactly; is it "continuous"?',
            )
    _check_bounds(numbers, variable, place)
    return numbers.astype("int64") if variable.kind is Kind.COUNT else numbers


def _check_bounds(numbers: pd.Series, variable: Variable, place: str) -> None:
    """Raise BadInput where numbers are outside the variable's bounds."""
    low, high = variable.lower, variable.upper
    if low is not None and (below := int((numbers < low).sum())):
        raise BadInput(
            f"{place}.bounds",
            f"{count_noun(below, 'record')} {agreeing_word(below, 'is', 'are')} below {variable.format_bound(low)}; widen the bounds or filter with [data] where",
        )
    if high is not None and (above := int((numbers > high).sum())):
        raise BadInput(
            f"{place}.bounds",
            f"{count_noun(above, 'record')} {agreeing_word(above, 'is', 'are')} above {variable.format_bound(high)}; widen the bounds or filter with [data] where",
        )
