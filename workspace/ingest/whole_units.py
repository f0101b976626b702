"""Selection of whole units: of a unit either all records are taken or none, by sample, screening and hold-out."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.data.missing_codes import mask_missing_codes
from sfumato.engine.data.schema import Schema
from sfumato.engine.data.units import Units, code_unit_numbers
from sfumato.engine.errors import BadInput, near_miss_hint
from sfumato.engine.wording import agreeing_word, count_noun

from .raw_tables import RawTable
from .unit_detection import number_runs

FAR_ABOVE, FEW_RECORDS = 2, 50
"""A unit drawn first may have so many times the records asked for, or so many records, without being refused."""


def units_of_raw_records(raw: RawTable, schema: Schema, kept: NDArray[np.bool_]) -> Units | None:
    """Return the units of the kept records of a file, (n,); None where each is a unit of its own."""
    if schema.unit is None:
        return None
    ((_, values),) = raw.iterate_columns([schema.unit])
    present = mask_missing_codes(values, schema[schema.unit])[kept]
    found = Units.from_codes(code_unit_numbers(present))
    return found if len(found) < len(found.unit_of) else None


def number_hidden_units(raw: RawTable, schema: Schema) -> RawTable:
    """Return the table of a file with the column that numbers its hidden units, where the schema declares one.

    Runs are those of the whole file, whatever records are kept of it. Raises BadInput where a column of them is none of
    the file.
    """
    if schema.unit is None or not schema[schema.unit].runs_of or schema.unit in raw.names:
        return raw
    variable = schema[schema.unit]
    for name in variable.runs_of:
        if name not in raw.names:
            # in a file without a header the names are a record's values and must not be quoted
            others = {one.name for one in schema if one is not variable}
            near = near_miss_hint(name, raw.names) if others <= set(raw.names) else ""
            raise BadInput(f"variables.{variable.name}.runs_of", f'the file has no column "{name}"{near}')
    columns = [pd.factorize(values)[0] for _, values in raw.with_all_records.iterate_columns(variable.runs_of)]
    return raw.with_column(variable.name, pd.Series(number_runs(columns)))


def choose_units_of_records(units: Units, records: int, rng: np.random.Generator, place: str) -> NDArray[np.bool_]:
    """Mark the records (n,) of units that are drawn one after the other as long as at most ``records`` records are taken.

    At least one unit is taken. Raises BadInput at ``place`` where it has far more records.
    """
    drawn = rng.permutation(len(units))
    taken = int(np.searchsorted(np.cumsum(units.sizes[drawn]), records, side="right"))
    first = int(units.sizes[drawn[0]])
    if first > max(FAR_ABOVE * records, FEW_RECORDS):
        raise BadInput(
            place,
            f"units are taken whole, and the first one drawn has {count_noun(first, 'record')}, where at most "
            f"{count_noun(records, 'record')} {agreeing_word(records, 'is', 'are')} asked for; ask for more, or give "
            'another variable the role "unit"',
        )
    return units.mark_records(drawn[: max(1, taken)])


def choose_share_of_units(units: Units, share: float, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Mark the records (n,) of a share of two units or more, at least one and not all."""
    size = min(max(1, round(share * len(units))), len(units) - 1)
    return units.mark_records(rng.choice(len(units), size, replace=False))


def check_units_not_split(units: Units | None, flags: NDArray[np.bool_], column: str, place: str) -> None:
    """Raise BadInput where the column that marks some records (n,) marks only some records of a unit."""
    split = 0 if units is None else len(units.differing_units(flags))
    if split:
        raise BadInput(
            place,
            f'"{column}" marks some and not all records of {count_noun(split, "unit")}: whoever is held out for one record would be in the '
            "data by another; mark all records of a unit alike",
        )


def check_unit_levels(data: Microdata) -> None:
    """Raise BadInput where a variable of the level of units differs within a unit; the message counts these."""
    units = data.units
    if units is None:
        return
    for name in data.schema.unit_level:
        differing = len(units.differing_units(data.numbers(name)))
        if differing:
            raise BadInput(
                f"variables.{name}.level",
                f'"{name}" differs within {differing:,} of {count_noun(len(units), "unit")}; correct '
                "the file, or leave the level out",
            )
