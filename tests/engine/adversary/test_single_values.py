"""Unique and extreme values: the people whom loops over sorted values find."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sfumato.engine.adversary.membership_evidence import MembershipProbe
from sfumato.engine.adversary.single_values import merge_probes, probe_extreme_values, probe_unique_values
from sfumato.engine.data.bits import MISSING_KEY


def keys(values: np.ndarray) -> np.ndarray:
    return np.where(np.isnan(values), MISSING_KEY, np.nan_to_num(values).astype(np.uint64) + np.uint64(1))


def draw_values(rng: np.random.Generator, rows: int) -> np.ndarray:
    values = np.floor(rng.exponential(12, rows))
    values[rng.random(rows) < 0.1] = np.nan
    return values


@pytest.mark.parametrize("cell", [1, 3, 6])
@pytest.mark.parametrize(("members", "records"), [(80, 100), (40, 100), (3, 4), (100, 100)])
@pytest.mark.parametrize("known", [(), (0.0,), (0.0, 40.0)])
def test_extremes_are_those_of_about_so_many_members_on_either_side(
    cell: int, members: int, records: int, known: tuple[float, ...]
) -> None:
    for seed in range(5):
        rng = np.random.default_rng(seed)
        own, made = np.minimum(draw_values(rng, records), 40.0), [draw_values(rng, 60), draw_values(rng, 30)]
        found = probe_extreme_values("pay", keys(own), own, members, list(map(keys, made)), cell, known)
        line = sorted(v for v in own.tolist() if not math.isnan(v))
        size = min(max(1, round(cell * records / members)), len(line))
        few = [v for v in set(line) if line.count(v) < cell and v not in known]
        low, high = (line[size - 1], line[-size]) if line else (0.0, 0.0)
        expected = [i for i, v in enumerate(own.tolist()) if v in few and (v <= low or v >= high)]
        shown = {v for one in made for v in one.tolist()}
        assert found.eligible is not None
        assert found.eligible.tolist() == expected
        assert found.hits.tolist() == [i for i in expected if own[i] in shown]


def test_unique_values_are_those_that_one_record_has_and_missing_is_none() -> None:
    own = np.array([3, 5, 5, np.nan, 8, 9, 9, 9, 1])
    found = probe_unique_values("pay", keys(own), [keys(np.array([3.0, 5.0, 3.0])), keys(np.array([9.0, 1.0, np.nan]))])
    assert found.eligible is not None
    assert (found.eligible.tolist(), found.hits.tolist()) == ([0, 4, 8], [0, 8])


def test_probes_together_find_whom_any_finds() -> None:
    some = MembershipProbe("", "", np.array([4, 1]), np.array([4, 1, 7])), MembershipProbe("", "", np.array([1, 2]))
    both = merge_probes(some, "by either")
    assert both.eligible is not None
    assert (both.hits.tolist(), both.eligible.tolist(), both.what) == ([1, 2, 4], [1, 2, 4, 7], "by either")
