"""From a file to microdata."""

from __future__ import annotations

import csv
import datetime
import hashlib
import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.data.schema import Kind, MissingPolicy, Schema, Variable
from sfumato.engine.errors import BadInput
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.recipe.data_source import DataSource
from sfumato.workspace.ingest.files import SourceFile, find_source, read_file_microdata, read_frame

SCHEMA = Schema(
    (Variable("code", Kind.CATEGORICAL), Variable("visits", Kind.COUNT), Variable("income", Kind.CONTINUOUS))
)
DROP = DataSource(missing=MissingPolicy.DROP)


def read(content: bytes, schema: Schema = SCHEMA, data: DataSource = DataSource(), seed: int = 1) -> Microdata:  # noqa: B008
    return read_file_microdata(SourceFile("file.csv", content), data, schema, seed, key=PUBLIC)


def refusal(content: bytes, schema: Schema = SCHEMA, data: DataSource = DataSource()) -> BadInput:  # noqa: B008
    with pytest.raises(BadInput) as caught:
        read(content, schema, data)
    return caught.value


def records(data: Microdata) -> list[tuple[Any, ...]]:
    return list(data.frame.itertuples(index=False, name=None))


EXPECTED = [("007", 2, 1.5), ("7", 0, -3.0), ("010", 12, 1e6)]


@pytest.mark.parametrize(
    "content",
    [
        b"code,visits,income\n007,2,1.5\n7,0,-3\n010,12,1e6\n",
        b"code,visits,income\n007,2,1.5\n7,0,-3\n010,12,1e6",
        b"code;visits;income\n007;2;1.5\n7;0;-3\n010;12;1e6\n",
        b"code\tvisits\tincome\n007\t2\t1.5\n7\t0\t-3\n010\t12\t1e6\n",
        b"code|visits|income\n007|2|1.5\n7|0|-3\n010|12|1e6\n",
        b'"code","visits","income"\n"007","2","1.5"\n"7",0,"-3"\n010,12,1000000\n',
        b"\xef\xbb\xbfcode,visits,income\n007,2,1.5\n7,0,-3\n010,12,1e6\n",
        b"code,visits,income\r\n007,2,1.5\r\n7,0,-3\r\n010,12,1e6\r\n",
        b"\xef\xbb\xbfcode;visits;income\r\n007;2;1.5\r\n7;0;-3\r\n010;12;1e6",
        b"code,visits,income\r007,2,1.5\r7,0,-3\r010,12,1e6\r",
        b"code,visits,income\n007,2,1.5\n\n7,0,-3\n010,12,1e6\n\n\n",
        b"income,unused,visits,code\n1.5,x,2,007\n-3,,0,7\n1e6,y,12,010\n",
    ],
)
def test_every_way_to_write_a_table_reads_the_same(content: bytes) -> None:
    assert records(read(content)) == EXPECTED


def test_quoted_fields_may_hold_separators_quotes_and_line_breaks() -> None:
    data = read(b'code,visits,income\n"a,b",1,1\n"c ""d""",2,2\n"e\nf",3,3\n5" nail,4,4\n')
    assert [row[0] for row in records(data)] == ["a,b", 'c "d"', "e\nf", '5" nail']


def test_only_an_empty_field_is_missing_and_words_that_look_missing_are_levels() -> None:
    content = b"code,visits,income\nNA,1,1\nnull,2,2\nNone,3,3\nnan,4,4\n,5,5\n"
    data = read(content, data=DROP)
    assert [row[0] for row in records(data)] == ["NA", "null", "None", "nan"]
    assert data.dropped == 1


def test_missing_values_are_refused_with_their_number_and_the_way_out() -> None:
    error = refusal(b"code,visits,income\na,1,1\nb,,2\nc,,\n")
    assert error.place == "variables.visits"
    assert "2 of 3 records have no value" in error.message
    assert 'missing = "drop"' in error.message


def test_missing_codes_are_missing_values() -> None:
    schema = Schema(
        (
            Variable("code", Kind.CATEGORICAL, missing=("?", "99")),
            Variable("visits", Kind.COUNT, missing=(99, "refused")),
            Variable("income", Kind.CONTINUOUS, missing=(-1, -2.5)),
        )
    )
    content = b"code,visits,income\na,1,1.5\n?,2,2\n99,3,3\nb,99,4\nc,refused,5\nd,6,-1\ne,7,-2.5\nf,8,-1.5\n"
    data = read(content, schema, DROP)
    assert records(data) == [("a", 1, 1.5), ("f", 8, -1.5)]
    assert data.dropped == 6
    assert list(data.column("code").cat.categories) == ["a", "f"]


def test_nothing_left_after_dropping_says_how_many_were_dropped() -> None:
    assert "dropping 2 with missing values" in refusal(b"code,visits,income\n,1,1\nb,,2\n", data=DROP).message


def test_a_one_column_file_keeps_its_empty_lines_as_missing_records() -> None:
    schema = Schema((Variable("visits", Kind.COUNT),))
    assert "1 of 3 records" in refusal(b"visits\n1\n\n2\n", schema).message
    assert records(read(b"visits\n1\n2\n", schema)) == [(1,), (2,)]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", '"file.csv" is empty'),
        (b" \n\n \n", '"file.csv" is empty'),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\1\0", "these files can be read: CSV, TSV, Parquet, Arrow, Excel (.xlsx), SPSS, Stata and SAS"),
        ("code,visits\na,1\n".encode("utf-16"), "these files can be read: CSV, TSV, Parquet, Arrow, Excel (.xlsx), SPSS, Stata and SAS"),
        (b"PAR1 and then no Parquet", "damaged Parquet"),
        (b"\n\ncode,visits,income\na,1,1\n", "its first line names no columns"),
        (b'{"code": 1}\n', "its first line names no columns"),
        (b"code,visits,income\na,1\nb,2,2\n", "1 of its rows have more or fewer fields than the header"),
        (b"code,visits,income\na,1,1,1\nb,2,2,2\n", "the first is row 2, with 4 instead of 3"),
        (b"code,visits,income\na,1,1\nb,2,2\nc,1,\"x,y\nz", "a quotation mark is opened and not closed"),
        (b'code,"visits\nincome"\na,1\n', "its first line cannot be split"),
        (b"code,visits,income\n", "has no records"),
        ("code,visits,income\ncafé,1,1\n".encode("latin-1"), "not UTF-8 text; save it as UTF-8"),
        ("cödé,visits,income\na,1,1\n".encode("latin-1"), "not UTF-8 text; save it as UTF-8"),
    ],
)  # fmt: skip
def test_what_is_no_table_is_refused_in_one_line(content: bytes, message: str) -> None:
    error = refusal(content)
    assert error.place == "data.file"
    assert message in error.message
    assert "\n" not in str(error)


@pytest.mark.parametrize(
    ("row", "place", "message"),
    [
        (b"a,many,1", "variables.visits", "1 record is not a number"),
        (b"a,1.5,1", "variables.visits", "1 record is not whole numbers"),
        (b"a,-1,1", "variables.visits.bounds", "1 record is below 0"),
        (b"a,61,1", "variables.visits.bounds", "1 record is above 60"),
        (b"a,inf,1", "variables.visits", "1 record is not a number"),
        (b"a,1,1e999", "variables.income", "1 record is not a number"),
        (b"a,1,\"1,500\"", "variables.income", "1 record has a comma that may be decimal or one of thousands"),
        (b"a,1,\"1,5\"\na,1,1.5", "variables.income", "1 record is not a number"),
        (b"c,1,1", "variables.code.levels", "1 record has a level that is not listed"),
    ],
)  # fmt: skip
def test_values_that_break_their_variable_are_counted_at_its_place(row: bytes, place: str, message: str) -> None:
    schema = Schema(
        (
            Variable("code", Kind.CATEGORICAL, levels=("a", "b")),
            Variable("visits", Kind.COUNT, bounds=(None, 60)),
            Variable("income", Kind.CONTINUOUS),
        )
    )
    error = refusal(b"code,visits,income\na,0,0\n" + row + b"\nb,60,-5\n", schema)
    assert (error.place, message in error.message) == (place, True)


def test_a_column_that_is_not_there_is_named_with_the_near_miss() -> None:
    error = refusal(b"code,visit,income\na,1,1\n")
    assert error.place == "variables.visits"
    assert 'did you mean "visit"?' in error.message


DATES = Schema((Variable("day", Kind.DATE), Variable("visits", Kind.COUNT)))


def test_dates_are_read_in_iso_8601() -> None:
    data = read(b"day,visits\n2019-07-31,1\n1850-01-01,2\n2024-02-29,3\n", DATES)
    assert data.column("day").dtype == "datetime64[s]"
    assert data.numbers("day").tolist() == [18108.0, -43829.0, 19782.0]


@pytest.mark.parametrize("wrong", ["31/07/2019", "2019-02-30", "yesterday"])
def test_other_dates_are_refused(wrong: str) -> None:
    error = refusal(f"day,visits\n2019-07-31,1\n{wrong},2\n".encode(), DATES)
    assert (error.place, "1 record is not a date" in error.message) == ("variables.day", True)


def parquet(frame: pd.DataFrame, **options: object) -> bytes:
    sink = io.BytesIO()
    frame.to_parquet(sink, **options)
    return sink.getvalue()


def test_parquet_is_read_with_its_types() -> None:
    frame = pd.DataFrame(
        {
            "code": pd.Categorical(["b", "a", "b"]),
            "visits": pd.array([1, 2, 3], dtype="Int64"),
            "income": np.array([1.5, 2.5, 3.5], dtype=np.float32),
            "day": [datetime.date(2019, 7, 31), datetime.date(1850, 1, 1), datetime.date(2024, 2, 29)],
        }
    )
    data = read(parquet(frame), Schema((*SCHEMA, Variable("day", Kind.DATE))))
    assert [row[:3] for row in records(data)] == [("b", 1, 1.5), ("a", 2, 2.5), ("b", 3, 3.5)]
    assert data.numbers("day").tolist() == [18108.0, -43829.0, 19782.0]


def test_a_parquet_files_index_is_a_column_like_any_other() -> None:
    frame = pd.DataFrame({"code": ["a", "b"], "visits": [1, 2], "income": [0.5, 1.5]}).set_index("code")
    assert records(read(parquet(frame))) == [("a", 1, 0.5), ("b", 2, 1.5)]


def test_parquet_columns_of_one_name_are_refused() -> None:
    sink = io.BytesIO()
    pq.write_table(pa.table([[1], [2]], names=["visits", "visits"]), sink)
    assert 'two columns called "visits"' in refusal(sink.getvalue()).message


def test_missing_values_in_parquet_are_missing_values() -> None:
    frame = pd.DataFrame({"code": ["a", None, "c"], "visits": [1, 2, None], "income": [1.0, 2.0, 3.0]})
    data = read(parquet(frame), data=DROP)
    assert (records(data), data.dropped) == ([("a", 1, 1.0)], 2)


FIELDS = st.text(st.characters(blacklist_categories=["Cs", "Cc"]), max_size=8)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(st.tuples(FIELDS, FIELDS), min_size=1, max_size=8),
    separator=st.sampled_from(",;\t|"),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    ending=st.sampled_from(["\n", "\r\n"]),
)
def test_what_the_standard_library_writes_is_read_back(
    rows: list[tuple[str, str]], separator: str, quoting: int, ending: str
) -> None:
    text = io.StringIO()
    csv.writer(text, delimiter=separator, quoting=quoting, lineterminator=ending).writerows([("one", "two"), *rows])
    schema = Schema((Variable("one", Kind.CATEGORICAL), Variable("two", Kind.CATEGORICAL)))
    frame = read_frame(SourceFile("file.csv", text.getvalue().encode()), schema)
    assert frame.fillna("").to_numpy().tolist() == [list(row) for row in rows]


def numbered(count: int) -> bytes:
    return b"code,visits,income\n" + b"".join(b"c%d,%d,%d\n" % (i % 40, i, i) for i in range(count))


def test_a_sample_is_of_its_size_without_replacement_in_the_files_order_by_the_seed() -> None:
    def sampled(seed: int) -> list[int]:
        return [int(row[1]) for row in records(read(numbered(500), data=DataSource(sample=60), seed=seed))]

    assert sampled(3) == sampled(3)
    assert sampled(3) != sampled(4)
    assert len(set(sampled(3))) == 60
    assert sampled(3) == sorted(sampled(3))


@pytest.mark.slow
def test_every_record_is_as_likely_to_be_sampled_as_any_other() -> None:
    size, draws = 20, 200
    counts = np.zeros(40)
    for seed in range(draws):
        chosen = read(numbered(40), data=DataSource(sample=size), seed=seed).numbers("visits")
        counts[chosen.astype(int)] += 1
    share = size / 40
    assert np.abs(counts - draws * share).max() < 4.5 * np.sqrt(draws * share * (1 - share))


def test_a_samples_levels_are_those_it_holds_unless_they_were_listed() -> None:
    few = DataSource(sample=3)
    found = read(numbered(100), data=few)
    assert set(found.column("code").cat.categories) == set(found.column("code"))
    levels = tuple(f"c{i}" for i in range(40))
    listed = Schema((Variable("code", Kind.CATEGORICAL, levels=levels), *SCHEMA.variables[1:]))
    assert tuple(read(numbered(100), listed, few).column("code").cat.categories) == levels


def test_a_sample_larger_than_the_file_says_how_many_records_there_are() -> None:
    error = refusal(numbered(10), data=DataSource(sample=11))
    assert (error.place, "11 records are asked for, there are 10" in error.message) == ("data.sample", True)
    assert len(read(numbered(10), data=DataSource(sample=10))) == 10


def test_the_filter_comes_before_the_sample() -> None:
    data = read(numbered(100), data=DataSource(where="visits % 2 = 1", sample=50))
    assert data.numbers("visits").tolist() == list(range(1, 100, 2))


def test_a_filter_that_nothing_passes_is_said_to_be() -> None:
    error = refusal(numbered(10), data=DataSource(where="visits > 1000"))
    assert (error.place, "no record" in error.message) == ("data.where", True)


def test_a_relative_file_lies_beside_the_recipe(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.csv").write_bytes(b"code\na\n")
    source = find_source("data/a.csv", tmp_path)
    assert (source.name, source.content) == ("a.csv", b"code\na\n")
    assert source.sha256 == hashlib.sha256(b"code\na\n").hexdigest()
    assert find_source(str(tmp_path / "data" / "a.csv"), Path("/elsewhere")) == source


def test_a_file_that_cannot_be_read_is_said_to_be(tmp_path: Path) -> None:
    (tmp_path / "secret.csv").touch(mode=0o000)
    cases = {
        "": "no data file is named",
        "none.csv": "no such file",
        ".": "is a directory",
        "secret.csv/x": "cannot be read",
    }
    if os.geteuid() != 0:
        cases["secret.csv"] = "Permission denied"
    for name, message in cases.items():
        with pytest.raises(BadInput, match=message) as caught:
            find_source(name, tmp_path)
        assert caught.value.place == "data.file"


def test_data_that_ship_with_a_dependency_are_found_and_no_other() -> None:
    assert len(read_frame(find_source("statsmodels:randhie"))) == 20190
    with pytest.raises(BadInput, match="anes96, fair, randhie"):
        find_source("statsmodels:../../secret")


def test_tables_that_ship_with_the_recipes_are_found_and_no_other_file() -> None:
    assert read_frame(find_source("sfumato:households"))["household"].nunique() == 2500
    for name in ("../adult", "data", "", "households.csv"):
        with pytest.raises(BadInput, match=r"ships no table .*households, panel"):
            find_source(f"sfumato:{name}")


def test_names_that_a_file_puts_in_apostrophes_are_read_without() -> None:
    names = ["popul", "TVnews", "selfLR", "ClinLR", "DoleLR", "PID", "age", "educ", "income", "vote"]
    assert list(read_frame(find_source("statsmodels:anes96"))) == names
    mixed = SourceFile("a.csv", b"'a',b,'c\n1,2,3\n")
    assert list(read_frame(mixed)) == ["'a'", "b", "'c"]


def test_a_public_file_reads_as_pandas_reads_it(public_data: Callable[[str], Path]) -> None:
    path = public_data("adult.csv")
    schema = Schema((Variable("workclass", Kind.CATEGORICAL, missing=("?",)), Variable("age", Kind.COUNT)))
    data = read_file_microdata(find_source(str(path)), DROP, schema, 1, key=PUBLIC)
    plain = pd.read_csv(path, na_values=["?"], skipinitialspace=True).dropna(subset=["workclass"])
    assert len(data) == len(plain)
    assert data.numbers("age").tolist() == plain["age"].tolist()
