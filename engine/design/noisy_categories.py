"""Categories of variables whose levels, range or cut points no recipe declares, found by noisy counts within a privacy
budget.

The names of levels and the range of numbers are read from the records in no other way;
``sfumato.engine.margins.private_domain`` has the proof. Records of levels that were not kept share one category, which
is counted and never drawn. Rare levels and the ends of long tails are therefore absent from the release; the fit
reports how many levels were kept. The cost is a tenth of the budget, and half of delta where levels are sought.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..data.arrays import Floats, Integers
from ..data.microdata import FOUR_DIGIT_YEARS, Microdata
from ..data.schema import Kind, Schema, Variable
from ..errors import BadInput
from ..margins.private_domain import DeclaredRange, RangeTail, count_noisy_cells, select_levels
from ..margins.zcdp import sigma_of_rho
from .binning import BinningRule
from .categories import Inside, VariableCategories, categories_of_variable, drop_cut_at_bound, edges_between

# No setting lowers the threshold of kept levels: below the noise it would release the name of a level that one person
# has.
OTHERS = "(other levels)"


@dataclass(frozen=True, eq=False)
class KeptLevelCategories(VariableCategories):
    """Categories of the levels at the places ``kept`` among the variable's own, then one for all others, then missing."""

    kept: Integers

    @property
    def others_code(self) -> int:
        """Return the category of the levels that were not kept."""
        return len(self.kept)

    def level_texts(self, data: Microdata) -> tuple[str, ...]:
        every = super().level_texts(data)
        return (*(every[at] for at in self.kept), OTHERS)

    def category_codes(self, data: Microdata) -> Integers:
        """Return the category of every record, (n,)."""
        missing = data.missing_mask(self.variable.name)
        own = np.where(missing, 0, data.numbers(self.variable.name)).astype(np.int64)
        every = max(int(own.max(initial=0)), int(self.kept.max(initial=0))) + 1
        place = np.full(every, self.others_code, dtype=np.int64)
        place[self.kept] = np.arange(len(self.kept))
        return np.where(missing, self.value_count, place[own])

    def draw_values(self, codes: Integers, data: Microdata, inside: Inside, rng: np.random.Generator) -> Floats:
        return np.where(codes < self.others_code, np.append(self.kept, 0)[np.minimum(codes, self.others_code)], np.nan)


@dataclass(frozen=True, eq=False)
class NoisyRangeCategories(VariableCategories):
    """Categories of a variable whose ends or cut points noise found.

    tails: what may lie below the first bin and above the last; empty in fits of older versions, which did not bound it
    """

    tails: tuple[RangeTail, ...]


def needs_levels(schema: Schema, name: str) -> bool:
    """Return whether the recipe leaves the levels of a variable undeclared."""
    return schema[name].kind.has_levels and not schema[name].levels


def undeclared_variables(schema: Schema, names: tuple[str, ...], bins: Mapping[str, BinningRule]) -> tuple[str, ...]:
    """Return the variables whose levels, range or cut points the recipe does not declare."""
    return tuple(
        name
        for name in names
        if needs_levels(schema, name)
        or (name in bins and (not _declared_ends(schema[name]).is_complete or bins[name].kind == "equal count"))
    )


def _declared_ends(variable: Variable) -> DeclaredRange:
    """Return the range that the recipe declares: its ends, None where open, and whether values are whole numbers."""
    return DeclaredRange(variable.lower, variable.upper, variable.kind in (Kind.COUNT, Kind.DATE))


def noisy_categories(
    data: Microdata,
    name: str,
    rule: BinningRule | None,
    rho: float,
    delta: float,
    rng: np.random.Generator,
    unit_records: int = 1,
) -> VariableCategories:
    """Return the categories of a variable by noisy counts, at a cost of ``rho`` times a unit's squared number of records,
    and ``delta``.

    Raises BadInput where noise leaves nothing, with a remedy.
    """
    variable = data.schema[name]
    numbers, missing = data.numbers(name), data.missing_mask(name)
    values = numbers[~missing]
    gaps = data.may_have_missing(name)
    if variable.kind.has_levels:
        counts = np.bincount(values.astype(np.int64), minlength=len(data.column(name).cat.categories))
        kept = select_levels(counts.astype(np.float64), sigma_of_rho(rho), delta, rng, unit_records)
        if not len(kept):
            raise BadInput(
                f"variables.{name}",
                f'no level of "{name}" is frequent enough beside the noise; name its levels, or allow more epsilon',
            )
        return KeptLevelCategories(variable, len(kept) + 1 + gaps, gaps, np.empty(0), (), kept)
    assert rule is not None
    cells = count_noisy_cells(values, _declared_ends(variable), rho, rng, needs_cuts=rule.kind == "equal count")
    if cells is None:
        raise BadInput(
            f"variables.{name}", f'noise hides how far "{name}" reaches; give it bounds, or allow more epsilon'
        )
    low, high = float(cells.edges[0]), float(cells.edges[-1])
    if variable.kind is Kind.DATE:
        low, high = (float(np.clip(end, *FOUR_DIGIT_YEARS)) for end in (low, high))
    cuts = (
        cells.cut_points(int(rule.amount))
        if rule.kind == "equal count"
        else drop_cut_at_bound(variable, rule, high, rule.fit_bins(np.array([low, high])).cuts)
    )
    return _categories_of_edges(variable, gaps, edges_between(variable, low, high, cuts), cells.tails)


def _categories_of_edges(
    variable: Variable, gaps: bool, edges: Floats, tails: tuple[RangeTail, ...]
) -> NoisyRangeCategories:
    return NoisyRangeCategories(variable, len(edges) - 1 + gaps, gaps, edges, (), tails)


def categories_to_arrays(
    found: Mapping[str, VariableCategories], names: tuple[str, ...]
) -> dict[str, NDArray[np.generic]]:
    """Return the found categories as arrays of a fit.

    ``levels/0`` are the kept levels of target 0, ``edges/1`` the ends of bins of target 1, and ``tails/1`` (2, 2) the
    bound of the records below and above them, and how far these reach.
    """
    arrays: dict[str, NDArray[np.generic]] = {}
    for name, one in found.items():
        at = names.index(name)
        if isinstance(one, KeptLevelCategories):
            arrays[f"levels/{at}"] = one.kept
        else:
            arrays[f"edges/{at}"] = one.edges
        if isinstance(one, NoisyRangeCategories):
            arrays[f"tails/{at}"] = np.array([[tail.count, tail.outer_end] for tail in one.tails])
    return arrays


def categories_from_arrays(
    arrays: Mapping[str, NDArray[np.generic]], names: tuple[str, ...], data: Microdata, bins: Mapping[str, BinningRule]
) -> dict[str, VariableCategories]:
    """Return the categories of all variables: those in the arrays of a fit, the others by the recipe."""
    found: dict[str, VariableCategories] = {}
    for at, name in enumerate(names):
        variable, gaps = data.schema[name], data.may_have_missing(name)
        if f"levels/{at}" in arrays:
            kept = np.asarray(arrays[f"levels/{at}"], dtype=np.int64)
            found[name] = KeptLevelCategories(variable, len(kept) + 1 + gaps, gaps, np.empty(0), (), kept)
        elif f"edges/{at}" in arrays:
            edges = np.asarray(arrays[f"edges/{at}"], dtype=np.float64)
            tails = np.asarray(arrays.get(f"tails/{at}", np.empty((0, 2))), dtype=np.float64)
            found[name] = _categories_of_edges(
                variable, gaps, edges, tuple(RangeTail(float(count), float(end)) for count, end in tails)
            )
        else:
            found[name] = categories_of_variable(data, name, bins.get(name))
    return found
