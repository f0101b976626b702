"""Between what another sample has a statistic, compared with samples that are drawn."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from sfumato.engine.data.arrays import Floats
from sfumato.engine.statistics.resampled import resampled_quantile, resampled_sd


@pytest.mark.parametrize("q", [0.1, 0.5, 0.9])
def test_a_quantile_of_another_sample_lies_in_the_range_in_19_of_20_cases(q: float) -> None:
    hits = _share_of_hits(lambda values: resampled_quantile(values, q), lambda values: float(np.quantile(values, q)))
    assert 0.92 < hits < 0.985


def test_a_standard_deviation_of_another_sample_lies_in_the_range_in_19_of_20_cases() -> None:
    hits = _share_of_hits(resampled_sd, lambda values: float(values.std(ddof=1)))
    assert 0.92 < hits < 0.98


def test_a_value_that_most_records_have_is_the_only_quantile() -> None:
    values = np.repeat([0.0, 5.0], [900, 100])
    assert resampled_quantile(values, 0.5) == (0.0, 0.0)
    assert resampled_quantile(values, 0.9) == (0.0, 5.0)
    assert resampled_sd(np.full(40, 3.0)) == (0.0, 0.0)


def _share_of_hits(range_of: Callable[[Floats], tuple[float, float]], statistic: Callable[[Floats], float]) -> float:
    """Return in which share of pairs of samples the statistic of the second lies in the range by the first."""
    rng, hits = np.random.default_rng(1), []
    for _ in range(1000):
        first, second = rng.gamma(4.0, size=(2, 400))
        low, high = range_of(first)
        hits.append(low <= statistic(second) <= high)
    return float(np.mean(hits))
