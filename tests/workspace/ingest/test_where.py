"""The recipe's filter is an expression on the file's columns and nothing else."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sfumato.engine.errors import BadInput
from sfumato.workspace.ingest.filters import select_where

FRAME = pd.DataFrame(
    {
        "price": [10.0, np.nan, -5.0, 30.0],
        "room type": ["flat", "house", None, "tent's"],
        "day": pd.to_datetime(["2019-07-31", "2020-01-01", "2020-06-30", "2021-12-31"]),
        "user": [1, 2, 3, 4],
    },
    index=[7, 5, 3, 1],
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("where", "kept"),
    [
        ("price > 0", [7, 1]),
        ("PRICE > 0", [7, 1]),
        ("price > 0 -- the rest of the line is a comment", [7, 1]),
        ("/* why */ price > 0", [7, 1]),
        ("(price > 0) AND ((user = 1))", [7]),
        ("price BETWEEN -10 AND 10", [7, 3]),
        ("price IS NULL", [5]),
        ("NOT (price > 0)", [3]),
        ("\"room type\" IN ('flat', 'tent''s')", [7, 1]),
        ("\"room type\" LIKE '%;%' OR \"room type\" = 'house'", [5]),
        ('"room type" IS NULL', [3]),
        ("day >= DATE '2020-01-01' AND year(day) = 2020", [5, 3]),
        ("age(TIMESTAMP '2021-01-01', day) > INTERVAL 1 YEAR", [7]),
        ("user = 2", [5]),
        ("abs(price) + sqrt(user) >= 12", [1]),
        ("CASE WHEN price > 0 THEN user > 1 ELSE false END", [1]),
        ("list_contains([1, 4], user)", [7, 1]),
        ("len(list_filter([1, 2, 3], lambda x: x < user)) = 1", [5]),
        ("records.price > 0", [7, 1]),
        ("true", [7, 5, 3, 1]),
        ("NULL", []),
    ],
)
def test_records_for_which_it_holds_are_kept_in_order(where: str, kept: list[int]) -> None:
    assert select_where(FRAME, where).index.tolist() == kept


@pytest.mark.slow
@pytest.mark.parametrize(
    "where",
    [
        "price IN (SELECT 1)",
        "EXISTS (SELECT 1 FROM read_csv('/etc/passwd'))",
        "EXISTS (FROM '/etc/passwd')",
        "(SELECT content FROM read_text('/etc/passwd')) LIKE '%root%'",
        "(SELECT count(*) FROM '{file}') > 0",
        "(SELECT count(*) FROM read_parquet('{file}')) > 0",
        "(SELECT count(*) FROM read_blob('{file}')) > 0",
        "(SELECT count(*) FROM glob('/*')) > 0",
        "(SELECT count(*) FROM FRAME) > 0",
        "(SELECT count(*) FROM outside) > 0",
        "(SELECT count(*) FROM duckdb_settings()) > 0",
        "(WITH x AS (SELECT 1) SELECT true FROM x)",
        "(VALUES (true))",
        "price = ANY (SELECT price FROM records)",
        "array(SELECT 1) IS NOT NULL",
        "price > 0 FROM read_csv('/etc/passwd')",
        "price > 0 UNION SELECT true",
        "price > 0 LIMIT 1",
        "price > 0 ORDER BY price",
        "price > 0 GROUP BY price",
        "price > 0 AS kept",
        "DISTINCT price > 0",
        "price > 0, true",
        "*",
        "price > 0; DROP TABLE records",
        "price > 0; COPY records TO '{copy}'",
        "price > 0; ATTACH '{copy}' AS copy",
        "COPY records TO '{copy}'",
        "ATTACH '{copy}'",
        "INSTALL httpfs",
        "LOAD '{copy}'",
        "PRAGMA database_list",
        "SET enable_external_access = true",
        "CALL pragma_version()",
        "true) OR (true",
        "true)) UNION SELECT ((true",
        "true) /* ",
        "/* ",
        "price > 0 --\n; DROP TABLE records",
        "((price > 0)",
        "price > 0)",
        "'",
        "price > $1",
        "price > ?",
        "",
        "   ",
        "price >",
        "random() < 0.5",
        "RANDOM() < 0.5",
        '"random"() < 0.5',
        "main.random() < 0.5",
        "len(list_transform([1], lambda x: random())) = 1",
        "gen_random_uuid() IS NULL",
        "uuidv7() IS NULL",
        "setseed(0.5) IS NULL",
        "day < now()",
        "day < current_date",
        "day < current_timestamp",
        "day < \"current_timestamp\"",
        "day < localtimestamp",
        "day < current_localtimestamp()",
        "day < today()",
        "day < get_current_timestamp()",
        "day < ago(INTERVAL 1 DAY)",
        "age(day) > INTERVAL 1 YEAR",
        "current_user = 'x'",
        "session_user = 'x'",
        "current_setting('threads') = '1'",
        "getvariable('x') IS NULL",
        "getenv('HOME') = '/root'",
        "current_query() IS NULL",
        "write_log('x') IS NULL",
        "sleep_ms(100000) IS NULL",
        "error(\"room type\")",
        "nextval('x') > 0",
        "outside > 0",
        "prise > 0",
        "no_such_function(price)",
        "sum(price) > 0",
        "row_number() OVER () < 3",
        "price::INTEGER::VARCHAR::DATE IS NULL",
        "not " * 900 + "true",
        "(" * 5000 + "true" + ")" * 5000,
    ],
)  # fmt: skip
def test_everything_else_is_refused_at_its_place_in_one_line(where: str, tmp_path: Path) -> None:
    outside = pd.DataFrame({"price": [1.0]})
    outside.to_parquet(tmp_path / "other.parquet")
    where = where.replace("{file}", str(tmp_path / "other.parquet")).replace("{copy}", str(tmp_path / "copy"))
    with pytest.raises(BadInput) as caught:
        select_where(FRAME, where)
    assert caught.value.place == "data.where"
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "copy").exists()


def test_names_that_differ_in_case_alone_are_refused_when_they_are_used() -> None:
    frame = FRAME.assign(Price=[1.0, 2.0, 3.0, 4.0])
    with pytest.raises(BadInput, match='differ from "price" in nothing but case'):
        select_where(frame, "Price > 0")
    assert select_where(frame, "user = 1").index.tolist() == [7]


def test_columns_may_be_called_what_the_filter_itself_uses() -> None:
    frame = pd.DataFrame({"record number": [5, 6, 1], "": [1, 2, 3], "records": [3, 2, 1]})
    assert select_where(frame, '"record number" < 6 AND records > 1').index.tolist() == [0]


@pytest.mark.parametrize(
    "where",
    [
        '"record number" < 2',
        'records."record number" < 2',
        "rowid < 2",
        "#3 < 2",
        "COLUMNS('rec.*') < 2",
        "struct_extract(records, 'record number') < 2",
        "row_number() OVER () < 2",
        "unnest([1, 2]) < 2",
    ],
)
def test_the_number_of_a_record_cannot_be_named(where: str) -> None:
    with pytest.raises(BadInput):
        select_where(pd.DataFrame({"a": [0.5, 6.0, 7.0], "b": [1, 2, 3]}), where)


def test_what_stands_for_all_columns_reads_no_other_column() -> None:
    """The number of the first record is 0: a filter that read it left this record out."""
    frame = pd.DataFrame({"a": [5.0, -6.0, 7.0], "b": [1, 2, 3]})
    assert select_where(frame, "COLUMNS(*) > 0").index.tolist() == [0, 2]
    assert select_where(frame, "CAST(records AS VARCHAR) LIKE '%record number%'").index.tolist() == []
    assert select_where(frame, "CAST(records AS VARCHAR) LIKE '%b%'").index.tolist() == [0, 1, 2]


def test_the_frame_is_left_alone_and_nothing_else_changes() -> None:
    before = FRAME.copy(deep=True)
    kept = select_where(FRAME, "price > 0")
    pd.testing.assert_frame_equal(FRAME, before)
    pd.testing.assert_frame_equal(kept, FRAME.loc[[7, 1]])


def test_order_is_kept_in_a_large_file() -> None:
    frame = pd.DataFrame({"n": np.random.default_rng(1).integers(0, 1000, 300_000)})
    assert np.array_equal(select_where(frame, "n % 7 = 3").index, np.flatnonzero(frame["n"] % 7 == 3))
