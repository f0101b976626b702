"""Overlap of two confidence intervals (Karr et al. 2006; Guo & Hu eq. 10)."""

from __future__ import annotations

from ..errors import NotComputable

__all__ = ["interval_overlap"]


def interval_overlap(confidential: tuple[float, float], released: tuple[float, float]) -> float:
    """The mean of the shares that the intersection has of two intervals (lower, upper).

    I = (U_i - L_i) / (2 (U_c - L_c)) + (U_i - L_i) / (2 (U_s - L_s)) with U_i the smaller upper and L_i the larger lower
    end: 1 for equal intervals, negative for disjoint ones, the more the further apart.

    Raises:
        NotComputable: when an interval has no width.
    """
    for words, (lower, upper) in (("confidential", confidential), ("released", released)):
        if upper <= lower:
            raise NotComputable(f"the interval of the {words} data has no width, so it has no share in common")
    common = min(confidential[1], released[1]) - max(confidential[0], released[0])
    return common / (2 * (confidential[1] - confidential[0])) + common / (2 * (released[1] - released[0]))
