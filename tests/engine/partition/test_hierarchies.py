"""Generalisation trees: the paper's example, what is refused, and lowest common nodes against brute force."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st

from sfumato.engine.partition.hierarchies import (
    Hierarchy,
    flat_hierarchy,
    interval_hierarchy,
    interval_labels,
    parse_arx_rows,
)

PAPER = Hierarchy.parse(
    {"rows": [["foo", "foobar", "*"], ["test", "test", "*"], ["bar", "foobar", "*"]], "sizes": {"foobar": 10, "*": 100}}
)


def test_the_tree_of_the_papers_figure_4() -> None:
    assert PAPER.height == 2
    assert PAPER.root == "*"
    assert PAPER.node_sizes.tolist() == [[0, 0, 0], [10, 0, 10], [100, 100, 100]]
    assert PAPER.common_levels(np.array([0, 0, 0]), np.array([0, 2, 1])).tolist() == [0, 1, 2]
    assert np.argsort(PAPER.leaf_ranks).tolist() == [0, 2, 1], "foo and bar side by side"


@pytest.mark.parametrize("tree", [PAPER, flat_hierarchy(["a", "b"]), Hierarchy.parse([["a", "*"], ["b", "*"]])])
def test_a_tree_is_written_and_read_back(tree: Hierarchy) -> None:
    assert Hierarchy.parse(tree.written) == tree


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("tree.csv", "rows of a value"),
        ([], "no rows"),
        ([["a", "*"], ["b"]], "as many levels"),
        ([["a"], ["b"]], "as many levels"),
        ([["a", "*"], ["a", "*"]], '"a" has 2 rows'),
        ([["a", "x"], ["b", "y"]], "one root"),
        ([["a", "m", "x", "*"], ["b", "m", "y", "*"]], '"m" at level 1 lies under both "x" and "y"'),
        ({"rows": [["a", "*"], ["b", "*"]], "sizes": {"c": 1}}, '"c", which is no node'),
        ({"rows": [["a", "*"], ["b", "*"]], "sizes": {"a": 1}}, "size of a value must be 0"),
        ({"rows": [["a", "m", "*"], ["b", "m", "*"]], "sizes": {"m": 5, "*": 2}}, '"*" is smaller than "m"'),
        ({"rows": [["a", "*"]]}, "root must have a size"),
        ({"rows": [["a", "*"], ["b", "*"]], "sizes": {"*": "big"}}, "sizes must be numbers"),
        ({"rows": [["a", "*"], ["b", "*"]], "heights": 1}, "unknown key heights"),
    ],
)
def test_what_is_no_tree_is_refused(value: object, message: str) -> None:
    with pytest.raises(ValueError, match=message.replace("*", r"\*")):
        Hierarchy.parse(value)


def test_a_value_without_a_row_is_missed() -> None:
    assert PAPER.rows_of_values(["bar", "foo"]).tolist() == [2, 0]
    with pytest.raises(ValueError, match="1 of 2 values"):
        PAPER.rows_of_values(["bar", "baz"])


def test_sizes_left_out_are_shares_of_the_leaves() -> None:
    tree = Hierarchy.parse([["a", "ab", "*"], ["b", "ab", "*"], ["c", "c", "*"]])
    assert tree.node_sizes.tolist() == [[0, 0, 0], [0.5, 0.5, 0], [1, 1, 1]]


def test_arx_files_are_read() -> None:
    assert parse_arx_rows("foo;foobar;*\r\n bar ;foobar;*\n\n") == (("foo", "foobar", "*"), ("bar", "foobar", "*"))


@st.composite
def trees(draw: st.DrawFn) -> Hierarchy:
    leaves = draw(st.integers(2, 8))
    middle = draw(st.lists(st.integers(0, 3), min_size=leaves, max_size=leaves))
    upper = draw(st.lists(st.integers(0, 1), min_size=4, max_size=4))
    rows = [(f"v{i}", f"m{node}", f"u{upper[node]}", "*") for i, node in enumerate(middle)]
    return Hierarchy(tuple(rows))


@seed(3)
@settings(max_examples=60, deadline=None)
@given(trees(), st.data())
def test_the_ends_of_a_stretch_of_leaves_give_the_common_node_of_all(tree: Hierarchy, data: st.DataObject) -> None:
    assert sorted(tree.leaf_ranks) == list(range(len(tree.rows)))
    chosen = sorted(
        data.draw(st.sets(st.integers(0, len(tree.rows) - 1), min_size=1)), key=lambda leaf: tree.leaf_ranks[leaf]
    )
    common = next(h for h in range(tree.height + 1) if len({tree.rows[leaf][h] for leaf in chosen}) == 1)
    assert tree.common_levels(np.array(chosen[:1]), np.array(chosen[-1:])).tolist() == [common]


def test_intervals_of_numbers_are_nested() -> None:
    tree, rows = interval_hierarchy(np.array([23.0, 5.0, 23.0, 31.0]), [10, 20])
    assert [tree.rows[row] for row in rows] == [
        ("23.0", "[20, 30)", "[20, 40)", "*"),
        ("5.0", "[0, 10)", "[0, 20)", "*"),
        ("23.0", "[20, 30)", "[20, 40)", "*"),
        ("31.0", "[30, 40)", "[20, 40)", "*"),
    ]
    assert tree.node_sizes[1:, 0].tolist() == pytest.approx([10 / 26, 20 / 26, 1])
    with pytest.raises(ValueError, match="multiple"):
        interval_hierarchy(np.array([1.0, 2.0]), [10, 15])


@seed(4)
@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20), st.sampled_from([[0.1, 0.3], [5, 10, 50], [1e-3]]))
def test_every_number_lies_in_its_intervals(numbers: list[float], widths: list[float]) -> None:
    tree, rows = interval_hierarchy(np.array(numbers), widths)
    for number, row in zip(numbers, rows, strict=True):
        for node, width in zip(tree.rows[row][1:-1], widths, strict=True):
            start, end = (float(part) for part in node[1:-1].split(", "))
            slack = 1e-8 * width + 1e-9 * abs(number)
            assert start - slack <= number < end + slack
            assert end - start == pytest.approx(width, abs=slack)


@pytest.mark.slow
@given(
    st.lists(st.one_of(st.floats(-1e6, 1e6), st.integers(-99, 99).map(float), st.just(-0.0)), min_size=1, max_size=20),
    st.sampled_from([[0.1, 0.3], [5, 10, 50], [1e-3], [1e-12], []]),
    st.integers(0, 4),
    st.booleans(),
)
@settings(deadline=None)
def test_labels_of_one_level_are_those_of_the_tree(
    numbers: list[float], widths: list[float], level: int, dates: bool
) -> None:
    """Numbers that lie beyond 2^53 of the narrowest intervals among them."""
    values, wide = (
        np.array(np.floor(numbers) if dates else numbers),
        [width for width in widths if width >= 1 or not dates],
    )
    tree, rows = interval_hierarchy(values, wide, dates=dates)
    height = 1 + min(level, tree.height - 1)
    labels, place = interval_labels(values, wide, height, dates=dates)
    assert [labels[i] for i in place] == [tree.rows[row][height] for row in rows]
    expected = list(dict.fromkeys(row[height] for row in tree.rows))
    assert list(dict.fromkeys(labels)) == expected
