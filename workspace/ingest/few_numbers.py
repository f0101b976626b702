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
        "type",
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
QUANTITY_PHRASE = re.compile(r"\b(?:no|nr|number)\b\.? of\b|\bhow (?:many|old|often)\b|\bnombre d|\bnúmero de\b", re.IGNORECASE)  # fmt: skip
MIN_VALUES_THAT_FALL = 8
"""Fewest distinct values whose falling frequencies show a count; codes of fewer levels often fall by chance."""
MIN_VALUES_OF_DOUBT = 10
"""Distinct values from which numbers other than 1 to k may be a measurement."""
STRONG_FALL, FALL = -0.9, -0.8
"""Rank correlations of a value with its frequency up to which the frequencies of a count, or of what may be one, fall."""


def says_quantity(name: str, title: str) -> bool:
    """Return whether a column's name or title says that its numbers are counted or measured, and not grouped."""
    words = [*words_of_name(name), *words_of_name(title)]
    # a number alone may name something: a room, a school
    said = not QUANTITY_WORDS.isdisjoint(words) or QUANTITY_PHRASE.search(" ".join(words)) is not None
    return said and GROUP_WORDS.isdisjoint(words)


def may_count(present: pd.Series, times: NDArray[np.intp] | None) -> tuple[bool, bool]:
    """Return whether few whole numbers count something, and whether they may.

    ``present`` are the values (n,), or the distinct ones (k,) with the number of records of each in ``times``.
    """
    import numpy as np
    import pandas as pd

    found = (
        present.value_counts()
        if times is None
        else pd.Series(times[present.index.to_numpy()], present.to_numpy()).groupby(level=0).sum()
    )
    values, low = found.sort_index(), int(found.index.min())
    ranks = values.rank().to_numpy()
    # equal frequencies of all values neither fall nor rise
    fall = float(np.corrcoef(np.arange(len(ranks)), ranks)[0, 1]) if np.ptp(ranks) else 0.0
    starts = low in (0, 1) and int(found.index[int(found.to_numpy().argmax())]) <= low + 2
    counts = starts and len(values) >= MIN_VALUES_THAT_FALL and fall <= STRONG_FALL
    one_to_k = low == 1 and int(found.index.to_numpy().max()) == len(values)
    doubt = (low == 0 and starts and len(values) > 3 and fall <= FALL) or (
        len(values) >= MIN_VALUES_OF_DOUBT and not one_to_k
    )
    return counts, doubt
