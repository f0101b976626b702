"""What a column is: a code that keeps its zeros, a magnitude although every record differs, a number of records."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sfumato.engine.data.schema import Kind, Role
from sfumato.engine.errors import BadInput
from sfumato.workspace.ingest import files
from sfumato.workspace.ingest.columns import ColumnProfile
from sfumato.workspace.ingest.files import find_source, text_head
from sfumato.workspace.ingest.identifiers import identifier_reasons
from sfumato.workspace.ingest.number_signs import write_padded_digits
from sfumato.workspace.service.importing import ImportSelection, import_file, preview_file


def columns_of(
    folder: Path, text: str, selection: ImportSelection | None = None, name: str = "table.csv"
) -> dict[str, ColumnProfile]:
    """Return how the columns of a text file would be read."""
    path = folder / name
    path.write_text(text, "utf-8")
    return {c.variable.name: c for c in preview_file(str(path), {}, selection or ImportSelection()).columns}


CODES = {
    "postal codes": ["01001", "54497", "86062", "02139"],
    "hospital numbers": ["0044", "0043", "1200", "0001"],
    "unequal lengths": ["007", "7", "12", "0013"],
    "in quotes": ['"01"', '"02"', '"11"', '"10"'],
    "with an empty cell": ["001", "", "100", "020"],
}


@pytest.mark.parametrize("cells", CODES.values(), ids=CODES)
@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_digits_of_which_some_begin_with_a_zero_are_codes_and_keep_it(
    tmp_path: Path, cells: list[str], delimiter: str
) -> None:
    rows = [delimiter.join([str(20 + i), cells[i % 4], str(1000 + 37 * i)]) for i in range(80)]
    text = "\n".join([delimiter.join(["age", "place", "pay"]), *rows, ""])
    found = columns_of(tmp_path, text)
    assert found["place"].variable.kind.has_levels
    assert found["age"].variable.kind is Kind.COUNT
    raw = files.read_table(find_source(str(tmp_path / "table.csv")))
    assert set(raw.frame["place"].dropna()) == {cell.strip('"') for cell in cells if cell}


NUMBERS = {
    "plain": ["10", "54", "860", "2"],
    "decimals": ["0.5", "0.75", "00.5", "12.0"],
    "negative": ["-05", "-1", "3", "8"],
    "zero itself": ["0", "10", "20", "30"],
}


@pytest.mark.parametrize("cells", NUMBERS.values(), ids=NUMBERS)
def test_numbers_stay_numbers_although_another_column_has_zeros_to_keep(tmp_path: Path, cells: list[str]) -> None:
    rows = [f"{cells[i % 4]},0{i % 7}" for i in range(80)]
    raw = files.read_table(find_source(str(write_csv(tmp_path, "number,code", rows))))
    assert pd.api.types.is_numeric_dtype(raw.frame["number"].dtype)
    assert set(raw.frame["code"]) == {f"0{i}" for i in range(7)}


def write_csv(folder: Path, header: str, rows: list[str]) -> Path:
    path = folder / "numbers.csv"
    path.write_text("\n".join([header, *rows, ""]), "utf-8")
    return path


def test_zeros_are_kept_wherever_in_a_long_file_they_stand(tmp_path: Path) -> None:
    rows = ["54497,1"] * 300_000 + ["01001,2"]
    raw = files.read_table(find_source(str(write_csv(tmp_path, "zip,n", rows))))
    assert raw.frame["zip"].iloc[-1] == "01001"
    assert raw.frame["n"].dtype == np.int64


def test_a_code_is_imported_and_its_zeros_are_in_the_stored_table(tmp_path: Path) -> None:
    rows = [f"0{1001 + i % 5},{20 + i % 40}" for i in range(100)]
    path = write_csv(tmp_path, "zip,age", rows)
    import_file(tmp_path / "ws", str(path), "zips")
    (stored,) = (tmp_path / "ws").rglob("*.parquet")
    assert set(pd.read_parquet(stored)["zip"].astype(str)) == {f"0{1001 + i}" for i in range(5)}
    found = {c.variable.name: c.variable for c in preview_file(str(path)).columns}
    assert found["zip"].kind is Kind.CATEGORICAL


def test_the_owner_may_say_that_digits_with_zeros_are_numbers(tmp_path: Path) -> None:
    rows = "\n".join(f"{i % 60:03d},{i % 2}" for i in range(120))
    found = columns_of(tmp_path, f"minutes,late\n{rows}\n")
    assert found["minutes"].variable.kind is Kind.CATEGORICAL
    assert "--as minutes=count" in found["minutes"].question
    path = str(tmp_path / "table.csv")
    chosen = ImportSelection(kinds=("minutes=count",))
    imported = import_file(tmp_path / "ws", path, "", None, chosen)
    assert {c.variable.name: c.variable.kind for c in imported.columns}["minutes"] is Kind.COUNT
    assert 'minutes = { kind = "count"' in imported.recipe
    assert not next(c for c in imported.columns if c.variable.name == "minutes").question


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("minutes", "is not COLUMN=KIND"),
        ("minutes=number", "kinds are categorical, ordinal"),
        ("hours=count", 'no column "hours"'),
    ],
)
def test_a_kind_that_is_none_names_the_option_and_the_kinds(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(BadInput, match=message) as caught:
        columns_of(tmp_path, "minutes,late\n1,2\n3,4\n", ImportSelection(kinds=(text,)))
    assert caught.value.place == "--as"


@pytest.mark.parametrize("name", ["zip", "PLZ", "postal_code", "countyFips", "nace code"])
def test_digits_of_one_length_are_codes_where_the_name_says_so(tmp_path: Path, name: str) -> None:
    rng = np.random.default_rng(4)
    rows = "\n".join(f"{code},{pay}" for code, pay in zip(rng.integers(100, 999, 200) * 100 + 7, rng.integers(500, 99_999, 200), strict=True))  # fmt: skip
    found = columns_of(tmp_path, f"{name},pay\n{rows}\n")
    assert found[name].variable.kind is Kind.CATEGORICAL
    assert f"--as {name}=count" in found[name].question
    assert found["pay"].variable.kind is Kind.COUNT


def magnitudes(n: int, seed: int) -> dict[str, np.ndarray]:
    """Whole numbers that differ in every record of a small file: amounts, sizes, populations."""
    rng = np.random.default_rng(seed)
    unique = {
        "turnover": np.exp(rng.normal(7, 1.5, 4 * n)),
        "floor space": rng.gamma(2, 3000, 4 * n),
        "population": np.exp(rng.normal(9, 1, 4 * n)),
        "pay": rng.uniform(18_000, 95_000, 4 * n),
    }
    return {name: np.unique(values.astype(int))[rng.permutation(n)] for name, values in unique.items()}


@pytest.mark.parametrize("n", [30, 60, 300])
@pytest.mark.parametrize("seed", range(3))
def test_magnitudes_enter_as_counts_although_every_record_has_its_own(tmp_path: Path, n: int, seed: int) -> None:
    columns = magnitudes(n, seed)
    found = columns_of(tmp_path, pd.DataFrame(columns).to_csv(index=False))
    assert {name: (c.is_included, c.variable.kind) for name, c in found.items()} == dict.fromkeys(
        columns, (True, Kind.COUNT)
    )
    assert "--leave-out pay" in found["pay"].question, "five digits each: a number of a person looks so too"


NUMBERS_OF_RECORDS = {
    "from one": np.arange(1, 61),
    "with gaps, shuffled": np.random.default_rng(0).permutation(80)[:60] + 1_000,
    "nine digits": np.random.default_rng(1).choice(899_999_999, 60, replace=False) + 100_000_000,
    "seven digits": np.random.default_rng(2).choice(8_999_999, 60, replace=False) + 1_000_000,
}


@pytest.mark.parametrize("numbers", NUMBERS_OF_RECORDS.values(), ids=NUMBERS_OF_RECORDS)
def test_numbers_of_records_are_still_left_out_and_come_back_as_numbers(tmp_path: Path, numbers: np.ndarray) -> None:
    assert identifier_reasons("column", pd.Series(numbers)) == ("every record has a value of its own",)
    text = pd.DataFrame({"column": numbers, "age": np.arange(60) % 7}).to_csv(index=False)
    assert not columns_of(tmp_path, text)["column"].is_included
    kept = columns_of(tmp_path, text, ImportSelection(keep=("column",)))["column"]
    assert kept.is_included
    assert (kept.variable.kind, kept.variable.role) == (Kind.COUNT, Role.OTHER)


def test_names_for_numbers_of_records_are_suspected_as_before() -> None:
    spread = pd.Series(np.unique(np.exp(np.random.default_rng(5).normal(8, 2, 300)).astype(int)))
    assert identifier_reasons("patient_id", pd.concat([spread, spread.head(5)]))
    assert not identifier_reasons("turnover", spread)


def test_padded_digits_are_recognised_by_every_text() -> None:
    assert write_padded_digits(["01", "2"])
    assert not write_padded_digits(["0", "2", "10"])
    assert not write_padded_digits(["01", "2a"])
    assert not write_padded_digits(["01", "-2"])
    assert not write_padded_digits([])


@pytest.mark.parametrize("suffix", ["csv.gz", "txt.gz", "gz"])
def test_a_packed_text_file_is_read_as_what_it_packs(tmp_path: Path, suffix: str) -> None:
    text = "age,sex\n" + "".join(f"{i % 80},{'fm'[i % 2]}\n" for i in range(500))
    plain, packed = tmp_path / "table.csv", tmp_path / f"packed.{suffix}"
    plain.write_text(text, "utf-8")
    packed.write_bytes(gzip.compress(text.encode()))
    assert find_source(str(packed)).sha256 == find_source(str(plain)).sha256
    assert files.read_frame(find_source(str(packed))).equals(files.read_frame(find_source(str(plain))))
    assert text_head(packed) == text_head(plain)
    assert import_file(tmp_path / "ws", str(packed), "").records == 500


def test_a_damaged_packed_file_and_one_that_unpacks_to_too_much_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = gzip.compress(b"a,b\n" * 100_000)
    for content in (whole[: len(whole) // 2], whole[:-4] + b"\0\0\0\1", whole[:12]):
        (tmp_path / "cut.csv.gz").write_bytes(content)
        with pytest.raises(BadInput, match="damaged gzip"):
            find_source(str(tmp_path / "cut.csv.gz"))
        assert isinstance(text_head(tmp_path / "cut.csv.gz"), bytes)
    (tmp_path / "large.csv.gz").write_bytes(whole)
    monkeypatch.setattr(files, "allowed_read_bytes", lambda size: 1 << 18)
    with pytest.raises(BadInput, match="unpacks to more than"):
        find_source(str(tmp_path / "large.csv.gz"))


def test_a_missing_policy_of_the_import_is_not_touched_by_kinds() -> None:
    source = ImportSelection(kinds=("a=count",)).data_source("f.csv", None, ())
    assert source.to_table() == ImportSelection().data_source("f.csv", None, ()).to_table()
