"""No error message repeats a value of the data: a marker is put into them, errors are provoked, the marker is looked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from io import BytesIO
from typing import Any

import duckdb
import pandas as pd
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from sfumato.engine.data.schema import Kind, MissingPolicy, Schema, Variable
from sfumato.engine.errors import BadInput
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.recipe.data_source import DataSource
from sfumato.workspace.ingest.files import SourceFile, read_file_microdata
from sfumato.workspace.ingest.filters import select_where

MARKER = "zqxjkvbw"
NUMBER = 918273.6455
AROUND = st.tuples(st.text("([{%$\\x\"' -1,;", max_size=3), st.text(")]}%$\\x\"' -1,;", max_size=3))
EXPRESSIONS = [
    "CAST(c AS INTEGER) > 0",
    "c",
    "c + 1 > 0",
    "c::DATE > DATE '2020-01-01'",
    "c > 3",
    "-c > 0",
    "c::BLOB > 'x'",
    "c::UUID IS NULL",
    "c::JSON IS NULL",
    "c::STRUCT(a INTEGER) IS NULL",
    "c::INTEGER[] IS NULL",
    "regexp_matches('x', c)",
    "strptime(c, '%Y') IS NULL",
    "printf(c, 1) = 'x'",
    "format(c, 1) = 'x'",
    "'x' LIKE 'x' ESCAPE c",
    "json_extract(c, '$.a') IS NULL",
    "from_hex(c) IS NULL",
    "from_base64(c) IS NULL",
    "date_trunc(c, DATE '2020-01-01') IS NULL",
    "error(c)",
    "(c || '::x')::TIMESTAMP IS NULL",
    "assert_true(false, c) IS NULL",
    "TIMESTAMPTZ '2020-01-01' AT TIME ZONE c IS NULL",
    "c COLLATE nowhere = 'x'",
]


def message_of(action: Callable[[], object]) -> str | None:
    try:
        action()
    except BadInput as error:
        return str(error)
    return None


def test_the_marker_would_be_found() -> None:
    frame = pd.DataFrame({"c": [MARKER]})
    with duckdb.connect() as connection, pytest.raises(duckdb.Error, match=MARKER):
        connection.register("records", frame).execute("SELECT * FROM records WHERE c::INTEGER > 0").fetchall()


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(expression=st.sampled_from(EXPRESSIONS), around=AROUND)
def test_no_filter_makes_a_message_repeat_a_value(expression: str, around: tuple[str, str]) -> None:
    value = around[0] + MARKER + around[1]
    message = message_of(lambda: select_where(pd.DataFrame({"c": [value, "1", value]}), expression))
    event("refused" if message else "read")
    assert MARKER not in (message or "")


def variables(kind: Kind) -> st.SearchStrategy[Variable]:
    plain = st.just(Variable("c", kind))
    if kind.has_levels:
        return plain | st.just(Variable("c", kind, levels=("a", "b")))
    if kind is Kind.DATE:
        return plain
    return plain | st.just(Variable("c", kind, bounds=(0, 10)))


def contents(value: str) -> list[bytes]:
    quoted = '"' + value.replace('"', '""') + '"'
    frame = pd.DataFrame({"c": [value, "1"], "n": [NUMBER, 1.0]})
    sink = BytesIO()
    frame.to_parquet(sink)
    return [
        f"c,n\n{quoted},{NUMBER}\n1,1\n".encode(),
        f"c,n\n1,1\n{value},{NUMBER}\n".encode(),
        f"c,n\n1,1\n{quoted},{NUMBER},{quoted}\n".encode(),
        f"c,n\n1,1\n{quoted}\n".encode(),
        f'c,n\n1,1\n"{MARKER},1\n'.encode(),
        f"c,n\n{quoted},\n,2\n".encode(),
        f"c,n\n{quoted},{NUMBER}\n".encode().replace(b"x", b"\xe9"),
        f"c,n\n{quoted}\0,{NUMBER}\n".encode(),
        sink.getvalue(),
        sink.getvalue()[:-20],
    ]


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(
    variable=st.sampled_from(list(Kind)).flatmap(variables),
    other=st.sampled_from([Kind.COUNT, Kind.CATEGORICAL, Kind.BINARY, Kind.DATE]),
    around=AROUND,
    form=st.integers(0, 9),
    data=st.sampled_from(
        [
            DataSource(),
            DataSource(missing=MissingPolicy.DROP),
            DataSource(sample=5),
            DataSource(where="c::INTEGER > 0"),
            DataSource(where="c = 'nobody'"),
        ]
    ),
)
def test_no_file_makes_a_message_repeat_a_value(
    variable: Variable, other: Kind, around: tuple[str, str], form: int, data: DataSource
) -> None:
    value = around[0] + MARKER + around[1]
    schema = Schema((variable, Variable("n", other, bounds=(0, 5) if other is Kind.COUNT else None)))
    message = message_of(
        lambda: read_file_microdata(SourceFile("file.csv", contents(value)[form]), data, schema, 1, key=PUBLIC)
    )
    event("refused" if message else "read")
    for shown in (MARKER, "918273", "918,273", "9.18e+05"):
        assert shown not in (message or "")


def test_the_engines_own_checks_count_records_and_show_none(small_recipe: Any, small_data: Any) -> None:
    from sfumato.engine.recipe.checks import check_steps

    recipe = small_recipe(
        synthesis=[{"target": "income", "method": "linear_regression", "transform": "log", "predictors": ["region"]}],
        measure=[],
        threshold=[],
    )
    income = small_data.column("income").copy()
    income[3] = -NUMBER
    message = message_of(lambda: check_steps(recipe, replace(small_data, frame=small_data.frame.assign(income=income))))
    assert message is not None
    assert "1 record" in message
    assert "918273" not in message
