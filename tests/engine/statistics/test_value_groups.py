"""Groups of about as many numbers, by leading bits, beside the sorted numbers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from prepared_tables import schema_of

from sfumato.engine.contract.passes import CutTable
from sfumato.engine.data.arrays import Floats
from sfumato.engine.data.microdata import Microdata
from sfumato.engine.methods.asked_passes import SummedPasses
from sfumato.engine.methods.passes import run_passes
from sfumato.engine.statistics.value_groups import group_ends

RECORDS = 20_000


def ends_of(numbers: Floats, groups: int, rows: int) -> Floats:
    table = CutTable(Microdata(schema_of("x: continuous"), pd.DataFrame({"x": numbers})), rows)
    passes = SummedPasses()
    first = passes.first_pass(lambda asked: group_ends("x", groups, asked), table.head, table.n_blocks, ["x"], "groups")
    return np.asarray(run_passes(first, [table], passes.block, passes.merge))


@pytest.mark.parametrize("kind", ["normal", "lognormal", "far", "negative"])
def test_groups_have_about_as_many_numbers(kind: str) -> None:
    rng = np.random.default_rng(1)
    numbers = rng.normal(50, 10, RECORDS)
    numbers = {"lognormal": np.exp(numbers / 5), "far": 1e9 + numbers, "negative": numbers - 50}.get(kind, numbers)
    ends = ends_of(numbers, 50, 3000)
    assert len(ends) == 50
    assert (np.diff(ends) > 0).all()
    assert ends[-1] >= numbers.max()
    each = np.bincount(np.searchsorted(ends, numbers), minlength=50)
    assert each.sum() == RECORDS
    assert each.min() > 0.8 * RECORDS / 50
    assert each.max() < 1.2 * RECORDS / 50


def test_groups_do_not_depend_on_blocks_and_frequent_numbers_are_in_one() -> None:
    rng = np.random.default_rng(2)
    numbers = np.where(rng.random(RECORDS) < 0.4, 0.0, rng.normal(size=RECORDS))
    numbers[rng.random(RECORDS) < 0.1] = np.nan
    numbers[rng.random(RECORDS) < 0.1] = -0.0
    first, second = ends_of(numbers, 64, 700), ends_of(rng.permutation(numbers), 64, 9000)
    np.testing.assert_array_equal(first, second)
    present = numbers[~np.isnan(numbers)]
    groups = np.searchsorted(first, present)
    assert len(np.unique(groups[present == 0])) == 1
    assert 32 < len(first) <= 64
