"""Levels of a release as it was written: labels in place of codes, an apostrophe before what a spreadsheet would take for a formula.

They are codes again before a release is scored with the recipe that made it.
"""

from __future__ import annotations

import pandas as pd

from sfumato.engine.data.schema import Schema, Variable
from sfumato.engine.errors import BadInput

from ..visible_text import plain_cell
from .tables import level_names


def with_codes(frame: pd.DataFrame, schema: Schema, place: str = "variables") -> pd.DataFrame:
    """A released table as it was read, (n, k), whose listed levels are codes where their names stand; heads without apostrophes.

    ``schema`` lists all levels of the confidential data. Raises BadInput where a text may be a code or the label of another.
    """
    heads = {plain_cell(name): name for name in schema.names if plain_cell(name) != name}
    frame = frame.rename(columns={head: name for head, name in heads.items() if name not in frame.columns})
    columns = {v.name: v for v in schema if v.levels and v.name in frame.columns}
    found = {name: _coded(frame[name], variable, f"{place}.{name}") for name, variable in columns.items()}
    return frame.assign(**found)


def _called(variable: Variable) -> dict[str, set[str]]:
    """The codes that may be meant by each text that a release writes for a level.

    A label that several codes have is written without a code where only one of them was released.
    """
    called = level_names(variable, variable.levels)
    found: dict[str, set[str]] = {}
    for code in variable.levels:
        names = {called.get(code, code), variable.labels.get(code) or code}
        for text in names | set(map(plain_cell, names)):
            found.setdefault(text, set()).add(code)
    return found


def _coded(values: pd.Series, variable: Variable, place: str) -> pd.Series:
    if pd.api.types.is_numeric_dtype(values.dtype):
        return values
    texts = values.astype("object")
    there, codes, called = set(map(str, texts.dropna().unique())), set(variable.levels), _called(variable)
    as_labels = there <= called.keys()
    if there <= codes and not (as_labels and any(called[text] != {text} for text in there)):
        return values
    meant = {text: called[text] for text in there if text in called and (as_labels or text not in codes)}
    if there <= codes or any(len(found) > 1 for found in meant.values()):
        raise BadInput(
            place, "its levels may be codes, or labels that several codes have; write codes in place of labels"
        )
    return texts.map(lambda text: next(iter(meant.get(str(text), {text}))), na_action="ignore")
