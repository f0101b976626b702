"""Wording of numbers: one record is, two records are; values, shares and settings as people read them."""

from __future__ import annotations

import csv
import math
from collections.abc import Container, Iterable, Mapping, Sequence


class RecordCount(int):
    """A number of records that knows what one record is.

    noun: what records are, in the plural, such as ``people`` or ``person-years``
    units: number of those whom several of the records describe, such as households; None where each is one
    """

    noun: str
    units: RecordCount | None

    def __new__(cls, value: int, noun: str = "", units: RecordCount | None = None) -> RecordCount:
        """Count ``value`` records, which are people where no noun is given."""
        count = super().__new__(cls, value)
        count.noun = noun or "people"
        count.units = units
        return count


def record_noun(records: int | None) -> str:
    """Return what the records of a count are, in the plural; people where the count does not know."""
    return getattr(records, "noun", "people")


def count_records(records: int) -> str:
    """Return a number of records in words: ``80 records``, or ``20,190 person-years`` where the count knows that they are no people."""
    noun = record_noun(records)
    return count_noun(records, "record") if noun == "people" else count_of_noun(records, noun)


def count_of_noun(number: int, noun: str) -> str:
    """Return a number with a plural noun, which is in the singular for one: ``1 person``, ``12 people``."""
    return f"{number:,} {singular_noun(noun) if number == 1 else noun}"


def singular_noun(noun: str) -> str:
    """Return the singular of a plural noun of the texts: ``person``, ``class``, ``person-year``."""
    irregular = {"people": "person", "classes": "class", "guesses": "guess"}
    return irregular.get(noun) or (f"{noun[:-3]}y" if noun.endswith("ies") else noun.removesuffix("s"))


WORDS_OF_NUMBERS = frozenset({"id", "ids", "identifier", "number", "no", "nr", "num", "code", "key", "of", "the"})
"""Words of a column's name or title that say that it is a number and not what is numbered."""


def unit_noun(label: str) -> str:
    """Return the plural noun of what a column numbers, by its title or name: ``households`` for ``household_id``.

    A label that is no noun of one or two words gives ``units``.
    """
    words = [word for word in label.lower().replace("_", " ").replace("-", " ").split() if word not in WORDS_OF_NUMBERS]
    if not 1 <= len(words) <= 2 or not all(word.isalpha() and len(word) > 2 for word in words):
        return "units"
    noun = " ".join(words)
    if noun == "person":
        return "people"
    if noun.endswith("s"):
        return noun
    return f"{noun[:-1]}ies" if noun.endswith("y") and noun[-2] not in "aeiou" else f"{noun}s"


def join_names(names: Sequence[str]) -> str:
    """Return names as a list in a sentence: ``age, sex and region``."""
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"


def join_first_names(names: Sequence[str], most: int, *, total: int = 0, separator: str = ", ") -> str:
    """Return the first names as a list in a sentence, and the number of the others: ``age, sex and 12 more``.

    ``total`` is the number of all names, where ``names`` are some of them. Without others no last name stands behind "and".
    """
    left = max(total, len(names)) - min(most, len(names))
    named = separator.join(names[:most])
    return f"{named} and {left:,} more" if left else named


def split_names(given: Iterable[str], whole: Container[str] = ()) -> tuple[str, ...]:
    """Return the names in some texts: commas separate them, quotes enclose one that has a comma; each name once.

    A text or a part that is in ``whole`` is a name as it stands.
    """
    found: list[str] = []
    for text in given:
        try:
            rows = [[text]] if text in whole else list(csv.reader([text], skipinitialspace=True))
        except csv.Error:
            # a line break within a text: no name has one, so the text is reported as it is
            rows = [[text]]
        found += [name if name in whole else name.strip() for row in rows for name in row if name.strip()]
    return tuple(dict.fromkeys(found))


def count_noun(number: int, noun: str) -> str:
    """Return a number of things in words: ``1 record``, ``12,000 records``, ``2 classes``."""
    ending = "" if number == 1 else "es" if noun.endswith("s") else "s"
    return f"{number:,} {noun}{ending}"


def agreeing_word(number: int, one: str, several: str) -> str:
    """Return the word that agrees with a number of things: ``is`` or ``are``."""
    return one if number == 1 else several


LEAST_DECIMAL = 1e-7
"""Size from which a number is written as a decimal: a reader compares 0.000038 with 0.01, and 3.8e-05 with nothing."""


def format_number(value: float | None) -> str:
    """Return a number in four significant digits; thousands separated; a dash for none.

    Numbers below 0.0001 have two significant digits, and a power of ten only where more than seven zeros would stand
    before these.
    """
    if value is None:
        return "-"
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    size = abs(value)
    if size >= 10_000:
        return f"{value:,.0f}"
    if size < LEAST_DECIMAL:
        return f"{value:.2g}"
    digits = 2 if size < 1e-4 else 4
    decimals = max(0, digits - 1 - math.floor(math.log10(size)))
    text = f"{value:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def format_percent(share: float, beside: float | None = None) -> str:
    """Return a share in percent, ``0.44 %``: two decimals, two digits below 0.1 %.

    More digits, to at most 12 decimals, where the text would be that of another value: of 0, of 100 % or of the share ``beside`` it, such
    as a limit.
    """
    if not math.isfinite(share):
        return f"{share:g}"
    others = [one for one in (0.0, 1.0, beside) if one is not None and one != share]
    size = abs(100 * share)
    least = 2 if size >= 0.1 or share == 0 else 1 - math.floor(math.log10(size))
    for decimals in range(min(least, 12), 13):
        text = _format_decimal(100 * share, decimals)
        if text not in {_format_decimal(100 * one, decimals) for one in others}:
            break
    return f"{text} %"


def _format_decimal(value: float, decimals: int) -> str:
    text = f"{value:,.{decimals}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text


def format_setting(value: object) -> str:
    """Return a setting in words: ``yes``, ``age, sex``, ``price 5%``."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {format_setting(item)}" for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(map(format_setting, value))
    return format_number(value) if isinstance(value, float) else str(value)
