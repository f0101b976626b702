"""The records behind a bar or a cell: exactly as many as the picture says, none twice, and with the values that it names."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.engine.data.schema import Kind, Variable
from sfumato.workspace.plots.column import VariableValues
from sfumato.workspace.plots.joint import BinWindow, joint_distribution, records_in_cell
from sfumato.workspace.plots.marginal import MOST_LEVELS, draw_marginal, records_in_bar

numbers = st.lists(
    st.one_of(st.integers(-5, 40).map(float), st.floats(-1e3, 1e6, width=32), st.just(float("nan"))),
    min_size=1,
    max_size=60,
)
levels = st.lists(st.one_of(st.integers(0, 4).map(float), st.just(float("nan"))), min_size=1, max_size=60)


def column(values: list[float], released: list[float] | None = None, names: tuple[str, ...] = ()) -> VariableValues:
    kind = Kind.CATEGORICAL if names else Kind.CONTINUOUS
    tables = () if released is None else (np.array(released),)
    return VariableValues(Variable("v", kind, levels=names), np.array(values), tables, names)


def check_bars(one: VariableValues, *, log: bool = False) -> None:
    found = draw_marginal(one, "shares" if one.levels else "histogram", log=log).figure.panels[0]
    if not found.series:
        return
    own = found.series[0]
    behind = [records_in_bar(one, bar, log=log) for bar in range(own.x.size)]
    assert [len(rows) for rows in behind] == np.round(own.y * one.confidential.size).astype(int).tolist()
    every = np.concatenate(behind)
    assert len(set(every.tolist())) == every.size, "none is in two bars"
    if not one.levels:
        for middle, rows in zip(own.x, behind, strict=True):
            values = np.log10(one.confidential[rows]) if log else one.confidential[rows]
            tiny = 1e-9 * max(1.0, abs(middle))
            assert np.all(np.abs(values - middle) <= found.bar_width / 2 + tiny)


@pytest.mark.slow
@given(numbers, st.nothing() | numbers, st.booleans())
def test_a_bar_of_a_histogram_has_the_records_that_it_counts(
    values: list[float], released: list[float] | None, log: bool
) -> None:
    check_bars(column(values, released), log=log)


@pytest.mark.slow
@given(levels, st.nothing() | levels)
def test_a_bar_of_levels_has_the_records_that_it_counts(values: list[float], released: list[float] | None) -> None:
    one = column(values, released, tuple("abcde"))
    check_bars(one)
    names = draw_marginal(one, "shares").figure.panels[0].x_names
    for bar, name in enumerate(names):
        codes = one.confidential[records_in_bar(one, bar)]
        assert np.isnan(codes).all() if name == "(no value)" else all("abcde"[int(code)] == name for code in codes)


def test_levels_that_are_counted_together_are_found_together() -> None:
    rng = np.random.default_rng(3)
    many = tuple(f"l{i}" for i in range(2 * MOST_LEVELS))
    check_bars(column(rng.integers(0, len(many), 500).astype(float).tolist(), None, many))


@pytest.mark.slow
@given(numbers, levels, st.integers(2, 9), st.booleans())
def test_a_cell_has_the_records_that_it_counts(values: list[float], codes: list[float], most: int, log: bool) -> None:
    size = min(len(values), len(codes))
    x, y = column(values[:size]), column(codes[:size], None, tuple("abcde"))
    across, up = BinWindow(most, log=log), BinWindow(4)
    own = joint_distribution(x, y, across, up).confidential
    for j in range(len(own.y)):
        for i in range(len(own.x)):
            assert len(records_in_cell(x, y, across, up, (i, j))) == round(own.shares[j, i] * size)


@pytest.mark.parametrize("span", [(10.0, 20.0), None])
def test_the_cells_of_a_part_that_is_zoomed_into_have_its_records(span: tuple[float, float] | None) -> None:
    rng = np.random.default_rng(4)
    x, y = column(rng.normal(15, 5, 300).tolist()), column(rng.normal(0, 1, 300).tolist())
    across, up = BinWindow(7, span), BinWindow(5)
    own = joint_distribution(x, y, across, up).confidential
    low, high = own.x.edges[2], own.x.edges[3]
    rows = records_in_cell(x, y, across, up, (2, 1))
    assert len(rows) == round(own.shares[1, 2] * 300) > 0
    assert np.all((x.confidential[rows] >= low) & (x.confidential[rows] < high))
