"""Sampling of the records of a file, without replacement."""

from __future__ import annotations

import pandas as pd

from sfumato.engine.data.schema import Kind, Variable
from sfumato.engine.errors import BadInput
from sfumato.engine.methods.run import Randomness
from sfumato.engine.recipe.data_source import DataSource
from sfumato.engine.wording import agreeing_word, count_noun


def draw_sample(records: int, sha256: str, data: DataSource, seed: int, key: bytes) -> list[int]:
    """Draw a sample of ``data.sample`` of ``records`` records, by seed and key; returns their numbers from 0,
    ascending.

    A keyed sample is bound to the file (``sha256``), the filter, and how many of how many records, so that two samples
    are the same or independent; by the seed alone they can be the same but for one record. Raises BadInput.
    """
    size = data.sample or 0
    if size > records:
        raise BadInput(
            "data.sample",
            f"{count_noun(size, 'record')} {agreeing_word(size, 'is', 'are')} asked for, there are {records:,}; leave it out for all",
        )
    streams = Randomness(seed, key, (sha256, data.where, f"{size} of {records}") if key else ())
    return sorted(streams.generator("sample").choice(records, size, replace=False))


def conform_sampled_values(values: pd.Series, variable: Variable) -> pd.Series:
    """Return the sampled values as if the file had no others: levels that occur, whole counts where none is missing."""
    if values.isna().all():
        raise BadInput(
            f"variables.{variable.name}", "no sampled record has a value; sample more, or leave the column out"
        )
    if _levels_were_found(variable):
        return values.cat.remove_unused_categories()
    return values.astype("int64") if variable.kind is Kind.COUNT and not values.hasnans else values


def _levels_were_found(variable: Variable) -> bool:
    return variable.kind.has_levels and not variable.levels
