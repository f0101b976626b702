"""Which margins are worth their cells: by mutual information, as the data are. What is chosen so has no epsilon.

The private choices, which pay for what they look at, are in ``sfumato.engine.margins.private``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from itertools import combinations

import numpy as np

from ..data.arrays import Floats
from .domain import Clique, Domain, as_clique, without_contained

Answer = Callable[[Clique], Floats]
"""The confidential counts of a margin."""


def information(table: Floats) -> float:
    """Mutual information, in nats, of all axes of a table of counts beyond independence (total correlation)."""
    total = table.sum()
    if total <= 0:
        return 0.0
    found = -_entropy(table.ravel() / total)
    for axis in range(table.ndim):
        others = tuple(other for other in range(table.ndim) if other != axis)
        found += _entropy(table.sum(axis=others) / total)
    return max(float(found), 0.0)


def _entropy(shares: Floats) -> float:
    some = shares[shares > 0]
    return float(-(some * np.log(some)).sum())


def by_information(domain: Domain, answer: Answer, cells: int, ways: int = 2) -> tuple[Clique, ...]:
    """Margins of up to ``ways`` variables, by forward selection, as many as have ``cells`` cells together; each variable's own always.

    A pair is scored by its mutual information; of three variables by what the table says beyond its three pairs, for triples whose pairs
    have been taken. Chance alone gives a table with f degrees of freedom f / 2n, which is subtracted.
    """
    taken: list[Clique] = [(at,) for at in range(len(domain))]
    used = sum(domain.sizes)
    scores = {pair: _beyond_chance(answer(pair)) for pair in domain.pairs}
    for pair in sorted(scores, key=lambda pair: -scores[pair]):
        if scores[pair] > 0 and used + domain.cells(pair) <= cells:
            taken.append(pair)
            used += domain.cells(pair)
    if ways >= 3:
        pairs = set(taken)
        triples = [t for t in combinations(range(len(domain)), 3) if all(p in pairs for p in combinations(t, 2))]
        gains = {t: _three_way(answer(t), [scores[p] for p in combinations(t, 2)]) for t in triples}
        for triple in sorted(gains, key=lambda triple: -gains[triple]):
            if gains[triple] > 0 and used + domain.cells(triple) <= cells:
                taken.append(triple)
                used += domain.cells(triple)
    return tuple(taken)


def _beyond_chance(table: Floats) -> float:
    freedom = np.prod([size - 1 for size in table.shape])
    return information(table) - float(freedom) / (2 * max(float(table.sum()), 1.0))


def _three_way(table: Floats, pairs: Sequence[float]) -> float:
    freedom = table.size - sum(table.shape) + table.ndim - 1
    return information(table) - float(freedom) / (2 * max(float(table.sum()), 1.0)) - sum(pairs)


def spanning_tree(
    domain: Domain, pairs: Collection[Clique], chosen: Callable[[Sequence[Clique]], Clique]
) -> tuple[Clique, ...]:
    """The pairs of a tree over all variables, one after the other ``chosen`` among those that join two parts of it (Kruskal 1956)."""
    component = list(range(len(domain)))
    taken: list[Clique] = []
    while len(taken) < len(domain) - 1:
        a, b = best = chosen([pair for pair in pairs if component[pair[0]] != component[pair[1]]])
        taken.append(best)
        component = [component[a] if one == component[b] else one for one in component]
    return tuple(taken)


def with_singles(domain: Domain, cliques: Sequence[Clique]) -> tuple[Clique, ...]:
    """These margins, and one of its own for each variable that none of them has."""
    covered = {at for clique in cliques for at in clique}
    singles = [(at,) for at in range(len(domain)) if at not in covered]
    return (*without_contained([as_clique(clique) for clique in cliques]), *singles)
