"""Records drawn within rounding of a table; a sampler that draws wrong records from a right model is noticed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.engine.margins import junction_tree
from sfumato.engine.margins.domain import Domain, margin_of
from sfumato.engine.margins.drawing import draw_cells, draw_given
from sfumato.engine.margins.junction_tree import JunctionTree

Draw = Callable[[np.ndarray, np.ndarray, np.random.Generator], np.ndarray]


def farthest(draw: Draw, shares: np.ndarray, groups: np.ndarray, seed: int) -> float:
    """The largest difference of a drawn count from the expected one."""
    drawn = draw(shares, groups, np.random.default_rng(seed))
    found = np.zeros(shares.shape)
    np.add.at(found, (groups, drawn), 1)
    expected = np.bincount(groups, minlength=len(shares))[:, None] * shares / shares.sum(axis=1, keepdims=True)
    return float(np.abs(found - expected).max())


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 4), st.integers(1, 6), st.integers(1, 300), st.integers(0, 10_000))
def test_counts_are_the_expected_ones_within_rounding(rows: int, columns: int, records: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    shares = rng.gamma(0.3, size=(rows, columns)) + 1e-12
    assert farthest(draw_given, shares, rng.integers(rows, size=records), seed) < 1 + 1e-6


def independent(shares: np.ndarray, groups: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    upto = np.cumsum(shares / shares.sum(axis=1, keepdims=True), axis=1)
    return np.minimum((rng.random(len(groups))[:, None] > upto[groups]).sum(axis=1), shares.shape[1] - 1)


def of_another_group(shares: np.ndarray, groups: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return draw_given(np.roll(shares, 1, axis=0), groups, rng)


@pytest.mark.parametrize("wrong", [independent, of_another_group])
def test_a_sampler_that_draws_otherwise_is_noticed(wrong: Draw) -> None:
    rng = np.random.default_rng(1)
    shares, groups = rng.dirichlet(np.ones(5), 3), rng.integers(3, size=3_000)
    assert farthest(draw_given, shares, groups, 2) < 1
    assert farthest(wrong, shares, groups, 2) > 5


def test_cells_with_a_share_of_0_are_never_drawn() -> None:
    table = np.array([[0.5, 0.0], [0.0, 0.5]])
    rows, columns = draw_cells(table, 1_001, np.random.default_rng(3))
    assert (rows == columns).all()


def test_values_of_a_group_are_in_random_order() -> None:
    drawn = draw_given(np.array([[0.5, 0.5]]), np.zeros(1_000, dtype=int), np.random.default_rng(4))

    assert 180 < drawn[:500].sum() < 320


def pairs_off(drawn: np.ndarray, domain: Domain, table: np.ndarray) -> float:
    found = [
        domain.count_records(drawn, pair) / len(drawn) - margin_of(table, (0, 1, 2, 3), pair)
        for pair in [(0, 1), (1, 2), (2, 3)]
    ]
    return max(float(np.abs(one).sum() / 2) for one in found)


def test_records_along_a_tree_have_its_margins(monkeypatch: pytest.MonkeyPatch) -> None:
    domain, rng = Domain((3, 4, 3, 5)), np.random.default_rng(5)
    table = rng.gamma(0.5, size=domain.sizes)
    table /= table.sum()
    margins = {pair: margin_of(table, (0, 1, 2, 3), pair) for pair in [(0, 1), (1, 2), (2, 3)]}
    fitted = JunctionTree.from_margins(domain, list(margins)).fit_margins(margins)
    assert pairs_off(fitted.draw_records(20_000, rng), domain, table) < 0.002
    monkeypatch.setattr(junction_tree, "draw_given", of_another_group)
    assert pairs_off(fitted.draw_records(20_000, rng), domain, table) > 0.05, (
        "the control: wrong records from a right model"
    )
