"""The exact end of an interval of floating-point numbers that a predicate defines."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

__all__ = ["last_inside"]

Floats = NDArray[np.float64]
Predicate = Callable[[Floats, NDArray[np.bool_]], NDArray[np.bool_]]

_SIGN_BIT = np.iinfo(np.int64).min


def last_inside(inside: Predicate, start: Floats, guess: Floats, near: int) -> Floats:
    """The largest number for which ``inside`` holds, element by element.

    Args:
        inside: ``inside(offered, where)`` judges one offered number for each element where the mask is true. It holds
            at ``start`` and, once it fails, fails for every larger number.
        start: shape (n,), finite.
        guess: shape (n,), where the end should be; a bad guess costs time, never exactness.
        near: how many representable numbers the guess is usually off, at most.

    Returns:
        Shape (n,); infinity where ``inside`` never fails.
    """
    everyone = np.ones(start.shape, dtype=np.bool_)
    first, last = _ordinal(start), _ordinal(np.full_like(start, np.inf))
    guessed = np.clip(_ordinal(np.where(np.isnan(guess), start, guess)), first, last)
    low = np.maximum(guessed - near, first)
    low = np.where(inside(_number(low), everyone), low, first)
    high = np.minimum(guessed + near, last)
    high = np.where(inside(_number(high), everyone), last, high)
    endless = inside(_number(high), everyone)
    return np.where(endless, _number(high), _number(_bisect(inside, low, high, ~endless)))


def _bisect(
    inside: Predicate, low: NDArray[np.int64], high: NDArray[np.int64], where: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """Ordinals of the last numbers inside, where ``low`` is inside and ``high`` is not."""
    low, high, open_ = low.copy(), high.copy(), where.copy()
    while True:
        middle = (low >> 1) + (high >> 1) + (low & high & 1)
        open_ &= middle != low
        if not open_.any():
            return low
        holds = inside(_number(middle[open_]), open_)
        low[open_] = np.where(holds, middle[open_], low[open_])
        high[open_] = np.where(holds, high[open_], middle[open_])


def _ordinal(number: Floats) -> NDArray[np.int64]:
    """Position of a floating-point number among all of them: neighbours differ by 1, and -0 is 0."""
    bits = np.ascontiguousarray(number).view(np.int64)
    return np.where(bits >= 0, bits, _SIGN_BIT - bits)


def _number(ordinal: NDArray[np.int64]) -> Floats:
    return np.where(ordinal >= 0, ordinal, _SIGN_BIT - ordinal).view(np.float64)
