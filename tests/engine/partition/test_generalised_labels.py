"""Labels of intervals and groups, as ARX, sdcMicro, pandas and people write them."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.engine.data.schema import Kind
from sfumato.engine.partition.hierarchies import Interval, lies_outside_label, parse_group, parse_interval

LEVELS = ("small", "medium", "large")


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ("[20, 30)", Interval(20, 30, high_closed=False)),
        ("[20, 30[", Interval(20, 30, high_closed=False)),
        ("]20, 30]", Interval(20, 30, low_closed=False)),
        ("(20,30]", Interval(20, 30, low_closed=False)),
        ("[-1.5;2e3]", Interval(-1.5, 2000)),
        ("(-inf, 5]", Interval(-math.inf, 5, low_closed=False)),
        ("20-29", Interval(20, 30, high_closed=False)),
        ("20 - 29", Interval(20, 30, high_closed=False)),
        ("-5--1", Interval(-5, -1)),
        ("20 to 29.5", Interval(20, 29.5)),
        ("1..3", Interval(1, 4, high_closed=False)),
        ("<20", Interval(-math.inf, 20, high_closed=False)),
        (">= 65", Interval(65, math.inf)),
        ("65+", Interval(65, math.inf)),
    ],
)
def test_intervals_of_numbers(label: str, expected: Interval) -> None:
    assert parse_interval(label, Kind.COUNT) == expected


@pytest.mark.parametrize(
    "label", ["*", "young", "[a, b]", "[1, 2, 3]", "20-", "{1, 2}", "", "[20 30]", "2020-01-01", "20"]
)
def test_other_labels_are_no_intervals(label: str) -> None:
    assert parse_interval(label, Kind.CONTINUOUS) is None


def test_intervals_of_dates_and_levels() -> None:
    day = pd.Timestamp("2020-01-01").toordinal() - pd.Timestamp("1970-01-01").toordinal()
    assert parse_interval("[2020-01-01, 2020-01-31]", Kind.DATE) == Interval(day, day + 30)
    assert parse_interval("2020-01-01 - 2020-01-31", Kind.DATE) == Interval(day, day + 30)
    assert parse_interval("[2020-01-01, 2020-99-31]", Kind.DATE) is None
    assert parse_interval("[small, medium]", Kind.ORDINAL, LEVELS) == Interval(0, 1)
    assert parse_interval("[small, huge]", Kind.ORDINAL, LEVELS) is None
    assert parse_interval("[small, medium]", Kind.CATEGORICAL, LEVELS) is None


@pytest.mark.slow
@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30), st.integers(2, 6), st.booleans())
def test_intervals_that_pandas_cuts_contain_their_values(values: list[float], bins: int, right: bool) -> None:
    edges = np.linspace(min(values) - 1, max(values) + 1, bins + 1)
    labels = pd.cut(np.array(values), edges, right=right, include_lowest=True).astype(str)
    rounding = 1e-3 * max(1.0, *np.abs(values))  # pandas prints the ends with few digits
    for label, value in zip(labels, values, strict=True):
        found = parse_interval(label, Kind.CONTINUOUS)
        assert found is not None
        assert found.low - rounding <= value <= found.high + rounding


def test_groups_and_what_is_outside() -> None:
    assert parse_group("{a, b}") == ("a", "b")
    assert parse_group("a, b") == ()
    labels = np.array(["{north, south}", "{north, south}", "*", "{north, nowhere}", "[1, 2]"], dtype=object)
    codes = np.array([0.0, 2.0, 1.0, 2.0, np.nan])
    assert (
        lies_outside_label(labels, codes, Kind.CATEGORICAL, ("north", "south", "west")).tolist()
        == [False, True] + [False] * 3
    )
    numbers = np.array(["[1, 2)", "[1, 2)", "{1, 5}", "{1, 5}", "[1, 2)"], dtype=object)
    assert lies_outside_label(numbers, np.array([1.0, 2.0, 5.0, 4.0, np.nan]), Kind.COUNT).tolist() == [
        False, True, False, True, False
    ]  # fmt: skip
