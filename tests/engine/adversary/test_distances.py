"""Distances by several sets of variables, and who is nearest, against distances one by one."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.engine.adversary.density import NeighbourDistances
from sfumato.engine.adversary.distances import SubsetGowerDistances, smallest_of_each_row
from sfumato.engine.statistics.gower import Gower

GOWER = Gower(("a", "b", "c"), 50, {"a": {"x": 0, "y": 1}}, {"b": np.arange(50.0), "c": np.arange(50.0)})


def places(n: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    found = np.column_stack([rng.integers(-2, 2, n), rng.integers(0, 101, n), rng.integers(0, 21, n) * 5]).astype(float)
    found[rng.random(n) < 0.1, 1] = -1
    return found


def test_subsets_add_up_the_distances_of_their_variables() -> None:
    own, other = places(70, 1), places(90, 2)
    subsets = np.array([[True, True, True], [True, False, False], [False, True, True]])
    rough = SubsetGowerDistances.from_gower(GOWER)
    found = np.empty((3, 70, 90))
    for rows, k, apart in rough.iterate_blocks(rough.round_places(own), rough.round_places(other), subsets):
        found[k, rows] = apart
    for k, chosen in enumerate(subsets):
        names = tuple(n for n, inside in zip(GOWER.names, chosen, strict=True) if inside)
        exact = Gower(names, 50, GOWER.levels, {}).apart(own[:, chosen], other[:, chosen])
        assert found[k] * GOWER.unit == pytest.approx(exact, abs=0.01)


@pytest.mark.parametrize("k", [1, 3, 40])
def test_the_nearest_are_those_of_a_full_search(k: int) -> None:
    own, other = places(60, 3), places(200, 4)
    apart = np.sort(GOWER.apart(own, other), axis=1)
    found = NeighbourDistances.from_places(GOWER, own, other, k)
    assert found.distances.tolist() == apart[:, :k].tolist()
    assert found.n_within.tolist() == (apart <= apart[:, k - 1 : k]).sum(axis=1).tolist()


@pytest.mark.parametrize(("r", "k"), [(5, 5), (30, 4), (1000, 10), (1003, 1)])
def test_the_smallest_of_pieces_are_the_smallest(r: int, k: int) -> None:
    apart = np.random.default_rng(r).integers(0, 400, (20, r)).astype(np.float32)
    values, at = smallest_of_each_row(apart, k)
    assert values.tolist() == np.sort(apart, axis=1)[:, :k].tolist()
    assert values.tolist() == np.take_along_axis(apart, at, axis=1).tolist()
