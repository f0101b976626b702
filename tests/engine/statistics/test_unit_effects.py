"""What records of a unit share: normal scores and shares of a variance."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_normal, norm, rankdata

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.data.schema import Kind, Role, Schema, Variable
from sfumato.engine.statistics.unit_effects import (
    LARGEST_SHARE,
    choose_cuts,
    normal_scores,
    share_of_places,
    shared_variance,
)

SCHEMA = Schema((Variable("home", Kind.COUNT, Role.UNIT), Variable("y", Kind.CONTINUOUS)))


def records(home: np.ndarray) -> Microdata:
    return Microdata(SCHEMA, pd.DataFrame({"home": home, "y": np.zeros(len(home))}))


def test_scores_are_those_of_mean_ranks_within_each_group() -> None:
    rng = np.random.default_rng(1)
    groups, values = rng.integers(0, 7, 300), rng.integers(0, 12, 300).astype(float)
    values[groups == 3] = 5.0
    values[rng.random(300) < 0.1] = np.nan
    found = normal_scores(values, groups)
    for group in range(7):
        own = (groups == group) & ~np.isnan(values)
        expected = norm.ppf((rankdata(values[own]) - 0.5) / own.sum())
        np.testing.assert_allclose(found[own], np.nan if group == 3 else expected)
    assert np.isnan(found[np.isnan(values)]).all()


@pytest.mark.parametrize("share", [0.0, 0.3, 0.8])
def test_a_known_share_is_found(share: float) -> None:
    rng = np.random.default_rng(2)
    home = np.repeat(np.arange(4000), rng.integers(1, 5, 4000))
    values = np.sqrt(share) * rng.normal(size=4000)[home] + np.sqrt(1 - share) * rng.normal(size=len(home))
    assert shared_variance(values, records(home)) == pytest.approx(share, abs=0.03)


def test_a_share_lies_between_none_and_nearly_all() -> None:
    home = np.repeat(np.arange(50), 2)
    assert shared_variance(np.repeat(np.arange(50.0), 2), records(home)) == LARGEST_SHARE
    assert shared_variance(np.tile([-1.0, 1.0], 50), records(home)) == 0.0
    assert shared_variance(np.arange(50.0), records(np.arange(50))) == 0.0
    assert shared_variance(np.full(100, np.nan), records(home)) == 0.0


def chance_of_pair(first: tuple[float, float], second: tuple[float, float], share: float) -> float:
    """The bivariate normal probability of two intervals, by scipy."""
    both = multivariate_normal(cov=[[1, share], [share, 1]])
    (low, high), (left, right) = np.clip(first, -9, 9), np.clip(second, -9, 9)
    return float(both.cdf([high, right]) - both.cdf([low, right]) - both.cdf([high, left]) + both.cdf([low, left]))


@pytest.mark.parametrize("share", [0.05, 0.3, 0.6, 0.9])
@pytest.mark.parametrize(
    "below",
    [[[0.5], [0.5]], [[0.2], [0.45]], [[0.2, 0.5, 0.9], [0.1, 0.3, 0.4]], [[0.3, 0.3, 0.7], [0.0, 0.6, 1.0]]],
    ids=["halves", "binary", "levels", "impossible"],
)
def test_pairs_as_frequent_as_the_bivariate_normal_says_have_its_correlation(
    share: float, below: list[list[float]]
) -> None:
    """A tetrachoric or polychoric correlation: units of two whose levels occur as often as scipy computes."""
    levels = len(below[0]) + 1
    edges = [[-np.inf, *norm.ppf(one), np.inf] for one in below]
    many, pairs = 50_000, []
    for a in range(levels):
        for b in range(levels):
            chance = chance_of_pair((edges[0][a], edges[0][a + 1]), (edges[1][b], edges[1][b + 1]), share)
            pairs += [(a, b)] * round(max(chance, 0.0) * many)
    values = np.array(pairs, dtype=float).ravel()
    own = np.tile(np.array(below, dtype=float), (len(pairs), 1))
    cuts = np.arange(levels - 1, dtype=float)
    home = np.repeat(np.arange(len(pairs)), 2)
    assert share_of_places(values, cuts, own, records(home)) == pytest.approx(share, abs=0.005)


@pytest.mark.parametrize("share", [0.0, 0.4, 0.8])
def test_a_known_share_of_places_is_found_in_units_of_any_size(share: float) -> None:
    """Scores of ranks understate it; the share of places does not."""
    rng = np.random.default_rng(3)
    home = np.repeat(np.arange(4000), rng.integers(1, 6, 4000))
    z = np.sqrt(share) * rng.normal(size=4000)[home] + np.sqrt(1 - share) * rng.normal(size=len(home))
    below = norm.cdf(rng.normal(size=len(home))[:, None] + [-0.5, 1.0])
    values = (z[:, None] > norm.ppf(below)).sum(axis=1).astype(float)
    values[rng.random(len(home)) < 0.1] = np.nan
    found = share_of_places(values, np.arange(2.0), below, records(home))
    assert found == pytest.approx(share, abs=0.04)
    if share:
        naive = shared_variance(normal_scores(values, np.zeros(len(home), dtype=np.int64)), records(home))
        assert naive < 0.7 * share


def test_the_share_of_places_lies_between_none_and_nearly_all() -> None:
    home, half, cut = np.repeat(np.arange(50), 2), np.full((100, 1), 0.5), np.zeros(1)
    assert share_of_places(np.repeat(np.arange(50) % 2, 2) * 1.0, cut, half, records(home)) == LARGEST_SHARE
    assert share_of_places(np.tile([0.0, 1.0], 50), cut, half, records(home)) == 0.0
    assert share_of_places(np.full(100, np.nan), cut, half, records(home)) == 0.0
    assert share_of_places(np.zeros(100), np.empty(0), np.empty((100, 0)), records(home)) == 0.0
    assert share_of_places(np.tile([0.0, 1.0], 50), cut, half, records(np.arange(100))) == 0.0


def test_cuts_lie_below_the_largest_value_and_part_frequent_from_rare_ones() -> None:
    assert choose_cuts(np.array([0.0, 0.0, 0.0, 1.0, np.nan])).tolist() == [0.0]
    assert choose_cuts(np.array([2.0, 2.0])).tolist() == []
    assert choose_cuts(np.array([np.nan])).tolist() == []
    rare = np.concatenate([np.full(1000, 60.0), np.arange(20.0)])
    assert choose_cuts(rare).tolist() == [19.0]
    values = np.random.default_rng(1).poisson(200, 5000).astype(float)
    cuts = choose_cuts(values)
    assert 10 <= len(cuts) <= 15
    np.testing.assert_allclose([(values <= cut).mean() for cut in cuts], np.arange(1, len(cuts) + 1) / 16, atol=0.04)
