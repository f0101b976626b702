"""Significance levels of the gate's tests of content, and the exact test of members against hold-out people."""

from __future__ import annotations

CONTENT_LEVEL = 0.01
"""Probability that an honest release is blocked for its content, by any test of it."""
COPY_LEVEL = 0.001
"""The part of it of rows that equal a record."""
EVIDENCE_LEVEL = 0.009
"""The part of the test of membership, where every column is drawn."""
BESIDE_KEPT_LEVEL, OWN_ROW_LEVEL = 0.005, 0.004
"""The parts of the test of membership and of a record's own row, where a release keeps some columns."""


def holdout_probability(members: int, of_members: int, controls: int, of_controls: int) -> float:
    """Return the p-value of Fisher's exact test: probability of at least ``members`` members among all found."""
    from scipy.stats import hypergeom

    if not of_controls:
        return 1.0
    return float(hypergeom.sf(members - 1, of_members + of_controls, of_members, members + controls))
