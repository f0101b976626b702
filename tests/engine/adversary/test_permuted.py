"""The exact p-value: that of Fisher's test but for ties, the same for any order, uniform without a leak, small with one."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import hypergeom, kstest

from sfumato.engine.adversary.permuted import exact_p_value, randomised_p_value


def shares(right: int, of: int) -> np.ndarray:
    return (np.arange(of) < right).astype(float)


@pytest.mark.parametrize(("right", "of", "others", "controls"), [(9, 30, 2, 20), (3, 12, 3, 12), (1, 40, 0, 25)])
def test_right_and_wrong_guesses_have_the_p_of_fisher_s_test_between_ties(
    right: int, of: int, others: int, controls: int
) -> None:
    p = [
        exact_p_value(shares(right, of), shares(others, controls), np.random.default_rng(seed), n_permutations=1999)
        for seed in range(60)
    ]
    exact = hypergeom(of + controls, of, right + others)
    assert min(p) >= exact.sf(right) - 0.03
    assert max(p) <= exact.sf(right - 1) + 0.03
    assert np.mean(p) == pytest.approx(exact.sf(right) + exact.pmf(right) / 2, abs=0.05)


def test_the_order_of_people_changes_nothing_and_nobody_is_no_finding() -> None:
    rng = np.random.default_rng(1)
    own, others = rng.random(50).round(1), rng.random(30).round(1)
    p = exact_p_value(own, others, np.random.default_rng(2))
    assert exact_p_value(rng.permutation(own), others[::-1], np.random.default_rng(2)) == p
    assert exact_p_value(own, others[:0], rng) == 1


@pytest.mark.parametrize("chance", [0.02, 0.5])
def test_it_is_uniform_without_a_leak_and_without_random_ties_it_is_not(chance: float) -> None:
    rng = np.random.default_rng(3)
    found, tied = [], []
    for _ in range(400):
        own, others = ((rng.random(n) < chance).astype(float) for n in (40, 30))
        found.append(exact_p_value(own, others, rng, n_permutations=199))
        tied.append(hypergeom.sf(own.sum() - 1, 70, 40, own.sum() + others.sum()))
    assert kstest(found, "uniform").pvalue > 0.001
    assert kstest(tied, "uniform").pvalue < 0.001, "the negative control"


def test_a_leak_is_found() -> None:
    rng = np.random.default_rng(4)
    assert exact_p_value(shares(30, 40), shares(5, 30), rng) <= 0.002
    assert randomised_p_value(5.0, np.zeros(99), rng) <= 0.01
    assert randomised_p_value(-1.0, np.zeros(99), rng) > 0.99
