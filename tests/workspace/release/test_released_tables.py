"""Datasets as files: nothing but released levels is named, numbers do not tell what the confidential data lack, no cell is a formula."""

from __future__ import annotations

import csv
from io import BytesIO, StringIO

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.engine.data.schema import Kind, Schema, Variable
from sfumato.workspace.ingest.formats import csv as csv_format
from sfumato.workspace.release.tables import (
    DatasetContext,
    codebook_csv,
    dataset_bytes,
    names_of_levels,
    released_levels,
)
from sfumato.workspace.visible_text import is_formula

ILLNESS = Variable("illness", Kind.CATEGORICAL, labels={"a": "asthma", "z": "zoonosis", "q": "asthma"})
SCHEMA = Schema((ILLNESS, Variable("note", Kind.CATEGORICAL), Variable("=n", Kind.COUNT, title="+how many")))


def table(illness: list[str | None], counts: list[float | None] | None = None) -> pa.Table:
    """A stored table as a run leaves it: the dictionary of illnesses has those of the confidential data, "z" too."""
    n = len(illness)
    frame = pd.DataFrame(
        {
            "illness": pd.Categorical(illness, ["a", "q", "z"]),
            "note": pd.Categorical((["=1+1", "-2", "@x", "plain"] * n)[:n]),
            "=n": pd.Series(counts or range(n)),
        }
    )
    return pa.Table.from_pandas(frame, preserve_index=False)


def test_a_level_that_no_released_record_has_is_named_nowhere() -> None:
    tables = [table(["a", "a", None, "a"]), table(["a", "a", "a", "a"])]
    levels = released_levels(tables)
    assert levels["illness"] == ("a",)
    assert "zoonosis" not in codebook_csv(SCHEMA, levels, ())
    content = dataset_bytes(tables[0], SCHEMA, (), "parquet", DatasetContext(levels=levels))
    read = pq.read_table(BytesIO(content), read_dictionary=["illness"]).column("illness").combine_chunks()
    assert read.dictionary.to_pylist() == ["asthma"]
    careless = BytesIO()
    pq.write_table(tables[0], careless)
    known = pq.read_table(careless, read_dictionary=["illness"]).column("illness").combine_chunks().dictionary
    assert "z" in known.to_pylist(), "the negative control: a stored table tells of the level"


def test_all_datasets_that_go_out_together_name_a_level_alike() -> None:
    one, other = table(["a", "a"]), table(["a", "q"])
    levels = released_levels([one, other])
    assert levels["illness"] == ("a", "q")
    assert b"asthma (a)" in dataset_bytes(one, SCHEMA, (), "csv", DatasetContext(levels=levels))
    assert names_of_levels(ILLNESS, ("a",)) == {"a": "asthma"}


def test_counts_are_whole_where_only_the_confidential_data_lack_some() -> None:
    content = dataset_bytes(table(["a", "a"], [3.0, 4.0]), SCHEMA, (), "csv").decode()
    assert [row["'=n"] for row in csv.DictReader(StringIO(content))] == ["3", "4"]


def test_no_cell_of_a_csv_file_is_a_formula() -> None:
    stored = table(["a", "a", "q", "q"])
    content = dataset_bytes(stored, SCHEMA, (), "csv").decode()
    notes = [row["note"] for row in csv.DictReader(StringIO(content))]
    assert notes == ["'=1+1", "-2", "'@x", "plain"]
    book = codebook_csv(SCHEMA, released_levels([stored]), ())
    assert not [cell for line in csv.reader(StringIO(book)) for cell in line if is_formula(cell)]
    assert "'+how many" in book
    read = pq.read_table(BytesIO(dataset_bytes(stored, SCHEMA, (), "parquet")))
    assert read.column("note").to_pylist()[0] == "=1+1", "no program carries out a cell of a Parquet file"


@pytest.mark.parametrize(
    ("text", "formula"), [("=1", True), ("-1", False), ("+1e3", False), ("-inf", True), ("\t=1", True), ("a=1", False)]
)
def test_numbers_are_no_formulas(text: str, formula: bool) -> None:
    assert is_formula(text) is formula


def test_a_parquet_file_says_what_it_is() -> None:
    content = dataset_bytes(table(["a"]), SCHEMA, (), "parquet", DatasetContext(note="SYNTHETIC data, dataset 1 of 1"))
    assert pq.read_schema(BytesIO(content)).metadata == {b"description": b"SYNTHETIC data, dataset 1 of 1"}


@pytest.mark.parametrize("records", [0, 1, 29, 30, 31, 400])
def test_a_csv_file_in_blocks_is_that_of_the_whole_table(monkeypatch: pytest.MonkeyPatch, records: int) -> None:
    """Days with moments among them, which are written otherwise; whole numbers with missing ones."""
    monkeypatch.setattr(csv_format, "CELLS_PER_WRITE", 9)
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(records) % 365, unit="D")
    days = days + pd.to_timedelta(np.where(np.arange(records) % 70 == 5, 90, 0), unit="s")
    income = np.round(np.random.default_rng(1).lognormal(8, 1, records), 2)
    frame = pd.DataFrame({"day": days, "income": income, "n": np.where(np.arange(records) % 7, 3.0, np.nan)})
    schema = Schema(
        (Variable("day", Kind.DATE), Variable("income", Kind.CONTINUOUS), Variable("n", Kind.COUNT)),
    )
    found = dataset_bytes(pa.Table.from_pandas(frame, preserve_index=False), schema, (), "csv")
    whole = frame.assign(n=frame["n"].astype("Int64")).to_csv(index=False, lineterminator="\n", chunksize=3)
    assert found == whole.encode()
    if records == 400:
        assert found != frame.assign(n=frame["n"].astype("Int64")).to_csv(index=False, lineterminator="\n").encode()


def test_the_codebook_has_the_form_of_dates_and_other_names_of_the_datasets() -> None:
    schema = Schema(
        (
            Variable("date of birth", Kind.DATE, format="dd.mm.yyyy"),
            Variable("date-of-birth", Kind.DATE, title="Second try"),
            Variable("month", Kind.COUNT, format="%tm"),
        )
    )
    days = pd.to_datetime(["2020-02-29", "2021-01-01"]).astype("datetime64[s]")
    frame = pd.DataFrame({"date of birth": days, "date-of-birth": days, "month": [701, 702]})
    stored = pa.Table.from_pandas(frame, preserve_index=False)

    def lines(form: str) -> list[tuple[str, ...]]:
        book = csv.DictReader(StringIO(codebook_csv(schema, {}, (), form=form)))
        return [(line["variable"], line["format"], line["name_in_datasets"]) for line in book]

    assert lines("csv") == [("date of birth", "dd.mm.yyyy", ""), ("date-of-birth", "", ""), ("month", "%tm", "")]
    assert [name for _, _, name in lines("spss")] == ["date_of_birth", "date_of_birth_2", ""]
    path = BytesIO(dataset_bytes(stored, schema, (), "stata"))
    read = pd.read_stata(path)
    assert list(read.columns) == ["date_of_birth", "date_of_birth_2", "month"]
    assert read["date_of_birth"].tolist() == list(days)
    path.seek(0)
    with pd.io.stata.StataReader(path) as reader:
        titles = reader.variable_labels()
    assert titles == {"date_of_birth": "date of birth", "date_of_birth_2": "Second try", "month": ""}
