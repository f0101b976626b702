"""Shares of rows that mostly occur once: by hand, against the population they are drawn from, and whatever the order."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.engine.adversary.coded import CodedColumn, JointColumn, code_by_value
from sfumato.engine.adversary.row_shares import RowShares
from sfumato.engine.data.arrays import Floats, Integers


def columns_of(codes: dict[str, Integers], numbers: tuple[str, ...] = ()) -> list[CodedColumn]:
    return [
        code_by_value(JointColumn(n, c.astype(np.uint64), (), c.astype(float) if n in numbers else None))
        for n, c in codes.items()
    ]


def keys(records: int) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    return np.arange(records, dtype=np.uint64)


def test_shares_given_one_column_by_hand() -> None:
    a = np.repeat([0, 1, 1], 40)
    b = np.concatenate([np.zeros(40, dtype=int), np.ones(78, dtype=int), [2, 2]])
    found = np.exp(RowShares(columns_of({"a": a, "b": b}), keys(120)).log_shares(["a", "b"]))
    for at in (0, 50, 119):
        others = np.arange(120) != at
        first = ((a == a[at])[others].sum() + 1) / (119 + 2)
        alone = ((b == b[at])[others].sum() + 1) / (119 + 3)
        both = (((b == b[at]) & (a == a[at]))[others].sum() + 30 * alone) / ((a == a[at])[others].sum() + 30)
        assert found[at] == pytest.approx(first * both)
    # beside nothing a column has its own shares
    assert RowShares(columns_of({"b": b}), keys(120)).log_shares(["b"])[0] == pytest.approx(np.log(40 / 122))


def chain(rng: np.random.Generator, records: int) -> tuple[dict[str, Integers], Floats]:
    """Return columns of which each depends on the one before alone, and the log share of each row in the population."""
    start, step = np.array([0.5, 0.3, 0.15, 0.05]), np.array([[0.9, 0.05, 0.03, 0.02]] * 4)
    step = np.array([np.roll(row, at) for at, row in enumerate(step)])
    found, last = dict[str, Integers](), rng.choice(4, records, p=start)
    shares = np.log(start[last])
    found["c0"] = last
    for at in range(1, 9):
        following = (rng.random(records)[:, None] > np.cumsum(step[last], axis=1)).sum(axis=1)
        shares += np.log(step[last, following])
        found[f"c{at}"] = last = following
    return found, shares


def test_shares_are_those_of_the_population_and_shares_of_independent_columns_are_not() -> None:
    codes, true = chain(np.random.default_rng(1), 3000)
    names = list(codes)
    found = RowShares(columns_of(codes), keys(3000)).log_shares(names)
    apart = np.sum([np.log(np.bincount(c)[c] / 3000) for c in codes.values()], axis=0)
    assert np.abs(found - true).mean() < 0.15
    assert np.abs(apart - true).mean() > 1
    assert np.exp(found).max() < 0.5


def test_a_number_of_many_values_has_the_share_of_its_class_and_of_its_value_there() -> None:
    rng = np.random.default_rng(2)
    age = rng.integers(0, 100, 5000)
    group = (age > 60).astype(int)
    found = RowShares(columns_of({"age": age, "old": group}, ("age",)), keys(5000)).log_shares(["age", "old"])
    assert np.abs(np.exp(found) * 100 - 1).mean() < 0.15


def test_neither_order_nor_names_change_shares() -> None:
    codes, _ = chain(np.random.default_rng(3), 500)
    found = RowShares(columns_of(codes), keys(500)).log_shares(list(codes))
    order = np.random.default_rng(4).permutation(500)
    renamed = {f"x{at}": codes[name][order] for at, name in enumerate(reversed(list(codes)))}
    again = RowShares(columns_of(renamed), keys(500)[order]).log_shares(list(renamed))
    assert again == pytest.approx(found[order])
    # of many records a sample by row is searched, and all have shares
    fewer = RowShares(columns_of({n: np.tile(c, 50) for n, c in codes.items()}), keys(25_000)).log_shares(list(codes))
    assert len(fewer) == 25_000
    assert np.isfinite(fewer).all()
