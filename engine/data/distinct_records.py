"""Distinct combinations of the values of some variables of microdata, and the records of each."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from .microdata import Microdata
from .rows import DigitColumn, DistinctRecords, distinct_combinations, ranked_digit


def distinct_records(data: Microdata, columns: Iterable[str]) -> DistinctRecords:
    """Find the distinct combinations of these variables' values; a missing value is one more, after all others.

    Without variables all records are equal.
    """
    # What depends on the variables alone is computed once a combination: ten million records of a region, a sex and an
    # age have some thousands.
    return distinct_combinations((_variable_digit(data, name) for name in dict.fromkeys(columns)), len(data))


def representative_records(combinations: DistinctRecords, data: Microdata) -> Microdata:
    """Return one record of each combination, (d,), without weights."""
    return type(data)(data.schema, data.frame.iloc[combinations.first].reset_index(drop=True), data.origin)


def _variable_digit(data: Microdata, name: str) -> DigitColumn:
    """Return the rank of each value among those of the variable, as a digit; a missing one comes last."""
    if not data.schema[name].kind.has_levels:
        return ranked_digit(data.numbers(name))
    values = data.column(name).cat
    codes, count = values.codes.to_numpy().astype(np.int64), len(values.categories)
    codes[codes < 0] = count
    return DigitColumn([codes], 0, count + 1)
