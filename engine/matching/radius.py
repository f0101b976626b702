"""Radius within which a released value matches a confidential one.

Guo & Hu §4.1-4.2 use 5 days (absolute), 5 % of the price (relative) and 5 % of its logarithm (log).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from ..data.arrays import Floats
from ..data.blocks import row_blocks
from ..data.schema import Kind
from ..data.sorting import has_few_distinct
from ..methods.spec import Param

_EDGE_TOLERANCE = 1e-9
"""Share of a radius within which a distance counts as at its edge."""
_ROUNDING_UNIT = 2.0**-52
"""Relative rounding error of a decimal, at most half of this."""
_LARGEST_FLOAT = np.finfo(np.float64).max

RadiusKind = Literal["absolute", "relative", "log_relative"]

_RADIUS_PATTERN = re.compile(r"(open\s+)?(log\s+)?([0-9]*\.?[0-9]+(?:e[+-]?[0-9]+)?|[0-9]+\.)\s*(%)?", re.IGNORECASE)
_RADIUS_FORMS = 'a number (5), a share ("5%"), a share of log(1 + value) ("log 5%"), or one of these after "open"'


@dataclass(frozen=True, slots=True)
class Radius:
    """Largest distance at which a released value z matches a confidential value c.

    ==============  ==========  =======================================  ==================================
    kind            written     amount                                   z matches c when
    ==============  ==========  =======================================  ==================================
    absolute        5           in the variable's unit                   ``|z - c| <= amount``
    relative        "5%"        per cent of the confidential value       ``|z - c| <= amount |c| / 100``
    log_relative    "log 5%"    per cent of log(1 + confidential value)  ``|L(z) - L(c)| <= amount L(c) / 100``
    ==============  ==========  =======================================  ==================================

    A distance within 1e-9 of the radius, or within the rounding of the two values, equals it.
    L(v) = log(1 + v), one definition for counts and amounts alike, so that it exists at 0; c must then be at
    least 0. With ``closed=False`` (written "open 5%") the inequality is strict. A share of a confidential 0 is 0, on
    either scale: closed it matches 0 only, open it matches nothing.
    """

    meaning: ClassVar[str] = (
        'A radius is closed: a value at its edge matches, also where decimals are rounded (1e-9 of the radius). "open 5", "open 5%" or "open log 5%" leaves the edge out. '
        '"5%" is a share of the confidential value and "log 5%" of log(1 + value): around a confidential 0 both match 0 '
        "only, and open ones nothing. 5 is in the variable's unit, for a date in days."
    )

    amount: float
    kind: RadiusKind = "absolute"
    closed: bool = True

    def __post_init__(self) -> None:
        """Raise ValueError for a negative or infinite radius, and for an open one of 0."""
        if not math.isfinite(self.amount) or self.amount < 0:
            raise ValueError(f"a radius must be a number of at least 0, not {self.amount}")
        if self.amount == 0 and not self.closed:
            raise ValueError("an open radius of 0 matches nothing")

    @classmethod
    def parse(cls, value: object) -> Radius:
        """Read the radius that a recipe writes as a number or a text.

        Raises:
            ValueError: if ``value`` is neither; the message lists the forms.
        """
        if isinstance(value, Radius):
            return value
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return cls(float(value))
        found = _RADIUS_PATTERN.fullmatch(value.strip()) if isinstance(value, str) else None
        if found is None or (found[2] and not found[4]):
            raise ValueError(f"{value!r} is not a radius: write {_RADIUS_FORMS}")
        kind: RadiusKind = "log_relative" if found[2] else "relative" if found[4] else "absolute"
        return cls(float(found[3]), kind, closed=not found[1])

    @property
    def written(self) -> int | float | str:
        """Return the form that a recipe contains: ``Radius.parse(radius.written) == radius``."""
        number = int(self.amount) if self.amount.is_integer() and self.amount < 1e15 else float(self.amount)
        if self.closed and self.kind == "absolute":
            return number
        words = ["open"] * (not self.closed) + ["log"] * (self.kind == "log_relative")
        return " ".join([*words, f"{number}{'' if self.kind == 'absolute' else '%'}"])

    def window(self, centre: ArrayLike) -> tuple[Floats, Floats]:
        """Return the windows of released values that match each confidential value, as closed intervals.

        Args:
            centre: confidential values, (n,).

        Returns:
            ``(lower, upper)``, (n,) each, finite: z matches if ``lower <= z <= upper``. Both are NaN, which
            matches nothing, if the confidential value is missing or infinite, or nothing matches.

        Raises:
            ValueError: if the radius is on the log scale and a value is negative.
        """
        centres = np.asarray(centre, dtype=np.float64)
        lower, upper = np.empty((2, len(centres)))
        for rows in row_blocks(len(centres), 4):
            own = centres[rows] + 0.0
            if self.kind == "log_relative" or has_few_distinct(own):
                row, distinct = pd.factorize(own, use_na_sentinel=False)
                lower[rows], upper[rows] = (end[row] for end in self._windows_of_distinct(distinct))
            else:  # sooner than finding out which are equal
                lower[rows], upper[rows] = self._windows_of_distinct(own)
        return lower, upper

    def _windows_of_distinct(self, values: Floats) -> tuple[Floats, Floats]:
        """Return the windows of distinct values (k,), NaN for values that match nothing."""
        usable = np.isfinite(values)
        if self.kind == "log_relative" and np.any(values[usable] < 0):
            raise ValueError("a radius on the log scale needs values of at least 0")
        lower, upper = np.full((2, *values.shape), np.nan)
        with np.errstate(all="ignore"):
            if not self.closed and self.kind != "absolute":
                usable &= values != 0
            lower[usable], upper[usable] = self._window_ends(values[usable])
        return lower, upper

    def _window_ends(self, centre: Floats) -> tuple[Floats, Floats]:
        """Return the window ends of finite values (k,), with the tolerance at the edge."""
        logs = self.kind == "log_relative"
        scaled = np.log1p(centre) if logs else centre
        limit = np.full_like(scaled, self.amount) if self.kind == "absolute" else self.amount * np.abs(scaled) / 100
        # Decimals are rounded when read: .315 - .3 is more than 5 % of .3 in floating point. A distance that differs
        # from the radius by rounding, or by 1e-9 of it, is at the edge; integers are exact.
        whole = (scaled == np.rint(scaled)) & (limit == np.rint(limit))
        rounding = np.where(whole, 0.0, (4 if logs else 1) * _ROUNDING_UNIT * (np.abs(scaled) + limit))
        allowance = np.where(limit > 0, _EDGE_TOLERANCE * limit + rounding, 0.0)
        reach = limit + allowance if self.closed else np.maximum(limit - allowance, 0.0)
        lower, upper = scaled - reach, scaled + reach
        if not self.closed:
            lower = np.maximum(lower, np.nextafter(scaled - limit, np.inf))
            upper = np.minimum(upper, np.nextafter(scaled + limit, -np.inf))
        if logs:
            lower, upper = np.maximum(np.expm1(lower), np.nextafter(-1.0, 0.0)), np.expm1(upper)
            exact = limit == 0
            lower[exact], upper[exact] = centre[exact], centre[exact]
        return np.maximum(np.minimum(lower, centre), -_LARGEST_FLOAT), np.minimum(
            np.maximum(upper, centre), _LARGEST_FLOAT
        )


Radii = Annotated[
    Mapping[str, Radius],
    Param(
        'how near is a match, by variable: 5, "5%" or "log 5%"; without one, values must be equal',
        names="variables",
        kinds=(Kind.COUNT, Kind.CONTINUOUS, Kind.DATE),
        reported=True,
    ),
]
