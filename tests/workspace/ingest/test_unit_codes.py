"""Codes of a column are the ranks of its distinct values, however its levels are stored."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from sfumato.workspace.ingest.unit_detection import CodedTable

pytestmark = pytest.mark.quick


@pytest.mark.parametrize(
    "levels", [["north", "east", "west", "unused"], [10, 9, 2, 1], [True, False, "text", 3], ["only", "b", "c", "d"]]
)
def test_levels_are_ranked_among_those_that_occur(levels: list[Any]) -> None:
    codes = np.array([2, 0, 0, -1, 1, 2])
    column = pd.Series(pd.Categorical.from_codes(codes, pd.Index(levels, dtype=object)))
    found = CodedTable.from_columns({"x": column}).columns["x"]
    ranked = sorted({str(levels[code]) if levels[0] is True else levels[code] for code in codes if code >= 0})
    values = [None if code < 0 else str(levels[code]) if levels[0] is True else levels[code] for code in codes]
    assert found.dtype == np.int32
    assert found.tolist() == [-1 if value is None else ranked.index(value) for value in values]


def test_without_records_there_are_no_codes() -> None:
    assert not len(CodedTable.from_columns({"x": pd.Series(pd.Categorical([]))}).columns["x"])
