"""The different values of a column, and which of them each record has: what a text means is found once for each, not once a record."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

ABSENT = -1
"""The code of a record without a value."""


def is_text_categorical(values: pd.Series) -> bool:
    """Whether a column (n,) is a categorical of texts, as columns of text are held that would take too much memory otherwise."""
    return isinstance(values.dtype, pd.CategoricalDtype) and isinstance(values.cat.categories.dtype, pd.StringDtype)


def written_out(values: pd.Series) -> pd.Series:
    """A column (n,) as text where it is a categorical of texts; as it is otherwise."""
    return values.astype(values.cat.categories.dtype) if is_text_categorical(values) else values


def different(values: pd.Series) -> tuple[NDArray[np.intp], pd.Series]:
    """Of a column (n,) the code of each record, (n,), ABSENT where it has no value, and the different values, (k,).

    Objects may be equal and yet be written otherwise (``1`` and ``True``): each is taken for a value of its own.
    Minus zero is zero.
    """
    if is_text_categorical(values):
        codes, texts = values.cat.codes.to_numpy(), values.cat.categories
        used = np.bincount(codes[codes >= 0], minlength=len(texts)) > 0
        return np.append(np.cumsum(used) - 1, ABSENT)[codes], pd.Series(texts[used])
    if values.dtype == object or isinstance(values.dtype, pd.CategoricalDtype):
        present = values.notna().to_numpy()
        return np.where(present, np.cumsum(present) - 1, ABSENT), values[present].reset_index(drop=True)
    found, some = pd.factorize(values)
    return found, pd.Series(some) + 0.0 if values.dtype.kind == "f" else pd.Series(some)


def times(codes: NDArray[Any], size: int) -> NDArray[np.intp]:
    """How many records have each of ``size`` different values, (size,)."""
    return np.bincount(codes[codes >= 0], minlength=size)
