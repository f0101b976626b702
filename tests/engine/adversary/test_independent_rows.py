"""Rows alone: coincidences and repeated rows stay at their level whatever the two distributions are, and copied rows do not."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from sfumato.engine.adversary.coded import JointColumn, code_by_value
from sfumato.engine.adversary.independent_rows import (
    MOST_EXAMINED,
    NEAR,
    OTHER_WEIGHT,
    REPEATED,
    SHARES,
    WEIGHTS,
    WHOLE,
    RowCoincidenceTest,
    SortedRows,
    compare_coincidences_with_pairs,
    compare_whole_rows,
    fewest_detectable_copies,
    find_repeated_rows,
    find_whole_rows,
    scan_rarest_rows,
    strongest_beginning,
    strongest_row_evidence,
)

Rng = np.random.Generator
in_order = SortedRows.from_rows


def distribution(rng: Rng, kind: str, cells: int) -> np.ndarray:
    """Shares of cells: of one height, of a long tail, of few heavy ones beside many rare."""
    if kind == "even":
        return np.full(cells, 1 / cells)
    if kind == "tail":
        shares = 1 / np.arange(1, cells + 1)
        return rng.permutation(shares / shares.sum())
    heavy = rng.random(cells) < 0.02
    shares = np.where(heavy, 50.0, 1.0) * rng.gamma(0.3, size=cells)
    return np.asarray(shares / shares.sum())


def test_coincidences_are_what_counting_finds() -> None:
    rng = np.random.default_rng(1)
    rows, released = rng.integers(0, 60, 80).astype(np.uint64), rng.integers(0, 60, 70).astype(np.uint64)
    found = compare_whole_rows("", rows, released)
    mine, theirs = rows.tolist(), released.tolist()
    assert found.records.tolist() == [i for i, row in enumerate(mine) if mine.count(row) == theirs.count(row) == 1]
    assert found.n_pairs == sum(one.count(value) == 2 for one in (mine, theirs) for value in set(one))
    x = len(found.records)
    assert found.p == pytest.approx(binom.sf(x - 1, x + found.n_pairs, 0.5))


@pytest.mark.slow
@given(st.lists(st.booleans(), min_size=1, max_size=7))
def test_the_strongest_beginning_is_as_likely_as_all_sequences_of_throws_say(heads: list[bool]) -> None:
    tails = {(k, t): binom.sf(k - 1, t, 0.5) for t in range(1, len(heads) + 1) for k in range(t + 1)}

    def strength(sequence: tuple[bool, ...]) -> float:
        return min(tails[sum(sequence[: t + 1]), t + 1] for t in range(len(sequence)))

    p, length = strongest_beginning(np.array(heads))
    if not any(heads):
        assert (p, length) == (1.0, 0)
        return
    observed = strength(tuple(heads))
    exact = np.mean([strength(one) <= observed * (1 + 1e-9) for one in product((False, True), repeat=len(heads))])
    assert p == pytest.approx(exact)
    assert binom.sf(sum(heads[:length]) - 1, length, 0.5) == pytest.approx(observed)


def p_values(rng: Rng, own: np.ndarray, released: np.ndarray, n: int, r: int) -> tuple[float, float]:
    """Return p of the scan, by how rare a cell is for the data, and of repeated rows, for independent draws."""
    rows, made = rng.choice(len(own), n, p=own), rng.choice(len(own), r, p=released)
    keys = [in_order(one.astype(np.uint64)) for one in (rows, made)]
    test = scan_rarest_rows("", WHOLE, *keys, -np.log(own[rows]), -np.log(own[made]))
    repeated = find_repeated_rows("", *keys)
    # One number of repetitions, as named beforehand: those of several are corrected where the strongest is chosen.
    twice = [one.p for one in repeated if "in 2 rows" in one.what]
    return test.p, twice[0] if twice else 1.0


@pytest.mark.slow
@pytest.mark.parametrize("own", ["even", "tail", "heavy"])
@pytest.mark.parametrize("released", ["even", "tail", "heavy", "same"])
@pytest.mark.parametrize("ratio", [0.3, 1.0, 5.0])
def test_independent_rows_of_any_two_distributions_keep_the_level(own: str, released: str, ratio: float) -> None:
    rng = np.random.default_rng([len(own), len(released), int(10 * ratio)])
    found = []
    for _ in range(250):
        cells = int(rng.choice([300, 3_000, 100_000]))
        p = distribution(rng, own, cells)
        q = p if released == "same" else distribution(rng, released, cells)
        found.append(p_values(rng, p, q, 400, int(400 * ratio)))
    for column in np.array(found).T:
        for level in (0.05, 0.008):
            assert np.mean(column <= level) <= binom.ppf(0.999, 250, level) / 250


def test_rows_that_are_chosen_to_meet_one_person_each_are_at_the_bound_and_not_beyond_it() -> None:
    """The worst release: rows that it repeats, each of which one person is expected to have."""
    rng, people = np.random.default_rng(4), 500
    own = np.arange(people, dtype=np.uint64)
    tests = [
        find_repeated_rows("", in_order(rng.choice(own, people)), in_order(np.repeat(own[:40], 2)))[0]
        for _ in range(400)
    ]
    assert 0.1 <= np.mean([one.p <= 0.25 for one in tests]) <= 0.25 + 0.06
    assert np.mean([one.p <= 0.01 for one in tests]) <= binom.ppf(0.999, 400, 0.01) / 400


def test_rows_that_are_not_drawn_independently_are_beyond_the_bound() -> None:
    """The negative control: a dataset that has each of its rows once, as the data do, and one that repeats people."""
    cells = np.arange(1000, dtype=np.uint64)
    rng = np.random.default_rng(2)
    rows, released = rng.permutation(cells)[:400], rng.permutation(cells)[:400]
    even = np.zeros(400)
    assert compare_whole_rows("", rows, released).p < 1e-6
    assert scan_rarest_rows("", WHOLE, in_order(rows), in_order(released), even, even).p < 1e-6
    (test,) = find_repeated_rows("", in_order(rows), in_order(np.repeat(rows[:12], 2)))
    assert test.p == pytest.approx(np.exp(-12))
    assert test.records.tolist() == list(range(12))


def test_copies_of_the_rarest_are_found_among_common_rows_that_coincide_by_chance() -> None:
    rng = np.random.default_rng(3)
    common = rng.integers(0, 300, (2, 400)).astype(np.uint64)
    copied = np.arange(1000, 1016, dtype=np.uint64)
    rows, released = (np.concatenate([one, copied]) for one in common)
    surprise = np.append(np.zeros(400), np.ones(16))
    assert compare_whole_rows("", rows, released).p > 0.05
    found = scan_rarest_rows("", WHOLE, in_order(rows), in_order(released), surprise, surprise)
    assert found.p <= 0.001
    assert found.records.tolist() == list(range(400, 416))
    without = scan_rarest_rows("", WHOLE, *map(in_order, common), np.zeros(400), np.zeros(400))
    assert without.p > 0.05


def test_of_more_rows_than_are_examined_the_whole_counts_too() -> None:
    rng = np.random.default_rng(5)
    rows = rng.permutation(np.arange(20_000, dtype=np.uint64))[:5_000]
    even = np.zeros(5_000)
    found = scan_rarest_rows("", WHOLE, in_order(rows), in_order(rows), even, even)
    assert found.p < 1e-12
    assert len(found.records) in (MOST_EXAMINED, 5_000)


def table(rng: Rng, n: int) -> dict[str, np.ndarray]:
    return {
        "job": rng.integers(0, 12, n).astype(np.uint64),
        "income": np.round(np.exp(rng.normal(7, 0.5, n)), 2),
        "age": rng.integers(18, 90, n).astype(float),
        "rooms": rng.normal(0, 1, n).round(3),
    }


def columns(own: dict[str, np.ndarray], made: dict[str, np.ndarray]) -> list[JointColumn]:
    return [
        JointColumn(name, values, [made[name]])
        if values.dtype == np.uint64
        else JointColumn(name, values.view(np.uint64), [made[name].view(np.uint64)], values, [made[name]])
        for name, values in own.items()
    ]


def test_people_who_are_nearly_copied_are_found_and_others_are_not() -> None:
    rng = np.random.default_rng(6)
    own, others = table(rng, 600), table(rng, 600)
    near = {name: values[:60] for name, values in own.items()}
    near["income"] = np.round(near["income"] * (1 + rng.normal(0, 0.01, 60)), 2)
    copied = {name: np.concatenate([near[name], others[name][60:]]) for name in own}
    for made, is_found in ((copied, True), (others, False)):
        some = columns(own, made)
        tests = find_whole_rows(some, [code_by_value(one) for one in some])
        (test,) = [one for one in tests if one.kind == NEAR]
        assert (test.p <= 0.001) is is_found
    assert {one.kind for one in tests} <= set(SHARES)


def test_the_weights_average_to_one_at_most() -> None:
    total, below = 0.0, 0.0
    for level, weight in WEIGHTS:
        total, below = total + (level - below) * weight, level
    assert 0.99 <= total + (1 - below) * OTHER_WEIGHT <= 1
    assert sum(SHARES.values()) == pytest.approx(1)


def test_the_strongest_is_corrected_for_its_kind_and_for_those_that_could_have_been_as_strong() -> None:
    def test_of(kind: str, records: range, pairs: int) -> RowCoincidenceTest:
        return compare_coincidences_with_pairs(f"{records}", kind, np.array(records), pairs)

    whole, near, other = test_of(WHOLE, range(9), 0), test_of(NEAR, range(20), 0), test_of(NEAR, range(30, 50), 0)
    assert strongest_row_evidence([]) is None
    found = strongest_row_evidence([whole])
    assert found is not None
    assert found.p == pytest.approx(0.5**9 / SHARES[WHOLE])
    found = strongest_row_evidence([whole, near, other, test_of(NEAR, range(2), 0)])
    assert found is not None
    assert found.p == pytest.approx(2 * 0.5**20 / SHARES[NEAR]), "the test of two people could not have been as strong"
    again = strongest_row_evidence([whole, near, near])
    assert again is not None
    assert again.p == pytest.approx(0.5**20 / SHARES[NEAR]), "two tests of the same people are one"
    assert SHARES[REPEATED] > 0


def test_so_many_copies_as_are_named_are_significant_and_one_fewer_are_not() -> None:
    for pairs in (0, 3, 40):
        fewest = fewest_detectable_copies(pairs, 400, 500, 0.009)
        assert fewest is not None
        for copied, is_found in ((fewest, True), (fewest - 1, False)):
            found = strongest_row_evidence([compare_coincidences_with_pairs("all", WHOLE, np.arange(copied), pairs)])
            assert found is not None
            # Permuted labels leave so many people among the members alone with this probability at most.
            agrees = [found.p <= p and 0.8**copied <= weight * 0.009 for p, weight in WEIGHTS]
            assert any(agrees) is is_found
    assert fewest_detectable_copies(10_000, 400, 500, 0.009) is None
    small = fewest_detectable_copies(0, 1600, 1700, 0.009)
    assert small is not None
    assert 11 <= small <= 17, "a hold-out of a hundred says little: rows alone have to say more"
