from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit
from scipy.stats import norm, t

from sfumato.engine.data.intervals import Range
from sfumato.engine.data.provenance import FitUncertainty, Parameters, ReleaseProvenance, StepProvenance
from sfumato.engine.errors import NotComputable
from sfumato.engine.statistics.combining import (
    BETWEEN_RULE,
    DRAWN_RULE,
    ESTIMATED_RULE,
    CombinedEstimate,
    MeanWithVariance,
    combine_datasets,
    combining_rule,
    monte_carlo_mean,
)

POPULATIONS = 3000
RECORDS = 100

positive = st.floats(0.01, 100)
values = st.lists(st.floats(-100, 100), min_size=2, max_size=8)


def release_provenance(
    m: int, *parameters: Parameters, ratio: float = 1, kept: tuple[str, ...] = (), **more: Any
) -> ReleaseProvenance:
    """A release of m datasets with one step for each kind of parameters."""
    steps = tuple(StepProvenance((f"v{i}",), FitUncertainty(one)) for i, one in enumerate(parameters))
    return ReleaseProvenance("synthetic", RECORDS, (int(RECORDS * ratio),) * m, steps, kept, **more)


def partial(m: int, ratio: float = 1) -> ReleaseProvenance:
    return release_provenance(m, "drawn", ratio=ratio, kept=("age",))


def test_partial_synthesis_by_hand() -> None:
    """q = 4, b = 4, u = 2, m = 3: T = 2 + 4/3, df = 2 (1 + 3 * 2 / 4)^2 = 12.5."""
    found = combine_datasets([2.0, 4.0, 6.0], [1.0, 2.0, 3.0], partial(3))
    assert (found.estimate, found.variance, found.degrees_of_freedom) == (
        4.0,
        pytest.approx(10 / 3),
        pytest.approx(12.5),
    )
    assert found.interval(0.9) == pytest.approx(t.interval(0.9, 12.5, 4, np.sqrt(10 / 3)))
    assert found.rule is BETWEEN_RULE


@pytest.mark.parametrize(("parameters", "variance"), [("estimated", 4 + 2 / 3), ("drawn", 4 + (2 + 4) / 3)])
def test_full_synthesis_by_hand(parameters: Parameters, variance: float) -> None:
    """u = 2 of datasets twice as large, so V = 4; drawing three adds u/3, and V/3 where parameters are drawn too."""
    found = combine_datasets([2.0, 4.0, 6.0], [1.0, 2.0, 3.0], release_provenance(3, parameters, ratio=2))
    assert (found.estimate, found.variance, found.degrees_of_freedom) == (4.0, pytest.approx(variance), RECORDS - 1)
    assert found.interval() == pytest.approx(t.interval(0.95, RECORDS - 1, 4, np.sqrt(variance)))


def test_datasets_of_unequal_size_each_say_what_the_variance_of_the_confidential_estimate_is() -> None:
    """Variances 1 / r of sizes r = 1/2, 2, 4 are all of a confidential variance of 1; the mean ratio would make it 1.99."""
    sizes = replace(release_provenance(3, "estimated"), rows=(50, 200, 400))
    found = combine_datasets([3.0, 3.0, 3.0], [2.0, 0.5, 0.25], sizes)
    assert found.confidential_variance == pytest.approx(1.0)
    assert np.mean([0.5, 2.0, 4.0]) * np.mean([2.0, 0.5, 0.25]) == pytest.approx(1.986, abs=1e-3)


@pytest.mark.parametrize(
    ("release", "rule"),
    [
        (release_provenance(1, "estimated"), ESTIMATED_RULE),
        (release_provenance(2, "drawn", "drawn"), DRAWN_RULE),
        (release_provenance(5, "drawn"), BETWEEN_RULE),
        (release_provenance(2, "drawn", "estimated"), BETWEEN_RULE),
        (partial(2), BETWEEN_RULE),
        (release_provenance(2, "drawn", has_survey_design=True), BETWEEN_RULE),
        (release_provenance(2), BETWEEN_RULE),
    ],
)
def test_the_rule_follows_from_how_the_release_came_about(release: ReleaseProvenance, rule: object) -> None:
    assert combining_rule(release) is rule


@pytest.mark.parametrize(
    ("release", "reason"),
    [
        (partial(1), "one dataset alone"),
        (release_provenance(1, "drawn", "estimated"), "one dataset alone"),
        (release_provenance(1), "one dataset alone"),
        (partial(2, 0.5), "2 datasets show too little of how much datasets differ; release 3 or more"),
        (partial(4, 0.1), "release 5 or more"),
        (release_provenance(5, "drawn", has_record_weights=True), "another mix of people"),
        (replace(partial(5), origin="anonymised"), "anonymised"),
        (
            replace(
                release_provenance(5),
                steps=(StepProvenance(("a",), FitUncertainty("estimated", "noise was added once")),),
            ),
            "noise was added once, so all datasets share this error",
        ),
    ],
)
def test_without_a_rule_that_covers_there_is_no_estimate_and_the_reason_is_said(
    release: ReleaseProvenance, reason: str
) -> None:
    m = len(release.rows)
    with pytest.raises(NotComputable, match=reason):
        combine_datasets([1.0] * m, [1.0] * m, release)


def test_the_description_of_the_release_is_no_option() -> None:
    with pytest.raises(TypeError, match="provenance"):
        combine_datasets([1.0, 2.0], [1.0, 1.0])  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="2 estimates of 3 datasets"):
        combine_datasets([1.0, 2.0], [1.0, 1.0], partial(3))


def test_an_estimate_that_drawing_cannot_explain_differs_from_the_confidential_one() -> None:
    """Drawing five datasets with one estimate adds u/5 = .2: 3.3 standard deviations are 1.48."""
    found = combine_datasets([1.0] * 5, [1.0] * 5, release_provenance(5, "estimated"))
    assert not found.differs_from(2.47)
    assert found.differs_from(2.48)
    # of 1,000 datasets 3.3 standard deviations are .1, but a quarter of a standard error is no reason
    many = combine_datasets([1.0] * 1000, [1.0] * 1000, release_provenance(1000, "estimated"))
    assert not many.differs_from(1.24)
    assert many.differs_from(1.26)
    exact = combine_datasets([0.1] * 2, [0.0] * 2, release_provenance(2, "estimated"))
    assert not exact.differs_from(0.1)


@settings(derandomize=True, deadline=None)
@given(values, positive)
def test_partial_variance_is_never_below_that_within(estimates: list[float], variance: float) -> None:
    found = combine_datasets(estimates, [variance] * len(estimates), partial(len(estimates)))
    assert found.variance >= variance * (1 - 1e-12)
    assert found.degrees_of_freedom >= len(estimates) - 1 - 1e-9


@settings(derandomize=True, deadline=None)
@given(values, positive, st.floats(0.01, 100), st.sampled_from(["drawn", "estimated", "unknown"]))
def test_units_do_not_matter(estimates: list[float], variance: float, unit: float, parameters: Parameters) -> None:
    if np.ptp(estimates) < 1e-3:
        return
    release = release_provenance(len(estimates), parameters)
    plain = combine_datasets(estimates, [variance] * len(estimates), release)
    scaled = combine_datasets([unit * q for q in estimates], [unit**2 * variance] * len(estimates), release)
    assert scaled.variance == pytest.approx(unit**2 * plain.variance, rel=1e-6)


def test_datasets_that_agree_have_a_normal_interval() -> None:
    found = combine_datasets([3.0, 3.0], [4.0, 4.0], partial(2))
    assert found.interval() == pytest.approx(norm.interval(0.95, 3, 2))


def test_the_monte_carlo_interval_is_that_of_student() -> None:
    mean, lower, upper = monte_carlo_mean([3.0, 5.0, 10.0], 0.9)
    assert mean == 6.0
    assert (lower, upper) == pytest.approx(t.interval(0.9, 2, 6, np.std([3, 5, 10], ddof=1) / np.sqrt(3)))


def test_the_intervals_of_combinations_and_averages_stay_inside_the_range() -> None:
    """Shares .9, .95 and 1: log odds 2.94 +- 4.303 x .0289 / (.95 x .05). On the share itself the end would be 1.074."""
    mean, lower, upper = monte_carlo_mean([0.9, 0.95, 1.0], within=(0, 1))
    h = t.isf(0.025, 2) * 0.05 / np.sqrt(3) / (0.95 * 0.05)
    assert (mean, lower, upper) == pytest.approx((0.95, expit(np.log(19) - h), expit(np.log(19) + h)))
    found = combine_datasets([0.9, 0.95, 1.0], [0.0, 0.0, 0.0], partial(3)).interval(within=(0, 1))
    assert found == pytest.approx((lower, upper))
    assert monte_carlo_mean([0.9, 0.95, 1.0])[2] == pytest.approx(1.0742, abs=1e-4)


def test_values_that_are_all_alike_are_the_whole_interval() -> None:
    for value, within in ((0.1, (0, 1)), (1.0, (0, 1)), (0.0, (0, None)), (1.0, (None, 1)), (0.3, (None, None))):
        mean, lower, upper = monte_carlo_mean([value] * 3, within=within)
        assert mean == pytest.approx(value)
        assert lower == mean == upper


@pytest.mark.parametrize(("within", "right"), [((0.0, 1.0), True), ((None, None), False)])
def test_combined_intervals_of_a_small_share_cover_on_the_log_odds_and_not_on_the_share(
    within: Range, right: bool
) -> None:
    """5 % of samples of 100; three datasets each from the posterior predictive by the prior of Jeffreys."""
    rng, hits = np.random.default_rng(3), 0
    for _ in range(2000):
        found = rng.binomial(100, 0.05)
        shares = rng.binomial(100, rng.beta(found + 0.5, 100.5 - found, 3)) / 100
        lower, upper = combine_datasets(shares, shares * (1 - shares) / 99, partial(3)).interval(0.95, within)
        hits += lower <= 0.05 <= upper
    assert (0.94 < hits / 2000 < 0.97) == right, hits


def synthetic_means(m: int, ratio: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Means and their variances, (POPULATIONS, m) each, of datasets drawn from the posterior predictive of a normal sample.

    The population's mean is 0; prior proportional to 1 / sigma^2, so that the posterior is exact.
    """
    rng = np.random.default_rng(seed)
    n, size = RECORDS, int(RECORDS * ratio)
    mean = rng.normal(size=(POPULATIONS, 1)) / np.sqrt(n)
    squares = rng.chisquare(n - 1, size=(POPULATIONS, 1))
    sigma2 = squares / rng.chisquare(n - 1, size=(POPULATIONS, m))
    drawn = mean + np.sqrt(sigma2 / n) * rng.normal(size=(POPULATIONS, m))
    q = drawn + np.sqrt(sigma2 / size) * rng.normal(size=(POPULATIONS, m))
    return q, sigma2 * rng.chisquare(size - 1, size=(POPULATIONS, m)) / (size - 1) / size


def coverage(release: ReleaseProvenance | str, q: np.ndarray, u: np.ndarray) -> float:
    """Coverage of the product's interval, or of the earlier rule with this name."""
    rule = {"u": only_within, "b": only_between, "T_p": partial_rule, "T_f": full_rule}.get(str(release))
    intervals = [
        (combine_datasets(*pair, release) if isinstance(release, ReleaseProvenance) else rule(*pair)).interval()  # type: ignore[misc]
        for pair in zip(q, u, strict=True)
    ]
    return float(np.mean([lower <= 0 <= upper for lower, upper in intervals]))


def only_within(q: np.ndarray, u: np.ndarray) -> MeanWithVariance:
    return MeanWithVariance(float(np.mean(q)), float(np.mean(u)), np.inf)


def only_between(q: np.ndarray, u: np.ndarray) -> MeanWithVariance:
    return MeanWithVariance(float(np.mean(q)), float(np.var(q, ddof=1)) / len(q), len(q) - 1)


def partial_rule(q: np.ndarray, u: np.ndarray) -> MeanWithVariance:
    """Reiter's T_p, whatever the number of rows."""
    m, b = len(q), float(np.var(q, ddof=1))
    total = float(u.mean()) + b / m
    return MeanWithVariance(float(q.mean()), total, (m - 1) * (total / (b / m)) ** 2)


def full_rule(q: np.ndarray, u: np.ndarray) -> MeanWithVariance:
    """T_f of Raghunathan, Reiter & Rubin, the mean variance where it is negative or has less than one degree of freedom."""
    m, b = len(q), float(np.var(q, ddof=1))
    total = (1 + 1 / m) * b - float(u.mean())
    degrees = (m - 1) * (1 - float(u.mean()) / ((1 + 1 / m) * b)) ** 2 if total > 0 else 0.0
    return MeanWithVariance(float(q.mean()), *((total, degrees) if degrees >= 1 else (float(u.mean()), np.inf)))


@pytest.mark.slow
@pytest.mark.parametrize("ratio", [0.25, 1, 4])
@pytest.mark.parametrize("m", [1, 2, 5, 20])
def test_intervals_of_full_synthesis_cover_for_any_number_of_datasets_and_rows(m: int, ratio: float) -> None:
    """Synthetic records of a normal sample; the earlier rules are the control."""
    q, u = synthetic_means(m, ratio, seed=5)
    assert 0.938 < coverage(release_provenance(m, "drawn", ratio=ratio), q, u) < 0.965


@pytest.mark.slow
@pytest.mark.parametrize(
    ("m", "ratio", "rule"),
    [
        (1, 1, "u"), (5, 1, "b"), (2, 1, "T_f"), (2, 4, "T_f"), (5, 0.25, "T_f"),
        (2, 4, "T_p"), (5, 4, "T_p"), (20, 4, "T_p"), (20, 0.25, "T_p"), (20, 4, "u"),
    ],
)  # fmt: skip
def test_earlier_rules_do_not_cover(m: int, ratio: float, rule: str) -> None:
    assert not 0.93 < coverage(rule, *synthetic_means(m, ratio, seed=5)) < 0.97


def test_variances_with_few_degrees_of_freedom_widen_the_interval() -> None:
    """Satterthwaite's, of which the papers' degrees are those of variances that count as known."""
    estimates, variances = [1.0, 1.2, 0.9, 1.1], [0.04, 0.05, 0.04, 0.03]
    b, u, m, own = float(np.var(estimates, ddof=1)), float(np.mean(variances)), 4, 9.0
    known, found = (combine_datasets(estimates, variances, partial(m), degrees) for degrees in (np.inf, own))
    total = u + b / m
    assert found.degrees_of_freedom == pytest.approx(total**2 / ((b / m) ** 2 / (m - 1) + u**2 / own))
    assert known.degrees_of_freedom == pytest.approx((m - 1) * (1 + m * u / b) ** 2)
    assert (found.estimate, found.variance) == (known.estimate, known.variance)
    assert found.interval()[0] < known.interval()[0] < known.interval()[1] < found.interval()[1]
    assert combine_datasets([1.0, 1.0], [0.04, 0.04], partial(2), own).degrees_of_freedom == pytest.approx(own)
    full: CombinedEstimate = combine_datasets(estimates, variances, release_provenance(4, "drawn"), own)
    assert full.degrees_of_freedom == own
