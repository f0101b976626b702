from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.cluster.hierarchy import fcluster, linkage

from sfumato.engine.errors import Cancelled
from sfumato.engine.utility.cluster import LinkageTree, average_linkage


def parts(labels: np.ndarray) -> set[frozenset[int]]:
    """The clusters as sets of points, whatever they are called."""
    return {frozenset(np.flatnonzero(labels == label).tolist()) for label in set(labels.tolist())}


def of_scipy(points: np.ndarray, weights: np.ndarray, method: str = "average") -> np.ndarray:
    """scipy's merges of the points, each repeated as often as it weighs."""
    return linkage(np.repeat(points, weights, axis=0), method)


@pytest.mark.slow
@settings(max_examples=120, deadline=None, derandomize=True)
@given(
    n=st.integers(2, 60),
    d=st.integers(1, 4),
    heaviest=st.integers(1, 4),
    spread=st.floats(0, 3),
    seed=st.integers(0, 999),
)
def test_merges_are_those_of_scipy(n: int, d: int, heaviest: int, spread: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(n, d)) * np.exp(spread * rng.normal(size=(n, 1)))
    weights = rng.integers(1, heaviest + 1, n)
    merges = of_scipy(points, weights)
    found = average_linkage(points, weights.astype(float))
    assert np.sort(found.height) == pytest.approx(merges[-(n - 1) :, 2], rel=1e-9)
    first = np.cumsum(weights) - weights
    for clusters in (1, 2, 5, n):
        assert parts(found.cut_clusters(clusters)) == parts(fcluster(merges, clusters, "maxclust")[first])


def test_many_points_have_the_merges_of_scipy() -> None:
    points = np.random.default_rng(1).normal(size=(1500, 3))
    merges = of_scipy(points, np.ones(1500, int))
    found = average_linkage(points, np.ones(1500))
    assert np.abs(np.sort(found.height) - merges[:, 2]).max() < 1e-12
    assert parts(found.cut_clusters(10)) == parts(fcluster(merges, 10, "maxclust"))


def test_negative_control_other_merges_are_noticed() -> None:
    points = np.random.default_rng(1).normal(size=(60, 2))
    weights = np.tile([1, 9], 30)
    found = np.sort(average_linkage(points, weights.astype(float)).height)
    assert found != pytest.approx(of_scipy(points, weights, "weighted")[-59:, 2], rel=1e-3)
    assert found != pytest.approx(of_scipy(points, np.ones(60, int))[:, 2], rel=1e-3)


@pytest.mark.parametrize(
    "points",
    [
        np.exp(np.linspace(0, 20, 400))[:, None],
        1.01 ** np.arange(400.0)[:, None],
        np.arange(400.0)[:, None],
        np.stack(np.meshgrid(np.arange(20.0), np.arange(20.0)), -1).reshape(-1, 2),
    ],
    ids=["gaps that grow", "gaps that grow slowly", "equal gaps", "grid"],
)
def test_chains_and_ties_end_in_a_dendrogram(points: np.ndarray) -> None:
    """Where few pairs, or only tied ones, are each other's nearest: every point but one is merged away, at rising heights."""
    found = average_linkage(points, np.ones(len(points)))
    assert len(set(found.gone.tolist())) == len(points) - 1
    assert (found.height > 0).all()
    for clusters in (1, 2, 10, 399):
        assert len(parts(found.cut_clusters(clusters))) == clusters


def test_gaps_that_grow_are_merged_as_by_scipy() -> None:
    points = 1.01 ** np.arange(400.0)[:, None]
    found = average_linkage(points, np.ones(400))
    assert np.sort(found.height) == pytest.approx(of_scipy(points, np.ones(400, int))[:, 2], rel=1e-9)


def test_heights_of_a_worked_example() -> None:
    """0 and 1 merge at 1, 5 and 7 at 2, and both at the mean of 5, 7, 4 and 6; three records at 0 pull that up."""
    points = np.array([[0.0], [1.0], [5.0], [7.0]])
    assert np.sort(average_linkage(points, np.ones(4)).height) == pytest.approx([1, 2, 5.5])
    assert np.sort(average_linkage(points, np.array([3.0, 1, 1, 1])).height) == pytest.approx([1, 2, 5.75])


@pytest.mark.parametrize("points", [1, 2])
def test_few_points(points: int) -> None:
    found = average_linkage(np.arange(float(points))[:, None], np.ones(points))
    assert len(found.height) == points - 1
    assert found.cut_clusters(10).tolist() == list(range(points))
    assert found.cut_clusters(1).tolist() == [0] * points


def test_cut_undoes_the_later_of_two_equal_merges() -> None:
    """0-1, 2-3 and both pairs at one height: two clusters are the pairs."""
    found = LinkageTree(np.array([0, 2, 0]), np.array([1, 3, 2]), np.array([1.0, 1.0, 1.0]))
    assert found.cut_clusters(2).tolist() == [0, 0, 1, 1]


def test_inputs_are_left_alone_and_the_caller_may_stop() -> None:
    points, weights = np.random.default_rng(1).normal(size=(50, 2)), np.ones(50)
    kept = points.copy()
    told: list[int] = []
    average_linkage(points, weights, told.append)
    assert np.array_equal(points, kept)
    assert np.array_equal(weights, np.ones(50))
    assert told == sorted(told, reverse=True)

    def stop(clusters: int) -> None:
        if clusters < 20:
            raise Cancelled

    with pytest.raises(Cancelled):
        average_linkage(points, weights, stop)
