"""The searches that compare few pairs, against all pairs."""

from __future__ import annotations

import numpy as np
import pytest
from prepared_tables import MIXED_DISTANCE, mixed_places

from sfumato.engine.adversary import nearest_records as module
from sfumato.engine.adversary.density import NeighbourDistances
from sfumato.engine.adversary.nearest_records import NearestRecords, iterate_near_pairs, smallest_of_each_row
from sfumato.engine.statistics.gower import UNIT, GowerDistance, SubsetGowerDistances

GOWER = GowerDistance(("a", "b", "c", "d"), 500, {"a": {}, "b": {}}, {"c": np.arange(5.0), "d": np.arange(5.0)})
VARIABLES = {"all": [0, 1, 2, 3], "levels": [0, 1], "numbers": [2, 3], "one level": [0]}


def records(n: int, seed: int, chosen: list[int]) -> np.ndarray:
    rng = np.random.default_rng(seed)
    levels = rng.integers(-1, [3, 400], (n, 2))
    numbers = np.rint(rng.random((n, 2)) * [UNIT, 6])
    numbers[rng.random((n, 2)) < 0.1] = -1
    return np.column_stack([levels, numbers]).astype(np.float32)[:, chosen]


def search(monkeypatch: pytest.MonkeyPatch, variables: str, k: int, slack: int, piece: int) -> None:
    chosen = VARIABLES[variables]
    names = tuple(GOWER.names[at] for at in chosen)
    distances = SubsetGowerDistances.from_gower(
        GowerDistance(names, 500, {n: {} for n in names if n in GOWER.levels}, {})
    )
    own, other = records(70, 1, chosen), records(900, 2, chosen)
    whole = np.empty((70, 900))
    for rows, _, apart in distances.iterate_blocks(own, other, np.ones((1, len(chosen)), dtype=np.bool_)):
        whole[rows] = apart * UNIT
    monkeypatch.setattr(module, "FIRST_PIECE", 40)
    monkeypatch.setattr(module, "PIECE", piece)
    monkeypatch.setattr(module, "PAIRS", 9 * piece)
    reach = np.sort(whole, axis=1)[:, k - 1 : k]
    seen = 0
    for pairs in iterate_near_pairs(distances, own, other, k, slack):
        here, row, column = whole[pairs.rows], pairs.row, pairs.column
        expected = {(i, j) for i, j in zip(*np.nonzero(here <= reach[pairs.rows] + slack), strict=True)}
        assert sorted(zip(row.tolist(), column.tolist(), strict=True)) == sorted(expected)
        assert pairs.distances.tolist() == here[row, column].tolist()
        assert (np.diff(row) >= 0).all()
        seen += len(here)
    assert seen == 70
    check_nearest_records(NearestRecords.from_rounded_places(distances, own, other, k), own, other, whole, k)


def check_nearest_records(near: NearestRecords, own: np.ndarray, other: np.ndarray, apart: np.ndarray, k: int) -> None:
    """Compare what is nearest with all pairs of records, by their distances ``apart`` (q, r)."""
    place = near.searched.combination_of
    assert (own[near.searched.first][place] == own).all()
    assert (other[near.table.first][near.table.combination_of] == other).all()
    ascending = np.sort(apart, axis=1)
    assert near.k_distances[place].tolist() == ascending[:, :k].tolist()
    assert near.kth_distance[place].tolist() == ascending[:, k - 1].tolist()
    assert near.count_records()[place].tolist() == (apart <= ascending[:, k - 1 : k]).sum(axis=1).tolist()
    equal = (other[None] == own[:, None]).all(axis=2)
    assert near.count_records(near.distances == 0)[place].tolist() == equal.sum(axis=1).tolist()
    for i, at in enumerate(place):
        pairs = np.flatnonzero(near.row == at)
        nearest = np.flatnonzero(apart[i] <= ascending[i, k - 1])
        assert np.sort(near.table.records_of(near.column[pairs])).tolist() == nearest.tolist()
        distances = np.repeat(near.distances[pairs], near.record_counts[pairs])
        assert distances.tolist() == np.sort(apart[i, nearest]).tolist()


@pytest.mark.parametrize("variables", list(VARIABLES))
@pytest.mark.parametrize(("k", "slack"), [(1, 0), (6, 0), (3, 500), (100, 0)])
def test_nobody_nearer_is_missed(monkeypatch: pytest.MonkeyPatch, variables: str, k: int, slack: int) -> None:
    search(monkeypatch, variables, k, slack, piece=64)


@pytest.mark.parametrize("dense", [0.0, 1.0])
def test_pairs_are_the_same_however_numbers_are_compared(monkeypatch: pytest.MonkeyPatch, dense: float) -> None:
    monkeypatch.setattr(module, "DENSE", dense)
    search(monkeypatch, "all", 4, 10, piece=200)


def test_a_bound_that_is_too_near_misses_records(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = module._PiecePairs.pairs_within
    monkeypatch.setattr(module._PiecePairs, "pairs_within", lambda piece, limit: whole(piece, limit - UNIT / 8))
    with pytest.raises(AssertionError):
        search(monkeypatch, "all", 6, 0, piece=64)


@pytest.mark.parametrize("k", [1, 3, 40])
def test_the_nearest_are_those_of_a_full_search(k: int) -> None:
    own, other = mixed_places(60, 3), mixed_places(200, 4)
    apart = np.sort(MIXED_DISTANCE.pairwise_distances(own, other), axis=1)
    found = NeighbourDistances.from_places(MIXED_DISTANCE, own, other, k)
    assert found.distances.tolist() == apart[:, :k].tolist()
    assert found.n_within.tolist() == (apart <= apart[:, k - 1 : k]).sum(axis=1).tolist()
    near = NearestRecords.from_places(MIXED_DISTANCE, own, other, k)
    check_nearest_records(near, own, other, MIXED_DISTANCE.pairwise_distances(own, other), k)


@pytest.mark.parametrize(("r", "k"), [(5, 5), (30, 4), (1000, 10), (1003, 1)])
def test_the_smallest_of_pieces_are_the_smallest(r: int, k: int) -> None:
    apart = np.random.default_rng(r).integers(0, 400, (20, r)).astype(np.float32)
    values, at = smallest_of_each_row(apart, k)
    assert values.tolist() == np.sort(apart, axis=1)[:, :k].tolist()
    assert values.tolist() == np.take_along_axis(apart, at, axis=1).tolist()
