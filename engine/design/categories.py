"""Conversion of variables to categories and back: levels unchanged, numbers and dates in bins, a missing value as one
more category.

Park & Ghosh §4.1 group numbers by hand and release the groups. Here the recipe gives the bins, and a drawn category
becomes a number inside its bin again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from ..data.arrays import Floats, Integers
from ..data.microdata import Microdata
from ..data.schema import Kind, Variable
from ..errors import BadInput, NotComputable
from ..methods.privacy import UncoveredUse
from ..methods.spec import Param
from .binning import BinningRule, check_binning_rules

Inside = Literal["uniform", "donor"]

BinsByVariable = Annotated[
    Mapping[str, BinningRule],
    # any order: a bin says where a column is cut, of no record in which bin it is
    Param(
        'how numbers are cut: "10 equal width", "10 equal count", "width 5" or "at 18, 30, 65"',
        names="variables",
        any_order=True,
    ),
]
InsideBin = Annotated[
    Inside, Param("which number of its bin a record has: any, or that of a confidential record of the bin")
]


@dataclass(frozen=True, eq=False)
class VariableCategories:
    """Categories of one variable.

    variable: its declaration
    size: number of categories, including the last one for missing where ``has_missing``
    has_missing: whether a value may be missing
    edges: bounds of the bins of numbers, closed below, the last closed above too; empty for levels, (bins + 1,)
    learned: parts of this, except ``has_missing``, that were learned from the confidential data, in words;
        ``sfumato.engine.recipe.budget`` reports those that the recipe does not declare
    """

    variable: Variable
    size: int
    has_missing: bool
    edges: Floats
    learned: tuple[UncoveredUse, ...]

    @property
    def is_ordered(self) -> bool:
        """Return whether neighbouring categories are similar."""
        return bool(len(self.edges)) or self.variable.kind is Kind.ORDINAL

    @property
    def value_count(self) -> int:
        """Return the number of categories that are values."""
        return self.size - self.has_missing

    @property
    def is_integer(self) -> bool:
        """Return whether values are whole numbers."""
        return self.variable.kind in (Kind.COUNT, Kind.DATE)

    @property
    def log_widths(self) -> Floats:
        """Return the logarithm of the number of values in each category, (size,): whole numbers of a bin, or its width.

        It is 0 for one value.
        """
        widths = np.ones(self.size)
        if len(self.edges):
            low, high = self.edges[:-1], self.edges[1:]
            widths[: self.value_count] = (
                np.append(np.ceil(high[:-1]), np.floor(high[-1]) + 1) - np.ceil(low) if self.is_integer else high - low
            )
        return np.log(np.where(widths > 0, widths, 1.0))

    def level_texts(self, data: Microdata) -> tuple[str, ...]:
        """Return the levels in their order, of a variable with levels."""
        return tuple(str(level) for level in data.column(self.variable.name).cat.categories)

    def category_codes(self, data: Microdata) -> Integers:
        """Return the category of every record, (n,)."""
        numbers = data.numbers(self.variable.name)
        missing = np.isnan(numbers)
        filled = np.where(missing, self.edges[0] if len(self.edges) else 0.0, numbers)
        if len(self.edges):
            places = np.searchsorted(self.edges, filled, side="right") - 1
            filled = np.clip(places, 0, self.value_count - 1)
        return np.where(missing, self.value_count, filled).astype(np.int64)

    def draw_values(self, codes: Integers, data: Microdata, inside: Inside, rng: np.random.Generator) -> Floats:
        """Return a value for each drawn category, (n,), as ``Microdata.numbers`` returns them.

        Inside its bin a number is uniform, or, where ``inside`` is "donor", that of a confidential record of the bin,
        if there are any.
        """
        if not len(self.edges):
            return np.where(codes < self.value_count, codes, np.nan)
        bins = np.minimum(codes, self.value_count - 1)
        values = self._draw_uniform(bins, rng)
        if inside == "donor":
            values = self._draw_donors(bins, values, data, rng)
        return np.where(codes < self.value_count, values, np.nan)

    def _draw_uniform(self, bins: Integers, rng: np.random.Generator) -> Floats:
        """Return a uniform number inside the bin of each code, whole where the variable is."""
        low, high = self.edges[bins], self.edges[bins + 1]
        if self.is_integer:
            last = np.where(bins == self.value_count - 1, np.floor(high), np.ceil(high) - 1)
            values: Floats = np.ceil(low) + np.floor(rng.random(len(bins)) * (last - np.ceil(low) + 1))
        else:  # between the ends, never beyond them by rounding
            values = np.clip(low + rng.random(len(bins)) * (high - low), low, np.nextafter(high, low))
        return values

    def _draw_donors(self, bins: Integers, values: Floats, data: Microdata, rng: np.random.Generator) -> Floats:
        """Return the number of a random confidential record of each bin; ``values`` where the bin has none."""
        own = self.category_codes(data)
        numbers = data.numbers(self.variable.name)
        # Sorted within bins, so that no random number points to a place in the file.
        order = np.lexsort((numbers, own))
        starts = np.searchsorted(own[order], np.arange(self.value_count + 1))
        count = np.diff(starts)[bins]
        picked = starts[bins] + np.floor(rng.random(len(bins)) * count).astype(np.int64)
        return np.where(count > 0, numbers[order][np.minimum(picked, len(order) - 1)], values)


def _learned_categories(said: str) -> UncoveredUse:
    """Return the uncovered use of the confidential data that learned categories are."""
    return UncoveredUse(
        said, "which values there can be, or how numbers are grouped, was learned from the confidential data"
    )


def categories_of_variable(data: Microdata, name: str, rule: BinningRule | None) -> VariableCategories:
    """Return the categories of a variable of the confidential data, numbers by the recipe's rule."""
    variable = data.schema[name]
    gaps = data.may_have_missing(name)
    if variable.kind.has_levels:
        size = len(data.column(name).cat.categories)
        learned = (
            ()
            if variable.levels
            else (_learned_categories(f'"{name}" has these levels (name them under [variables])'),)
        )
        return VariableCategories(variable, size + gaps, gaps, np.empty(0), learned)
    assert rule is not None
    edges, from_data = _bin_edges(data, variable, rule)
    return VariableCategories(variable, len(edges) - 1 + gaps, gaps, edges, from_data)


def _bin_edges(data: Microdata, variable: Variable, rule: BinningRule) -> tuple[Floats, tuple[UncoveredUse, ...]]:
    """Return the ends of the bins, ascending, and what of them was learned from the data.

    The result is empty where bounds and cuts are the recipe's.
    """
    values, learned = data.present_numbers(variable.name), []
    low, high = variable.lower, variable.upper
    if low is None or high is None:
        learned.append(
            _learned_categories(f'"{variable.name}" reaches from its smallest to its largest value (give it bounds)')
        )
    low = float(values.min()) if low is None else low
    high = float(values.max()) if high is None else high
    if rule.kind == "equal count":
        learned.append(
            _learned_categories(f'"{variable.name}" is cut where equally many records lie (give cut points)')
        )
    # Bins of equal width depend on the range alone, so the values themselves are withheld.
    cuts = rule.fit_bins(values if rule.kind == "equal count" else np.array([low, high])).cuts
    return edges_between(variable, low, high, drop_cut_at_bound(variable, rule, high, cuts)), tuple(learned)


def drop_cut_at_bound(variable: Variable, rule: BinningRule, high: float, cuts: Floats) -> Floats:
    """Return the cut points without one at the upper bound that a width puts there."""
    # It would make a bin of the bound alone, [2000, 2000] of "width 500", whose value a release then shows. Of whole
    # numbers in bins of one number each it is a bin like the others, and cut points that a recipe names are wanted.
    if rule.kind != "width" or (variable.kind in (Kind.COUNT, Kind.DATE) and rule.amount <= 1):
        return cuts
    return cuts[cuts < high]


def edges_between(variable: Variable, low: float, high: float, cuts: Floats) -> Floats:
    """Return the ends of bins that cut a range, (bins + 1,), ascending; every bin of whole numbers contains one."""
    if variable.kind in (Kind.COUNT, Kind.DATE):
        low, high, cuts = float(np.floor(low)), float(np.floor(high)), np.unique(np.ceil(cuts))
    # A range of one value still needs a bin of positive width.
    return np.array([low, *cuts[(cuts > low) & (cuts <= high)], max(high, np.nextafter(low, np.inf))])


def check_bins(data: Microdata, names: Sequence[str], bins: Mapping[str, BinningRule], place: str) -> None:
    """Raise BadInput where a number has no rule, or a rule cuts outside the bounds, or is for a variable with levels."""
    for name, rule in bins.items():
        variable = data.schema[name]
        at = f"{place}.bins.{name}"
        if variable.kind.has_levels:
            raise BadInput(at, f'"{name}" has levels already; leave it out')
        for cut in rule.cuts:
            if (variable.lower is not None and cut < variable.lower) or (
                variable.upper is not None and cut > variable.upper
            ):
                raise BadInput(at, "the cut points leave the bounds of the variable")
        try:
            categories_of_variable(data, name, rule)
        except NotComputable as error:
            raise BadInput(at, error.reason) from None
    check_binning_rules(bins, {variable.name: variable.kind for variable in data.schema}, f"{place}.bins")
    for name in names:
        if not data.schema[name].kind.has_levels and name not in bins:
            kind = data.schema[name].kind
            raise BadInput(f"{place}.bins", f'"{name}" is {kind}: say how it is cut, such as {name} = "10 equal width"')


def require_weighable_bins(
    data: Microdata, targets: Sequence[str], bins: Mapping[str, BinningRule], inside: Inside, place: str
) -> None:
    """Raise BadInput where ends of bins or donors would reveal records whatever their weights."""
    for name in targets:
        if data.schema[name].kind.has_levels:
            continue
        if inside == "donor":
            raise BadInput(
                f"{place}.inside", '"donor" reveals numbers of records whatever their weights; use "uniform"'
            )
        if _bin_edges(data, data.schema[name], bins[name])[1]:
            raise BadInput(
                f"{place}.bins.{name}",
                f"records would say where the bins end, whatever their weights; give cut points or a width, and "
                f'"{name}" bounds under [variables]',
            )


def learned_from_data(
    data: Microdata,
    names: Sequence[str],
    bins: Mapping[str, BinningRule],
    *,
    inside: Inside = "uniform",
) -> tuple[UncoveredUse, ...]:
    """Return the uses of the confidential data by the categories and numbers of a step that its proof does not cover."""
    donors = UncoveredUse("numbers are those of confidential records", "numbers are those of confidential records")
    said = (donors,) if inside == "donor" and bins else ()
    return said + tuple(
        reason for name in names for reason in categories_of_variable(data, name, bins.get(name)).learned
    )
