"""Margins measured with noise, and chosen by choices that pay for what they look at: one budget in zero-concentrated privacy for all of it.

Every variable is measured alone first. Margins of two are then the given ones, all of them, those of a spanning tree (McKenna, Miklau & Sheldon
2021, MST), or those in which a model of what was measured so far is worst (McKenna et al. 2022, AIM; a tree where the noise leaves no more
readable): in each round some margins are chosen by the exponential mechanism with the score ||margin - model||_1 less what the noise would add,
which one record changes by 1, each at its share of the budget; they are measured, and the model is fitted to all measurements. The k largest of scores with independent Gumbel noise are k such choices
after each other (Durfee & Rogers 2019), so that a round needs one fit.

Rare categories of a variable, by its own noisy counts, are counted as one in all margins of several variables: cells that noise would drown. That
reads measurements alone, as does everything here but ``answer``.

How much single variables get, and when categories are rare and fits end, was set by looking at Adult; what choices get and how much noise is borne,
by the American Community Survey and simulated tables (``tests/benchmarks/margins.py others``). It follows from no theory. Among tables of a
kind the budget is divided so that all noise together is least: by their cells to the power of 2/3.

Noisy counts are rounded to whole numbers: the last bits of a sum of floating-point numbers would tell more of its parts than the noise hides
(Mironov 2012). Neighbours differ by one record, added or removed; where a record may have a weight, it is at most 1.
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
from .selection import Answer, spanning_tree
from .soft_records import Singles, SoftRecords, Target
from .zcdp import choice_epsilon, sigma_of

Choice = Literal["given", "pairs", "mst", "aim"]

ONES, CHOSEN, DOMAIN = 0.3, 0.05, 0.1
"""Shares of the budget: for the margins of single variables, for choosing, and for levels and ranges, taken first where any are looked for."""
RARE = 1.5
"""A category is rare whose noisy count is below so many standard deviations of the noise in a cell."""
BORNE = 0.2
"""The share of a table that noise may displace on average where the number of margins is chosen."""
PENALTY = 0.5
"""Of the noise of a margin, the part that a fit leaves: what a choice subtracts."""
FLOOR = 0.5
"""Times the noise of all categories of a variable, as a share of the records, squared: the share that is spread evenly over them."""
ROUNDS = 6
ENOUGH = 0.9
"""The weighted sum of squares for each cell at which a fit ends; the noise alone would leave 1."""


@dataclass(frozen=True, slots=True)
class Budget:
    """What the measurements may cost: ``ones`` for single variables, ``several`` for margins of several, ``chosen`` for choosing them,
    ``domain`` for levels and ranges that are looked for before, ``figures`` for what is said of the fit after.
    """

    ones: float
    several: float
    chosen: float
    domain: float = 0.0
    figures: float = 0.0

    @classmethod
    def of(cls, rho: float, variables: int, choice: Choice, domain: bool = False, figures: float = 0.0) -> Budget:
        """How a total is divided, ``figures`` a share of it: by the recipe alone."""
        told = figures * rho
        found = DOMAIN * (rho - told) if domain else 0.0
        rho -= told + found
        if variables == 1:
            return cls(rho, 0.0, 0.0, found, told)
        chosen = CHOSEN * rho if choice in ("mst", "aim") else 0.0
        return cls(ONES * rho, rho - ONES * rho - chosen, chosen, found, told)

    @property
    def noise(self) -> float:
        """What tables with noise cost: two of their cells change where a record is another one."""
        return self.ones + self.several + self.domain

    @property
    def told(self) -> float:
        """What sums of distances cost, scores and figures: they change by 2 where a record is another one."""
        return self.chosen + self.figures

    @property
    def total(self) -> float:
        return self.noise + self.told


@dataclass(frozen=True, eq=False)
class NoisyMargin:
    """A margin as it was measured: counts with noise of ``sigma`` in each cell; ``grouped`` by the groups of rare categories."""

    clique: Clique
    table: Floats
    sigma: float
    grouped: bool


@dataclass(frozen=True, eq=False)
class Measurements:
    """All that was measured, and the model of it. ``total`` is the noisy number of records; ``floor`` (variables,) the share spread evenly."""

    domain: Domain
    margins: tuple[NoisyMargin, ...]
    groups: tuple[Integers, ...]
    total: float
    floor: tuple[float, ...]
    model: SoftRecords


def measure(
    domain: Domain,
    answer: Answer,
    budget: Budget,
    choice: Choice,
    rng: np.random.Generator,
    given: Sequence[Clique] = (),
    components: int = 800,
    steps: int = 600,
    note: Callable[[int, int], None] = lambda done, total: None,
) -> Measurements:
    """Measure margins within a budget. Of the records nothing is read but ``answer``, with noise or by a paid choice."""
    sigmas = [sigma_of(part) for part in divided(budget.ones, domain.sizes)]
    ones = [_noisy(answer((at,)), sigma, rng) for at, sigma in enumerate(sigmas)]
    precision = [1 / (size * sigma**2) for size, sigma in zip(domain.sizes, sigmas, strict=True)]
    total = max(float(np.average([table.sum() for table in ones], weights=precision)), 1.0)
    singles = [nearest_shares(table / total) for table in ones]
    floor = tuple(
        min(1.0, (FLOOR * size * sigma / total) ** 2) for size, sigma in zip(domain.sizes, sigmas, strict=True)
    )
    margins = [
        NoisyMargin((at,), table, sigma, grouped=False)
        for at, (table, sigma) in enumerate(zip(ones, sigmas, strict=True))
    ]
    wanted = [clique for clique in given if len(clique) > 1] if choice == "given" else list(domain.pairs)
    pairs = _pairs_to_measure(domain, singles, total, budget, choice, len(wanted))
    unchosen = budget.chosen if choice == "aim" and pairs == len(wanted) else 0.0
    noise = sigma_of((budget.several + unchosen) / max(pairs, 1)) if budget.several else math.inf
    groups = tuple(_groups(own, noise / total) for own in singles)
    start = [(1 - share) * own + share / len(own) for own, share in zip(singles, floor, strict=True)]
    model = SoftRecords.start(domain, components, rng, start, groups)
    found = Measurements(domain, tuple(margins), groups, total, floor, model)
    _fit(found, steps // 10)
    if not pairs:
        return found
    if choice == "aim" and pairs < len(wanted) and pairs == len(domain) - 1:
        choice = "mst"
    rounds = _rounds(wanted, pairs, choice)
    each = choice_epsilon(budget.chosen / pairs) if budget.chosen else math.inf
    for number, size in enumerate(rounds):
        note(number, len(rounds))
        picked = _picked(found, answer, wanted, size, each, noise, choice, rng)
        wanted = [clique for clique in wanted if clique not in picked]
        tables = [grouped_table(answer(clique), clique, groups) for clique in picked]
        costs = divided((budget.several + unchosen) * len(picked) / pairs, [table.size for table in tables])
        for clique, table, cost in zip(picked, tables, costs, strict=True):
            margins.append(NoisyMargin(clique, _noisy(table, sigma_of(cost), rng), sigma_of(cost), grouped=True))
        found = Measurements(domain, tuple(margins), groups, total, floor, model)
        _fit(found, steps if number == len(rounds) - 1 else steps // 6)
    return found


def divided(rho: float, cells: Sequence[int]) -> list[float]:
    """A cost divided over tables of so many cells so that all noise together is least: by cells to the power of 2/3 (Lagrange's multipliers)."""
    parts = [count ** (2 / 3) for count in cells]
    return [rho * part / sum(parts) for part in parts]


def _fit(found: Measurements, steps: int) -> None:
    cells = sum(one.table.size for one in found.margins)
    found.model.fit(targets_of(found), steps, enough=ENOUGH * cells)


def _noisy(table: Floats, sigma: float, rng: np.random.Generator) -> Floats:
    return np.rint(table + rng.normal(0.0, sigma, table.shape))


def noisy_distance(
    domain: Domain,
    answer: Answer,
    probabilities: Singles,
    total: float,
    rho: float,
    rng: np.random.Generator,
) -> tuple[float, float]:
    """The mean total variation of all pairs between the records and what is drawn from components, at a cost of ``rho``; and its noise.

    Of each pair half of the sum of |count - share * total| / total: a record more changes that by 1 / (2 total), and their mean as much.
    """
    ends = np.cumsum(domain.sizes)
    places = [slice(int(end - size), int(end)) for end, size in zip(ends, domain.sizes, strict=True)]
    drawn = probabilities.astype(np.float64)
    every = drawn.T @ drawn / len(drawn)
    apart = [float(np.abs(answer((a, b)) / total - every[places[a], places[b]]).sum()) / 2 for a, b in domain.pairs]
    sigma = sigma_of(rho, 1 / (2 * total))
    return float(np.mean(apart) + rng.normal(0.0, sigma)), sigma


def _pairs_to_measure(
    domain: Domain, singles: Sequence[Floats], total: float, budget: Budget, choice: Choice, candidates: int
) -> int:
    """How many margins of several variables are measured: all that are asked for, a tree's, or as many as noise leaves readable."""
    if not budget.several or candidates == 0:
        return 0
    if choice != "aim":
        return len(domain) - 1 if choice == "mst" else candidates
    fewest = min(len(domain) - 1, candidates)
    for count in range(candidates, fewest, -1):
        noise = sigma_of(budget.several / count)
        sizes = [int(_groups(own, noise / total).max()) + 1 for own in singles]
        cells = np.mean([sizes[a] * sizes[b] for a, b in domain.pairs])
        if noise * math.sqrt(2 / math.pi) * cells / (2 * total) <= BORNE:
            return count
    return fewest


def _groups(shares: Floats, noise: float) -> Integers:
    """The group of each category: those that are not rare have one each, all rare ones share the last."""
    rare = shares < RARE * noise
    if rare.all():
        return np.zeros(len(shares), dtype=np.int64)
    found = np.cumsum(~rare) - 1
    return np.where(rare, int((~rare).sum()), found).astype(np.int64)


def grouped_table(table: Floats, clique: Clique, groups: Sequence[Integers]) -> Floats:
    """A margin with its categories summed by group along each axis."""
    for axis, at in enumerate(clique):
        size = int(groups[at].max()) + 1
        summed = np.zeros((*table.shape[:axis], size, *table.shape[axis + 1 :]))
        np.add.at(np.moveaxis(summed, axis, 0), groups[at], np.moveaxis(table, axis, 0))
        table = summed
    return table


def targets_of(measured: Measurements) -> list[Target]:
    """The measurements as shares, with their precision."""
    total = measured.total
    return [Target(one.clique, one.table / total, (total / one.sigma) ** 2, one.grouped) for one in measured.margins]


def _rounds(wanted: Sequence[Clique], pairs: int, choice: Choice) -> list[int]:
    """How many margins each round measures."""
    if choice != "aim" or pairs >= len(wanted):
        return [pairs]
    sizes = [len(part) for part in np.array_split(np.arange(pairs), min(ROUNDS, pairs))]
    return [size for size in sizes if size]


def _picked(
    found: Measurements,
    answer: Answer,
    wanted: Sequence[Clique],
    size: int,
    epsilon: float,
    noise: float,
    choice: Choice,
    rng: np.random.Generator,
) -> list[Clique]:
    """The margins that a round measures: all that are wanted, or so many by the exponential mechanism at ``epsilon`` each."""
    if size >= len(wanted):
        return list(wanted)
    scores = {}
    for clique in wanted:
        model = grouped_table(found.model.margin(clique), clique, found.groups) * found.total
        apart = float(np.abs(grouped_table(answer(clique), clique, found.groups) - model).sum())
        scores[clique] = apart - PENALTY * math.sqrt(2 / math.pi) * noise * model.size
    if choice == "mst":
        return list(_private_tree(found.domain, scores, epsilon, rng))
    gumbel = rng.gumbel(0.0, 2 / epsilon, len(scores))
    noisy = {clique: score + own for (clique, score), own in zip(scores.items(), gumbel, strict=True)}
    return sorted(noisy, key=lambda clique: -noisy[clique])[:size]


def _private_tree(
    domain: Domain, scores: dict[Clique, float], epsilon: float, rng: np.random.Generator
) -> tuple[Clique, ...]:
    """A spanning tree whose every edge is chosen by the exponential mechanism among those that join two parts."""

    def chosen(pairs: Sequence[Clique]) -> Clique:
        gumbel = rng.gumbel(0.0, 2 / epsilon, len(pairs))
        return max(zip(pairs, gumbel, strict=True), key=lambda item: scores[item[0]] + item[1])[0]

    return spanning_tree(domain, scores, chosen)
