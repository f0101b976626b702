"""Dates in the forms of offices: read as Python's ``strptime`` reads them, written as ``strftime`` writes them."""

from __future__ import annotations

from datetime import datetime, timedelta

import numpy as np
import pytest

from sfumato.engine.data.date_forms import DateForm
from sfumato.engine.data.date_texts import read_dates, write_dates
from sfumato.engine.data.schema import Kind, Variable
from sfumato.engine.errors import BadInput

# the form, and the directives of strptime and strftime that mean the same
DIRECTIVES = {
    "dd.mm.yyyy": "%d.%m.%Y",
    "dd/mm/yyyy": "%d/%m/%Y",
    "mm/dd/yyyy": "%m/%d/%Y",
    "yyyy/mm/dd": "%Y/%m/%d",
    "dd-mm-yy": "%d-%m-%y",
    "ddMONyyyy": "%d%b%Y",
    "d-Mon-yyyy": "%-d-%b-%Y",
    "yyyymmdd": "%Y%m%d",
    "d.m.yyyy HH:MM": "%-d.%-m.%Y %H:%M",
    "m/d/yyyy h:MM AM": "%-m/%-d/%Y %-I:%M %p",
    "ddMONyyyy:HH:MM:SS": "%d%b%Y:%H:%M:%S",
    "yyyy-mm-ddTHH:MM:SS": "%Y-%m-%dT%H:%M:%S",
    "dd/mm/yy hh:MM:SS am": "%d/%m/%y %I:%M:%S %p",
}
DAYS = [
    datetime(1969, 1, 1) + timedelta(days=int(day), seconds=int(day) * 7919 % 86_400) for day in range(0, 36_000, 7)
]


def write_moment(moment: datetime, form: str) -> str:
    text = moment.strftime(DIRECTIVES[form])
    return text.upper() if "MON" in form else text.lower() if "am" in form else text


def cut_to_form(moment: datetime, form: str) -> datetime:
    """The part of a moment that a form writes."""
    moment = moment if "HH" in form or "h:" in form or "hh" in form else moment.replace(hour=0, minute=0)
    return moment if "SS" in form else moment.replace(second=0)


@pytest.mark.parametrize("form", DIRECTIVES)
def test_dates_are_read_and_written_as_python_does(form: str) -> None:
    given = [cut_to_form(moment, form) for moment in DAYS]
    texts = [write_moment(moment, form) for moment in given]
    found = read_dates(texts, DateForm.parse(form))
    assert found.tolist() == given
    assert write_dates(found, DateForm.parse(form)) == texts


def test_what_is_no_day_of_the_calendar_is_no_date() -> None:
    """Every day and month from 0 to 39, in a leap year and in another, as Python's calendar has them."""
    for year in (1900, 2000, 2023):
        texts = [f"{day:02}.{month:02}.{year}" for day in range(40) for month in range(40)]
        found = ~np.isnat(read_dates(texts, DateForm.parse("dd.mm.yyyy")))
        assert found.sum() == (366 if year == 2000 else 365)
        for text, is_date in zip(texts, found, strict=True):
            assert is_date == reads_as_python(text)


def reads_as_python(text: str) -> bool:
    try:
        datetime.strptime(text, "%d.%m.%Y")
    except ValueError:
        return False
    return True


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("dd.mm.yyyy", "05.10.22"), ("dd.mm.yyyy", "05.10.20221"), ("dd.mm.yyyy", "05/10/2022"), ("dd.mm.yyyy", " 05.10.2022"),
        ("dd.mm.yyyy", "05.10.2022 10:30"), ("dd.mm.yyyy", ""), ("dd.mm.yyyy", "٠٥.١٠.٢٠٢٢"), ("yyyymmdd", "2022105"),
        ("ddMONyyyy", "05OKT2022"), ("d.m.yyyy HH:MM", "1.1.2022 24:00"), ("m/d/yyyy h:MM AM", "5/3/1994 13:56 PM"),
        ("m/d/yyyy h:MM AM", "5/3/1994 0:56 AM"), ("dd.mm.yyyy", "x" * 1000), ("yyyy/mm/dd", "0000/01/01"),
    ],
)  # fmt: skip
def test_other_texts_are_no_dates(form: str, text: str) -> None:
    assert np.isnat(read_dates([text], DateForm.parse(form))).all()


def test_zeros_and_capitals_may_be_left_out() -> None:
    assert read_dates(["5.3.2022"], DateForm.parse("dd.mm.yyyy")) == np.datetime64("2022-03-05")
    assert read_dates(["5-OCT-2022"], DateForm.parse("d-Mon-yyyy")) == np.datetime64("2022-10-05")


@pytest.mark.parametrize(("first", "expected"), [(None, (2068, 1969)), (1930, (1968, 1969)), (2000, (2068, 2069))])
def test_two_digits_of_a_year_are_those_of_a_hundred_years(first: int | None, expected: tuple[int, int]) -> None:
    form = DateForm.parse("dd/mm/yy" if first is None else f"dd/mm/yy@{first}")
    found = read_dates(["01/07/68", "01/07/69"], form)
    assert tuple(moment.year for moment in found.tolist()) == expected
    assert write_dates(found, form) == ["01/07/68", "01/07/69"]


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ("dd.mm", "lacks the year"), ("yyyy", "lacks the year or the month"), ("dd.mm.yyyy.dd", "a part twice"),
        ("tt.mm.jjjj", "no form of a date"), ("dd.mm.yyyy h:MM", "hours to 12"), ("dd.mm.yyyy HH", "hours and minutes"),
        ("yyyy.mm", "lacks the day"), ("dd.mm.yyyy@1930", "four digits"), ("dd.mm.yyyy\n", "no form of a date"),
    ],
)  # fmt: skip
def test_what_is_no_form_names_the_key_and_forms_that_are(form: str, message: str) -> None:
    with pytest.raises(BadInput, match=message) as caught:
        Variable.from_table("born", {"kind": "date", "format": form}, "variables.born")
    assert caught.value.place == "variables.born.format"
    assert "dd.mm.yyyy" in caught.value.message


def test_only_dates_have_a_form() -> None:
    with pytest.raises(BadInput, match="only dates have one"):
        Variable.from_table("age", {"kind": "count", "format": "dd.mm.yyyy"}, "variables.age")
    born = Variable.from_table("born", {"kind": "date", "format": "dd.mm.yyyy"}, "variables.born")
    assert born.kind is Kind.DATE
    assert Variable.from_table("born", born.to_table(), "variables.born") == born
