"""Junction tree of a table too large to hold: proportional fitting by cliques, and records drawn along it.

Variables that share a margin are joined; the graph is made chordal by greedy elimination, and its cliques form a tree
in which each variable's cliques are connected (Lauritzen & Spiegelhalter 1988). A sweep walks the tree and back
(Jirousek & Preucil 1995), and its result is that of the joint table.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from ..data.arrays import Floats, Integers
from .domain import Clique, Domain, as_clique, drop_contained, margin_of, scale_to_margin
from .drawing import draw_given
from .joint_table import FIT_TOLERANCE, MAX_SWEEPS


@dataclass(frozen=True, eq=False)
class JunctionTree:
    """Cliques of a chordal graph, connected as a tree.

    domain: categories of each variable
    cliques: cliques in an order in which each comes after its parent
    parents: position of each clique's parent, -1 of a root
    separators: variables that each clique shares with its parent
    """

    domain: Domain
    cliques: tuple[Clique, ...]
    parents: tuple[int, ...]
    separators: tuple[Clique, ...]

    @classmethod
    def from_margins(cls, domain: Domain, margins: Sequence[Clique]) -> JunctionTree:
        """Build the tree in which every margin lies in a clique.

        A variable without a margin has a clique of its own.
        """
        neighbours: dict[int, set[int]] = {at: set() for at in range(len(domain))}
        for margin in margins:
            for a, b in combinations(margin, 2):
                neighbours[a].add(b)
                neighbours[b].add(a)
        found: list[Clique] = []
        while neighbours:
            # Greedy: the order with the smallest cliques is NP-hard to find.
            at = min(neighbours, key=lambda v: _elimination_cost(v, neighbours, domain))
            around = neighbours.pop(at)
            found.append(as_clique([at, *around]))
            for a, b in combinations(around, 2):
                neighbours[a].add(b)
                neighbours[b].add(a)
            for other in around:
                neighbours[other].discard(at)
        return cls(domain, *_tree_of_cliques(drop_contained(found)))

    @property
    def cell_count(self) -> int:
        """Return the number of cells of all cliques together."""
        return sum(self.domain.cell_count(clique) for clique in self.cliques)

    def fit_margins(
        self, margins: Mapping[Clique, Floats], sweeps: int = MAX_SWEEPS, near: float = FIT_TOLERANCE
    ) -> FittedTree:
        """Fit the tables of all cliques to the given margins of shares."""
        tables = [np.full(self.domain.shape(clique), 1 / self.domain.cell_count(clique)) for clique in self.cliques]
        own: list[list[tuple[Clique, Floats]]] = [[] for _ in self.cliques]
        for margin in drop_contained(tuple(margins)):
            home = next(i for i, clique in enumerate(self.cliques) if set(margin) <= set(clique))
            own[home].append((margin, margins[margin]))
        distance, done = math.inf, 0
        for _ in range(sweeps):
            done += 1
            farthest = 0.0
            for at, came_from in self._walk_tree():
                if came_from is not None:
                    self._carry_margin(tables, came_from, at)
                for margin, wanted in own[at]:
                    farthest = max(farthest, scale_to_margin(tables[at], self.cliques[at], margin, wanted))
            distance, before = farthest, distance
            # Contradictory margins have no common table; the sweeps would go on without getting closer.
            if distance < near or distance > before * 0.995:
                break
        for at, came_from in self._walk_tree():
            if came_from is not None:
                self._carry_margin(tables, came_from, at)
        return FittedTree(self, tuple(tables), done, distance)

    def _walk_tree(self) -> Iterator[tuple[int, int | None]]:
        """Yield the cliques along a walk from the roots and back, each with the clique that it was reached from."""
        children: dict[int, list[int]] = {}
        for at, parent in enumerate(self.parents):
            children.setdefault(parent, []).append(at)

        def visit_subtree(at: int, came_from: int | None) -> Iterator[tuple[int, int | None]]:
            """Yield a clique, then each child's subtree followed by the clique again."""
            yield at, came_from
            for child in children.get(at, ()):
                yield from visit_subtree(child, at)
                yield at, child

        for root in children[-1]:
            yield from visit_subtree(root, None)

    def _carry_margin(self, tables: list[Floats], start: int, end: int) -> None:
        """Scale the table of clique ``end`` to the margin of ``start`` over the variables that they share."""
        # The child stands after its parent, and its separator is that of the edge.
        separator = self.separators[max(start, end)]
        scale_to_margin(
            tables[end], self.cliques[end], separator, margin_of(tables[start], self.cliques[start], separator)
        )


@dataclass(frozen=True, eq=False)
class FittedTree:
    """Junction tree with the shares of the cells of each clique.

    tree: the junction tree
    tables: shares of the cells of each clique, which agree on what cliques share
    sweeps: number of sweeps that it took
    distance: largest total variation of a margin from the one that was requested
    """

    tree: JunctionTree
    tables: tuple[Floats, ...]
    sweeps: int
    distance: float

    def draw_records(self, records: int, rng: np.random.Generator) -> Integers:
        """Draw categories of records, (records, variables), along the tree.

        Given the variables that a clique shares with its parent, each cell has its expected number of records, or one
        more or less.
        """
        sizes = self.tree.domain.sizes
        codes = np.zeros((records, len(sizes)), dtype=np.int64)
        for clique, separator, table in zip(self.tree.cliques, self.tree.separators, self.tables, strict=True):
            rest = tuple(at for at in clique if at not in separator)
            given = np.zeros(records, dtype=np.int64)
            for at in separator:
                given = given * sizes[at] + codes[:, at]
            axes = [clique.index(at) for at in (*separator, *rest)]
            shape = tuple(sizes[at] for at in rest)
            shares = np.transpose(table, axes).reshape(-1, math.prod(shape))
            cells = draw_given(shares, given, rng)
            for at, values in zip(rest, np.unravel_index(cells, shape), strict=True):
                codes[:, at] = values
        return codes


def _elimination_cost(at: int, neighbours: Mapping[int, set[int]], domain: Domain) -> tuple[int, int]:
    """Return the number of cells of the clique that eliminating a variable makes, and its position for ties."""
    return domain.cell_count(as_clique([at, *neighbours[at]])), at


def _tree_of_cliques(cliques: tuple[Clique, ...]) -> tuple[tuple[Clique, ...], tuple[int, ...], tuple[Clique, ...]]:
    """Return cliques in an order in which each comes after its parent, with their parents and separators.

    A maximum spanning tree by the number of shared variables (Prim's algorithm) is a junction tree of a chordal graph's
    cliques.
    """
    left = list(range(len(cliques)))
    order, parents = [left.pop(0)], [-1]
    separators: list[Clique] = [()]
    while left:
        shared = {(i, place): set(cliques[i]) & set(cliques[j]) for i in left for place, j in enumerate(order)}
        (best, place), common = max(shared.items(), key=lambda item: len(item[1]))
        left.remove(best)
        order.append(best)
        parents.append(place if common else -1)
        separators.append(as_clique(list(common)))
    return tuple(cliques[i] for i in order), tuple(parents), tuple(separators)
