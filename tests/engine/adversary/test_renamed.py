"""Levels that are renamed are known by their company: which level each stands for does not depend on names, order, or who is a member."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from sfumato.engine.adversary.coded import UNKNOWN_CODE, CodedColumn, JointColumn, code_by_rank
from sfumato.engine.adversary.renamed import (
    COMMON,
    MOST_LEVELS,
    _best_assignment,
    _coarse_parts,
    code_by_cooccurrence,
    has_other_names,
    restore_level_names,
)
from sfumato.engine.data.bits import MISSING_KEY, Keys, mix_bits

N = 3000
JOBS = 12


def level(codes: np.ndarray) -> Keys:
    return mix_bits(codes.astype(np.uint64) + np.uint64(1))


def records(seed: int, n: int = N) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Jobs that are all as frequent, the sector of each, and ages by job and sector."""
    rng = np.random.default_rng(seed)
    job = rng.integers(0, JOBS, n)
    sector = np.where(rng.random(n) < 0.7, job % 5, rng.integers(0, 5, n))
    return job, sector, rng.normal(20 + 5 * job - 2 * sector, 4)


def columns(seed: int, names: np.ndarray, others: np.ndarray) -> tuple[list[JointColumn], np.ndarray, np.ndarray]:
    """A joint table beside an independent sample whose jobs and sectors have other names, and the jobs and sectors that the sample's rows have."""
    own, made = records(seed), records(seed + 1)
    return (
        [
            JointColumn("job", level(own[0]), [level(names[made[0]])]),
            JointColumn("sector", level(own[1]), [level(others[made[1]])]),
            JointColumn("age", level(own[2].round()), [level(made[2].round())], own[2], [made[2]]),
        ],
        made[0],
        made[1],
    )


def right(coded: CodedColumn, own: Keys, truth: Keys) -> float:
    """The share of the released rows whose code is that of the confidential level that they have."""
    code = dict(zip(own.tolist(), coded.codes.tolist(), strict=True))
    return float(np.mean(coded.released_codes[0] == [code[cell] for cell in truth.tolist()]))


@pytest.mark.parametrize("seed", range(3))
def test_levels_that_are_as_frequent_as_each_other_are_told_apart_by_their_company_alone(seed: int) -> None:
    rng = np.random.default_rng(seed)
    found, job, sector = columns(10 * seed, rng.permutation(JOBS) + 40, rng.permutation(5) + 80)
    coded = code_by_cooccurrence(found)
    assert right(coded[0], found[0].own, level(job)) == 1
    assert right(coded[1], found[1].own, level(sector)) == 1
    assert right(code_by_rank(found[0]), found[0].own, level(job)) < 0.5, "frequency alone does not tell them apart"
    np.testing.assert_array_equal(coded[2].released_rank_shares[0], code_by_rank(found[2]).released_rank_shares[0])


def test_a_column_of_more_levels_than_are_told_apart_is_company_too() -> None:
    """Twelve common towns, one a job, and forty rare ones that are joined."""
    rng = np.random.default_rng(4)
    own, made = (rng.integers(0, JOBS, N) for _ in range(2))
    town, there = (np.where(rng.random(N) < 0.7, one, 12 + rng.integers(0, 40, N)) for one in (own, made))
    age, later = (rng.normal(20 + 3 * one, 4).round() for one in (own, made))
    names = rng.permutation(JOBS) + 40
    coded = code_by_cooccurrence(
        [
            JointColumn("job", level(own), [level(names[made])]),
            JointColumn("town", level(town), [level(there)]),
            JointColumn("age", level(age), [level(later)], age, [later]),
        ]
    )
    assert right(coded[0], level(own), level(made)) == 1


def test_names_and_the_order_of_records_change_nothing() -> None:
    found, _, _ = columns(5, np.arange(JOBS) + 40, np.arange(5) + 80)
    plain = code_by_cooccurrence(found)
    again, _, _ = columns(5, np.arange(JOBS)[::-1] + 7, np.arange(5)[::-1] + 90)
    order, rows = np.random.default_rng(0).permutation(N), np.random.default_rng(1).permutation(N)
    moved = [
        JointColumn(
            one.name, one.own[order], [one.released[0][rows]],
            None if one.numbers is None else one.numbers[order], [part[rows] for part in one.released_numbers],
        )
        for one in again
    ]  # fmt: skip
    for first, second in zip(plain, code_by_cooccurrence(moved), strict=True):
        np.testing.assert_array_equal(first.released_codes[0][rows], second.released_codes[0])


def test_where_nothing_stands_beside_a_column_its_frequencies_say_which_level_is_which() -> None:
    rng = np.random.default_rng(2)
    own, made = (rng.choice(4, 2000, p=[0.5, 0.3, 0.15, 0.05]) for _ in range(2))
    (coded,) = code_by_cooccurrence([JointColumn("one", level(own), [level(made[::-1] + 60)])])
    assert right(coded, level(own), level(made[::-1])) == 1


def test_a_missing_value_stands_for_a_missing_value_alone() -> None:
    rng = np.random.default_rng(3)
    own, made = (level(rng.choice(3, 600, p=[0.6, 0.3, 0.1])) for _ in range(2))
    for cells in (own, made):
        cells[:200] = MISSING_KEY
    (coded,) = code_by_cooccurrence([JointColumn("one", own, [made])])
    assert set(coded.released_codes[0][:200]) == {coded.codes[0]}
    assert coded.codes[0] not in coded.released_codes[0][200:]
    (only_there,) = code_by_cooccurrence([JointColumn("one", own[200:], [made])])
    assert set(only_there.released_codes[0][:200]) == {UNKNOWN_CODE}
    (only_here,) = code_by_cooccurrence([JointColumn("one", own, [made[200:]])])
    assert only_here.codes[0] not in only_here.released_codes[0]


def test_levels_that_have_their_names_keep_them_and_renamed_ones_get_them_back() -> None:
    found, job, sector = columns(7, np.arange(JOBS), np.arange(5))
    kept = [restore_level_names(one, coded) for one, coded in zip(found, code_by_cooccurrence(found), strict=True)]
    assert not any(map(has_other_names, found, kept))
    found, job, sector = columns(7, np.arange(JOBS) + 40, np.arange(5) + 80)
    back = [restore_level_names(one, coded) for one, coded in zip(found, code_by_cooccurrence(found), strict=True)]
    assert [has_other_names(one, other) for one, other in zip(found, back, strict=True)] == [True, True, False]
    np.testing.assert_array_equal(back[0].released[0], level(job))
    np.testing.assert_array_equal(back[1].released[0], level(sector))


def test_columns_of_very_many_levels_are_left_as_they_are() -> None:
    rng = np.random.default_rng(4)
    own, made = (level(rng.integers(0, 3 * MOST_LEVELS, 6000)) for _ in range(2))
    many = JointColumn("many", own, [made])
    assert not has_other_names(many, restore_level_names(many, code_by_cooccurrence([many])[0]))


@given(arrays(np.float64, st.tuples(st.integers(1, 4), st.integers(1, 4)), elements=st.integers(-20, 20).map(float)))
def test_the_assignment_is_the_best_of_all(score: np.ndarray) -> None:
    height, width = score.shape
    least = min(height, width)
    best = max(
        sum(score[row, column] for row, column in zip(rows, some, strict=True))
        for rows in permutations(range(height), least)
        for some in permutations(range(width), least)
    )
    found = _best_assignment(score)
    there = found != UNKNOWN_CODE
    assert there.sum() == least
    assert len(set(found[there])) == least
    assert score[np.flatnonzero(there), found[there]].sum() == best


def test_numbers_are_in_tenths_and_missing_ones_apart_and_rare_levels_are_one_with_what_is_unknown() -> None:
    shares = np.array([0.0, 0.099, 0.1, 0.55, 0.999, 1.0, -1.0], dtype=np.float32)
    assert _coarse_parts(np.arange(7), shares).tolist() == [1, 1, 2, 6, 10, 10, 0]
    codes = np.array([0, 1, COMMON - 1, COMMON, COMMON + 1, 400, UNKNOWN_CODE])
    assert _coarse_parts(codes, None).tolist() == [0, 1, COMMON - 1, COMMON, COMMON, COMMON, COMMON]
