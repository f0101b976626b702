"""Records drawn from margins, and from nothing else: tables of few variables that were protected before anything was fitted to them.

``coarsened`` (Raab 2026, arXiv 2606.02101): each count is rounded to the nearest multiple of a limit, so that no released count separates 1 from 0; what
a reader can work out all the same, a linear program looks for. Which way counts just at half a limit go, and that the rounding is to the nearest, are
ours: the paper's text was not to be read whole. ``gaussian``: each count has noise whose cost is accounted for in zero-concentrated differential privacy,
the choice of margins included (McKenna, Miklau & Sheldon 2021; McKenna et al. 2022). ``exact`` protects nothing and is for tests.

Estimation reads the protected margins alone. Up to 10^7 cells the joint table is fitted from a uniform start; beyond that a junction tree, where its
cliques are small enough; else, and for noisy margins, soft records. Records are drawn within rounding of what was fitted.

Where the recipe leaves levels, ranges or cut points open, noise finds them too, at a part of the budget (``sfumato.engine.design.noisy_categories``).
With a ``unit`` no person or household is counted with more records than the recipe says.

How it could mislead: relations that no margin lists are not kept, however real the records look; the fit lists what is kept. How it could be
abused: a margin of many variables is a copy of the table, which rounding to a limit of 1 would release; limits are 3 at least, and a margin has
5 variables at most. Rounding is no differential privacy: differences of two releases of almost the same people can show single counts.
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
from ..data.schema import Kind, Role, Schema
from ..design.binning import Binning
from ..design.categories import BinsByVariable, Categories, check_bins
from ..design.finer_categories import finer, groups_of
from ..design.noisy_categories import KeptLevels, needs_levels, noisy_categories, read_back, stored, undeclared
from ..design.structural_zeros import Impossible
from ..errors import BadInput, NotComputable
from ..margins.consistency import Measured, agreeing
from ..margins.domain import Clique, Domain, as_clique, margin_of, shares, total_variation
from ..margins.drawing import draw_cells
from ..margins.intervals import LEVEL, estimate
from ..margins.joint_table import LARGEST_TABLE, SWEEPS, fit_joint
from ..margins.junction_tree import FittedTree, JunctionTree
from ..margins.linear_bounds import Audit, Released, audit, known_records
from ..margins.private import Budget, Choice, measure, noisy_distance
from ..margins.private_domain import level_threshold
from ..margins.selection import Answer, by_information, information, spanning_tree, with_singles
from ..margins.soft_records import Singles, SoftRecords, Target, components_for, drawn_softly
from ..margins.zcdp import DELTA, rho_at, sigma_of
from ..methods.approved_tables import ApprovedTable
from ..methods.drafting import ALTERNATIVE, DRAFTED_BINS, Case, Declined, Offer, bins_for, drafts
from ..methods.levers import FIDELITY
from ..methods.outputs import Label, Output
from ..methods.privacy import CONCENTRATED, Concentrated, NoAccount, PrivacyAccount
from ..methods.registry import synthesis_method
from ..methods.results import Diagnostic, Estimate, Fit, NoTrace
from ..methods.run import Progress, Run
from ..methods.spec import LeverValues, Param, Spec
from ..partition.equivalence_classes import equivalence_classes

FITTED = "margins are fitted, not sampled"
Protection = Literal["coarsened", "gaussian", "exact"]
Selection = Literal["given", "pairs", "mutual_information", "mst", "aim"]
MOST_VARIABLES = 5
"""Variables of one margin."""
LARGEST_MARGIN = 1_000_000
"""Cells of one margin."""
SOFT_STEPS = 600
LEVELS = 0.5
"""The part of delta that finding levels takes, where the recipe leaves some open."""
STEADY, FEW_VARIABLES = 0.015, 8
"""Processor seconds of a fit of soft records, times the square of the number of variables; of so few variables rounded tables have a joint table."""
TRIES = 100
"""Times that records are drawn again which have an impossible combination."""


OF_BINS = "each number is taken for the middle of its bin, which the interval says nothing of"
MOST_SHARES = 20
"""Levels of a variable whose shares are told."""
MOST_NAMED = 5
"""Sets of variables that are named of those whose small counts follow."""

FEW = 4
"""Times the count at which a level is kept, below which records are too few for a draft."""


@dataclass(frozen=True, slots=True)
class Together:
    """The variables of one margin, as a recipe writes them: ``age : sex : income``."""

    columns: tuple[str, ...]

    @classmethod
    def parse(cls, value: object) -> Together:
        """From a recipe's text. Raises ValueError; the message shows the form."""
        if isinstance(value, Together):
            return value
        names = tuple(part.strip() for part in value.split(":")) if isinstance(value, str) else ()
        if not names or not all(names) or len(set(names)) < len(names) or len(names) > MOST_VARIABLES:
            raise ValueError(
                f"{value!r} is no margin: write 1 to {MOST_VARIABLES} different variables, such as age : sex : income"
            )
        return cls(names)

    @property
    def written(self) -> str:
        """The form that a recipe carries."""
        return " : ".join(self.columns)


@dataclass(frozen=True, eq=False)
class Table:
    """The categories of the targets, in their order, and the domain that they span."""

    categories: Mapping[str, Categories]
    domain: Domain
    conditions: tuple[Booleans, ...]

    @classmethod
    def of(
        cls,
        data: Microdata,
        targets: tuple[str, ...],
        spec: MarginsSpec,
        place: str = "",
        arrays: Mapping[str, NDArray[np.generic]] | None = None,
    ) -> Table:
        """By the recipe's declarations, and by what a fit with these ``arrays`` found. Raises BadInput where a condition does not suit them."""
        categories = read_back(arrays or {}, targets, data, spec.bins)
        sizes = {name: one.size for name, one in categories.items()}
        conditions = tuple(
            one.levels(categories, sizes, data, f"{place}.impossible[{i}]") for i, one in enumerate(spec.impossible)
        )
        return cls(categories, Domain(tuple(sizes.values())), conditions)

    def codes(self, data: Microdata) -> Integers:
        """The category of every record in each target, (n, targets)."""
        return np.column_stack([one.codes(data) for one in self.categories.values()])

    def clique(self, names: Sequence[str]) -> Clique:
        places = {name: at for at, name in enumerate(self.categories)}
        return as_clique([places[name] for name in names])

    def names(self, clique: Clique) -> tuple[str, ...]:
        every = tuple(self.categories)
        return tuple(every[at] for at in clique)

    def impossible(self, clique: Clique | None = None) -> Booleans | None:
        """Which cells of the joint table cannot be, or of a margin; None where no condition says."""
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

    def known_zeros(self) -> Iterator[Released]:
        """What the conditions say of counts, each of its own variables: a reader who knows the subject knows that no record has such values."""
        for levels in self.conditions:
            parts = np.split(levels, np.cumsum(self.domain.sizes)[:-1])
            clique = tuple(at for at, part in enumerate(parts) if not part.all())
            if clique and self.domain.cells(clique) <= LARGEST_MARGIN:
                cells = np.ones(self.domain.shape(clique), dtype=np.bool_)
                for axis, at in enumerate(clique):
                    cells &= parts[at].reshape([-1 if other == axis else 1 for other in range(len(clique))])
                yield Released.impossible(clique, cells)

    def fulfils(self, codes: Integers) -> Booleans:
        """Which records (n, targets) have an impossible combination."""
        found = np.zeros(len(codes), dtype=np.bool_)
        for levels in self.conditions:
            parts = np.split(levels, np.cumsum(self.domain.sizes)[:-1])
            found |= np.all([part[codes[:, at]] for at, part in enumerate(parts)], axis=0)
        return found


def check(data: Microdata, targets: tuple[str, ...], spec: MarginsSpec, place: str) -> None:
    """BadInput where settings contradict each other, a number is not cut, or a margin is too large."""
    private = spec.protected_by == "gaussian"
    if private and spec.epsilon is None:
        raise BadInput(f"{place}.epsilon", "noise needs an epsilon; give one, or use protection = coarsened")
    if not private and spec.epsilon is not None:
        raise BadInput(f"{place}.epsilon", 'only noise has an epsilon; add protection = "gaussian", or leave it out')
    if spec.chosen == "given" and not spec.margins:
        raise BadInput(f"{place}.margins", "name the margins, or choose another selection")
    if spec.margins and spec.chosen != "given":
        raise BadInput(
            f"{place}.margins", f"the selection {spec.chosen} finds its own margins; leave one of the two out"
        )
    if private and spec.chosen == "mutual_information":
        raise BadInput(
            f"{place}.selection", "mutual information is read without noise; use aim, mst, pairs or given margins"
        )
    if private and spec.survey_weights:
        raise BadInput(f"{place}.survey_weights", "a weight has no bound that noise could hide; leave one of them out")
    if not private and spec.chosen == "aim":
        raise BadInput(f"{place}.selection", "aim chooses by noisy margins; use mutual_information, mst or pairs")
    if spec.survey_weights and not data.schema.of_role(Role.WEIGHT):
        raise BadInput(f"{place}.survey_weights", "no variable is the survey weight; give one the role weight")
    if not private and (spec.unit is not None or spec.figures):
        name = "unit" if spec.unit is not None else "figures"
        raise BadInput(f"{place}.{name}", "it belongs to noise; give an epsilon, or leave it out")
    check_bins(data, targets, spec.bins, place)
    open_to_noise = undeclared(data.schema, targets, spec.bins) if private else ()
    for i, condition in enumerate(spec.impossible):
        if unknown := [name for name in condition.columns if name in open_to_noise]:
            raise BadInput(
                f"{place}.impossible[{i}]",
                f'noise finds the levels and bins of "{unknown[0]}", and a condition has to know them before; declare them, or leave it out',
            )
    for i, one in enumerate(spec.margins):
        for name in one.columns:
            if name not in targets:
                data.schema.require(name, f"{place}.margins[{i}]")
                raise BadInput(f"{place}.margins[{i}]", f'"{name}" is no target of this step')
    table = Table.of(data, targets, spec, place)
    for i, one in enumerate(spec.margins):
        cells = table.domain.cells(table.clique(one.columns))
        if cells > LARGEST_MARGIN and not set(one.columns) & set(open_to_noise):
            raise BadInput(
                f"{place}.margins[{i}]",
                f"{cells:,} cells are more than {LARGEST_MARGIN:,}; use fewer or coarser variables",
            )
    if spec.impossible:
        for i, levels in enumerate(table.conditions):
            if Table(table.categories, table.domain, (levels,)).fulfils(table.codes(data)).any():
                raise BadInput(
                    f"{place}.impossible[{i}]",
                    f"records of the data are like that ({spec.impossible[i].written}); correct them, or leave the condition out",
                )


def account(
    data: Microdata, targets: tuple[str, ...], spec: MarginsSpec, records: int, datasets: int
) -> PrivacyAccount | NoAccount:
    """What the noise and the choices cost together: datasets and records are drawn from what was measured once."""
    if spec.protected_by != "gaussian" or spec.epsilon is None:
        return NoAccount("rounded counts are no differential privacy: they have no epsilon")
    failed = spec.delta - _delta_of_noise(spec, data.schema, targets)
    rho = rho_at(spec.epsilon, spec.delta - failed)
    budget = _budget(spec, data.schema, targets)
    share = (2 * budget.noise + 4 * budget.told) / budget.total
    parts = {
        "single variables": budget.ones,
        "several variables": budget.several,
        "choices": budget.chosen,
        "levels and ranges": budget.domain,
        "public figures": budget.figures,
    }
    cost = Concentrated(
        rho,
        rho * share,
        spec.delta,
        failed,
        {what: own / budget.total * rho for what, own in parts.items()},
        spec.person_records,
        spec.unit is not None,
        gaussian=not (budget.chosen or budget.domain or budget.figures),
    )
    return PrivacyAccount.of_rho(cost, (), spec.epsilon)


def _choice(spec: MarginsSpec) -> Choice:
    assert spec.chosen != "mutual_information"
    return spec.chosen


def _delta_of_noise(spec: MarginsSpec, schema: Schema, targets: Sequence[str]) -> float:
    """What levels that noise has to find leave of delta."""
    return spec.delta * (1 - LEVELS) if any(needs_levels(schema, name) for name in targets) else spec.delta


def _budget(spec: MarginsSpec, schema: Schema, targets: tuple[str, ...]) -> Budget:
    """What the mechanism may spend: a person of c records moves a count by c, which costs c^2."""
    assert spec.epsilon is not None
    rho = rho_at(spec.epsilon, _delta_of_noise(spec, schema, targets)) / spec.person_records**2
    domain = bool(undeclared(schema, targets, spec.bins))
    return Budget.of(rho, len(targets), _choice(spec), domain, spec.figures)


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
    """A dataset of ``records`` records; those with an impossible combination are drawn again."""
    table = Table.of(confidential, targets, spec, arrays=fit.arrays)
    codes = drawn_codes(fit, table, records, rng)
    for _ in range(TRIES):
        wrong = np.flatnonzero(table.fulfils(codes))
        if not len(wrong):
            break
        codes[wrong] = drawn_codes(fit, table, max(len(wrong), 50), rng)[: len(wrong)]
    else:
        raise NotComputable(
            "most records would have an impossible combination; add the margin that the conditions speak of"
        )
    return {
        name: one.values(codes[:, at], confidential, "uniform", rng)
        for at, (name, one) in enumerate(table.categories.items())
    }


def drawn_codes(fit: Fit, table: Table, records: int, rng: np.random.Generator) -> Integers:
    """Categories (records, targets) from what was fitted."""
    if "soft" in fit.arrays:
        return drawn_softly(table.domain, np.asarray(fit.arrays["soft"]), records, rng)
    if "joint" in fit.arrays:
        return np.column_stack(draw_cells(np.asarray(fit.arrays["joint"], dtype=np.float64), records, rng))
    tree = JunctionTree.of(table.domain, list(margins_of(fit)))
    tables = tuple(np.asarray(fit.arrays[f"clique/{_name(clique)}"], dtype=np.float64) for clique in tree.cliques)
    codes = FittedTree(tree, tables, 0, 0.0).drawn(records, rng)
    return codes[rng.permutation(records)]


def _name(clique: Clique) -> str:
    return ".".join(map(str, clique))


def margins_of(fit: Fit) -> dict[Clique, Floats]:
    """The protected margins of a fit, in the order in which they were chosen; grouped ones by the groups of ``groups/``."""
    names = [name.removeprefix("margin/") for name in fit.arrays if name.startswith("margin/")]
    return {tuple(map(int, name.split("."))): np.asarray(fit.arrays[f"margin/{name}"]) for name in names}


def approved(fit: Fit, spec: MarginsSpec, targets: tuple[str, ...], data: Microdata) -> tuple[ApprovedTable, ...]:
    """The protected margins with their categories: none that are exact, or where small counts follow or were not looked for."""
    table = Table.of(data, targets, spec, arrays=fit.arrays)
    noisy = spec.protected_by == "gaussian"
    if spec.protected_by == "exact" or (noisy and learned_without_noise(fit, data.schema, targets, spec)):
        return ()
    if not noisy and ("audit" not in fit.arrays or fit.arrays["audit"][0] > 0):
        return ()
    found = []
    for clique, counts in margins_of(fit).items():
        grouped = noisy and len(clique) > 1
        labels = tuple(
            _grouped_labels(one, np.asarray(fit.arrays[f"groups/{at}"])) if grouped else one
            for at, one in ((at, _labels(table.categories[targets[at]], data)) for at in clique)
        )
        noise = float(fit.arrays[f"sigma/{_name(clique)}"][0]) if noisy else 0.0
        found.append(ApprovedTable(table.names(clique), labels, counts, 0 if noisy else spec.limit, noise))
    return tuple(found)


def follows_together(
    fits: Sequence[tuple[Fit, MarginsSpec, tuple[str, ...]]], data: Microdata, records: tuple[float, float]
) -> Audit | None:
    """Audit all rounded tables of some fits to the same records as one system, over categories that are fine enough for each of them.

    Counts below the largest of the limits are small, in each release's own categories and in the finer ones. Noisy tables say nothing exactly.
    The sets of variables of the result are places in its ``names``.

    Args:
        fits: each with its settings and its targets.
        data: the confidential records.
        records: smallest and largest number of records that a reader can know of.
    """
    rounded = [
        (Table.of(data, targets, spec), fit, spec)
        for fit, spec, targets in fits
        if spec.protected_by == "coarsened" and not spec.survey_weights
    ]
    if not rounded:
        return None
    by_name: dict[str, list[Categories]] = {}
    for table, _, _ in rounded:
        for name, one in table.categories.items():
            by_name.setdefault(name, []).append(one)
    fine = {name: finer(several) for name, several in by_name.items()}
    names = tuple(fine)
    whole = Table(fine, Domain(tuple(one.size for one in fine.values())), ())
    released = []
    for table, fit, spec in rounded:
        own = [
            Released.coarsened(clique, counts, spec.limit, table.impossible(clique))
            for clique, counts in margins_of(fit).items()
        ]
        for bounds in [*own, *table.known_zeros()]:
            variables = table.names(bounds.clique)
            order = np.argsort([names.index(name) for name in variables])
            groups = tuple(groups_of(fine[variables[at]], table.categories[variables[at]]) for at in order)
            low, high = np.transpose(bounds.low, order), np.transpose(bounds.high, order)
            released.append(Released(whole.clique(variables), low, high, groups))
    limit = max(spec.limit for _, _, spec in rounded)
    return replace(audit(whole.domain, released, whole.codes(data), limit, records), names=names)


def noisy_figures(fit: Fit, spec: MarginsSpec, targets: tuple[str, ...], data: Microdata) -> tuple[Estimate, ...]:
    """Means of numbers and shares of levels by the noisy counts, for the population that the records are a sample of; and the figure that was paid for.

    Numbers count as the middle of their bin, and the rows say so. All is computed from what was measured: it costs nothing more. Where a person has
    several records, they are taken as if they were of different people.
    """
    if spec.protected_by != "gaussian" or learned_without_noise(fit, data.schema, targets, spec):
        return ()
    table = Table.of(data, targets, spec, arrays=fit.arrays)
    tables = margins_of(fit)
    ones = [Measured((at,), tables[(at,)], float(fit.arrays[f"sigma/{at}"][0])) for at in range(len(targets))]
    found: list[Estimate] = []
    for at, (name, one) in enumerate(table.categories.items()):
        here = np.arange(one.size) < one.present
        if len(one.edges):
            last = one.edges[1:] - one.whole * (np.arange(one.present) < one.present - 1)
            middles = np.append((one.edges[:-1] + last) / 2, [0.0] * one.gaps)
            mean = _noisy_mean(table.domain, ones, at, "noisy_mean", middles, here, name, {})
            ends = (
                "; those beyond the ends that noise found count in the outermost bins"
                if f"edges/{at}" in fit.arrays
                else ""
            )
            found.append(replace(mean, reason=f"{OF_BINS}{ends}") if mean.value is not None else mean)
        elif one.present <= MOST_SHARES:
            found += [
                _noisy_mean(
                    table.domain, ones, at, "noisy_share", np.arange(one.size) == place, here, name, {"level": text}
                )
                for place, text in enumerate(one.texts(data))
            ]
    if "pair_distance" in fit.arrays:
        value, sigma = map(float, fit.arrays["pair_distance"])
        half = float(ndtri((1 + LEVEL) / 2)) * sigma
        low, high = (min(max(end, 0.0), 1.0) for end in (value - half, value + half))
        found.append(Estimate("noisy_pair_distance", min(max(value, 0.0), 1.0), lower=low, upper=high, unit="share"))
    return tuple(found)


def _noisy_mean(
    domain: Domain,
    ones: Sequence[Measured],
    at: int,
    measure: str,
    values: NDArray[np.generic],
    here: Booleans,
    name: str,
    params: Mapping[str, str],
) -> Estimate:
    own = np.asarray(values, dtype=np.float64)
    try:
        found = estimate(domain, ones, (at,), own, among=here.astype(np.float64))
    except ZeroDivisionError as error:
        return Estimate.not_computed(measure, str(error), name, **params)
    low, high = own[here].min(), own[here].max()
    value, lower, upper = (float(np.clip(one, low, high)) for one in (found.value, found.lower, found.upper))
    unit = "share" if params else ""
    return Estimate(measure, value, name, lower, upper, unit=unit, params=dict(params))


def located(fit: Fit, spec: MarginsSpec, targets: tuple[str, ...], data: Microdata) -> tuple[Integers, ...]:
    """The cell of each record in each protected margin, (n,) each, by the groups of rare categories where it has them."""
    codes = Table.of(data, targets, spec, arrays=fit.arrays).codes(data)
    noisy, found = spec.protected_by == "gaussian", []
    for clique, counts in margins_of(fit).items():
        grouped = noisy and len(clique) > 1
        own = [np.asarray(fit.arrays[f"groups/{at}"])[codes[:, at]] if grouped else codes[:, at] for at in clique]
        found.append(np.ravel_multi_index(tuple(own), counts.shape))
    return tuple(found)


def _labels(categories: Categories, data: Microdata) -> tuple[str, ...]:
    """The categories of a variable in words: levels, intervals that are closed below, and missing."""
    edges = categories.edges
    if not len(edges):
        texts = list(categories.texts(data))
    else:
        ends = [_end(edge, categories) for edge in edges]
        texts = [f"[{low}, {high})" for low, high in pairwise(ends)]
        texts[-1] = texts[-1].replace(")", "]")
    return (*texts, "(missing)") if categories.gaps else tuple(texts)


def _end(edge: float, categories: Categories) -> str:
    if categories.variable.kind is Kind.DATE:
        return str(np.datetime64(int(edge), "D"))
    return f"{edge:g}"


def _grouped_labels(labels: tuple[str, ...], groups: Integers) -> tuple[str, ...]:
    """One text a group: that of its category, or how many categories it has."""
    found = []
    for group in range(int(groups.max()) + 1):
        own = [label for label, at in zip(labels, groups, strict=True) if at == group]
        found.append(own[0] if len(own) == 1 else f"(others: {', '.join(own)})")
    return tuple(found)


def _private(data: Microdata, targets: tuple[str, ...], spec: MarginsSpec, run: Run) -> Fit:
    budget = _budget(spec, data.schema, targets)
    counted = counted_records(data, spec, run.rng)
    arrays: dict[str, NDArray[np.generic]] = _found_domain(data, targets, spec, budget, counted, run.rng)
    table = Table.of(data, targets, spec, arrays=arrays)
    codes = table.codes(data)[counted]
    domain = table.domain
    cliques = with_singles(domain, [table.clique(one.columns) for one in spec.margins])
    for clique in cliques:
        if domain.cells(clique) > LARGEST_MARGIN:
            raise BadInput(
                "bins",
                f"the margin of {' and '.join(table.names(clique))} has more than {LARGEST_MARGIN:,} cells; use coarser ones",
            )
    found = measure(
        domain,
        lambda clique: domain.count(codes, clique),
        budget,
        _choice(spec),
        run.rng,
        cliques,
        steps=SOFT_STEPS,
        note=lambda done, total: run.report(Progress(done, total, "rounds")),
    )
    for one in found.margins:
        arrays[f"margin/{_name(one.clique)}"] = one.table
        arrays[f"sigma/{_name(one.clique)}"] = np.array([one.sigma])
    arrays |= {f"groups/{at}": own for at, own in enumerate(found.groups)}
    arrays["soft"] = _without_others(found.model.smoothed(found.floor), table)
    if budget.figures and len(domain) > 1:
        told = noisy_distance(
            domain,
            lambda clique: domain.count(codes, clique),
            np.asarray(arrays["soft"], dtype=np.float32),
            found.total,
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
    said += _units_said(spec, counted)
    return Fit(arrays, tuple(said), NoTrace(FITTED))


def _found_domain(
    data: Microdata,
    targets: tuple[str, ...],
    spec: MarginsSpec,
    budget: Budget,
    counted: Booleans,
    rng: np.random.Generator,
) -> dict[str, NDArray[np.generic]]:
    """The levels and ends of bins that the recipe leaves open, found with their part of the budget."""
    names = undeclared(data.schema, targets, spec.bins)
    of_levels = sum(needs_levels(data.schema, name) for name in names)
    delta = LEVELS * spec.delta / max(of_levels, 1)
    return stored(
        {
            name: noisy_categories(
                data, name, spec.bins.get(name), budget.domain / len(names), delta, rng, spec.person_records, counted
            )
            for name in names
        },
        targets,
    )


def counted_records(data: Microdata, spec: MarginsSpec, rng: np.random.Generator) -> Booleans:
    """Which records (n,) take part: all, or of each unit as many as the recipe says one has, at random.

    Records without a unit are taken for those of one unit: nothing says that they are not.
    """
    if spec.unit is None:
        return np.ones(len(data), dtype=np.bool_)
    unit = equivalence_classes([data.column(spec.unit)], len(data))
    order = rng.permutation(len(data))
    by_unit = order[np.argsort(unit[order], kind="stable")]
    starts = np.flatnonzero(np.diff(unit[by_unit], prepend=-1))
    place = np.arange(len(data)) - np.repeat(starts, np.diff(np.append(starts, len(data))))
    found = np.zeros(len(data), dtype=np.bool_)
    found[by_unit[place < spec.person_records]] = True
    return found


def _units_said(spec: MarginsSpec, counted: Booleans) -> Iterator[Diagnostic]:
    """How many records were left out so that nobody has more than was said; where nothing could be looked at, that."""
    if spec.unit is not None:
        yield Diagnostic("records_beyond_those_of_a_unit", spec.unit, float((~counted).sum()))
    elif spec.person_records > 1:
        yield Diagnostic("records_of_a_unit_not_checked", "no variable is named as unit", float(spec.person_records))


def _without_others(probabilities: Singles, table: Table) -> Singles:
    """The distributions (components, categories) without the categories of levels that were not kept."""
    start = 0
    for one in table.categories.values():
        if isinstance(one, KeptLevels):
            own = probabilities[:, start : start + one.size]
            own[:, one.others] = 0.0
            own /= own.sum(axis=1, keepdims=True)
        start += one.size
    return probabilities


def learned_without_noise(fit: Fit, schema: Schema, targets: tuple[str, ...], spec: MarginsSpec) -> bool:
    """Whether categories come from the records as they are: fits of older versions."""
    found = {targets[int(name.partition("/")[2])] for name in fit.arrays if name.startswith(("levels/", "edges/"))}
    return not found >= set(undeclared(schema, targets, spec.bins))


def _approved(table: Table, codes: Integers, data: Microdata, spec: MarginsSpec, run: Run) -> Fit:
    domain = table.domain
    weights = _survey_weights(data) if spec.survey_weights else None

    def answer(clique: Clique) -> Floats:
        return domain.count(codes, clique, weights)

    counts = {clique: answer(clique) for clique in selected(table, answer, spec)}
    impossible = {clique: table.impossible(clique) for clique in counts}
    protected = {clique: protected_table(own, spec, impossible[clique]) for clique, own in counts.items()}
    for clique, own in protected.items():
        if not own.sum():
            names = " and ".join(table.names(clique))
            raise BadInput(
                "limit", f"every count of {names} is rounded to 0; use a smaller limit or coarser categories"
            )
    arrays: dict[str, NDArray[np.generic]] = {f"margin/{_name(clique)}": own for clique, own in protected.items()}
    fitted, distance, how = _fitted(table, protected, spec, run)
    kept = [total_variation(shares(counts[clique]), shares(protected[clique])) for clique in counts]
    said = [
        Diagnostic("margins", "all", float(len(counts))),
        Diagnostic("cells", "all", float(sum(own.size for own in counts.values()))),
        Diagnostic("cells_of_all_variables", how, float(domain.cells())),
        Diagnostic("largest_change_by_protection", "all", max(kept)),
        Diagnostic("largest_distance_of_the_fit", how, distance),
    ]
    if spec.protected_by == "coarsened" and spec.audit and weights is None:
        released = [
            Released.coarsened(clique, own, spec.limit, impossible[clique]) for clique, own in protected.items()
        ]
        known = known_records(len(data), [run.records])
        looked = audit(domain, [*released, *table.known_zeros()], codes, spec.limit, known)
        arrays["audit"] = np.array([looked.exact + looked.undecided, looked.looked_at])
        said += _audit_said(looked, table)
    return Fit({**arrays, **fitted}, tuple(said), NoTrace(FITTED))


def _survey_weights(data: Microdata) -> Floats:
    """The survey weight of each record, (n,), with a mean of 1; 0 where it is missing."""
    (name,) = data.schema.of_role(Role.WEIGHT)
    found = np.nan_to_num(data.numbers(name))
    return np.asarray(found / found.mean())


def selected(table: Table, answer: Answer, spec: MarginsSpec) -> tuple[Clique, ...]:
    """The margins of a release without noise, each in no other one."""
    domain = table.domain
    if spec.chosen == "given":
        return with_singles(domain, [table.clique(one.columns) for one in spec.margins])
    if spec.chosen == "pairs":
        return with_singles(domain, domain.pairs)
    if spec.chosen == "mst":
        told = {pair: information(answer(pair)) for pair in domain.pairs}
        return with_singles(domain, spanning_tree(domain, told, lambda pairs: max(pairs, key=told.__getitem__)))
    chosen = by_information(domain, answer, spec.cells, spec.ways)
    return with_singles(domain, [clique for clique in chosen if _left(table, answer(clique), clique, spec) >= 0.5])


def _left(table: Table, counts: Floats, clique: Clique, spec: MarginsSpec) -> float:
    """The share of the records of a margin that its protection leaves: of many small counts hardly any."""
    return float(protected_table(counts, spec, table.impossible(clique)).sum() / max(counts.sum(), 1.0))


def protected_table(counts: Floats, spec: MarginsSpec, impossible: Booleans | None = None) -> Floats:
    """Counts as they may be published: multiples of the limit, half of it upwards; cells that cannot be stay 0."""
    found = counts if spec.protected_by == "exact" else spec.limit * np.floor(counts / spec.limit + 0.5)
    return np.where(impossible, 0.0, found) if impossible is not None else found


def _fitted(
    table: Table, protected: Mapping[Clique, Floats], spec: MarginsSpec, run: Run
) -> tuple[dict[str, NDArray[np.generic]], float, str]:
    """What records are drawn from, how far its margins are from the protected ones at most, and what it is."""
    domain = table.domain
    if domain.cells() <= LARGEST_TABLE:
        wanted = _agreed(domain, protected)
        fitted = fit_joint(
            domain, wanted, table.impossible(), note=lambda sweep: run.report(Progress(sweep, SWEEPS, "sweeps"))
        )
        if not fitted.table.sum():
            raise BadInput("impossible", "the conditions and the margins leave nothing to draw; check the conditions")
        return {"joint": fitted.table.astype(np.float32)}, _farthest(domain, protected, fitted.table), "joint table"
    tree = JunctionTree.of(domain, list(protected))
    if tree.cells <= LARGEST_TABLE:
        wanted = _agreed(domain, protected)
        along = tree.fitted(wanted)
        tables: dict[str, NDArray[np.generic]] = {
            f"clique/{_name(c)}": own.astype(np.float32) for c, own in zip(tree.cliques, along.tables, strict=True)
        }
        return tables, along.distance, "junction tree"
    cells = sum(own.size for own in protected.values())
    model = SoftRecords.start(domain, components_for(domain, cells), run.rng, _singles(domain, protected))
    targets = [Target(clique, shares(own), 1.0) for clique, own in protected.items()]
    model.fit(targets, SOFT_STEPS, note=lambda step: run.report(Progress(step + 1, SOFT_STEPS, "steps")))
    distance = max(total_variation(model.margin(target.clique), target.table) for target in targets)
    found = model.probabilities() * (np.concatenate(_singles(domain, protected)) > 0)
    return {"soft": found.astype(np.float32)}, distance, "soft records"


def _agreed(domain: Domain, protected: Mapping[Clique, Floats]) -> dict[Clique, Floats]:
    """Shares of the protected margins, made to agree; a count of 0 stays 0, so that nothing is drawn that no table shows."""
    found = agreeing(domain, [Measured(clique, own) for clique, own in protected.items()])
    return {clique: shares(np.where(protected[clique] > 0, own, 0.0)) for clique, own in found.items()}


def _singles(domain: Domain, protected: Mapping[Clique, Floats]) -> list[Floats]:
    """Shares of each variable alone, by the first margin that has it."""
    found = []
    for at in range(len(domain)):
        clique = next(clique for clique in protected if at in clique)
        found.append(shares(margin_of(protected[clique], clique, (at,))))
    return found


def _farthest(domain: Domain, protected: Mapping[Clique, Floats], table: Floats) -> float:
    everything = tuple(range(len(domain)))
    return max(total_variation(margin_of(table, everything, clique), shares(own)) for clique, own in protected.items())


def _audit_said(found: Audit, table: Table) -> Iterator[Diagnostic]:
    yield Diagnostic("small_counts_that_follow", "linear programs", float(found.exact), "at most 0", found.exact == 0)
    for variables, number in found.variables[:MOST_NAMED]:
        yield Diagnostic("small_counts_that_follow", " and ".join(table.names(variables)), float(number))
    yield Diagnostic(
        "small_counts_undecided", "linear programs", float(found.undecided), "at most 0", found.undecided == 0
    )
    yield Diagnostic("small_counts_looked_at", "linear programs", float(found.looked_at))
    yield Diagnostic("sets_of_variables_too_large_to_look_at", "linear programs", float(found.too_large))


NOISY = (
    Output(
        "noisy_mean",
        "mean in the population of the middles of the variable's bins, by noisy counts; its interval counts noise and sampling, and nothing of "
        "where in their bins numbers lie",
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
    """Which margins, how they are protected, and how numbers become categories."""

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
            lever=LeverValues((3, 5, 10, 20, 30), guarantee=True),
        ),
    ] = 10
    epsilon: Annotated[
        float | None,
        Param(
            "of gaussian: differential privacy of the whole step, whatever the number of records and datasets",
            gt=0,
            le=10_000,
            lever=LeverValues((0.1, 0.3, 1.0, 3.0, 10.0), rising=False, guarantee=True),
        ),
    ] = None
    delta: Annotated[float, Param("of gaussian: the chance that the promise does not hold", gt=0, le=1e-5)] = DELTA
    person_records: Annotated[
        int, Param("of gaussian: most records that one protected person or household has", ge=1, le=1000)
    ] = 1
    unit: Annotated[
        str | None,
        # any order: it says whose a record is, and nothing of it is drawn
        Param(
            "of gaussian: the variable that says whose a record is; of each person or household person_records records are counted, taken at random",
            names="variables",
            any_order=True,
        ),
    ] = None
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
        tuple[Together, ...],
        # any order: a margin is counted when the step is fitted
        Param("the margins to keep, such as age : sex : income; each variable's own is always there", any_order=True),
    ] = ()
    cells: Annotated[
        int,
        Param(
            "of mutual_information: most cells of all margins together",
            ge=10,
            le=10_000_000,
            lever=LeverValues((1_000, 3_000, 10_000, 30_000, 100_000), rising=False),
        ),
    ] = 10_000
    ways: Annotated[int, Param("of mutual_information: most variables of one margin", ge=2, le=3)] = 2
    impossible: Annotated[
        tuple[Impossible, ...],
        # any order: a condition says which combinations can be, of no record which it has
        Param('combinations that cannot be, such as "age < 15 & income is present": no record has one', any_order=True),
    ] = ()
    bins: BinsByVariable = field(default_factory=dict)
    survey_weights: Annotated[
        bool, Param("count margins by the survey weight, as shares of the population; not with noise")
    ] = False
    audit: Annotated[bool, Param("of coarsened: look for small counts that follow exactly", beside=True)] = True

    def steady_seconds(self, variables: int) -> float:
        """Soft records are fitted whatever the number of records: ``tests/benchmarks/margins.py steady``."""
        return STEADY * variables**2 if self.protected_by == "gaussian" or variables > FEW_VARIABLES else 0.0

    @property
    def units(self) -> tuple[str, ...]:
        return () if self.unit is None else (self.unit,)

    @property
    def protected_by(self) -> Protection:
        """The protection that holds."""
        return self.protection or ("coarsened" if self.epsilon is None else "gaussian")

    @property
    def chosen(self) -> Selection:
        """The selection that holds."""
        if self.selection is not None:
            return self.selection
        if self.margins:
            return "given"
        return "aim" if self.protected_by == "gaussian" else "mutual_information"


def offer(case: Case) -> Offer | Declined | None:
    """All variables from rounded tables, or from noisy ones where there is an epsilon to spend."""
    if case.want != "synthesis" or case.target is not None or case.kept:
        return None
    bins = bins_for(case, case.released, as_they_are=case.epsilon is None)
    settings: dict[str, object] = {"bins": bins} if bins else {}
    numbers = "; numbers are drawn inside bins" if bins else ""
    learned = {name for name, rule in bins.items() if Binning.parse(rule).learned}
    if case.epsilon is None:
        limit = MarginsSpec().limit
        few = [
            name
            for name in case.released
            if case.table.records < limit * (DRAFTED_BINS if name in learned else case.table[name].distinct)
        ]
        if few:
            return Declined(
                f"categories of {', '.join(few)} have fewer than {limit} records each on average, which no rounded table shows; make them coarser"
            )
        why = f"all variables are drawn from tables of two, whose counts are rounded to multiples of {limit}, and from nothing else"
        return Offer(f"{why}{numbers}", settings, ALTERNATIVE, missed=("Rounded counts are no differential privacy",))
    spec = MarginsSpec(epsilon=case.epsilon, bins={name: Binning.parse(rule) for name, rule in bins.items()})
    schema = Schema(tuple(case.table[name].variable for name in case.released))
    if open_to_noise := undeclared(schema, case.released, spec.bins):
        rho = _budget(spec, schema, case.released).domain / len(open_to_noise)
        if case.table.records < FEW * level_threshold(sigma_of(rho), spec.delta / len(open_to_noise)):
            return Declined(
                f"with an epsilon of {case.epsilon:g} noise hides levels and ranges of so few records; declare levels and bounds, or allow more epsilon"
            )
    why = f"all variables are drawn from tables with noise of epsilon {case.epsilon:g}, levels and ranges included, and from nothing else"
    return Offer(f"{why}{numbers}", {**settings, "epsilon": case.epsilon}, ALTERNATIVE)


@synthesis_method(
    "Protected margins",
    spec=MarginsSpec,
    source="Raab (2026) arXiv 2606.02101; McKenna et al. (2022) arXiv 2201.12677; METHODS section 9",
    joint_draw=joint_draw,
    targets=tuple(Kind),
    check=check,
    account=account,
    approved=approved,
    said=noisy_figures,
    located=located,
    follows=follows_together,
    outputs=(*CONCENTRATED, *NOISY),
)
@drafts(offer)
def margins(data: Microdata, targets: tuple[str, ...], spec: MarginsSpec, run: Run, draws: int) -> Fit:
    """The protected margins and what was fitted to them.

    Arrays: ``levels/0`` and ``edges/1`` the levels and ends of bins that noise found; ``pair_distance`` (2,) the paid figure and its noise; ``margin/0.3`` the table of targets 0 and 3; ``sigma/0.3`` (1,) its noise; ``groups/0`` the group of each category in noisy margins of
    several variables; ``audit`` (2,) how many small counts of coarsened ones may follow, of how many; and ``joint`` shares of all cells, ``clique/0.3`` of those of a tree, or ``soft`` (components, categories).
    """
    if spec.protected_by == "gaussian":
        return _private(data, targets, spec, run)
    table = Table.of(data, targets, spec)
    return _approved(table, table.codes(data), data, spec, run)
