"""Diversity and closeness of classes against sums written out, a linear program, and the papers' examples."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from sfumato.engine.partition import equivalence_classes as module
from sfumato.engine.partition.equivalence_classes import (
    ClassComposition,
    class_sizes,
    code_shares,
    equivalence_classes,
    joint_classes,
)


def transport(p: np.ndarray, q: np.ndarray, distance: np.ndarray) -> float:
    """Earth mover's distance by definition: the cheapest flow from p to q."""
    m = len(p)
    outflow, inflow = np.kron(np.eye(m), np.ones(m)), np.kron(np.ones(m), np.eye(m))
    return float(linprog(distance.ravel(), A_eq=np.vstack([outflow, inflow]), b_eq=np.concatenate([p, q])).fun)


def recursive_ratio(values: list[int], l: int) -> float:  # noqa: E741
    """The c that r_1 < c (r_l + ... + r_m) needs to exceed (Machanavajjhala et al. 2007, Definition 4.2)."""
    r = sorted((values.count(v) for v in set(values)), reverse=True)
    return r[0] / sum(r[l - 1 :]) if len(r) >= l else math.inf


@st.composite
def classed(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, int]:
    values = draw(st.integers(1, 6))
    n = draw(st.integers(3, 25))
    codes = draw(st.lists(st.integers(0, values - 1), min_size=n, max_size=n))
    classes = draw(st.lists(st.integers(0, 2), min_size=n - 3, max_size=n - 3))
    return np.array([0, 1, 2, *classes]), np.array(codes), values


@pytest.mark.slow
@seed(1)
@settings(max_examples=60, deadline=None)
@given(classed(), st.sampled_from([0, 4, 1000]))
def test_every_number_by_its_definition(table: tuple[np.ndarray, np.ndarray, int], dense: int) -> None:
    classes, codes, values = table
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "DENSE", dense)
        found = ClassComposition.from_codes(classes, codes, 3, values)
    q = code_shares(codes, values)
    ranks = np.arange(values)
    ordered = np.abs(ranks[:, None] - ranks) / max(values - 1, 1)
    for c in range(3):
        p = code_shares(codes[classes == c], values)
        some = p[p > 0]
        assert found.distinct_counts()[c] == len(some)
        assert found.class_entropies()[c] == pytest.approx(-(some * np.log(some)).sum(), abs=1e-12)
        assert found.class_modes()[c] == np.argmax(p)
        for l in (1, 2, 3):  # noqa: E741
            assert found.recursive_ratio(l)[c] == recursive_ratio(codes[classes == c].tolist(), l)
        assert found.equal_distance(q)[c] == pytest.approx(transport(p, q, 1.0 - np.eye(values)), abs=1e-9)
        assert found.ordered_distance(q)[c] == pytest.approx(transport(p, q, ordered), abs=1e-9)


def test_the_example_of_t_closeness() -> None:
    """Li, Li & Venkatasubramanian §5: incomes 3k..11k; {3k,4k,5k} is 0.375 and {6k,8k,11k} 0.167 from them all."""
    incomes = np.arange(9)
    codes = np.concatenate([incomes, [0, 1, 2], [3, 5, 8]])
    found = ClassComposition.from_codes(np.repeat([0, 1, 2], [9, 3, 3]), codes, 3, 9)
    assert found.ordered_distance(code_shares(incomes, 9))[1:] == pytest.approx([0.375, 1 / 6])


@pytest.mark.parametrize("values", range(1, 30))
def test_entropy_l_of_even_values_is_their_number_exactly(values: int) -> None:
    """Or else a table of three even values would fail l = 3 by 4e-16."""
    found = ClassComposition.from_codes(np.zeros(3 * values, dtype=int), np.arange(3 * values) % values, 1, values)
    assert found.effective_values()[0] == values
    assert math.exp(found.class_entropies()[0]) == pytest.approx(values)


def test_recursive_diversity_of_a_class_counted_by_hand() -> None:
    """5 colds, 3 flus, 1 gout: 5 < c 4 for l = 2, 5 < c 1 for l = 3, and nothing for l = 4."""
    found = ClassComposition.from_codes(np.zeros(9, dtype=int), np.repeat([1, 0, 2], [5, 3, 1]), 1, 3)
    assert [found.recursive_ratio(l)[0] for l in (1, 2, 3, 4)] == [5 / 9, 5 / 4, 5.0, math.inf]  # noqa: E741


@pytest.mark.slow
@seed(2)
@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 2)), min_size=1, max_size=20))
def test_classes_are_pandas_groups(rows: list[tuple[str, int]]) -> None:
    frame = pd.DataFrame(rows, columns=["letter", "number"])
    frame["letter"] = frame["letter"].astype("category")
    found = equivalence_classes([frame["letter"], frame["number"]], len(frame))
    expected = frame.groupby(["letter", "number"], observed=True, sort=False).ngroup().to_numpy()
    assert found.tolist() == expected.tolist()
    assert class_sizes(found).tolist() == frame.groupby(["letter", "number"], observed=True, sort=False).size().tolist()


def test_records_of_two_tables_share_a_class_where_they_agree() -> None:
    first = [pd.Series(["a", "b", "b"], dtype="category"), np.array([1, 2, 3])]
    second = [pd.Series(["b", "c"], dtype="category"), np.array([2.0, 2.0])]
    ours, theirs = joint_classes(first, second)
    assert ours.tolist() == [0, 1, 2]
    assert theirs.tolist() == [1, 3]


def test_suppressed_records_are_in_no_class() -> None:
    assert class_sizes(np.array([0, -1, 0, 1])).tolist() == [2, 1]


def test_missing_values_are_one_value_of_their_own() -> None:
    letters = pd.Series(pd.Categorical(["a", None, "a", None]))
    assert equivalence_classes([letters], 4).tolist() == [0, 1, 0, 1]
    assert equivalence_classes([np.array([1.0, np.nan, np.nan])], 3).tolist() == [0, 1, 1]
    ours, theirs = joint_classes([letters], [pd.Series(pd.Categorical([None, "b"]))])
    assert ours.tolist() == [0, 1, 0, 1]
    assert theirs.tolist() == [1, 2]
