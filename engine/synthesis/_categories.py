"""Variables as categories and back: levels as they are, numbers and dates in bins, a missing value as one category more.

Park & Ghosh §4.1 group numbers by hand and release the groups. Here the recipe says how (equal width, equal count, cut points), and
a category that was drawn becomes a number inside its bin again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray

from ..arrays import Floats
from ..errors import BadInput
from ..microdata import Microdata
from ..schema import Kind, Variable

Codes = NDArray[np.int64]
Inside = Literal["uniform", "donor"]

MOST_BINS = 10_000
RULES = ("equal width", "equal count")


@dataclass(frozen=True, slots=True)
class Bins:
    """How a variable is cut: into ``count`` bins of equal width or with equally many records, or at ``cuts``."""

    rule: Literal["equal width", "equal count", "cuts"]
    count: int = 0
    cuts: tuple[float, ...] = ()

    @classmethod
    def parse(cls, value: object) -> Self:
        """From ``"equal width 18"``, ``"equal count 25"`` or a list of cut points, both ends included. Raises ValueError."""
        wanted = 'must be "equal width 10", "equal count 10", or a list of cut points such as [0, 10, 50]'
        if isinstance(value, str):
            rule, _, count = value.strip().rpartition(" ")
            if rule not in RULES or not count.isascii() or not count.isdecimal():
                raise ValueError(f'"{value}" {wanted}')
            if not 2 <= int(count[:9]) <= MOST_BINS:
                raise ValueError(f"{count} bins: there must be at least 2 and at most {MOST_BINS:,}")
            return cls("equal width" if rule == "equal width" else "equal count", int(count))
        if not isinstance(value, list | tuple):
            raise ValueError(f"{value!r} {wanted}")
        if any(isinstance(cut, bool) or not isinstance(cut, int | float) or not np.isfinite(cut) for cut in value):
            raise ValueError(f"{value!r} {wanted}")
        cuts = tuple(float(cut) for cut in value)
        if not 3 <= len(cuts) <= MOST_BINS or any(low >= high for low, high in pairwise(cuts)):
            raise ValueError("cut points must be 3 or more and ascend")
        return cls("cuts", cuts=cuts)

    @property
    def written(self) -> str | list[float]:
        """As a recipe writes it."""
        return list(self.cuts) if self.rule == "cuts" else f"{self.rule} {self.count}"


@dataclass(frozen=True, eq=False)
class Categories:
    """The categories of one variable: ``size`` of them, the last for missing where ``gaps``.

    ``edges`` (bins + 1,) bound the bins of numbers, closed below, the last closed above too; empty for levels. ``whole``:
    only whole numbers are drawn. ``learned`` says in words what of this the confidential data alone have said.
    """

    variable: Variable
    size: int
    gaps: bool
    edges: Floats
    learned: tuple[str, ...]

    @property
    def ordered(self) -> bool:
        """Whether neighbouring categories are alike."""
        return bool(len(self.edges)) or self.variable.kind is Kind.ORDINAL

    @property
    def present(self) -> int:
        """How many categories are values."""
        return self.size - self.gaps

    @property
    def whole(self) -> bool:
        """Whether values are whole numbers."""
        return self.variable.kind in (Kind.COUNT, Kind.DATE)

    def codes(self, data: Microdata) -> Codes:
        """The category of every record, (n,)."""
        numbers, missing = data.numbers(self.variable.name), data.missing(self.variable.name)
        filled = np.where(missing, self.edges[0] if len(self.edges) else 0.0, numbers)
        if len(self.edges):
            places = np.searchsorted(self.edges, filled, side="right") - 1
            filled = np.clip(places, 0, self.present - 1)
        return np.where(missing, self.present, filled).astype(np.int64)

    def values(self, codes: Codes, data: Microdata, inside: Inside, rng: np.random.Generator) -> Floats:
        """A value of each category that was drawn, (n,), such as ``Microdata.numbers`` gives.

        Inside its bin a number is uniform, or that of one of the confidential records of the bin where ``inside`` is
        "donor" and there are any.
        """
        if not len(self.edges):
            return np.where(codes < self.present, codes, np.nan)
        bins = np.minimum(codes, self.present - 1)
        values = self._uniform(bins, rng)
        if inside == "donor":
            values = self._donated(bins, values, data, rng)
        return np.where(codes < self.present, values, np.nan)

    def _uniform(self, bins: Codes, rng: np.random.Generator) -> Floats:
        low, high = self.edges[bins], self.edges[bins + 1]
        if self.whole:
            last = np.where(bins == self.present - 1, np.floor(high), np.ceil(high) - 1)
            values: Floats = np.ceil(low) + np.floor(rng.random(len(bins)) * (last - np.ceil(low) + 1))
        else:  # between the ends, never beyond them by rounding
            values = np.clip(low + rng.random(len(bins)) * (high - low), low, np.nextafter(high, low))
        return values

    def _donated(self, bins: Codes, values: Floats, data: Microdata, rng: np.random.Generator) -> Floats:
        own = self.codes(data)
        numbers = data.numbers(self.variable.name)
        order = np.lexsort((numbers, own))
        starts = np.searchsorted(own[order], np.arange(self.present + 1))
        count = np.diff(starts)[bins]
        picked = starts[bins] + np.floor(rng.random(len(bins)) * count).astype(np.int64)
        return np.where(count > 0, numbers[order][np.minimum(picked, len(order) - 1)], values)


def categories_of(data: Microdata, name: str, bins: Bins | None) -> Categories:
    """The categories of a variable of the confidential data, by the recipe's rule where it has numbers."""
    variable = data.schema[name]
    gaps = bool(data.missing(name).any())
    learned = [f'"{name}" has missing values'] if gaps else []
    if variable.kind.has_levels:
        size = len(data.column(name).cat.categories)
        if not variable.levels:
            learned.append(f'"{name}" has these levels (name them under [variables])')
        return Categories(variable, size + gaps, gaps, np.empty(0), tuple(learned))
    assert bins is not None
    edges, from_data = _edges(data, variable, bins)
    if from_data:
        learned.append(from_data)
    return Categories(variable, len(edges) - 1 + gaps, gaps, edges, tuple(learned))


def _edges(data: Microdata, variable: Variable, bins: Bins) -> tuple[Floats, str]:
    """The ends of the bins, ascending, and what of them the data have said."""
    if bins.rule == "cuts":
        return _distinct(np.array(bins.cuts), variable), ""
    values = data.present(variable.name)
    if bins.rule == "equal count":
        edges = np.quantile(values, np.linspace(0, 1, bins.count + 1), method="inverted_cdf")
        return _distinct(edges, variable), f'"{variable.name}" is cut where equally many records lie (give cut points)'
    known = variable.lower is not None and variable.upper is not None
    low = float(values.min()) if variable.lower is None else variable.lower
    high = float(values.max()) if variable.upper is None else variable.upper
    edges = _distinct(np.linspace(low, high, bins.count + 1), variable)
    return edges, "" if known else f'"{variable.name}" reaches from its smallest to its largest value (give it bounds)'


def _distinct(edges: Floats, variable: Variable) -> Floats:
    """Ends without bins that no value can be in: whole numbers for counts and dates, none twice."""
    if variable.kind in (Kind.COUNT, Kind.DATE):
        edges = np.concatenate([np.ceil(edges[:-1]), [np.floor(edges[-1])]])
    kept = np.unique(edges)
    return kept if len(kept) > 1 else np.array([kept[0], np.nextafter(kept[0], np.inf) + (variable.kind is Kind.COUNT)])


def check_bins(data: Microdata, names: Sequence[str], bins: Mapping[str, Bins], place: str) -> None:
    """BadInput where a number has no rule, a rule cuts what has levels, or records lie outside the cut points."""
    for name in bins:
        if data.schema[name].kind.has_levels:
            raise BadInput(f"{place}.bins.{name}", f'"{name}" has levels already; leave it out')
    for name in names:
        variable = data.schema[name]
        if variable.kind.has_levels:
            continue
        if name not in bins:
            raise BadInput(
                f"{place}.bins", f'"{name}" is {variable.kind}: say how it is cut, such as {name} = "equal width 10"'
            )
        rule = bins[name]
        if rule.rule == "cuts" and variable.kind is Kind.DATE:
            raise BadInput(f"{place}.bins.{name}", "dates are cut by equal width or equal count")
        if rule.rule == "cuts":
            low, high = variable.lower, variable.upper
            if (low is not None and rule.cuts[0] < low) or (high is not None and rule.cuts[-1] > high):
                raise BadInput(f"{place}.bins.{name}", "the cut points leave the bounds of the variable")
            values = data.present(name)
            if outside := int(((values < rule.cuts[0]) | (values > rule.cuts[-1])).sum()):
                raise BadInput(
                    f"{place}.bins.{name}", f"{outside:,} records lie outside the cut points; add cuts at the ends"
                )
