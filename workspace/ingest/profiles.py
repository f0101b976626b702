"""Distribution of each variable of a stored table, as a histogram and quantiles.

Bins and levels of one or two records are withheld, and bins have round limits, so that a histogram on a shared screen
shows no record's value.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sfumato.engine.data.blocks import row_blocks
from sfumato.engine.data.schema import Kind

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from sfumato.engine.data.microdata import Microdata

MIN_SHOWN_COUNT = 3
"""Smallest count of a bin or level that is shown."""
MAX_BINS = 40
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True, slots=True)
class DistributionProfile:
    """Distribution of one variable of a stored table.

    name: name of the variable
    records: number of records with a value
    distinct: number of distinct values
    counts: records in each bin or of each level, (k,); withheld ones count 0
    n_withheld: number of bins or levels of one or two records
    levels: levels, (k,), empty for numbers
    starts: lower ends of the bins, (k,)
    width: width of a bin
    quantiles: pairs of a share, of QUANTILES, and a value
    mean: mean
    sd: standard deviation
    total: total of the numbers as survey weights, None where some are not above 0
    design_effect: design effect of the numbers as survey weights, None where some are not above 0
    """

    name: str
    records: int
    distinct: int
    counts: tuple[int, ...]
    n_withheld: int
    levels: tuple[str, ...] = ()
    starts: tuple[float, ...] = ()
    width: float = 1.0
    quantiles: tuple[tuple[float, float], ...] = ()
    mean: float | None = None
    sd: float | None = None
    total: float | None = None
    design_effect: float | None = None


def profile_distribution(data: Microdata, name: str) -> DistributionProfile:
    """Compute the distribution of one variable over the records that have a value; dates count days since 1970."""
    import numpy as np

    from sfumato.engine.data.distinct_values import count_codes
    from sfumato.engine.statistics.columns import standard_deviation

    variable = data.schema[name]
    if variable.kind.has_levels:
        column = data.column(name).cat
        levels = tuple(map(str, column.categories))
        counts = count_codes(column.codes.to_numpy(), len(levels))
        shown, withheld = _withhold_small_counts(counts)
        return DistributionProfile(name, int(counts.sum()), int((counts > 0).sum()), shown, withheld, levels)
    numbers = data.present_numbers(name)
    rising = np.sort(numbers)
    distinct = 1 + int(np.count_nonzero(rising[1:] != rising[:-1]))
    # a few rows at a time, since whole-column temporaries double the memory of a large table
    blocks = list(row_blocks(len(rising)))
    whole = variable.kind is Kind.DATE or all((rising[rows] == np.floor(rising[rows])).all() for rows in blocks)
    # Rice's rule: Scott (2009), "Sturges' rule", section 2
    bins = min(MAX_BINS, math.ceil(2 * len(rising) ** (1 / 3)))
    width = round_bin_width(float(rising[-1] - rising[0]), bins, whole=whole)
    # edges are multiples of the width: one at the smallest value would show it
    first, last = _bin_numbers(rising[[0, -1]], width).tolist()
    counts = np.zeros(last - first + 1, dtype=np.intp)
    for rows in blocks:
        counts += np.bincount(_bin_numbers(rising[rows], width) - first, minlength=len(counts))
    starts = tuple(((first + np.arange(len(counts))) * width).tolist())
    shown, withheld = _withhold_small_counts(counts)
    quantiles = tuple(zip(QUANTILES, np.quantile(rising, QUANTILES).tolist(), strict=True))
    sd = standard_deviation(numbers, ddof=1) if len(numbers) > 1 else None
    weights = _weight_statistics(numbers) if variable.kind is not Kind.DATE else (None, None)
    mean = float(np.mean(numbers))
    return DistributionProfile(
        name, len(numbers), distinct, shown, withheld, (), starts, width, quantiles, mean, sd, *weights
    )


def _bin_numbers(values: NDArray[np.float64], width: float) -> NDArray[np.int64]:
    """Return the number of the bin of each value, (n,): bin i holds the values from i widths to below i + 1 widths."""
    import numpy as np

    numbers = np.floor(values / width)
    # A quotient that was rounded up to a whole number lies in the bin below: a tiny negative value is below 0.
    return (numbers - (numbers * width > values)).astype(np.int64)


def _weight_statistics(numbers: NDArray[np.float64]) -> tuple[float | None, float | None]:
    """Return the total and the design effect of numbers as survey weights; None where some are not above 0."""
    from sfumato.engine.design.survey_estimation import design_effect

    return (float(numbers.sum()), design_effect(numbers)) if (numbers > 0).all() else (None, None)


def _withhold_small_counts(counts: NDArray[np.intp]) -> tuple[tuple[int, ...], int]:
    """Return the counts (k,) with those below MIN_SHOWN_COUNT set to 0, and how many were."""
    import numpy as np

    small = (counts > 0) & (counts < MIN_SHOWN_COUNT)
    return tuple(np.where(small, 0, counts).tolist()), int(small.sum())


def round_bin_width(span: float, bins: int, *, whole: bool) -> float:
    """Return the least of 1, 2 and 5 times a power of ten at which ``bins`` bins cover ``span``.

    At least 1 for whole numbers.
    """
    # A span of the smallest numbers there are, divided, is 0, which has no logarithm.
    if span / bins <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(span / bins))
    width = next(step * power for step in (1, 2, 5, 10, 20) if step * power * bins >= span)
    return max(1.0, width) if whole else width
