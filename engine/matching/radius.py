"""How far a released value may lie from a confidential one and still count as a match.

Guo & Hu §4.1-4.2 use 5 days (absolute), 5 % of the price (relative) and 5 % of its logarithm (log).

Ends are exact: the last floating-point number that a predicate still holds for.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from ..arrays import Floats
from ..data.blocks import row_blocks
from ..data.schema import Kind
from ..methods.spec import Param

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


RadiusKind = Literal["absolute", "relative", "log_relative"]

_WRITTEN = re.compile(r"(open\s+)?(log\s+)?([0-9]*\.?[0-9]+(?:e[+-]?[0-9]+)?|[0-9]+\.)\s*(%)?", re.IGNORECASE)
_FORMS = 'a number (5), a share ("5%"), a share of log(1 + value) ("log 5%"), or one of these after "open"'


@dataclass(frozen=True, slots=True)
class Radius:
    """A released value z matches a confidential value c when their distance is at most the radius.

    ==============  ==========  =======================================  ==================================
    kind            written     amount                                   z matches c when
    ==============  ==========  =======================================  ==================================
    absolute        5           in the variable's unit                   ``|z - c| <= amount``
    relative        "5%"        per cent of the confidential value       ``|z - c| <= amount |c| / 100``
    log_relative    "log 5%"    per cent of log(1 + confidential value)  ``|L(z) - L(c)| <= amount L(c) / 100``
    ==============  ==========  =======================================  ==================================

    L(v) = log(1 + v), one definition for counts and amounts alike, so that it exists at 0; c must then be at
    least 0. With ``closed=False`` (written "open 5%") the inequality is strict. A share of a confidential 0 is 0, on
    either scale: closed it matches 0 only, open it matches nothing.
    """

    meaning: ClassVar[str] = (
        'A radius is closed: a value exactly at its edge matches. "open 5", "open 5%" or "open log 5%" leaves the edge out. '
        '"5%" is a share of the confidential value and "log 5%" of log(1 + value): around a confidential 0 both match 0 '
        "only, and open ones nothing. 5 is in the variable's unit, for a date in days."
    )

    amount: float
    kind: RadiusKind = "absolute"
    closed: bool = True

    def __post_init__(self) -> None:
        if not math.isfinite(self.amount) or self.amount < 0:
            raise ValueError(f"a radius must be a number of at least 0, not {self.amount}")
        if self.amount == 0 and not self.closed:
            raise ValueError("an open radius of 0 matches nothing")

    @classmethod
    def parse(cls, value: object) -> Radius:
        """The radius that a recipe writes as a number or a text.

        Raises:
            ValueError: when ``value`` is neither; the message lists the forms.
        """
        if isinstance(value, Radius):
            return value
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return cls(float(value))
        found = _WRITTEN.fullmatch(value.strip()) if isinstance(value, str) else None
        if found is None or (found[2] and not found[4]):
            raise ValueError(f"{value!r} is not a radius: write {_FORMS}")
        kind: RadiusKind = "log_relative" if found[2] else "relative" if found[4] else "absolute"
        return cls(float(found[3]), kind, closed=not found[1])

    @property
    def written(self) -> int | float | str:
        """The form that a recipe carries: ``Radius.parse(radius.written) == radius``."""
        number = int(self.amount) if self.amount.is_integer() and self.amount < 1e15 else float(self.amount)
        if self.closed and self.kind == "absolute":
            return number
        words = ["open"] * (not self.closed) + ["log"] * (self.kind == "log_relative")
        return " ".join([*words, f"{number}{'' if self.kind == 'absolute' else '%'}"])

    def window(self, centre: ArrayLike) -> tuple[Floats, Floats]:
        """The released values that match each confidential one, as closed intervals.

        Args:
            centre: confidential values, shape (n,).

        Returns:
            ``(lower, upper)``, each (n,), such that ``lower <= z <= upper`` holds for exactly those floating-point
            numbers z for which the definition above holds in floating-point arithmetic. Both are NaN, which
            matches nothing, where the confidential value is missing or infinite, or where no z matches.

        Raises:
            ValueError: when the radius is on the log scale and a value is negative.
        """
        centres = np.asarray(centre, dtype=np.float64)
        lower, upper = np.empty((2, len(centres)))
        for rows in row_blocks(len(centres), 4):
            row, distinct = pd.factorize(centres[rows] + 0.0, use_na_sentinel=False)
            lower[rows], upper[rows] = (end[row] for end in self._distinct_windows(distinct))
        return lower, upper

    def _distinct_windows(self, values: Floats) -> tuple[Floats, Floats]:
        usable = np.isfinite(values)
        if self.kind == "log_relative" and np.any(values[usable] < 0):
            raise ValueError("a radius on the log scale needs values of at least 0")
        lower, upper = np.full((2, *values.shape), np.nan)
        with np.errstate(all="ignore"):
            usable[usable] = self._matches(values[usable], values[usable])
            lower[usable], upper[usable] = self._ends(values[usable])
        return lower, upper

    def _limit(self, scaled: Floats) -> Floats:
        """The largest distance from each confidential value, on the scale on which it is measured."""
        if self.kind == "absolute":
            return np.full_like(scaled, self.amount)
        return self.amount * np.abs(scaled) / 100

    def _matches(self, centre: Floats, released: Floats) -> NDArray[np.bool_]:
        """The definition itself, element by element."""
        if self.kind == "log_relative":
            centre, released = np.log1p(centre), np.log1p(released)
        distance, limit = np.abs(released - centre), self._limit(centre)
        return distance <= limit if self.closed else distance < limit

    def _ends(self, centre: Floats) -> tuple[Floats, Floats]:
        logs = self.kind == "log_relative"
        scaled = np.log1p(centre) if logs else centre
        reach = self._limit(scaled)
        guesses = (scaled - reach, scaled + reach)

        def end(guess: Floats, sign: Literal[-1, 1]) -> Floats:
            def inside(offered: Floats, where: NDArray[np.bool_]) -> NDArray[np.bool_]:
                return self._matches(centre[where], sign * offered)

            values = np.expm1(guess) if logs else guess
            return sign * last_inside(inside, sign * centre, sign * values, near=64 if logs else 2)

        return end(guesses[0], -1), end(guesses[1], 1)


Radii = Annotated[
    Mapping[str, Radius],
    Param(
        'how near is a match, by variable: 5, "5%" or "log 5%"; without one, values must be equal',
        names="variables",
        kinds=(Kind.COUNT, Kind.CONTINUOUS, Kind.DATE),
        told=True,
    ),
]
