"""The band of the mean over fresh datasets and fresh noise: against R, by simulation, and what it was before."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import binom

from sfumato.engine.statistics.combining import complete_rows_and_columns, crossed_mean, monte_carlo_mean

VALUES = [
    [12.1, 10.4, 13.0, 11.7, 9.8],
    [14.2, 12.9, 15.1, 13.3, 12.2],
    [11.0, 9.9, 12.6, 10.2, 9.1],
    [13.5, 11.1, 13.9, 12.8, 11.6],
]
CHANCE = 1e-4
"""Of a false alarm of one comparison of a coverage with 93 or 97 %."""


def test_it_is_the_analysis_of_variance_of_r() -> None:
    """R 4: a <- summary(aov(y ~ dataset + noise))[[1]]; V <- (MS[1] + MS[2] - MS[3])/20; nu <- (20 V)^2/sum(MS^2/df)."""
    found = crossed_mean(np.array(VALUES))
    assert found.estimate == pytest.approx(12.02, rel=1e-12)
    assert found.standard_error**2 == pytest.approx(0.71365, rel=1e-10)
    assert found.combined.degrees_of_freedom == pytest.approx(6.1851162100, rel=1e-10)
    assert found.interval() == pytest.approx((9.9678069655, 14.0721930345), rel=1e-10)
    assert found.shares is not None
    shares = found.shares.datasets, found.shares.noise, found.shares.interaction
    assert shares == pytest.approx((0.5921144819, 0.3997991546, 0.0080863635), abs=1e-9)


def test_without_one_component_it_is_student_s_interval_of_the_other_s_means() -> None:
    rows = np.random.default_rng(1).normal(size=(6, 1)) + np.zeros((1, 5))
    for values in (rows, rows.T):
        found = crossed_mean(values)
        assert found.interval() == pytest.approx(monte_carlo_mean(rows[:, 0].tolist())[1:], rel=1e-9)


def test_equal_values_have_no_variance_to_share() -> None:
    found = crossed_mean(np.full((4, 5), 0.1))
    assert (found.estimate, found.standard_error, found.shares) == (0.1, 0.0, None)


@pytest.mark.parametrize("shape", [(1, 5), (5, 1)])
def test_a_layout_has_two_rows_and_two_columns(shape: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="two or more"):
        crossed_mean(np.arange(5.0).reshape(shape))


@pytest.mark.slow
@given(
    st.tuples(st.integers(2, 6), st.integers(2, 6)).flatmap(
        lambda shape: arrays(np.int64, shape, elements=st.integers(0, 9))
    ),
    st.randoms(use_true_random=False),
)
def test_order_place_and_scale_of_the_values_do_not_matter(drawn: np.ndarray, random) -> None:
    values = drawn.astype(np.float64)
    found = crossed_mean(values)
    rows, columns = (random.sample(range(n), n) for n in values.shape)
    turned = crossed_mean(7.0 + 3.0 * values[np.ix_(rows, columns)].T)
    half, other = (one.interval()[1] - one.estimate for one in (found, turned))
    assert turned.estimate == pytest.approx(7.0 + 3.0 * found.estimate)
    assert other == pytest.approx(3.0 * half, rel=1e-6, abs=1e-9)
    assert (found.shares is None) == (np.ptp(values) == 0)
    if found.shares is not None and turned.shares is not None:
        shares = np.array([found.shares.datasets, found.shares.noise, found.shares.interaction])
        assert half > 0
        assert shares.sum() == pytest.approx(1)
        assert shares.min() >= 0
        swapped = turned.shares.noise, turned.shares.datasets, turned.shares.interaction
        np.testing.assert_allclose(shares, swapped, atol=1e-9)


@pytest.mark.slow
@given(
    st.tuples(st.integers(1, 5), st.integers(1, 5)).flatmap(
        lambda shape: arrays(np.float64, shape, elements=st.sampled_from([1.0, np.nan]))
    )
)
def test_what_is_kept_has_no_holes_and_nothing_is_lost_without_them(values: np.ndarray) -> None:
    rows, columns = complete_rows_and_columns(values)
    kept = values[np.ix_(rows, columns)]
    assert not np.isnan(kept).any()
    assert (kept.size > 0) == bool((~np.isnan(values)).any())
    if not np.isnan(values).any():
        assert kept.shape == values.shape


def test_one_hole_costs_one_dataset_of_many_and_not_one_replicate_of_few() -> None:
    values = np.ones((20, 5))
    values[3, 2] = np.nan
    rows, columns = complete_rows_and_columns(values)
    assert (rows.sum(), columns.sum()) == (19, 5)


def layouts(shape, parts, repetitions: int, seed: int) -> np.ndarray:
    """Layouts (repetitions, m, R) around 0; ``parts`` are the variances of their mean by datasets, noise and interaction."""
    rng, (m, replicates), (d, n, e) = np.random.default_rng(seed), shape, parts
    return (
        np.sqrt(d * m) * rng.standard_normal((repetitions, m, 1))
        + np.sqrt(n * replicates) * rng.standard_normal((repetitions, 1, replicates))
        + np.sqrt(e * m * replicates) * rng.standard_normal((repetitions, m, replicates))
    )


def covering(values: np.ndarray) -> int:
    """How many of the bands hold 0, the mean over fresh datasets and fresh noise."""
    bands = [crossed_mean(one).interval() for one in values]
    return sum(lower <= 0 <= upper for lower, upper in bands)


def covering_of_datasets_alone(values: np.ndarray) -> int:
    """How many did as bands were: Student's interval of m datasets, each met by the same single replicate."""
    bands = [monte_carlo_mean(one[:, 0].tolist())[1:] for one in values]
    return sum(lower <= 0 <= upper for lower, upper in bands)


def limits(repetitions: int, least: float = 0.93, most: float = 0.97) -> tuple[int, int]:
    """Between how many bands of so many may hold the truth when the coverage lies between ``least`` and ``most``."""
    return int(binom.ppf(CHANCE, repetitions, least)), int(binom.ppf(1 - CHANCE, repetitions, most))


MIXED = [(1, 1, 0.2), (3, 1, 0.2), (1, 3, 0.2), (1, 0, 0), (0, 1, 0), (1, 1, 1)]


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(20, 5), (5, 5), (8, 4)])
def test_bands_hold_the_mean_over_fresh_noise_and_fresh_datasets(shape: tuple[int, int]) -> None:
    least, most = limits(400)
    found = {parts: covering(layouts(shape, parts, 400, seed=11)) for parts in MIXED}
    assert {parts: count for parts, count in found.items() if not least <= count <= most} == {}


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(2, 5), (20, 2), (3, 3)])
def test_bands_of_few_datasets_or_replicates_hold_it_at_least_as_often(shape: tuple[int, int]) -> None:
    least = limits(400, 0.945)[0]
    found = {parts: covering(layouts(shape, parts, 400, seed=12)) for parts in [*MIXED, (0.05, 1, 0), (1, 0.05, 0)]}
    assert {parts: count for parts, count in found.items() if count < least} == {}


def test_negative_control_bands_over_datasets_alone_do_not() -> None:
    least = limits(400)[0]
    found = [covering_of_datasets_alone(layouts((20, 5), parts, 400, seed=13)) for parts in ((1, 1, 0.2), (1, 3, 0.2))]
    assert max(found) < least
    assert covering_of_datasets_alone(layouts((20, 5), (1, 0, 0), 400, seed=13)) >= least, "right without noise"


@pytest.mark.study
def test_coverage_over_sizes_and_ratios_of_the_variances() -> None:
    repetitions = 10_000
    ratios = list(itertools.product((0, 0.05, 0.2, 0.5, 1), (0, 0.05, 0.2, 0.5, 1), (0.05, 0.5)))
    print(f"\n{'m':>4} {'R':>4} {'least %':>8} {'mean %':>8} {'most %':>8}")
    for shape in ((4, 4), (5, 5), (20, 4), (20, 5), (20, 10), (50, 5), (2, 2), (2, 5), (3, 5), (20, 2), (20, 3)):
        found = [
            covering(layouts(shape, parts, repetitions // len(ratios) * 4, seed)) for seed, parts in enumerate(ratios)
        ]
        share = 100 * np.array(found) / (repetitions // len(ratios) * 4)
        print(f"{shape[0]:>4} {shape[1]:>4} {share.min():>8.1f} {share.mean():>8.1f} {share.max():>8.1f}")
        least, most = limits(repetitions // len(ratios) * 4, *((0.93, 0.975) if min(shape) > 3 else (0.945, 1.0)))
        assert least <= min(found)
        assert max(found) <= most
