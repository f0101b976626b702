"""Forms in which dates and times of day are written: 05.10.2022, 5/3/1994 10:56 AM, 05OCT2022, 20221005.

    yyyy, yy          year; two digits are those of a hundred years from 1969 on, or from the year behind @: dd/mm/yy@1930
    mm, m             month as a number
    MON, Mon, mon     month as the first three letters of its English name
    dd, d             day
    HH, H             hour from 0 to 23
    hh, h             hour from 1 to 12, with AM or am
    MM, SS            minutes and seconds
    T, blank, . / , : and -     stand for themselves

A day, month or hour of one digit is written with a zero by the double letter; both are read. A form without a day means
the first of the month.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

FIRST_YEAR = 1969
"""First of the hundred years that two digits stand for, unless the form says another (POSIX, ``strptime``)."""
PARTS: Final = {
    "yyyy": "year", "yy": "year", "MON": "month", "Mon": "month", "mon": "month", "mm": "month", "m": "month", "dd": "day",
    "d": "day", "HH": "hour", "H": "hour", "hh": "hour", "h": "hour", "MM": "minute", "SS": "second", "AM": "half", "am": "half",
}  # fmt: skip
"""Part of a date that each token writes; other tokens are signs."""
DIGITS: Final = {
    "yyyy": (4, 4), "yy": (2, 2), "mm": (1, 2), "m": (1, 2), "dd": (1, 2), "d": (1, 2), "HH": (1, 2), "H": (1, 2), "hh": (1, 2),
    "h": (1, 2), "MM": (2, 2), "SS": (2, 2),
}  # fmt: skip
"""Fewest and most digits of a token that is a number."""
SPSS_FORMAT = re.compile(
    r"(DATE|ADATE|EDATE|SDATE|JDATE|DATETIME|YMDHMS|TIME|DTIME|MTIME|MOYR|QYR|WKYR|WKDAY|MONTH)\d{1,2}(\.\d{1,2})?"
)
"""Formats in which SPSS shows dates, times, months and their kin, which are numbers."""
STATA_FORMAT = re.compile(r"%-?(t[a-zA-Z]|d)[A-Za-z0-9_:/.,+ -]{0,40}")
"""Formats in which Stata shows dates, times, months and their kin, which are numbers."""
SAS_DAY_FORMAT = re.compile(
    r"(DATE|(YYMMDD|DDMMYY|MMDDYY|YYMM|MMYY|YYQR?)[BCDNPS]?|YYMON|MONYY|MONNAME|DOWNAME|WEEKDA(TE|TX|Y)|WORDDAT[EX]|WEEK[UVW]|"
    r"DAY|MONTH|QTRR?|YEAR|JULIAN|JULDAY|(E8601|B8601|IS8601)DA|NLDATE(MD|MN|WN?|YMW?|YQ|YR|YW)?)\d*\.\d*"
)
"""Formats in which SAS shows days as dates, or the month, quarter or year in which they lie."""
SAS_MOMENT_FORMAT = re.compile(
    r"(DATETIME|DATEAMPM|MDYAMPM|(E8601|B8601|IS8601)DT|NLDATM|DT(DATE|MONYY|WKDATX|YEAR|YYQC))\d*\.\d*"
)
"""Formats in which SAS shows moments."""
SAS_TIME_FORMAT = re.compile(r"(TIME(AMPM)?|HHMM|HOUR|MMSS|TOD|(E8601|B8601)TM)\d*\.\d*")
"""Formats in which SAS shows times of day, which are numbers of seconds."""
_TOKEN = re.compile(r"yyyy|yy|MON|Mon|mon|mm|m|dd|d|HH|H|hh|h|MM|SS|AM|am|[T ./,:-]")
_PIVOT = re.compile(r"(.*)@(\d{4})", re.DOTALL)


@dataclass(frozen=True, slots=True)
class DateForm:
    """Form in which the dates of a column are written.

    text: the form, such as dd.mm.yyyy
    tokens: its parts and signs, in order
    first_year: first of the hundred years that two digits stand for
    """

    text: str
    tokens: tuple[str, ...] = field(repr=False)
    first_year: int = FIRST_YEAR

    @classmethod
    def parse(cls, text: str) -> DateForm:
        """Parse the form that a text describes. Raises ValueError."""
        return _parse_form(text)

    @property
    def parts(self) -> tuple[str, ...]:
        """Return the parts of the date that it writes, in order: day, month, year, hour."""
        return tuple(PARTS[token] for token in self.tokens if token in PARTS)

    @property
    def has_time(self) -> bool:
        """Return whether it writes a time of day."""
        return "hour" in self.parts

    @property
    def has_short_year(self) -> bool:
        """Return whether it writes years with two digits."""
        return "yy" in self.tokens


def is_program_format(text: str) -> bool:
    """Return whether a text is a format of SPSS, Stata or SAS that shows dates, times or months."""
    return any(
        one.fullmatch(text) for one in (SPSS_FORMAT, STATA_FORMAT, SAS_DAY_FORMAT, SAS_MOMENT_FORMAT, SAS_TIME_FORMAT)
    )


@lru_cache(maxsize=256)
def _parse_form(text: str) -> DateForm:
    """Parse the form that a text describes. Raises ValueError."""
    pivot = _PIVOT.fullmatch(text)
    body, first_year = (pivot[1], int(pivot[2])) if pivot else (text, FIRST_YEAR)
    tokens = tuple(_TOKEN.findall(body))
    parts = [PARTS[token] for token in tokens if token in PARTS]
    wrong = ""
    if "".join(tokens) != body or not tokens:
        wrong = "is no form of a date"
    elif len(set(parts)) < len(parts):
        wrong = "has a part twice"
    elif not {"year", "month"} <= set(parts):
        wrong = "lacks the year or the month"
    elif "day" not in parts and {".", ","} & set(tokens):
        # 2022.10 would be read as the number 2022.1
        wrong = "lacks the day"
    elif ("hour" in parts) != ("minute" in parts) or ("second" in parts and "minute" not in parts):
        wrong = "needs hours and minutes"
    elif ("half" in parts) != bool({"h", "hh"} & set(tokens)):
        wrong = "writes hours to 12 as hh with AM, hours to 23 as HH"
    elif pivot and "yy" not in tokens:
        wrong = "has years of four digits, so that @ means nothing"
    if wrong:
        raise ValueError(f'"{text}" {wrong}; such are dd.mm.yyyy, mm/dd/yy, ddMONyyyy, d/m/yyyy HH:MM')
    return DateForm(text, tokens, first_year)
