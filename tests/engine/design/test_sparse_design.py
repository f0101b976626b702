from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

from sfumato.engine.data import blocks as row_blocks
from sfumato.engine.design.logistic import BlockedLogistic, _find_maximum, logistic_regression
from sfumato.engine.design.sparse_design import (
    IndicatorTerm,
    InterceptTerm,
    ProductTerm,
    SparseDesign,
    SparseTerm,
    StandardisedTerm,
    TermEntries,
    cross_products,
    independent_basis,
    multiply_entries,
    multiply_transposed,
)
from sfumato.engine.statistics.columns import independent_columns


def numbers(column: np.ndarray) -> StandardisedTerm:
    """A column as it is."""
    return StandardisedTerm(column, 1.0, 0.0, 1.0)


def some_design(rng: np.random.Generator, n: int) -> tuple[SparseDesign, np.ndarray]:
    """Levels, numbers and their products, and what they look like written out."""
    sex, region = rng.integers(-1, 2, n).astype(float), rng.integers(0, 5, n).astype(float)
    sex[:3], region[:5] = [-1, 0, 1], np.arange(5)
    age, pay = rng.normal(size=n), rng.normal(size=n)
    one, two, three, four = (
        IndicatorTerm.from_codes(sex),
        IndicatorTerm.from_codes(2 * region),
        numbers(age),
        numbers(pay),
    )
    terms: list[SparseTerm] = [
        InterceptTerm(),
        one,
        three,
        two,
        ProductTerm(one, two),
        ProductTerm(two, three),
        ProductTerm(three, four),
    ]
    s, r = (sex[:, None] == [0, 1]) * 1.0, (region[:, None] == np.arange(1, 5)) * 1.0
    sr = (s[:, :, None] * r[:, None, :]).reshape(n, -1)
    return SparseDesign(terms, n), np.column_stack([np.ones(n), s, age, r, sr, r * age[:, None], age * pay])


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(5, 40), cells=st.integers(1, 900))
def test_sums_over_blocks_are_those_of_the_matrix(seed: int, n: int, cells: int) -> None:
    """With blocks of one row, of a few, and of all; against products of the matrix, written out by hand."""
    rng = np.random.default_rng(seed)
    design, x = some_design(rng, n)
    weights, values, b = rng.random(n), rng.normal(size=n), rng.normal(size=x.shape[1])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_blocks, "CELLS_PER_BLOCK", cells)
        blocks = list(design.blocks())
        assert len(blocks) == -(-n // max(1, cells // design.width))
        assert design.matrix() == pytest.approx(x)
        assert design.squares == pytest.approx(x.T @ x)
        assert np.concatenate([multiply_entries(e, b, r.stop - r.start) for r, e in blocks]) == pytest.approx(x @ b)
        assert sum(multiply_transposed(e, values[r]) for r, e in blocks) == pytest.approx(x.T @ values)
        assert sum(cross_products(e, weights[r]) for r, e in blocks) == pytest.approx(x.T @ (x * weights[:, None]))


def fitted_probabilities(problem: BlockedLogistic) -> np.ndarray:
    """The fitted probabilities block by block, whose squared distances from .3 are summed alike."""
    coefficients, found = problem.basis.extended_coefficients(_find_maximum(problem)[0]), []

    def work(entries: list[TermEntries], rows: int) -> tuple[float]:
        found.append(expit(multiply_entries(entries, coefficients, rows)))
        return (0.0,)

    problem.basis.sum_blocks(work)
    probabilities = np.concatenate(found)
    assert problem.squared_distances(0.3) == pytest.approx(float(np.sum((probabilities - 0.3) ** 2)))
    return probabilities


def fits(design: SparseDesign, y: np.ndarray, cells: int) -> tuple[np.ndarray, np.ndarray, int, int]:
    """Probabilities block by block and on the whole matrix, and how many columns each found to be independent."""
    x = design.matrix()
    kept = independent_columns(x)
    whole = logistic_regression(x[:, kept], y).probabilities
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_blocks, "CELLS_PER_BLOCK", cells)
        basis = independent_basis(design)
        return (
            fitted_probabilities(BlockedLogistic(basis, y)),
            whole,
            len(basis),
            int(kept.sum()),
        )


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(30, 120), cells=st.sampled_from([200, 1000, 10**6]))
def test_the_fit_by_blocks_is_that_of_the_matrix(seed: int, n: int, cells: int) -> None:
    """Columns that others determine among them: levels that are missing from products, and a column twice."""
    rng = np.random.default_rng(seed)
    design, x = some_design(rng, n)
    design = SparseDesign([*design.terms, design.terms[3], numbers(x[:, 1] + 2 * x[:, 3])], n)
    y = (rng.random(n) < expit(x[:, 1] - x[:, 3])).astype(float)
    blocked, whole, rank, expected = fits(design, y, cells)
    assert rank == expected
    assert blocked == pytest.approx(whole, abs=1e-7)


def paid(gap: float, steps: int) -> tuple[list[np.ndarray], np.ndarray]:
    """Gross pay in cents, and step by step what is left of it, to ``gap`` cents; and by how many gaps the first step differs, exactly."""
    rng = np.random.default_rng(1)
    pay = [rng.integers(10**7, 9 * 10**7, 2000).astype(float)]
    for _ in range(steps):
        pay.append(0.7 * pay[-1] + gap * rng.normal(size=2000))
    pairs = zip(pay[0].tolist(), pay[1].tolist(), strict=True)
    return pay, np.array(
        [float((Fraction(net) - Fraction(7, 10) * Fraction(gross)) / Fraction(gap)) for gross, net in pairs]
    )


@pytest.mark.parametrize(("gap", "precision"), [(1e4, 1e-11), (1.0, 1e-7), (0.1, 1e-6), (0.01, 1e-5)])
def test_columns_that_are_nearly_collinear_are_as_good_as_any(gap: float, precision: float) -> None:
    """Against the fit on gross pay and exactly what net pay differs from a share of it. X'X has no digit of a gap below one cent left."""
    pay, rest = paid(gap, 1)
    group = IndicatorTerm.from_codes(np.arange(2000.0) % 4)
    y = (np.random.default_rng(2).random(2000) < expit(rest)).astype(float)
    columns = [StandardisedTerm.from_values(column, 2.0**27) for column in pay]
    blocked, whole, rank, _ = fits(SparseDesign([InterceptTerm(), group, *columns], 2000), y, 3000)
    truth = SparseDesign([InterceptTerm(), group, columns[0], numbers(rest)], 2000).matrix()
    assert rank == 6
    assert blocked == pytest.approx(logistic_regression(truth, y).probabilities, abs=precision)
    assert blocked == pytest.approx(whole, abs=10 * precision)


@pytest.mark.parametrize("gap", [1e4, 1.0, 1e-1, 1e-3, 1e-6, 1e-9])
@pytest.mark.parametrize("steps", [1, 2, 3])
def test_as_many_columns_are_independent_as_in_the_matrix(gap: float, steps: int) -> None:
    """Down to rounding, where none of the later ones is."""
    y = np.arange(2000.0) % 2
    pay = [StandardisedTerm.from_values(column, 2.0**27) for column in paid(gap, steps)[0]]
    blocked, whole, rank, expected = fits(SparseDesign([InterceptTerm(), *pay], 2000), y, 3000)
    assert rank == expected
    assert blocked == pytest.approx(whole, abs=1e-4)


def test_negative_control_cross_products_alone_lose_a_small_gap() -> None:
    """The determinant of X'X of two columns a millionth of their length apart is rounding."""
    rng = np.random.default_rng(1)
    a = rng.normal(size=2000)
    x = np.column_stack([a, a + 1e-9 * rng.normal(size=2000)])
    assert np.linalg.eigvalsh(x.T @ x)[0] == pytest.approx(0, abs=1e-10)
    basis = independent_basis(SparseDesign([numbers(column) for column in x.T], 2000))
    assert len(basis) == 2
    assert basis.combined.shape == (2, 1)


def test_a_basis_of_some_columns_has_their_rank() -> None:
    rng = np.random.default_rng(2)
    region = rng.integers(0, 6, 500).astype(float)
    country = np.floor(region / 2)
    design = SparseDesign(
        [InterceptTerm(), IndicatorTerm.from_codes(country), IndicatorTerm.from_codes(region), numbers(np.zeros(500))],
        500,
    )
    assert len(independent_basis(design)) == 6
    assert len(independent_basis(design, among=np.arange(9) < 3)) == 3
    assert len(independent_basis(design, among=np.arange(9) == 8)) == 0


def test_classes_that_are_told_apart_have_probabilities_at_their_limits() -> None:
    x = np.linspace(-1, 1, 40)
    y = (x > 0).astype(float)
    blocked, whole, _, _ = fits(SparseDesign([InterceptTerm(), numbers(x)], 40), y, 7)
    assert blocked == pytest.approx(y, abs=1e-6)
    assert whole == pytest.approx(y, abs=1e-6)
