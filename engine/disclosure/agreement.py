"""How much of a person some released row reproduces, in any columns and within any noise, against what other people's rows do.

The score of a record and a row is a sum over the columns of - log of the share of records that agree with the record at least as well:
equal levels, or numbers as near by rank. A column that was changed adds nothing, one that is common little, one that is rare or near much, so
that copies with noise, with flipped cells or of some columns alone all score high; nothing has to be chosen beforehand. The best row
of a release is held against the best of as many other records of the joint table, which an independent sample would be. The difference
is around 0 for everybody a release does not know, whether a member or not, and far above it for those whom it repeats.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..data.arrays import Integers, side_by_side
from ..data.sorting import sort_order
from .coded import Coded, Singles
from .evidence import WEAK, Found

MOST_WORK = 400_000_000
"""Cells that are compared at most for one dataset, about three seconds."""
LEAST_TARGETS = 60
MOST_OTHERS = 200_000
"""Records of the joint table that stand for an independent sample; of a larger release the logarithm of the ratio is taken off."""
BLOCK = 1 << 22
PIECE, FEWEST_ROWS = 1 << 16, 1 << 10
"""Cells that are compared at a time, and rows of one person at least."""
FIRST = (13, 25)
"""Depths that are looked at first, among everybody."""
TOPS = (8, 13, 25, 60, 200, 700, 2500)


def targets(order: Integers, rows: NDArray[np.uint64], released: int, columns: int) -> list[tuple[str, Integers]]:
    """Whom to ask about: everybody, or where that takes too long, the rarest and as many others, chosen by their rows."""
    n = len(order)
    most = max(LEAST_TARGETS, int(MOST_WORK / max(1, (released + min(n, MOST_OTHERS)) * columns)))
    if most >= n:
        parts = [k for k in (n // 2, n // 20) if k >= 50]
        return [(f"all {n:,} people", order), *((f"the {k:,} rarest people", order[:k]) for k in parts)]
    half = most // 2
    some = _first_by_rows(order[half:], rows, most - half)
    return [(f"the {half:,} rarest people", order[:half]), (f"{len(some):,} people chosen by their values", some)]


def _first_by_rows(records: Integers, rows: NDArray[np.uint64], k: int) -> Integers:
    """The k records whose rows come first, of equals as they stand, (k,)."""
    theirs = rows[records]
    near = (
        np.flatnonzero(theirs <= np.partition(theirs, k - 1)[k - 1]) if 0 < k < len(theirs) else np.arange(len(theirs))
    )
    return records[near[np.argsort(theirs[near], kind="stable")[:k]]]


def best_scores(columns: Sequence[Coded], release: int, some: Integers, others: Integers) -> tuple[Singles, Singles]:
    """The scores of the best released row and of the best among ``others`` of the joint table, but oneself: (k,) each."""
    rows = len(columns[0].released[release])
    by_release, by_others = np.empty(len(some), dtype=np.float32), np.empty(len(some), dtype=np.float32)
    step = max(1, BLOCK // max(1, rows, len(others)))
    theirs = [
        (one.released[release], one.released_places[release] if one.place is not None else None) for one in columns
    ]
    ours = [(one.own[others], None if one.place is None else one.place[others]) for one in columns]

    def look(first: int) -> None:
        those = some[first : first + step]
        part = slice(first, first + len(those))
        by_release[part] = _best(columns, those, theirs, rows, 1)
        by_others[part] = _best(columns, those, ours, len(others), 0, others)

    side_by_side(look, range(0, len(some), step))
    return by_release, by_others


Compared = tuple[NDArray[np.int32], Singles | None]
"""A column's codes (r,), and places unless it is of levels."""


def _best(
    columns: Sequence[Coded],
    those: Integers,
    theirs: Sequence[Compared],
    rows: int,
    more: int,
    records: Integers | None = None,
) -> Singles:
    """The best score of each record (k,) with any of the rows but its own, which has the number ``records`` (r,) of a record: (k,).

    Rows are looked at in pieces that stay in the processor's cache.
    """
    best, piece = np.full(len(those), -np.inf, dtype=np.float32), max(FEWEST_ROWS, PIECE // max(1, len(those)))
    for first in range(0, rows, piece):
        part = slice(first, first + piece)
        some = [(codes[part], None if places is None else places[part]) for codes, places in theirs]
        scores = _scores(columns, those, some, min(piece, rows - first), more)
        if records is not None:
            own = np.flatnonzero(np.isin(those, records[part]))
            scores[own] = np.where(those[own, None] == records[part], np.float32(-1), scores[own])
        np.maximum(best, scores.max(axis=1), out=best)
    return best


def _scores(
    columns: Sequence[Coded],
    those: Integers,
    theirs: Sequence[Compared],
    rows: int,
    more: int,
) -> NDArray[np.float32]:
    """The score of each record (k,) and row, (k, r). A row that is no record of the joint table counts there as one ``more``, as others do."""
    total = np.zeros((len(those), rows), dtype=np.float32)
    near = np.empty_like(total)
    for one, (codes, places) in zip(columns, theirs, strict=True):
        n = len(one.own)
        share = ((one.counts[one.own[those]] + more) / n).astype(np.float32)[:, None]
        if one.place is None or places is None:
            total -= np.multiply(codes[None, :] == one.own[those][:, None], np.log(share), out=near)
            continue
        np.subtract(places[None, :], one.place[those][:, None], out=near)
        np.abs(near, out=near)
        near *= 2
        near += np.float32(more / n)
        np.maximum(near, share, out=near)
        np.minimum(near, 1, out=near)
        total -= np.log(near, out=near)
    return total


def reproduced(
    columns: Sequence[Coded], members: int, order: Integers, rows: NDArray[np.uint64], what: str, weak: float = 4 * WEAK
) -> list[Found]:
    """The people whose best released row is further above the best of others than for anybody by chance, at several depths."""
    found, n = list[Found](), len(order)
    by_row = sort_order(rows)
    for release in range(len(columns[0].released)):
        size = len(columns[0].released[release])
        if size == 0:
            continue
        groups = targets(order, rows, size * len(columns[0].released), len(columns))
        everybody = np.unique(np.concatenate([some for _, some in groups]))
        others = by_row[np.linspace(0, n - 1, min(size + 1, n, MOST_OTHERS)).astype(np.int64)]
        by_release, by_others = best_scores(columns, release, everybody, others)
        above = by_release - by_others - np.float32(np.log(max(1.0, size / len(others))))
        for at, (who, some) in enumerate(groups):
            first = FIRST if at == 0 else ()
            found += _depths(above[np.searchsorted(everybody, some)], some, members, who, what, weak, first)
    return found


def own_rows(
    columns: Sequence[Coded], release: int, own: Integers, other: Integers, who: str, what: str
) -> list[Found]:
    """People whose own released row says more of their drawn values than the row of somebody like them does.

    Row i of the release is record i's, and ``other`` (k,) is nearest to each of the records ``own`` (k,) in what is kept. What follows from the kept
    columns follows from the other's row as well.
    """
    above = own_scores(columns, release, own, other)
    return _depths(above, own, int(own.max()) + 1 if len(own) else 0, who, what, WEAK)


def own_scores(columns: Sequence[Coded], release: int, own: Integers, other: Integers) -> Singles:
    """How much more of each record's values its own row says than the row of the other one, (k,).

    Exchanging the two rows changes the sign and nothing else, to the last digit: what is as far above 0 as below is counted by equal scores.
    """
    above = np.zeros(len(own), dtype=np.float32)
    for one in columns:
        if one.place is None or not one.released_places:
            codes = one.released[release]
            mine, theirs = (codes[rows] == one.own[own] for rows in (own, other))
            above += one.surprise[own] * (mine.astype(np.float32) - theirs.astype(np.float32))
        else:
            places, least = one.released_places[release], np.exp(-one.surprise[own])
            near = [
                np.log(np.minimum(np.maximum(2 * np.abs(places[rows] - one.place[own]), least), 1))
                for rows in (own, other)
            ]
            above += near[1] - near[0]
    return above


def _depths(
    above: Singles, some: Integers, members: int, who: str, what: str, weak: float, first: Sequence[int] = ()
) -> list[Found]:
    """Counts at the values of the members who stand out most; chance is how many are as far below."""
    is_member = some < members
    ours, controls = np.sort(above[is_member])[::-1], above[~is_member]
    below = np.sort(-above)
    found = []
    share = float(is_member.mean())
    for k in TOPS:
        if k > len(ours) or ours[k - 1] <= 0:
            break
        at = ours[k - 1]
        under = len(below) - int(np.searchsorted(below, at))
        hits = some[is_member & (above >= at)]
        found.append(
            Found(
                who, what, len(hits), int(is_member.sum()), int((controls >= at).sum()), len(controls), float(under),
                share, 1 - share, hits, weak, k in first,
            )
        )  # fmt: skip
    return found
