"""The triangle of a design that is never formed whole is that of the design, whatever the blocks."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.engine.data import blocks as row_blocks
from sfumato.engine.data.microdata import Microdata
from sfumato.engine.data.schema import Kind, Schema, Variable
from sfumato.engine.data.terms import parse_term
from sfumato.engine.design import design_triangle as module
from sfumato.engine.design.design_matrix import Design
from sfumato.engine.design.design_triangle import design_triangle, triangle_of_blocks
from sfumato.engine.errors import BadInput
from sfumato.engine.recipe.checks import require_full_rank

KINDS = {"town": Kind.CATEGORICAL, "sex": Kind.BINARY, "age": Kind.COUNT, "pay": Kind.CONTINUOUS, "y": Kind.CONTINUOUS}
SCHEMA = Schema(tuple(Variable(name, kind) for name, kind in KINDS.items()))
TERMS = [
    (),
    ("town",),
    ("age",),
    ("town", "sex", "age"),
    ("town", "log(pay)", "sex", "age:pay"),
    ("town:sex", "sqrt(age)", "pay"),
    ("town", "sex", "age", "sex:age"),
    ("town:pay", "sex"),
    ("age", "pay:town", "sex:log(pay)", "sex:town", "age:pay"),
    ("sex", "code(town)", "code(town):age", "sex:code(town)"),
]


def table(n: int, seed: int, *, far: float = 0.0, weighted: bool = False) -> Microdata:
    rng = np.random.default_rng(seed)
    columns = {
        "town": pd.Categorical.from_codes(rng.integers(0, 4, n), list("abcd")),
        "sex": pd.Categorical.from_codes(rng.integers(0, 2, n), ["f", "m"]),
        "age": rng.integers(18, 90, n),
        "pay": far + rng.lognormal(3, 1, n),
        "y": far + rng.normal(size=n),
    }
    data = Microdata(SCHEMA, pd.DataFrame(columns))
    return data.with_weights(rng.uniform(0.01, 1, n)) if weighted else data


def design_of(terms: tuple[str, ...], data: Microdata) -> Design:
    return Design.from_terms([parse_term(text, SCHEMA, text) for text in terms], data)


def response(block: Microdata) -> np.ndarray:
    return block.numbers("y")


def whole(design: Design, data: Microdata) -> np.ndarray:
    """[X y], rows times the roots of their weights."""
    return np.column_stack([design.build_matrix(data), data.numbers("y")]) * np.sqrt(data.effective_weights)[:, None]


@pytest.mark.slow
@given(
    terms=st.sampled_from(TERMS),
    n=st.integers(1, 60),
    cells=st.integers(1, 400),
    seed=st.integers(0, 2**32 - 1),
    weighted=st.booleans(),
    groups=st.sampled_from([0, 5000]),
)
def test_products_are_those_of_the_whole_design(
    terms: tuple[str, ...], n: int, cells: int, seed: int, weighted: bool, groups: int
) -> None:
    data = table(n, seed, far=1e4 * (seed % 2), weighted=weighted)
    design = design_of(terms, data)
    x = whole(design, data)
    lengths = np.maximum(np.linalg.norm(x, axis=0), 1e-9)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_blocks, "CELLS_PER_BLOCK", cells)
        patch.setattr(module, "_MOST_GROUPS", groups)
        alone, found = design_triangle(design, data), design_triangle(design, data, response)
        blocks = not design.fits_in_one_block(data, 1)
    assert found.shape[1] == x.shape[1] >= len(found) >= min(n, x.shape[1])
    assert np.abs(found.T @ found - x.T @ x) / np.outer(lengths, lengths) == pytest.approx(0.0, abs=1e-13)
    assert np.abs(alone.T @ alone - (x.T @ x)[:-1, :-1]) / np.outer(lengths, lengths)[:-1, :-1] == pytest.approx(
        0.0, abs=1e-13
    )
    if blocks:
        assert (np.diagonal(found) >= 0).all()


def test_one_block_is_the_decomposition_of_the_matrix_to_the_last_bit() -> None:
    data = table(500, 1)
    design = design_of(TERMS[4], data)
    assert design.fits_in_one_block(data, 1)
    assert design_triangle(design, data, response).tobytes() == np.linalg.qr(whole(design, data), mode="r").tobytes()


@pytest.mark.slow
def test_the_order_of_the_records_is_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_blocks, "CELLS_PER_BLOCK", 333)
    data = table(400, 2)
    order = np.random.default_rng(3).permutation(400)
    moved = Microdata(SCHEMA, data.frame.iloc[order].reset_index(drop=True))
    for terms in TERMS:
        one, other = (design_triangle(design_of(terms, own), own, response) for own in (data, moved))
        assert other == pytest.approx(one, abs=1e-11 * np.abs(one).max())


def pay_slips(n: int) -> tuple[Microdata, np.ndarray]:
    """Gross beside net pay in cents, all above a hundred million, a cent or so apart; y is exactly 3 + 2 net - gross, and the sex."""
    rng = np.random.default_rng(4)
    gross = 1e8 + rng.integers(0, 1000, n)
    net = gross - rng.integers(0, 3, n)
    sex = rng.integers(0, 2, n)
    truth = np.array([3.0, 5.0, 2.0, -1.0])
    columns = {
        "town": pd.Categorical.from_codes(rng.integers(0, 4, n), list("abcd")),
        "sex": pd.Categorical.from_codes(sex, ["f", "m"]),
        "age": net.astype(np.int64),
        "pay": gross,
        "y": 3 + 5 * sex + 2 * net - gross,
    }
    return Microdata(SCHEMA, pd.DataFrame(columns)), truth


def test_collinear_columns_far_from_zero_lose_no_more_than_in_a_decomposition_of_the_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Products of the columns, of condition 10^16 and more, lose the coefficients: that is the control."""
    data, truth = pay_slips(5000)
    design = design_of(("sex", "age", "pay"), data)

    def error(triangle: np.ndarray) -> float:
        return float(np.abs(np.linalg.solve(triangle[:4, :4], triangle[:4, 4]) - truth)[1:].max())

    plain = np.asarray(np.linalg.qr(whole(design, data), mode="r"))
    monkeypatch.setattr(row_blocks, "CELLS_PER_BLOCK", 2000)
    assert not design.fits_in_one_block(data, 1)
    assert error(design_triangle(design, data, response)) < max(2 * error(plain), 1e-6)
    x = whole(design, data)
    lost = np.linalg.lstsq(x[:, :4].T @ x[:, :4], x[:, :4].T @ x[:, 4])[0] - truth
    assert np.abs(lost[1:]).max() > 1e-3


@pytest.mark.parametrize("cells", [10, 100, 4_000_000])
def test_aliased_terms_are_found_in_blocks_too(monkeypatch: pytest.MonkeyPatch, cells: int) -> None:
    monkeypatch.setattr(row_blocks, "CELLS_PER_BLOCK", cells)
    data = table(60, 5)
    require_full_rank(data, ["town", "sex", "age", "log(pay)"], "p")
    for terms, wrong in ((["age", "sex", "age"], 2), (["town", "sex", "town"], 2)):
        with pytest.raises(BadInput, match="is aliased") as error:
            require_full_rank(data, terms, "p")
        assert error.value.place == f"p[{wrong}]"


def test_a_value_outside_a_domain_is_counted_in_all_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_blocks, "CELLS_PER_BLOCK", 20)
    data = table(60, 5)
    frame = data.frame.assign(pay=np.where(np.arange(60) % 6 == 0, -1.0, 2.0))
    data = Microdata(SCHEMA, frame)
    design = design_of(("log(pay)",), data)
    for asked in (lambda: design_triangle(design, data), lambda: design.predict(data, np.ones(2))):
        with pytest.raises(BadInput, match="undefined for 10 records"):
            asked()


def test_a_triangle_of_blocks_may_have_fewer_rows_than_columns() -> None:
    rows = np.random.default_rng(1).normal(size=(3, 5))
    found = triangle_of_blocks([rows[:1], rows[1:2], rows[2:]])
    assert found.shape == (3, 5)
    assert found.T @ found == pytest.approx(rows.T @ rows)


@pytest.mark.slow
@given(terms=st.sampled_from(TERMS), n=st.integers(1, 60), cells=st.integers(1, 400), seed=st.integers(0, 2**32 - 1))
def test_predictions_are_the_matrix_times_the_coefficients(
    terms: tuple[str, ...], n: int, cells: int, seed: int
) -> None:
    """A missing value of a predictor has none, in blocks as in the whole."""
    data = table(n, seed)
    rng = np.random.default_rng(seed)
    frame = data.frame.astype({"age": float}).mask(rng.random((n, 5)) < 0.1)
    data = Microdata(SCHEMA, frame)
    design = design_of(terms, data)
    coefficients = rng.normal(size=len(design.names))
    expected = design.build_matrix(data) @ coefficients
    assert design.predict(data, coefficients).tobytes() == expected.tobytes()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_blocks, "CELLS_PER_BLOCK", cells)
        found = design.predict(data, coefficients)
    assert found == pytest.approx(expected, rel=1e-12, abs=1e-9, nan_ok=True)
