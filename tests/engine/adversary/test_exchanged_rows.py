"""Rows exchanged within classes of equal kept values: at its level however much follows from what is kept, and remembered values are found."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest, kstest

from sfumato.engine.adversary import exchanged_rows
from sfumato.engine.adversary.cells import number_keys
from sfumato.engine.adversary.coded import CodedColumn, JointColumn, code_by_value
from sfumato.engine.adversary.exchanged_rows import ExchangeEvidence, _shared_records, exchange_rows
from sfumato.engine.data.bits import mix_bits

N = 400
Rng = np.random.Generator


def code_columns(own: list[np.ndarray], datasets: list[list[np.ndarray]]) -> list[CodedColumn]:
    """Columns: the first of levels, the second of numbers."""
    level, number = own
    columns = [
        JointColumn(
            "illness", mix_bits(level.astype(np.uint64)), [mix_bits(one[0].astype(np.uint64)) for one in datasets]
        ),
        JointColumn(
            "income",
            number_keys(number),
            [number_keys(one[1]) for one in datasets],
            number,
            [one[1] for one in datasets],
        ),
    ]
    return [code_by_value(one) for one in columns]


def draw(rng: Rng, kept: np.ndarray) -> list[np.ndarray]:
    """A level and a number that follow closely from what is kept."""
    return [(kept + rng.geometric(0.6, len(kept))) % 9, np.round(100.0 * kept + rng.exponential(30, len(kept)))]


def look(rng: Rng, *, told: int = 0, datasets: int = 1, classes: int = 60) -> ExchangeEvidence | None:
    kept = rng.integers(0, classes, N)
    own = draw(rng, kept)
    released = [draw(rng, kept) for _ in range(datasets)]
    for one in released:
        for values, true in zip(one, own, strict=True):
            values[:told] = true[:told]
    keys = mix_bits(kept.astype(np.uint64))
    return exchange_rows(code_columns(own, released), keys, mix_bits(np.arange(N, dtype=np.uint64)), datasets)


@pytest.mark.slow
def test_draws_that_follow_from_kept_values_keep_the_level() -> None:
    found = [look(np.random.default_rng([seed, 3]), datasets=1 + seed % 3) for seed in range(150)]
    p = np.array([one.p for one in found if one is not None])
    assert kstest(p, "uniform").pvalue > 0.001
    assert binomtest(int((p <= 0.05).sum()), len(p), 0.05, alternative="greater").pvalue > 0.001


def test_remembered_values_are_found_with_about_their_number() -> None:
    found = look(np.random.default_rng(4), told=120)
    assert found is not None
    assert found.p <= 0.001
    assert 50 <= found.excess <= 130
    assert (found.records < 120).mean() > 1.5 * 120 / N


def test_of_copied_levels_all_are_found_and_as_many_by_chance_as_share_a_level_in_their_class() -> None:
    """A record of a level that n of its class of N have is given an equal row with probability n / N."""
    rng = np.random.default_rng(8)
    kept, level = np.repeat([0, 1], N // 2), rng.choice(4, N, p=[0.8, 0.1, 0.05, 0.05])
    own = [level, rng.random(N)]
    columns = code_columns(own, [own])[:1]
    found = exchange_rows(columns, mix_bits(kept.astype(np.uint64)), mix_bits(np.arange(N, dtype=np.uint64)), 1)
    assert found is not None
    assert found.p <= 0.001
    assert (found.columns_label, found.n_found) == ("illness", N)
    counts = np.array([np.bincount(level[kept == one], minlength=4) for one in (0, 1)])
    assert found.n_expected == pytest.approx((counts**2).sum() / (N // 2), rel=0.03)
    assert found.records.tolist() == np.flatnonzero(counts[kept, level] / (N // 2) < 0.5).tolist()


def test_a_model_that_knows_only_a_class_says_nothing_of_records_alone_in_theirs() -> None:
    rng = np.random.default_rng(5)
    kept = np.arange(N)
    own = draw(rng, kept)
    keys = mix_bits(kept.astype(np.uint64))
    assert exchange_rows(code_columns(own, [own]), keys, keys, 1) is None


def test_the_order_of_records_changes_nothing() -> None:
    rng = np.random.default_rng(6)
    kept, order = rng.integers(0, 40, N), rng.permutation(N)
    own, released = draw(rng, kept), draw(rng, kept)
    rows = mix_bits(np.arange(N, dtype=np.uint64))

    def ask(at: np.ndarray) -> ExchangeEvidence:
        columns = code_columns([one[at] for one in own], [[one[at] for one in released]])
        found = exchange_rows(columns, mix_bits(kept[at].astype(np.uint64)), rows[at], 1)
        assert found is not None
        return found

    first, second = ask(np.arange(N)), ask(order)
    assert (first.p, first.n_found, first.columns_label) == (second.p, second.n_found, second.columns_label)
    assert first.n_expected == pytest.approx(second.n_expected)


def test_of_a_large_table_some_classes_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.engine.adversary.exchanged_rows.MOST_CELLS", 200)
    found = look(np.random.default_rng(7), told=N)
    assert found is not None
    assert 20 < found.n_people <= 100
    assert found.p <= 0.01


@pytest.mark.parametrize(("columns", "datasets", "left"), [(1, 1, 12), (1, 2, 6), (2, 3, 2), (3, 8, 2)])
def test_so_many_of_a_large_class_stay_that_their_cells_have_room_and_two_at_least(
    columns: int, datasets: int, left: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sfumato.engine.adversary.exchanged_rows.MOST_CELLS", 12)
    kept, rows = np.zeros(30, dtype=np.uint64), mix_bits(np.arange(30, dtype=np.uint64))
    column = JointColumn("illness", rows, [rows] * datasets)
    assert len(_shared_records(kept, rows, [code_by_value(column)] * columns, datasets)) == left


def test_without_room_two_records_stay_who_can_be_exchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.engine.adversary.exchanged_rows.MOST_CELLS", 1)
    kept = mix_bits(np.repeat([0, 1, 2], [4, 4, 1]).astype(np.uint64))
    rows = mix_bits(np.arange(9, dtype=np.uint64))
    some = _shared_records(kept, rows, [], 1)
    assert len(some) == 2
    assert kept[some[0]] == kept[some[1]]


def test_a_column_of_one_value_in_every_class_says_nothing_of_anybody() -> None:
    """Whatever row of the class a record is given, it agrees."""
    kept = np.repeat([0, 1], N // 2)
    own = [kept, 100.0 * kept]
    found = exchange_rows(
        code_columns(own, [own]), mix_bits(kept.astype(np.uint64)), mix_bits(np.arange(N, dtype=np.uint64)), 1
    )
    assert found is not None
    assert (found.p, found.n_people, found.n_found, found.n_expected) == (1.0, N, 0, 0.0)
    assert found.records.tolist() == []
    assert (found.excess, found.share_of_found, found.excess_share) == (0.0, 0.0, 0.0)


@pytest.mark.quick
@pytest.mark.parametrize("alike", [1, 3, 400, 4_000])
def test_the_first_classes_of_a_long_table_are_found_without_sorting_all(
    monkeypatch: pytest.MonkeyPatch, alike: int
) -> None:
    """The same records as if all were sorted, for classes of any size, and where few or none share their values."""
    rng = np.random.default_rng(alike)
    for single in (0, 3_000, 4_000):
        kept = mix_bits(rng.integers(1, 1 + 4_000 // alike, 4_000).astype(np.uint64))
        kept[:single] = mix_bits(np.arange(10**6, 10**6 + single, dtype=np.uint64))
        rows = mix_bits(rng.integers(1, 9_000, 4_000).astype(np.uint64))
        for most in (2, 50, 1_000, 9_000):
            monkeypatch.setattr(exchanged_rows, "MOST_CELLS", most)
            monkeypatch.setattr(exchanged_rows, "FIRST_LOOK", 4)
            found = _shared_records(kept, rows, [], 1)
            monkeypatch.setattr(exchanged_rows, "FIRST_LOOK", 10**9)
            assert np.array_equal(found, _shared_records(kept, rows, [], 1))
