"""Records of two tables that are matched by some keys and windows."""

from __future__ import annotations

from collections.abc import Sequence

from sfumato.engine.matching.matching import ExactKey, MatchResults, RecordMatcher, WindowKey


def match_records(exact: Sequence[ExactKey], within: Sequence[WindowKey] = ()) -> MatchResults:
    """Return candidates and hits of every confidential record."""
    return RecordMatcher.from_keys(exact, [*exact, *within][0].shape).match_windows(within)
