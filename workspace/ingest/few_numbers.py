"""Whether a column of few small whole numbers counts something or has codes of levels.

Its name or title says so, or its values: the frequencies of a count fall from 0 or 1 on, those of codes need not.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .identifiers import words_of_name

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

QUANTITY_WORDS = frozenset(
    [
        "age",
        "ages",
        "alter",
        "edad",
        "leeftijd",
        "wiek",
        "count",
        "counts",
        "anzahl",
        "quantity",
        "qty",
        "menge",
        "visits",
        "children",
        "kids",
        "siblings",
        "persons",
        "members",
        "goals",
        "points",
        "bedrooms",
        "bathrooms",
        "deaths",
        "accidents",
        "storeys",
        "score",
        "scores",
        "rooms",
        "passengers",
        "births",
        "cigarettes",
        "pregnancies",
        "partners",
        "tenure",
        "years",
        "yrs",
        "jahre",
        "months",
        "monate",
        "weeks",
        "wochen",
        "days",
        "tage",
        "hours",
        "stunden",
        "minutes",
        "minuten",
    ]
)
"""Words of a name or a title that say that whole numbers are counted or measured."""
GROUP_WORDS = frozenset(
    [
        "group",
        "groups",
        "grp",
        "gruppe",
        "class",
        "classes",
        "klasse",
        "category",
        "categories",
        "cat",
        "kategorie",
        "band",
        "bracket",
        "interval",
        "range",
        "level",
        "stage",
        "levels",
        "grade",
        "grades",
        "arm",
        "arms",
        "type",
        "types",
        "code",
        "codes",
        "coded",
        "recoded",
        "status",
        "quartile",
        "quintile",
        "decile",
        "rank",
        "sex",
        "gender",
    ]
)
"""Words that say that the numbers are codes, although they are codes of a quantity."""
MEASURE_WORDS = frozenset(
    [
        "width", "height", "depth", "length", "weight", "diameter", "thickness", "temperature", "speed", "distance", "duration",
        "price", "cost", "pay", "wage", "jahr", "année", "año",
    ]
)  # fmt: skip
"""Words that say so of numbers that do not number levels: a ``height`` from 1 to 3 may be low, middle and high."""
YEAR_NAMES = re.compile(r"[a-z]*(?:year|yr)")
"""Words of a name that say that a number is a year."""
PLURAL = re.compile(r"(?!.*(?:ss|us|is|ies)$|lens$|news$)[a-zà-ÿ]{3,}s|[a-z]+(?<!ser)(?<!spec)ies")
"""Words that name several things: where many values may be counts, they are."""
MAX_DIGIT = 9
"""Greatest code of one digit: with 9 for no answer, codes do not follow each other either."""
COUNT_NAMES = re.compile(
    r"n?(?:kids?|child|children|chd|sibs?|brothers?|sisters?)(?:lt|gt|u|under)?|n(?:visits?|persons?|members?|partners?)|num(?!b|er)[a-z]{3,}"
)
"""Words of a name that say so of numbers whose frequencies fall from 0 on."""
SCHOOL_NAMES = re.compile(
    r"educ[a-z]{0,2}|education|school|schooling|y(?:rs?|ears?)?_?sch(?:ool(?:ing)?)?|ed(?:uc)?yrs"
)
"""Words of a name that may say that numbers are years of education."""
SCHOOL_YEARS = range(12, 26)
"""Years of the longest education in a column of years of education."""
COMPLETED_YEARS = 12
"""Years of education after which most people leave school where it is counted in years."""
MIN_VALUES_OF_SCHOOL = 8
SIZE_WORDS = frozenset(["size", "sizes"])
"""Words that say either, such as the size of a party and a size of clothes."""
QUANTITY_PHRASE = re.compile(r"\b(?:no|nr|number)\b\.? of\b|\bhow (?:many|old|often)\b|\bnombre d|\bnúmero de\b", re.IGNORECASE)  # fmt: skip
MIN_VALUES_THAT_FALL = 8
"""Fewest distinct values whose falling frequencies show a count; codes of fewer levels often fall by chance."""
MIN_VALUES_OF_DOUBT = 10
"""Distinct values from which numbers other than 1 to k may be a measurement; fewer where codes would begin at 2."""
STRONG_FALL, FALL = -0.9, -0.8
"""Rank correlations of a value with its frequency up to which the frequencies of a count, or of what may be one, fall."""
PEAK, SIDE = -0.85, 0.7
"""Rank correlations of the distance from the most frequent value with the frequency, and of the values on either side of
it, from which the frequencies have one peak. Of 10 codes in a random order 1 in 100 have.
"""
MIN_VALUES_FROM_1 = 15
"""Distinct values from which numbers from 1 to k may be a measurement with a peak."""
MIN_FILLED = 0.8
"""Share of the whole numbers between the least and the greatest that a measurement with a peak has."""


def says_quantity(name: str, title: str) -> bool:
    """Return whether a column's name or title says that its numbers are counted or measured, and not grouped."""
    words = [*words_of_name(name), *words_of_name(title)]
    # a number alone may name something: a room, a school
    said = not QUANTITY_WORDS.isdisjoint(words) or QUANTITY_PHRASE.search(" ".join(words)) is not None
    return said and GROUP_WORDS.isdisjoint(words)


def read_few_numbers(name: str, title: str, present: pd.Series, times: NDArray[np.intp] | None) -> bool | None:
    """Return whether few whole numbers count or measure something; None where the owner of the file should say.

    ``present`` are the values (n,), or the distinct ones (k,) with the number of records of each in ``times``.
    """
    frequencies = _frequencies_of_values(present, times)
    values = frequencies.index.to_numpy()
    low, high = int(values.min()), int(values.max())
    numbers_levels = low in (0, 1) and high - low + 1 == len(values)
    counts, doubt = _may_count(frequencies)
    if counts or says_quantity(name, title) or _has_peak(frequencies):
        return True
    words = words_of_name(name)
    if GROUP_WORDS.isdisjoint([*words, *words_of_name(title)]):
        is_measured = not MEASURE_WORDS.isdisjoint(words) or any(map(YEAR_NAMES.fullmatch, words))
        if is_measured and not numbers_levels and high > MAX_DIGIT:
            return True
        # a graded symptom has fewer values: headaches from 0 to 3
        many = len(values) >= MIN_VALUES_THAT_FALL
        if doubt and low < 2 and many and any(map(PLURAL.fullmatch, words[-1:])):
            return True
        if low == 0 and _falls(frequencies, FALL) and any(map(COUNT_NAMES.fullmatch, words)):
            return True
        if any(map(SCHOOL_NAMES.fullmatch, words)) and _may_be_school_years(values):
            return True if _most_frequent(frequencies) == COMPLETED_YEARS else None
        doubt = doubt or not SIZE_WORDS.isdisjoint(words)
    return None if doubt else False


def _frequencies_of_values(present: pd.Series, times: NDArray[np.intp] | None) -> pd.Series:
    """Return the number of records with each value, (k,), by ascending value."""
    import pandas as pd

    found = (
        present.value_counts()
        if times is None
        else pd.Series(times[present.index.to_numpy()], present.to_numpy()).groupby(level=0).sum()
    )
    return found.sort_index()


def _rank_correlation(some: NDArray[np.float64], others: NDArray[np.float64]) -> float:
    """Return Spearman's rank correlation of two columns (k,); 0 where one of them does not vary."""
    import numpy as np
    import pandas as pd

    first, second = (pd.Series(column).rank().to_numpy(dtype=float) for column in (some, others))
    varies = len(first) > 1 and bool(np.ptp(first)) and bool(np.ptp(second))
    return float(np.corrcoef(first, second)[0, 1]) if varies else 0.0


def _most_frequent(frequencies: pd.Series) -> int:
    """Return the value with the greatest of the frequencies (k,)."""
    return int(frequencies.index.to_numpy()[int(frequencies.to_numpy().argmax())])


def _falls(frequencies: pd.Series, most: float) -> bool:
    """Return whether frequencies (k,) fall with the value, with a peak at the first three values."""
    values = frequencies.index.to_numpy(dtype=float)
    starts = _most_frequent(frequencies) <= values.min() + 2
    return bool(starts) and _rank_correlation(values, frequencies.to_numpy(dtype=float)) <= most


def _may_count(frequencies: pd.Series) -> tuple[bool, bool]:
    """Return whether values with these frequencies (k,) count something, and whether they may."""
    values = frequencies.index.to_numpy()
    low, high = int(values.min()), int(values.max())
    counts = low in (0, 1) and len(frequencies) >= MIN_VALUES_THAT_FALL and _falls(frequencies, STRONG_FALL)
    one_to_k = low == 1 and high == len(frequencies)
    doubt = (low == 0 and len(frequencies) > 3 and _falls(frequencies, FALL)) or (
        len(frequencies) >= (MIN_VALUES_OF_DOUBT if low < 2 else MIN_VALUES_THAT_FALL) and not one_to_k
    )
    return counts, doubt


def _has_peak(frequencies: pd.Series) -> bool:
    """Return whether frequencies (k,) of many values rise to one and fall behind it, as those of a measurement do."""
    import numpy as np

    values, heights = frequencies.index.to_numpy(dtype=float), frequencies.to_numpy(dtype=float)
    low, high = values.min(), values.max()
    one_to_k = low == 1 and high == len(values)
    fewest = MIN_VALUES_FROM_1 if one_to_k else MIN_VALUES_OF_DOUBT
    if len(values) < fewest or len(values) < MIN_FILLED * (high - low + 1):
        return False
    top = int(heights.argmax())
    rises = _rank_correlation(values[: top + 1], heights[: top + 1])
    falls = _rank_correlation(values[top:], heights[top:])
    return rises >= SIDE and -falls >= SIDE and _rank_correlation(np.abs(values - values[top]), heights) <= PEAK


def _may_be_school_years(values: NDArray[np.float64]) -> bool:
    """Return whether whole numbers (k,) may be years of education: many, up to those of a long one, and no 1 to k."""
    high = int(values.max())
    one_to_k = int(values.min()) == 1 and high == len(values)
    return len(values) >= MIN_VALUES_OF_SCHOOL and high in SCHOOL_YEARS and not one_to_k
