"""Margins measured with noise and chosen at a cost, within one budget of differential privacy.

Every variable is measured alone first. Margins of two are then the given ones, all of them, those of a spanning tree
(McKenna, Miklau & Sheldon 2021, MST), or those in which a model of the margins measured so far is worst (McKenna et al.
2022, AIM; a tree where the noise leaves no more readable): in each round some margins are chosen by the exponential
mechanism, each at its share of the budget; they are measured, and the model is fitted to all measurements.

Rare categories of a variable, by its own noisy counts, are counted as one in all margins of several variables: cells
that noise would drown. That reads measurements alone, as does everything here but ``answer``. Neighbours differ by one
record, added or removed; where a record may have a weight, it is at most 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ..data.arrays import Floats, Integers
from .consistency import nearest_shares
from .domain import Clique, Domain
from .selection import CountMargin, choose_spanning_tree
from .soft_records import Float32Array, SoftRecords, TargetMargin
from .zcdp import epsilon_of_choice, sigma_of_rho

MarginChoice = Literal["given", "pairs", "mst", "aim"]

# No theory gives these: the share of single variables was set on Adult, that of choices on the American Community
# Survey and simulated tables (``tests/benchmarks/margins.py others``).
SINGLES_SHARE, CHOICE_SHARE, DOMAIN_SHARE = 0.3, 0.05, 0.1
"""Shares of the budget: for the margins of single variables, for choosing, and for levels and ranges, taken first where
any are looked for.
"""
# Set on Adult, as is FIT_TARGET.
RARE = 1.5
"""Noisy count below which a category is rare, in standard deviations of the noise in a cell."""
# Set on the American Community Survey and simulated tables.
BORNE = 0.2
"""The share of a table that noise may displace on average where the number of margins is chosen."""
NOISE_PENALTY = 0.5
"""Of the noise of a margin, the part that a fit leaves: what a choice subtracts."""
FLOOR = 0.5
"""Times the noise of all categories of a variable, as a share of the records, squared: the share that is spread evenly
over them.
"""
ROUNDS = 6
FIT_TARGET = 0.9
"""The weighted sum of squares for each cell at which a fit ends; the noise alone would leave 1."""


@dataclass(frozen=True, slots=True)
class PrivacyBudget:
    """Costs in rho of the parts of a measurement.

    single_margins: margins of single variables
    joint_margins: margins of several variables
    choices: choosing these
    domain: levels and ranges that are looked for before
    figures: figures of the fit after
    """

    single_margins: float
    joint_margins: float
    choices: float
    domain: float = 0.0
    figures: float = 0.0

    @classmethod
    def from_total(
        cls, rho: float, variables: int, choice: MarginChoice, domain: bool = False, figures: float = 0.0
    ) -> PrivacyBudget:
        """Divide a total by the recipe alone, without the data; ``figures`` is a share of it."""
        told = figures * rho
        found = DOMAIN_SHARE * (rho - told) if domain else 0.0
        rho -= told + found
        if variables == 1:
            return cls(rho, 0.0, 0.0, found, told)
        chosen = CHOICE_SHARE * rho if choice in ("mst", "aim") else 0.0
        return cls(SINGLES_SHARE * rho, rho - SINGLES_SHARE * rho - chosen, chosen, found, told)

    @property
    def tables_cost(self) -> float:
        """Return the cost of tables with noise: two of their cells change where a record is replaced."""
        return self.single_margins + self.joint_margins + self.domain

    @property
    def distances_cost(self) -> float:
        """Return the cost of sums of distances, scores and figures: they change by 2 where a record is replaced."""
        return self.choices + self.figures

    @property
    def total_cost(self) -> float:
        return self.tables_cost + self.distances_cost


@dataclass(frozen=True, eq=False)
class NoisyMargin:
    """Margin as it was measured.

    clique: its variables
    table: counts with noise
    sigma: standard deviation of the noise in each cell
    is_grouped: whether its categories are the groups of rare ones
    """

    clique: Clique
    table: Floats
    sigma: float
    is_grouped: bool


@dataclass(frozen=True, eq=False)
class MarginMeasurements:
    """All measurements, and the model that is fitted to them.

    domain: categories of each variable
    margins: noisy margins
    groups: group of each category, for each variable
    record_count: noisy number of records
    even_shares: share of each variable that is spread evenly, (variables,)
    model: model that is fitted to the margins
    """

    domain: Domain
    margins: tuple[NoisyMargin, ...]
    groups: tuple[Integers, ...]
    record_count: float
    even_shares: tuple[float, ...]
    model: SoftRecords


def measure_margins(
    domain: Domain,
    answer: CountMargin,
    budget: PrivacyBudget,
    choice: MarginChoice,
    rng: np.random.Generator,
    given: Sequence[Clique] = (),
    components: int = 800,
    steps: int = 600,
    note: Callable[[int, int], None] = lambda done, total: None,
) -> MarginMeasurements:
    """Measure margins within a budget, and fit a model to them.

    Nothing is read of the records but ``answer``, with noise or by a paid choice.
    """
    sigmas = [sigma_of_rho(part) for part in divide_cost(budget.single_margins, domain.sizes)]
    ones = [_add_noise(answer((at,)), sigma, rng) for at, sigma in enumerate(sigmas)]
    precision = [1 / (size * sigma**2) for size, sigma in zip(domain.sizes, sigmas, strict=True)]
    total = max(float(np.average([table.sum() for table in ones], weights=precision)), 1.0)
    singles = [nearest_shares(table / total) for table in ones]
    floor = tuple(
        min(1.0, (FLOOR * size * sigma / total) ** 2) for size, sigma in zip(domain.sizes, sigmas, strict=True)
    )
    margins = [
        NoisyMargin((at,), table, sigma, is_grouped=False)
        for at, (table, sigma) in enumerate(zip(ones, sigmas, strict=True))
    ]
    wanted = [clique for clique in given if len(clique) > 1] if choice == "given" else list(domain.variable_pairs)
    pairs = _margins_to_measure(domain, singles, total, budget, choice, len(wanted))
    # Where all candidates are measured, nothing is chosen, and that part of the budget goes to the tables.
    unchosen = budget.choices if choice == "aim" and pairs == len(wanted) else 0.0
    noise = sigma_of_rho((budget.joint_margins + unchosen) / max(pairs, 1)) if budget.joint_margins else math.inf
    groups = tuple(_group_rare(own, noise / total) for own in singles)
    start = [(1 - share) * own + share / len(own) for own, share in zip(singles, floor, strict=True)]
    model = SoftRecords.initialise(domain, components, rng, start, groups)
    found = MarginMeasurements(domain, tuple(margins), groups, total, floor, model)
    _fit_model(found, steps // 10)
    if not pairs:
        return found
    # The noise leaves only a tree readable: a spanning tree then connects all variables with that many margins.
    if choice == "aim" and pairs < len(wanted) and pairs == len(domain) - 1:
        choice = "mst"
    rounds = _round_sizes(wanted, pairs, choice)
    each = epsilon_of_choice(budget.choices / pairs) if budget.choices else math.inf
    for number, size in enumerate(rounds):
        note(number, len(rounds))
        picked = _choose_margins(found, answer, wanted, size, each, noise, choice, rng)
        wanted = [clique for clique in wanted if clique not in picked]
        tables = [sum_by_group(answer(clique), clique, groups) for clique in picked]
        costs = divide_cost((budget.joint_margins + unchosen) * len(picked) / pairs, [table.size for table in tables])
        for clique, table, cost in zip(picked, tables, costs, strict=True):
            margins.append(
                NoisyMargin(clique, _add_noise(table, sigma_of_rho(cost), rng), sigma_of_rho(cost), is_grouped=True)
            )
        found = MarginMeasurements(domain, tuple(margins), groups, total, floor, model)
        _fit_model(found, steps if number == len(rounds) - 1 else steps // 6)
    return found


def divide_cost(rho: float, cells: Sequence[int]) -> list[float]:
    """Divide a cost over tables with these numbers of cells so that the total noise is least."""
    # By Lagrange's multipliers: a table of m cells has m / sqrt(cost) of noise.
    parts = [count ** (2 / 3) for count in cells]
    return [rho * part / sum(parts) for part in parts]


def _fit_model(found: MarginMeasurements, steps: int) -> None:
    """Fit the model to the measurements, until it is as close as their noise allows."""
    cells = sum(one.table.size for one in found.margins)
    found.model.fit_targets(target_margins(found), steps, enough=FIT_TARGET * cells)


def _add_noise(table: Floats, sigma: float, rng: np.random.Generator) -> Floats:
    # Rounded: the last bits of a sum of floating-point numbers would tell more of its parts than the noise hides
    # (Mironov 2012).
    return np.rint(table + rng.normal(0.0, sigma, table.shape))


def noisy_distance(
    domain: Domain,
    answer: CountMargin,
    probabilities: Float32Array,
    total: float,
    rho: float,
    rng: np.random.Generator,
) -> tuple[float, float]:
    """Measure the mean total variation of all pairs between records and components; return it and its noise.

    The cost is ``rho``. Of each pair it is half of the sum of |count - share * total| / total, with the noisy
    ``total``.
    """
    ends = np.cumsum(domain.sizes)
    places = [slice(int(end - size), int(end)) for end, size in zip(ends, domain.sizes, strict=True)]
    drawn = probabilities.astype(np.float64)
    every = drawn.T @ drawn / len(drawn)
    apart = [
        float(np.abs(answer((a, b)) / total - every[places[a], places[b]]).sum()) / 2 for a, b in domain.variable_pairs
    ]
    # A record more changes one count of each pair by 1, each distance by 1 / (2 total), and their mean as much.
    sigma = sigma_of_rho(rho, 1 / (2 * total))
    return float(np.mean(apart) + rng.normal(0.0, sigma)), sigma


def _margins_to_measure(
    domain: Domain,
    singles: Sequence[Floats],
    total: float,
    budget: PrivacyBudget,
    choice: MarginChoice,
    candidates: int,
) -> int:
    """Return the number of margins of several variables to measure.

    These are all requested ones, those of a tree, or as many as noise leaves readable.
    """
    if not budget.joint_margins or candidates == 0:
        return 0
    if choice != "aim":
        return len(domain) - 1 if choice == "mst" else candidates
    fewest = min(len(domain) - 1, candidates)
    for count in range(candidates, fewest, -1):
        noise = sigma_of_rho(budget.joint_margins / count)
        sizes = [int(_group_rare(own, noise / total).max()) + 1 for own in singles]
        cells = np.mean([sizes[a] * sizes[b] for a, b in domain.variable_pairs])
        # The mean absolute value of normal noise is sigma sqrt(2 / pi).
        if noise * math.sqrt(2 / math.pi) * cells / (2 * total) <= BORNE:
            return count
    return fewest


def _group_rare(shares: Floats, noise: float) -> Integers:
    """Return the group of each category: one for each common category, and the last one for all rare ones."""
    rare = shares < RARE * noise
    if rare.all():
        return np.zeros(len(shares), dtype=np.int64)
    found = np.cumsum(~rare) - 1
    return np.where(rare, int((~rare).sum()), found).astype(np.int64)


def sum_by_group(table: Floats, clique: Clique, groups: Sequence[Integers]) -> Floats:
    """Sum the categories of a margin by group along each axis."""
    for axis, at in enumerate(clique):
        size = int(groups[at].max()) + 1
        summed = np.zeros((*table.shape[:axis], size, *table.shape[axis + 1 :]))
        np.add.at(np.moveaxis(summed, axis, 0), groups[at], np.moveaxis(table, axis, 0))
        table = summed
    return table


def target_margins(measured: MarginMeasurements) -> list[TargetMargin]:
    """Return the measurements as shares with the precision of a cell."""
    total = measured.record_count
    return [
        TargetMargin(one.clique, one.table / total, (total / one.sigma) ** 2, one.is_grouped)
        for one in measured.margins
    ]


def _round_sizes(wanted: Sequence[Clique], pairs: int, choice: MarginChoice) -> list[int]:
    """Return the number of margins that each round measures."""
    if choice != "aim" or pairs >= len(wanted):
        return [pairs]
    sizes = [len(part) for part in np.array_split(np.arange(pairs), min(ROUNDS, pairs))]
    return [size for size in sizes if size]


def _choose_margins(
    found: MarginMeasurements,
    answer: CountMargin,
    wanted: Sequence[Clique],
    size: int,
    epsilon: float,
    noise: float,
    choice: MarginChoice,
    rng: np.random.Generator,
) -> list[Clique]:
    """Choose the margins that a round measures: all, or ``size`` of them by the exponential mechanism.

    Each choice is made at ``epsilon``.
    """
    if size >= len(wanted):
        return list(wanted)
    scores = {}
    for clique in wanted:
        model = sum_by_group(found.model.margin_shares(clique), clique, found.groups) * found.record_count
        apart = float(np.abs(sum_by_group(answer(clique), clique, found.groups) - model).sum())
        # AIM's score: ||margin - model||_1 less what the noise would add. One record changes it by 1.
        scores[clique] = apart - NOISE_PENALTY * math.sqrt(2 / math.pi) * noise * model.size
    if choice == "mst":
        return list(_choose_tree(found.domain, scores, epsilon, rng))
    # The k largest of scores with independent Gumbel noise are k such choices one after the other (Durfee & Rogers
    # 2019), so that a round needs one fit.
    gumbel = rng.gumbel(0.0, 2 / epsilon, len(scores))
    noisy = {clique: score + own for (clique, score), own in zip(scores.items(), gumbel, strict=True)}
    return sorted(noisy, key=lambda clique: -noisy[clique])[:size]


def _choose_tree(
    domain: Domain, scores: dict[Clique, float], epsilon: float, rng: np.random.Generator
) -> tuple[Clique, ...]:
    """Choose a spanning tree, each edge by the exponential mechanism among those that join two components."""

    def choose_edge(pairs: Sequence[Clique]) -> Clique:
        gumbel = rng.gumbel(0.0, 2 / epsilon, len(pairs))
        return max(zip(pairs, gumbel, strict=True), key=lambda item: scores[item[0]] + item[1])[0]

    return choose_spanning_tree(domain, scores, choose_edge)
