"""Panels of the change in an intruder's belief in the truth of records."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .figure import Panel
from .series import Series

PROBABILITY_STEP = 0.005
"""Step to which probabilities are rounded, so that nearly equal records are one point."""
NOT_DRAWN = float("nan")
Floats = NDArray[np.float64]


def belief_change_panel(prior: Floats, posterior: Floats) -> Panel:
    """Return a panel of the probability of each record's truth after the release (t,) against before it (t,)."""
    points = np.unique(np.round(np.column_stack([prior, posterior]) / PROBABILITY_STEP), axis=0) * PROBABILITY_STEP
    more, less = points[points[:, 1] > points[:, 0]], points[points[:, 1] <= points[:, 0]]
    named = (("more probable now", more), ("not more probable", less))
    clouds = [Series(name, own[:, 0], own[:, 1], marker="points") for name, own in named if len(own)]
    diagonal = Series("as probable as before", [0.0, 1.0], [0.0, 1.0], marker="line")
    return Panel("Belief in the truth", (*clouds, diagonal), "probability before the release", "probability after it")


def first_datasets_panel(
    values: Sequence[tuple[float, float | None, float | None, float | None]], before: float | None
) -> Panel:
    """Return a panel of the share guessed right by the first 1 to m datasets, and of the share before the release.

    ``values`` are tuples of the number of datasets, the share and its interval.
    """
    m, share, lower, upper = (
        np.array([NOT_DRAWN if v is None else v for v in own]) for own in zip(*values, strict=True)
    )
    known = bool(np.isfinite(lower).any())
    curve = Series("guessed right", m, share, lower if known else None, upper if known else None, marker="line")
    series = [curve]
    if before is not None:
        series.append(Series("before the release", m, np.full(len(m), before), marker="line"))
    return Panel(
        "Guessed right by the first datasets",
        tuple(series),
        "datasets of the release that are used",
        "share of the records",
    )
