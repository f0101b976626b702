"""Binning of numbers: the rule that a recipe writes, and its bins of the confidential values.

    rule := N "equal" ("width" | "count") | "width" W | "at" cut ("," cut)*

A bin includes its lower end and excludes its upper one; the first and the last have no outer end, so every value has a
bin. ``N equal width`` cuts the range of the confidential values into N parts of one width, ``N equal count`` into N
parts of equally many values; both are learned from the confidential data. ``width W`` cuts at the multiples of W,
``at`` at the given cuts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Annotated, Literal

import numpy as np
import pandas as pd

from ..data.arrays import Floats, Integers
from ..data.microdata import Microdata
from ..data.schema import Kind
from ..errors import BadInput, NotComputable
from ..methods.spec import Param
from ..statistics.columns import column_scales

BINNED = (Kind.COUNT, Kind.CONTINUOUS, Kind.DATE)
MOST_BINS = 10_000

BinningKind = Literal["equal width", "equal count", "width", "at"]

_LARGEST = float(np.finfo(np.float64).max)
_NUMBER = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_WRITTEN = re.compile(
    rf"\s*(?:(?P<bins>[0-9]+)\s+equal\s+(?P<what>width|count)|width\s+(?P<width>{_NUMBER})"
    rf"|at\s+(?P<cuts>{_NUMBER}(?:\s*,\s*{_NUMBER})*))\s*"
)
_FORMS = '"10 equal count", "10 equal width", "width 5" or "at 18, 30, 65"'
_AS_WRITTEN = 'by variable: "width 5", "at 18, 65", "10 equal count" or "10 equal width" (both learned from the confidential data)'


@dataclass(frozen=True, slots=True)
class BinningRule:
    """Rule by which a number becomes a category.

    ``amount`` is N or W of the rule; ``cuts`` are those of ``at``, ascending.
    """

    kind: BinningKind
    amount: float = 0
    cuts: tuple[float, ...] = ()

    @classmethod
    def parse(cls, value: object) -> BinningRule:
        """Parse a rule that a recipe writes as a text, or as a list of cut points.

        Raises ValueError where it is neither; the message lists the forms.
        """
        if isinstance(value, BinningRule):
            return value
        if isinstance(value, (list, tuple)):
            value = f"at {', '.join(map(str, value))}"
        found = _WRITTEN.fullmatch(value) if isinstance(value, str) else None
        if found is None:
            raise ValueError(f"{value!r} is no rule for bins: write {_FORMS}")
        if found["bins"]:
            if not 1 <= (bins := int(found["bins"])) <= MOST_BINS:
                raise ValueError(f"{value!r} must make at least 1 and at most {MOST_BINS:,} bins")
            return cls("equal width" if found["what"] == "width" else "equal count", bins)
        if found["width"]:
            if not 0 < (width := float(found["width"])) < math.inf:
                raise ValueError(f"{value!r} needs a width above 0")
            return cls("width", width)
        cuts = tuple(float(cut) for cut in found["cuts"].split(","))
        if not all(math.isfinite(cut) for cut in cuts) or any(b <= a for a, b in pairwise(cuts)):
            raise ValueError(f"{value!r} must have cut points that are finite and ascend")
        return cls("at", 0, cuts)

    @property
    def written(self) -> str:
        """Return the text of the rule in a recipe: ``BinningRule.parse(rule.written) == rule``."""
        if self.kind == "at":
            return f"at {', '.join(map(_plain_number, self.cuts))}"
        return f"width {_plain_number(self.amount)}" if self.kind == "width" else f"{int(self.amount)} {self.kind}"

    def with_coarser_bins(self, times: int) -> BinningRule:
        """Return the rule with bins about ``times`` as wide.

        At least two bins remain where the rule gives a number of bins.
        """
        if self.kind == "at":
            return replace(self, cuts=self.cuts[times - 1 :: times] or self.cuts[:1])
        fewer = min(self.amount, max(2, self.amount // times))
        return replace(self, amount=self.amount * times if self.kind == "width" else fewer)

    @property
    def depends_on_data(self) -> bool:
        """Return whether its cut points follow from the confidential values."""
        return self.kind in ("equal width", "equal count")

    def fit_bins(self, values: Floats) -> FittedBins:
        """Return the bins of the confidential values (n,), n at least 1, of which missing ones (NaN) are ignored.

        Raises NotComputable where a width makes more than ``MOST_BINS`` bins.
        """
        present = np.sort(values[~np.isnan(values)])
        ranked = present[self.cut_ranks(len(present))]
        return self.bins_from_ranks(float(present[0]), float(present[-1]), ranked)

    def cut_ranks(self, records: int) -> Integers:
        """Return the ranks, from 0, of the values that are cuts of bins of equal count of so many values; none for another
        rule.
        """
        # Cuts at the floor(k n / N)-th sorted value, so that ties make fewer bins.
        return np.arange(1, int(self.amount)) * records // int(self.amount) if self.kind == "equal count" else _NO_RANKS

    def bins_from_ranks(self, low: float, high: float, ranked: Floats) -> FittedBins:
        """Return the bins of values from ``low`` to ``high``, given those of ``cut_ranks``. Raises as ``fit_bins`` does."""
        if self.kind == "at":
            return FittedBins(np.array(self.cuts))
        if self.kind == "width":
            return FittedBins(_multiples_of_width(self.amount, low, high))
        cuts = ranked
        if self.kind == "equal width":
            n = int(self.amount)
            k, scale = np.arange(1, n), float(column_scales(np.array([low, high])))
            # Scaled, so that the range of huge values does not overflow.
            cuts = ((low / scale) * (n - k) + (high / scale) * k) / n * scale
        cuts = np.unique(cuts)
        return FittedBins(cuts[cuts > low])

    def window(self, centre: Floats) -> tuple[Floats, Floats]:
        """Return the smallest and largest number of the bin of each confidential value, (n,) and (n,).

        It is NaN where it is missing.
        """
        return self.fit_bins(centre).window(centre)


@dataclass(frozen=True, eq=False)
class FittedBins:
    """Bins between ``cuts`` (bins - 1,), ascending: each cut is the lower end of the bin above it."""

    cuts: Floats

    def bin_codes(self, values: Floats) -> Integers:
        """Return the bin of each value (n,), from 0; -1 where it is missing (NaN)."""
        found = np.searchsorted(self.cuts, values, side="right").astype(np.int64)
        return np.where(np.isnan(values), -1, found)

    def window(self, values: Floats) -> tuple[Floats, Floats]:
        """Return the smallest and largest number of the bin of each value, (n,) and (n,), finite.

        It is NaN where it is missing.
        """
        first = np.concatenate([[-_LARGEST], self.cuts])
        # The number just below each cut, since windows include both ends.
        last = np.concatenate([np.nextafter(self.cuts, -np.inf), [_LARGEST]])
        codes, missing = self.bin_codes(values), np.isnan(values)
        return np.where(missing, np.nan, first[codes]), np.where(missing, np.nan, last[codes])


BinsOfKey = Annotated[
    Mapping[str, BinningRule],
    Param(f"bins of numbers and dates of the key, {_AS_WRITTEN}", names="variables", kinds=BINNED),
]
BinsToAgree = Annotated[
    Mapping[str, BinningRule],
    Param(
        f"bins in which numbers and dates agree, {_AS_WRITTEN}; without one they must be equal",
        names="variables",
        kinds=BINNED,
    ),
]
BinsOfCompared = Annotated[
    Mapping[str, BinningRule],
    Param(
        'bins of numbers and dates, by variable: "10 equal count", "10 equal width" (both learned from the '
        'confidential data), "width 5", "at 18, 65"; without one "10 equal count"',
        names="variables",
        kinds=BINNED,
    ),
]
_NO_RANKS = np.zeros(0, dtype=np.int64)
TEN_OF_EQUAL_COUNT = BinningRule("equal count", 10)
"""The rule for numbers of which a recipe says nothing."""


def _multiples_of_width(width: float, low: float, high: float) -> Floats:
    """Return the multiples of a width above ``low`` and up to ``high``."""
    # The width as written in decimals: 0.1 is a tenth, so that 0.3 begins a bin.
    step = Fraction(repr(width))
    first, last = math.floor(Fraction(low) / step) + 1, math.floor(Fraction(high) / step) + 1
    if last - first > MOST_BINS:
        raise NotComputable(f"bins of width {_plain_number(width)} are more than {MOST_BINS:,}")
    cuts = np.array([float(min(k * step, Fraction(_LARGEST))) for k in range(first, last + 1)])
    return np.unique(cuts[(cuts > low) & (cuts <= high)])


def _plain_number(number: float) -> str:
    return str(int(number)) if float(number).is_integer() and abs(number) < 2**53 else repr(float(number))


def check_binning_rules(bins: Mapping[str, BinningRule], data_kinds: Mapping[str, Kind], place: str) -> None:
    """Raise BadInput at ``place.name`` where a rule is for a variable that is not used, or gives a date cut points in
    numbers.
    """
    for name, rule in bins.items():
        if name not in data_kinds:
            known = ", ".join(data_kinds) or "none"
            raise BadInput(f"{place}.{name}", f'"{name}" is not used here; numbers and dates that are: {known}')
        if data_kinds[name] is Kind.DATE and rule.kind == "at":
            raise BadInput(
                f"{place}.{name}", 'a date has no cut points in numbers; write "width 30", in days, or "10 equal count"'
            )


def learned_bins_text(bins: Mapping[str, BinningRule]) -> str:
    """Return the bins that are learned from the confidential values, in words; empty where none is."""
    return "; ".join(
        f'"{name}" in {rule.written} bins of the confidential values'
        for name, rule in bins.items()
        if rule.depends_on_data
    )


def comparable_categories(
    confidential: Microdata, released: Microdata, name: str, rule: BinningRule | None
) -> tuple[Floats | Integers | pd.Series, Floats | Integers | pd.Series]:
    """Return a variable of both tables, (n,) and (m,), as values that are equal where the category is.

    Numbers are binned by ``rule``, if given. A missing value is a category of its own. Raises NotComputable where the
    release has labels of a generalisation, or class means of levels.
    """
    ours, theirs = confidential.column(name), released.column(name)
    if confidential.schema[name].kind.has_levels and not released.schema[name].kind.has_levels:
        raise NotComputable(f'"{name}" is released as class means, which are not among its levels')
    # Dtypes without an order are equal where the same levels have other codes.
    if confidential.schema[name].kind.has_levels and ours.cat.categories.equals(theirs.cat.categories):
        return ours.cat.codes.to_numpy().astype(np.int64), theirs.cat.codes.to_numpy().astype(np.int64)
    if rule is None or confidential.schema[name].kind.has_levels:
        return ours, theirs
    bins = rule.fit_bins(confidential.numbers(name))
    return bins.bin_codes(confidential.numbers(name)), bins.bin_codes(released.numbers(name))
