"""Codes and ranks of numbers in a joint table, of other tables, and of levels: what loops over the values find."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.engine.adversary.coded import (
    BINS,
    RARE_LEVEL_KEY,
    UNKNOWN_CODE,
    JointColumn,
    RankedNumbers,
    binned_rank_keys,
    code_by_rank,
    code_by_value,
    midrank_shares,
    order_rarest_first,
    pool_rare_levels,
    record_surprisal,
    released_row_surprisal,
)
from sfumato.engine.data.bits import MISSING_KEY
from sfumato.engine.data.rows import distinct_codes

VALUES = st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.0, 7.0, math.nan]), max_size=12)


def rank_numbers(values: list[float]) -> RankedNumbers:
    return RankedNumbers(distinct_codes(np.array(values, dtype=np.float64)))


@given(own=VALUES.filter(len), others=VALUES.filter(len))
def test_other_numbers_have_the_codes_of_equal_values_and_the_share_of_records_below_them(
    own: list[float], others: list[float]
) -> None:
    present = [value for value in own if not math.isnan(value)]
    distinct = sorted(set(present))
    missing = len(distinct) if len(present) < len(own) else UNKNOWN_CODE
    codes, shares = (
        rank_numbers(own).match_codes(rank_numbers(others)),
        rank_numbers(own).rank_shares_of(rank_numbers(others)),
    )
    for value, code, share in zip(others, codes.tolist(), shares.tolist(), strict=True):
        if math.isnan(value):
            assert (code, share) == (missing, -1)
            continue
        assert code == (distinct.index(value) if value in distinct else UNKNOWN_CODE)
        below = sum(one < value for one in present) + sum(one == value for one in present) / 2
        assert share == pytest.approx(below / max(1, len(present)))
    assert (
        rank_numbers(own).match_codes(rank_numbers(own)).tolist() == rank_numbers(own).distinct_numbers.codes.tolist()
    )


@pytest.mark.parametrize("distinct", [2 * BINS, 2 * BINS + 1])
def test_surprisal_is_minus_the_log_share_of_a_value_or_of_a_twentieth_of_many_numbers(distinct: int) -> None:
    rng = np.random.default_rng(distinct)
    n = 200
    numbers = np.append(np.arange(distinct - 1.0), rng.integers(0, distinct - 1, n - distinct))
    numbers = np.append(numbers, np.nan)
    released = np.append(rng.integers(-3, distinct + 3, 49).astype(float), np.nan)
    jobs, made = (rng.geometric(0.4, size).astype(np.uint64) for size in (n, 50))
    made[0] = 999
    coded = [
        code_by_value(JointColumn("pay", numbers.view(np.uint64), [released.view(np.uint64)], numbers, [released])),
        code_by_value(JointColumn("job", jobs, [made])),
    ]
    present = numbers[:-1]

    def bin_of(value: float) -> float:
        if distinct <= 2 * BINS:
            return value
        if math.isnan(value):
            return -1
        below = np.float32(((present < value).sum() + (present == value).sum() / 2) / len(present))
        return min(int(below * BINS), BINS - 1)

    bins, levels = [bin_of(v) for v in numbers], jobs.tolist()
    missing = sum(map(math.isnan, bins))

    def surprise(value: float, job: int) -> float:
        own = bin_of(value)
        same = missing if math.isnan(own) else bins.count(own)
        return -math.log((same or 0.5) / n) - math.log((levels.count(job) or 0.5) / n)

    assert record_surprisal(coded) == pytest.approx([surprise(*one) for one in zip(numbers, levels, strict=True)])
    rows = zip(released.tolist(), made.tolist(), strict=True)
    assert released_row_surprisal(coded, 0) == pytest.approx([surprise(*one) for one in rows])


def test_levels_of_four_people_are_joined_unless_a_fifth_of_the_people_have_such() -> None:
    def pooled_levels(*sizes: int) -> list[int]:
        own = np.repeat(np.arange(1, len(sizes) + 1, dtype=np.uint64), sizes)
        column = pool_rare_levels("job", own, [np.append(own[::-1], np.uint64(77))])
        assert column.released[0].tolist() == [*column.own[::-1].tolist(), 77], "an unknown level stays"
        return [value if value != RARE_LEVEL_KEY else -1 for value in dict.fromkeys(column.own.tolist())]

    assert pooled_levels(4, 5, 3, 30) == [-1, 2, 4]
    assert pooled_levels(4, 4, 4, 48) == [-1, 4], "a fifth of sixty people"
    assert pooled_levels(4, 4, 4, 47) == [1, 2, 3, 4], "more than a fifth"
    own = np.array([MISSING_KEY] * 3 + [5] * 40, dtype=np.uint64)
    assert pool_rare_levels("job", own, [own]).own.tolist() == own.tolist()


@given(st.lists(st.sampled_from([0, 1, 2, 3, 9]), min_size=1, max_size=14))
def test_levels_are_ranked_by_how_many_have_them_and_missing_last(values: list[int]) -> None:
    cells = np.where(np.array(values) == 9, MISSING_KEY, np.array(values, dtype=np.uint64))
    coded = code_by_rank(JointColumn("job", cells, [cells[::2]]))
    for table, codes in ((cells.tolist(), coded.codes), (cells[::2].tolist(), coded.released_codes[0])):
        ranked = sorted(set(table), key=lambda v: (v == MISSING_KEY, -table.count(v), v))
        assert codes.tolist() == [ranked.index(v) if ranked.index(v) < len(coded.counts) else -1 for v in table]
    assert coded.counts.tolist() == [int((coded.codes == k).sum()) for k in range(len(coded.counts))]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=14))
def test_the_rarest_come_first_and_ties_by_their_rows(pairs: list[tuple[int, int]]) -> None:
    score = np.array([a for a, _ in pairs], dtype=float)
    rows = np.array([b for _, b in pairs], dtype=np.uint64)
    order = order_rarest_first(score, rows).tolist()
    assert sorted(order) == list(range(len(pairs)))
    assert [pairs[i] for i in order] == sorted(pairs)


@given(VALUES.filter(len))
def test_midranks_are_shares_of_the_records_with_missing_ones_first(values: list[float]) -> None:
    keyed = [-1.0 if math.isnan(v) else v for v in values]
    expected = [(sum(o < v for o in keyed) + (sum(o == v for o in keyed) + 1) / 2) / len(values) for v in keyed]
    assert midrank_shares(np.array(values)) == pytest.approx(expected)


def test_ranks_in_a_bin_have_one_key_and_missing_ones_their_own() -> None:
    places = np.array([-1, 0.0, 0.09, 0.1, 0.55, 0.94, 0.96, 1.0], dtype=np.float32)
    assert binned_rank_keys(places, 10, 0.0).tolist() == [0, 1, 1, 2, 6, 10, 10, 11]
    assert binned_rank_keys(places, 10, 0.5).tolist() == [0, 1, 2, 2, 7, 10, 11, 11]
