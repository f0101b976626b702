"""Codes, counts, units, names, times and series: each rule on generated columns, and on ones that it must not take.

No column here is one of the tables of ``tests/benchmarks/column_forms.toml``.
"""

from __future__ import annotations

from datetime import date, datetime, timedelta
from io import BytesIO
from pathlib import Path

import numpy as np
import openpyxl
import pandas as pd
import pytest

from sfumato.engine.data.schema import Kind
from sfumato.workspace.ingest.columns import ColumnProfile, profile_columns
from sfumato.workspace.ingest.few_numbers import read_few_numbers
from sfumato.workspace.ingest.raw_tables import RawTable
from sfumato.workspace.ingest.unit_numbers import may_number_units
from sfumato.workspace.service.importing import preview_file

N = 2_000
RNG = np.random.default_rng(4646)


def profile(name: str, values: object) -> ColumnProfile:
    """Return how a column would be read in a table of two."""
    frame = pd.DataFrame({"other": 0.5, name: values})
    return {c.variable.name: c for c in profile_columns(RawTable.from_frame(frame))}[name]


def profile_text(folder: Path, name: str, cells: list[str]) -> ColumnProfile:
    """Return how a column of a CSV file would be read."""
    path = folder / "table.csv"
    path.write_text("\n".join([f"{name};n", *(f"{cell};{i % 7}.5" for i, cell in enumerate(cells)), ""]), "utf-8")
    return preview_file(str(path)).columns[0]


AREAS = np.unique(RNG.integers(10_000, 99_999, 120))


@pytest.mark.parametrize("name", ["nuts_code", "PLZ", "hospital", "trade class", "cbsacode", "home_district"])
def test_numbers_that_are_named_as_codes_and_repeat_need_no_question(name: str) -> None:
    column = profile(name, RNG.choice(AREAS, N))
    assert (column.variable.kind, column.question, column.is_included) == (Kind.CATEGORICAL, "", True)


@pytest.mark.parametrize(
    "name", ["lines_of_code", "pupils per class", "days in hospital", "zip population", "codebase"]
)
def test_a_quantity_of_something_with_a_code_is_not_read_as_codes_in_silence(name: str) -> None:
    column = profile(name, RNG.gamma(2, 90, N).astype(int) + 1)
    assert column.variable.kind is Kind.COUNT or "=count" in column.question


def test_codes_that_hardly_repeat_are_still_asked_about_and_those_that_never_do_are_left_out() -> None:
    twice = RNG.permutation(np.r_[AREAS, AREAS])
    assert "--as fips=count" in profile("fips", twice).question
    spread = RNG.permutation(np.unique(RNG.integers(5, 9_000, 90)))
    for name in ("district code", "Codice zona"):
        assert not profile(name, spread).is_included, name
    for name in ("zip population", "lines_of_code", "pupils per class", "turnover"):
        assert profile(name, spread).is_included, name


def test_the_number_of_an_area_is_a_code_and_the_number_of_a_person_is_left_out() -> None:
    repeated = RNG.permutation(np.repeat(np.unique(RNG.integers(10_000, 99_999, 700))[:500], 4))
    county = profile("county_id", repeated)
    assert county.is_included
    assert county.variable.kind is Kind.CATEGORICAL
    for name in ("patient_id", "state id", "countess_id", "patient_code_id"):
        assert not profile(name, repeated).is_included
    often = RNG.choice(AREAS, N)
    assert not profile("county_id", often).question
    for name in ("patient_code", "employee zip", "id code"):
        assert profile(name, often).question, name


@pytest.mark.parametrize("name", ["patient", "employee", "persnr", "hh_casenum", "mother"])
def test_numbers_that_are_named_after_people_are_asked_about(name: str) -> None:
    column = profile(name, RNG.choice(np.arange(3, 900, 7), N))
    assert f"--leave-out {name}" in column.question


@pytest.mark.parametrize("name", ["patients", "num_visits", "patient age", "minimum", "age of mother"])
def test_counts_of_people_are_not(name: str) -> None:
    assert not profile(name, RNG.permutation(RNG.poisson(40, N))).question


def test_few_names_of_people_are_asked_about_and_names_of_things_are_not() -> None:
    surnames = ["Quist", "Oduya", "Brandl", "Ferro", "Nagy", "Sato", "Ilić", "Moss"]
    assert "--leave-out name" in profile("name", surnames).question
    assert "--leave-out surname" in profile("surname", RNG.choice(surnames, N)).question
    assert "--leave-out Vorname" in profile("Vorname", RNG.choice(["Tilda", "Ove", "Ines"], N)).question
    assert not profile("drug name", RNG.choice(["aspirin", "heparin", "placebo"], N)).question
    assert not profile("name", RNG.choice(["alpha", "beta", "gamma"], N)).question
    states = [f"Land {i:02}" for i in range(40)]
    assert profile("state name", RNG.permutation(states * 2)).is_included


def test_the_name_of_a_place_may_have_a_given_name_but_not_that_of_its_mayor() -> None:
    given = ["John", "Maria", "Peter", "Anna", "Paul", "Helga", "Karl", "Laura", "Luigi", "Marta", "Omar", "Piotr"]
    names = [f"{word} {place}" for word in given for place in ("Ford", "Hill")]
    assert not profile("airport name", RNG.choice(names, N)).question
    for name in ("airport manager", "town clerk name", "seen by"):
        assert f"--leave-out {name}" in profile(name, RNG.choice(names, N)).question


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("centre", "spread"), [(37, 3.0), (12, 3.0), (170, 6.0), (9, 3.0)])
def test_rounded_measurements_of_one_peak_are_numbers(seed: int, centre: float, spread: float) -> None:
    values = np.random.default_rng(seed).normal(centre, spread, 8_000).round()
    column = profile("v7", values[np.abs(values - centre) <= 2.5 * spread])
    assert (column.variable.kind, column.question) == (Kind.COUNT, "")


def test_codes_of_random_frequency_are_hardly_ever_taken_for_a_measurement() -> None:
    """Codes are numbered in any order, so that their frequencies have one peak by chance alone."""
    taken = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        k, first = int(rng.integers(10, 16)), int(rng.integers(2, 60))
        values = first + rng.choice(k, N, p=rng.dirichlet(np.full(k, 2.0)))
        taken += read_few_numbers("v7", "", pd.Series(values), None) is True
    assert taken <= 6


def years_of_school(mode: int) -> np.ndarray:
    """Years of education: most leave school after one of three exams."""
    return RNG.permutation(np.r_[np.repeat([8, mode, 16], [300, 900, 250]), RNG.integers(5, 19, 500)])


def test_years_of_education_are_numbers_where_most_have_twelve_and_asked_about_elsewhere() -> None:
    assert profile("educ_mother", years_of_school(12)).variable.kind is Kind.COUNT
    assert "=count" in profile("schooling", years_of_school(9)).question
    assert "=count" in profile("v7", years_of_school(12)).question


@pytest.mark.parametrize("highest", [5, 8, 16])
def test_numbered_levels_of_education_stay_levels(highest: int) -> None:
    levels = 1 + RNG.choice(highest, N, p=RNG.dirichlet(np.full(highest, 40.0)))
    column = profile("education", levels)
    assert (column.variable.kind, column.question) == (Kind.CATEGORICAL, "")


def test_names_of_counts_settle_frequencies_that_fall_from_0() -> None:
    falling = np.minimum(RNG.geometric(0.6, N) - 1, 4)
    for name in ("numdep", "kids6", "nsibs"):
        assert (profile(name, falling).variable.kind, profile(name, falling).question) == (Kind.COUNT, ""), name
    for name in ("pain", "v7", "numbness", "childcare"):
        assert "=count" in profile(name, falling).question, "a severity falls too"
    rising = 3 - falling.clip(max=3)
    assert profile("numdep", rising).variable.kind is Kind.CATEGORICAL


def test_a_plural_names_a_count_of_many_values_and_a_graded_symptom_stays_in_doubt() -> None:
    # they fall, but not in every step
    ants = RNG.permutation(np.repeat(np.arange(10), [500, 100, 300, 60, 200, 30, 120, 9, 80, 5]))
    assert (profile("ants", ants).variable.kind, profile("ants", ants).question) == (Kind.COUNT, "")
    assert "=count" in profile("antenna", ants).question
    grades = RNG.choice(4, N, p=[0.6, 0.25, 0.1, 0.05])
    assert "=count" in profile("headaches", grades).question
    for name in ("status", "species", "class", "arms", "diagnosis"):
        assert profile(name, ants).variable.kind is Kind.CATEGORICAL, name


def test_a_size_may_be_counted_or_coded() -> None:
    sizes = RNG.choice([1, 2, 3, 4, 5, 6], N, p=[0.1, 0.4, 0.2, 0.2, 0.05, 0.05])
    assert "--as size=count" in profile("size", sizes).question
    assert not profile("size class", sizes).question
    assert not profile("v7", sizes).question


def test_a_year_of_two_digits_is_a_number_and_levels_of_a_height_are_none() -> None:
    assert (profile("yr", RNG.integers(85, 97, N)).variable.kind) is Kind.COUNT
    for values in (RNG.integers(1, 4, N), RNG.choice([1, 2, 9], N)):
        assert profile("height", values).variable.kind is Kind.CATEGORICAL
    assert profile("year group", RNG.integers(85, 97, N)).variable.kind is Kind.CATEGORICAL


def schools(n: int) -> np.ndarray:
    """Records of units whose sizes have nothing to do with their numbers."""
    sizes = RNG.lognormal(3.2, 0.7, n).astype(int) + 5
    return RNG.permutation(np.repeat(np.arange(1, n + 1), sizes))


def test_units_by_number_are_asked_about() -> None:
    unnamed = {
        "shuffled": schools(90),
        "with gaps": RNG.permutation(np.repeat(np.sort(RNG.choice(np.arange(2, 900), 300, replace=False)), 7)),
        "in blocks": np.repeat(np.sort(RNG.choice(9_000, 60, replace=False)), RNG.integers(1, 9, 60) + 1),
        "in cycles": np.tile(np.arange(1, 61), 5),
    }
    for what, values in unnamed.items():
        column = profile("v7", values)
        assert (column.variable.kind, "--as v7=categorical" in column.question) == (Kind.COUNT, True), what
    assert profile("week", np.tile(np.arange(1, 53), 5)).question == ""


def test_a_long_file_answers_alike() -> None:
    values = pd.Series(np.tile(schools(400), 8))
    distinct, times = np.unique(values, return_counts=True)
    assert may_number_units("v7", values, None)
    assert may_number_units("v7", pd.Series(distinct), times)


@pytest.mark.parametrize("seed", range(5))
def test_measurements_are_not_taken_for_numbers_of_units(seed: int) -> None:
    rng = np.random.default_rng(seed)
    ages = rng.integers(1, 91, N)
    measured = {
        "ages": ages,
        "rounded ages": np.where(rng.random(N) < 0.4, np.maximum(1, (ages / 5).round() * 5), ages).astype(int),
        "any of 1 to 200": rng.integers(1, 201, N),
        "hours": np.where(rng.random(N) < 0.5, 40, rng.integers(1, 61, N)),
        "counts": 1 + rng.poisson(40, N),
        "pay": 1 + rng.gamma(2, 900, N).astype(int),
        "pay in tens": 1 + 10 * rng.integers(0, 300, N),
    }
    for what, values in measured.items():
        assert not may_number_units("v7", pd.Series(values), None), what


def test_a_usual_sign_of_no_value_among_numbers_is_no_question_and_another_is(tmp_path: Path) -> None:
    numbers = [f"{value:.2f}" for value in RNG.gamma(3, 10, 3_000)]
    for sign, is_asked in (("NA", False), ("NULL", False), ("nil", True), ("<1", True), ("-", True)):
        column = profile_text(tmp_path, "dose", [*numbers, sign, *numbers[:20], sign])
        assert (column.variable.kind, column.missing, bool(column.question)) == (Kind.CONTINUOUS, 2, is_asked), sign


HOURS = [datetime(2031, 3, 1) + timedelta(hours=i) for i in range(400)]
SERIES = {
    "days": [moment.strftime("%d.%m.%Y") for moment in (datetime(2031, 1, 1) + timedelta(days=i) for i in range(300))],
    "hours": [moment.strftime("%Y-%m-%d %H:%M") for moment in HOURS if moment.hour or moment.day % 9],
    "backwards": [moment.strftime("%Y-%m-%dT%H:%M") for moment in HOURS[::-1]],
    "month ends": [str(day.date()) for day in pd.date_range("1990-01-31", periods=120, freq="ME")],
    "quarters": [str(day.date()) for day in pd.date_range("1990-01-15", periods=120, freq="91D").to_period("Q").asfreq("D", "start").to_timestamp()],
}  # fmt: skip


@pytest.mark.parametrize("cells", SERIES.values(), ids=SERIES)
def test_dates_of_a_time_series_are_no_question(tmp_path: Path, cells: list[str]) -> None:
    column = profile_text(tmp_path, "at", cells)
    assert (column.variable.kind, column.question) == (Kind.DATE, "")


def admissions() -> list[date]:
    """Days on which one person each was admitted, in order."""
    return [date(2030, 1, 1) + timedelta(days=int(day)) for day in np.sort(RNG.choice(2_000, 150, replace=False))]


def test_dates_that_each_name_one_person_are_still_asked_about(tmp_path: Path) -> None:
    daily = SERIES["days"]
    assert "date of its own" in profile_text(tmp_path, "admitted", [str(day) for day in admissions()]).question
    assert "date of its own" in profile_text(tmp_path, "admitted", list(RNG.permutation(daily))).question
    for name in ("dob", "Date of birth", "geburtsdatum"):
        assert "full dates of birth" in profile_text(tmp_path, name, daily).question
    moments = pd.to_datetime(pd.Series(admissions()))
    assert "date of its own" in profile("admitted", moments).question, "as a sheet stores them"
    assert not profile("at", pd.Series(pd.date_range("2030-01-01", periods=200))).question


def test_numbers_that_are_dates_of_a_series_are_no_question_and_others_are(tmp_path: Path) -> None:
    weeks = [(date(2031, 1, 3) + timedelta(days=7 * i)).strftime("%Y%m%d") for i in range(200)]
    column = profile_text(tmp_path, "at", weeks)
    assert (column.variable.kind, column.variable.format, column.question) == (Kind.DATE, "yyyymmdd", "")
    days = [day.strftime("%Y%m%d") for day in admissions()]
    assert "--as at=count" in profile_text(tmp_path, "at", days).question


def test_the_first_of_each_month_says_which_part_is_the_month(tmp_path: Path) -> None:
    days = [date(year, month, 1) for year in range(2012, 2017) for month in range(1, 13)]
    for directives, form in (("%d-%m-%y", "dd-mm-yy"), ("%m/%d/%Y", "mm/dd/yyyy")):
        column = profile_text(tmp_path, "month", [day.strftime(directives) for day in days * 3])
        assert (column.variable.format, column.question) == (form, "")
    # the same twelve texts of one January are its first days in the other order
    column = profile_text(tmp_path, "day", [date(2012, month, 1).strftime("%d/%m/%Y") for month in range(1, 13)] * 9)
    assert "which other orders fit too" in column.question


def test_texts_of_which_nearly_all_differ_are_left_out(tmp_path: Path) -> None:
    """A list of people with some doubles under a name that says nothing is no classification."""
    names = [
        f"{a}{b} {c}" for a in ("An", "Be", "Cor", "Da") for b in ("ta", "ro", "mi", "lu", "ne") for c in "KLMNPQRST"
    ]
    listed = [*names, *names[:9]]
    column = profile_text(tmp_path, "subject", listed)
    assert column.exclusion_reasons == ("nearly every record has a value of its own",)
    towns = profile_text(tmp_path, "town", [*names, *names[:100]])
    assert towns.is_included


def test_times_of_day_and_durations_are_asked_about_and_not_left_out(tmp_path: Path) -> None:
    seconds = RNG.choice(20_000, 700, replace=False)
    durations = [f"{s // 3600}:{s // 60 % 60:02}:{s % 60:02}" for s in seconds.tolist()]
    column = profile_text(tmp_path, "run", [*durations, durations[0]])
    assert column.is_included
    assert "its values are times" in column.question
    slots = profile_text(tmp_path, "slot", list(RNG.choice(["08:00", "12:30", "18:00"], 400)))
    assert not slots.question
    scores = profile_text(tmp_path, "score", [f"{a}:{b}" for a, b in RNG.integers(0, 7, (400, 2)).tolist()])
    assert "times" not in scores.question


def test_latitudes_that_place_single_records_are_asked_about() -> None:
    homes = RNG.uniform(46.4, 48.9, N).round(5)
    for name in ("lat", "home_latitude", "Breitengrad"):
        assert f"--keep {name} to have them" in profile(name, homes).question
    clinics = RNG.choice(homes[:30], N)
    coarse = RNG.uniform(46.4, 48.9, N).round(1)
    for what, values in {"clinics": clinics, "a grid": coarse, "metres": homes * 10_000}.items():
        assert not profile("lat", values).question, what
    for name in ("latency", "relation", "late"):
        assert not profile(name, homes).question, name


def write_sheet(folder: Path, rows: list[list[object]]) -> str:
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    content = BytesIO()
    book.save(content)
    (folder / "book.xlsx").write_bytes(content.getvalue())
    return str(folder / "book.xlsx")


def test_a_column_of_a_sheet_without_a_name_has_that_of_its_place(tmp_path: Path) -> None:
    rows = [[20 + i % 40, "ab"[i % 2], 1000.5 + i] for i in range(60)]
    found = preview_file(write_sheet(tmp_path, [["age", None, "pay"], *rows]))
    assert [column.variable.name for column in found.columns] == ["age", "column_2", "pay"]
    assert any("1 column has no name and is named by place: column_2" in note for note in found.notes)
    both = preview_file(
        write_sheet(tmp_path, [["age", None, "pay", None, "column_2"], *[[*row, None, 1] for row in rows]])
    )
    names = [column.variable.name for column in both.columns]
    assert len(set(names)) == 5
    assert {"age", "pay"} < set(names)


def test_remarks_scattered_around_a_sheet_are_no_records(tmp_path: Path) -> None:
    rows = [[f"p{i % 5}", 20 + i, bool(i % 2), 7.5 * i] for i in range(30)]
    above = [
        ["Survey of pets"],
        ["filled", "in", None, "by hand"],
        [None, "draft", None, None],
        ["owner", "age", "cat", "cost"],
    ]
    below = [[None, "not checked", "maybe", None], [None, None, None, "as of May"]]
    found = preview_file(write_sheet(tmp_path, [*above, *rows, *below]))
    assert {c.variable.name: c.variable.kind for c in found.columns} == {
        "owner": Kind.CATEGORICAL, "age": Kind.COUNT, "cat": Kind.BINARY, "cost": Kind.CONTINUOUS,
    }  # fmt: skip
    assert found.columns[1].distinct == 30
    assert all(column.missing == 0 for column in found.columns)


def test_a_record_with_gaps_is_no_remark(tmp_path: Path) -> None:
    """A first record may lack values, and a last one may have two words."""
    rows = [[f"p{i % 5}", 20 + i, "xyz"[i % 3], 7.5 * i] for i in range(30)]
    table = [["owner", "age", "cat", "cost"], ["p1", None, None, 3.5], *rows, ["p2", None, "x", None]]
    found = preview_file(write_sheet(tmp_path, table))
    assert [column.variable.name for column in found.columns] == ["owner", "age", "cat", "cost"]
    assert [column.missing for column in found.columns] == [0, 2, 1, 1]
