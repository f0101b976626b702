"""Sampling of the records of a file, without replacement."""

from __future__ import annotations

import numpy as np
import pandas as pd

from sfumato.engine.data.schema import Kind, Variable
from sfumato.engine.data.units import Units
from sfumato.engine.errors import BadInput
from sfumato.engine.methods.run import Randomness
from sfumato.engine.recipe.data_source import DataSource
from sfumato.engine.wording import agreeing_word, count_noun

from .whole_units import choose_units_of_records


def draw_sample(
    records: int, sha256: str, data: DataSource, seed: int, key: bytes, units: Units | None = None
) -> list[int]:
    """Draw ``data.sample`` of ``records`` records by seed and key; return their numbers from 0, ascending.

    Of a table with units, whole ones are drawn, of as many records at most.
    Raises BadInput where there are fewer records, or the first unit drawn has far more.
    """
    size = data.sample or 0
    if size > records:
        raise BadInput(
            "data.sample",
            f"{count_noun(size, 'record')} {agreeing_word(size, 'is', 'are')} asked for, there are {records:,}; leave it out for all",
        )
    # bound to the file, the filter and the sizes, so that two samples are equal or independent: by the seed
    # alone, samples of nearly equal files could be the same but for one record
    streams = Randomness(seed, key, (sha256, data.where, f"{size} of {records}") if key else ())
    if units is not None:
        chosen = choose_units_of_records(units, size, streams.generator("sample", "units"), "data.sample")
        return [int(one) for one in np.flatnonzero(chosen)]
    return sorted(streams.generator("sample").choice(records, size, replace=False))


def conform_sampled_values(values: pd.Series, variable: Variable) -> pd.Series:
    """Return sampled values as if the file had no others: levels that occur, integers where no count is missing."""
    if values.isna().all():
        raise BadInput(
            f"variables.{variable.name}", "no sampled record has a value; sample more, or leave the column out"
        )
    if _levels_were_found(variable):
        return values.cat.remove_unused_categories()
    # a missing value outside the sample had made the column one of floats
    return values.astype("int64") if variable.kind is Kind.COUNT and not values.hasnans else values


def _levels_were_found(variable: Variable) -> bool:
    """Return whether the levels of a variable come from its values rather than from the recipe."""
    return variable.kind.has_levels and not variable.levels
