"""Mondrian's partitions against a plain recursive program, and what must hold of any of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st

from sfumato.engine.partition import partitioning
from sfumato.engine.partition.equivalence_classes import Limits, SensitiveColumn
from sfumato.engine.partition.partitioning import QuasiIdentifierRanks, mondrian_classes

Rows = list[int]
Allowed = Callable[[Rows], bool]


def recursive(
    columns: Sequence[Sequence[float]], k: int, relaxed: bool, allowed: Allowed = lambda _: True
) -> list[Rows]:
    """One partition at a time, as the paper's Figure 5 has it; strict cuts at the more even edge of the median."""
    spans = [max(c) - min(c) for c in columns]
    places = [[(v - min(c)) / s if s else 0.0 for v in c] for c, s in zip(columns, spans, strict=True)]

    def sides(rows: Rows, values: Sequence[float]) -> tuple[Rows, Rows]:
        ordered = sorted(values[i] for i in rows)
        median = ordered[(len(rows) - 1) // 2]
        if relaxed:
            half = (len(rows) + 1) // 2
            first = [i for i in rows if values[i] < median]
            tied = [i for i in rows if values[i] == median]
            left = set(first + tied[: half - len(first)])
        else:
            up_to = [i for i in rows if values[i] <= median]
            below = [i for i in rows if values[i] < median]
            even = abs(2 * len(up_to) - len(rows)) <= abs(2 * len(below) - len(rows))
            left = set(up_to if even else below)
        return [i for i in rows if i in left], [i for i in rows if i not in left]

    def cut_rows(rows: Rows) -> list[Rows]:
        widths = [max(p[i] for i in rows) - min(p[i] for i in rows) for p in places]
        for d in sorted(range(len(columns)), key=lambda d: -widths[d]):
            if widths[d] > 0 and len(rows) >= 2 * k:
                left, right = sides(rows, columns[d])
                if min(len(left), len(right)) >= k and allowed(left) and allowed(right):
                    return cut_rows(left) + cut_rows(right)
        return [rows]

    return cut_rows(list(range(len(columns[0]))))


def as_sets(classes: np.ndarray) -> set[frozenset[int]]:
    return {frozenset(np.flatnonzero(classes == c).tolist()) for c in np.unique(classes[classes >= 0])}


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[list[float]], int]:
    n = draw(st.integers(2, 40))
    values = [
        draw(st.lists(st.integers(0, top), min_size=n, max_size=n))
        for top in draw(st.lists(st.sampled_from([0, 1, 3, 50]), min_size=1, max_size=3))
    ]
    return [[float(v) for v in column] for column in values], draw(st.integers(1, min(n, 6)))


def dimensions(columns: Sequence[Sequence[float]]) -> list[QuasiIdentifierRanks]:
    return [QuasiIdentifierRanks.from_numbers(np.array(column)) for column in columns]


@pytest.mark.slow
@seed(1)
@settings(max_examples=150, deadline=None)
@given(tables(), st.booleans(), st.sampled_from([0, 4, 1000]))
def test_partitions_are_those_of_the_recursive_program(
    table: tuple[list[list[float]], int], relaxed: bool, dense: int
) -> None:
    columns, k = table
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(partitioning, "DENSE", dense)  # medians by sorting, by either, by counting
        found = mondrian_classes(dimensions(columns), k, relaxed=relaxed)
    assert as_sets(found) == {frozenset(rows) for rows in recursive(columns, k, relaxed)}


@pytest.mark.slow
@seed(2)
@settings(max_examples=60, deadline=None)
@given(tables(), st.booleans())
def test_a_condition_on_classes_limits_the_cuts_as_in_the_recursive_program(
    table: tuple[list[list[float]], int], relaxed: bool
) -> None:
    columns, k = table
    odd = np.arange(len(columns[0])) % 2

    def mixed(rows: np.ndarray, parts: np.ndarray, count: int) -> np.ndarray:
        return np.array([len(np.unique(odd[rows[parts == part]])) == 2 for part in range(count)])

    found = mondrian_classes(dimensions(columns), k, relaxed=relaxed, rule=lambda _: mixed)
    expected = recursive(columns, k, relaxed, lambda rows: len({int(odd[i]) for i in rows}) == 2)
    assert as_sets(found) == {frozenset(rows) for rows in expected}


@pytest.mark.slow
@seed(3)
@settings(max_examples=100, deadline=None)
@given(tables(), st.integers(0, 10))
def test_suppression_keeps_to_its_limit_and_to_k(table: tuple[list[list[float]], int], most: int) -> None:
    columns, k = table
    found = mondrian_classes(dimensions(columns), k, most_suppressed=most)
    assert (found < 0).sum() <= most
    assert np.bincount(found[found >= 0]).min() >= k


def test_relaxed_classes_have_fewer_than_2k_records_where_no_two_are_alike() -> None:
    values = np.random.default_rng(4).permutation(1000).astype(float)
    sizes = np.bincount(mondrian_classes([QuasiIdentifierRanks.from_numbers(values)], 7, relaxed=True))
    assert 7 <= sizes.min() <= sizes.max() <= 13


def test_strict_classes_never_part_equal_records() -> None:
    rng = np.random.default_rng(5)
    columns = [rng.integers(0, 4, 500), rng.integers(0, 3, 500)]
    cells = columns[0] * 3 + columns[1]

    def parted(*, relaxed: bool) -> bool:
        classes = mondrian_classes([QuasiIdentifierRanks.from_ranks(column) for column in columns], 5, relaxed=relaxed)
        return any(len(np.unique(classes[cells == cell])) > 1 for cell in np.unique(cells))

    assert not parted(relaxed=False)
    assert parted(relaxed=True)


def test_the_outlier_of_the_papers_example_is_suppressed() -> None:
    columns = [[1, 1, 2, 2, 11], [1, 2, 1, 1, 1]]
    found = mondrian_classes(dimensions(columns), 2, most_suppressed=1)
    assert as_sets(found) == {frozenset({0, 1}), frozenset({2, 3})}
    assert found[4] == -1
    assert as_sets(mondrian_classes(dimensions(columns), 2)) == {frozenset({0, 1}), frozenset({2, 3, 4})}


def entropy(values: Sequence[int]) -> float:
    shares = [values.count(v) / len(values) for v in set(values)]
    return -sum(p * math.log(p) for p in shares)


def distance(values: Sequence[int], whole: Sequence[int], ordered: bool) -> float:
    """Earth mover's distance between shares, by the sums that Li, Li & Venkatasubramanian print."""
    every = sorted(set(whole))
    gaps = [values.count(v) / len(values) - whole.count(v) / len(whole) for v in every]
    if not ordered:
        return sum(map(abs, gaps)) / 2
    return sum(abs(sum(gaps[: i + 1])) for i in range(len(gaps))) / (len(every) - 1) if len(every) > 1 else 0.0


def is_recursive(values: Sequence[int], c: float, l: int) -> bool:  # noqa: E741
    r = sorted((values.count(v) for v in set(values)), reverse=True)
    return r[0] < c * sum(r[l - 1 :])


CONSTRAINTS: dict[str, tuple[dict[str, Any], Callable[[list[int], list[int]], bool]]] = {
    "distinct": ({"l": 2.0}, lambda own, _: len(set(own)) >= 2),
    "entropy": ({"l": 1.6, "diversity": "entropy"}, lambda own, _: entropy(own) >= math.log(1.6)),
    "recursive": ({"l": 2.0, "diversity": "recursive", "c": 1.5}, lambda own, _: is_recursive(own, 1.5, 2)),
    "close": ({"t": 0.3}, lambda own, whole: distance(own, whole, ordered=False) <= 0.3 + 1e-12),
    "close in order": ({"t": 0.3}, lambda own, whole: distance(own, whole, ordered=True) <= 0.3 + 1e-12),
}


@st.composite
def sensitive_tables(draw: st.DrawFn) -> tuple[list[list[float]], int, list[int]]:
    columns, k = draw(tables())
    return columns, k, draw(st.lists(st.integers(0, 3), min_size=len(columns[0]), max_size=len(columns[0])))


@pytest.mark.slow
@pytest.mark.parametrize("kind", list(CONSTRAINTS))
@settings(max_examples=40)
@given(sensitive_tables(), st.booleans())
def test_diversity_and_closeness_limit_the_cuts_as_their_definitions_do(
    kind: str, table: tuple[list[list[float]], int, list[int]], relaxed: bool
) -> None:
    columns, k, sensitive = table
    limits, holds = CONSTRAINTS[kind]
    variable = SensitiveColumn.from_values("s", np.array(sensitive, dtype=float), ordered=kind == "close in order")
    found = mondrian_classes(dimensions(columns), k, relaxed=relaxed, rule=Limits(**limits).rule([variable]))
    expected = recursive(columns, k, relaxed, lambda rows: holds([sensitive[i] for i in rows], sensitive))
    assert as_sets(found) == {frozenset(rows) for rows in expected}
    if len(as_sets(found)) > 1:
        assert all(holds([sensitive[i] for i in rows], sensitive) for rows in as_sets(found))


@pytest.mark.parametrize("kind", list(CONSTRAINTS))
def test_k_alone_does_not_give_diversity_or_closeness(kind: str) -> None:
    holds = CONSTRAINTS[kind][1]
    columns, sensitive = [[float(i) for i in range(40)]], [i // 10 for i in range(40)]
    classes = as_sets(mondrian_classes(dimensions(columns), 5))
    assert not all(holds([sensitive[i] for i in rows], sensitive) for rows in classes)


@pytest.mark.slow
@pytest.mark.parametrize("kind", list(CONSTRAINTS))
@settings(max_examples=60)
@given(sensitive_tables(), st.integers(1, 10))
def test_what_is_left_after_suppression_keeps_to_the_limits_of_its_own_shares(
    kind: str, table: tuple[list[list[float]], int, list[int]], most: int
) -> None:
    columns, k, sensitive = table
    limits, holds = CONSTRAINTS[kind]
    variable = SensitiveColumn.from_values("s", np.array(sensitive, dtype=float), ordered=kind == "close in order")
    rule = Limits(**limits).rule([variable])
    found = mondrian_classes(dimensions(columns), k, rule=rule, most_suppressed=most)
    left = [value for value, own in zip(sensitive, found, strict=True) if own >= 0]
    assert len(sensitive) - len(left) <= most
    classes = as_sets(found)
    assert min(map(len, classes)) >= k
    assert len(classes) == 1 or all(holds([sensitive[i] for i in rows], left) for rows in classes)


def test_only_the_cuts_that_the_records_left_do_not_allow_are_taken_back() -> None:
    """A line is cut into fours, then pairs, and record 8 beside it suppressed; the rule of what is left refuses {4, 5}."""
    line, beside = [*range(8), 0.5], [0] * 8 + [1]
    refused: list[list[int]] = []

    def rule(table: np.ndarray) -> Callable[..., np.ndarray]:
        def allowed(rows: np.ndarray, parts: np.ndarray, count: int) -> np.ndarray:
            found = [sorted(rows[parts == part].tolist()) for part in range(count)]
            refused.extend(own for own in found if len(table) == 8 and own == [4, 5])
            return np.array([len(table) == 9 or own != [4, 5] for own in found])

        return allowed

    found = mondrian_classes(dimensions([beside, line]), 2, rule=rule, most_suppressed=1)
    assert refused == [[4, 5]]
    assert as_sets(found) == {frozenset({0, 1}), frozenset({2, 3}), frozenset({4, 5, 6, 7})}
