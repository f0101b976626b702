"""Levels of the gate's tests of content, and the exact test of members against hold-out people."""

from __future__ import annotations

LEVEL = 0.01
"""Probability that an honest release is blocked for its content, by any test of it."""
PERMUTATION_LEVEL, INDEPENDENCE_LEVEL, COPY_LEVEL = 0.005, 0.004, 0.001
"""Parts of the level: all looks together, rows that no independent draw repeats, and rows that equal a record."""


def holdout_probability(members: int, of_members: int, controls: int, of_controls: int) -> float:
    """Return the probability of at least so many members among all who were found, if being a member says nothing (Fisher 1935)."""
    from scipy.stats import hypergeom

    if not of_controls:
        return 1.0
    return float(hypergeom.sf(members - 1, of_members + of_controls, of_members, members + controls))
