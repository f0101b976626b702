"""The search that compares few pairs, against all pairs."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.engine.adversary import nearest as module
from sfumato.engine.adversary.distances import UNIT, SubsetGowerDistances
from sfumato.engine.adversary.nearest import iterate_near_pairs
from sfumato.engine.statistics.gower import Gower

GOWER = Gower(("a", "b", "c", "d"), 500, {"a": {}, "b": {}}, {"c": np.arange(5.0), "d": np.arange(5.0)})
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
    distances = SubsetGowerDistances.from_gower(Gower(names, 500, {n: {} for n in names if n in GOWER.levels}, {}))
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
        order = np.argsort(here, axis=1, kind="stable")[:, :k]
        found, at = pairs.nearest_of_each_row(k)
        assert at.tolist() == order.tolist()
        assert found.tolist() == np.take_along_axis(here, order, axis=1).tolist()
        seen += len(here)
    assert seen == 70


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
