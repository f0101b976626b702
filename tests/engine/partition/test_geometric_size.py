"""Geometric sizes of equivalence classes: the paper's examples, and brute force."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.engine.partition.hierarchies import Hierarchy, flat_hierarchy
from sfumato.engine.partition.pairs import TextValues, categorical_loss, class_ranges, numerical_loss

# Figures 3 and 4 of the paper.
FOOBAR = Hierarchy((("foo", "foobar", "*"), ("bar", "foobar", "*"), ("test", "*", "*")), {"foobar": 10.0, "*": 100.0})
FLAT = flat_hierarchy(["a", "b", "c"])
small = st.lists(st.tuples(st.integers(-3, 3), st.integers(-1, 3)), min_size=1, max_size=12)


def labels(*values: str) -> TextValues:
    return TextValues.from_values(np.array(values, dtype=object))


def test_labels_are_the_text_of_the_values_that_occur() -> None:
    """As NumPy sorts the text of every value."""
    levels = pd.Series(pd.Categorical(["b", None, "a", "b"], categories=["c", "b", "a"]))
    numbers = pd.Series([2.5, np.nan, -1.0, 2.5])
    for column, text in ((levels, ["b", "(missing)", "a", "b"]), (numbers, ["2.5", "(missing)", "-1.0", "2.5"])):
        distinct, place = np.unique(np.array(text, dtype=object), return_inverse=True)
        found = TextValues.from_values(column)
        assert found.distinct == tuple(distinct)
        assert found.place.tolist() == place.tolist()


def test_the_papers_example_of_numbers() -> None:
    classes = np.array([0, 0, 1, 1, -1])
    assert numerical_loss(np.array([1.0, 1, 2, 2, 11]), classes) == 0
    assert numerical_loss(np.array([1.0, 2, 1, 1, 1]), classes) == 0.5


def test_the_range_of_the_column_counts_suppressed_records() -> None:
    assert numerical_loss(np.array([0.0, 5, 10]), np.array([0, 0, -1])) == 0.5


def test_the_papers_example_of_a_tree() -> None:
    original = labels("foo", "bar", "test")
    assert categorical_loss(original, labels("foobar", "foobar"), np.array([0, 0, -1]), FOOBAR) == 0.1
    assert categorical_loss(original, labels("*", "*", "*"), np.zeros(3, dtype=int), FOOBAR) == 1.0


def test_the_flat_tree_counts_suppressed_cells() -> None:
    original = labels("a", "a", "b", "c")
    released = labels("a", "a", "*", "*")
    assert categorical_loss(original, released, np.array([0, 0, 1, 1]), FLAT) == 0.5


def test_a_mode_given_to_a_mixed_class_is_no_leaf() -> None:
    original = labels("a", "b", "c", "c")
    released = labels("a", "a", "c", "c")
    assert categorical_loss(original, released, np.array([0, 0, 1, 1]), FLAT) == 0.5
    assert categorical_loss(original, original, np.arange(4), FLAT) == 0, "the control: nothing is generalised"


def test_a_mode_counts_as_the_lowest_node_over_its_class() -> None:
    original = labels("foo", "bar", "foo", "test")
    released = labels("foo", "foo", "foo", "foo")
    assert categorical_loss(original, released, np.array([0, 0, 1, 1]), FOOBAR) == pytest.approx((0.1 * 2 + 1 * 2) / 4)


def test_global_recoding_counts_in_classes_of_one_value_too() -> None:
    original = labels("foo", "foo", "bar", "test")
    released = labels("foobar", "foobar", "foobar", "*")
    assert categorical_loss(original, released, np.array([0, 0, 1, 2]), FOOBAR) == pytest.approx((3 * 0.1 + 1) / 4)


def test_a_value_outside_the_tree_is_refused() -> None:
    with pytest.raises(ValueError, match="not in the tree"):
        categorical_loss(labels("baz"), labels("*"), np.array([0]), FOOBAR)


@pytest.mark.slow
@given(small)
@settings(max_examples=200, deadline=None, derandomize=True)
def test_numerical_loss_is_that_of_a_loop_over_classes(records: list[tuple[int, int]]) -> None:
    values = np.array([float(value) for value, _ in records])
    classes = np.array([number for _, number in records])
    kept = int((classes >= 0).sum())
    if not kept:
        assert len(class_ranges(values, classes)) == 0
        return
    whole = values.max() - values.min()
    total = 0.0
    for number in set(classes[classes >= 0].tolist()):
        own = values[classes == number]
        total += len(own) * ((own.max() - own.min()) / whole if whole > 0 else 0.0)
    assert numerical_loss(values, classes) == pytest.approx(total / kept)


@pytest.mark.slow
@given(small)
@settings(max_examples=100, deadline=None, derandomize=True)
def test_merging_classes_loses_no_less(records: list[tuple[int, int]]) -> None:
    values = np.array([float(value) for value, _ in records])
    classes = np.array([abs(number) for _, number in records])
    assert numerical_loss(values, np.zeros_like(classes)) >= numerical_loss(values, classes)
