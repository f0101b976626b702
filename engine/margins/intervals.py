"""Shares and means by noisy margins, with intervals that include the noise.

The estimate is a ratio of two sums over the least-squares margin: the wanted one and the number of records. Margins
that were chosen by earlier ones are taken as if they had been given.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from ..data.arrays import Floats
from .consistency import MarginResiduals, MeasuredMargin
from .domain import Clique, Domain

CONFIDENCE_LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class NoisyEstimate:
    """Share or mean, its interval, and its standard errors.

    value: the estimate
    lower, upper: ends of its interval
    noise_error: standard error from the noise
    sampling_error: standard error from sampling, 0 where it is not included
    """

    value: float
    lower: float
    upper: float
    noise_error: float
    sampling_error: float


def estimate_noisy_mean(
    domain: Domain,
    measured: Sequence[MeasuredMargin],
    clique: Clique,
    values: Floats,
    *,
    included_cells: Floats | None = None,
    population: bool = True,
    level: float = CONFIDENCE_LEVEL,
) -> NoisyEstimate:
    """Estimate the mean over the records of ``values``, in the shape of the margin.

    Values are 1 and 0 for a share, and the middles of bins for a mean. ``included_cells`` is 1 for the cells of the
    records that are meant and 0 for others, such as those without a value; all records by default. With ``population``
    the interval is for the population of which the records are a simple random sample, else for the records themselves.
    Values inside a bin are taken as its one value; that is no part of the interval. Raises ZeroDivisionError where
    noise leaves no records.
    """
    residuals = MarginResiduals.from_margins(domain, measured)
    meant = np.ones(domain.shape(clique)) if included_cells is None else included_cells
    table = residuals.margin_table(clique) * meant
    total = float(table.sum())
    if total <= 0:
        raise ZeroDivisionError("the noise is larger than the number of records")
    found = float((values * table).sum()) / total
    # Delta method: the linearised ratio weighs each cell by its value less the mean.
    noise = residuals.weighted_sum_variance(clique, meant * (values - found)) / total**2
    # Cells with noise may be negative, and a variance must not be.
    spread = float((np.maximum(table, 0) * (values - found) ** 2).sum()) / total
    sampling = spread / total if population else 0.0
    half = float(ndtri((1 + level) / 2)) * math.sqrt(noise + sampling)
    return NoisyEstimate(found, found - half, found + half, math.sqrt(noise), math.sqrt(sampling))
