"""Missing codes of a variable, ranges of codes, and the code of each missing value.

SPSS has codes among the values and ranges of them, Stata ``.a`` to ``.z``, SAS ``.A`` to ``.Z`` and ``._`` beside the
empty cell. A range of numbers is written as in SPSS, ``"-99 thru -1"`` or ``"lowest thru -1"``.
"""

from __future__ import annotations

import math
import re

import numpy as np
import pandas as pd

from .distinct_values import factorize_column, is_text_categorical
from .schema import Kind, Schema, Variable
from .spelling import read_numbers, spell_as_whole

_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_RANGE = re.compile(rf"\s*(lowest|{_NUMBER})\s+thru\s+(highest|{_NUMBER})\s*", re.IGNORECASE)


def parse_code_range(code: str | float) -> tuple[float, float] | None:
    """Return the smallest and the largest number of a range of codes; None where the code is no range."""
    found = _RANGE.fullmatch(code) if isinstance(code, str) else None
    if found is None:
        return None
    low, high = (word.lower() for word in found.groups())
    return -math.inf if low == "lowest" else float(low), math.inf if high == "highest" else float(high)


def format_code_range(low: float, high: float) -> str:
    """Return the text of a range of codes."""
    ends = "lowest" if math.isinf(low) else f"{low:.15g}", "highest" if math.isinf(high) else f"{high:.15g}"
    return " thru ".join(ends)


def is_missing_code(values: pd.Series, variable: Variable) -> pd.Series:
    """Mark the cells (n,) that hold a missing code of the variable, however it is spelt."""
    if not variable.missing:
        return pd.Series(data=False, index=values.index)
    codes, some = factorize_column(_undo_categorical(values))
    return pd.Series(np.append(_values_are_codes(some, variable).to_numpy(), False)[codes], index=values.index)


def _values_are_codes(values: pd.Series, variable: Variable) -> pd.Series:
    """Mark the distinct values that are codes, by text or by number."""
    listed = {_comparable_text(code, variable) for code in variable.missing if parse_code_range(code) is None}
    found = _comparable_texts(values, variable).isin(listed).fillna(value=False).astype(bool)
    ranges = [limits for code in variable.missing if (limits := parse_code_range(code)) is not None]
    by_number = pd.api.types.is_numeric_dtype(values.dtype) or variable.kind in (Kind.COUNT, Kind.CONTINUOUS)
    if by_number or (ranges and not pd.api.types.is_datetime64_any_dtype(values.dtype)):
        numbers = read_numbers(values.mask(found))
        for low, high in ranges:
            found |= numbers.between(low, high)
        if by_number:
            found |= numbers.isin(pd.to_numeric(pd.Series(variable.missing, dtype="object"), errors="coerce").dropna())
    return found


def mask_missing_codes(values: pd.Series, variable: Variable) -> pd.Series:
    """Return a column as it was read (n,), with missing values in place of the variable's missing codes."""
    values = _undo_categorical(values)
    return values.mask(is_missing_code(values, variable)) if variable.missing else values


def missing_value_codes(raw: pd.DataFrame, schema: Schema, tags: pd.DataFrame | None) -> pd.DataFrame | None:
    """Return the code of each missing value, as text in categoricals (n, k), for the k variables with a code.

    The result is None where none occurs. ``tags`` have the codes of cells without a value in the frame. The rows are numbered from 0.
    """
    found: dict[str, pd.Series] = {}
    for variable in schema:
        if not variable.missing:
            continue
        codes = _code_of_cells(raw[variable.name], variable)
        if tags is not None and variable.name in tags:
            codes = codes.fillna(tags[variable.name].astype("object"))
        if codes.notna().any():
            found[variable.name] = codes.astype("category").reset_index(drop=True)
    return pd.DataFrame(found) if found else None


def _code_of_cells(values: pd.Series, variable: Variable) -> pd.Series:
    """Return the code of each cell as text; missing where a cell holds none."""
    hidden = _undo_categorical(values[is_missing_code(values, variable)])
    spelt = hidden.map(lambda code: f"{code:.15g}" if isinstance(code, float) else spell_as_whole(str(code)))
    return spelt.astype("object").reindex(values.index)


def _comparable_texts(values: pd.Series, variable: Variable) -> pd.Series:
    """Return texts that are equal where values and codes denote the same."""
    texts = values.astype("string")
    return (
        texts.map({text: _comparable_text(text, variable) for text in texts.dropna().unique()}).astype("string")
        if variable.kind.has_levels
        else texts
    )


def _comparable_text(code: str | float, variable: Variable) -> str:
    return spell_as_whole(str(code)) if variable.kind.has_levels else str(code)


def _undo_categorical(values: pd.Series) -> pd.Series:
    """Return the values of a categorical, unless it is one of texts."""
    if isinstance(values.dtype, pd.CategoricalDtype) and not is_text_categorical(values):
        return values.astype(values.cat.categories.dtype if not values.hasnans else "object")
    return values
