"""Lines of long CSV files that Arrow writes, byte for byte as pandas does."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.workspace.ingest.formats.csv import _write_plain_lines


def written_by_pandas(frame: pd.DataFrame) -> bytes:
    return frame.to_csv(index=False, header=False, lineterminator="\n").encode()


@pytest.mark.quick
@given(st.lists(st.floats(), min_size=1), st.integers(-6, 18))
def test_numbers_are_written_as_pandas_writes_them(values: list[float], power: int) -> None:
    edges = [
        0.0,
        -0.0,
        1e-4,
        9.9999e-5,
        1e9,
        1e9 - 1e-6,
        999999999.0,
        1e15,
        1e16,
        123456789.25,
        np.nan,
        np.inf,
        -np.inf,
    ]
    numbers = np.array([*values, *edges, *(np.arange(-30, 30) * 10.0**power / 7)])
    frame = pd.DataFrame({"x": numbers, "k": np.arange(len(numbers)) - 3})
    assert _write_plain_lines(frame) == written_by_pandas(frame)


@pytest.mark.quick
def test_levels_and_missing_whole_numbers_are_written_as_pandas_writes_them() -> None:
    levels = ["plain", "two words", "semi;colon", "Ä€", " space"]
    frame = pd.DataFrame(
        {
            "g": pd.Categorical([*levels, None], categories=levels),
            "n": pd.array([1, None, 3, -4, 10**15, 0], dtype="Int64"),
            "x": [0.5, np.nan, 2.0, -0.0, 1e-9, 1e300],
        }
    )
    assert _write_plain_lines(frame) == written_by_pandas(frame)


@pytest.mark.quick
@pytest.mark.parametrize("level", ["a,b", 'a"b', "a\nb", "a\rb", ""])
def test_a_level_that_may_need_quotes_is_left_to_pandas(level: str) -> None:
    frame = pd.DataFrame({"g": pd.Categorical([level, "b"]), "x": [1.0, 2.0]})
    assert _write_plain_lines(frame) is None


@pytest.mark.quick
@pytest.mark.parametrize(
    "column", [["a", "b"], pd.to_datetime(["2020-01-01", "2020-01-02"]), [True, False]], ids=["text", "date", "truth"]
)
def test_other_columns_are_left_to_pandas(column: object) -> None:
    assert _write_plain_lines(pd.DataFrame({"c": column, "x": [1.0, 2.0]})) is None
    assert _write_plain_lines(pd.DataFrame({"x": [1.0, np.nan]})) is None
