"""The joint table that has given margins and nothing else: iterative proportional fitting from a uniform start (Deming & Stephan 1940).

It starts where all cells are alike, structural zeros at 0, and never at the data: an interaction that no margin lists could not be kept out
otherwise. Margins that contradict each other have no such table; the sweeps then stop at the smallest largest distance.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from ..data.arrays import Booleans, Floats
from .domain import Clique, Domain, margin_of, scale_to, total_variation, without_contained

LARGEST_TABLE = 10_000_000
"""Cells of a joint table that is fitted as one."""
SWEEPS = 200
NEAR = 1e-5
SLOW = 0.995
"""A sweep that leaves more than this share of the largest distance is one of few more."""


@dataclass(frozen=True, eq=False)
class Fitted:
    """Shares of the cells, how many sweeps it took, and the largest total variation of a margin from the one that was asked for."""

    table: Floats
    sweeps: int
    distance: float


def fit_joint(
    domain: Domain,
    margins: Mapping[Clique, Floats],
    impossible: Booleans | None = None,
    sweeps: int = SWEEPS,
    near: float = NEAR,
    note: Callable[[int], None] = lambda _: None,
) -> Fitted:
    """The table with these margins, each of shares; ``impossible`` marks cells that stay 0, in the shape of the table."""
    everything = tuple(range(len(domain)))
    table = np.full(domain.sizes, 1 / domain.cells())
    if impossible is not None:
        table[impossible] = 0.0
    wanted = {clique: margins[clique] for clique in without_contained(tuple(margins))}
    distance, stalled, done = np.inf, 0, 0
    for done in range(1, sweeps + 1):
        farthest = 0.0
        for clique, margin in wanted.items():
            farthest = max(farthest, scale_to(table, everything, clique, margin))
        note(done)
        stalled = stalled + 1 if farthest > SLOW * distance else 0
        distance = min(distance, farthest)
        if farthest < near or stalled >= 3 or len(wanted) == 1:
            break
    total = table.sum()
    if total > 0:
        table /= total
    distance = max(
        (total_variation(margin_of(table, everything, c), margin) for c, margin in wanted.items()), default=0.0
    )
    return Fitted(table, done, distance)
