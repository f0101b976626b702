"""One reader for files of any size: what is read does not depend on where the bytes lie and how many rows a block has.

It is what pandas reads of the whole at once, to the last bit, or the file is refused.
"""

from __future__ import annotations

import contextlib
import csv
import io
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.schema import Kind, MissingPolicy, Schema, Variable
from sfumato.engine.data.spelling import has_decimal_commas, read_numbers
from sfumato.engine.errors import BadInput
from sfumato.engine.recipe.data_source import DataSource
from sfumato.engine.recipe.text_format import TextFormat
from sfumato.workspace.ingest import files, limits, sources, text_columns
from sfumato.workspace.ingest.files import find_source, read_file_microdata, read_frame, read_table
from sfumato.workspace.ingest.filters import find_records_where, select_where
from sfumato.workspace.ingest.holdout import add_holdout_column, split_off_controls
from sfumato.workspace.ingest.number_signs import parse_number
from sfumato.workspace.ingest.sampling import conform_sampled_values, draw_sample
from sfumato.workspace.ingest.sources import OpenedFile, SourceFile
from sfumato.workspace.service.importing import ImportSelection, import_file, preview_file

KEY = b"k" * 32
FOLDER = tempfile.TemporaryDirectory()
SCHEMA = Schema(
    (
        Variable("code", Kind.CATEGORICAL),
        Variable("visits", Kind.COUNT, missing=(-9,)),
        Variable("income", Kind.CONTINUOUS, missing=("x",)),
        Variable("town", Kind.CATEGORICAL, missing=("none",)),
    )
)
CODES = ["007", "7", "10", "9.0", "a", "é", ""]
TOWNS = ["Bath", "a, b", 'say "no"', "two\nlines", " Ayr", "1.0", "none", "NA", "", "a;b", "it's"]
INCOMES = ["1.5", "0.1", "1e6", "-3", "2.675", "123456.789012345678", "x", "", "7"]
COMMAS = ["1,5", "0,1", "-3", "2,675", "", "7"]
FORMATS = [
    None,
    TextFormat(),
    TextFormat(delimiter=";", decimal=","),
    TextFormat(delimiter="\t", missing=("NA", "7")),
    TextFormat(delimiter="|", quote="'"),
    TextFormat(delimiter=":", quote=""),
    TextFormat(delimiter=";", decimal=",", thousands=".", header=False),
]
WHERES = ["", "code <> 'a'", "visits > 0 OR town = 'Bath'", "income IS NOT NULL", "code IS DISTINCT FROM 7"]


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LARGE_FILE_MEMORY_SHARE", 0)
    monkeypatch.setattr(text_columns, "CELLS_PER_BLOCK", 20)
    monkeypatch.setattr(files, "CELLS_PER_CONFORM", 20)


def large(content: bytes, name: str = "file.csv") -> SourceFile:
    """The file, which stays where it is."""
    path = Path(FOLDER.name) / name
    path.unlink(missing_ok=True)
    path.write_bytes(content)
    found = find_source(str(path))
    assert isinstance(found.data, OpenedFile)
    return found


def in_one_block(
    source: SourceFile, schema: Schema | None = None, form: TextFormat | None = None
) -> pd.DataFrame | str:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_columns, "CELLS_PER_BLOCK", 1 << 21)
        return table_of(source, schema, form)


def table_of(source: SourceFile, schema: Schema | None = None, form: TextFormat | None = None) -> pd.DataFrame | str:
    try:
        return read_frame(source, schema, form=form)
    except BadInput as error:
        return str(error)


def by_pandas(content: bytes, form: TextFormat | None, levels: Sequence[str] = ()) -> pd.DataFrame:
    """The table that pandas reads of the whole text at once, with the numbers that texts write."""
    said = form or TextFormat()
    text = content.decode(said.encoding).removeprefix("\ufeff")
    text = text if "\n" in text else text.replace("\r", "\n")
    text = "\n".join(text.split("\n")[said.skip :])
    signs = (said.decimal, said.thousands) != (".", "")
    quoting = {"quotechar": said.quote or '"', "quoting": csv.QUOTE_MINIMAL if said.quote else csv.QUOTE_NONE}
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=said.delimiter, skipinitialspace=said.trim, **quoting)  # type: ignore[arg-type]
    names = next(row for row in reader if row or not form)
    names = [name.strip() if said.trim else name for name in names]
    names = names if said.header else [f"column_{i + 1}" for i in range(len(names))]
    gaps = ["", *said.missing]
    found = pd.read_csv(
        io.BytesIO(text.encode()),
        sep=said.delimiter,
        header=0 if said.header else None,
        names=names,
        dtype=dict.fromkeys(names if signs or said.trim else [name for name in levels if name in names], "str"),
        keep_default_na=False,
        na_values=gaps,
        skipinitialspace=said.trim,
        low_memory=False,
        index_col=False,
        skip_blank_lines=len(names) > 1,
        **quoting,
    )
    columns = {name: found[name] for name in names}
    for name, values in columns.items():
        if isinstance(values.dtype, pd.StringDtype):
            plain = values.str.strip() if said.trim else values
            columns[name] = plain.mask(plain.isin(gaps))
    for name in [name for name in names if name not in levels]:
        if signs or said.trim:
            columns[name] = by_signs(columns[name], said)
        elif form is None and has_decimal_commas(columns[name]):
            columns[name] = read_numbers(columns[name])
    return pd.DataFrame(columns)


def by_signs(values: pd.Series, form: TextFormat) -> pd.Series:
    """Numbers where every cell that there is writes one, whole ones where none is missing and all are below 2^53."""
    cells = [None if pd.isna(cell) else parse_number(cell, form.decimal, form.thousands) for cell in values]
    if all(pd.isna(cell) for cell in values) or any(
        one is None and not pd.isna(cell) for one, cell in zip(cells, values, strict=True)
    ):
        return values
    found = pd.Series([np.nan if one is None else one for one in cells], dtype="float64")
    whole = not found.hasnans and bool((found % 1 == 0).all()) and found.abs().max() < 2**53
    return found.astype("int64") if whole else found


def of_the_whole(frame: pd.DataFrame, sha256: str, data: DataSource, schema: Schema) -> Microdata | str:
    """The records of a frame, all columns of all records at once."""
    try:
        frame = select_where(frame, data.where).reset_index(drop=True) if data.where else frame
        found = conform_to_schema(frame, add_holdout_column(schema, data), data.missing)
        if data.sample is not None:
            rows = draw_sample(len(found), sha256, data, 5, KEY)
            sample = found.frame.iloc[rows].reset_index(drop=True)
            columns = {v.name: conform_sampled_values(sample[v.name], v) for v in found.schema}
            kinds = None if found.kinds is None else found.kinds.iloc[rows].reset_index(drop=True)
            found = Microdata(found.schema, pd.DataFrame(columns), found.origin, found.dropped, kinds=kinds)
        return found if data.holdout is None else split_off_controls(found, schema, sha256, data, 5, KEY)
    except BadInput as error:
        return str(error)


def csv_bytes(rows: Sequence[Sequence[str]], form: TextFormat | None, ends: str) -> bytes:
    said = form or TextFormat()
    out = io.StringIO(newline="")
    quoting = csv.QUOTE_MINIMAL if said.quote else csv.QUOTE_NONE
    writer = csv.writer(
        out, delimiter=said.delimiter, quotechar=said.quote or None, quoting=quoting, lineterminator=ends
    )
    writer.writerows(rows)
    return out.getvalue().encode()


def outcome(source: SourceFile, data: DataSource, schema: Schema = SCHEMA) -> Microdata | str:
    try:
        return read_file_microdata(source, data, schema, 5, key=KEY)
    except BadInput as error:
        return str(error)


def assert_same(found: Microdata | str, expected: Microdata | str) -> None:
    if isinstance(found, str) or isinstance(expected, str):
        assert isinstance(found, str)
        assert isinstance(expected, str)  # of several faults another one may be told first
        return
    assert found.sha256 == expected.sha256
    assert found.dropped == expected.dropped
    assert found.schema == expected.schema
    pd.testing.assert_frame_equal(found.frame, expected.frame, check_exact=True)
    assert (found.kinds is None) == (expected.kinds is None)
    if found.kinds is not None:
        pd.testing.assert_frame_equal(found.kinds, expected.kinds)
    if expected.controls is not None:
        assert found.controls is not None
        assert_same(found.controls.without_controls, expected.controls.without_controls)


@st.composite
def cases(draw: st.DrawFn) -> tuple[bytes, TextFormat | None, DataSource]:
    form = draw(st.sampled_from(FORMATS))
    plain = form is not None and not form.quote
    towns = ["Bath", "Ayr", "", "none"] if plain else TOWNS
    incomes = COMMAS if form is not None and form.decimal == "," else INCOMES
    row = st.tuples(
        st.sampled_from(CODES),
        st.sampled_from(["0", "3", "12", "-9", "4.0", ""]),
        st.sampled_from(incomes),
        st.sampled_from(towns),
    )
    rows = draw(st.lists(row, min_size=1, max_size=30))
    header = [("code", "visits", "income", "town")] if form is None or form.header else []
    ends = draw(st.sampled_from(["\n", "\r\n"]))
    if ends == "\r\n":
        rows = [tuple(cell.replace("\n", " ") for cell in row) for row in rows]
    content = draw(st.sampled_from([b"", b"\xef\xbb\xbf"])) + csv_bytes([*header, *rows], form, ends)
    data = DataSource(
        where=draw(st.sampled_from(WHERES)),
        sample=draw(st.sampled_from([None, 1, 2, 5])),
        missing=draw(st.sampled_from(list(MissingPolicy))),
        holdout=draw(st.sampled_from([None, None, 0.5])),
        format=form,
    )
    return content, form, data


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(cases())
def test_the_records_are_those_of_the_whole(case: tuple[bytes, TextFormat | None, DataSource]) -> None:
    content, form, data = case
    schema = SCHEMA
    if form is not None and not form.header:
        names = [f"column_{i + 1}" for i in range(4)]
        schema = Schema(tuple(Variable(name, v.kind, missing=v.missing) for name, v in zip(names, SCHEMA, strict=True)))
        data = DataSource("", "", data.sample, data.missing, data.holdout, form)
    levels = [v.name for v in schema if v.kind.has_levels]
    expected = of_the_whole(by_pandas(content, form, levels), SourceFile("", content).sha256, data, schema)
    assert_same(outcome(large(content), data, schema), expected)


RAW = st.lists(
    st.sampled_from(
        [
            "a",
            "1",
            "01",
            ",",
            ",",
            "\n",
            "\n",
            '"',
            '"',
            '""',
            " ",
            "\t",
            "\r",
            "\r\n",
            "\v",
            "\xa0",
            "'",
            ";",
            "é",
            "#",
            "\\",
            "\x1c",
        ]
    ),
    max_size=25,
).map("".join)


@pytest.mark.slow
@settings(deadline=None)
@given(
    RAW,
    st.sampled_from(
        [None, TextFormat(), TextFormat(quote=""), TextFormat(quote="'"), TextFormat(delimiter=";", header=False)]
    ),
)
@example(' "q",b', None)
@example('1, "q"', None)
@example('1," ""q"""', None)
@example('"q" ,1', None)
@example('"a\r\nb",1', None)
def test_whatever_the_bytes_are_they_are_read_alike_or_refused(text: str, form: TextFormat | None) -> None:
    head = "a;b\n" if form is not None and form.delimiter == ";" else "a,b\n"
    content = (head + text).encode()
    found, whole = table_of(large(content), form=form), in_one_block(SourceFile("file.csv", content), form=form)
    if isinstance(found, str):
        assert found == whole
    else:
        pd.testing.assert_frame_equal(found, whole, check_exact=True)
        pd.testing.assert_frame_equal(found, by_pandas(content, form), check_exact=True)


NUMBERS = [
    *["0", "-0", "-00", "+1", "07", "7", "7.0", "-1", "1.5", "-0.0", "1e3", " 2", "2 ", "", "NA", "inf", "-inf", "nan"],
    *["9007199254740993", "-9007199254740993", "9223372036854775807", "9223372036854775808", "18446744073709551615"],
    *["18446744073709551616", "0.1", "123456789.123456789", "True", "False", "TRUE", "1,5", "1,234", "2024-01-02", "x"],
]
FEW = st.lists(st.sampled_from(NUMBERS), min_size=1, max_size=4, unique=True)
NUMBER_FORMATS = [
    *[
        None,
        TextFormat(),
        TextFormat(missing=("7", "NA")),
        TextFormat(trim=True, missing=("-1",)),
        TextFormat(quote="'"),
    ],
    *[TextFormat(delimiter=";", decimal=","), TextFormat(skip=2), TextFormat("utf-16"), TextFormat("latin-1", "\t")],
    *[TextFormat(delimiter=" "), TextFormat(header=False, missing=("0",)), TextFormat(decimal=",", thousands=".")],
]


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.data(), st.sampled_from(NUMBER_FORMATS), st.sampled_from(["\n", "\r\n", "\r"]), st.booleans(), st.booleans())
def test_what_a_column_is_does_not_depend_on_where_its_values_stand(
    data: st.DataObject, form: TextFormat | None, ends: str, levels: bool, whole: bool
) -> None:
    """Each part of a column has its own few texts, so that parts look like other kinds than the whole is of."""
    columns = 1 if form is not None and data.draw(st.booleans()) and form.delimiter == "," else 3
    parts = data.draw(st.lists(st.tuples(*[FEW] * columns), min_size=1, max_size=4))
    rows = [
        [data.draw(st.sampled_from(part[j])) for j in range(columns)]
        for part in parts
        for _ in range(data.draw(st.integers(1, 8)))
    ]
    names = ["a", "b", "c"][:columns]
    content = csv_bytes([names, *rows] if form is None or form.header else rows, form, ends)
    if form is not None and form.skip:
        content = b"by us\n, and others\n" + content
    if form is not None:
        content = content.decode().encode(form.encoding)
    schema = Schema((Variable("b", Kind.CATEGORICAL),)) if levels else None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_columns, "CELLS_PER_BLOCK", 8 * columns)
        patch.setattr(limits, "COLUMN_BUFFER_SHARE", 1.0 if whole else 0.0)
        found = table_of(large(content), schema, form)
    one = in_one_block(SourceFile("file.csv", content), schema, form)
    if isinstance(found, str):
        assert found == one
        return
    apart = form is not None and form.delimiter == " "
    expected = [one, *([] if apart else [by_pandas(content, form, ["b"] if levels else [])])]
    for other in expected:
        assert isinstance(other, pd.DataFrame)
        pd.testing.assert_frame_equal(found, other, check_exact=True)
        for name in found:
            if found[name].dtype.kind == "f":
                assert np.array_equal(np.signbit(found[name]), np.signbit(other[name]))


def frame_of(records: int) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    some = rng.random(records) < 0.1
    return pd.DataFrame(
        {
            "code": rng.choice(["007", "7", "a"], records),
            "visits": pd.array(np.where(some, -9, rng.poisson(3, records))),
            "income": np.where(some, np.nan, rng.normal(0, 1, records)),
            "town": pd.Categorical(rng.choice(["Bath", "Ayr", "none"], records)),
            "born": pd.date_range("1950-01-01", periods=records),
        }
    )


@pytest.mark.slow
@pytest.mark.parametrize("where", ["", "visits > 1 AND town <> 'Ayr'", "COLUMNS(*) IS NOT NULL"])
@pytest.mark.parametrize("missing", list(MissingPolicy))
def test_the_records_of_a_parquet_file_are_those_of_the_whole(where: str, missing: MissingPolicy) -> None:
    content = frame_of(300).to_parquet(index=False)
    schema = Schema((*SCHEMA, Variable("born", Kind.DATE)))
    data = DataSource(where=where, sample=20, missing=missing, holdout=0.3)
    found = outcome(large(content, "file.parquet"), data, schema)
    whole = pd.read_parquet(io.BytesIO(content))
    assert_same(found, of_the_whole(whole, SourceFile("", content).sha256, data, schema))
    assert isinstance(found, str) == (missing is MissingPolicy.REFUSE)


@pytest.mark.slow
def test_what_a_sample_is_made_of_is_the_whole_file() -> None:
    """Levels, kinds of numbers and decimal commas are found in all records, though few are sampled."""
    rows = "".join(f"{i};{i},5;{i}\n" for i in range(2000))
    content = ("a;b;c\n" + rows + "x;1;0.5\n").encode()
    schema = Schema((Variable("a", Kind.CATEGORICAL), Variable("b", Kind.CONTINUOUS), Variable("c", Kind.CATEGORICAL)))
    found = outcome(large(content), DataSource(sample=7), schema)
    assert isinstance(found, Microdata)
    whole = by_pandas(content, TextFormat(delimiter=";"), ["a", "c"])
    whole["b"] = whole["b"].str.replace(",", ".").astype(float)
    assert_same(found, of_the_whole(whole, SourceFile("", content).sha256, DataSource(sample=7), schema))
    other = read_file_microdata(large(content), DataSource(sample=7), schema, 6, key=KEY)
    assert other.sha256 != found.sha256


@pytest.mark.slow
@pytest.mark.parametrize(
    "selection", [ImportSelection(), ImportSelection(where="visits >= 0", sample=50, leave_out=("income",))]
)
def test_an_import_stores_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, selection: ImportSelection
) -> None:
    file = tmp_path / "people.csv"
    frame_of(400).to_csv(file, index=False, sep=";", decimal=",")
    stored = {}
    for share in (0.0, 1.0):
        monkeypatch.setattr(limits, "LARGE_FILE_MEMORY_SHARE", share)
        monkeypatch.setattr("sfumato.workspace.store.workspace.future_workspace_key", lambda _: KEY)
        monkeypatch.setattr(text_columns, "CELLS_PER_BLOCK", 1 << 21 if share else 20)
        assert isinstance(find_source(str(file)).data, OpenedFile) == (share == 0)
        made = import_file(tmp_path / f"w{share}", str(file), "", selection=selection)
        shown = preview_file(str(file), selection=selection)
        tables = {path.name: path.read_bytes() for path in (tmp_path / f"w{share}" / "tables").iterdir()}
        stored[share] = (made.recipe, made.columns, made.records, made.dropped, made.detection, shown, tables)
    assert stored[0.0] == stored[1.0]


def test_a_file_that_changes_is_not_read_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.csv"
    path.write_text("a,b\n1,2\n", "utf-8")
    source = find_source(str(path))
    monkeypatch.setattr(limits, "COLUMN_BUFFER_SHARE", 0)
    table = read_table(source)
    path.write_text("a,b\n1,3\n", "utf-8")
    for read in (lambda: table.frame, lambda: read_frame(source), lambda: source.content):
        with pytest.raises(BadInput, match="changed while it was read"):
            read()


def test_what_is_opened_is_read_whatever_its_name_says_then(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("a,b\n1,2\n", "utf-8")
    (tmp_path / "link.csv").symlink_to(path)
    (tmp_path / "evil.csv").write_text("a,b\n6,6\n", "utf-8")
    source = find_source(str(tmp_path / "link.csv"))
    (tmp_path / "link.csv").unlink()
    (tmp_path / "link.csv").symlink_to(tmp_path / "evil.csv")
    assert read_table(source).frame.to_dict("list") == {"a": [1], "b": [2]}


@pytest.mark.parametrize(
    ("where", "read"),
    [
        ("a > 1", ["a"]),
        ("B > 1 AND a = 2", ["a", "b"]),
        ("records.b > 1", ["a", "b", "c"]),
        ("1 = 1", []),
        ("records IS NOT NULL", ["a", "b", "c"]),
        ("COLUMNS(*) > 0", ["a", "b", "c"]),
        ("#1 > 0", ["a", "b", "c"]),
        ("len(list_filter([1], x -> x > c)) > 0", ["a", "b", "c"]),
    ],
)
def test_a_filter_is_shown_the_columns_that_it_may_read(where: str, read: list[str]) -> None:
    frame, asked = pd.DataFrame({"a": [1], "b": [2], "c": [3]}), []
    with contextlib.suppress(BadInput):
        find_records_where(["a", "b", "c"], lambda names: asked.append(list(names)) or frame[list(names)], where)  # type: ignore[func-returns-value]
    assert asked == [read]


def test_a_file_below_the_limit_is_held_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    (tmp_path / "a.csv").write_text("a,b\n1,2\n", "utf-8")
    assert find_source(str(tmp_path / "a.csv")) == SourceFile("a.csv", b"a,b\n1,2\n")


@pytest.mark.parametrize("form", [None, TextFormat(), TextFormat(delimiter=";", decimal=",")])
def test_a_byte_that_no_text_has_is_refused_wherever_it_stands(form: TextFormat | None) -> None:
    content = b"a,b\n" + b"1,2\n" * 20_000 + b"1,\0\n"
    for source in (SourceFile("file.csv", content), large(content)):
        assert "bytes that no text has" in str(table_of(source, form=form))


@pytest.mark.slow
@pytest.mark.parametrize("last", ["plain", "café", "café in latin-1"])
def test_the_encoding_of_a_large_file_is_found_in_all_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, last: str
) -> None:
    path = tmp_path / "a.csv"
    encoding = "latin-1" if "latin-1" in last else "utf-8"
    path.write_bytes(("a,b\n" + "1,x\n" * 3000 + f"1,{last}\n").encode(encoding))
    monkeypatch.setattr(sources, "SOURCE_HEAD_BYTES", 2000)
    monkeypatch.setattr("sfumato.workspace.ingest.text_files.MAX_ROW_BYTES", 1000)
    for share in (0, 1):
        monkeypatch.setattr(limits, "LARGE_FILE_MEMORY_SHARE", share)
        found = preview_file(str(path))
        assert found.detection is not None
        assert found.detection.reasons[0].value == ("utf-8" if encoding == "utf-8" else "windows-1252")
        kinds = [(one.variable.kind, one.distinct, one.missing) for one in found.columns]
        assert kinds == [(Kind.BINARY, 1, 0), (Kind.BINARY, 2, 0)]


@pytest.mark.parametrize("first", ["18446744073709551616", "x"])
@pytest.mark.parametrize("form", [None, TextFormat(missing=("NA",))])
def test_an_empty_cell_is_missing_whatever_comes_first(first: str, form: TextFormat | None) -> None:
    """pandas keeps it as an empty text where a number that is too large is the first that is none."""
    rows = [first, "", "x", "NA", "18446744073709551616"]
    content = ("a,b\n" + "".join(f"{cell},1\n" for cell in rows)).encode()
    for source in (large(content), SourceFile("file.csv", content)):
        assert read_frame(source, form=form)["a"].isna().tolist() == [
            cell in ("", *(form.missing if form else ())) for cell in rows
        ]
