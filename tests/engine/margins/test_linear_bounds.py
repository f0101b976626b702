"""What follows from released counts, compared with a list of all tables that have them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from sfumato.engine.margins.domain import Clique, Domain, margin_of
from sfumato.engine.margins.linear_bounds import Released, _Program, audit

DOMAIN = Domain((2, 2, 2))
PAIRS: list[Clique] = [(0, 1), (0, 2), (1, 2)]


def coarse(table: np.ndarray, limit: int) -> np.ndarray:
    return np.asarray(limit * np.floor(table / limit + 0.5))


@pytest.mark.parametrize("seed", range(3))
def test_bounds_hold_every_table_that_has_the_released_counts(seed: int) -> None:
    truth = np.random.default_rng(seed).integers(0, 4, DOMAIN.sizes).astype(float)
    released = [Released.coarsened(c, coarse(margin_of(truth, (0, 1, 2), c), 3), 3) for c in PAIRS]
    program = _Program.of(DOMAIN, (0, 1, 2), released, float(truth.sum()))
    ends = np.array([program.range(cells) for cells in np.eye(DOMAIN.cells())])
    bounds = {"low": ends[:, 0], "high": ends[:, 1]}
    every = np.stack(np.unravel_index(np.arange(5**8), [5] * 8), axis=1).reshape(-1, 2, 2, 2).astype(float)
    kept = every.sum(axis=(1, 2, 3)) == truth.sum()
    for other in (3, 2, 1):  # the axis that a pair leaves out
        kept &= (coarse(every.sum(axis=other), 3) == coarse(truth.sum(axis=other - 1), 3)).all(axis=(1, 2))
    low, high = every[kept].min(axis=0).ravel(), every[kept].max(axis=0).ravel()
    assert (bounds["low"].ravel() <= low + 1e-6).all()
    assert (bounds["high"].ravel() >= high - 1e-6).all()


def test_exact_margins_give_small_counts_away_and_coarse_ones_do_not() -> None:
    truth = np.array([[[30.0, 0], [2, 40]], [[1, 50], [0, 60]]])

    def answer(clique: Clique) -> np.ndarray:
        return margin_of(truth, (0, 1, 2), clique)

    exact = audit(DOMAIN, [Released.exact(c, answer(c)) for c in PAIRS], answer, 10)
    assert exact.exact == exact.looked_at > 0
    rounded = audit(DOMAIN, [Released.coarsened(c, coarse(answer(c), 10), 10) for c in PAIRS], answer, 10, records=183)
    assert rounded.exact == 0
    assert rounded.looked_at == exact.looked_at


def test_two_finely_rounded_margins_with_a_known_total_can_give_a_count_away() -> None:
    """All other cells are said to be 0 by structural zeros: what is left is the number of records."""
    domain, truth = Domain((2, 2)), np.array([[2.0, 0.0], [0.0, 0.0]])
    impossible = np.array([[False, True], [True, True]])
    released = [Released.coarsened((0, 1), coarse(truth, 10), 10, impossible)]
    assert audit(domain, released, lambda clique: truth, 10).exact == 0
    assert audit(domain, released, lambda clique: truth, 10, records=2.0).exact == 1


def test_what_too_many_programs_would_have_to_find_out_is_undecided_and_not_safe() -> None:
    truth = np.array([[[30.0, 0], [2, 40]], [[1, 50], [0, 60]]])
    found = audit(
        DOMAIN,
        [Released.exact(c, margin_of(truth, (0, 1, 2), c)) for c in PAIRS],
        lambda clique: margin_of(truth, (0, 1, 2), clique),
        10,
        most=1,
    )
    assert found.undecided == 1
    assert found.exact + found.undecided == found.looked_at > 1


def test_two_releases_together_give_away_what_neither_does_alone() -> None:
    """Counts by whole and by half categories, rounded to 10 and to 15: every table that has both is listed, and the same counts follow."""
    truth = np.array([8.0, 12.0, 7.0])
    domain = Domain((3,))
    fine = Released.coarsened((0,), coarse(truth, 10), 10)
    halves = np.array([0, 0, 1])
    rough = Released.coarsened((0,), coarse(np.array([20.0, 7.0]), 15), 15)
    rough = Released((0,), rough.low, rough.high, (halves,))
    every = np.array(list(itertools.product(range(40), repeat=3)), dtype=float)
    for released in ([fine], [rough], [fine, rough]):
        kept = np.ones(len(every), dtype=bool)
        for one in released:
            sums = every if not one.groups else np.column_stack([every[:, :2].sum(axis=1), every[:, 2]])
            kept &= ((sums >= one.low) & (sums <= one.high)).all(axis=1)
        shown = np.column_stack([every, every[:, :2].sum(axis=1)] if len(released) > 1 else [every])
        exact = int(((np.ptp(shown[kept], axis=0) < 1) & (shown[kept][0] < 15)).sum())
        found = audit(domain, released, lambda clique: truth, 15)
        assert found.undecided == 0
        assert found.exact == exact
    tight = Released((0,), np.array([8.0, 12.0, 0.0]), np.array([14.0, 14.0, 99.0]))
    total = Released((0,), np.array([20.0, 0.0]), np.array([20.0, 99.0]), (halves,))
    alone = [audit(domain, [one], lambda clique: truth, 15).exact for one in (tight, total)]
    both = audit(domain, [tight, total], lambda clique: truth, 15)
    assert alone == [0, 0]
    assert both.exact == 2, "8 and 12 are all that is left, and their sum of 20 is no small count"
