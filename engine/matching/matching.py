"""The matching join: which released records an intruder who knows a confidential record cannot tell from it.

Confidential record i matches released record j when every known variable agrees, exactly or within its window
(Reiter & Mitra 2009; Guo & Hu §4.2). Record i's own released record is row i.

Its summaries are what candidates and hits say about identification and attribute disclosure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..errors import NotComputable
from .range_count import Side, count_in_boxes

Values = NDArray[Any] | pd.Series


@dataclass(frozen=True, eq=False)
class Exact:
    """A known variable that must be equal, missing equal to missing: ``confidential`` (n,), ``released`` (n_r,)."""

    confidential: Values
    released: Values

    @property
    def shape(self) -> tuple[int, int]:
        """(n, n_r)."""
        return len(self.confidential), len(self.released)

    def codes(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Equal codes for equal values, from 0: (n,) and (n_r,)."""
        both = (self.confidential, self.released)
        dtypes = [getattr(values, "dtype", None) for values in both]
        if all(isinstance(dtype, pd.CategoricalDtype) for dtype in dtypes) and dtypes[0] == dtypes[1]:
            first, second = (pd.Categorical(values, dtype=dtypes[0]).codes.astype(np.int64) + 1 for values in both)
            return first, second
        joint, _ = pd.factorize(np.concatenate([np.asarray(values) for values in both]), use_na_sentinel=False)
        return joint[: len(both[0])].astype(np.int64), joint[len(both[0]) :].astype(np.int64)


@dataclass(frozen=True, eq=False)
class Within:
    """A known variable that must lie in a window: ``lower <= released <= upper``, both (n,), ``released`` (n_r,).

    A missing value (NaN) on either side matches nothing; where it should match a missing one, use ``among_missing``.
    """

    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    released: NDArray[np.float64]

    @classmethod
    def among_missing(
        cls,
        lower: NDArray[np.float64],
        upper: NDArray[np.float64],
        missing: NDArray[np.bool_],
        released: NDArray[np.float64],
    ) -> Within:
        """Windows of finite values, and of records whose own value is ``missing`` (n,): they match the missing and no other.

        Missing stands at infinity, beyond every finite window; a window up to infinity holds it too.
        """
        there = np.isnan(released)
        if not missing.any() and not there.any():
            return cls(lower, upper, released)
        lower, upper = np.where(missing, np.inf, lower), np.where(missing, np.inf, upper)
        return cls(lower, upper, np.where(there, np.inf, released))

    @property
    def shape(self) -> tuple[int, int]:
        """(n, n_r)."""
        return len(self.lower), len(self.released)

    @cached_property
    def side(self) -> Side:
        """The window as a side of the boxes that are counted in; found once, however often it is matched."""
        return Side.of(self.lower, self.upper, self.released)


class Matches(NamedTuple):
    """``candidates`` (n,): c_i, the released records that match i. ``hit`` (n,): T_i, whether i's own is among them."""

    candidates: NDArray[np.int64]
    hit: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Matcher:
    """Records grouped by their exact keys, to be matched again and again with different windows.

    ``group`` (n,) and ``released_group`` (n_r,) hold equal codes below ``groups`` for equal keys.
    """

    group: NDArray[np.int64]
    released_group: NDArray[np.int64]
    groups: int

    @classmethod
    def of(cls, exact: Sequence[Exact], shape: tuple[int, int]) -> Matcher:
        """Group n confidential and n_r released records, ``shape = (n, n_r)``, by all the keys together."""
        return cls(np.zeros(shape[0], dtype=np.int64), np.zeros(shape[1], dtype=np.int64), 1).refined(*exact)

    def refined(self, *keys: Exact) -> Matcher:
        """The groups split by more keys; the earlier keys are not read again."""
        matcher = self
        for key in keys:
            matcher = matcher._split(key)
        return matcher

    def _split(self, key: Exact) -> Matcher:
        self._check(key.shape)
        confidential, released = key.codes()
        width = int(max(confidential.max(initial=-1), released.max(initial=-1))) + 1
        both = np.concatenate([self.group * width + confidential, self.released_group * width + released])
        codes, distinct = pd.factorize(both)
        n = len(confidential)
        return Matcher(codes[:n].astype(np.int64), codes[n:].astype(np.int64), len(distinct))

    def match(self, within: Sequence[Within] = ()) -> Matches:
        """Candidates and hits of every confidential record. O(N log N) up to two windows, one more log for each beyond."""
        for window in within:
            self._check(window.shape)
        sides = [window.side for window in within]
        return Matches(count_in_boxes(self.group, self.released_group, sides), self._hits(within))

    def members(self, within: Sequence[Within], records: Sequence[int]) -> list[NDArray[np.intp]]:
        """The released records that match each of the chosen confidential ones, ascending."""
        order = np.argsort(self.released_group, kind="stable")
        edges = np.searchsorted(self.released_group[order], np.arange(self.groups + 1))
        found = []
        for i in records:
            rows = order[edges[self.group[i]] : edges[self.group[i] + 1]]
            for window in within:
                values = window.released[rows]
                rows = rows[(window.lower[i] <= values) & (values <= window.upper[i])]
            found.append(rows)
        return found

    def _hits(self, within: Sequence[Within]) -> NDArray[np.bool_]:
        own = slice(0, min(len(self.group), len(self.released_group)))
        hit = np.zeros(len(self.group), dtype=np.bool_)
        hit[own] = self.group[own] == self.released_group[own]
        for window in within:
            values = window.released[own]
            hit[own] &= (window.lower[own] <= values) & (values <= window.upper[own])
        return hit

    def _check(self, shape: tuple[int, int]) -> None:
        expected = len(self.group), len(self.released_group)
        if shape != expected:
            raise ValueError(f"{shape} confidential and released records do not fit {expected}")


def match(exact: Sequence[Exact], within: Sequence[Within] = ()) -> Matches:
    """Candidates and hits of every confidential record, for keys that must agree and windows that must hold.

    Raises:
        ValueError: when there is no variable to match on, or when their lengths differ.
    """
    known: list[Exact | Within] = [*exact, *within]
    if not known:
        raise ValueError("matching needs at least one known variable")
    return Matcher.of(exact, known[0].shape).match(within)


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
