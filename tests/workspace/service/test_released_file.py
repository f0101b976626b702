"""The classes of one released file are those of its cells as the file shows them, in each format."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import openpyxl
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pyreadstat
import pytest

from sfumato.engine.partition.released_file import ReleasedFileAnonymity
from sfumato.workspace.ingest.text_columns import TextColumns
from sfumato.workspace.reporting.released_file import AnonymityLimits
from sfumato.workspace.service.released_file import evaluate_released_file


def evaluated(path: Path, *known: str) -> ReleasedFileAnonymity:
    return evaluate_released_file(str(path), known, (), AnonymityLimits()).found


@pytest.mark.slow
@pytest.mark.parametrize(
    "cells",
    [
        ["A", "A ", " A", "A"],
        ["1.0", "1.00", "5", "5"],
        ["0.1", "0.10000000000000001", "9007199254740993", "9007199254740992"],
        ["01234", "1234", "1234.0", " 1234", "5", "5"],
        ["5", "5", "-8", "-9", "7", "7"],
        [*map(str, range(20, 60)), *map(str, range(20, 60)), ":", "<5", "(x)", "-8", "-9", "NA", "NA", "."],
        ["true", "True", "TRUE", "1"],
        ["2,5", "2,50", "3", "3"],
        ["1,234", "1234", "1,234", "1234"],
        ["2020-01-05", "2020-1-5", "2020-01-05", "2020-01-05"],
        ["-0", "0", "0.0", "+0", "1e1", "10"],
    ],
)
@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_text_is_compared_as_it_stands(cells: list[str], separator: str, encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    rows = [f'"{cell}"{separator}é' if separator in cell else f"{cell}{separator}é" for cell in cells]
    path.write_text("\n".join([f"g{separator}ill", *rows]) + "\n", encoding)
    expected = Counter(cells)
    found = evaluated(path, "g")
    assert (found.classes, found.k) == (len(expected), min(expected.values()))
    assert found.unique_records == sum(n == 1 for n in expected.values())
    assert found.suppressed_records == 0


@pytest.mark.slow
def test_blanks_after_separators_do_not_hide_the_column(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("age, zip, ill\n30, 1, a\n30,1, b\n30, 1, c\n30, *, c\n30, , c\n", "utf-8")
    found = evaluated(path, "age", "zip")
    assert found.classes == 4
    assert found.unique_records == 3


@pytest.mark.slow
def test_missing_codes_of_a_recipe_are_values_of_known_columns(tmp_path: Path) -> None:
    path, recipe = tmp_path / "a.csv", tmp_path / "r.toml"
    path.write_text("age,inc\n" + "30,5\n30,5\n30,-8\n30,-9\n", "utf-8")
    recipe.write_text(
        '[data]\nfile = "a.csv"\n[variables]\nage = { kind = "count", role = "quasi_identifier" }\n'
        'inc = { kind = "count", role = "quasi_identifier", missing = [-8, -9] }\n',
        "utf-8",
    )
    found = evaluate_released_file(str(path), (), (), AnonymityLimits(), str(recipe)).found
    assert (found.classes, found.k, found.suppressed_cells) == (3, 1, 0)


@pytest.mark.slow
@pytest.mark.parametrize(
    "values",
    [
        pa.array([2**53, 2**53 + 1, None, 5, 5], pa.int64()),
        pa.array([0.1, 0.1 + 2e-17, 0.3, 0.30000000000000004, None], pa.float64()),
        pa.array([Decimal("1.00000000000000000001"), Decimal("1.00000000000000000002"), None, None, None]),
        pa.array(["A", "A ", "*", "", None]),
        pa.array(["A", "A ", "a", None, None]).dictionary_encode(),
        pa.array([True, False, None, None, None]),
        pa.array([0, 1, 1_000, None, None], pa.timestamp("ns")),
    ],
)
def test_values_of_parquet_are_exact(values: pa.Array, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"g": values, "one": ["x"] * 5}), path)
    expected = Counter(
        values.to_pandas().astype(object).map(str) if pa.types.is_timestamp(values.type) else values.to_pylist()
    )
    found = evaluated(path, "g", "one")
    assert (found.classes, found.k) == (len(expected), min(expected.values()))


@pytest.mark.slow
@pytest.mark.parametrize(
    "values",
    [
        pa.array([2**53, 2**53 + 1, None, 5, 5], pa.int64()),
        pa.array([Decimal("1.00000000000000000001"), Decimal("1.00000000000000000002"), None, None, None]),
        pa.array([2**53, 2**53 + 1, 1, 5, 5], pa.int64()),
    ],
)
def test_values_of_arrow_are_exact(values: pa.Array, tmp_path: Path) -> None:
    path = tmp_path / "a.arrow"
    table = pa.table({"g": values, "one": ["x"] * 5})
    with pa.ipc.new_file(str(path), table.schema) as writer:
        writer.write_table(table)
    expected = Counter(values.to_pylist())
    found = evaluated(path, "g", "one")
    assert (found.classes, found.k) == (len(expected), min(expected.values()))


@pytest.mark.slow
def test_declared_missing_codes_among_dates_of_spss_are_apart(tmp_path: Path) -> None:
    path = tmp_path / "a.sav"
    day = 13_700_000_000.0
    frame = pd.DataFrame({"g": [day, day, 99.0, 98.0, None], "one": ["x"] * 5})
    pyreadstat.write_sav(frame, str(path), missing_ranges={"g": [98, 99]}, variable_format={"g": "DATE11"})
    found = evaluated(path, "g", "one")
    assert (found.classes, found.k, found.suppressed_cells) == (4, 1, 1)


@pytest.mark.slow
def test_codes_and_floats_of_a_sheet_are_apart(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    sheet.append(["g", "one"])
    cells = [*range(20, 60), *range(20, 60), "NA", "n/a", "NA", "<5", 0.3, 0.3000000000000001, "*", None]
    for cell in cells:
        sheet.append([cell, "x"])
    book.save(tmp_path / "a.xlsx")
    found = evaluated(tmp_path / "a.xlsx", "g", "one")
    assert found.classes == len(set(cells))
    assert found.suppressed_cells == 2


@pytest.mark.slow
def test_declared_missing_codes_of_spss_are_apart(tmp_path: Path) -> None:
    path = tmp_path / "a.sav"
    frame = pd.DataFrame({"g": [1.0, 1.0, -8.0, -9.0, 0.3, 0.30000000000000004, None], "one": ["x"] * 7})
    pyreadstat.write_sav(frame, str(path), missing_ranges={"g": [-8, -9]})
    found = evaluated(path, "g", "one")
    assert (found.classes, found.k, found.suppressed_cells) == (6, 1, 1)


@pytest.mark.slow
def test_kinds_of_missing_value_of_stata_are_apart(tmp_path: Path) -> None:
    path = tmp_path / "a.dta"
    frame = pd.DataFrame({"g": pd.Series([1.5, 1.5, "a", "b", "b"], dtype="object"), "one": ["x"] * 5})
    pyreadstat.write_dta(frame, str(path), missing_user_values={"g": ["a", "b"]})
    found = evaluated(path, "g", "one")
    assert (found.classes, found.k, found.suppressed_cells) == (3, 1, 0)


@pytest.mark.slow
def test_a_long_text_is_compared_as_it_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.workspace.ingest.text_columns.CELLS_PER_BLOCK", 8)
    lines = io.StringIO()
    lines.write("g,one\n" + "1,x\n" * 10 + "1.0,x\n" * 10 + "A,x\n" * 3)
    (tmp_path / "a.csv").write_text(lines.getvalue(), "utf-8")
    found = evaluated(tmp_path / "a.csv", "g")
    assert (found.classes, found.k) == (3, 3)


@pytest.mark.slow
def test_a_text_is_read_once_for_the_known_and_once_for_the_sensitive_columns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    passes: list[list[str]] = []
    read = TextColumns._read_frames

    def note_pass(self: TextColumns, names: Sequence[str], *given: Any, **options: Any) -> Any:
        passes.append(list(names))
        return read(self, names, *given, **options)

    monkeypatch.setattr(TextColumns, "_read_frames", note_pass)
    (tmp_path / "a.csv").write_text("a,b,c,ill,other\n" + "1,x,y,flu,0\n" * 3 + "2,x,y,cold,0\n" * 3, "utf-8")
    evaluate_released_file(str(tmp_path / "a.csv"), ("a,b", "c"), ("ill",), AnonymityLimits())
    assert passes == [["ill"], ["a", "b", "c"]]


@pytest.mark.slow
def test_columns_that_the_memory_does_not_hold_together_are_read_in_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sfumato.workspace.ingest.text_columns.column_buffer_bytes", lambda: 1)
    (tmp_path / "a.csv").write_text("a,b,c\n" + "1,x,p\n" * 3 + "1,y,p\n" * 2 + "1,y,q\n" * 2, "utf-8")
    found = evaluated(tmp_path / "a.csv", "c", "a", "b")
    assert (found.classes, found.k) == (3, 2)
    assert [one.name for one in found.known] == ["c", "a", "b"]


@pytest.mark.slow
def test_the_order_of_days_and_months_is_that_of_the_files_other_dates(tmp_path: Path) -> None:
    """01/02 is 2 January and not 1 February: ``seen``, which is not asked about, shows that months come first."""
    days = ["01/02/2020", "02/01/2020", "03/01/2020", "04/01/2020"]
    rows = [f"{'A' if i < 2 else 'B'},{day},01/{13 + i}/2021" for i, day in enumerate(days)]
    (tmp_path / "a.csv").write_text("\n".join(["g,fell,seen", *rows]) + "\n", "utf-8")
    (one,) = evaluate_released_file(str(tmp_path / "a.csv"), ("g",), ("fell",), AnonymityLimits()).found.sensitive
    # Class A has the first two of four ranks: cumulative shares 1/2, 1, 1 against 1/4, 1/2, 3/4; by days first, t is 1/6.
    assert one.compared_t == pytest.approx((0.25 + 0.5 + 0.25) / 3)
