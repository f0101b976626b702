"""Summaries of a matching join: what its candidates and hits say about identification and attribute disclosure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from ..errors import NotComputable
from .matching import Matches

__all__ = [
    "IDENTIFICATION_SUMMARIES",
    "attribute_probabilities",
    "expected_match_risk",
    "false_match_rate",
    "true_match_rate",
    "unique_matches",
]


def expected_match_risk(matches: Matches) -> float:
    """Sum of T_i / c_i: the records that an intruder finds on average by picking one candidate at random (Reiter & Mitra 2009)."""
    return float(np.sum(1.0 / matches.candidates[matches.hit]))


def true_match_rate(matches: Matches) -> float:
    """Share of the n targets whose only candidate is their own record (Reiter & Mitra 2009).

    Raises:
        NotComputable: when there are no targets.
    """
    if not len(matches.candidates):
        raise NotComputable("there are no records")
    return float(np.mean((matches.candidates == 1) & matches.hit))


def false_match_rate(matches: Matches) -> float:
    """Share of the unique matches that are another record (Reiter & Mitra 2009).

    Raises:
        NotComputable: when no record has a unique match.
    """
    unique = matches.candidates == 1
    if not unique.any():
        raise NotComputable("no record has a unique match")
    return float(np.mean(~matches.hit[unique]))


def unique_matches(matches: Matches) -> float:
    """How many targets have exactly one candidate, right or wrong (s of Reiter & Mitra 2009, u of Guo & Hu)."""
    return float(np.count_nonzero(matches.candidates == 1))


IDENTIFICATION_SUMMARIES: Mapping[str, Callable[[Matches], float]] = MappingProxyType(
    {
        "expected_match_risk": expected_match_risk,
        "true_match_rate": true_match_rate,
        "false_match_rate": false_match_rate,
        "unique_matches": unique_matches,
    }
)


def attribute_probabilities(known: Matches, similar: Matches, *, exclude_self: bool = False) -> NDArray[np.float64]:
    """Share p_i of the records matched on the known variables whose sensitive values are similar too (Guo & Hu §4.1).

    Args:
        known: the matched set M_i of every record.
        similar: the part of it that lies within the radii of the sensitive variables.
        exclude_self: leave record i itself out of its own set unless the set has no other member: what the paper prints
            of the confidential data. A release is never scored so.

    Returns:
        Shape (n,); 0 where the matched set is empty.
    """
    left_out = exclude_self & known.hit & (known.candidates > 1)
    members = known.candidates - left_out
    alike = similar.candidates - (left_out & similar.hit)
    return np.divide(alike, members, out=np.zeros(len(members)), where=members > 0)
