"""Files of SPSS, Stata and SAS: labels, codes and kinds of missing value as they were written; damaged ones refused in one line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pyreadstat
import pytest
from surveys import RECORDS, TRUST, as_sas, as_spss, as_stata, kinds, labels, missing_cells, titles, values

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.missing_codes import parse_code_range
from sfumato.engine.data.schema import Kind, MissingPolicy, Role, Schema, Variable
from sfumato.engine.errors import BadInput
from sfumato.workspace.ingest.columns import ColumnProfile, profile_columns
from sfumato.workspace.ingest.file_formats import recognise_format
from sfumato.workspace.ingest.files import find_source, read_table
from sfumato.workspace.ingest.foreign_files import table_to_bytes
from sfumato.workspace.ingest.raw_tables import ColumnDescription, RawTable
from sfumato.workspace.ingest.read_foreign import read_foreign_table
from sfumato.workspace.plan.drafts import find_draft
from sfumato.workspace.policy.disclosure import DisclosureRules
from sfumato.workspace.recipes import find_recipe
from sfumato.workspace.release.forms import DatasetForm
from sfumato.workspace.release.public_files import (
    confidential_missing_kinds,
    kind_names_by_variable,
    publishable_missing_kinds,
    released_missing_kinds,
)
from sfumato.workspace.release.tables import DatasetContext, dataset_bytes
from sfumato.workspace.service.importing import ImportSelection, import_file
from sfumato.workspace.service.prepare import StoredSource, prepare_plan, prepare_run
from sfumato.workspace.store.tables import TableStore
from sfumato.workspace.store.workspace import Workspace

Write = Callable[[Path], Path]
PROGRAMS: list[tuple[str, str, Write, DatasetForm]] = [
    ("spss", "survey.sav", as_spss, "spss"),
    ("spss", "survey.zsav", as_spss, "spss"),
    ("stata", "survey.dta", as_stata, "stata"),
    ("sas-xpt", "survey.xpt", as_sas, "sas-xpt"),
]
EACH = pytest.mark.parametrize(("program", "name", "write", "form"), PROGRAMS, ids=[one[1] for one in PROGRAMS])


def read(path: Path) -> RawTable:
    """The table of a file, read in this process."""
    content = path.read_bytes()
    return read_foreign_table(content, recognise_format(content).name)


def kinds_read(raw: RawTable, name: str, columns: list[ColumnProfile]) -> list[str | None]:
    """The kind of each missing value of a column (RECORDS,), by its label where it has one."""
    variable = next(one.variable for one in columns if one.variable.name == name)
    data = conform_to_schema(raw.frame_of_columns([name]), Schema((variable,)), MissingPolicy.KEEP, tags=raw.tags)
    if data.kinds is None:
        return [None] * raw.records
    return [variable.labels.get(kind, kind) if isinstance(kind, str) else None for kind in data.kinds[name]]


@EACH
@pytest.mark.slow
def test_values_labels_titles_and_kinds_of_missing_are_those_that_were_written(
    tmp_path: Path, program: str, name: str, write: Write, form: DatasetForm
) -> None:
    path = write(tmp_path / name)
    assert recognise_format(path.read_bytes()).name == program
    raw = read(path)
    frame, wanted, cells = raw.frame, values(), missing_cells()
    assert list(frame.columns) == list(wanted.columns)
    assert len(wanted.columns) == 60
    columns = profile_columns(raw)
    of_sas = {"a": ".A", "b": ".B", "z": ".Z"}
    for column in columns:
        here, there = frame[column.variable.name], wanted[column.variable.name]
        if column.variable.name in cells:
            own = kinds()[column.variable.name]
            said = [of_sas[letter] if program == "sas-xpt" else label for label, letter, _ in own]
            found = kinds_read(raw, column.variable.name, columns)
            assert found == [said[cell] if cell >= 0 else None for cell in cells[column.variable.name]]
            shown = cells[column.variable.name] == -1
            here, there = here[shown], there[shown]
            assert column.missing == int((~shown).sum())
        if pd.api.types.is_numeric_dtype(there):
            np.testing.assert_allclose(
                here.to_numpy(dtype=float), there.to_numpy(), rtol=1e-14 if program == "sas-xpt" else 0
            )
        else:
            assert list(here) == list(there)
        assert column.variable.title == titles()[column.variable.name]
        if program != "sas-xpt":  # SAS keeps labels of values in another file
            labelled = {f"{code:g}": label for code, label in labels().get(column.variable.name, {}).items()}
            assert {code: label for code, label in column.variable.labels.items() if code in labelled} == labelled


@EACH
@pytest.mark.slow
def test_a_file_that_goes_out_as_it_came_has_the_same_labels_codes_and_kinds_of_missing(
    tmp_path: Path, program: str, name: str, write: Write, form: DatasetForm
) -> None:
    raw = read(write(tmp_path / name))
    columns = profile_columns(raw)
    everything = Schema(tuple(one.variable for one in columns))
    came = raw.frame
    data = conform_to_schema(came, everything, MissingPolicy.KEEP, tags=raw.tags)
    content = released_bytes(data, form)
    assert content == released_bytes(data, form), "the bytes are the same at another time of day"
    again = read_foreign_table(content, recognise_format(content).name)
    went = again.frame
    for column in columns:
        one = column.variable
        assert list(came[one.name].isna()) == list(went[one.name].isna())
        assert list(came[one.name].dropna()) == list(went[one.name].dropna()), one.name
        before, after = raw.descriptions[one.name], again.descriptions[one.name]
        assert (after.title, dict(after.labels)) == (before.title, dict(before.labels))
        assert set(after.missing) == set(before.missing)
    if raw.tags is not None and again.tags is not None:
        pd.testing.assert_frame_equal(raw.tags.astype("object"), again.tags[list(raw.tags)].astype("object"))
    assert (raw.tags is None) is (again.tags is None)


@pytest.mark.parametrize("levels", [["N", "Y"], ["ash", "elm", "oak"]])
def test_labels_of_texts_go_out_to_spss(tmp_path: Path, levels: list[str]) -> None:
    """They were taken for numbers, and the release refused."""
    labels = {level: f"is {level}" for level in levels}
    path = tmp_path / "texts.sav"
    frame = pd.DataFrame({"tree": levels * 10, "age": np.arange(10.0 * len(levels))})
    pyreadstat.write_sav(frame, path, variable_value_labels={"tree": labels})
    raw = read(path)
    everything = Schema(tuple(one.variable for one in profile_columns(raw)))
    content = released_bytes(conform_to_schema(raw.frame, everything, MissingPolicy.KEEP), "spss")
    again = read_foreign_table(content, "spss")
    assert again.frame["tree"].tolist() == frame["tree"].tolist()
    assert dict(again.descriptions["tree"].labels) == labels


@pytest.mark.parametrize("width", [7, 40], ids=["short texts", "long texts"])
def test_missing_codes_of_texts_go_out_to_spss_with_their_labels(tmp_path: Path, width: int) -> None:
    """They became empty texts, and the code and its label were lost."""
    jobs = [f"{'job' * width}"[:width] + str(i % 3) for i in range(60)]
    occ = [*jobs[:40], *["Z"] * 10, *["NA"] * 5, "", *["Z"] * 4]
    frame = pd.DataFrame({"occ": occ, "age": np.arange(60.0)})
    path = tmp_path / "occ.sav"
    labels = {"Z": "unknown", "NA": "not asked"}
    pyreadstat.write_sav(frame, path, variable_value_labels={"occ": labels}, missing_ranges={"occ": ["Z", "NA"]})
    raw = read(path)
    everything = Schema(tuple(one.variable for one in profile_columns(raw)))
    content = released_bytes(conform_to_schema(raw.frame, everything, MissingPolicy.KEEP), "spss")
    (tmp_path / "out.sav").write_bytes(content)
    released, about = pyreadstat.read_sav(tmp_path / "out.sav", user_missing=True)
    assert released["occ"].tolist() == occ
    assert about.variable_value_labels == {"occ": labels}
    assert sorted(one["lo"] for one in about.missing_ranges["occ"]) == ["NA", "Z"]
    hidden, _ = pyreadstat.read_sav(tmp_path / "out.sav")
    assert hidden["occ"].replace("", np.nan).isna().sum() == 20, "any reader takes the codes for missing values"
    again = read_foreign_table(content, "spss")
    assert set(again.descriptions["occ"].missing) == {"Z", "NA"}
    assert set(raw.descriptions["occ"].missing) == {"Z", "NA"}


def test_spss_declares_three_codes_of_texts_of_eight_bytes_and_the_other_values_are_empty(tmp_path: Path) -> None:
    codes = ("a", "b", "c", "d", "not asked")
    frame = pd.DataFrame({"x": [*["tram", "bus"] * 10, *[code for code in codes for _ in range(4)]]})
    variable = Variable("x", Kind.CATEGORICAL, missing=codes)
    content = released_bytes(conform_to_schema(frame, Schema((variable,)), MissingPolicy.KEEP), "spss")
    (tmp_path / "out.sav").write_bytes(content)
    released, about = pyreadstat.read_sav(tmp_path / "out.sav", user_missing=True)
    assert sorted(one["lo"] for one in about.missing_ranges["x"]) == ["a", "b", "c"]
    assert released["x"].tolist() == [text if text not in ("d", "not asked") else "" for text in frame["x"]]


@pytest.mark.parametrize(
    ("codes", "others", "declared", "lost"),
    [
        ((-9, -8, -7, -6), [3.0, 4.0, 5.0], [(-9, -6)], ()),
        ((-9, -8, -7, 99), [3.0, 4.0, 5.0], [(-9, -9), (-8, -8), (-7, -7)], (99,)),
        (("-9 thru -6", 98, 99), [3.0, 4.0, 5.0], [(-9, -6), (98, 98)], (99,)),
        (("-9 thru -6", "98 thru 99"), [300.0, 4e3, 5e3], [(-9, 99)], ()),
    ],
)
def test_more_codes_than_spss_declares_are_a_range_or_system_missing(
    tmp_path: Path,
    codes: tuple[str | float, ...],
    others: list[float],
    declared: list[tuple[float, float]],
    lost: tuple[float, ...],
) -> None:
    """They stopped the release."""
    hidden = [float(code) for code in (-9, -8, -7, -6, 98, 99) if code in codes or isinstance(codes[0], str)]
    cells = [*hidden * 5, *others * 30]
    variable = Variable("x", Kind.CONTINUOUS, missing=codes)
    content = released_bytes(
        conform_to_schema(pd.DataFrame({"x": cells}), Schema((variable,)), MissingPolicy.KEEP), "spss"
    )
    (tmp_path / "out.sav").write_bytes(content)
    released, about = pyreadstat.read_sav(tmp_path / "out.sav", user_missing=True)
    assert sorted((one["lo"], one["hi"]) for one in about.missing_ranges["x"]) == declared
    np.testing.assert_array_equal(released["x"], [np.nan if cell in lost else cell for cell in cells])


def test_texts_longer_than_200_bytes_go_out_to_sas_whole(tmp_path: Path) -> None:
    words = ["long " * 50 + str(i % 4) for i in range(40)]
    variables = Schema((Variable("WORDS", Kind.CATEGORICAL), Variable("X", Kind.COUNT)))
    data = conform_to_schema(pd.DataFrame({"WORDS": words, "X": range(40)}), variables, MissingPolicy.KEEP)
    content = released_bytes(data, "sas-xpt")
    assert read_foreign_table(content, recognise_format(content).name).frame["WORDS"].tolist() == words


def released_bytes(data: Microdata, form: DatasetForm) -> bytes:
    """All variables of a table as a release writes those that it keeps, in their order."""
    import tempfile

    with tempfile.TemporaryDirectory() as directory:
        tables = TableStore(Path(directory) / "tables")
        stored: pa.Table = tables.read_stored_table(tables.write_microdata(data))
    # Some kinds of missing value are those of few records. A policy would hide them, and this is about how a kind is written.
    rules = DisclosureRules(smallest_cell=1)
    named = publishable_missing_kinds(confidential_missing_kinds(stored), rules)
    own = stored.select(list(data.schema.names))
    told = released_missing_kinds(own, stored, named, data.schema.names, rules, np.random.default_rng(1))
    context = DatasetContext(kinds=told, named_kinds=kind_names_by_variable(named))
    return dataset_bytes(own, data.schema, (), form, context)


def test_kinds_of_missing_are_drawn_in_their_proportions_and_a_rare_one_is_told_nowhere(tmp_path: Path) -> None:
    n = 20_000
    codes = np.repeat([1.0, -9.0, -8.0, -7.0], [n - 3_002, 2_000, 1_000, 2])
    variable = Variable("x", Kind.CONTINUOUS, missing=(-9, -8, -7))
    data = conform_to_schema(pd.DataFrame({"x": codes}), Schema((variable,)), MissingPolicy.KEEP)
    tables = TableStore(tmp_path / "tables")
    stored = tables.read_stored_table(tables.write_microdata(data))
    named = publishable_missing_kinds(confidential_missing_kinds(stored), DisclosureRules())
    assert named == {"x": {"-9": 2_000, "-8": 1_000}}
    made = pa.table({"x": pa.array([None] * n, pa.float64())})
    found = released_missing_kinds(made, stored, named, (), DisclosureRules(), np.random.default_rng(5))[
        "x"
    ].value_counts(dropna=False)
    assert abs(found["-9"] / n - 2_000 / 3_002) < 4 * 0.5 / n**0.5
    assert found.sum() == n
    assert set(found.index.dropna()) == {"-9", "-8"}
    shown = pa.table({"x": pa.array([1.0] * n)})
    assert (
        released_missing_kinds(shown, stored, named, (), DisclosureRules(), np.random.default_rng(5))["x"].isna().all()
    )


def test_ranges_of_codes_are_missing_and_nothing_beside_them() -> None:
    assert parse_code_range("lowest thru -1") == (-np.inf, -1.0)
    assert parse_code_range("2 thru x") is None
    variable = Variable("x", Kind.CONTINUOUS, missing=("-99 thru -90", 999))
    raw = pd.DataFrame({"x": [-100.0, -99.0, -95.5, -90.0, -89.9, 999.0, 99.0]})
    data = conform_to_schema(raw, Schema((variable,)), MissingPolicy.KEEP)
    assert list(data.missing_mask("x")) == [False, True, True, True, False, True, False]
    spelt = conform_to_schema(raw.astype("string"), Schema((variable,)), MissingPolicy.KEEP)
    assert list(spelt.missing_mask("x")) == list(data.missing_mask("x"))
    assert data.kinds is not None
    assert list(data.kinds["x"].astype("object").dropna()) == ["-99", "-95.5", "-90", "999"]
    assert Variable.from_table("x", variable.to_table(), "x") == variable


def guess(cells: list[object], **about: object) -> Variable:
    """What a column is taken for, of which the file says so much."""
    described = {"x": ColumnDescription(**about)}  # type: ignore[arg-type]
    return profile_columns(RawTable.from_frame(pd.DataFrame({"x": cells}), described))[0].variable


def test_a_scale_with_one_labelled_code_is_a_number_and_the_code_missing() -> None:
    scale: list[object] = [*map(float, range(0, 101, 2)), *map(float, range(0, 101, 2)), 99.0]
    found = guess(scale, labels={"99": "Refused"}, measure="scale")
    assert (found.kind, found.missing) == (Kind.COUNT, (99,))
    kept = guess(scale, labels={"98": "ninety-eight or more"}, measure="scale")
    assert (kept.kind, kept.missing) == (Kind.COUNT, ()), "a label that says something else is no missing code"


def test_labelled_codes_are_levels_and_a_likert_scale_with_labelled_ends_is_ordered() -> None:
    trust = {str(code): label for code, label in TRUST.items()}
    assert guess([1.0, 2.0, 3.0, 4.0], labels=trust).kind is Kind.CATEGORICAL
    assert guess([1.0, 2.0, 3.0, 4.0], labels=trust, measure="ordinal").kind is Kind.ORDINAL
    assert guess([1.0, 2.0, 2.0, 1.0], labels=trust).kind is Kind.CATEGORICAL, (
        "two of four levels are no binary variable"
    )
    assert guess([*map(float, range(11))], labels={"0": "not at all", "10": "wholly"}).kind is Kind.ORDINAL
    assert guess([*map(float, range(7))], measure="scale").kind is Kind.COUNT


def test_dates_of_each_program_are_dates(tmp_path: Path) -> None:
    days = pd.to_datetime(["1899-12-31", "1960-01-01", "2024-02-29"])
    since = {"spss": "1582-10-14", "sas-xpt": "1960-01-01", "stata": "1960-01-01"}
    writers = {
        "spss": (pyreadstat.write_sav, 86_400, "SDATE10"),
        "stata": (pyreadstat.write_dta, 1, "%td"),
        "sas-xpt": (pyreadstat.write_xport, 1, "DATE9."),
    }
    for program, (write, unit, form) in writers.items():
        counts = (days - pd.Timestamp(since[program])).days.to_numpy(dtype=float) * unit
        write(pd.DataFrame({"d": [*counts, np.nan]}), tmp_path / program, variable_format={"d": form})
        found = read_foreign_table((tmp_path / program).read_bytes(), program)
        assert list(found.frame["d"].dropna()) == list(days), program
        assert profile_columns(found)[0].variable.kind is Kind.DATE


@EACH
@pytest.mark.slow
def test_a_damaged_file_is_refused_in_one_line(
    tmp_path: Path, program: str, name: str, write: Write, form: DatasetForm
) -> None:
    whole = write(tmp_path / name).read_bytes()
    damaged = tmp_path / f"damaged-{name}"
    for content in (whole[: len(whole) // 2], whole[:700]):
        damaged.write_bytes(content)
        message = refusal(damaged)
        assert not message or "damaged-" in message
        assert "\n" not in message


def refusal(path: Path) -> str:
    """Why a file is refused; empty where so many records as there may be are read."""
    try:
        assert len(read_table(find_source(str(path))).frame) <= RECORDS
    except BadInput as error:
        return error.message
    return ""


@pytest.mark.slow
def test_a_file_that_says_it_is_huge_takes_no_memory_and_one_of_another_magic_is_no_table(tmp_path: Path) -> None:
    header = bytearray(as_spss(tmp_path / "survey.sav").read_bytes()[:176])
    header[80:84] = (2**31 - 1).to_bytes(4, "little")  # so many records
    hostile = tmp_path / "hostile.sav"
    hostile.write_bytes(header)
    with pytest.raises(BadInput, match=r"hostile\.sav"):
        read_table(find_source(str(hostile)))
    hostile.write_bytes(b"$FL4" + header[4:])
    with pytest.raises(BadInput, match="is not a table"):
        read_table(find_source(str(hostile)))


@pytest.mark.slow
def test_what_is_read_apart_is_what_is_read_here(tmp_path: Path) -> None:
    path = as_stata(tmp_path / "survey.dta")
    here, apart = read(path), read_table(find_source(str(path)))
    pd.testing.assert_frame_equal(apart.frame, here.frame)
    assert apart.descriptions == here.descriptions
    assert here.tags is not None
    assert apart.tags is not None
    pd.testing.assert_frame_equal(apart.tags.isna(), here.tags.isna())
    assert table_to_bytes(here) == table_to_bytes(here)


def test_a_portable_file_says_that_it_has_one_kind_of_missing(tmp_path: Path) -> None:
    pyreadstat.write_por(pd.DataFrame({"A": [1.0, 2.0]}), tmp_path / "old.por")
    found = read(tmp_path / "old.por")
    assert list(found.frame["A"]) == [1.0, 2.0]
    assert "one kind of missing" in found.notes[0]


@pytest.mark.slow
def test_respondents_are_suspected_and_the_rest_is_not(tmp_path: Path) -> None:
    columns = profile_columns(read(as_spss(tmp_path / "survey.sav")))
    out = [one.variable.name for one in columns if one.variable.role is Role.IDENTIFIER]
    assert out == ["respondent_id"]


@pytest.mark.slow
def test_a_plan_of_an_import_has_the_records_and_kinds_that_the_file_has(tmp_path: Path) -> None:
    path = as_spss(tmp_path / "survey.sav")
    found = import_file(tmp_path / "ws", str(path), "")
    with Workspace.open(tmp_path / "ws") as workspace:
        draft = find_draft(workspace, found.project_id)
        assert draft is not None
        step = '\n[[synthesis]]\ntarget = "trust_01"\nmethod = "cart"\npredictors = ["sex"]\n'
        stored = prepare_plan(workspace, draft.with_text(draft.toml + step))
        (tmp_path / "plan.toml").write_text(draft.toml + step, "utf-8")
        read_again = prepare_run(find_recipe(str(tmp_path / "plan.toml")), key=workspace.read_workspace_key())
        assert isinstance(stored.source, StoredSource)
        assert read_again.data.kinds is not None
        hashes = [workspace.tables.write_microdata(one.data) for one in (stored, read_again)]
        assert hashes[0] == hashes[1]


def test_an_import_keeps_records_that_a_plan_may_drop(tmp_path: Path) -> None:
    pd.DataFrame({"x": [1.5, None, *map(float, range(30))], "g": ["a", "b"] * 16}).to_csv(
        tmp_path / "t.csv", index=False
    )
    found = import_file(tmp_path / "ws", str(tmp_path / "t.csv"), "")
    assert (found.records, found.dropped) == (32, 0)
    with Workspace.open(tmp_path / "ws") as workspace:
        draft = find_draft(workspace, found.project_id)
        assert draft is not None
        step = '\n[[synthesis]]\ntarget = "x"\nmethod = "cart"\npredictors = ["g"]\n'
        kept = prepare_plan(workspace, draft.with_text(draft.toml + step))
        dropped = prepare_plan(
            workspace, draft.with_text(draft.toml.replace('missing = "keep"', 'missing = "drop"') + step)
        )
        assert (len(dropped.data), len(kept.data)) == (31, 32)


SHOWN = {
    "sav": {"wave": "DATE11", "start": "TIME8", "month": "MOYR6", "seen": "DATETIME17", "pay": "F8.2"},
    "dta": {"wave": "%tdD_m_Y", "start": "%tcHH:MM:SS", "month": "%tm", "seen": "%tcDDmonCCYY_HH:MM", "pay": "%10.0g"},
}


@pytest.mark.parametrize("suffix", SHOWN)
def test_dates_times_and_months_keep_the_format_that_shows_them(tmp_path: Path, suffix: str) -> None:
    """A date of two days is a date, a time and a month are numbers; each goes out in the format of the file."""
    rng = np.random.default_rng(11)
    n, day, second = 400, *((86_400, 1) if suffix == "sav" else (1, 1000))
    first = (np.datetime64("2024-03-01") - np.datetime64("1582-10-14" if suffix == "sav" else "1960-01-01")).astype(int)
    frame = pd.DataFrame(
        {
            "wave": (first + 30 * rng.integers(0, 2, n)) * float(day),
            "start": rng.integers(0, 1440, n) * 60.0 * second,
            "month": (701.0 + rng.integers(0, 30, n)) * (86_400 * 30 if suffix == "sav" else 1),
            "seen": first * 86_400.0 * second + rng.integers(0, 10**6, n) * 60.0 * second,
            "pay": rng.lognormal(7, 1, n).round(2),
        }
    )
    write, read = {
        "sav": (pyreadstat.write_sav, pyreadstat.read_sav),
        "dta": (pyreadstat.write_dta, pyreadstat.read_dta),
    }[suffix]
    path = tmp_path / f"survey.{suffix}"
    write(frame, str(path), variable_format={k: v for k, v in SHOWN[suffix].items() if k != "pay"})
    imported = import_file(tmp_path / "ws", str(path), "", None, ImportSelection(keep=tuple(frame)))
    kinds = {column.variable.name: column.variable.kind for column in imported.columns}
    assert (kinds["wave"], kinds["seen"]) == (Kind.DATE, Kind.DATE)
    assert Kind.DATE not in (kinds["start"], kinds["month"])
    (stored,) = (tmp_path / "ws").rglob("*.parquet")
    schema = Schema(tuple(column.variable for column in imported.columns))
    for form in ("spss", "stata", "csv", "parquet", "excel", "sas-xpt"):
        content = dataset_bytes(pq.read_table(stored), schema, (), form)
        if form == {"sav": "spss", "dta": "stata"}[suffix]:
            (tmp_path / "released").write_bytes(content)
    released, about = read(str(tmp_path / "released"), disable_datetime_conversion=True)
    assert about.original_variable_types == SHOWN[suffix]
    pd.testing.assert_frame_equal(released, frame, check_dtype=False)
    # the draft's lines say it, so that a run by the recipe keeps it too
    for name, shown in SHOWN[suffix].items():
        line = next(line for line in imported.recipe.splitlines() if line.startswith(f"{name} = "))
        assert (f'format = "{shown}"' in line) == (name != "pay")


@pytest.mark.parametrize("form", ["TIME", "F8.2", "time8", "%10.0g", "%tm\n", "TIME8; DROP"])
def test_only_formats_of_time_are_kept(form: str) -> None:
    with pytest.raises(BadInput, match="only dates have one"):
        Variable.from_table("start", {"kind": "count", "format": form}, "variables.start")


STATA_TIMES = {
    "week": "%tw",
    "month": "%tm",
    "quarter": "%tq",
    "half": "%th",
    "year": "%ty",
    "leap": "%tC",
    "shown": "%tmMon_CCYY",
}


@pytest.mark.parametrize("records", [2, 60], ids=["two times", "a series"])
def test_weeks_to_years_of_stata_are_numbers_however_few_and_keep_their_format(tmp_path: Path, records: int) -> None:
    """Two months became two levels, a series of months was taken for numbers of records; both lost the format."""
    frame = pd.DataFrame(
        {
            name: (np.arange(records) - 1.0) * (1.5e12 if name == "leap" else 40 if name == "year" else 3)
            for name in STATA_TIMES
        }
    )
    frame["year"] += 1940
    pyreadstat.write_dta(frame, tmp_path / "in.dta", variable_format=STATA_TIMES)
    raw = read(tmp_path / "in.dta")
    columns = profile_columns(raw)
    assert [one.variable.name for one in columns if one.is_included] == list(frame)
    kinds = {one.variable.name: one.variable.kind for one in columns}
    assert kinds == dict.fromkeys(frame, Kind.CONTINUOUS) | {"year": Kind.COUNT}
    assert all("--leave-out" in one.question for one in columns) == (records > 20)
    schema = Schema(tuple(one.variable for one in columns))
    content = released_bytes(conform_to_schema(raw.frame, schema, MissingPolicy.KEEP), "stata")
    (tmp_path / "out.dta").write_bytes(content)
    with pd.io.stata.StataReader(tmp_path / "out.dta", convert_dates=False) as reader:
        pd.testing.assert_frame_equal(reader.read(), frame, check_dtype=False)
    _, about = pyreadstat.read_dta(tmp_path / "out.dta", metadataonly=True)
    assert about.original_variable_types == STATA_TIMES
    dated = pd.read_stata(tmp_path / "out.dta", columns=["month", "quarter"])
    assert dated["month"][:2].tolist() == [pd.Timestamp("1959-10-01"), pd.Timestamp("1960-01-01")]
    assert dated["quarter"][:2].tolist() == [pd.Timestamp("1959-04-01"), pd.Timestamp("1960-01-01")]


def test_days_of_the_week_of_spss_are_levels_and_keep_their_format(tmp_path: Path) -> None:
    frame = pd.DataFrame({"day": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0] * 10})
    pyreadstat.write_sav(frame, tmp_path / "in.sav", variable_format={"day": "WKDAY9"})
    raw = read(tmp_path / "in.sav")
    variable = profile_columns(raw)[0].variable
    assert (variable.kind, variable.format) == (Kind.CATEGORICAL, "WKDAY9")
    (tmp_path / "out.sav").write_bytes(
        released_bytes(conform_to_schema(raw.frame, Schema((variable,)), MissingPolicy.KEEP), "spss")
    )
    released, about = pyreadstat.read_sav(tmp_path / "out.sav")
    assert about.original_variable_types == {"day": "WKDAY9"}
    assert released["day"].tolist() == frame["day"].tolist()
    assert Variable.from_table("day", variable.to_table(), "variables.day") == variable


SAS_SHOWN = {
    "WAVE": "DATE9.",
    "SEEN": "DATETIME18.",
    "MONTH": "MONYY7.",
    "BORN": "DDMMYYP10.",
    "START": "TIME8.",
    "PAY": "8.2",
}
SHOWN_ELSEWHERE = {
    "spss": {"WAVE": "DATE11", "SEEN": "DATETIME20", "MONTH": "SDATE10", "BORN": "EDATE10", "START": "TIME8", "PAY": "F8.2"},
    "stata": {"WAVE": "%td", "SEEN": "%tc", "MONTH": "%td", "BORN": "%td", "START": "%10.0g", "PAY": "%10.0g"},
    "sas-xpt": {"WAVE": "DATE9", "SEEN": "DATETIME18", "MONTH": "MONYY7", "BORN": "DDMMYYP10", "START": "TIME8", "PAY": None},
}  # fmt: skip


@pytest.mark.parametrize("form", SHOWN_ELSEWHERE)
def test_formats_of_sas_are_kept_and_have_their_like_in_spss_and_stata(tmp_path: Path, form: str) -> None:
    rng = np.random.default_rng(5)
    n = 300
    frame = pd.DataFrame(
        {
            "WAVE": 20_000.0 + 30 * rng.integers(0, 2, n),
            "SEEN": 20_000 * 86_400.0 + rng.integers(0, 10**6, n),
            "MONTH": 20_000.0 + rng.integers(0, 900, n),
            "BORN": rng.integers(-9_000, 9_000, n).astype(float),
            "START": rng.integers(0, 86_400, n).astype(float),
            "PAY": rng.integers(1, 10**5, n) / 4,
        }
    )
    pyreadstat.write_xport(frame, tmp_path / "in.xpt", variable_format=SAS_SHOWN)
    raw = read(tmp_path / "in.xpt")
    schema = Schema(tuple(replace(one.variable, role=Role.OTHER) for one in profile_columns(raw)))
    assert {one.name: one.format for one in schema} == SAS_SHOWN | {"PAY": ""}
    assert [one.name for one in schema if one.kind is Kind.DATE] == ["WAVE", "SEEN", "MONTH", "BORN"]
    assert Schema(tuple(Variable.from_table(one.name, one.to_table(), "x") for one in schema)) == schema
    (tmp_path / "out").write_bytes(released_bytes(conform_to_schema(raw.frame, schema, MissingPolicy.KEEP), form))
    reader = {"spss": pyreadstat.read_sav, "stata": pyreadstat.read_dta, "sas-xpt": pyreadstat.read_xport}[form]
    released, about = reader(str(tmp_path / "out"), disable_datetime_conversion=True)
    assert about.original_variable_types == SHOWN_ELSEWHERE[form]
    epoch = pd.Timestamp("1582-10-14" if form == "spss" else "1960-01-01")
    day = 86_400.0 if form == "spss" else 1.0
    for name, unit in (("WAVE", day), ("MONTH", day), ("BORN", day), ("SEEN", 1000.0 if form == "stata" else 1.0)):
        moments = pd.Timestamp("1960-01-01") + pd.to_timedelta(frame[name], "s" if name == "SEEN" else "D")
        seconds = (moments - epoch).dt.total_seconds()
        np.testing.assert_array_equal(released[name], seconds * unit if name == "SEEN" else seconds / 86_400 * unit)
    np.testing.assert_array_equal(released[["START", "PAY"]], frame[["START", "PAY"]])


@pytest.mark.parametrize(
    ("form", "spss", "sas"),
    [
        ("dd.mm.yyyy", "EDATE10", "DDMMYYP10"),
        ("d.m.yyyy", "EDATE10", "DDMMYYP10"),
        ("m/d/yyyy", "ADATE10", "MMDDYY10"),
        ("dd/mm/yyyy", "SDATE10", "DDMMYY10"),
        ("ddMONyyyy", "DATE11", "DATE9"),
        ("", "SDATE10", "YYMMDD10"),
    ],
)
def test_the_form_of_dates_in_a_text_is_the_format_of_a_program(tmp_path: Path, form: str, spss: str, sas: str) -> None:
    days = pd.Series(pd.date_range("1950-01-01", periods=40, freq="500D").astype("datetime64[s]"), name="DAY")
    data = conform_to_schema(days.to_frame(), Schema((Variable("DAY", Kind.DATE, format=form),)))
    readers = {
        "spss": (pyreadstat.read_sav, spss),
        "stata": (pyreadstat.read_dta, "%td"),
        "sas-xpt": (pyreadstat.read_xport, sas),
    }
    for program, (reader, shown) in readers.items():
        (tmp_path / program).write_bytes(released_bytes(data, program))
        released, about = reader(str(tmp_path / program))
        assert about.original_variable_types == {"DAY": shown}
        assert [str(day) for day in released["DAY"]] == [str(day.date()) for day in days], "any reader sees dates"


@pytest.mark.parametrize(("form", "shown"), [("DATETIME20.3", "DATETIME20"), ("DATETIME24.3", "DATETIME24.3")])
def test_a_format_of_sas_that_is_too_narrow_in_spss_is_its_usual_one(tmp_path: Path, form: str, shown: str) -> None:
    """SPSS needs 24 characters for 31-JUL-2019 23:59:59.123."""
    moments = pd.Series(pd.date_range("2019-07-31 23:59:59", periods=9, freq="13h").astype("datetime64[s]"), name="at")
    data = conform_to_schema(moments.to_frame(), Schema((Variable("at", Kind.DATE, format=form),)))
    (tmp_path / "out.sav").write_bytes(released_bytes(data, "spss"))
    released, about = pyreadstat.read_sav(tmp_path / "out.sav")
    assert about.original_variable_types == {"at": shown}
    assert list(pd.to_datetime(released["at"])) == list(moments)
