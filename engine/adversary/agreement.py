"""Scores of how closely the best released row reproduces a person, compared with the best row of other people.

The score of a record and a row is the sum over the columns of minus the log share of records that agree with the record
at least as well: equal levels, or numbers as near by rank. A changed column adds nothing, a common value little, a rare
or near one much, so that copies with noise, flipped cells or some columns only all score high. The best row of a
release is compared with the best of as many other records, as in an independent sample. The difference is around 0 for
people whom the release does not know, members or not.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..data.arrays import Integers, map_on_threads
from ..data.sorting import sort_order
from .coded import CodedColumn, Singles
from .membership_evidence import MembershipProbe

MOST_WORK = 400_000_000
"""Largest number of cells compared for one dataset, about three seconds."""
LEAST_TARGETS = 60
MOST_OTHERS = 200_000
"""Largest number of joint records used as an independent sample; larger releases are corrected by the log ratio."""
BLOCK = 1 << 22
PIECE, FEWEST_ROWS = 1 << 16, 1 << 10
"""Number of cells compared together, and fewest rows per person."""
TOPS = (8, 13, 25, 60, 200, 700, 2500)
CodesAndRanks = tuple[NDArray[np.int32], Singles | None]
"""A column's codes (r,), and places unless it is of levels."""


def choose_scored_people(
    order: Integers, rows: NDArray[np.uint64], n_released: int, n_columns: int
) -> list[tuple[str, Integers]]:
    """Choose groups of people to score, with labels.

    These are everybody, or the rarest and as many others if that takes too long.
    """
    n = len(order)
    most = max(LEAST_TARGETS, int(MOST_WORK / max(1, (n_released + min(n, MOST_OTHERS)) * n_columns)))
    if most >= n:
        parts = [k for k in (n // 2, n // 20) if k >= 50]
        return [(f"all {n:,} people", order), *((f"the {k:,} rarest people", order[:k]) for k in parts)]
    half = most // 2
    some = _first_by_rows(order[half:], rows, most - half)
    return [(f"the {half:,} rarest people", order[:half]), (f"{len(some):,} people chosen by their values", some)]


def _first_by_rows(records: Integers, rows: NDArray[np.uint64], k: int) -> Integers:
    """Return the k records with the smallest row keys, earlier records first among ties, (k,)."""
    theirs = rows[records]
    near = (
        np.flatnonzero(theirs <= np.partition(theirs, k - 1)[k - 1]) if 0 < k < len(theirs) else np.arange(len(theirs))
    )
    return records[near[np.argsort(theirs[near], kind="stable")[:k]]]


def best_row_scores(
    columns: Sequence[CodedColumn], release: int, people: Integers, others: Integers
) -> tuple[Singles, Singles]:
    """Return each person's scores with the best released row and the best other record, (k,) each."""
    rows = len(columns[0].released_codes[release])
    by_release, by_others = np.empty(len(people), dtype=np.float32), np.empty(len(people), dtype=np.float32)
    step = max(1, BLOCK // max(1, rows, len(others)))
    theirs = [
        (one.released_codes[release], one.released_rank_shares[release] if one.rank_shares is not None else None)
        for one in columns
    ]
    ours = [(one.codes[others], None if one.rank_shares is None else one.rank_shares[others]) for one in columns]

    def score_block(first: int) -> None:
        """Score one block of people."""
        those = people[first : first + step]
        part = slice(first, first + len(those))
        by_release[part] = _best_agreement_scores(columns, those, theirs, rows, 1)
        by_others[part] = _best_agreement_scores(columns, those, ours, len(others), 0, others)

    map_on_threads(score_block, range(0, len(people), step))
    return by_release, by_others


def _best_agreement_scores(
    columns: Sequence[CodedColumn],
    those: Integers,
    theirs: Sequence[CodesAndRanks],
    rows: int,
    more: int,
    records: Integers | None = None,
) -> Singles:
    """Return the best score of each record (k,) with any row but its own, (k,).

    ``records`` (r,) are the records that the rows belong to, if they are rows of the joint table.
    """
    best, piece = np.full(len(those), -np.inf, dtype=np.float32), max(FEWEST_ROWS, PIECE // max(1, len(those)))
    for first in range(0, rows, piece):
        # Pieces of rows stay in the processor's cache.
        part = slice(first, first + piece)
        some = [(codes[part], None if places is None else places[part]) for codes, places in theirs]
        scores = _agreement_scores(columns, those, some, min(piece, rows - first), more)
        if records is not None:
            own = np.flatnonzero(np.isin(those, records[part]))
            scores[own] = np.where(those[own, None] == records[part], np.float32(-1), scores[own])
        np.maximum(best, scores.max(axis=1), out=best)
    return best


def _agreement_scores(
    columns: Sequence[CodedColumn],
    those: Integers,
    theirs: Sequence[CodesAndRanks],
    rows: int,
    more: int,
) -> NDArray[np.float32]:
    """Return the agreement score of each record (k,) with each row, (k, r)."""
    total = np.zeros((len(those), rows), dtype=np.float32)
    near = np.empty_like(total)
    for one, (codes, places) in zip(columns, theirs, strict=True):
        n = len(one.codes)
        # A released row (``more`` = 1) counts as one further record, as a row of the joint table does already.
        share = ((one.counts[one.codes[those]] + more) / n).astype(np.float32)[:, None]
        if one.rank_shares is None or places is None:
            total -= np.multiply(codes[None, :] == one.codes[those][:, None], np.log(share), out=near)
            continue
        np.subtract(places[None, :], one.rank_shares[those][:, None], out=near)
        np.abs(near, out=near)
        near *= 2
        near += np.float32(more / n)
        np.maximum(near, share, out=near)
        np.minimum(near, 1, out=near)
        total -= np.log(near, out=near)
    return total


def find_reproduced_people(
    columns: Sequence[CodedColumn], order: Integers, rows: NDArray[np.uint64], what: str
) -> list[MembershipProbe]:
    """Return probes for the people whose best released row exceeds that of other people most, at several depths."""
    looks, n = list[MembershipProbe](), len(order)
    by_row = sort_order(rows)
    for release in range(len(columns[0].released_codes)):
        size = len(columns[0].released_codes[release])
        if size == 0:
            continue
        groups = choose_scored_people(order, rows, size * len(columns[0].released_codes), len(columns))
        everybody = np.unique(np.concatenate([some for _, some in groups]))
        others = by_row[np.linspace(0, n - 1, min(size + 1, n, MOST_OTHERS)).astype(np.int64)]
        by_release, by_others = best_row_scores(columns, release, everybody, others)
        # The maximum over more rows is larger by about the log of the ratio.
        above = by_release - by_others - np.float32(np.log(max(1.0, size / len(others))))
        for who, some in groups:
            looks += _probes_at_depths(above[np.searchsorted(everybody, some)], some, who, what)
    return looks


def _probes_at_depths(above: Singles, some: Integers, who: str, what: str) -> list[MembershipProbe]:
    """Return probes for the k people who stand out most, with ties, at several depths."""
    descending = np.sort(above)[::-1]
    looks = []
    for k in TOPS:
        # Depths count members and controls alike: a cut that members decide would find members.
        if k > len(descending) or descending[k - 1] <= 0:
            break
        looks.append(MembershipProbe(who, what, some[above >= descending[k - 1]], some))
    return looks
