"""The models of an intruder's uncertainty against the distributions they are named for."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from sfumato.engine.matching.intruder import (
    NOISE_ON_NUMBERS,
    NoiseModel,
    constant_log_normal_noise,
    draw_unknown,
    log_normal_noise,
    log_relative_noise,
    misclassify,
    relative_noise,
)

N = 4000
COUNTS = np.concatenate([np.zeros(50), np.arange(1, 630, dtype=float)])


def rng(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


def is_normal(sample: np.ndarray, mean: float, sd: float) -> bool:
    return bool(stats.kstest(sample, "norm", (mean, sd)).pvalue > 0.001)


def test_every_model_is_offered() -> None:
    assert {*NOISE_ON_NUMBERS, "misclassification", "unknown"} == {*get_args(NoiseModel)}


@pytest.mark.parametrize("model", NOISE_ON_NUMBERS)
@pytest.mark.parametrize("whole", [True, False])
def test_no_uncertainty_changes_nothing(model: str, whole: bool) -> None:
    values = np.array([0.0, 0.1, 2.5, 1e300, np.nan, 7.0])
    believed = NOISE_ON_NUMBERS[model](values, 0.0, rng(), whole)
    np.testing.assert_array_equal(believed, values)
    assert believed is not values


def test_no_uncertainty_changes_no_category() -> None:
    values = np.array(["a", "b", None, "b"], dtype=object)
    assert misclassify(values, 0.0, rng()).tolist() == values.tolist()
    assert not draw_unknown(values, 0.0, rng()).any()


def test_log_normal_has_the_deviation_of_eq_11() -> None:
    value, level = 20.0, 0.01
    logs = np.log(log_normal_noise(np.full(N, value), level, rng(), whole=False))
    assert is_normal(logs, np.log(value), level * value)
    assert not is_normal(logs, np.log(value), level * np.log(value))


def test_log_normal_constant_has_one_deviation() -> None:
    logs = np.log(constant_log_normal_noise(np.full(N, 300.0), 0.2, rng(), whole=False))
    assert is_normal(logs, np.log(300.0), 0.2)
    assert not is_normal(logs, np.log(300.0), 0.1)


def test_log_relative_has_a_deviation_in_proportion_to_the_log() -> None:
    logs = np.log1p(log_relative_noise(np.full(N, 99.0), 0.1, rng()))
    assert is_normal(logs, np.log(100.0), 0.1 * np.log(100.0))
    assert not is_normal(logs, np.log(100.0), 0.1)


def test_relative_has_a_deviation_in_proportion_to_the_value() -> None:
    for value in (50.0, -50.0):
        believed = relative_noise(np.full(N, value), 0.1, rng(), whole=False)
        assert is_normal(believed, value, 5.0)
        assert not is_normal(believed, value, 10.0)


@pytest.mark.parametrize("model", ["log_normal", "log_normal_constant", "relative"])
def test_counts_stay_whole_and_zero_stays_zero(model: str) -> None:
    believed = NOISE_ON_NUMBERS[model](COUNTS, 0.15, rng(), True)
    assert (believed == np.round(believed)).all()
    assert (believed >= 0).all()
    assert (believed[COUNTS == 0] == 0).all()
    assert (believed != COUNTS).any()


@pytest.mark.parametrize("model", NOISE_ON_NUMBERS)
def test_huge_values_and_levels_stay_finite(model: str) -> None:
    values = np.array([0.0, 1.0, 1e5, 1e200])
    for seed in range(20):
        believed = NOISE_ON_NUMBERS[model](values, 5.0, rng(seed), False)
        assert np.isfinite(believed).all()
        assert (believed >= 0).all()


@pytest.mark.parametrize("model", NOISE_ON_NUMBERS)
def test_missing_stays_missing(model: str) -> None:
    believed = NOISE_ON_NUMBERS[model](np.array([np.nan, 3.0]), 0.1, rng(), False)
    assert np.isnan(believed[0])
    assert not np.isnan(believed[1])


@pytest.mark.parametrize("model", ["log_normal", "log_normal_constant", "log_relative"])
def test_log_scale_refuses_negative_values(model: str) -> None:
    with pytest.raises(ValueError, match="at least 0"):
        NOISE_ON_NUMBERS[model](np.array([-1.0]), 0.1, rng(), True)


def test_misclassification_is_as_frequent_as_said_and_even_over_the_others() -> None:
    values = np.repeat(["a", "b", "c"], N)
    believed = misclassify(values, 0.3, rng())
    changed = believed != values
    assert stats.binomtest(int(changed.sum()), 3 * N, 0.3).pvalue > 0.001
    assert stats.binomtest(int(changed.sum()), 3 * N, 0.25).pvalue < 0.001
    to_b = (believed[values == "a"] == "b").sum()
    assert stats.binomtest(int(to_b), int(changed[values == "a"].sum()), 0.5).pvalue > 0.001


def test_certain_misclassification_leaves_no_value() -> None:
    values = np.array(["a", "b", "b", "c"])
    assert (misclassify(values, 1.0, rng()) != values).all()
    assert misclassify(np.array(["a", "a"]), 1.0, rng()).tolist() == ["a", "a"]


def test_misclassified_missing_stays_missing() -> None:
    values = pd.Series(["a", None, "b"] * 10)
    assert pd.isna(misclassify(values, 1.0, rng()))[1::3].all()


def test_unknown_takes_the_share_said() -> None:
    lacking = draw_unknown(np.zeros(N), 0.2, rng())
    assert stats.binomtest(int(lacking.sum()), N, 0.2).pvalue > 0.001
    assert stats.binomtest(int(lacking.sum()), N, 0.25).pvalue < 0.001
    assert draw_unknown(np.zeros(N), 1.0, rng()).all()


def test_a_higher_level_only_adds_uncertainty() -> None:
    values = np.repeat(["a", "b"], 500)
    few, many = (misclassify(values, level, rng(3)) != values for level in (0.1, 0.4))
    assert many[few].all()
    assert many.sum() > few.sum()
    assert draw_unknown(values, 0.4, rng(3))[draw_unknown(values, 0.1, rng(3))].all()


@pytest.mark.parametrize("model", [misclassify, draw_unknown])
def test_probabilities_above_one_are_refused(model) -> None:
    with pytest.raises(ValueError, match="at most 1"):
        model(np.array(["a", "b"]), 1.5, rng())


def test_inputs_are_left_alone() -> None:
    values = COUNTS.copy()
    values.flags.writeable = False
    for model in NOISE_ON_NUMBERS.values():
        model(values, 0.1, rng(), True)
    misclassify(values, 0.5, rng())
