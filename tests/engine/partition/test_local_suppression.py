"""Local suppression against the best of all choices on tiny tables, and against an independent count of violations."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st

from sfumato.engine.data.arrays import Integers
from sfumato.engine.partition import local_suppression
from sfumato.engine.partition.local_suppression import MissingMeaning, UnreachableClassSize, suppress_locally
from sfumato.engine.partition.partial_matches import match_counts

Row = tuple[int, ...]
KEYS = ["urbrur", "roof", "walls", "water", "electcon", "relat", "sex"]


def alike(one: Row, other: Row, missing: MissingMeaning) -> bool:
    if missing == "value":
        return one == other
    return all(a == b or -1 in (a, b) for a, b in zip(one, other, strict=True))


def violations(rows: Sequence[Row], k: int, missing: MissingMeaning) -> int:
    """Records that fewer than k are alike with, each compared with each."""
    different = Counter(rows)
    sizes = {row: sum(n for other, n in different.items() if alike(row, other, missing)) for row in different}
    return sum(n for row, n in different.items() if sizes[row] < k)


def shown(codes: Integers, cells: Integers) -> list[Row]:
    return [tuple(row) for row in np.where(cells, -1, codes).tolist()]


def without(row: Row, columns: Sequence[int]) -> Row:
    return tuple(-1 if j in columns else value for j, value in enumerate(row))


def subsets(columns: Sequence[int]) -> list[tuple[int, ...]]:
    return [some for size in range(len(columns) + 1) for some in combinations(columns, size)]


def fewest(rows: Sequence[Row], k: int, costs: Sequence[float], missing: MissingMeaning) -> float:
    """The least weight of all choices that leave no violation, infinite without any: every choice is tried."""
    may = [j for j, cost in enumerate(costs) if math.isfinite(cost)]

    def price(row: Row, columns: Sequence[int]) -> float:
        return sum(costs[j] for j in columns if row[j] != -1)

    choices = []
    for row in rows:
        sets = subsets(may)
        if missing == "anything":
            enough = [s for s in sets if sum(alike(without(row, s), other, missing) for other in rows) >= k]
            least = min((price(row, s) for s in enough), default=math.inf)
            sets = [s for s in sets if price(row, s) <= least]
        choices.append(sets)
    best = math.inf
    for chosen in product(*choices):
        total = sum(price(row, s) for row, s in zip(rows, chosen, strict=True))
        if total < best and not violations([without(r, s) for r, s in zip(rows, chosen, strict=True)], k, missing):
            best = total
    return best


@st.composite
def tables(draw: st.DrawFn) -> list[Row]:
    d = draw(st.integers(1, 3))
    n = draw(st.integers(2, {1: 7, 2: 5, 3: 4}[d]))
    return draw(st.lists(st.tuples(*[st.sampled_from([0, 0, 1, 2, -1])] * d), min_size=n, max_size=n))


@pytest.mark.slow
@seed(1)
@settings(max_examples=150, deadline=None)
@given(
    tables(),
    st.integers(2, 3),
    st.lists(st.sampled_from([1.0, 1.0, 2.0, math.inf]), min_size=3, max_size=3),
    st.sampled_from(["value", "anything"]),
)
def test_no_choice_deletes_less_on_tiny_tables(
    rows: list[Row], k: int, costs: list[float], missing: MissingMeaning
) -> None:
    codes, costs = np.array(rows, dtype=np.int64), costs[: len(rows[0])]
    k = min(k, len(rows))
    best = fewest(rows, k, costs, missing)
    if best == math.inf:
        with pytest.raises(UnreachableClassSize):
            suppress_locally(codes, k, np.array(costs), np.arange(len(rows)), missing=missing)
        return
    found = suppress_locally(codes, k, np.array(costs), np.arange(len(rows)), missing=missing)
    assert violations(shown(codes, found.cells), k, missing) == 0
    assert found.is_proven
    assert found.cost == pytest.approx(best)
    lost = (found.cells @ np.where(np.isfinite(costs), costs, 0.0)).sum()
    assert found.cost == pytest.approx(lost)
    assert not (found.cells & (codes == -1)).any()


@pytest.mark.slow
@seed(2)
@settings(max_examples=60, deadline=None)
@given(tables(), st.integers(2, 3))
def test_neighbourhoods_alone_never_leave_a_violation_and_come_near(rows: list[Row], k: int) -> None:
    """Without the program of the whole table; the ratio to the best of all choices is at most 1.5."""
    codes, k = np.array(rows, dtype=np.int64), min(k, len(rows))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local_suppression, "WHOLE", {"value": 0, "anything": 0})
        found = suppress_locally(codes, k, np.ones(len(rows[0])), np.arange(len(rows)))
    assert violations(shown(codes, found.cells), k, "value") == 0
    assert found.cost <= 1.5 * fewest(rows, k, [1.0] * len(rows[0]), "value")


def random_table(seed: int, n: int = 120, levels: Sequence[int] = (2, 4, 6, 3)) -> Integers:
    rng = np.random.default_rng(seed)
    return np.column_stack([np.minimum(rng.geometric(0.5, n) - 1, level - 1) for level in levels]).astype(np.int64)


@pytest.mark.slow
@pytest.mark.parametrize("missing", ["value", "anything"])
@pytest.mark.parametrize("k", [2, 4])
def test_no_record_stays_below_k_and_a_restored_cell_brings_one_back(missing: MissingMeaning, k: int) -> None:
    codes = random_table(3)
    assert violations([tuple(row) for row in codes.tolist()], k, missing) > 0
    found = suppress_locally(codes, k, np.ones(4), np.arange(len(codes)), missing=missing)
    assert violations(shown(codes, found.cells), k, missing) == 0
    for row, column in np.argwhere(found.cells).tolist():
        restored = found.cells.copy()
        restored[row, column] = False
        assert violations(shown(codes, restored), k, missing) > 0, "a cell that need not have been deleted"


@pytest.mark.slow
@pytest.mark.parametrize("missing", ["value", "anything"])
def test_the_order_of_the_records_means_nothing(missing: MissingMeaning) -> None:
    codes = random_table(10)
    rng = np.random.default_rng(5)
    order, shuffled = rng.permutation(len(codes)), rng.permutation(len(codes))
    found = suppress_locally(codes, 4, np.ones(4), order, missing=missing)
    again = suppress_locally(codes[shuffled], 4, np.ones(4), order[shuffled], missing=missing)
    assert np.array_equal(again.cells, found.cells[shuffled])
    others = suppress_locally(codes, 4, np.ones(4), order[::-1].copy(), missing=missing)
    assert np.array_equal(others.cells, found.cells) == (missing == "anything"), (
        "there all records of a pattern lose it"
    )
    assert sorted(shown(codes, others.cells)) == sorted(shown(codes, found.cells))


@pytest.mark.slow
def test_records_without_any_value_would_satisfy_everybody() -> None:
    """Two whole rows, 8 cells, leave no violation where missing matches anything; the rule of fair losses forbids that."""
    codes = random_table(6)
    bare = np.zeros(codes.shape, dtype=np.bool_)
    bare[:2] = True
    assert violations(shown(codes, bare), 3, "anything") == 0
    found = suppress_locally(codes, 3, np.ones(4), np.arange(len(codes)), missing="anything")
    assert found.cost > bare.sum()
    rows = [tuple(row) for row in codes.tolist()]
    safe = np.array([rows.count(row) >= 3 for row in rows])
    assert not found.cells[safe].any(), "only records below k lose values"


def test_who_is_exposed_is_counted_by_true_values() -> None:
    codes = np.array([[0, 0], [0, 1], [0, 1], [0, 1]])
    found = suppress_locally(codes, 3, np.ones(2), np.arange(4), missing="anything")
    assert found.cells.tolist() == [[False, True], *[[False, False]] * 3]
    assert found.n_exposed == 1, "whoever knows the 0 excludes the three who show 1"
    own = suppress_locally(codes, 2, np.ones(2), np.arange(4))
    assert (own.cells.sum(), own.n_exposed) == (2, 0), "one of the three goes with the first record"


@pytest.mark.slow
def test_columns_are_spared_by_weight_and_altogether() -> None:
    codes = random_table(7)
    dear = suppress_locally(codes, 3, np.array([1.0, 50.0, 1.0, 1.0]), np.arange(len(codes)))
    even = suppress_locally(codes, 3, np.ones(4), np.arange(len(codes)))
    never = suppress_locally(codes, 3, np.array([1.0, math.inf, 1.0, 1.0]), np.arange(len(codes)))
    assert dear.cells[:, 1].sum() < even.cells[:, 1].sum()
    assert never.cells[:, 1].sum() == 0
    with pytest.raises(UnreachableClassSize) as refused:
        suppress_locally(np.array([[0, 1], [0, 2], [1, 1]]), 2, np.array([math.inf, 1.0]), np.arange(3))
    assert refused.value.records == 1


def nearly_all_unique(n: int, keys: int = 13) -> Integers:
    """Records with up to six values of each key, and a tenth of the cells missing."""
    rng = np.random.default_rng(9)
    codes = rng.integers(0, rng.integers(2, 7, keys), (n, keys))
    codes[rng.random(codes.shape) < 0.1] = -1
    return np.asarray(codes.astype(np.int64))


@pytest.mark.slow
@pytest.mark.parametrize("k", [2, 3])
def test_many_keys_with_nearly_all_records_unique_end_in_bounded_steps(k: int) -> None:
    codes = nearly_all_unique(150)
    done: list[tuple[int, int]] = []
    began = time.process_time()
    found = suppress_locally(
        codes,
        k,
        np.ones(13),
        np.arange(150),
        missing="anything",
        report=lambda some, total: done.append((some, total)),
    )
    assert time.process_time() - began < 60
    assert violations(shown(codes, found.cells), k, "anything") == 0
    assert not found.is_proven
    assert not (found.cells.sum(axis=1) == (codes != -1).sum(axis=1)).any(), "no record loses all its values"
    assert done == sorted(done)
    shuffled = np.random.default_rng(2).permutation(150)
    again = suppress_locally(codes[shuffled], k, np.ones(13), shuffled, missing="anything")
    assert np.array_equal(again.cells, found.cells[shuffled])


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [1e-6, 0.05, 1.0])
def test_a_short_search_leaves_no_violation_and_deletes_no_less_than_a_long_one(seconds: float) -> None:
    codes = nearly_all_unique(60)
    short, long = (
        suppress_locally(codes, 3, np.ones(13), np.arange(60), missing="anything", search_seconds=most)
        for most in (seconds, 20.0)
    )
    assert violations(shown(codes, short.cells), 3, "anything") == 0
    assert not short.is_proven
    assert short.cost >= long.cost


@pytest.mark.parametrize("missing", ["value", "anything"])
def test_a_program_that_does_not_fit_the_limit_leaves_a_plan_without_proof(missing: MissingMeaning) -> None:
    codes = random_table(3, 30)
    found = suppress_locally(codes, 3, np.ones(4), np.arange(30), missing=missing, search_seconds=1e-6)
    assert violations(shown(codes, found.cells), 3, missing) == 0
    assert not found.is_proven
    proven = suppress_locally(codes, 3, np.ones(4), np.arange(30), missing=missing)
    assert proven.is_proven
    assert proven.cost <= found.cost


@pytest.mark.slow
@seed(3)
@settings(max_examples=80, deadline=None)
@given(tables(), st.integers(2, 3), st.lists(st.sampled_from([1.0, 2.5]), min_size=3, max_size=3))
def test_the_search_row_by_row_never_leaves_a_violation_and_comes_near(
    rows: list[Row], k: int, costs: list[float]
) -> None:
    codes, k, weights = np.array(rows, dtype=np.int64), min(k, len(rows)), costs[: len(rows[0])]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local_suppression, "WHOLE", {"value": 0, "anything": 0})
        patch.setattr(local_suppression, "NEIGHBOURHOOD", 0)
        found = suppress_locally(codes, k, np.array(weights), np.arange(len(rows)), missing="anything")
    assert violations(shown(codes, found.cells), k, "anything") == 0
    best = fewest(rows, k, weights, "anything")
    assert best <= found.cost + 1e-9
    assert found.cost <= 1.5 * best + 1e-9


@pytest.mark.slow
def test_what_a_record_would_lose_alone_is_found_beyond_the_sets_that_are_tried() -> None:
    """Fourteen keys: two records differ in 8 of them, and the sets that are tried have 6 columns at most."""
    codes = np.zeros((2, 14), dtype=np.int64)
    codes[1, :8] = 1
    found = suppress_locally(codes, 2, np.ones(14), np.arange(2), missing="anything")
    assert found.cells[:, :8].sum() == found.cost
    assert found.cost == 8, "one of the two loses each value that differs"


def test_matches_are_those_of_each_pair() -> None:
    rng = np.random.default_rng(8)
    rows, others = rng.integers(-1, 3, (40, 3)), rng.integers(-1, 3, (50, 3))
    weights = rng.integers(1, 5, 50)
    expected = [
        sum(int(w) for other, w in zip(others, weights, strict=True) if alike(tuple(row), tuple(other), "anything"))
        for row in rows
    ]
    assert match_counts(rows, others, weights).tolist() == expected


@pytest.mark.slow
@pytest.mark.parametrize(
    # what is minimal where missing is a value, small tables show by brute force
    ("missing", "most"),
    [("anything", 132), pytest.param("value", 375, marks=pytest.mark.study)],
)
def test_the_published_table_needs_fewer_cells_than_other_programs_delete(
    missing: MissingMeaning, most: int, public_data: Callable[[str], Path]
) -> None:
    """sdcMicro 5.8.1, localSuppression(k = 3) on testdata: 293 cells; where missing is a value, 484."""
    table = pd.read_csv(public_data("testdata.csv"))
    codes = np.column_stack([pd.factorize(table[key], sort=True)[0] for key in KEYS]).astype(np.int64)
    found = suppress_locally(codes, 3, np.ones(7), np.arange(len(codes)), missing=missing)
    rows = shown(codes, found.cells)
    assert violations(rows, 3, missing) == 0
    assert found.cost == found.cells.sum() <= most
    assert (found.n_exposed > 0) == (missing == "anything")
    row, column = np.argwhere(found.cells)[0]
    found.cells[row, column] = False
    assert violations(shown(codes, found.cells), 3, missing) > 0
