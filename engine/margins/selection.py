"""Selection of margins by mutual information, from the data without protection: what is chosen so has no epsilon.

The private choices, which pay for what they look at, are in ``sfumato.engine.margins.private``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from itertools import combinations

import numpy as np

from ..data.arrays import Floats
from .domain import Clique, Domain, as_clique, drop_contained

CountMargin = Callable[[Clique], Floats]
"""Function that returns the confidential counts of a margin."""


def total_correlation(table: Floats) -> float:
    """Return the total correlation of all axes of a table of counts, in nats."""
    total = table.sum()
    if total <= 0:
        return 0.0
    found = -_entropy_of_shares(table.ravel() / total)
    for axis in range(table.ndim):
        others = tuple(other for other in range(table.ndim) if other != axis)
        found += _entropy_of_shares(table.sum(axis=others) / total)
    return max(float(found), 0.0)


def _entropy_of_shares(shares: Floats) -> float:
    some = shares[shares > 0]
    return float(-(some * np.log(some)).sum())


def select_by_information(
    domain: Domain, answer: CountMargin, max_cells: int, max_variables: int = 2
) -> tuple[Clique, ...]:
    """Select margins by forward selection, as many as have ``max_cells`` cells together.

    They have up to ``max_variables`` variables. Each single variable is always selected. A pair is scored by its mutual
    information; three variables by what the table says beyond its three pairs, for triples whose pairs have been
    selected.
    """
    taken: list[Clique] = [(at,) for at in range(len(domain))]
    used = sum(domain.sizes)
    scores = {pair: _information_beyond_chance(answer(pair)) for pair in domain.variable_pairs}
    for pair in sorted(scores, key=lambda pair: -scores[pair]):
        if scores[pair] > 0 and used + domain.cell_count(pair) <= max_cells:
            taken.append(pair)
            used += domain.cell_count(pair)
    if max_variables >= 3:
        pairs = set(taken)
        triples = [t for t in combinations(range(len(domain)), 3) if all(p in pairs for p in combinations(t, 2))]
        gains = {t: _three_way_information(answer(t), [scores[p] for p in combinations(t, 2)]) for t in triples}
        for triple in sorted(gains, key=lambda triple: -gains[triple]):
            if gains[triple] > 0 and used + domain.cell_count(triple) <= max_cells:
                taken.append(triple)
                used += domain.cell_count(triple)
    return tuple(taken)


def _information_beyond_chance(table: Floats) -> float:
    # 2n times the information is about chi-squared with these degrees of freedom, so chance alone gives f / 2n.
    """Return the mutual information of a pair beyond what independent variables are expected to show."""
    freedom = np.prod([size - 1 for size in table.shape])
    return total_correlation(table) - float(freedom) / (2 * max(float(table.sum()), 1.0))


def _three_way_information(table: Floats, pairs: Sequence[float]) -> float:
    # The degrees of freedom of independence in a table of any number of axes.
    """Return the information of three variables beyond chance and beyond that of their ``pairs``."""
    freedom = table.size - sum(table.shape) + table.ndim - 1
    return total_correlation(table) - float(freedom) / (2 * max(float(table.sum()), 1.0)) - sum(pairs)


def choose_spanning_tree(
    domain: Domain, pairs: Collection[Clique], choose_pair: Callable[[Sequence[Clique]], Clique]
) -> tuple[Clique, ...]:
    """Return the pairs of a spanning tree over all variables, chosen one at a time by ``choose_pair`` (Kruskal
    1956).
    """
    component = list(range(len(domain)))
    taken: list[Clique] = []
    while len(taken) < len(domain) - 1:
        a, b = best = choose_pair([pair for pair in pairs if component[pair[0]] != component[pair[1]]])
        taken.append(best)
        component = [component[a] if one == component[b] else one for one in component]
    return tuple(taken)


def add_single_variables(domain: Domain, cliques: Sequence[Clique]) -> tuple[Clique, ...]:
    """Return the margins that are in no other one, and a single margin for each variable that none has."""
    covered = {at for clique in cliques for at in clique}
    singles = [(at,) for at in range(len(domain)) if at not in covered]
    return (*drop_contained([as_clique(clique) for clique in cliques]), *singles)
