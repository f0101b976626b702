"""Intervals of values that rest on samples, permutations or noise: how often they hold what all of it would give, and narrower ones less often."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
import pytest

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.schema import Kind, Schema, Variable
from sfumato.engine.matching.matching import IDENTIFICATION_SUMMARIES, MatchResults
from sfumato.engine.methods.results import Estimate
from sfumato.engine.methods.run import Run
from sfumato.engine.quality import _columns
from sfumato.engine.quality._columns import normalised_information
from sfumato.engine.risk.identification import _effective_cases, summary_limits
from sfumato.engine.statistics.estimated import ValueWithInterval
from sfumato.engine.utility.cluster import ClusterSpec, cluster
from sfumato.engine.utility.propensity import PropensitySpec, propensity

SCHEMA = Schema((Variable("group", Kind.CATEGORICAL, levels=tuple("abc")), Variable("price", Kind.CONTINUOUS)))


def table(n: int, seed: int, shift: float = 0.0) -> Microdata:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"group": rng.choice(list("abc"), n), "price": rng.normal(shift, 1, n)})
    return conform_to_schema(frame, SCHEMA)


def covered(found: Sequence[ValueWithInterval], truth: float, narrowed: float = 1.0) -> float:
    """How many of the intervals hold the truth, their half widths made narrower by a factor."""
    ends = [(one.value, *one.interval) for one in found if one.interval is not None]
    assert len(ends) == len(found)
    return float(np.mean([v - narrowed * (v - low) <= truth <= v + narrowed * (high - v) for v, low, high in ends]))


def of(estimate: Estimate) -> ValueWithInterval:
    assert estimate.value is not None
    return ValueWithInterval(estimate.value, estimate.lower, estimate.upper)


@pytest.mark.parametrize("name", IDENTIFICATION_SUMMARIES)
def test_limits_of_targets_drawn_at_random_hold_what_all_give(name: str) -> None:
    """600 people, of whom 200 are sought."""
    rng = np.random.default_rng(1)
    candidates = rng.integers(1, 4, 600)
    everybody = MatchResults(candidates, rng.random(600) < 0.6)
    scale = 1 if name.endswith("rate") else 600 / 200
    truth, found = IDENTIFICATION_SUMMARIES[name](everybody) / scale, list[ValueWithInterval]()
    for _ in range(800):
        rows = rng.choice(600, 200, replace=False)
        some = MatchResults(everybody.candidates[rows], everybody.hit[rows])
        value = IDENTIFICATION_SUMMARIES[name](some)
        found.append(ValueWithInterval(value, *summary_limits(name, value, some, _effective_cases(200, 600))))
    assert covered(found, truth) >= 0.93
    assert covered(found, truth, 0.4) < 0.9
    if name == "true_match_rate":
        assert covered(found, truth) <= 0.97
    value = IDENTIFICATION_SUMMARIES[name](everybody)
    assert summary_limits(name, value, everybody, _effective_cases(600, 600)) == (value, value)


@pytest.mark.slow
def test_limits_of_the_ratio_to_permutations_hold_the_ratio_to_all_of_them() -> None:
    confidential, released = table(60, 1), table(60, 2, 0.8)

    def sampled_value(seed: int, permutations: int) -> ValueWithInterval:
        spec = PropensitySpec.from_table({"model": "cart", "permutations": permutations, "minbucket": 8}, "step")
        found = propensity(confidential, released, spec, Run(np.random.default_rng(seed))).estimates
        return of(next(one for one in found if one.measure == "s_pmse"))

    truth, found = sampled_value(0, 800).value, [sampled_value(seed, 6) for seed in range(1, 151)]
    assert 0.9 <= covered(found, truth) <= 0.99
    assert covered(found, truth, 0.4) < 0.85


@pytest.mark.slow
@pytest.mark.parametrize("n", [1000, 150])
def test_limits_of_information_hold_the_mean_over_all_samples_and_noises(
    n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_columns, "SAMPLE_SIZE", 200)
    x = np.random.default_rng(1).poisson(6, n).astype(float)
    y = np.floor(x / 2)

    def sampled_value(seed: int, samples: int) -> ValueWithInterval:
        found = normalised_information(x, y, x, samples=samples, neighbours=3, rng=np.random.default_rng(seed))
        assert found is not None
        return found.scaled

    truth, found = sampled_value(0, 400).value, [sampled_value(seed, 5) for seed in range(1, 121)]
    assert 0.89 <= covered(found, truth) <= 0.995
    assert covered(found, truth, 0.4) < 0.85


@pytest.mark.slow
def test_limits_of_several_samples_that_are_clustered_hold_the_mean_over_many() -> None:
    confidential, released = table(300, 1), table(300, 2, 0.7)

    def sampled_value(seed: int, samples: int) -> ValueWithInterval:
        spec = ClusterSpec.from_table({"limit": 60, "samples": samples, "clusters": 4}, "step")
        (found,) = cluster(confidential, released, spec, Run(np.random.default_rng(seed))).estimates
        return of(found)

    truth, found = sampled_value(0, 400).value, [sampled_value(seed, 5) for seed in range(1, 101)]
    assert 0.88 <= covered(found, truth) <= 0.995
    assert covered(found, truth, 0.4) < 0.85
    assert sampled_value(0, 1).interval is None


def test_what_looks_at_everything_has_an_interval_without_width() -> None:
    confidential, released = table(60, 1), table(50, 2, 0.5)
    exact: list[Callable[[], list[Estimate]]] = [
        lambda: list(cluster(confidential, released, ClusterSpec(), Run(np.random.default_rng(1))).estimates),
        lambda: [
            one
            for one in propensity(confidential, released, PropensitySpec(), Run(np.random.default_rng(1))).estimates
            if one.measure != "pmse"
        ],
    ]
    for measure in exact:
        for one in measure():
            assert one.lower == one.value == one.upper
            assert one.value is not None
            assert math.isfinite(one.value)
