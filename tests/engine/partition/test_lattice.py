"""The exact search of a lattice against every node of it, counted record by record."""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import lattice as benchmark
import numpy as np
import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st

from sfumato.engine.partition import lattice
from sfumato.engine.partition.equivalence_classes import Limits, SensitiveColumn
from sfumato.engine.partition.hierarchies import Hierarchy
from sfumato.engine.partition.lattice import (
    GeneralisationLevels,
    LatticeNode,
    Objective,
    classes_at_node,
    find_best_levels,
    has_monotone_suppression,
)

OBJECTIVES: tuple[Objective, ...] = ("average_class_size", "discernibility", "ncp", "entropy")
LIMITS = [
    Limits(k=2),
    Limits(k=3),
    Limits(k=2, p=2),
    Limits(k=2, l=2),
    Limits(k=1, l=1.8, diversity="entropy"),
    Limits(k=1, l=2, diversity="recursive", c=2.0),
    Limits(k=2, t=0.4),
]
TREES = [
    Hierarchy((("a", "ab", "*"), ("b", "ab", "*"), ("c", "c", "*"))),
    Hierarchy((("a", "*"), ("b", "*"))),
    Hierarchy((("a", "ab", "abc", "*"), ("b", "ab", "abc", "*"), ("c", "c", "abc", "*"), ("d", "d", "d", "*"))),
]

Table = tuple[list[Hierarchy], list[list[int]], list[str]]


@st.composite
def tables(draw: st.DrawFn) -> Table:
    """Trees, the row of each record in each, and a sensitive value of each record."""
    trees = draw(st.lists(st.sampled_from(TREES), min_size=1, max_size=3))
    n = draw(st.integers(3, 14))
    codes = [draw(st.lists(st.integers(0, len(tree.rows) - 1), min_size=n, max_size=n)) for tree in trees]
    return trees, codes, draw(st.lists(st.sampled_from("xxyz"), min_size=n, max_size=n))


def ladders_of(table: Table) -> list[GeneralisationLevels]:
    trees, codes, _ = table
    return [
        GeneralisationLevels.from_hierarchy(tree, np.array(rows, dtype=np.int64))
        for tree, rows in zip(trees, codes, strict=True)
    ]


def sensitive_of(table: Table) -> list[SensitiveColumn]:
    ranks = np.array(["xyz".index(value) for value in table[2]], dtype=np.float64)
    return [SensitiveColumn.from_values("illness", ranks, ordered=False)]


def keeps(values: Sequence[str], released: Sequence[str], limits: Limits) -> bool:
    """Whether a class with these sensitive values keeps to the limits in a table with the released ones."""
    shares = sorted((n / len(values) for n in Counter(values).values()), reverse=True)
    if len(values) < limits.k or len(shares) < limits.p:
        return False
    if limits.diversity == "recursive":
        counts = sorted(Counter(values).values(), reverse=True)
        rest = sum(counts[int(limits.l) - 1 :])
        if rest == 0 or counts[0] / rest >= limits.c:
            return False
    elif limits.diversity == "entropy":
        if round(math.exp(-sum(p * math.log(p) for p in shares)), 12) < limits.l:
            return False
    elif len(shares) < limits.l:
        return False
    whole = Counter(released)
    distance = sum(abs(values.count(v) / len(values) - n / len(released)) for v, n in whole.items()) / 2
    return round(distance, 12) <= limits.t


def released_classes(table: Table, node: LatticeNode, limits: Limits) -> list[list[int]]:
    trees, codes, values = table
    shown = [[tree.rows[row][level] for row in rows] for tree, rows, level in zip(trees, codes, node, strict=True)]
    groups: dict[tuple[str, ...], list[int]] = {}
    for record, key in enumerate(zip(*shown, strict=True)):
        groups.setdefault(key, []).append(record)
    classes = [rows for rows in groups.values() if len(rows) >= limits.k]
    while True:
        released = [values[row] for rows in classes for row in rows]
        kept = [rows for rows in classes if keeps([values[row] for row in rows], released, limits)]
        if len(kept) == len(classes):
            return classes
        classes = kept


def value_of(table: Table, node: LatticeNode, classes: list[list[int]], objective: Objective) -> float:
    trees, codes, values = table
    n, d = len(values), len(trees)
    released = {row for rows in classes for row in rows}
    if objective == "average_class_size":
        return len(released) / len(classes)
    if objective == "discernibility":
        return sum(len(rows) ** 2 for rows in classes) + n * (n - len(released))
    total = 0.0
    for tree, rows, level in zip(trees, codes, node, strict=True):
        for record, row in enumerate(rows):
            label = tree.rows[row][level]
            under = [other for other in range(len(tree.rows)) if tree.rows[other][level] == label]
            if objective == "ncp":
                total += (len(under) - 1) / (len(tree.rows) - 1) if record in released else 1.0
            else:
                shared = sum(rows.count(other) for other in under) if record in released else n
                total += math.log2(shared / rows.count(row))
    return total / (n * d)


def brute_force(table: Table, limits: Limits, objective: Objective, most: int) -> tuple[float, set[LatticeNode]]:
    answers = {}
    for node in product(*(range(tree.height + 1) for tree in table[0])):
        classes = released_classes(table, node, limits)
        if classes and len(table[2]) - sum(map(len, classes)) <= most:
            answers[node] = value_of(table, node, classes, objective)
    least = min(answers.values(), default=math.inf)
    return least, {node for node, value in answers.items() if math.isclose(value, least, rel_tol=1e-9, abs_tol=1e-12)}


def assert_best(table: Table, limits: Limits, objective: Objective, most: int) -> None:
    least, nodes = brute_force(table, limits, objective, most)
    found = find_best_levels(ladders_of(table), limits, objective, most_suppressed=most, sensitive=sensitive_of(table))
    assert found.value == pytest.approx(least)
    assert set(found.nodes) == nodes
    assert len(found.nodes) == len(nodes)
    whole = math.prod(tree.height + 1 for tree in table[0])
    assert found.n_checked + found.n_below_infeasible + found.n_excluded == whole


@pytest.mark.slow
@seed(1)
@settings(max_examples=200, deadline=None)
@given(tables(), st.sampled_from(LIMITS), st.sampled_from(OBJECTIVES), st.integers(0, 6))
def test_the_search_finds_every_best_node_of_small_lattices(
    table: Table, limits: Limits, objective: Objective, most: int
) -> None:
    assert_best(table, limits, objective, most)


@pytest.mark.slow
@seed(2)
@settings(max_examples=60, deadline=None)
@given(tables(), st.sampled_from(OBJECTIVES))
def test_numbers_that_exceed_64_bits_are_counted_too(table: Table, objective: Objective) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lattice, "KEY_LIMIT", 4)
        assert_best(table, Limits(k=2), objective, 2)


def random_table(number: int) -> Table:
    rng = np.random.default_rng(number)
    trees = [TREES[one] for one in rng.integers(0, 3, 2)]
    codes = [rng.integers(0, len(tree.rows), 12).tolist() for tree in trees]
    return trees, codes, rng.choice(list("xxxyz"), 12).tolist()


@functools.cache
def best_nodes(number: int, limits: Limits, objective: Objective) -> set[Any]:
    """The best nodes of a random lattice with four records that may be suppressed."""
    return brute_force(random_table(number), limits, objective, 4)[1]


def misses(limits: Limits, patch: Callable[[pytest.MonkeyPatch], Any]) -> Iterator[bool]:
    """Whether the search misses the best nodes of each of 80 random lattices when a rule of it is replaced."""
    for number in range(80):
        table = random_table(number)
        for objective in OBJECTIVES:
            nodes = best_nodes(number, limits, objective)
            with pytest.MonkeyPatch.context() as patched:
                patch(patched)
                found = find_best_levels(
                    ladders_of(table), limits, objective, most_suppressed=4, sensitive=sensitive_of(table)
                )
            yield set(found.nodes) != nodes


@pytest.mark.slow
@pytest.mark.parametrize(
    "limits",
    [Limits(k=1, l=1.8, diversity="entropy"), Limits(k=1, l=2, diversity="recursive", c=1.5), Limits(k=1, t=0.4)],
)
def test_settling_what_lies_below_an_infeasible_node_is_wrong_for_entropy_c_and_t(limits: Limits) -> None:
    """The control: the rule that holds for k, p and distinct l misses best nodes where records may be suppressed."""
    assert not any(misses(limits, lambda patch: None))
    assert any(
        misses(limits, lambda patch: patch.setattr(lattice, "has_monotone_suppression", lambda limits, most: True))
    )


@pytest.mark.slow
def test_a_bound_that_is_too_high_would_be_noticed() -> None:
    def doubled(patch: pytest.MonkeyPatch) -> None:
        right = lattice._LatticeProblem.evaluate_node

        def look(self: lattice._LatticeProblem, node: LatticeNode, loss: float) -> lattice._NodeEvaluation:
            found = right(self, node, loss)
            return lattice._NodeEvaluation(found.is_feasible, found.value, 2 * found.bound, found.n_in_small_classes)

        patch.setattr(lattice._LatticeProblem, "evaluate_node", look)

    assert not any(misses(Limits(k=2), lambda patch: None))
    assert any(misses(Limits(k=2), doubled))


@pytest.mark.slow
@seed(3)
@settings(max_examples=150, deadline=None)
@given(tables(), st.sampled_from(LIMITS), st.integers(0, 4))
def test_whoever_is_released_stays_so_above_where_the_rule_says_it(table: Table, limits: Limits, most: int) -> None:
    if not has_monotone_suppression(limits, most) or most == 0:
        return
    trees = table[0]
    for node in product(*(range(tree.height + 1) for tree in trees)):
        released = {row for rows in released_classes(table, node, limits) for row in rows}
        for axis, tree in enumerate(trees):
            if node[axis] < tree.height:
                above = (*node[:axis], node[axis] + 1, *node[axis + 1 :])
                assert released <= {row for rows in released_classes(table, above, limits) for row in rows}


@pytest.mark.slow
@seed(4)
@settings(max_examples=100, deadline=None)
@given(tables(), st.sampled_from(LIMITS), st.data())
def test_classes_of_a_node_are_those_of_its_labels(table: Table, limits: Limits, data: st.DataObject) -> None:
    node = tuple(data.draw(st.integers(0, tree.height)) for tree in table[0])
    expected = np.full(len(table[2]), -1)
    for number, rows in enumerate(released_classes(table, node, limits)):
        expected[rows] = number
    found = classes_at_node(ladders_of(table), node, limits, sensitive_of(table))
    assert np.array_equal(found, expected)


def test_ties_are_all_told_and_levels_can_be_limited() -> None:
    table: Table = ([TREES[1], TREES[1]], [[0, 0, 1, 1], [0, 1, 0, 1]], ["x"] * 4)
    found = find_best_levels(ladders_of(table), Limits(k=2), "ncp")
    assert found.nodes == ((0, 1), (1, 0))
    assert find_best_levels(ladders_of(table), Limits(k=2), "ncp", lowest=(1, 0)).nodes == ((1, 0),)
    none = find_best_levels(ladders_of(table), Limits(k=2), "ncp", highest=(0, 0))
    assert (none.nodes, none.value) == ((), math.inf)
    assert find_best_levels(ladders_of(table), Limits(k=2), "ncp", highest=(0, 0), most_suppressed=4).nodes == ()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("objective", "value"),
    [
        ("average_class_size", 48.92543411644535),
        ("discernibility", 17787503.0),
        ("ncp", 0.3307512263494067),
        ("entropy", 1.097036323143765),
    ],
)
def test_adult_has_the_optimum_of_brute_force(
    objective: Objective, value: float, public_data: Callable[[str], Path]
) -> None:
    """``python tests/benchmarks/lattice.py`` counts all 4,860 nodes: the same values and nodes."""
    of = benchmark.ladders(public_data("adult.csv").parent)
    found, _ = benchmark.searched(of, objective, 5, 976)
    assert found.value == pytest.approx(value, rel=1e-12)
    assert found.n_checked < 0.15 * 4_860
    assert found.n_checked + found.n_below_infeasible + found.n_excluded == 4_860
    classes = classes_at_node(of, found.nodes[0], Limits(k=5))
    assert np.bincount(classes[classes >= 0]).min() >= 5
    assert (classes < 0).sum() <= 976


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("most", [0, 1, 3])
@pytest.mark.parametrize("limits", [Limits(k=5), Limits(k=2, p=4), Limits(k=1, l=3.5, diversity="entropy")])
def test_a_search_of_a_table_that_meets_no_limit_at_any_node_ends(
    objective: Objective, most: int, limits: Limits
) -> None:
    table: Table = ([TREES[1], TREES[1]], [[0, 0, 1, 1], [0, 1, 0, 1]], ["x", "y", "x", "y"])
    steps = 0

    def report(done: int, total: int) -> None:
        nonlocal steps
        steps += 1
        assert steps <= 100, "the search does not end"

    found = find_best_levels(
        ladders_of(table),
        limits,
        objective,
        most_suppressed=most,
        sensitive=sensitive_of(table) if limits.on_values else (),
        report=report,
    )
    assert (found.nodes, found.value) == ((), math.inf)
    assert found.n_checked + found.n_below_infeasible + found.n_excluded == 4
