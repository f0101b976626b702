"""Whether whole numbers that repeat number units, such as schools, rather than measure something.

The records of a unit often follow each other, or are as many as those of any other. Whoever numbers units begins at 1, and how many records a unit has says
nothing about those of the next number. Numbers that measure something have a mode, and neighbours that are about as
frequent, but for round ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

MIN_UNITS = 20
"""Different values above which whole numbers are not taken for few codes anyhow."""
MIN_RECORDS_PER_BLOCK = 2
"""Mean number of records with each value from which records that follow each other say something."""
MIN_RECORDS_PER_UNIT = 5
"""Mean number of records with each value from which frequencies say something."""
MAX_GREATEST_SHARE = 0.2
"""Share of the records with one value from which it is the mode of a measurement."""
QUARTER_SHARES = (0.1, 0.5)
"""Least and greatest share of the records that each quarter of the range of numbers of units has."""
MIN_ROUGHNESS = 3.0
"""Mean of (a - b)^2 / (a + b) over neighbouring frequencies a and b from which they are unrelated; 1 for Poisson counts."""
ROUND = 5
"""Multiples of it are heaped where people round."""
MAX_RANGE = 1 << 20
PLACE_IN_TIME_WORDS = frozenset(
    ["round", "week", "day", "month", "year", "hour", "minute", "wave", "period", "age", "rank", "position", "runde", "woche", "tag"]
)  # fmt: skip
"""Words of a name that say that numbers from 1 on are an order, a time or an age."""


def may_number_units(name: str, present: pd.Series, times: NDArray[np.intp] | None) -> bool:
    """Return whether whole numbers of a column of this name, none negative, may number units.

    ``present`` are the values (n,), or the distinct ones (k,) with the number of records of each in ``times``.
    """
    import numpy as np

    from .few_numbers import MEASURE_WORDS, QUANTITY_WORDS
    from .identifiers import words_of_name

    if not (PLACE_IN_TIME_WORDS | MEASURE_WORDS | QUANTITY_WORDS).isdisjoint(words_of_name(name)):
        return False
    values = present.to_numpy(dtype=np.float64)
    if times is None and (_stand_in_blocks(values) or _are_equally_frequent(values)):
        return True
    records = float(len(values) if times is None else times[present.index.to_numpy()].sum())
    high = int(values.max())
    if values.min() != 1 or high > MAX_RANGE or high < 2 * ROUND:
        return False
    # numbers that are all tens apart are rounded
    if int(np.gcd.reduce(values.astype(np.int64) - 1)) > 1:
        return False
    weights = None if times is None else times[present.index.to_numpy()].astype(np.float64)
    frequencies = np.bincount(values.astype(np.int64), weights, high + 1)[1:].astype(np.float64)
    n_values = int((frequencies > 0).sum())
    if records < MIN_RECORDS_PER_UNIT * n_values or frequencies.max() > MAX_GREATEST_SHARE * records:
        return False
    quarters = [part.sum() / records for part in np.array_split(frequencies, 4)]
    least, greatest = QUARTER_SHARES
    if min(quarters) < least or max(quarters) > greatest:
        return False
    is_round = np.arange(1, high + 1) % ROUND == 0
    return min(_roughness(frequencies), _roughness(frequencies[~is_round])) >= MIN_ROUGHNESS


def _stand_in_blocks(values: NDArray[np.float64]) -> bool:
    """Return whether the records (n,) of each of many values follow each other, as those of the units of a panel do."""
    import numpy as np

    n_values = len(np.unique(values))
    n_blocks = 1 + int(np.count_nonzero(np.diff(values)))
    return MIN_UNITS < n_values == n_blocks and len(values) >= MIN_RECORDS_PER_BLOCK * n_values


def _are_equally_frequent(values: NDArray[np.float64]) -> bool:
    """Return whether each of many values has as many records (n,) as every other, as the units of a panel have."""
    import numpy as np

    _, times = np.unique(values, return_counts=True)
    return len(times) > MIN_UNITS and int(times.min()) == int(times.max()) >= MIN_RECORDS_PER_BLOCK


def _roughness(frequencies: NDArray[np.float64]) -> float:
    """Return how unlike neighbouring frequencies (k,) are: 1 on average where they are Poisson counts of one mean."""
    import numpy as np

    sums = frequencies[1:] + frequencies[:-1]
    differences = np.diff(frequencies)[sums > 0]
    return float(np.mean(differences**2 / sums[sums > 0])) if len(differences) else 0.0
