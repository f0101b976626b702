"""Coincidences of independent rows stay at their level whatever the two distributions; copied rows do not."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from sfumato.engine.disclosure.evidence import INDEPENDENCE_LEVEL
from sfumato.engine.disclosure.independent_rows import RowCoincidences, fewest_coincidences, strongest_coincidence

Rng = np.random.Generator


def distribution(rng: Rng, kind: str, cells: int) -> np.ndarray:
    """Shares of cells: of one height, of a long tail, of few heavy ones beside many rare."""
    if kind == "even":
        return np.full(cells, 1 / cells)
    if kind == "tail":
        shares = 1 / np.arange(1, cells + 1)
        return rng.permutation(shares / shares.sum())
    heavy = rng.random(cells) < 0.02
    shares = np.where(heavy, 50.0, 1.0) * rng.gamma(0.3, size=cells)
    return np.asarray(shares / shares.sum())


def coincidences(rng: Rng, own: np.ndarray, released: np.ndarray, n: int, r: int) -> RowCoincidences:
    cells = len(own)
    rows = rng.choice(cells, n, p=own).astype(np.uint64)
    return RowCoincidences.from_rows("all", rows, rng.choice(cells, r, p=released).astype(np.uint64), is_whole=True)


def test_coincidences_are_what_counting_finds() -> None:
    rng = np.random.default_rng(1)
    rows, released = rng.integers(0, 60, 80).astype(np.uint64), rng.integers(0, 60, 70).astype(np.uint64)
    found = RowCoincidences.from_rows("", rows, released)
    mine, theirs = rows.tolist(), released.tolist()
    assert found.records.tolist() == [i for i, row in enumerate(mine) if mine.count(row) == theirs.count(row) == 1]
    assert found.pairs == sum(one.count(value) == 2 for one in (mine, theirs) for value in set(one))
    x = len(found.records)
    assert found.p == pytest.approx(binom.sf(x - 1, x + found.pairs, 0.5))


@pytest.mark.slow
@pytest.mark.parametrize("own", ["even", "tail", "heavy"])
@pytest.mark.parametrize("released", ["even", "tail", "heavy", "same"])
@pytest.mark.parametrize("ratio", [0.3, 1.0, 5.0])
def test_independent_rows_of_any_two_distributions_keep_the_level(own: str, released: str, ratio: float) -> None:
    rng = np.random.default_rng([len(own), len(released), int(10 * ratio)])
    found = []
    for _ in range(250):
        cells = int(rng.choice([300, 3_000, 100_000]))
        p = distribution(rng, own, cells)
        q = p if released == "same" else distribution(rng, released, cells)
        found.append(coincidences(rng, p, q, 400, int(400 * ratio)).p)
    assert np.mean(np.array(found) <= 0.05) <= binom.ppf(0.999, 250, 0.05) / 250
    assert np.mean(np.array(found) <= INDEPENDENCE_LEVEL) <= binom.ppf(0.999, 250, INDEPENDENCE_LEVEL) / 250


def test_rows_that_are_not_drawn_independently_are_beyond_the_bound() -> None:
    """The negative control: a dataset that has each of its rows once, as the data do."""
    cells = np.arange(1000, dtype=np.uint64)
    rng = np.random.default_rng(2)
    rows, released = rng.permutation(cells)[:400], rng.permutation(cells)[:400]
    assert RowCoincidences.from_rows("", rows, released).p < 1e-6


def test_so_many_copies_as_are_named_are_significant_and_one_fewer_are_not() -> None:
    for pairs in (0, 3, 40):
        fewest = fewest_coincidences(pairs, 400, 500, INDEPENDENCE_LEVEL)
        assert fewest is not None
        for copied, is_found in ((fewest, True), (fewest - 1, False)):
            one = RowCoincidences("all", np.arange(copied), pairs, is_whole=True)
            test = strongest_coincidence([one], 400, 500)
            assert (test is not None and test.p <= INDEPENDENCE_LEVEL) is is_found
    assert fewest_coincidences(10_000, 400, 500, INDEPENDENCE_LEVEL) is None


def test_a_hold_out_that_contradicts_is_not_overruled() -> None:
    half = RowCoincidences("all", np.arange(380, 420), 0, is_whole=True)
    assert strongest_coincidence([half], 400, 500) is None
    assert strongest_coincidence([half], 500, 500) is not None, "without a hold-out nothing contradicts"
