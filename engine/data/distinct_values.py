"""Distinct values of a column and the value of each record, so that a text is interpreted once for each value, not once
a record.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

NO_VALUE_CODE = -1
"""The code of a record without a value."""


def is_text_categorical(values: pd.Series) -> bool:
    """Return whether a column (n,) is a categorical of texts, the form of large columns of text."""
    return isinstance(values.dtype, pd.CategoricalDtype) and isinstance(values.cat.categories.dtype, pd.StringDtype)


def decode_text_categorical(values: pd.Series) -> pd.Series:
    """Return a column (n,), converted to text if it is a categorical of texts."""
    return values.astype(values.cat.categories.dtype) if is_text_categorical(values) else values


def factorize_column(values: pd.Series) -> tuple[NDArray[np.intp], pd.Series]:
    """Return the code of each record of a column (n,), ``NO_VALUE_CODE`` where it has no value, and the distinct values
    (k,).

    Minus zero is zero.
    """
    if is_text_categorical(values):
        codes, texts = values.cat.codes.to_numpy(), values.cat.categories
        used = np.bincount(codes[codes >= 0], minlength=len(texts)) > 0
        return np.append(np.cumsum(used) - 1, NO_VALUE_CODE)[codes], pd.Series(texts[used])
    if values.dtype == object or isinstance(values.dtype, pd.CategoricalDtype):
        # Objects may be equal and yet be written differently (1 and True), so each is a value of its own.
        present = values.notna().to_numpy()
        return np.where(present, np.cumsum(present) - 1, NO_VALUE_CODE), values[present].reset_index(drop=True)
    found, some = pd.factorize(values)
    return found, pd.Series(some) + 0.0 if values.dtype.kind == "f" else pd.Series(some)


def count_codes(codes: NDArray[Any], n_values: int) -> NDArray[np.intp]:
    """Return the number of records with each of ``n_values`` values, (n_values,)."""
    return np.bincount(codes[codes >= 0], minlength=n_values)
