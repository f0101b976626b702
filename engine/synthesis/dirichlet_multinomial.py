"""Dirichlet-multinomial model of a contingency table: records drawn from its posterior (Reiter, Wang & Zhang §3.1).

The K cells of the targets' categories have probabilities theta ~ Dirichlet(n_k + a); each dataset draws theta and then
its records from it (Park & Ghosh Table 1, the contingency table as one end of the range of synthesisers). Cells that no
record has are drawn without ever being listed, so that memory grows with the records, not with K. A record of weight w
counts as w records (a pseudo-posterior: its likelihood to the power w). With ``predictors``, variables that are kept, a
record's cell is drawn given its own values of them.

A small ``a`` copies the table, and a cell of one record may be released unchanged; there is no epsilon.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from ..data.arrays import Floats, Integers
from ..data.microdata import Microdata
from ..data.provenance import FitUncertainty
from ..data.rows import dense_ranks
from ..data.schema import Kind, Schema
from ..design.categories import (
    BinsByVariable,
    InsideBin,
    VariableCategories,
    categories_of_variable,
    check_bins,
    require_weighable_bins,
)
from ..errors import BadInput
from ..methods.registry import ReleaseModelDeclaration, synthesis_method
from ..methods.release_models import IntruderGuesses, Plausibility
from ..methods.results import Diagnostic, Fit, NoTrace
from ..methods.run import Run
from ..methods.spec import Param, Spec
from ..recipe.weights import WEIGHTS_KNOWN
from ._conditional_tables import LARGEST_KEY, FeatureKey

CLOSED = "the posterior is a Dirichlet distribution: it is drawn from directly"


def check_data(data: Microdata, targets: tuple[str, ...], spec: DirichletMultinomialSpec, place: str) -> None:
    """Raise BadInput where a number has no bins, or the table has more cells than can be numbered.

    Where records have weights, bins that the data have cut and donors are refused.
    """
    check_bins(data, (*targets, *spec.predictors), spec.bins, place)
    if data.weights is not None:
        # Only the counts may depend on the weights: cut points and donors would use a record of little weight in full.
        require_weighable_bins(data, targets, spec.bins, spec.inside, place)
    own, given = _categories_by_name(data, targets, spec), _categories_by_name(data, spec.predictors, spec)
    if _cell_key(own).n_values * _cell_key(given).n_values >= LARGEST_KEY:
        raise BadInput(
            f"{place}.target", "the table has more than 4.6e18 cells; leave variables out or cut them coarser"
        )


def _categories_by_name(
    data: Microdata, names: tuple[str, ...], spec: DirichletMultinomialSpec
) -> dict[str, VariableCategories]:
    return {name: categories_of_variable(data, name, spec.bins.get(name)) for name in names}


def _cell_key(categories: Mapping[str, VariableCategories]) -> FeatureKey:
    return FeatureKey(tuple(categories), tuple(one.size for one in categories.values()), ())


def _cells_of_records(categories: Mapping[str, VariableCategories], data: Microdata) -> Integers:
    """Return the number of each record's cell, (n,), all 0 without variables."""
    return _cell_key(categories).key_of_records(
        {name: one.category_codes(data) for name, one in categories.items()}, len(data)
    )


def joint_draw(
    fit: Fit,
    spec: DirichletMultinomialSpec,
    targets: tuple[str, ...],
    confidential: Microdata,
    released: Microdata,
    index: int,
    records: int,
    rng: np.random.Generator,
) -> Mapping[str, NDArray[np.generic]]:
    """Draw theta, and ``records`` cells by it, each given the record's own values of the predictors."""
    own, given = (
        _categories_by_name(confidential, targets, spec),
        _categories_by_name(confidential, spec.predictors, spec),
    )
    of = _cells_of_records(given, released) if spec.predictors else np.zeros(records, dtype=np.int64)
    fit = _add_missing_groups(fit, of)
    rows = np.searchsorted(fit.arrays["groups"], of)
    cells = draw_cells_by_group(fit, rows, spec.concentration, _cell_key(own).n_values, rng)
    found: dict[str, NDArray[np.generic]] = {}
    for name, categories in reversed(own.items()):
        cells, codes = np.divmod(cells, categories.size)
        found[name] = categories.draw_values(codes, confidential, spec.inside, rng)
    return found


def _add_missing_groups(fit: Fit, of: Integers) -> Fit:
    """Return the fit with groups for all records to draw, ``of`` (n,).

    A group that no confidential record is in, as where a predictor was synthesised, has the prior alone.
    """
    groups = np.asarray(fit.arrays["groups"])
    every = np.union1d(groups, of)
    if len(every) == len(groups):
        return fit
    seen = np.zeros(len(every), dtype=np.int64)
    seen[np.searchsorted(every, groups)] = np.diff(fit.arrays["starts"])
    starts = np.concatenate([[0], np.cumsum(seen)])
    return replace(fit, arrays={**fit.arrays, "groups": every, "starts": starts})


def draw_cells_by_group(
    fit: Fit, rows: Integers, concentration: float, space: int, rng: np.random.Generator
) -> Integers:
    """Draw a cell for each record from its group, (records,), by one draw of theta in each group.

    ``rows`` (records,) are the positions of the groups in the fit, ``space`` is the number of cells of a group.
    """
    starts, cells = np.asarray(fit.arrays["starts"]), np.asarray(fit.arrays["cells"])
    seen = np.diff(starts)
    # Parts of a Dirichlet vector, each divided by its sum, are independent Dirichlet vectors: one gamma for each cell
    # serves all groups.
    mass = rng.standard_gamma(np.asarray(fit.arrays["counts"]) + concentration)
    # The cells without records have a Gamma(a (K - K_seen)) share together, and are not listed.
    rest = rng.standard_gamma(np.maximum(concentration * (space - seen), 0.0))
    upto = np.concatenate([[0.0], np.cumsum(mass)])
    low, high = upto[starts[rows]], upto[starts[rows + 1]]
    place = rng.random(len(rows)) * (high - low + rest[rows])
    listed = place < high - low
    drawn = np.empty(len(rows), dtype=np.int64)
    at = np.searchsorted(upto, low[listed] + place[listed], side="right") - 1
    drawn[listed] = cells[np.clip(at, starts[rows[listed]], starts[rows[listed] + 1] - 1)]
    drawn[~listed] = _draw_unlisted_cells(rows[~listed], starts, cells, concentration, space, rng)
    return drawn


def _draw_unlisted_cells(
    rows: Integers, starts: Integers, cells: Integers, concentration: float, space: int, rng: np.random.Generator
) -> Integers:
    """Draw cells that no confidential record has, for records of these groups (k,): (k,)."""
    count = len(rows)
    order = np.argsort(rows, kind="stable")
    group = rows[order]
    first = np.searchsorted(group, group)
    before = np.arange(count) - first
    free = concentration * (space - np.diff(starts)[group])
    # With theta integrated out, the draws are a Polya urn in each group: the i-th repeats an earlier one with
    # probability i / (i + a (K - K_seen)), else takes a new cell.
    repeated = rng.random(count) * (before + free) < before
    parent = np.where(repeated, first + np.floor(rng.random(count) * before).astype(np.int64), np.arange(count))
    while (parent != parent[parent]).any():
        parent = parent[parent]
    fresh = _draw_empty_cells(group, starts, cells, space, rng)
    found = np.empty(count, dtype=np.int64)
    found[order] = fresh[parent]
    return found


def _draw_empty_cells(
    group: Integers, starts: Integers, cells: Integers, space: int, rng: np.random.Generator
) -> Integers:
    """Draw a cell for each of these groups (k,), uniform among the cells in which the group has no record."""
    owner = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    # Rejection would rarely find an empty cell there; so few cells are left that they can be listed.
    nearly_full = np.diff(starts)[group] * 2 > space
    found = np.zeros(len(group), dtype=np.int64)
    for g in np.unique(group[nearly_full]):
        left = np.setdiff1d(np.arange(space), cells[starts[g] : starts[g + 1]])
        mine = nearly_full & (group == g)
        found[mine] = left[rng.integers(len(left), size=int(mine.sum()))]
    waiting = np.flatnonzero(~nearly_full)
    names = owner * space + cells
    while len(waiting):
        tried = rng.integers(space, size=len(waiting))
        wanted = group[waiting] * space + tried
        taken = names[np.minimum(np.searchsorted(names, wanted), len(names) - 1)] == wanted
        found[waiting] = tried
        waiting = waiting[taken]
    return found


@dataclass(frozen=True, eq=False)
class TableCounts:
    """Counts, or sums of weights, of the cells of a table. A cell's name is ``group * space + cell``.

    space: number of cells of a group
    names, counts: names of the cells that have records, ascending, and their counts, (c,)
    groups, totals: the groups that have records, and their counts, (g,)
    """

    space: int
    names: Integers
    counts: Integers | Floats
    groups: Integers
    totals: Integers | Floats

    @classmethod
    def from_records(cls, groups: Integers, cells: Integers, space: int, weights: Floats | None = None) -> TableCounts:
        """Count the records (n,) of each cell and group, or sum their ``weights`` (n,)."""
        if weights is None:
            names, counts = np.unique(groups * space + cells, return_counts=True)
            return cls(space, names, counts, *np.unique(groups, return_counts=True))
        return cls(
            space, *_sum_weights_by_name(groups * space + cells, weights), *_sum_weights_by_name(groups, weights)
        )

    def count_in_cells(self, groups: Integers, cells: Integers) -> Floats:
        """Return the counts of these cells, (k,)."""
        return _look_up_counts(self.names, self.counts, groups * self.space + cells)

    def count_in_groups(self, groups: Integers) -> Floats:
        """Return the counts of these groups, (k,)."""
        return _look_up_counts(self.groups, self.totals, groups)

    def log_release_probability(self, released: TableCounts, concentration: float) -> float:
        """Return log p(z | n) of released records in their order."""
        alpha = concentration + _look_up_counts(self.names, self.counts, released.names)
        total = concentration * self.space + _look_up_counts(self.groups, self.totals, released.groups)
        cells = gammaln(alpha + released.counts) - gammaln(alpha)
        return float(cells.sum() - (gammaln(total + released.totals) - gammaln(total)).sum())


def _sum_weights_by_name(names: Integers, weights: Floats) -> tuple[Integers, Floats]:
    found, place = np.unique(names, return_inverse=True)
    return found, np.bincount(place, weights, len(found)).astype(np.float64)


def _look_up_counts(names: Integers, counts: Integers | Floats, asked: Integers) -> Floats:
    places = np.minimum(np.searchsorted(names, asked), len(names) - 1)
    return np.where(names[places] == asked, counts[places], 0).astype(np.float64)


@dataclass(frozen=True, eq=False)
class DirichletMultinomialRelease:
    """A release of this model as an intruder weighs it: its marginal likelihood is closed, and nothing is approximate.

    With alpha = n + a for the counts n of the cells and z for those of a dataset, p(z | n) is the product of Gamma(A) /
    Gamma(A + N) over groups, A and N their sums, and of Gamma(alpha + z) / Gamma(alpha) over cells. Where records have
    weights, n counts them by their weights. The intruder knows the weights, that of the target record too; the belief
    before the release comes from all other records at full weight.
    """

    data: Microdata
    targets: tuple[str, ...]
    spec: DirichletMultinomialSpec
    releases: Sequence[Microdata]
    absolute: bool = True
    approximate: bool = False

    @property
    def remarks(self) -> tuple[str, ...]:
        """Return the remark that the weights give an intruder no information, where there are weights."""
        return () if self.data.weights is None else (WEIGHTS_KNOWN,)

    def refit(self, data: Microdata) -> DirichletMultinomialRelease:
        """Return the same model of other confidential data."""
        return replace(self, data=data)

    def refined_log_likelihoods(self, guesses: IntruderGuesses) -> Floats:
        return self.plausibility_of(guesses).likelihood

    @cached_property
    def _target_and_predictor_categories(self) -> tuple[dict[str, VariableCategories], dict[str, VariableCategories]]:
        """Return the categories of the targets and of the predictors."""
        spec = self.spec
        return _categories_by_name(self.data, self.targets, spec), _categories_by_name(self.data, spec.predictors, spec)

    def _count_table(self, data: Microdata, weights: Floats | None = None) -> TableCounts:
        """Count the records of a table, or sum their weights, by the cells of this model."""
        own, given = self._target_and_predictor_categories
        return TableCounts.from_records(
            _cells_of_records(given, data), _cells_of_records(own, data), _cell_key(own).n_values, weights
        )

    @cached_property
    def _full_weight_counts(self) -> TableCounts:
        return self._count_table(self.data)

    @cached_property
    def _weighted_counts(self) -> TableCounts:
        """Return the counts of the confidential records by their weights."""
        return (
            self._full_weight_counts if self.data.weights is None else self._count_table(self.data, self.data.weights)
        )

    @cached_property
    def _released_counts(self) -> tuple[tuple[TableCounts, float], ...]:
        """Return the counts of each dataset, with log p(z | n)."""
        counted = [self._count_table(release) for release in self.releases]
        return tuple((z, self._weighted_counts.log_release_probability(z, self.spec.concentration)) for z in counted)

    def plausibility_of(self, guesses: IntruderGuesses) -> Plausibility:
        """Weigh all guesses at once by the closed form."""
        own, given = self._target_and_predictor_categories
        space, a, shape = _cell_key(own).n_values, self.spec.concentration, guesses.shape
        guessed = guesses.guessed_table(self.data)
        group, cell = _cells_of_records(given, guessed), _cells_of_records(own, guessed)
        truth = tuple(
            np.repeat(_cells_of_records(of, guesses.true_records(self.data)), shape[1]) for of in (given, own)
        )
        in_group = group == truth[0]
        in_cell = in_group & (cell == truth[1])
        # The belief before the release counts everybody in full: nothing keeps an intruder who knows the weights from
        # doing so, and weights would seem to protect where they do not.
        everyone, counts, weights = self._full_weight_counts, self._weighted_counts, self.data.weights
        alpha = a + everyone.count_in_cells(group, cell) - in_cell
        total = a * space + everyone.count_in_groups(group) - in_group
        widths = sum(categories.log_widths[categories.category_codes(guessed)] for categories in own.values())
        prior = np.log(alpha) - np.log(total) - widths
        weight = np.ones(len(cell))
        if weights is not None:
            weight = np.repeat(weights[guesses.records], shape[1])
            # Sums of weights less one of them may be below 0 by rounding.
            alpha = a + np.maximum(counts.count_in_cells(group, cell) - weight * in_cell, 0.0)
            total = a * space + np.maximum(counts.count_in_groups(group) - weight * in_group, 0.0)
        without = (
            a + np.maximum(counts.count_in_cells(*truth) - weight, 0.0),
            a * space + np.maximum(counts.count_in_groups(truth[0]) - weight, 0.0),
        )
        found = np.empty((*shape, len(self.releases)))
        for draw, (z, whole) in enumerate(self._released_counts):
            more = _log_record_factor(alpha, total, z.count_in_cells(group, cell), z.count_in_groups(group), weight)
            less = _log_record_factor(*without, z.count_in_cells(*truth), z.count_in_groups(truth[0]), weight)
            found[..., draw] = whole + np.reshape(more - less, shape)
        return Plausibility(found, np.reshape(prior, shape))


def _log_record_factor(alpha: Floats, total: Floats, z: Floats, released: Floats, weight: Floats) -> Floats:
    """Return the log factor by which one more record in a cell changes the probability of the release.

    ``weight`` is the weight of each record.
    """
    if (weight == 1).all():
        # One record more multiplies it by (alpha + z) / alpha * A / (A + N), without gamma functions, whose differences
        # lose digits for large counts.
        return np.asarray(np.log1p(z / alpha) - np.log1p(released / total))
    return _log_gamma_ratio(alpha, z, weight) - _log_gamma_ratio(total, released, weight)


def _log_gamma_ratio(alpha: Floats, z: Floats, weight: Floats) -> Floats:
    """Return the log of Gamma(alpha + w + z) Gamma(alpha) / (Gamma(alpha + z) Gamma(alpha + w))."""
    risen = gammaln(alpha + weight + z) - gammaln(alpha + z) - gammaln(alpha + weight) + gammaln(alpha)
    return np.asarray(np.where(weight == 1, np.log1p(z / alpha), risen))


def release_model(
    data: Microdata, targets: tuple[str, ...], spec: DirichletMultinomialSpec, releases: Sequence[Microdata], run: Run
) -> DirichletMultinomialRelease:
    """Return the model by which an intruder's guesses are weighed by the releases."""
    return DirichletMultinomialRelease(data, targets, spec, releases)


@dataclass(frozen=True, kw_only=True, slots=True)
class DirichletMultinomialSpec(Spec):
    """Settings of the model: the prior, the kept variables, and how numbers become categories."""

    redrawable: ClassVar[bool] = False

    concentration: Annotated[float, Param("virtual records a of every cell of the table", gt=0)] = 1.0
    predictors: Annotated[
        tuple[str, ...], Param("variables that are kept: a record is drawn given its own values", names="variables")
    ] = ()
    bins: BinsByVariable = field(default_factory=dict)
    inside: InsideBin = "uniform"


def fit_uncertainty(spec: DirichletMultinomialSpec, targets: tuple[str, ...], schema: Schema) -> FitUncertainty:
    """Return that each dataset has probabilities of its own, drawn from their posterior."""
    return FitUncertainty("drawn")


@synthesis_method(
    "Dirichlet-multinomial",
    spec=DirichletMultinomialSpec,
    source="Reiter, Wang & Zhang §3.1; Park & Ghosh Table 1",
    joint_draw=joint_draw,
    targets=tuple(Kind),
    check=check_data,
    weighted=True,
    release_model=ReleaseModelDeclaration(release_model, is_weighted=True),
    fit_uncertainty=fit_uncertainty,
)
def dirichlet_multinomial(
    data: Microdata, targets: tuple[str, ...], spec: DirichletMultinomialSpec, run: Run, draws: int
) -> Fit:
    """Count the cells that records have.

    Arrays: ``groups`` (g,) of the predictors' values, ascending, ``starts`` (g + 1,) of each group's ``cells`` and
    ``counts`` (cells,): of records or, where they have any, their weights in all.
    """
    own, given = _categories_by_name(data, targets, spec), _categories_by_name(data, spec.predictors, spec)
    of = _cells_of_records(given, data) if spec.predictors else np.zeros(len(data), dtype=np.int64)
    counted = slice(None) if data.weights is None else data.weights > 0
    groups = np.unique(of[counted])
    space = _cell_key(own).n_values
    names = (of * space + _cells_of_records(own, data))[counted]
    place, size = dense_ranks(names, space * _cell_key(given).n_values)
    pairs = np.empty(size, dtype=np.int64)
    pairs[place] = names
    counts = np.bincount(place, minlength=size)
    weights = counts if data.weights is None else np.bincount(place, data.weights[counted], size)
    arrays = {
        "groups": groups,
        "starts": np.append(np.searchsorted(pairs // space, groups), size).astype(np.int64),
        "cells": pairs % space,
        "counts": weights.astype(np.int64 if data.weights is None else np.float64),
    }
    said = (
        Diagnostic("cells", "table", float(space * _cell_key(given).n_values)),
        Diagnostic("cells_with_records", "table", float(size)),
        Diagnostic("cells_of_one_record", "table", float((counts == 1).sum())),
    )
    return Fit(arrays, said, NoTrace(CLOSED))
