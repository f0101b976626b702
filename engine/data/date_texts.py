"""Dates as texts of a form (``date_forms``), read and written many at a time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .arrays import Booleans, Integers
from .date_forms import DIGITS, PARTS, DateForm

MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
MAX_LENGTH = 32
"""Number of characters of the longest text that can be a date."""
TEXTS_AT_ONCE = 1 << 17
"""Number of texts that are parsed together, so that their characters need little memory."""
_MONTH_NAMES = ("MON", "Mon", "mon")
_HALVES = ("AM", "am")
_LETTERS = np.array([[ord(letter) for letter in name] for name in MONTHS])
_LOWER = ord("a") - ord("A")


def read_dates(texts: Sequence[str], form: DateForm) -> NDArray[np.datetime64]:
    """Return the moments that texts (k,) write, to the second; NaT where a text is no date of the form."""
    found = np.full(len(texts), "NaT", dtype="datetime64[s]")
    for first in range(0, len(texts), TEXTS_AT_ONCE):
        some = [text if len(text) <= MAX_LENGTH else "" for text in texts[first : first + TEXTS_AT_ONCE]]
        found[first : first + len(some)] = _read_characters(_character_codes(some), form)
    return found


def _read_characters(codes: Integers, form: DateForm) -> NDArray[np.datetime64]:
    """Return the moments that texts write, given their characters as ``_character_codes`` returns them."""
    place = np.zeros(len(codes), dtype=np.int64)
    fits = np.ones(len(codes), dtype=np.bool_)
    values: dict[str, Integers] = {}
    for i, token in enumerate(form.tokens):
        if token in _MONTH_NAMES:
            values["month"] = _read_month_names(codes, place, fits)
        elif token in _HALVES:
            values["half"] = _read_half(codes, place, fits)
        elif token in DIGITS:
            fewest, most = DIGITS[token]
            # without a sign between them, only the number of digits says where a part ends
            beside = {*form.tokens[max(0, i - 1) : i], *form.tokens[i + 1 : i + 2]}
            fewest = fewest if beside.isdisjoint(DIGITS) else most
            values[PARTS[token]] = _read_digits(codes, place, fits, fewest, most)
        else:
            fits &= _characters_at(codes, place) == ord(token)
            place += 1
    fits &= _characters_at(codes, place) == 0
    if form.has_short_year:
        values["year"] = form.first_year + (values["year"] - form.first_year) % 100
    return _moments_of_parts(values, fits)


def write_dates(moments: NDArray[np.datetime64], form: DateForm) -> list[str]:
    """Return the texts of moments (k,), none of them missing."""
    seconds = moments.astype("datetime64[s]")
    days, months = seconds.astype("datetime64[D]"), seconds.astype("datetime64[M]")
    time = (seconds - days).astype(np.int64)
    numbers = {
        "year": months.astype("datetime64[Y]").astype(np.int64) + 1970,
        "month": months.astype(np.int64) % 12 + 1,
        "day": (days - months.astype("datetime64[D]")).astype(np.int64) + 1,
        "hour": time // 3600,
        "minute": time // 60 % 60,
        "second": time % 60,
    }
    template = "".join(_template_of_token(token) if token in PARTS else token for token in form.tokens)
    values = [_written_values(token, numbers) for token in form.tokens if token in PARTS]
    return [template % parts for parts in zip(*values, strict=True)]


def _character_codes(texts: Sequence[str]) -> Integers:
    """Return the characters of texts (k,) as code points, (k, length + 1), with 0 behind the last."""
    longest = max(map(len, texts), default=0) + 1
    array = np.array(texts, dtype=f"U{longest}")
    return array.view(np.uint32).reshape(len(texts), longest).astype(np.int64)


def _characters_at(codes: Integers, place: Integers) -> Integers:
    """Return the character of each text (k,) at its own place; 0 behind its end."""
    width = codes.shape[1]
    found = codes[np.arange(len(codes)), np.minimum(place, width - 1)]
    return np.where(place < width, found, 0)


def _read_digits(codes: Integers, place: Integers, fits: Booleans, fewest: int, most: int) -> Integers:
    """Return the number (k,) at each place, which moves behind it; texts without one no longer fit."""
    value, count = np.zeros(len(codes), dtype=np.int64), np.zeros(len(codes), dtype=np.int64)
    for i in range(most):
        digit = _characters_at(codes, place) - ord("0")
        more = (digit >= 0) & (digit <= 9) & (count == i)
        value = np.where(more, 10 * value + digit, value)
        count += more
        place += more
    fits &= count >= fewest
    return value


def _read_month_names(codes: Integers, place: Integers, fits: Booleans) -> Integers:
    """Return the month (k,) whose name stands at each place, which moves behind it; other texts no longer fit."""
    letters = np.stack([_upper_case(_characters_at(codes, place + i)) for i in range(3)], axis=1)
    same = (letters[:, None, :] == _LETTERS[None, :, :]).all(axis=2)
    fits &= same.any(axis=1)
    place += 3
    return np.asarray(same.argmax(axis=1) + 1)


def _read_half(codes: Integers, place: Integers, fits: Booleans) -> Integers:
    """Return 0 for AM and 1 for PM (k,) at each place, which moves behind it; other texts no longer fit."""
    first, second = (_upper_case(_characters_at(codes, place + i)) for i in range(2))
    fits &= ((first == ord("A")) | (first == ord("P"))) & (second == ord("M"))
    place += 2
    return np.asarray((first == ord("P")).astype(np.int64))


def _upper_case(letters: Integers) -> Integers:
    """Return Latin letters in upper case, other characters unchanged."""
    return np.where((letters >= ord("a")) & (letters <= ord("z")), letters - _LOWER, letters)


def _moments_of_parts(values: dict[str, Integers], fits: Booleans) -> NDArray[np.datetime64]:
    """Return the moments (k,) of years, months and the other parts; NaT where they are no moment."""
    year, month, day = values["year"], values["month"], values.get("day", np.int64(1))
    zero = np.zeros(len(year), dtype=np.int64)
    hour, minute, second = (values.get(part, zero) for part in ("hour", "minute", "second"))
    fits = fits & (year >= 1) & (month >= 1) & (month <= 12) & (minute <= 59) & (second <= 59)
    if "half" in values:
        fits &= (hour >= 1) & (hour <= 12)
        hour = hour % 12 + 12 * values["half"]
    months = (np.where(fits, (year - 1970) * 12 + month - 1, 0)).astype("datetime64[M]")
    dates = months.astype("datetime64[D]") + np.asarray(day - 1, dtype="timedelta64[D]")
    # the 31st of a month of 30 days would be the first of the next
    fits &= (dates.astype("datetime64[M]") == months) & (day >= 1) & (hour <= 23)
    found: NDArray[np.datetime64] = dates.astype("datetime64[s]") + (3600 * hour + 60 * minute + second).astype(
        "timedelta64[s]"
    )
    found[~fits] = np.datetime64("NaT")
    return found


def _template_of_token(token: str) -> str:
    """Return how a token writes its value, as a ``%`` template."""
    if token not in DIGITS:
        return "%s"
    return "%d" if len(token) == 1 else f"%0{len(token)}d"


def _written_values(token: str, numbers: dict[str, Integers]) -> list[int] | list[str]:
    """Return what a token writes of each moment, (k,): a number, or a word."""
    if token in _HALVES:
        halves = (token, "PM" if token.isupper() else "pm")
        return [halves[hour >= 12] for hour in numbers["hour"].tolist()]
    values = numbers[PARTS[token]]
    if token in _MONTH_NAMES:
        cased = {"MON": str.upper, "Mon": str.capitalize, "mon": str.lower}[token]
        names = [cased(name) for name in MONTHS]
        return [names[month - 1] for month in values.tolist()]
    if token in ("h", "hh"):
        values = (values - 1) % 12 + 1
    found: list[int] = (values % 10 ** len(token) if PARTS[token] == "year" else values).tolist()
    return found
