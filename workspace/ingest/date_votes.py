"""Detection of the form in which a column writes dates, by a vote of all its distinct values.

A column is one of dates where each value is a date of one form, but for a few signs of no value. Where other orders of
day, month and year fit as well, they are named too.
"""

from __future__ import annotations

import datetime as dt
import itertools
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sfumato.engine.data.date_forms import FIRST_YEAR, DateForm

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

SAMPLE_TEXTS = 1_000
"""Number of distinct texts whose look decides whether all are read."""
MIN_LOOK_SHARE = 0.5
"""Share of the sampled texts that look like a date from which all are read."""
FIRST_LOOKS = 100
"""Number of values whose look dismisses most columns."""
SURE_DATES = 100
MAX_FEW_DAYS = 15
MIN_MANY_DAYS = 25
"""Of ``SURE_DATES`` dates, most days of the month in an order that is dropped beside one with so many days."""
MIN_MONTHS_OF_FIRSTS, MIN_YEARS_OF_FIRSTS = 6, 3
"""Months of the year, and years, from which dates that are all the first of a month are a monthly series."""
MIN_NEAR_SHARE = 0.95
"""Share of the distinct texts that are dates from which the owner of the file is asked about the others."""
MIN_WEAK_DATES = 3
"""Fewest different dates that make one of a form without separators, or with years of two digits."""
MAX_ODD_VALUES = 10
MAX_ODD_LENGTH = 24
MAX_ODD_SHARE = 0.3
"""Largest share of the records that signs of no value among dates may have."""
MAX_NUMBER = 10.0**9
"""Number from which a column of numbers is none of dates such as 20221005."""
SECONDS_OF_DAY = 86_400
SECONDS_BETWEEN = frozenset(
    [*(part * unit for unit in (1, 60) for part in (1, 2, 5, 10, 15, 20, 30)), *(3600 * part for part in (1, 2, 3, 4, 6, 8, 12))]
    + [SECONDS_OF_DAY * days for days in (1, 7, 14, 28)]
)  # fmt: skip
"""Usual steps of time series within a day, and of days and weeks."""
MONTHS_BETWEEN = frozenset([1, 2, 3, 6, 12])
"""Usual steps of time series of months, quarters and years."""
MIN_REGULAR_SHARE = 0.9
"""Share of the steps between dates that have one length in a time series with gaps."""
LAST_YEAR = 9999
"""Year that stands for no date."""
CENTURY_SPAN = 50
"""Number of years from which two-digit years may belong to two centuries."""
ISO_FORMATS = ("yyyy-mm-dd", "yyyy-mm-dd HH:MM:SS")
"""Forms in which dates are read and written unless a variable says another."""
BIRTH_WORDS = frozenset(
    [
        "born", "birth", "dob", "birthdate", "birthday", "dateofbirth", "bday", "geb", "gebdat", "gebdatum", "geburt",
        "geburtsdatum", "geburtstag", "geboren", "geboortedatum", "naissance", "nacimiento", "nascita", "nascimento",
    ]
)  # fmt: skip
"""Words of a name that say that a column holds dates of birth."""

_TIME = r"(?:(?P<gap>, |[T :])(?P<hour>\d{1,2}):\d\d(?P<seconds>:\d\d)?(?P<blank> ?)(?P<half>[AaPp][Mm])?)?"
_LOOKS = (
    re.compile(r"(?P<first>\d{4}|\d{1,2})(?P<sign>[./-])\d{1,2}(?P=sign)(?P<last>\d{4}|\d{1,2})" + _TIME, re.ASCII),
    re.compile(
        r"(?P<first>\d{1,2})(?P<sign>[ ./-]?)(?P<month>[A-Za-z]{3})(?P=sign)(?P<last>\d{4}|\d{2})" + _TIME, re.ASCII
    ),
    re.compile(
        r"(?P<month>[A-Za-z]{3})(?P<sign>[ ./-])(?P<first>\d{1,2})(?P<second>,? |[./-])(?P<last>\d{4}|\d{2})" + _TIME,
        re.ASCII,
    ),
    re.compile(r"(?P<first>\d{8})" + _TIME, re.ASCII),
)


@dataclass(frozen=True, slots=True)
class DateVote:
    """Outcome of the vote of a column's values.

    form: form of its dates
    other_forms: other orders of day, month and year that fit all values too
    signs: values among them that stand for none
    questions: what the owner of the file decides, with the option that does
    """

    form: DateForm
    other_forms: tuple[DateForm, ...] = ()
    signs: tuple[str | int, ...] = ()
    questions: tuple[str, ...] = ()

    @property
    def format(self) -> str:
        """Return the form as a variable declares it: empty for that of ISO 8601."""
        return "" if self.form.text in ISO_FORMATS else self.form.text


@dataclass(frozen=True, slots=True)
class NearlyDates:
    """Outcome where most values of a column are dates of a form, but too many or too different ones are not.

    form: form of the dates
    others: number of distinct values that are none
    """

    form: DateForm
    others: int


def looks_like_date(cell: str) -> bool:
    """Return whether a text writes a date with signs or a month's name, whether or not the calendar has it."""
    return any(pattern.fullmatch(cell) for pattern in _LOOKS[:3])


def vote_on_dates(name: str, present: pd.Series, times: NDArray[np.intp] | None) -> DateVote | NearlyDates | None:
    """Return the form in which a column writes dates; None where it writes none.

    ``present`` are its values (n,), or the distinct ones (k,) with the number of records of each in ``times``.
    """
    import pandas as pd

    if (
        not len(present)
        or pd.api.types.is_bool_dtype(present.dtype)
        or pd.api.types.is_datetime64_any_dtype(present.dtype)
    ):
        return None
    if pd.api.types.is_numeric_dtype(present.dtype):
        return _vote_of_numbers(name, present, times)
    if not _looks_of_some(present, FIRST_LOOKS):
        return None
    different = present.astype("str")
    different = different.drop_duplicates() if times is None else different
    looks = _looks_of_some(different, SAMPLE_TEXTS)
    if not looks:
        return None
    (commonest, _), *_ = Counter(map(_orders_of_look, looks)).most_common(1)
    return _vote_of_texts(name, present, times, different, commonest)


def _vote_of_numbers(name: str, present: pd.Series, times: NDArray[np.intp] | None) -> DateVote | None:
    """Return the vote of whole numbers such as 20221005."""
    import numpy as np

    from .identifiers import is_named_as_code

    numbers = present.to_numpy(dtype=np.float64)
    # nearly every column of numbers is dismissed here
    if not 1800_01_01 <= float(np.partition(numbers, len(numbers) // 2)[len(numbers) // 2]) <= 2100_12_31:
        return None
    if is_named_as_code(name) or not (np.abs(numbers) < MAX_NUMBER).all() or (numbers != np.floor(numbers)).any():
        return None
    texts = present.astype("int64").astype("str")
    found = _vote_of_texts(name, texts, times, texts.drop_duplicates(), ("yyyymmdd",))
    if not isinstance(found, DateVote):
        return None
    return DateVote(found.form, (), tuple(int(sign) for sign in found.signs), found.questions)


def _vote_of_texts(
    name: str, present: pd.Series, times: NDArray[np.intp] | None, different: pd.Series, orders: Sequence[str]
) -> DateVote | NearlyDates | None:
    """Return the vote of texts, given the forms that may be theirs, without regard to zeros before single digits."""
    import numpy as np

    from sfumato.engine.data.date_texts import read_dates

    from .identifiers import is_named_as_code

    texts = different.tolist()
    read = {order: read_dates(texts, DateForm.parse(order)) for order in orders}
    fitting = {order: int((~np.isnat(moments)).sum()) for order, moments in read.items()}
    most = max(fitting.values())
    first, *rest = _likely_orders([order for order in orders if fitting[order] == most], read)
    moments = read[first]
    years = moments.astype("datetime64[Y]").astype(np.int64) + 1970
    is_date = ~np.isnat(moments) & (years < LAST_YEAR)
    n_dates = len(np.unique(moments[is_date]))
    form = _pad_form(first, [text for text, has in zip(texts, is_date, strict=True) if has][:SAMPLE_TEXTS])
    is_weak = form.has_short_year or form.text == "yyyymmdd"
    if n_dates < (MIN_WEAK_DATES if is_weak else 2) or (form.has_short_year and is_named_as_code(name)):
        return None
    odd = [text for text, has in zip(texts, is_date, strict=True) if not has]
    if not _are_signs(odd, present, times):
        near = n_dates >= MIN_WEAK_DATES and is_date.mean() >= MIN_NEAR_SHARE and not is_weak
        return NearlyDates(form, len(odd)) if near else None
    whole = np.array([read[order][is_date] for order in rest]) if rest else np.empty((0, 0))
    other = [
        _pad_form(order, [text for text, has in zip(texts, is_date, strict=True) if has][:SAMPLE_TEXTS])
        for order, own in zip(rest, whole, strict=True)
        if not np.isnat(own).any()
    ]
    asked = _questions(name, form, texts, moments, is_date)
    return DateVote(form, tuple(other), tuple(odd), tuple(asked))


def _likely_orders(orders: list[str], read: Mapping[str, NDArray[np.datetime64]]) -> list[str]:
    """Return the orders that fit without those in which the years, or the first of each month, would be other days."""
    import numpy as np

    firsts = [order for order in orders if _are_firsts_of_months(read[order])]
    if firsts:
        return firsts
    days = {}
    for order in orders:
        moments = read[order][~np.isnat(read[order])].astype("datetime64[D]")
        if len(moments) < SURE_DATES:
            return orders
        days[order] = len(np.unique(moments - moments.astype("datetime64[M]").astype("datetime64[D]")))
    many = max(days.values()) >= MIN_MANY_DAYS
    return [order for order in orders if not (many and days[order] <= MAX_FEW_DAYS)]


def _are_firsts_of_months(moments: NDArray[np.datetime64]) -> bool:
    """Return whether dates are the first of many months in several years: read otherwise, all would lie in January."""
    import numpy as np

    days = np.unique(moments[~np.isnat(moments)].astype("datetime64[D]"))
    months = np.unique(days.astype("datetime64[M]"))
    of_year = np.unique(months.astype(np.int64) % 12)
    years = np.unique(days.astype("datetime64[Y]"))
    is_first = bool((days == months.astype("datetime64[D]")).all()) if len(days) == len(months) else False
    return is_first and len(of_year) >= MIN_MONTHS_OF_FIRSTS and len(years) >= MIN_YEARS_OF_FIRSTS


def _looks_of_some(values: pd.Series, most: int) -> list[re.Match[str]]:
    """Return how some of the values look like dates; empty where too few do."""
    some = values.iloc[:: max(1, len(values) // most)].tolist()[:most]
    looks = [look for value in some if (look := _look_of(str(value))) is not None]
    return looks if len(looks) >= MIN_LOOK_SHARE * len(some) else []


def _look_of(text: str) -> re.Match[str] | None:
    """Return how a text looks like a date; None where it does not."""
    return next((look for pattern in _LOOKS if (look := pattern.fullmatch(text)) is not None), None)


def _orders_of_look(look: re.Match[str]) -> tuple[str, ...]:
    """Return the forms in which a text may be a date, the likeliest first, without regard to zeros before digits."""
    parts = look.groupdict()
    time = ""
    if parts["hour"] is not None:
        seconds = ":SS" if parts["seconds"] else ""
        half = parts["blank"] + ("AM" if parts["half"].isupper() else "am") if parts["half"] else ""
        time = f"{parts['gap']}{'h' if half else 'H'}:MM{seconds}{half}"
    sign, year = parts.get("sign", ""), "yyyy" if len(parts.get("last") or "") == 4 else "yy"
    if "last" not in parts:
        return (f"yyyymmdd{time}",)
    if parts.get("month"):
        month = parts["month"]
        token = "MON" if month.isupper() else "mon" if month.islower() else "Mon"
        if "second" in parts:
            return (f"{token}{sign}d{parts['second']}{year}{time}",)
        return (f"d{sign}{token}{sign}{year}{time}",)
    if len(parts["first"]) == 4:
        return (f"yyyy{sign}m{sign}d{time}",)
    # morning and afternoon are written where months come first
    days_first = [f"d{sign}m{sign}{year}{time}", f"m{sign}d{sign}{year}{time}"]
    found = days_first[::-1] if parts["half"] else days_first
    return (*found, f"yy{sign}m{sign}d{time}") if year == "yy" else tuple(found)


def _pad_form(order: str, texts: Sequence[str]) -> DateForm:
    """Return the form with zeros before single digits where most of the texts (k,) have them."""
    from sfumato.engine.data.date_texts import read_dates, write_dates

    moments = read_dates(texts, DateForm.parse(order))
    best, n_best = DateForm.parse(order), -1
    for text in _padded_forms(order):
        form = DateForm.parse(text)
        same = sum(one == other for one, other in zip(write_dates(moments, form), texts, strict=True))
        if same > n_best:
            best, n_best = form, same
    return best


def _padded_forms(order: str) -> Iterator[str]:
    """Yield the form with each choice of zeros before single digits, first those that treat all parts alike."""
    tokens = DateForm.parse(order).tokens
    single = [i for i, token in enumerate(tokens) if token in ("d", "m", "H", "h")]
    choices = sorted(itertools.product((2, 1), repeat=len(single)), key=lambda widths: len(set(widths)))
    for widths in choices:
        width_of = dict(zip(single, widths, strict=True))
        yield "".join(token * width_of.get(i, 1) for i, token in enumerate(tokens))


def _are_signs(odd: Sequence[str], present: pd.Series, times: NDArray[np.intp] | None) -> bool:
    """Return whether the values that are no dates are a few signs of no value, such as unknown and 00.00.0000."""
    import numpy as np

    if not odd:
        return True
    # a mistyped date of a person is none: its digits are not all the same few
    blank = all((len(text) <= MAX_ODD_LENGTH and set(re.findall(r"\d", text)) <= {"0", "8", "9"}) or "9999" in text for text in odd)  # fmt: skip
    if not blank or len(odd) > MAX_ODD_VALUES:
        return False
    is_odd = present.astype("str").isin(odd).to_numpy()
    counts = np.ones(len(present)) if times is None else times[present.index]
    return bool(counts[is_odd].sum() <= MAX_ODD_SHARE * counts.sum())


def _questions(
    name: str, form: DateForm, texts: Sequence[str], moments: NDArray[np.datetime64], is_date: NDArray[np.bool_]
) -> Iterator[str]:
    """Yield what the owner of a file decides about a column of dates, with the option that does."""
    import numpy as np

    from sfumato.engine.data.date_texts import write_dates

    # steps of a week, or to the next month, are regular in dates and not in numbers
    if form.text.startswith("yyyymmdd") and not is_regular_series(moments[is_date]):
        yield f"numbers that are all dates are read as {form.text}; --as {name}=count reads them as numbers"
    years = moments[is_date].astype("datetime64[Y]").astype(np.int64) + 1970
    if form.has_short_year:
        late = int(years.max()) > dt.datetime.now(dt.UTC).year + 1
        if late or int(years.max() - years.min()) > CENTURY_SPAN or is_named_as_birth(name):
            yield (
                f"two-digit years are read as {FIRST_YEAR} to {FIRST_YEAR + 99}; "
                f"--as {name}=date:{form.text}@1930 reads them as 1930 to 2029"
            )
    first = np.flatnonzero(is_date)[:SAMPLE_TEXTS]
    written = write_dates(moments[first], form)
    if any(texts[i] != text for i, text in zip(first.tolist(), written, strict=True)):
        yield f"the file writes dates in more than one way, a release writes them all as {form.text}"


def is_regular_series(moments: NDArray[np.datetime64]) -> bool:
    """Return whether dates (n,) follow each other in the order of the file, with nearly all steps of one usual length.

    They are those of a time series, such as the weather of each day, and none of people. Dates on one day of the month,
    or on its last, follow each other by months.
    """
    import numpy as np

    if len(moments) < 3 or np.isnat(moments).any():
        return False
    seconds = moments.astype("datetime64[s]")
    for shift in (0, 1):
        shifted = seconds + np.timedelta64(shift, "D")
        months = shifted.astype("datetime64[M]")
        into_month = (shifted - months.astype("datetime64[s]")).astype(np.int64)
        # tomorrow is the first of a month
        of_months = not np.ptp(into_month) and (not shift or into_month[0] < SECONDS_OF_DAY)
        steps = np.abs(np.diff(months if of_months else seconds).astype(np.int64))
        lengths, times = np.unique(steps, return_counts=True)
        length, most = int(lengths[times.argmax()]), int(times.max())
        is_usual = length in MONTHS_BETWEEN if of_months else length in SECONDS_BETWEEN
        if is_usual and most >= MIN_REGULAR_SHARE * len(steps):
            return bool((moments[1:] > moments[:-1]).all() or (moments[1:] < moments[:-1]).all())
    return False


def is_named_as_birth(name: str) -> bool:
    """Return whether a column's name says that it holds dates of birth."""
    from .identifiers import words_of_name

    return not BIRTH_WORDS.isdisjoint(words_of_name(name))
