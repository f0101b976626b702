"""The smoothed bootstrap: no donor's value comes back, groups keep mean and variance, bounds and steps hold."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from prepared_tables import schema_of

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.schema import Kind, Variable
from sfumato.engine.methods.run import Run
from sfumato.engine.statistics.smoothing import common_step, reflect_at_bounds, smooth_donor_values
from sfumato.engine.synthesis.cart import CartSpec, cart, draw


def test_groups_keep_their_means_and_variances() -> None:
    rng = np.random.default_rng(1)
    group = np.repeat(np.arange(3), 40)
    donors = rng.gamma(2.0, 1.0 + 10 * group)
    drawn = np.repeat(np.arange(3), 60_000)
    values = np.concatenate([rng.choice(donors[group == g], 60_000) for g in range(3)])
    near = smooth_donor_values(values, drawn, donors, group, rng.standard_normal)
    for g in range(3):
        own = donors[group == g]
        assert near[drawn == g].mean() == pytest.approx(own.mean(), rel=0.02)
        assert near[drawn == g].var() == pytest.approx(own.var(), rel=0.03)
    assert not np.isin(near, donors).any()
    plain = values + 0.5 * donors.std() * rng.standard_normal(len(values))  # without the correction it is too wide
    assert plain[drawn == 0].var() > 1.2 * donors[group == 0].var()


def test_a_group_of_one_value_has_the_width_of_all() -> None:
    rng = np.random.default_rng(2)
    donors, group = np.array([5.0, 5.0, 5.0, 1.0, 9.0, 4.0]), np.array([0, 0, 0, 1, 1, 1])
    near = smooth_donor_values(np.full(100, 5.0), np.zeros(100, dtype=np.int64), donors, group, rng.standard_normal)
    assert len(np.unique(near)) == 100


def test_bounds_reflect_and_steps_hold() -> None:
    found = reflect_at_bounds(np.array([-0.3, 4.26, 10.4]), 0.0, 10.0, 0.05)
    assert found.tolist() == [0.3, 4.25, 9.6]
    assert common_step(found) == pytest.approx(0.05)
    assert reflect_at_bounds(np.array([-0.3]), None, None, 0.0).tolist() == [-0.3]
    far = reflect_at_bounds(np.array([25.0, -25.0]), 0.0, 10.0, 0.0)
    assert (far >= 0).all()
    assert (far <= 10).all()


SCHEMA = schema_of(
    "group: categorical", "spent: continuous", Variable("visits", Kind.COUNT, bounds=(0, 400)), "day: date"
)


@pytest.fixture
def data() -> Microdata:
    rng = np.random.default_rng(3)
    n = 600
    group = rng.integers(3, size=n)
    frame = pd.DataFrame(
        {
            "group": np.array(["a", "b", "c"])[group],
            "spent": np.where(rng.random(n) < 0.3, 0.0, np.round(np.exp(rng.normal(6 + group, 0.5, n)), 2)),
            "visits": rng.negative_binomial(1, 0.01, n).clip(max=400),
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(3000, size=n), unit="D"),
        }
    )
    return conform_to_schema(frame, SCHEMA)


def fit_and_draw(data: Microdata, target: str, **settings: object) -> np.ndarray:
    spec = CartSpec(predictors=("group",), **settings)  # type: ignore[arg-type]
    fit = cart(data, target, spec, Run(np.random.default_rng(4)), 1)
    return np.asarray(draw(fit, spec, target, data, data, 0, np.random.default_rng(5)))


@pytest.mark.slow
@pytest.mark.parametrize("target", ["spent", "day"])
def test_a_smoothed_tree_gives_no_lone_value_away_and_keeps_the_distribution(data: Microdata, target: str) -> None:
    own = data.numbers(target)
    plain, smooth = fit_and_draw(data, target), fit_and_draw(data, target, smoothing=True)
    assert np.isin(plain, own).all()
    values, counts = np.unique(own, return_counts=True)
    alone = values[counts == 1]
    by_chance, copied = 2 * (counts == 2).sum() / len(own), len(alone) / len(own)  # an independent sample: Good (1953)
    assert np.isin(plain, alone).mean() - by_chance > 0.6 * (copied - by_chance)
    assert np.isin(smooth, alone).mean() - by_chance < 0.1 * (copied - by_chance)
    for g in ("a", "b", "c"):
        rows = (data.frame["group"] == g).to_numpy()
        assert smooth[rows].mean() == pytest.approx(plain[rows].mean(), abs=0.5 * own[rows].std())
    assert smooth.std() == pytest.approx(plain.std(), rel=0.15)


def test_smoothed_values_keep_zeros_cents_signs_and_bounds(data: Microdata) -> None:
    plain, spent = fit_and_draw(data, "spent"), fit_and_draw(data, "spent", smoothing=True)
    assert ((plain == 0) == (spent == 0)).mean() > 0.99
    assert spent.min() >= 0
    assert common_step(spent) == pytest.approx(0.01)
    assert not np.isin(data.numbers("spent").max(), spent)
    visits = fit_and_draw(data, "visits", smoothing=True)
    assert (visits == np.rint(visits)).all()
    assert (visits.min() >= 0, visits.max() <= 400) == (True, True)


def test_without_smoothing_nothing_changes(data: Microdata) -> None:
    assert CartSpec().smoothing is False
    assert (fit_and_draw(data, "spent") == fit_and_draw(data, "spent", smoothing=False)).all()


def test_donors_that_count_for_several_are_as_wide_as_these() -> None:
    rng = np.random.default_rng(4)
    donors, group, times = rng.gamma(2.0, 5.0, 30), np.repeat([0, 1, 2], 10), rng.integers(1, 5, 30)
    values, of = rng.choice(donors, 200), rng.integers(0, 3, 200)
    noise = rng.standard_normal(200)
    weighed = smooth_donor_values(values, of, donors, group, lambda _: noise, times * 1.0)
    repeated = smooth_donor_values(values, of, np.repeat(donors, times), np.repeat(group, times), lambda _: noise)
    assert weighed == pytest.approx(repeated, abs=1e-9)
    assert np.abs(weighed - smooth_donor_values(values, of, donors, group, lambda _: noise)).max() > 0.1
