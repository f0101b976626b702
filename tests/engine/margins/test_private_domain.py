"""Levels and ranges by noisy counts: the exact privacy loss of what is kept, on every small table, and what a threshold below the noise gives away."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest
from scipy.stats import norm

from sfumato.engine.margins.private_domain import (
    DeclaredRange,
    _cell_edges,
    _count_in_cells,
    _power_edges,
    count_noisy_cells,
    level_threshold,
    select_levels,
)
from sfumato.engine.margins.zcdp import epsilon_of_rho, sigma_of_rho

RHO, FAILED, DELTA = 0.5, 0.01, 0.02
SIGMA = sigma_of_rho(RHO)
Counts = tuple[int, ...]


def hockey_stick(first: np.ndarray, second: np.ndarray, epsilon: float) -> float:
    """The least delta at which ``first`` is no more than exp(epsilon) times ``second``: of passes, one of two outcomes a level."""
    worst = 0.0
    for p, q in ((first, second), (second, first)):
        found = 0.0
        for passed in itertools.product((True, False), repeat=len(p)):
            some = np.array(passed)
            found += max(
                0.0,
                float(np.prod(np.where(some, p, 1 - p)) - np.exp(epsilon) * np.prod(np.where(some, q, 1 - q))),
            )
        worst = max(worst, found)
    return worst


def passing(counts: Counts, sigma: float, threshold: float) -> np.ndarray:
    """The probability that each level is kept; one that does not occur never is."""
    return np.where(np.array(counts) > 0, norm.sf(threshold, np.array(counts), sigma), 0.0)


def more(counts: Counts, records: int) -> Iterator[Counts]:
    """The table with so many records of one person more, in every way."""
    for places in itertools.combinations_with_replacement(range(len(counts)), records):
        yield tuple(count + places.count(at) for at, count in enumerate(counts))


@pytest.mark.slow
@pytest.mark.parametrize("records", [1, 3])
def test_the_exact_loss_of_the_kept_levels_is_within_the_claim_on_every_small_table(records: int) -> None:
    epsilon, sigma = epsilon_of_rho(RHO, DELTA - FAILED), records * SIGMA
    threshold = level_threshold(sigma, FAILED, records)
    worst = wrong = 0.0
    for counts in itertools.product((0, 1, 4, 9), repeat=3):
        for other in more(counts, records):
            worst = max(
                worst, hockey_stick(passing(counts, sigma, threshold), passing(other, sigma, threshold), epsilon)
            )
            low = records + 0.5 * sigma
            wrong = max(wrong, hockey_stick(passing(counts, sigma, low), passing(other, sigma, low), epsilon))
    assert 0 < worst <= DELTA
    assert wrong > 5 * DELTA, "the control: a threshold of half a standard deviation releases a person's own level"


def test_a_persons_new_levels_pass_as_rarely_as_was_said() -> None:
    for records in (1, 3):
        sigma = records * SIGMA
        for split in ([records], [1] * records):
            missed = float(norm.sf(level_threshold(sigma, FAILED, records), np.array(split), sigma).sum())
            assert missed <= FAILED
    assert norm.sf(level_threshold(SIGMA, FAILED), 1, SIGMA) == pytest.approx(FAILED)


def test_levels_are_kept_as_often_as_the_list_says() -> None:
    counts, runs = np.array([2.0, 0.0, 5.0, 30.0]), 4_000
    rng = np.random.default_rng(1)
    seen = np.zeros(4)
    for _ in range(runs):
        seen[select_levels(counts, SIGMA, FAILED, rng)] += 1
    expected = passing((2, 0, 5, 30), SIGMA, level_threshold(SIGMA, FAILED))
    spread = np.sqrt(expected * (1 - expected) / runs)
    assert (np.abs(seen / runs - expected) <= 4 * spread + 1e-12).all()
    assert seen[1] == 0
    assert expected[0] < 0.1
    assert expected[3] > 0.99


def neighbours() -> Iterator[tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(2)
    for extreme in (1e300, -1e300, 0.0, 5e-324, 1e9, -3.0, 2.0**60, 17.0):
        values = rng.lognormal(3, 2, 50) * rng.choice([-1, 1], 50)
        yield values, np.append(values, extreme)


def test_cells_are_the_same_for_neighbours_and_one_count_differs_by_one() -> None:
    for values, others in neighbours():
        for edges in (_power_edges(whole=False), _power_edges(whole=True), _cell_edges(-8.0, 128.0, whole=False)):
            apart = _count_in_cells(others, edges) - _count_in_cells(values, edges)
            assert sorted(apart)[-2:] == [0.0, 1.0]
            assert apart.sum() == 1.0
    values, others = next(neighbours())
    ends = (np.histogram(values, 20)[0], np.histogram(others, 20)[0])
    assert np.abs(ends[0] - ends[1]).sum() > 2, "the control: cells between the smallest and the largest value"


@pytest.mark.slow
def test_an_extreme_value_changes_what_is_found_no_more_than_the_claim() -> None:
    """The range with and without one record a thousand times as large: as frequent as e^epsilon allows, but for delta and chance."""
    rng, runs = np.random.default_rng(3), 2_000
    values = np.linspace(100, 200, 40)
    others = np.append(values, 200_000.0)
    epsilon = epsilon_of_rho(RHO, DELTA)

    def far(of: np.ndarray, by_data: bool) -> float:
        found = 0
        for _ in range(runs):
            cells = count_noisy_cells(of, DeclaredRange(None, None, is_whole=False), RHO, rng)
            end = of.max() if by_data else (0.0 if cells is None else cells.edges[-1])
            found += end > 100_000
        return found / runs

    chance = 4 * 0.5 / np.sqrt(runs)
    assert far(others, False) <= np.exp(epsilon) * far(values, False) + DELTA + chance
    assert far(others, True) > np.exp(epsilon) * far(values, True) + DELTA + chance, "the control: the largest value"


def test_ranges_and_cuts_are_near_those_of_the_records() -> None:
    rng = np.random.default_rng(4)
    values = rng.gamma(2.0, 500.0, 20_000)
    found = count_noisy_cells(values, DeclaredRange(0.0, None, is_whole=False), 0.002, rng)
    assert found is not None
    assert found.edges[0] == 0.0
    hidden = (
        4 * sigma_of_rho(0.001) * np.sqrt(200) / len(values)
    )  # four standard deviations of what a tail of all cells sums to
    assert np.quantile(values, 1 - hidden) < found.edges[-1] <= 2**14
    cuts = found.cut_points(5)
    assert len(cuts) == 4
    held = np.diff([0, *np.searchsorted(np.sort(values), cuts), len(values)]) / len(values)
    assert (np.abs(held - 0.2) < 0.06).all()
    days = rng.integers(18_000, 18_700, 5_000).astype(float)
    dates = count_noisy_cells(days, DeclaredRange(None, None, is_whole=True), 0.01, rng)
    assert dates is not None
    assert dates.edges[0] <= np.quantile(days, 0.03)
    assert np.quantile(days, 0.97) <= dates.edges[-1]
    assert dates.edges[-1] - dates.edges[0] < 1_400
    assert (dates.edges == np.round(dates.edges)).all()


def test_few_records_show_no_range() -> None:
    assert (
        count_noisy_cells(
            np.array([3.0, 5.0]), DeclaredRange(None, None, is_whole=True), 1e-4, np.random.default_rng(4)
        )
        is None
    )
    known = count_noisy_cells(np.array([3.0]), DeclaredRange(0.0, 10.0, is_whole=True), 1e-4, np.random.default_rng(1))
    assert known is not None
    assert (known.edges[0], known.edges[-1]) == (0.0, 10.0)
