"""Counts of points within windows, group by group and range by range."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.engine.data.row_buckets import RowBuckets
from sfumato.engine.matching.match_blocks import OWN, ColumnPlaces, count_candidates_of, cuts_between
from sfumato.engine.matching.window_counts import KeyCounts, RangeRows, RowRanges

QUERIES, POINTS = 400, 900


def simulated(groups: int) -> tuple[np.ndarray, np.ndarray]:
    """Return queries (block, row, own, key, other key, lower, upper) and points (block, key, other key, value)."""
    rng = np.random.default_rng(groups)
    centre, values = np.round(rng.lognormal(size=QUERIES), 1), np.round(rng.lognormal(size=POINTS), 1)
    lower, upper = 0.7 * centre, 1.4 * centre
    lower[:20], upper[10:30], values[:15] = np.nan, np.nan, np.nan
    lower[30:40], upper[30:40] = upper[30:40], lower[30:40]  # windows of nothing
    lower[40:50] = upper[40:50] = values[15:25] = np.inf  # missing equals missing
    keys = [rng.integers(0, groups, size) for size in (QUERIES, QUERIES, POINTS, POINTS)]
    own = np.column_stack([np.zeros((QUERIES, 3)), keys[0], keys[1] / 2, lower, upper])
    return own, np.column_stack([np.zeros(POINTS), keys[2], keys[3] / 2, values])


def counted_pair_by_pair(queries: np.ndarray, points: np.ndarray, places: tuple[int, ...]) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        inside = (queries[:, None, 5] <= points[None, :, 3]) & (points[None, :, 3] <= queries[:, None, 6])
    for at in places:
        inside &= queries[:, None, OWN + 1 + at] == points[None, :, 1 + at]
    return np.asarray(inside.sum(axis=1))


@pytest.mark.quick
@pytest.mark.parametrize("groups", [1, 7, 300, 2000])
@pytest.mark.parametrize("places", [(), (0,), (1,), (0, 1)])
def test_points_within_windows_are_those_of_all_pairs(groups: int, places: tuple[int, ...]) -> None:
    queries, points = simulated(groups)
    rows = RangeRows(queries, points, KeyCounts(np.empty((0, 2)), np.empty(0, dtype=np.int64)))
    (found,) = count_candidates_of(rows, [ColumnPlaces(places, (0,))], {}, 2)
    assert found.tolist() == counted_pair_by_pair(queries, points, places).tolist()


@pytest.mark.quick
@pytest.mark.parametrize("ranges", [1, 2, 9, 60])
@pytest.mark.parametrize("all_points", [False, True])
def test_ranges_read_what_lies_near_the_ends_of_windows_and_count_the_rest(ranges: int, all_points: bool) -> None:
    queries, points = simulated(5)
    cut = RowRanges(cuts_between(points[:, 3], ranges), 5, 3, 2, all_points=all_points)
    ours, theirs = RowBuckets(), RowBuckets()
    ours.put_stacked(cut.range_of(queries[:, 5]), np.column_stack([np.arange(QUERIES), queries[:, 1:]]))
    theirs.put_stacked(cut.range_of(points[:, 3]), points)
    sets = [ColumnPlaces((0, 1), (0,)), ColumnPlaces((1,), (0,)), ColumnPlaces((), (0,)), ColumnPlaces((0,), ())]
    read, between = list[int](), 0
    for at in range(cut.number):
        some = cut.read_range(ours, theirs, at)
        between += int(some.between.records.sum())
        every = cut.count_all(theirs)
        assert every.records.sum() == POINTS
        keys, of = np.unique(every.keys[:, 0], return_inverse=True)
        counts = {sets[3]: type(every)(keys[:, None], np.bincount(of, every.records).astype(np.int64))}
        found = count_candidates_of(some, sets, counts, 2)
        rows = some.queries[:, 0].astype(int)
        read += rows.tolist()
        for one, places in zip(found, ((0, 1), (1,), ()), strict=False):
            assert one.tolist() == counted_pair_by_pair(queries, points, places)[rows].tolist()
        alone = (queries[rows][:, None, 3] == points[None, :, 1]).sum(axis=1)
        assert found[3].tolist() == alone.tolist()
    assert sorted(read) == list(range(QUERIES))
    assert (between > 0) == (ranges > 2 and not all_points)
