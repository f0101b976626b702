"""Levels of a release as it was written: labels in place of codes, an apostrophe before what a spreadsheet would take for a formula.

They are codes again before a release is scored with the recipe that made it.
"""

from __future__ import annotations

import pandas as pd

from sfumato.engine.errors import BadInput
from sfumato.engine.schema import Schema, Variable

from .tables import level_names, plain_cell


def with_codes(frame: pd.DataFrame, schema: Schema, place: str = "variables") -> pd.DataFrame:
    """A released table as it was read, (n, k), whose listed levels are codes where their names stand; heads without apostrophes.

    ``schema`` lists all levels of the confidential data. Raises BadInput where a text may be a code or the label of another.
    """
    heads = {plain_cell(name): name for name in schema.names if plain_cell(name) != name}
    frame = frame.rename(columns={head: name for head, name in heads.items() if name not in frame.columns})
    columns = {v.name: v for v in schema if v.levels and v.name in frame.columns}
    found = {
        name: _coded(frame[name], names, variable, f"{place}.{name}")
        for name, variable in columns.items()
        if (names := _written(variable))
    }
    return frame.assign(**found)


def _written(variable: Variable) -> dict[str, set[str]]:
    """The codes that may be meant by each text that stands for a level in a file, where it is not the code itself.

    A label that several codes have is written without a code where only one of them was released.
    """
    called = level_names(variable, variable.levels)
    found: dict[str, set[str]] = {}
    for code in variable.levels:
        names = {called.get(code, code), variable.labels.get(code) or code}
        for text in names | set(map(plain_cell, names)):
            if text != code:
                found.setdefault(text, set()).add(code)
    return found


def _coded(values: pd.Series, names: dict[str, set[str]], variable: Variable, place: str) -> pd.Series:
    if pd.api.types.is_numeric_dtype(values.dtype):
        return values
    texts = values.astype("object")
    by_name = set(map(str, texts.dropna().unique())) & names.keys()
    if unclear := sum(len(names[text]) > 1 or text in variable.levels for text in by_name):
        raise BadInput(
            place, f"{unclear} of its levels are labels that several codes may have; write codes in place of labels"
        )
    return texts.map(lambda text: next(iter(names.get(str(text), {text}))), na_action="ignore") if by_name else values
