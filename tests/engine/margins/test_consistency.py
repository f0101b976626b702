"""Residuals compared with weighted least squares, and intervals that contain what they should."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.engine.margins.consistency import MarginResiduals, MeasuredMargin, consistent_shares, nearest_shares
from sfumato.engine.margins.domain import Clique, Domain, margin_of

CLIQUES = [c for size in (1, 2, 3) for c in itertools.combinations(range(3), size)]


def query(domain: Domain, clique: Clique) -> np.ndarray:
    """The matrix that sums the joint table to a margin."""
    factors = [np.eye(n) if at in clique else np.ones((1, n)) for at, n in enumerate(domain.sizes)]
    found = np.ones((1, 1))
    for factor in factors:
        found = np.kron(found, factor)
    return found


@settings(max_examples=25, deadline=None)
@given(
    st.tuples(st.integers(2, 3), st.integers(2, 3), st.integers(2, 4)),
    st.lists(st.sampled_from(CLIQUES), min_size=1, max_size=4, unique=True),
    st.integers(0, 10_000),
)
def test_margins_are_those_of_the_least_squares_table(sizes: tuple[int, ...], cliques: list[Clique], seed: int) -> None:
    rng, domain = np.random.default_rng(seed), Domain(sizes)
    measured = [MeasuredMargin(c, rng.normal(10, 5, domain.shape(c)), float(rng.uniform(0.5, 3))) for c in cliques]
    rows = np.vstack([query(domain, one.clique) / one.sigma for one in measured])
    values = np.concatenate([one.table.ravel() / one.sigma for one in measured])
    joint = np.linalg.lstsq(rows, values, rcond=1e-12)[0].reshape(sizes)
    residuals = MarginResiduals.from_margins(domain, measured)
    for clique in CLIQUES:
        assert np.allclose(residuals.margin_table(clique), margin_of(joint, (0, 1, 2), clique), atol=1e-8)


@pytest.mark.slow
def test_the_variance_of_a_sum_is_that_of_many_noises() -> None:
    rng, domain = np.random.default_rng(1), Domain((3, 4, 2))
    truth = rng.integers(0, 50, domain.sizes).astype(float)
    cliques, sigmas = [(0, 1), (1, 2), (0,), (1,), (2,)], [3.0, 5.0, 1.0, 2.0, 4.0]
    weights = rng.normal(size=(4, 2))
    sums = []
    for _ in range(2_000):
        noisy = [
            MeasuredMargin(c, margin_of(truth, (0, 1, 2), c) + rng.normal(0, s, domain.shape(c)), s)
            for c, s in zip(cliques, sigmas, strict=True)
        ]
        residuals = MarginResiduals.from_margins(domain, noisy)
        sums.append(float((weights * residuals.margin_table((1, 2))).sum()))
    claimed = residuals.weighted_sum_variance((1, 2), weights)
    assert np.var(sums) == pytest.approx(claimed, rel=0.12)  # 2,000 draws: 3 % standard error
    assert np.mean(sums) == pytest.approx(float((weights * margin_of(truth, (0, 1, 2), (1, 2))).sum()), abs=0.6)


def test_margins_agree_on_what_they_share_where_no_cell_is_negative() -> None:
    rng, domain = np.random.default_rng(2), Domain((3, 4, 2))
    joint = rng.integers(50, 90, domain.sizes).astype(float)
    coarse = [
        MeasuredMargin(c, 10 * np.floor(margin_of(joint, (0, 1, 2), c) / 10 + 0.5)) for c in [(0, 1), (1, 2), (0, 2)]
    ]
    found = consistent_shares(domain, coarse)
    assert np.allclose(found[0, 1].sum(axis=0), found[1, 2].sum(axis=1))
    apart = coarse[0].table.sum(axis=0) / coarse[0].table.sum() - coarse[1].table.sum(axis=1) / coarse[1].table.sum()
    assert np.abs(apart).max() > 1e-4, "the control: as they are, they disagree"


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=8))
def test_nearest_shares_are_nearer_than_any_others(values: list[float]) -> None:
    table = np.array(values)
    found = nearest_shares(table)
    assert found.sum() == pytest.approx(1)
    assert (found >= 0).all()
    for other in np.random.default_rng(0).dirichlet(np.ones(len(table)), 50):
        assert ((found - table) ** 2).sum() <= ((other - table) ** 2).sum() + 1e-9
