"""Records drawn from protected margins, tables of few variables, and from nothing else.

``coarsened`` (Raab 2026, arXiv 2606.02101): each count is rounded to the nearest multiple of a limit; a linear program
searches for counts that a reader can still derive. ``gaussian``: each count has noise whose cost is accounted for in
zero-concentrated differential privacy, the choice of margins included (McKenna, Miklau & Sheldon 2021; McKenna et al.
2022). ``exact`` protects nothing and is for tests.

Estimation reads the protected margins alone, and records are drawn within rounding of the fit. Noise also finds levels,
ranges or cut points that the recipe leaves open, at a part of the budget (``sfumato.engine.design.noisy_categories``).
Where a unit has up to c records, a count moves by c, and the noise is c times as large.

Units that are drawn in two stages (METHODS section 10) cost less. Let c be the most records of a unit. The first stage
has one row a unit: a unit more or less changes one cell of each table by 1, and all is as for records. The second has
the place of a record, 1 to c, in every table, which is a table for each place: a unit has at most one row at each, so
that it changes at most c cells, different ones, by 1 each: a Euclidean length of sqrt(c), and c times the cost where c
counts in one cell cost c^2 times. Tables are chosen place by place too, by scores that one row moves by 1; c choices of
such scores, one after the other, cost c times one. Levels and ranges that noise finds are of all places together, and
cost c^2 times one record. So each place has the budget of a table of records divided by c, and what one place costs is
added up over all (Bun & Steinke 2016, Lemma 1.7). ``predictors`` are variables of the row: of its unit, its size, of an
earlier step, or of the unit's earlier records, and change none of this: it is one row still. A record is drawn given
its place and its predictors.

Relations that no margin lists are not kept, however real the records look; the fit lists what is kept. Rounding is no
differential privacy: differences of two releases of almost the same people can show single counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from ..data.arrays import Booleans, Floats, Integers
from ..data.intervals import SHARE
from ..data.microdata import Microdata
from ..data.provenance import FitUncertainty, ReleaseProvenance
from ..data.schema import Kind, Role, Schema
from ..design.binning import BinningRule
from ..design.categories import BinsByVariable, VariableCategories, check_bins
from ..design.finer_categories import coarse_category_of, common_refinement
from ..design.noisy_categories import (
    KeptLevelCategories,
    NoisyRangeCategories,
    categories_from_arrays,
    categories_to_arrays,
    needs_levels,
    noisy_categories,
    undeclared_variables,
)
from ..design.structural_zeros import StructuralZero
from ..errors import BadInput, NotComputable
from ..margins.consistency import MeasuredMargin, consistent_shares
from ..margins.domain import Clique, Domain, as_clique, margin_of, to_shares, total_variation
from ..margins.drawing import draw_cells, draw_given
from ..margins.intervals import CONFIDENCE_LEVEL, estimate_noisy_mean, sampling_obstacle
from ..margins.joint_table import LARGEST_TABLE, MAX_SWEEPS, fit_joint_table
from ..margins.junction_tree import FittedTree, JunctionTree
from ..margins.margin_audit import MarginAudit, PublishedBounds, audit_margins, known_record_range
from ..margins.private import MarginChoice, PrivacyBudget, measure_margins, noisy_distance
from ..margins.private_domain import level_threshold
from ..margins.selection import (
    CountMargin,
    add_single_variables,
    choose_spanning_tree,
    select_by_information,
    total_correlation,
)
from ..margins.soft_records import Float32Array, SoftRecords, TargetMargin, component_count, draw_from_components
from ..margins.zcdp import DEFAULT_DELTA, largest_rho, sigma_of_rho
from ..methods.approved_tables import ApprovedTable
from ..methods.drafting import ALTERNATIVE, DRAFTED_BINS, Case, DeclinedOffer, Offer, drafts, suggest_bins
from ..methods.levers import FIDELITY
from ..methods.outputs import Label, Output
from ..methods.privacy import CONCENTRATED, ConcentratedCost, NoAccount, PrivacyAccount
from ..methods.registry import PrivacyDeclaration, synthesis_method
from ..methods.results import Diagnostic, Estimate, Fit, NoTrace
from ..methods.run import Progress, Run
from ..methods.spec import Param, SearchValues, Spec
from ..tables.bounded import BoundedTable
from ..tables.declared_table import DeclaredTable, Grouping, TableVariable

FITTED = "margins are fitted, not sampled"
Protection = Literal["coarsened", "gaussian", "exact"]
Selection = Literal["given", "pairs", "mutual_information", "mst", "aim"]
# A margin of many variables is a copy of the table, which rounding would release.
MOST_VARIABLES = 5
"""Variables of one margin."""
LARGEST_MARGIN = 1_000_000
"""Cells of one margin."""
SOFT_STEPS = 600
LEVELS = 0.5
"""The part of delta that finding levels takes, where the recipe leaves some open."""
SOFT_FIT_SECONDS, FEW_VARIABLES = 0.015, 8
"""Processor seconds of a fit of soft records, times the square of the number of variables; of so few variables rounded
tables have a joint table.
"""
GIVEN_AT_ONCE = 10_000
"""Combinations of predictors whose components are weighted at once."""
TRIES = 100
"""Times that records are drawn again which have an impossible combination."""


NOISE_IN_TABLES = "noise was added to the tables once"
ROUNDED_TABLES = "counts were rounded once, to multiples of {limit}"
OF_BINS = "each number is taken for the middle of its bin, which the interval says nothing of"
FOUND_RANGE = (
    "the interval has room for any place in the bins, and for {share} % of the records beyond the ends that noise found; "
    "it assumes that all lie between {low} and {high}"
)
OLD_RANGE = "no interval: noise found the ends of the bins, and this fit has no bound of the records beyond them"
MOST_SHARES = 20
"""Levels of a variable whose shares are told."""
MOST_NAMED = 5
"""Sets of variables that are named of those whose small counts follow."""

FEWEST_RECORDS_FACTOR = 4
"""Times the count at which a level is kept, below which records are too few for a draft."""


@dataclass(frozen=True, slots=True)
class MarginVariables:
    """The variables of one margin, which a recipe writes as ``age : sex : income``."""

    columns: tuple[str, ...]

    @classmethod
    def parse(cls, value: object) -> MarginVariables:
        """Parse a margin from a recipe's text. Raises ValueError, whose message shows the form."""
        if isinstance(value, MarginVariables):
            return value
        names = tuple(part.strip() for part in value.split(":")) if isinstance(value, str) else ()
        if not names or not all(names) or len(set(names)) < len(names) or len(names) > MOST_VARIABLES:
            raise ValueError(
                f"{value!r} is no margin: write 1 to {MOST_VARIABLES} different variables, such as age : sex : income"
            )
        return cls(names)

    @property
    def written(self) -> str:
        """Return the form that a recipe carries."""
        return " : ".join(self.columns)


@dataclass(frozen=True, eq=False)
class TargetTable:
    """Categories of the targets, in their order, and the domain that they span.

    categories: categories of each target
    domain: the joint domain
    conditions: for each impossible combination the levels of all targets side by side that it has
    """

    categories: Mapping[str, VariableCategories]
    domain: Domain
    conditions: tuple[Booleans, ...]

    @classmethod
    def from_data(
        cls,
        data: Microdata,
        targets: tuple[str, ...],
        spec: MarginsSpec,
        place: str = "",
        arrays: Mapping[str, NDArray[np.generic]] | None = None,
    ) -> TargetTable:
        """Build from the recipe's declarations and from the ``arrays`` of a fit, which hold what noise found.

        Raises BadInput where a condition does not suit the categories.
        """
        categories = categories_from_arrays(arrays or {}, targets, data, spec.bins)
        sizes = {name: one.size for name, one in categories.items()}
        conditions = tuple(
            one.possible_levels(categories, sizes, data, f"{place}.impossible[{i}]")
            for i, one in enumerate(spec.impossible)
        )
        return cls(categories, Domain(tuple(sizes.values())), conditions)

    def record_codes(self, data: Microdata) -> Integers:
        """Return the category of every record in each target, (n, targets)."""
        return np.column_stack([one.category_codes(data) for one in self.categories.values()])

    def clique_of_variables(self, names: Sequence[str]) -> Clique:
        places = {name: at for at, name in enumerate(self.categories)}
        return as_clique([places[name] for name in names])

    def variables_of_clique(self, clique: Clique) -> tuple[str, ...]:
        every = tuple(self.categories)
        return tuple(every[at] for at in clique)

    def impossible_cells(self, clique: Clique | None = None) -> Booleans | None:
        """Return which cells of the joint table, or of a margin, are impossible; None where no condition applies."""
        own = tuple(range(len(self.domain))) if clique is None else clique
        found = None
        for levels in self.conditions:
            parts = np.split(levels, np.cumsum(self.domain.sizes)[:-1])
            if any(not part.all() for at, part in enumerate(parts) if at not in own):
                continue  # other values of variables outside the margin leave the cell possible
            cell = np.ones(self.domain.shape(own), dtype=np.bool_)
            for axis, at in enumerate(own):
                cell &= parts[at].reshape([-1 if other == axis else 1 for other in range(len(own))])
            found = cell if found is None else found | cell
        return found

    def known_zeros(self) -> Iterator[PublishedBounds]:
        """Yield the zero counts that follow from each condition, as bounds on its own variables."""
        # The audit needs them: a reader who knows the subject knows these zeros.
        for levels in self.conditions:
            parts = np.split(levels, np.cumsum(self.domain.sizes)[:-1])
            clique = tuple(at for at, part in enumerate(parts) if not part.all())
            if clique and self.domain.cell_count(clique) <= LARGEST_MARGIN:
                cells = np.ones(self.domain.shape(clique), dtype=np.bool_)
                for axis, at in enumerate(clique):
                    cells &= parts[at].reshape([-1 if other == axis else 1 for other in range(len(clique))])
                yield PublishedBounds.from_structural_zeros(clique, cells)

    def has_impossible_values(self, codes: Integers) -> Booleans:
        """Return which records, given by their categories (n, targets), have an impossible combination, (n,)."""
        found = np.zeros(len(codes), dtype=np.bool_)
        for levels in self.conditions:
            parts = np.split(levels, np.cumsum(self.domain.sizes)[:-1])
            found |= np.all([part[codes[:, at]] for at, part in enumerate(parts)], axis=0)
        return found


def check_data(data: Microdata, targets: tuple[str, ...], spec: MarginsSpec, place: str) -> None:
    """Raise BadInput where settings contradict each other, a number has no bins, or a margin is too large."""
    private = spec.effective_protection == "gaussian"
    if private and spec.epsilon is None:
        raise BadInput(f"{place}.epsilon", "noise needs an epsilon; give one, or use protection = coarsened")
    if not private and spec.epsilon is not None:
        raise BadInput(f"{place}.epsilon", 'only noise has an epsilon; add protection = "gaussian", or leave it out')
    if spec.effective_selection == "given" and not spec.margins:
        raise BadInput(f"{place}.margins", "name the margins, or choose another selection")
    if spec.margins and spec.effective_selection != "given":
        raise BadInput(
            f"{place}.margins",
            f"the selection {spec.effective_selection} finds its own margins; leave one of the two out",
        )
    # A choice by the records themselves costs privacy that no budget counts.
    if private and spec.effective_selection == "mutual_information":
        raise BadInput(
            f"{place}.selection", "mutual information is read without noise; use aim, mst, pairs or given margins"
        )
    if private and spec.survey_weights:
        raise BadInput(f"{place}.survey_weights", "a weight has no bound that noise could hide; leave one of them out")
    if not private and spec.effective_selection == "aim":
        raise BadInput(f"{place}.selection", "aim chooses by noisy margins; use mutual_information, mst or pairs")
    if spec.survey_weights and not data.schema.names_by_role(Role.WEIGHT):
        raise BadInput(f"{place}.survey_weights", "no variable is the survey weight; give one the role weight")
    if not private and spec.figures:
        raise BadInput(f"{place}.figures", "it belongs to noise; give an epsilon, or leave it out")
    check_bins(data, spec.variables(targets), spec.bins, place)
    open_to_noise = undeclared_variables(data.schema, targets, spec.bins) if private else ()
    _check_predictors(data.schema, targets, spec, place)
    targets = spec.variables(targets)
    for i, condition in enumerate(spec.impossible):
        if unknown := [name for name in condition.columns if name in open_to_noise]:
            raise BadInput(
                f"{place}.impossible[{i}]",
                f'noise finds the levels and bins of "{unknown[0]}", and a condition has to know them before; declare them, or leave it out',
            )
    for i, one in enumerate(spec.margins):
        for name in one.columns:
            if name not in targets:
                data.schema.require_variable(name, f"{place}.margins[{i}]")
                raise BadInput(f"{place}.margins[{i}]", f'"{name}" is no target of this step')
    table = TargetTable.from_data(data, targets, spec, place)
    for i, one in enumerate(spec.margins):
        cells = table.domain.cell_count(table.clique_of_variables(one.columns))
        if cells > LARGEST_MARGIN and not set(one.columns) & set(open_to_noise):
            raise BadInput(
                f"{place}.margins[{i}]",
                f"{cells:,} cells are more than {LARGEST_MARGIN:,}; use fewer or coarser variables",
            )
    if spec.impossible:
        for i, levels in enumerate(table.conditions):
            if (
                TargetTable(table.categories, table.domain, (levels,))
                .has_impossible_values(table.record_codes(data))
                .any()
            ):
                raise BadInput(
                    f"{place}.impossible[{i}]",
                    f"records of the data are like that ({spec.impossible[i].written}); correct them, or leave the condition out",
                )


def _check_predictors(schema: Schema, targets: tuple[str, ...], spec: MarginsSpec, place: str) -> None:
    """Raise BadInput where predictors suit no step of records of drawn units, or noise would have to find their values."""
    for i, name in enumerate(spec.predictors):
        at = f"{place}.predictors[{i}]"
        if not schema.place:
            raise BadInput(
                at, 'only records of drawn units have predictors; set units = "drawn" under [release], or leave it out'
            )
        if name == schema.place:
            raise BadInput(at, f'"{name}" is in every table of records already; leave it out')
        if name in targets:
            raise BadInput(at, f'"{name}" is a target of this step; leave it out')
        if undeclared_variables(schema, (name,), spec.bins):
            raise BadInput(at, f'the levels or bounds of "{name}" are not declared; declare them under [variables]')


def account(
    data: Microdata, targets: tuple[str, ...], spec: MarginsSpec, records: int, datasets: int
) -> PrivacyAccount | NoAccount:
    """Return the privacy cost of noise and choices together."""
    if spec.effective_protection != "gaussian" or spec.epsilon is None:
        return NoAccount("rounded counts are no differential privacy: they have no epsilon")
    # The numbers of records and of datasets do not matter: all are drawn from what was measured once.
    failed = spec.delta - _delta_of_noise(spec, data.schema, targets)
    rho = largest_rho(spec.epsilon, spec.delta - failed)
    budget = _privacy_budget(spec, data.schema, targets)
    # A replaced record changes two cells of a table, and a sum of distances by 2: a cost grows with the square of the
    # change.
    share = (2 * budget.tables_cost + 4 * budget.distances_cost) / budget.total_cost
    parts = {
        "single variables": budget.single_margins,
        "several variables": budget.joint_margins,
        "choices": budget.choices,
        "levels and ranges": budget.domain,
        "public figures": budget.figures,
    }
    cost = ConcentratedCost(
        rho,
        rho * share,
        spec.delta,
        failed,
        {what: own / budget.total_cost * rho for what, own in parts.items()},
        gaussian=not (budget.choices or budget.domain or budget.figures),
    )
    return PrivacyAccount.from_rho(cost, (), spec.epsilon)


def _noisy_selection(spec: MarginsSpec) -> MarginChoice:
    assert spec.effective_selection != "mutual_information"
    return spec.effective_selection


def _delta_of_noise(spec: MarginsSpec, schema: Schema, targets: Sequence[str]) -> float:
    """Return the part of delta that finding levels leaves to the noise."""
    return spec.delta * (1 - LEVELS) if any(needs_levels(schema, name) for name in targets) else spec.delta


def _privacy_budget(spec: MarginsSpec, schema: Schema, targets: tuple[str, ...]) -> PrivacyBudget:
    """Return the budget of the mechanism, in rho."""
    assert spec.epsilon is not None
    # A unit of c records moves a count by up to c, and the cost grows with its square. At one place it moves it by 1, and
    # the costs of c places add up.
    times = schema.unit_records if schema.place else schema.unit_records**2
    rho = largest_rho(spec.epsilon, _delta_of_noise(spec, schema, targets)) / times
    domain = bool(undeclared_variables(schema, targets, spec.bins))
    return PrivacyBudget.from_total(rho, len(spec.variables(targets)), _noisy_selection(spec), domain, spec.figures)


def joint_draw(
    fit: Fit,
    spec: MarginsSpec,
    targets: tuple[str, ...],
    confidential: Microdata,
    released: Microdata,
    index: int,
    records: int,
    rng: np.random.Generator,
) -> Mapping[str, NDArray[np.generic]]:
    """Draw a dataset of ``records`` records; those with an impossible combination are drawn again.

    In a table with places it is the records at that of ``released``, given their predictors.
    """
    table = TargetTable.from_data(confidential, spec.variables(targets), spec, arrays=fit.arrays)
    at_place = confidential.schema.place
    given = np.empty((records, len(spec.predictors)), dtype=np.int64)
    for at, name in enumerate(spec.predictors):
        given[:, at] = table.categories[name].category_codes(released)

    def draw_some(rows: Integers) -> Integers:
        if at_place:
            place = int(released.numbers(at_place)[0]) + 1
            return draw_codes_given(np.asarray(fit.arrays[f"{place}/soft"]), table, given[rows], rng, len(rows))
        return draw_codes(fit, table, max(len(rows), 50), rng)[: len(rows)]

    codes = draw_some(np.arange(records)) if at_place else draw_codes(fit, table, records, rng)
    for _ in range(TRIES):
        wrong = np.flatnonzero(table.has_impossible_values(codes))
        if not len(wrong):
            break
        codes[wrong] = draw_some(wrong)
    else:
        raise NotComputable(
            "most records would have an impossible combination; add the margin that the conditions speak of"
        )
    return {
        name: one.draw_values(codes[:, at], confidential, "uniform", rng)
        for at, (name, one) in enumerate(table.categories.items())
        if name in targets
    }


def draw_codes_given(
    probabilities: NDArray[np.generic], table: TargetTable, given: Integers, rng: np.random.Generator, records: int
) -> Integers:
    """Draw categories (records, variables) from components (count, categories), given those of the first variables,
    ``given`` (records, k).

    A component is as probable as it makes the given categories.
    """
    own = np.asarray(probabilities, dtype=np.float64)
    ends = np.cumsum(table.domain.sizes)
    parts = [own[:, end - size : end] for end, size in zip(ends, table.domain.sizes, strict=True)]
    codes = np.empty((records, len(parts)), dtype=np.int64)
    known = given.shape[1]
    codes[:, :known] = given
    distinct, group = np.unique(codes[:, :known], axis=0, return_inverse=True)
    group, components = group.reshape(-1), np.empty(records, dtype=np.int64)
    for first in range(0, len(distinct), GIVEN_AT_ONCE):
        some = distinct[first : first + GIVEN_AT_ONCE]
        weights = np.ones((len(some), len(own)))
        for at in range(known):
            weights *= parts[at][:, some[:, at]].T
            largest = weights.max(axis=1, keepdims=True)
            # No component has categories that noise has emptied together: each is then as good as another.
            weights = np.where(largest > 0, weights / np.where(largest > 0, largest, 1.0), 1.0)
        rows = np.flatnonzero((group >= first) & (group < first + GIVEN_AT_ONCE))
        components[rows] = draw_given(weights, group[rows] - first, rng)
    for at in range(known, len(parts)):
        codes[:, at] = draw_given(parts[at], components, rng)
    return codes


def draw_codes(fit: Fit, table: TargetTable, records: int, rng: np.random.Generator) -> Integers:
    """Draw categories (records, targets) from the fit."""
    if "soft" in fit.arrays:
        return draw_from_components(table.domain, np.asarray(fit.arrays["soft"]), records, rng)
    if "joint" in fit.arrays:
        return np.column_stack(draw_cells(np.asarray(fit.arrays["joint"], dtype=np.float64), records, rng))
    tree = JunctionTree.from_margins(table.domain, list(protected_margins(fit)))
    tables = tuple(np.asarray(fit.arrays[f"clique/{_clique_key(clique)}"], dtype=np.float64) for clique in tree.cliques)
    codes = FittedTree(tree, tables, 0, 0.0).draw_records(records, rng)
    return codes[rng.permutation(records)]


def _clique_key(clique: Clique) -> str:
    return ".".join(map(str, clique))


def protected_margins(fit: Fit) -> dict[Clique, Floats]:
    """Return the protected margins of a fit, in the order in which they were chosen.

    Those with grouped categories are by the groups of ``groups/``.
    """
    names = [name.removeprefix("margin/") for name in fit.arrays if name.startswith("margin/")]
    return {tuple(map(int, name.split("."))): np.asarray(fit.arrays[f"margin/{name}"]) for name in names}


def publishable_tables(
    fit: Fit, spec: MarginsSpec, targets: tuple[str, ...], data: Microdata
) -> tuple[ApprovedTable, ...]:
    """Return the protected margins with their categories.

    There are none if margins are exact, or if small counts follow from them or were not audited.
    """
    table = TargetTable.from_data(data, targets, spec, arrays=fit.arrays)
    noisy = spec.effective_protection == "gaussian"
    if spec.effective_protection == "exact" or (noisy and has_unprotected_categories(fit, data.schema, targets, spec)):
        return ()
    if not noisy and ("audit" not in fit.arrays or fit.arrays["audit"][0] > 0):
        return ()
    found = []
    for clique, counts in protected_margins(fit).items():
        grouped = noisy and len(clique) > 1
        labels = tuple(
            _grouped_labels(one, np.asarray(fit.arrays[f"groups/{at}"])) if grouped else one
            for at, one in ((at, _category_labels(table.categories[targets[at]], data)) for at in clique)
        )
        noise = float(fit.arrays[f"sigma/{_clique_key(clique)}"][0]) if noisy else 0.0
        found.append(
            ApprovedTable(table.variables_of_clique(clique), labels, counts, 0 if noisy else spec.limit, noise)
        )
    return tuple(found)


def audit_together(
    fits: Sequence[tuple[Fit, MarginsSpec, tuple[str, ...]]], data: Microdata, records: tuple[float, float]
) -> MarginAudit | None:
    """Audit all rounded tables of some fits to the same records as one system.

    The categories are fine enough for each of the fits. Counts below the largest of the limits are small, in each
    release's own categories and in the finer ones. The sets of variables of the result are positions in its ``names``.

    Args:
        fits: each with its settings and its targets.
        data: the confidential records.
        records: smallest and largest number of records that a reader can know of.
    """
    rounded = [
        (TargetTable.from_data(data, targets, spec), fit, spec)
        for fit, spec, targets in fits
        # Noisy tables say nothing exactly, and weighted ones are no counts of records.
        if spec.effective_protection == "coarsened" and not spec.survey_weights
    ]
    if not rounded:
        return None
    by_name: dict[str, list[VariableCategories]] = {}
    for table, _, _ in rounded:
        for name, one in table.categories.items():
            by_name.setdefault(name, []).append(one)
    fine = {name: common_refinement(several) for name, several in by_name.items()}
    names = tuple(fine)
    whole = TargetTable(fine, Domain(tuple(one.size for one in fine.values())), ())
    released = []
    for table, fit, spec in rounded:
        own = [
            PublishedBounds.from_coarsened(clique, counts, spec.limit, table.impossible_cells(clique))
            for clique, counts in protected_margins(fit).items()
        ]
        for bounds in [*own, *table.known_zeros()]:
            variables = table.variables_of_clique(bounds.clique)
            order = np.argsort([names.index(name) for name in variables])
            groups = tuple(coarse_category_of(fine[variables[at]], table.categories[variables[at]]) for at in order)
            low, high = np.transpose(bounds.low, order), np.transpose(bounds.high, order)
            released.append(PublishedBounds(whole.clique_of_variables(variables), low, high, groups))
    limit = max(spec.limit for _, _, spec in rounded)
    return replace(audit_margins(whole.domain, released, whole.record_codes(data), limit, records), names=names)


def bounded_margins(
    fit: Fit,
    spec: MarginsSpec,
    targets: tuple[str, ...],
    data: Microdata,
    records: tuple[float, float],
    release: str,
) -> tuple[BoundedTable, ...]:
    """Return the rounded margins, and the zeros of conditions, with the bounds that they set on counts of records.

    Their sums over variables are cells too, of which they say nothing themselves. There are none where margins are
    exact or noisy, or count weights.
    """
    if spec.effective_protection != "coarsened" or spec.survey_weights:
        return ()
    table = TargetTable.from_data(data, targets, spec)
    codes = table.record_codes(data)
    margins = [
        PublishedBounds.from_coarsened(clique, counts, spec.limit, table.impossible_cells(clique))
        for clique, counts in protected_margins(fit).items()
    ]
    found = []
    for at, own in enumerate([*margins, *table.known_zeros()]):
        names = table.variables_of_clique(own.clique)
        declared = DeclaredTable(
            f"rounded {at + 1} of {', '.join(targets)}",
            tuple(
                TableVariable(
                    name, (Grouping("", codes[:, place], _category_labels(table.categories[name], data)),), total=True
                )
                for name, place in zip(names, own.clique, strict=True)
            ),
            release=release,
        )
        low, high = np.zeros(declared.shape), np.full(declared.shape, np.inf)
        inner = (slice(1, None),) * len(names)
        low[inner], high[inner] = own.low, own.high
        everything = (0,) * len(names)
        low[everything], high[everything] = records
        found.append(BoundedTable(declared, low, high, np.full(low.shape, at < len(margins))))
    return tuple(found)


def noisy_estimates(
    fit: Fit, spec: MarginsSpec, targets: tuple[str, ...], data: Microdata, provenance: ReleaseProvenance
) -> tuple[Estimate, ...]:
    """Estimate means of numbers and shares of levels in the population by the noisy counts.

    The distance that was paid for is returned too. Numbers count as the middle of their bin, and the rows say so. There
    is no interval where the records are no simple random sample, as where a unit has several.
    """
    if spec.effective_protection != "gaussian" or has_unprotected_categories(fit, data.schema, targets, spec):
        return ()
    # All is computed from what was measured, so it costs nothing more.
    table = TargetTable.from_data(data, targets, spec, arrays=fit.arrays)
    tables = protected_margins(fit)
    ones = [MeasuredMargin((at,), tables[(at,)], float(fit.arrays[f"sigma/{at}"][0])) for at in range(len(targets))]
    obstacle = sampling_obstacle(provenance, data.schema.unit_records)
    found: list[Estimate] = []
    for at, (name, one) in enumerate(table.categories.items()):
        here = np.arange(one.size) < one.value_count
        if len(one.edges):
            # A bin of whole numbers ends one below its edge, but for the last one, which is closed.
            last = one.edges[1:] - one.is_integer * (np.arange(one.value_count) < one.value_count - 1)
            middles = np.append((one.edges[:-1] + last) / 2, [0.0] * one.has_missing)
            mean = _noisy_mean(table.domain, ones, at, "noisy_mean", middles, here, name, {})
            if mean.value is None:
                found.append(mean)
            elif isinstance(one, NoisyRangeCategories):
                found.append(_widen_to_found_range(mean, table.domain, ones, at, one, last, here))
            else:
                found.append(replace(mean, reason=OF_BINS))
        elif one.value_count <= MOST_SHARES:
            found += [
                _noisy_mean(
                    table.domain, ones, at, "noisy_share", np.arange(one.size) == place, here, name, {"level": text}
                )
                for place, text in enumerate(one.level_texts(data))
            ]
    if obstacle:
        found = [
            replace(
                one, lower=None, upper=None, reason="; ".join(filter(None, (one.reason, f"no interval: {obstacle}")))
            )
            if one.value is not None
            else one
            for one in found
        ]
    if "pair_distance" in fit.arrays:
        value, sigma = map(float, fit.arrays["pair_distance"])
        half = float(ndtri((1 + CONFIDENCE_LEVEL) / 2)) * sigma
        low, high = (min(max(end, 0.0), 1.0) for end in (value - half, value + half))
        found.append(Estimate("noisy_pair_distance", min(max(value, 0.0), 1.0), lower=low, upper=high, unit="share"))
    return tuple(found)


def _noisy_mean(
    domain: Domain,
    ones: Sequence[MeasuredMargin],
    at: int,
    measure: str,
    values: NDArray[np.generic],
    here: Booleans,
    name: str,
    params: Mapping[str, str],
) -> Estimate:
    """Return the estimated mean of ``values`` over the records that are ``here``, clipped to possible values."""
    own = np.asarray(values, dtype=np.float64)
    try:
        found = estimate_noisy_mean(domain, ones, (at,), own, included_cells=here.astype(np.float64))
    except ZeroDivisionError as error:
        return Estimate.not_computed(measure, str(error), name, **params)
    low, high = own[here].min(), own[here].max()
    value, lower, upper = (float(np.clip(one, low, high)) for one in (found.value, found.lower, found.upper))
    unit = "share" if params else ""
    return Estimate(measure, value, name, lower, upper, unit=unit, params=dict(params))


def _widen_to_found_range(
    mean: Estimate,
    domain: Domain,
    ones: Sequence[MeasuredMargin],
    at: int,
    categories: NoisyRangeCategories,
    upper_ends: Floats,
    here: Booleans,
) -> Estimate:
    """Return a mean whose interval has room for where in the bins, and how far beyond their ends, numbers may lie."""
    if not categories.tails:
        return replace(mean, lower=None, upper=None, reason=OLD_RANGE)
    below, above = categories.tails
    records = max(float(ones[at].table[here].sum()), 1.0)
    ends = []
    # All numbers at the lower ends of their bins, and all at the upper ones: no distribution inside them is assumed.
    for values, tail in ((categories.edges[:-1], below), (upper_ends, above)):
        own = np.append(values, [0.0] * categories.has_missing)
        found = estimate_noisy_mean(domain, ones, (at,), own, included_cells=here.astype(np.float64))
        room = tail.count / records * abs(tail.outer_end - (values[0] if tail is below else values[-1]))
        ends.append(found.lower - room if tail is below else found.upper + room)
    low, high = (min(below.outer_end, categories.edges[0]), max(above.outer_end, categories.edges[-1]))
    lower, upper = (float(np.clip(end, low, high)) for end in ends)
    share = min((below.count + above.count) / records, 1.0)
    reason = FOUND_RANGE.format(share=f"{100 * share:.2g}", low=f"{low:g}", high=f"{high:g}")
    return replace(mean, lower=lower, upper=upper, reason=reason)


def margin_cells_of_records(
    fit: Fit, spec: MarginsSpec, targets: tuple[str, ...], data: Microdata
) -> tuple[Integers, ...]:
    """Return the cell of each record in each protected margin, (n,) each; in grouped margins by their groups."""
    codes = TargetTable.from_data(data, targets, spec, arrays=fit.arrays).record_codes(data)
    noisy, found = spec.effective_protection == "gaussian", []
    for clique, counts in protected_margins(fit).items():
        grouped = noisy and len(clique) > 1
        own = [np.asarray(fit.arrays[f"groups/{at}"])[codes[:, at]] if grouped else codes[:, at] for at in clique]
        found.append(np.ravel_multi_index(tuple(own), counts.shape))
    return tuple(found)


def _category_labels(categories: VariableCategories, data: Microdata) -> tuple[str, ...]:
    """Return the texts of a variable's categories: levels, intervals that are closed below, and missing."""
    edges = categories.edges
    if not len(edges):
        texts = list(categories.level_texts(data))
    else:
        ends = [_format_edge(edge, categories) for edge in edges]
        texts = [f"[{low}, {high})" for low, high in pairwise(ends)]
        texts[-1] = texts[-1].replace(")", "]")
    return (*texts, "(missing)") if categories.has_missing else tuple(texts)


def _format_edge(edge: float, categories: VariableCategories) -> str:
    """Return the text of an edge of a bin, as a date if the variable is one."""
    if categories.variable.kind is Kind.DATE:
        return str(np.datetime64(int(edge), "D"))
    return f"{edge:g}"


def _grouped_labels(labels: tuple[str, ...], groups: Integers) -> tuple[str, ...]:
    """Return a text for each group: the label of its category, or of all its categories."""
    found = []
    for group in range(int(groups.max()) + 1):
        own = [label for label, at in zip(labels, groups, strict=True) if at == group]
        found.append(own[0] if len(own) == 1 else f"(others: {', '.join(own)})")
    return tuple(found)


def _fit_noisy_margins(data: Microdata, targets: tuple[str, ...], spec: MarginsSpec, run: Run) -> Fit:
    """Measure margins with noise and fit soft records to them."""
    budget = _privacy_budget(spec, data.schema, targets)
    arrays: dict[str, NDArray[np.generic]] = _find_noisy_domain(data, targets, spec, budget, run.rng)
    table = TargetTable.from_data(data, spec.variables(targets), spec, arrays=arrays)
    codes = table.record_codes(data)
    domain = table.domain
    cliques = add_single_variables(domain, [table.clique_of_variables(one.columns) for one in spec.margins])
    for clique in cliques:
        if domain.cell_count(clique) > LARGEST_MARGIN:
            raise BadInput(
                "bins",
                f"the margin of {' and '.join(table.variables_of_clique(clique))} has more than {LARGEST_MARGIN:,} cells; use coarser ones",
            )
    if not data.schema.place:
        measured, said = _measure_table(table, codes, cliques, spec, budget, run)
        return Fit({**arrays, **measured}, tuple(said), NoTrace(FITTED))
    at_place, diagnostics = data.numbers(data.schema.place), []
    for place in range(data.schema.unit_records):
        # Each is a table of at most one row a unit, with noise and choices of its own.
        measured, said = _measure_table(table, codes[at_place == place], cliques, spec, budget, run)
        arrays |= {f"{place + 1}/{name}": own for name, own in measured.items()}
        diagnostics += [replace(one, parameter=f"{one.parameter}, place {place + 1}") for one in said]
    return Fit(arrays, tuple(diagnostics), NoTrace(FITTED))


def _measure_table(
    table: TargetTable,
    codes: Integers,
    cliques: Sequence[Clique],
    spec: MarginsSpec,
    budget: PrivacyBudget,
    run: Run,
) -> tuple[dict[str, NDArray[np.generic]], list[Diagnostic]]:
    """Measure margins of records, given by their categories (n, variables), and fit soft records to them.

    Return the arrays of the fit, and what it reports.
    """
    domain = table.domain
    arrays: dict[str, NDArray[np.generic]] = {}
    found = measure_margins(
        domain,
        lambda clique: domain.count_records(codes, clique),
        budget,
        _noisy_selection(spec),
        run.rng,
        cliques,
        steps=SOFT_STEPS,
        note=lambda done, total: run.report(Progress(done, total, "rounds")),
    )
    for one in found.margins:
        arrays[f"margin/{_clique_key(one.clique)}"] = one.table
        arrays[f"sigma/{_clique_key(one.clique)}"] = np.array([one.sigma])
    arrays |= {f"groups/{at}": own for at, own in enumerate(found.groups)}
    arrays["soft"] = _drop_unkept_levels(found.model.smoothed_shares(found.even_shares), table)
    if budget.figures and len(domain) > 1:
        told = noisy_distance(
            domain,
            lambda clique: domain.count_records(codes, clique),
            np.asarray(arrays["soft"], dtype=np.float32),
            found.record_count,
            budget.figures,
            run.rng,
        )
        arrays["pair_distance"] = np.array(told)
    several = [one for one in found.margins if len(one.clique) > 1]
    said = [
        Diagnostic("margins", "all", float(len(found.margins))),
        Diagnostic("cells", "all", float(sum(one.table.size for one in found.margins))),
        Diagnostic("noise", "single variables", found.margins[0].sigma),
    ]
    said += [Diagnostic("noise", "several variables", several[0].sigma)] if several else []
    return arrays, said


def _find_noisy_domain(
    data: Microdata,
    targets: tuple[str, ...],
    spec: MarginsSpec,
    budget: PrivacyBudget,
    rng: np.random.Generator,
) -> dict[str, NDArray[np.generic]]:
    """Find the levels and ends of bins that the recipe leaves open, and return them as arrays of the fit."""
    names = undeclared_variables(data.schema, targets, spec.bins)
    # All places are counted together, so that their c records cost c^2 of the c parts of the budget.
    rho = budget.domain / (data.schema.unit_records if data.schema.place else 1)
    of_levels = sum(needs_levels(data.schema, name) for name in names)
    delta = LEVELS * spec.delta / max(of_levels, 1)
    return categories_to_arrays(
        {
            name: noisy_categories(
                data, name, spec.bins.get(name), rho / len(names), delta, rng, data.schema.unit_records
            )
            for name in names
        },
        spec.variables(targets),
    )


def _drop_unkept_levels(probabilities: Float32Array, table: TargetTable) -> Float32Array:
    """Return the distributions (components, categories) without the categories of levels that were not kept."""
    start = 0
    for one in table.categories.values():
        if isinstance(one, KeptLevelCategories):
            own = probabilities[:, start : start + one.size]
            own[:, one.others_code] = 0.0
            own /= own.sum(axis=1, keepdims=True)
        start += one.size
    return probabilities


def has_unprotected_categories(fit: Fit, schema: Schema, targets: tuple[str, ...], spec: MarginsSpec) -> bool:
    """Return whether categories come from the records without protection, as in fits of older versions."""
    found = {targets[int(name.partition("/")[2])] for name in fit.arrays if name.startswith(("levels/", "edges/"))}
    return not found >= set(undeclared_variables(schema, targets, spec.bins))


def _fit_protected_margins(table: TargetTable, codes: Integers, data: Microdata, spec: MarginsSpec, run: Run) -> Fit:
    """Protect the selected margins by rounding (or not at all), fit to them, and audit what follows from them."""
    domain = table.domain
    weights = _survey_weights(data) if spec.survey_weights else None

    def answer(clique: Clique) -> Floats:
        return domain.count_records(codes, clique, weights)

    counts = {clique: answer(clique) for clique in select_margins(table, answer, spec)}
    impossible = {clique: table.impossible_cells(clique) for clique in counts}
    protected = {clique: protect_counts(own, spec, impossible[clique]) for clique, own in counts.items()}
    for clique, own in protected.items():
        if not own.sum():
            names = " and ".join(table.variables_of_clique(clique))
            raise BadInput(
                "limit", f"every count of {names} is rounded to 0; use a smaller limit or coarser categories"
            )
    arrays: dict[str, NDArray[np.generic]] = {f"margin/{_clique_key(clique)}": own for clique, own in protected.items()}
    fitted, distance, how = _fit_model(table, protected, spec, run)
    kept = [total_variation(to_shares(counts[clique]), to_shares(protected[clique])) for clique in counts]
    said = [
        Diagnostic("margins", "all", float(len(counts))),
        Diagnostic("cells", "all", float(sum(own.size for own in counts.values()))),
        Diagnostic("cells_of_all_variables", how, float(domain.cell_count())),
        Diagnostic("largest_change_by_protection", "all", max(kept)),
        Diagnostic("largest_distance_of_the_fit", how, distance),
    ]
    if spec.effective_protection == "coarsened" and spec.audit and weights is None:
        released = [
            PublishedBounds.from_coarsened(clique, own, spec.limit, impossible[clique])
            for clique, own in protected.items()
        ]
        # A dataset with as many rows as records shows their number; without a release a reader may know it too.
        known = (float(len(data)), float(len(data))) if run.provenance is None else known_record_range([run.provenance])
        looked = audit_margins(domain, [*released, *table.known_zeros()], codes, spec.limit, known)
        arrays["audit"] = np.array([looked.exact + looked.undecided, looked.looked_at])
        said += _audit_diagnostics(looked, table)
    return Fit({**arrays, **fitted}, tuple(said), NoTrace(FITTED))


def _survey_weights(data: Microdata) -> Floats:
    """Return the survey weight of each record, (n,), with a mean of 1; 0 where it is missing."""
    (name,) = data.schema.names_by_role(Role.WEIGHT)
    found = np.nan_to_num(data.numbers(name))
    # A mean of 1 keeps the counts on the scale of records, which the limit is about.
    return np.asarray(found / found.mean())


def select_margins(table: TargetTable, answer: CountMargin, spec: MarginsSpec) -> tuple[Clique, ...]:
    """Select the margins of a release without noise; none is contained in another one."""
    domain = table.domain
    if spec.effective_selection == "given":
        return add_single_variables(domain, [table.clique_of_variables(one.columns) for one in spec.margins])
    if spec.effective_selection == "pairs":
        return add_single_variables(domain, domain.variable_pairs)
    if spec.effective_selection == "mst":
        told = {pair: total_correlation(answer(pair)) for pair in domain.variable_pairs}
        return add_single_variables(
            domain, choose_spanning_tree(domain, told, lambda pairs: max(pairs, key=told.__getitem__))
        )
    chosen = select_by_information(domain, answer, spec.cells, spec.ways)
    return add_single_variables(
        domain, [clique for clique in chosen if _share_left_by_protection(table, answer(clique), clique, spec) >= 0.5]
    )


def _share_left_by_protection(table: TargetTable, counts: Floats, clique: Clique, spec: MarginsSpec) -> float:
    """Return the share of the records of a margin that its protection leaves."""
    # Of many small counts rounding leaves hardly any, and such a margin would empty the fit.
    return float(protect_counts(counts, spec, table.impossible_cells(clique)).sum() / max(counts.sum(), 1.0))


def protect_counts(counts: Floats, spec: MarginsSpec, impossible: Booleans | None = None) -> Floats:
    """Return counts as they may be published: multiples of the limit, half a limit upwards; 0 in impossible cells."""
    # No released count separates 1 from 0. That rounding is to the nearest, and the direction of half a limit, are
    # ours: the paper's text was not available as a whole.
    found = counts if spec.effective_protection == "exact" else spec.limit * np.floor(counts / spec.limit + 0.5)
    return np.where(impossible, 0.0, found) if impossible is not None else found


def _fit_model(
    table: TargetTable, protected: Mapping[Clique, Floats], spec: MarginsSpec, run: Run
) -> tuple[dict[str, NDArray[np.generic]], float, str]:
    """Fit the model that records are drawn from.

    Returns its arrays, the largest distance of its margins from the protected ones, and its name.
    """
    domain = table.domain
    if domain.cell_count() <= LARGEST_TABLE:
        wanted = _consistent_shares(domain, protected)
        fitted = fit_joint_table(
            domain,
            wanted,
            table.impossible_cells(),
            note=lambda sweep: run.report(Progress(sweep, MAX_SWEEPS, "sweeps")),
        )
        if not fitted.table.sum():
            raise BadInput("impossible", "the conditions and the margins leave nothing to draw; check the conditions")
        return (
            {"joint": fitted.table.astype(np.float32)},
            _largest_distance(domain, protected, fitted.table),
            "joint table",
        )
    # Too many cells for one table: a junction tree holds the same distribution if its cliques are small enough, soft
    # records otherwise.
    tree = JunctionTree.from_margins(domain, list(protected))
    if tree.cell_count <= LARGEST_TABLE:
        wanted = _consistent_shares(domain, protected)
        along = tree.fit_margins(wanted)
        tables: dict[str, NDArray[np.generic]] = {
            f"clique/{_clique_key(c)}": own.astype(np.float32)
            for c, own in zip(tree.cliques, along.tables, strict=True)
        }
        return tables, along.distance, "junction tree"
    cells = sum(own.size for own in protected.values())
    model = SoftRecords.initialise(
        domain, component_count(domain, cells), run.rng, _single_variable_shares(domain, protected)
    )
    targets = [TargetMargin(clique, to_shares(own), 1.0) for clique, own in protected.items()]
    model.fit_targets(targets, SOFT_STEPS, note=lambda step: run.report(Progress(step + 1, SOFT_STEPS, "steps")))
    distance = max(total_variation(model.margin_shares(target.clique), target.table) for target in targets)
    # Softmax never reaches 0: a category with a protected count of 0 must not be drawn.
    found = model.component_shares() * (np.concatenate(_single_variable_shares(domain, protected)) > 0)
    return {"soft": found.astype(np.float32)}, distance, "soft records"


def _consistent_shares(domain: Domain, protected: Mapping[Clique, Floats]) -> dict[Clique, Floats]:
    """Return the protected margins as shares that agree with each other."""
    found = consistent_shares(domain, [MeasuredMargin(clique, own) for clique, own in protected.items()])
    # A count of 0 stays 0, so that nothing is drawn that no table shows.
    return {clique: to_shares(np.where(protected[clique] > 0, own, 0.0)) for clique, own in found.items()}


def _single_variable_shares(domain: Domain, protected: Mapping[Clique, Floats]) -> list[Floats]:
    """Return shares of each variable alone, from the first margin that has it."""
    found = []
    for at in range(len(domain)):
        clique = next(clique for clique in protected if at in clique)
        found.append(to_shares(margin_of(protected[clique], clique, (at,))))
    return found


def _largest_distance(domain: Domain, protected: Mapping[Clique, Floats], table: Floats) -> float:
    """Return the largest total variation of a protected margin from that of the joint table."""
    everything = tuple(range(len(domain)))
    return max(
        total_variation(margin_of(table, everything, clique), to_shares(own)) for clique, own in protected.items()
    )


def _audit_diagnostics(found: MarginAudit, table: TargetTable) -> Iterator[Diagnostic]:
    """Report how many small counts follow from the margins, and how many were not decided."""
    yield Diagnostic("small_counts_that_follow", "linear programs", float(found.exact), "at most 0", found.exact == 0)
    for variables, number in found.variables[:MOST_NAMED]:
        yield Diagnostic("small_counts_that_follow", " and ".join(table.variables_of_clique(variables)), float(number))
    yield Diagnostic(
        "small_counts_undecided", "linear programs", float(found.undecided), "at most 0", found.undecided == 0
    )
    yield Diagnostic("small_counts_looked_at", "linear programs", float(found.looked_at))
    yield Diagnostic("sets_of_variables_too_large_to_look_at", "linear programs", float(found.too_large))


NOISY = (
    Output(
        "noisy_mean",
        "mean in the population of the middles of the variable's bins, by noisy counts; its interval counts noise and sampling; for bins that "
        "noise found it also has room for where in them, and how far beyond their ends, numbers lie",
        "none",
        estimated=True,
        label=Label(
            "Mean of bins by noisy counts",
            "By noisy counts, the mean of {variable} is {value}, each number taken for the middle of its bin.",
        ),
    ),
    Output(
        "noisy_share",
        "share of a level in the population by noisy counts; its interval counts noise and sampling",
        "none",
        "share",
        range=SHARE,
        estimated=True,
        label=Label("Share by noisy counts", "By noisy counts, {variable} is {level} for {value} of the records."),
    ),
    Output(
        "noisy_pair_distance",
        "mean total variation of all pairs of variables between the confidential records and what is drawn, with noise that the budget has paid for",
        "low",
        "share",
        range=SHARE,
        estimated=True,
        statbarn="StatisticalHypothesisTests",
        label=Label(
            "Distance of pairs, with noise",
            "Joint distributions of two variables differ in {value} of the records on average, told with noise.",
            "Lower is better; 0 is the same joint distribution of every pair.",
            "Relations between two variables differ too much on average.",
            FIDELITY,
        ),
    ),
)


"""What a private fit says of the population and of itself."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MarginsSpec(Spec):
    """Settings of the margins, their protection, and how numbers become categories."""

    protection: Annotated[
        Protection | None,
        Param(
            "coarsened: counts rounded to a limit; gaussian: noise with an epsilon; exact: none, for tests. "
            "Default: gaussian where there is an epsilon, else coarsened"
        ),
    ] = None
    limit: Annotated[
        int,
        Param(
            "of coarsened: the smallest count that may be published; all counts become multiples of it",
            ge=3,
            search_values=SearchValues((3, 5, 10, 20, 30), is_guarantee=True),
        ),
    ] = 10
    epsilon: Annotated[
        float | None,
        Param(
            "of gaussian: differential privacy of the whole step, whatever the number of records and datasets",
            gt=0,
            le=10_000,
            search_values=SearchValues((0.1, 0.3, 1.0, 3.0, 10.0), larger_protects_more=False, is_guarantee=True),
        ),
    ] = None
    delta: Annotated[float, Param("of gaussian: the chance that the promise does not hold", gt=0, le=1e-5)] = (
        DEFAULT_DELTA
    )
    figures: Annotated[
        float,
        Param(
            "of gaussian: the share of the budget that pays for a public figure of how far pairs are off", ge=0, le=0.5
        ),
    ] = 0.0
    selection: Annotated[
        Selection | None,
        Param(
            "which margins: those given; all pairs; pairs by mutual information; a spanning tree (mst); where the model is worst (aim). "
            "Default: given where there are margins, else aim with noise, mutual_information without"
        ),
    ] = None
    margins: Annotated[
        tuple[MarginVariables, ...],
        # any order: a margin is counted when the step is fitted
        Param("the margins to keep, such as age : sex : income; each variable's own is always there", any_order=True),
    ] = ()
    cells: Annotated[
        int,
        Param(
            "of mutual_information: most cells of all margins together",
            ge=10,
            le=10_000_000,
            search_values=SearchValues((1_000, 3_000, 10_000, 30_000, 100_000), larger_protects_more=False),
        ),
    ] = 10_000
    ways: Annotated[int, Param("of mutual_information: most variables of one margin", ge=2, le=3)] = 2
    predictors: Annotated[
        tuple[str, ...],
        Param(
            "of records of drawn units: variables of the tables of each place besides the targets: of the unit, size, of an earlier step, first(x), previous(x), count(condition)",
            names="variables",
        ),
    ] = ()
    impossible: Annotated[
        tuple[StructuralZero, ...],
        # any order: a condition says which combinations can be, of no record which it has
        Param('combinations that cannot be, such as "age < 15 & income is present": no record has one', any_order=True),
    ] = ()
    bins: BinsByVariable = field(default_factory=dict)
    survey_weights: Annotated[
        bool, Param("count margins by the survey weight, as shares of the population; not with noise")
    ] = False
    audit: Annotated[bool, Param("of coarsened: look for small counts that follow exactly", changes_no_data=True)] = (
        True
    )

    def variables(self, targets: tuple[str, ...]) -> tuple[str, ...]:
        """Return the variables of its tables: predictors, then targets."""
        return (*self.predictors, *targets)

    def steady_seconds(self, variables: int) -> float:
        """Return the seconds of a fit of soft records, whatever the number of records.

        They are measured by ``tests/benchmarks/margins.py steady``.
        """
        return (
            SOFT_FIT_SECONDS * variables**2
            if self.effective_protection == "gaussian" or variables > FEW_VARIABLES
            else 0.0
        )

    @property
    def effective_protection(self) -> Protection:
        """Return the protection in effect: the given one or the default."""
        return self.protection or ("coarsened" if self.epsilon is None else "gaussian")

    @property
    def effective_selection(self) -> Selection:
        """Return the selection in effect: the given one or the default."""
        if self.selection is not None:
            return self.selection
        if self.margins:
            return "given"
        return "aim" if self.effective_protection == "gaussian" else "mutual_information"


def draft_offer(case: Case) -> Offer | DeclinedOffer | None:
    """Offer all variables from rounded tables, or from noisy ones where there is an epsilon to spend."""
    if case.want != "synthesis" or case.target is not None or case.kept_variables:
        return None
    bins = suggest_bins(case, case.released, as_they_are=case.epsilon is None)
    settings: dict[str, object] = {"bins": bins} if bins else {}
    numbers = "; numbers are drawn inside bins" if bins else ""
    learned = {name for name, rule in bins.items() if BinningRule.parse(rule).depends_on_data}
    if case.epsilon is None:
        limit = MarginsSpec().limit
        few = [
            name
            for name in case.released
            if case.table.records < limit * (DRAFTED_BINS if name in learned else case.table[name].distinct)
        ]
        if few:
            return DeclinedOffer(
                f"categories of {', '.join(few)} have fewer than {limit} records each on average, which no rounded table shows; make them coarser"
            )
        why = f"all variables are drawn from tables of two, whose counts are rounded to multiples of {limit}, and from nothing else"
        return Offer(f"{why}{numbers}", settings, ALTERNATIVE, missed=("Rounded counts are no differential privacy",))
    spec = MarginsSpec(epsilon=case.epsilon, bins={name: BinningRule.parse(rule) for name, rule in bins.items()})
    schema = Schema(tuple(case.table[name].variable for name in case.released))
    if open_to_noise := undeclared_variables(schema, case.released, spec.bins):
        rho = _privacy_budget(spec, schema, case.released).domain / len(open_to_noise)
        if case.table.records < FEWEST_RECORDS_FACTOR * level_threshold(
            sigma_of_rho(rho), spec.delta / len(open_to_noise)
        ):
            return DeclinedOffer(
                f"with an epsilon of {case.epsilon:g} noise hides levels and ranges of so few records; declare levels and bounds, or allow more epsilon"
            )
    why = f"all variables are drawn from tables with noise of epsilon {case.epsilon:g}, levels and ranges included, and from nothing else"
    return Offer(f"{why}{numbers}", {**settings, "epsilon": case.epsilon}, ALTERNATIVE)


def fit_uncertainty(spec: MarginsSpec, targets: tuple[str, ...], schema: Schema) -> FitUncertainty:
    """Return that all datasets are drawn from tables that were protected once."""
    if spec.effective_protection == "gaussian":
        return FitUncertainty("estimated", NOISE_IN_TABLES, undeclared_variables(schema, targets, spec.bins))
    return FitUncertainty(
        "estimated", "" if spec.effective_protection == "exact" else ROUNDED_TABLES.format(limit=spec.limit)
    )


@synthesis_method(
    "Protected margins",
    spec=MarginsSpec,
    source="Raab (2026) arXiv 2606.02101; McKenna et al. (2022) arXiv 2201.12677; METHODS section 9",
    joint_draw=joint_draw,
    targets=tuple(Kind),
    check=check_data,
    privacy=PrivacyDeclaration(
        account,
        publishable_tables=publishable_tables,
        fit_estimates=noisy_estimates,
        cells_of_records=margin_cells_of_records,
        implied_counts=audit_together,
        bounded_tables=bounded_margins,
        counts_units=True,
        draws_units=True,
    ),
    outputs=(*CONCENTRATED, *NOISY),
    fit_uncertainty=fit_uncertainty,
)
@drafts(draft_offer)
def margins(data: Microdata, targets: tuple[str, ...], spec: MarginsSpec, run: Run, draws: int) -> Fit:
    """Protect the margins, and fit to them.

    Arrays: ``levels/0`` and ``edges/1`` the levels and ends of bins that noise found, ``tails/1`` what may lie beyond them; ``pair_distance`` (2,) the paid
    figure and its noise; of drawn records all below once for each place, such as ``2/soft``; ``margin/0.3`` the table of targets 0 and 3; ``sigma/0.3`` (1,) its noise; ``groups/0`` the
    group of each category in noisy margins of several variables; ``audit`` (2,) how many small counts of coarsened ones
    may follow, of how many; and ``joint`` shares of all cells, ``clique/0.3`` of those of a tree, or ``soft``
    (components, categories).
    """
    if spec.effective_protection == "gaussian":
        return _fit_noisy_margins(data, targets, spec, run)
    table = TargetTable.from_data(data, targets, spec)
    return _fit_protected_margins(table, table.record_codes(data), data, spec, run)
