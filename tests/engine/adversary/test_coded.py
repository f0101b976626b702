"""Codes and ranks of numbers in a joint table, of other tables, and of levels: what loops over the values find."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.engine.adversary.coded import UNKNOWN_CODE, RankedNumbers
from sfumato.engine.data.rows import distinct_codes

VALUES = st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.0, 7.0, math.nan]), max_size=12)


def ranked(values: list[float]) -> RankedNumbers:
    return RankedNumbers(distinct_codes(np.array(values, dtype=np.float64)))


@given(own=VALUES.filter(len), others=VALUES.filter(len))
def test_other_numbers_have_the_codes_of_equal_values_and_the_share_of_records_below_them(
    own: list[float], others: list[float]
) -> None:
    present = [value for value in own if not math.isnan(value)]
    distinct = sorted(set(present))
    missing = len(distinct) if len(present) < len(own) else UNKNOWN_CODE
    codes, shares = ranked(own).match_codes(ranked(others)), ranked(own).rank_shares_of(ranked(others))
    for value, code, share in zip(others, codes.tolist(), shares.tolist(), strict=True):
        if math.isnan(value):
            assert (code, share) == (missing, -1)
            continue
        assert code == (distinct.index(value) if value in distinct else UNKNOWN_CODE)
        below = sum(one < value for one in present) + sum(one == value for one in present) / 2
        assert share == pytest.approx(below / max(1, len(present)))
    assert ranked(own).match_codes(ranked(own)).tolist() == ranked(own).distinct_numbers.codes.tolist()
