"""Joint table that has given margins and nothing else: iterative proportional fitting (Deming & Stephan 1940)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from ..data.arrays import Booleans, Floats
from .domain import Clique, Domain, drop_contained, margin_of, scale_to_margin, total_variation

LARGEST_TABLE = 10_000_000
"""Cells of a joint table that is fitted as one."""
MAX_SWEEPS = 200
FIT_TOLERANCE = 1e-5
STALLED_RATIO = 0.995
"""A sweep that leaves more than this share of the largest distance is one of few more."""


@dataclass(frozen=True, eq=False)
class FittedTable:
    """Fitted joint table.

    table: shares of the cells
    sweeps: number of sweeps that it took
    distance: largest total variation of a margin from the one that was requested
    """

    table: Floats
    sweeps: int
    distance: float


def fit_joint_table(
    domain: Domain,
    margins: Mapping[Clique, Floats],
    impossible: Booleans | None = None,
    sweeps: int = MAX_SWEEPS,
    near: float = FIT_TOLERANCE,
    note: Callable[[int], None] = lambda _: None,
) -> FittedTable:
    """Fit the joint table with these margins, each of shares, from a uniform start.

    ``impossible`` marks cells that stay 0, in the shape of the table.
    """
    everything = tuple(range(len(domain)))
    # Never started at the data: interactions that no margin lists would be kept.
    table = np.full(domain.sizes, 1 / domain.cell_count())
    if impossible is not None:
        table[impossible] = 0.0
    wanted = {clique: margins[clique] for clique in drop_contained(tuple(margins))}
    distance, stalled, done = np.inf, 0, 0
    for done in range(1, sweeps + 1):
        farthest = 0.0
        for clique, margin in wanted.items():
            farthest = max(farthest, scale_to_margin(table, everything, clique, margin))
        note(done)
        # Margins that contradict each other have no such table, and the distance then stops falling.
        stalled = stalled + 1 if farthest > STALLED_RATIO * distance else 0
        distance = min(distance, farthest)
        # A single margin is met exactly after one sweep.
        if farthest < near or stalled >= 3 or len(wanted) == 1:
            break
    total = table.sum()
    if total > 0:
        table /= total
    distance = max(
        (total_variation(margin_of(table, everything, c), margin) for c, margin in wanted.items()), default=0.0
    )
    return FittedTable(table, done, distance)
