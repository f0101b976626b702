"""Significance levels of the gate's tests of content, and the exact test of members against hold-out people."""

from __future__ import annotations

from ..statistics.ranks_and_tails import hypergeometric_tail

CONTENT_LEVEL = 0.01
"""Probability that an honest release is blocked by any test of its content."""
COPY_LEVEL = 0.001
"""Part of it for tests of rows that equal a record."""
EVIDENCE_LEVEL = 0.009
"""Part of it for the test of membership if all columns are synthesised."""
BESIDE_KEPT_LEVEL, OWN_ROW_LEVEL = 0.005, 0.004
"""Parts of it for the tests of membership and of own rows if some columns are kept."""


def holdout_probability(members: int, of_members: int, controls: int, of_controls: int) -> float:
    """Return the p-value of Fisher's exact test: probability of at least ``members`` members among all found."""
    if not of_controls:
        return 1.0
    return hypergeometric_tail(members - 1, of_members + of_controls, of_members, members + controls)
