"""Dates as offices spell them are dates: found by all values of a column, released as the file writes them."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from io import BytesIO
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from sfumato.engine.data.microdata import conform_to_schema
from sfumato.engine.data.schema import Kind, MissingPolicy, Schema, Variable
from sfumato.engine.errors import BadInput
from sfumato.workspace.ingest.columns import ColumnProfile
from sfumato.workspace.ingest.date_votes import vote_on_dates
from sfumato.workspace.ingest.files import find_source, read_table
from sfumato.workspace.plan.drafts import find_draft
from sfumato.workspace.release.tables import dataset_bytes
from sfumato.workspace.service.importing import ImportSelection, import_file, preview_file
from sfumato.workspace.service.prepare import prepare_plan
from sfumato.workspace.store.workspace import Workspace

N = 300
RNG = np.random.default_rng(46)
DAYS = [date(1921, 1, 1) + timedelta(days=int(days)) for days in RNG.integers(0, 36_000, N)]
RECENT = [date(2014, 1, 1) + timedelta(days=int(days)) for days in RNG.integers(0, 3_000, N)]
MOMENTS = [datetime(1994, 1, 1) + timedelta(minutes=int(m)) for m in RNG.integers(0, 10**7, N)]


def cells_of(directives: str, days: list[date] | list[datetime], capitals: str = "") -> list[str]:
    texts = [day.strftime(directives) for day in days]
    return [text.upper() for text in texts] if capitals else texts


SPELLINGS = {
    "dd-mm-yyyy": cells_of("%d-%m-%Y", DAYS),
    "dd.mm.yyyy": cells_of("%d.%m.%Y", DAYS),
    "d.m.yyyy": cells_of("%-d.%-m.%Y", DAYS),
    "dd/mm/yyyy": cells_of("%d/%m/%Y", DAYS),
    "m/d/yyyy": cells_of("%-m/%-d/%Y", DAYS),
    "mm/dd/yyyy": cells_of("%m/%d/%Y", DAYS),
    "yyyy/mm/dd": cells_of("%Y/%m/%d", DAYS),
    "yyyy.m.d": cells_of("%Y.%-m.%-d", DAYS),
    "dd/mm/yy": cells_of("%d/%m/%y", RECENT),
    "mm/dd/yy": cells_of("%m/%d/%y", RECENT),
    "yy-mm-dd": cells_of("%y-%m-%d", RECENT),
    "ddMONyyyy": cells_of("%d%b%Y", DAYS, "capitals"),
    "d-Mon-yyyy": cells_of("%-d-%b-%Y", DAYS),
    "dd Mon yy": cells_of("%d %b %y", RECENT),
    "Mon d yyyy": cells_of("%b %-d %Y", DAYS),
    "MON-dd-yy": cells_of("%b-%d-%y", RECENT, "capitals"),
    "yyyymmdd": cells_of("%Y%m%d", DAYS),
    "m/d/yyyy h:MM AM": cells_of("%-m/%-d/%Y %-I:%M %p", MOMENTS),
    "dd.mm.yyyy HH:MM": cells_of("%d.%m.%Y %H:%M", MOMENTS),
    "d.m.yyyy H:MM:SS": cells_of("%-d.%-m.%Y %-H:%M:%S", MOMENTS),
    "ddMONyyyy:HH:MM:SS": cells_of("%d%b%Y:%H:%M:%S", MOMENTS, "capitals"),
    "yyyy-mm-ddTHH:MM": cells_of("%Y-%m-%dT%H:%M", MOMENTS),
    "": cells_of("%Y-%m-%d", DAYS),
}
"""By form the cells of a column."""


def write_column(folder: Path, cells: list[str], name: str = "day", sep: str = ";") -> Path:
    """A file with the column, and another one that is no date."""
    path = folder / "table.csv"
    lines = [f"{name}{sep}age", *(f"{cell}{sep}{20 + i % 60}" for i, cell in enumerate(cells))]
    path.write_text("\n".join([*lines, ""]), "utf-8")
    return path


def column_of(folder: Path, cells: list[str], name: str = "day", kinds: tuple[str, ...] = ()) -> ColumnProfile:
    found = preview_file(str(write_column(folder, cells, name)), {}, ImportSelection(kinds=kinds))
    return found.columns[0]


@pytest.mark.parametrize("form", SPELLINGS)
def test_a_spelling_is_found_and_each_value_is_released_as_the_file_writes_it(tmp_path: Path, form: str) -> None:
    path = write_column(tmp_path, SPELLINGS[form])
    imported = import_file(tmp_path / "ws", str(path), "")
    variable = imported.columns[0].variable
    assert (variable.kind, variable.format) == (Kind.DATE, form)
    (stored,) = (tmp_path / "ws").rglob("*.parquet")
    table = pa.parquet.read_table(stored)
    assert pa.types.is_timestamp(table.schema.field("day").type)
    schema = Schema(tuple(column.variable for column in imported.columns))
    assert dataset_bytes(table, schema, (), "csv") == path.read_bytes().replace(b";", b",")
    # the recipe's line says the form, so that the file is read alike again
    assert (f'format = "{form}"' in imported.recipe) == bool(form)
    again = conform_to_schema(read_table(find_source(str(path)), schema).frame, schema)
    assert again.frame["day"].tolist() == table.to_pandas()["day"].tolist()


def test_a_comma_before_the_year_is_kept(tmp_path: Path) -> None:
    cells = cells_of('"%b %d, %Y"', DAYS)
    found = column_of(tmp_path, cells)
    assert (found.variable.kind, found.variable.format) == (Kind.DATE, "Mon dd, yyyy")
    words = column_of(
        tmp_path, [f"{word} {i % 28 + 1} 20{i % 9}1" for i, word in enumerate(("Box", "Set", "Tor") * 99)]
    )
    assert words.variable.kind is Kind.CATEGORICAL, "three letters that name no month"


@pytest.mark.parametrize("form", ["dd.mm.yyyy", "m/d/yyyy h:MM AM", "ddMONyyyy", "yyyymmdd"])
@pytest.mark.parametrize("file", ["parquet", "xlsx", "sav", "dta", "arrow"])
def test_formats_with_dates_have_dates(form: str, file: str) -> None:
    schema = Schema((Variable("day", Kind.DATE, format=form),))
    data = conform_to_schema(pd.DataFrame({"day": SPELLINGS[form]}), schema)
    content = dataset_bytes(
        pa.Table.from_pandas(data.frame), schema, (), "arrow" if file == "arrow" else file_form(file)
    )
    path = BytesIO(content)
    if file == "parquet":
        assert pd.read_parquet(path)["day"].tolist() == data.frame["day"].tolist()
    if file == "xlsx":
        assert pd.read_excel(path)["day"].tolist() == data.frame["day"].tolist()
    if file == "dta":
        assert pd.read_stata(path)["day"].tolist() == data.frame["day"].tolist()


def file_form(suffix: str) -> str:
    return {"xlsx": "excel", "sav": "spss", "dta": "stata"}.get(suffix, suffix)


@pytest.mark.parametrize("directives", ["%d/%m/%Y", "%d.%m.%Y", "%d-%m-%y", "%d/%m/%Y %H:%M"])
def test_days_and_months_that_both_fit_are_asked_about(tmp_path: Path, directives: str) -> None:
    low = [datetime(2001 + i % 20, 1 + i % 12, 1 + i * 7 % 12) for i in range(60)]
    found = column_of(tmp_path, cells_of(directives, low))
    assert found.variable.format.startswith("dd")
    other = next(text for text in found.other_formats if text.startswith("mm"))
    assert f"--as day=date:{other}" in found.question
    chosen = column_of(tmp_path, cells_of(directives, low), kinds=(f"day=date:{other}",))
    assert (chosen.variable.format, chosen.question) == (other, "")
    # one value decides, wherever it stands: the whole column votes
    sure = column_of(tmp_path, cells_of(directives, [*low, datetime(2003, 12, 31)]))
    assert (sure.variable.format[:2], [f for f in sure.other_formats if f.startswith("mm")]) == ("dd", [])


def test_the_other_dates_of_the_file_say_what_comes_first(tmp_path: Path) -> None:
    low = [date(2001 + i % 20, 1 + i % 12, 1 + i * 7 % 12) for i in range(60)]
    lines = [f"{a:%m/%d/%Y},{b:%m/%d/%Y}" for a, b in zip(low, DAYS[:30] * 2, strict=True)]
    path = tmp_path / "two.csv"
    path.write_text("\n".join(["seen,day", *lines, ""]))
    seen, day = preview_file(str(path)).columns
    assert (seen.variable.format, day.variable.format, day.question) == ("mm/dd/yyyy", "mm/dd/yyyy", "")
    assert "--as seen=date:dd/mm/yyyy" in seen.question


NO_DATES = {
    "versions": [f"{1 + i % 3}.{i % 12}.{2000 + i}" if i % 3 else f"{i % 7}.{i % 40}" for i in range(90)],
    "versions of three parts": [f"{1 + i % 3}.{i % 40}.{i % 90}" for i in range(90)],
    "telephone numbers": [f"0{30 + i % 9}/{4_000_000 + 7919 * i}" for i in range(90)],
    "telephone numbers with dots": [f"0{1 + i % 9}.{10 + i % 80}.{10 + 7 * i % 90}" for i in range(90)],
    "codes of five digits": [f"{10_000 + 917 * i}" for i in range(90)],
    "codes of eight digits": [f"{20_000_000 + 7919 * i}" for i in range(90)],
    "fractions": [f"{1 + i % 5}/{2 + i % 9}" for i in range(90)],
    "ratios of three": [f"{1 + i % 5}/{2 + i % 40}/{20 + i % 40}" for i in range(90)],
    "internet addresses": [f"10.{i % 200}.{i * 3 % 250}.{i % 9}" for i in range(90)],
    "mixed orders": [f"{day:%d/%m/%Y}" if i % 2 else f"{day:%m/%d/%Y}" for i, day in enumerate(DAYS)],
    "mixed signs": [f"{day:%d.%m.%Y}" if i % 2 else f"{day:%d/%m/%Y}" for i, day in enumerate(DAYS)],
    "dates and words": [f"{day:%d.%m.%Y}" if i % 2 else f"in summer {i}" for i, day in enumerate(DAYS)],
    "amounts": [f"{1_000_000 + 91 * i}" for i in range(90)],
}


@pytest.mark.parametrize("cells", NO_DATES.values(), ids=NO_DATES)
def test_columns_that_only_resemble_dates_are_none(tmp_path: Path, cells: list[str]) -> None:
    assert column_of(tmp_path, cells).variable.kind is not Kind.DATE


def test_codes_of_a_classification_are_no_dates_of_two_digits(tmp_path: Path) -> None:
    cells = [f"{1 + i % 9:02}.{1 + i % 12:02}.{i % 30:02}" for i in range(90)]
    assert column_of(tmp_path, cells, "nace").variable.kind is Kind.CATEGORICAL
    assert column_of(tmp_path, cells, "day").variable.kind is Kind.DATE, "the positive control"


def test_numbers_that_are_all_dates_are_asked_about(tmp_path: Path) -> None:
    found = column_of(tmp_path, SPELLINGS["yyyymmdd"])
    assert "--as day=count reads them as numbers" in found.question
    chosen = column_of(tmp_path, SPELLINGS["yyyymmdd"], kinds=("day=count",))
    assert (chosen.variable.kind, chosen.variable.format) == (Kind.COUNT, "")
    # one that is no day of the calendar says that they are numbers
    assert column_of(tmp_path, [*SPELLINGS["yyyymmdd"], "20220231"]).variable.kind is Kind.COUNT


def test_signs_of_no_value_are_missing_and_mistyped_dates_are_not(tmp_path: Path) -> None:
    cells = [*SPELLINGS["dd.mm.yyyy"], *["unbekannt"] * 3, *["00.00.0000"] * 2, "31.12.9999", ""]
    found = column_of(tmp_path, cells)
    assert (found.variable.kind, found.variable.format) == (Kind.DATE, "dd.mm.yyyy")
    assert set(found.variable.missing) == {"unbekannt", "00.00.0000", "31.12.9999"}
    assert found.missing == 7
    assert '"unbekannt"' in found.question
    levels = column_of(tmp_path, cells, kinds=("day=categorical",))
    assert (levels.variable.missing, levels.variable.format) == ((), "")
    numbers = column_of(tmp_path, [*SPELLINGS["yyyymmdd"], *["99999999"] * 4, "0"])
    assert (numbers.variable.format, set(numbers.variable.missing)) == ("yyyymmdd", {99_999_999, 0})
    mistyped = column_of(tmp_path, [*SPELLINGS["dd.mm.yyyy"], "31.04.1966"])
    assert mistyped.variable.kind is Kind.CATEGORICAL
    assert "all values but 1 are dates written dd.mm.yyyy" in mistyped.question
    assert "31.04.1966" not in mistyped.question, "a value of a person is not shown"


def test_records_with_a_sign_keep_no_value_and_dates_go_out_as_they_came(tmp_path: Path) -> None:
    path = write_column(tmp_path, [*SPELLINGS["yyyymmdd"][:200], "", "99999999", *SPELLINGS["yyyymmdd"][200:]])
    columns = preview_file(str(path)).columns
    schema = Schema(tuple(column.variable for column in columns))
    data = conform_to_schema(read_table(find_source(str(path)), schema).frame, schema, MissingPolicy.KEEP)
    content = dataset_bytes(pa.Table.from_pandas(data.frame), schema, (), "csv")
    expected = path.read_bytes().replace(b"99999999", b"").replace(b";", b",")
    assert content == expected


def test_two_digits_of_a_year_are_asked_about_where_they_may_be_of_two_centuries(tmp_path: Path) -> None:
    assert column_of(tmp_path, SPELLINGS["dd/mm/yy"]).question == ""
    spread = column_of(tmp_path, cells_of("%d/%m/%y", DAYS))
    assert "read as 1969 to 2068; --as day=date:dd/mm/yy@1930" in spread.question
    assert "1969 to 2068" in column_of(tmp_path, SPELLINGS["dd/mm/yy"], "date_of_birth").question
    path = write_column(tmp_path, cells_of("%d/%m/%y", DAYS))
    import_file(tmp_path / "ws", str(path), "", None, ImportSelection(kinds=("day=date:dd/mm/yy@1921",)))
    (stored,) = (tmp_path / "ws").rglob("*.parquet")
    assert pa.parquet.read_table(stored).to_pandas()["day"].dt.date.tolist() == DAYS


@pytest.mark.parametrize("name", ["born", "dob", "Geburtsdatum", "date_naissance", "birthDate"])
@pytest.mark.parametrize("form", ["", "dd.mm.yyyy"])
def test_full_dates_of_birth_are_asked_about(tmp_path: Path, name: str, form: str) -> None:
    found = column_of(tmp_path, SPELLINGS[form], name)
    assert f"full dates of birth single people out; --leave-out {name}" in found.question
    kept = preview_file(str(write_column(tmp_path, SPELLINGS[form], name)), {}, ImportSelection(keep=(name,))).columns[
        0
    ]
    assert (kept.question, kept.variable.kind) == ("", Kind.DATE)
    assert "birth" not in column_of(tmp_path, SPELLINGS[form], "admitted").question


@pytest.mark.parametrize("text", ["day=date:", "day=date:tt.mm.jjjj", "day=count:dd.mm.yyyy", "day=date:dd.mm"])
def test_a_form_that_is_none_names_the_option(tmp_path: Path, text: str) -> None:
    with pytest.raises(BadInput) as caught:
        column_of(tmp_path, SPELLINGS["dd.mm.yyyy"], kinds=(text,))
    assert caught.value.place == "--as"


def test_values_that_are_no_dates_of_the_form_are_counted_and_not_shown(tmp_path: Path) -> None:
    path = write_column(tmp_path, SPELLINGS["dd.mm.yyyy"])
    with pytest.raises(BadInput, match="records are not a date; dates are written mm/dd/yyyy") as caught:
        import_file(tmp_path / "ws", str(path), "", None, ImportSelection(kinds=("day=date:mm/dd/yyyy",)))
    assert "." + str(DAYS[0].year) not in caught.value.message
    assert not (tmp_path / "ws").exists()


def test_a_file_from_elsewhere_may_write_the_same_dates_in_iso_8601() -> None:
    schema = Schema((Variable("day", Kind.DATE, format="dd.mm.yyyy"),))
    own = conform_to_schema(pd.DataFrame({"day": SPELLINGS["dd.mm.yyyy"]}), schema)
    other = conform_to_schema(pd.DataFrame({"day": SPELLINGS[""]}), schema)
    assert own.sha256 == other.sha256


@pytest.mark.parametrize("directives", ["%d.%m.%Y %H:%M", "%Y-%m-%d %H:%M:%S"])
def test_moments_that_are_each_of_one_record_are_asked_about(tmp_path: Path, directives: str) -> None:
    moments = [datetime(2020, 1, 1) + timedelta(minutes=7919 * i) for i in range(200)]
    own = column_of(tmp_path, cells_of(directives, moments))
    assert own.variable.kind is Kind.DATE
    assert "every record has a date of its own; if it names the record, --leave-out day" in own.question
    assert column_of(tmp_path, cells_of(directives, moments * 2)).question == ""


def test_a_plan_with_another_form_reads_the_file_again(tmp_path: Path) -> None:
    """A day that was read as a month is stored so; the plan's form decides, not what is stored."""
    low = [date(2001 + i % 20, 1 + i % 12, 1 + i * 7 % 12) for i in range(60)]
    path = write_column(tmp_path, cells_of("%m/%d/%Y", low))
    imported = import_file(tmp_path / "ws", str(path), "")
    assert imported.columns[0].variable.format == "dd/mm/yyyy"
    with Workspace.open(tmp_path / "ws") as workspace:
        draft = find_draft(workspace, imported.project_id)
        assert draft is not None
        step = '\n[[synthesis]]\ntarget = "day"\nmethod = "cart"\n'
        days = {}
        for form in ("dd/mm/yyyy", "mm/dd/yyyy"):
            toml = draft.toml.replace("dd/mm/yyyy", form) + step
            days[form] = prepare_plan(workspace, draft.with_text(toml)).data.frame["day"].dt.date.tolist()
    assert days["mm/dd/yyyy"] == low
    assert days["dd/mm/yyyy"] == [date(d.year, d.day, d.month) for d in low]


def test_the_vote_is_of_all_values_and_not_of_the_first(tmp_path: Path) -> None:
    days = [date(1900, 1, 1) + timedelta(days=i) for i in range(40_000)]
    texts = pd.Series([f"{day:%d.%m.%Y}" for day in days])
    assert vote_on_dates("day", texts, None) is not None
    wrong = pd.concat([texts, pd.Series([f"x{i}" for i in range(30)])], ignore_index=True)
    found = vote_on_dates("day", wrong, None)
    assert not hasattr(found, "other_forms")
