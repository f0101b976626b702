"""What records of a unit share: normal scores and shares of a variance."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm, rankdata

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.data.schema import Kind, Role, Schema, Variable
from sfumato.engine.statistics.unit_effects import LARGEST_SHARE, normal_scores, shared_variance

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
