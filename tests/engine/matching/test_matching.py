"""The matching join against a double loop over all pairs of records, written from the definition."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matched_records import match_records

from sfumato.engine.errors import NotComputable
from sfumato.engine.matching.matching import (
    BoxEdges,
    ExactKey,
    MatchResults,
    RecordMatcher,
    WindowKey,
    count_unique_matches,
    expected_match_risk,
    false_match_rate,
    true_match_rate,
)
from sfumato.engine.matching.radius import Radius
from sfumato.engine.matching.strategies import IntruderStrategy, ignored_in_description

RADII = [Radius.parse(text) for text in (0, 1, "open 2", "25%", "open 25%", "log 30%", "open log 30%")]


def agrees(radius: Radius, centre: float, released: float) -> bool:
    """One pair of values, by the definition of each kind of radius."""
    if math.isnan(centre) or math.isnan(released):
        return False
    if radius.kind == "log_relative":
        centre, released = np.log1p(centre), np.log1p(released)
    limit = radius.amount if radius.kind == "absolute" else radius.amount * abs(centre) / 100
    return abs(released - centre) <= limit if radius.closed else abs(released - centre) < limit


def same(a: object, b: object) -> bool:
    return a == b or (pd.isna(a) and pd.isna(b))


def test_a_side_whose_windows_hold_one_value_at_most_is_told_from_others() -> None:
    points = np.array([1.0, 4.0, 4.0, 9.0, np.nan])

    def make_box_edges(*windows: tuple[float, float]) -> BoxEdges:
        lower, upper = np.array(windows, dtype=np.float64).reshape(-1, 2).T
        return BoxEdges.from_windows(lower, upper, points)

    assert make_box_edges((3, 5), (8, 20), (5, 8), (np.nan, 9)).is_single_valued
    assert make_box_edges().is_single_valued
    assert not make_box_edges((3, 5), (4, 9)).is_single_valued
    assert not make_box_edges((0, 4)).is_single_valued


def double_loop(keys, windows, n: int, n_released: int) -> list[list[int]]:
    """For each confidential record the released ones that match; keys and windows as plain lists of values."""
    return [
        [
            j
            for j in range(n_released)
            if all(same(known[i], released[j]) for known, released in keys)
            and all(agrees(radius, known[i], released[j]) for radius, known, released in windows)
        ]
        for i in range(n)
    ]


@st.composite
def tables(draw, most_keys: int = 3, most_windows: int = 4):
    """Small tables with many ties and some missing values, and what is known about them."""
    n, n_released = draw(st.integers(1, 9)), draw(st.integers(1, 9))
    if draw(st.booleans()):
        n_released = n
    levels = st.sampled_from(["a", "b", None])
    # A percentage of the smallest numbers rounds to 0, so that an open radius would leave a value out of its own.
    numbers = st.integers(0, 6).map(float) | st.just(math.nan) | st.floats(0, 6, allow_subnormal=False)

    def column(values, size):
        return draw(st.lists(values, min_size=size, max_size=size))

    keys = [(column(levels, n), column(levels, n_released)) for _ in range(draw(st.integers(0, most_keys)))]
    windows = [
        (draw(st.sampled_from(RADII)), column(numbers, n), column(numbers, n_released))
        for _ in range(draw(st.integers(0 if keys else 1, most_windows)))
    ]
    return keys, windows, n, n_released


def as_arrays(keys, windows) -> tuple[list[ExactKey], list[WindowKey]]:
    exact = [ExactKey(np.array(a, dtype=object), np.array(b, dtype=object)) for a, b in keys]
    return exact, [WindowKey(*radius.window(a), np.array(b)) for radius, a, b in windows]


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(tables())
def test_equals_the_double_loop(table) -> None:
    keys, windows, n, n_released = table
    exact, within = as_arrays(keys, windows)
    expected = double_loop(keys, windows, n, n_released)
    found = match_records(exact, within)
    assert found.candidates.tolist() == [len(row) for row in expected]
    assert found.hit.tolist() == [i in row for i, row in enumerate(expected)]
    members = RecordMatcher.from_keys(exact, (n, n_released)).matching_rows(within, range(n))
    assert [row.tolist() for row in members] == expected


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(0, 2), st.integers(1, 4), st.sampled_from([2, 20, 10**6]))
def test_equals_all_pairs_on_larger_tables(seed: int, n_keys: int, n_windows: int, distinct: int) -> None:
    rng = np.random.default_rng(seed)
    n, n_released = rng.integers(1, 300, size=2)
    keys = [(rng.integers(0, 3, n), rng.integers(0, 3, n_released)) for _ in range(n_keys)]
    values = [
        (rng.integers(0, distinct, n) * 1.0, rng.integers(0, distinct, n_released) * 1.0) for _ in range(n_windows)
    ]
    radii = rng.integers(0, distinct, n_windows)
    pairs = np.ones((n, n_released), dtype=bool)
    for a, b in keys:
        pairs &= a[:, None] == b
    for (a, b), radius in zip(values, radii, strict=True):
        pairs &= abs(a[:, None] - b) <= radius
    within = [WindowKey(*Radius(float(r)).window(a), b) for (a, b), r in zip(values, radii, strict=True)]
    found = match_records([ExactKey(a, b) for a, b in keys], within)
    np.testing.assert_array_equal(found.candidates, pairs.sum(axis=1))
    np.testing.assert_array_equal(found.hit[: min(n, n_released)], np.diag(pairs))


def test_negative_control_the_double_loop_notices_a_wrong_window() -> None:
    windows = [(Radius(2.0), [3.0, 5.0], [5.0, 3.0])]
    _, within = as_arrays([], [(Radius(2.0, closed=False), *windows[0][1:])])
    assert match_records([], within).candidates.tolist() != [len(row) for row in double_loop([], windows, 2, 2)]


def test_identity_is_known_by_hand() -> None:
    matches = match_records([ExactKey(np.array(["a", "a", "b", "b"]), np.array(["a", "b", "b", "b"]))])
    assert matches.candidates.tolist() == [1, 1, 3, 3]
    assert matches.hit.tolist() == [True, False, True, True]
    assert expected_match_risk(matches) == pytest.approx(1 + 2 / 3)
    assert true_match_rate(matches) == 0.25
    assert (count_unique_matches(matches), false_match_rate(matches)) == (2, 0.5)


def test_single_record_matches_itself() -> None:
    column = np.array([7.0])
    matches = match_records([], [WindowKey(*Radius(0.0).window(column), column)])
    assert (matches.candidates.tolist(), matches.hit.tolist()) == ([1], [True])
    assert expected_match_risk(matches) == true_match_rate(matches) == 1.0


def test_false_match_rate_without_unique_matches_is_not_computed() -> None:
    column = np.array([1, 1])
    with pytest.raises(NotComputable, match="unique match"):
        false_match_rate(match_records([ExactKey(column, column)]))


def test_true_match_rate_of_nobody_is_not_computed() -> None:
    with pytest.raises(NotComputable, match="no records"):
        true_match_rate(MatchResults(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=bool)))


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=30))
def test_a_table_against_itself_gives_its_distinct_keys(values: list[str]) -> None:
    """Each class of k equal records contributes k * 1/k = 1 to the expected match risk."""
    column = np.array(values)
    matches = match_records([ExactKey(column, column)])
    assert expected_match_risk(matches) == pytest.approx(len(set(values)))
    assert matches.hit.all()


@pytest.mark.parametrize(
    "values",
    [
        pd.Series([1.5, np.nan, 1.5]),
        pd.Series(["x", None, "x"]),
        pd.Series(["x", None, "x"], dtype="category"),
        pd.Series(pd.to_datetime(["2019-07-31", None, "2019-07-31"])),
        pd.Series([True, False, True]),
        np.array([3, 4, 3], dtype=np.int8),
    ],
)
def test_keys_of_any_type(values) -> None:
    assert match_records([ExactKey(values, values)]).candidates.tolist() == [2, 1, 2]


def test_categories_of_different_codes_are_compared_by_value() -> None:
    first = pd.Series(["x", "y"], dtype=pd.CategoricalDtype(["x", "y"]))
    second = pd.Series(["x", "y"], dtype=pd.CategoricalDtype(["y", "x"]))
    assert match_records([ExactKey(first, second)]).hit.all()


def test_whole_numbers_equal_floats() -> None:
    assert match_records([ExactKey(np.array([1, 2]), np.array([1.0, 3.0]))]).hit.tolist() == [True, False]


def test_refining_is_grouping_by_all_keys() -> None:
    rng = np.random.default_rng(5)
    keys = [ExactKey(rng.integers(0, 4, 50), rng.integers(0, 4, 60)) for _ in range(3)]
    once = RecordMatcher.from_keys(keys, (50, 60)).match_windows()
    step = RecordMatcher.from_keys(keys[:2], (50, 60)).split_groups(keys[2]).match_windows()
    np.testing.assert_array_equal(once.candidates, step.candidates)


def test_large_products_of_group_numbers_are_renumbered(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(6)
    columns = [rng.integers(0, 40, 200).astype(float) for _ in range(4)]
    within = [WindowKey(*Radius(6.0).window(column), column) for column in columns]
    expected = match_records([], within)
    monkeypatch.setattr("sfumato.engine.matching.matching._LARGE", 2)
    np.testing.assert_array_equal(match_records([], within).candidates, expected.candidates)


def test_lengths_must_fit() -> None:
    with pytest.raises(ValueError, match="do not fit"):
        match_records([ExactKey(np.arange(3), np.arange(3)), ExactKey(np.arange(2), np.arange(3))])


def test_inputs_are_left_alone() -> None:
    column = np.array([3.0, 1.0, 2.0])
    column.flags.writeable = False
    match_records([ExactKey(column, column)], [WindowKey(column, column, column)] * 3)


@pytest.mark.slow
def test_billions_of_matching_pairs_are_counted_without_listing_them() -> None:
    """100,000 records in one group whose windows are wide: 10^10 matching pairs, counted in two and in three sides."""
    n = 100_000
    rng = np.random.default_rng(1)
    columns = [rng.permutation(n).astype(float) for _ in range(3)]
    wide = [WindowKey(column * 0 - 1, column * 0 + n, column) for column in columns]
    assert (match_records([], wide[:2]).candidates == n).all()
    assert (match_records([], wide).candidates == n).all()
    half = WindowKey(columns[2] * 0, columns[2] * 0 + n // 2 - 1, columns[2])
    assert (match_records([], [*wide[:1], half]).candidates == n // 2).all()


@pytest.mark.parametrize("ignored", [(), ("a",), ("a, b", "pay (EUR)"), ("a", "c; ignores d"), ("pay", "sex")])
@pytest.mark.parametrize("rest", ["", "; from 3 datasets", " (of more than 12 variables not all subsets are tried)"])
def test_what_a_strategy_ignores_is_read_from_its_description(ignored: tuple[str, ...], rest: str) -> None:
    """Names with commas, brackets and semicolons are read as they are."""
    known = ("a", "a, b", "pay", "pay (EUR)", "c; ignores d", "sex")
    said = IntruderStrategy(("sex",), ignored).description + rest
    assert ignored_in_description(said, known) == ignored
