"""Shares and means by noisy margins, with intervals that include the noise.

The estimate is a ratio of two sums over the least-squares margin: the wanted one and the number of records. Margins
that were chosen by earlier ones are taken as if they had been given.

A limit of an interval is the value at which the test of it would fail, by the variance that holds at that value (Wilson
1927; Fieller 1954). With T the wanted sum, N the number of records and mu a value,

    D(mu) = T - mu N,    Var D(mu) = noise(mu) + N s^2(mu)

where noise(mu) is a quadratic in mu, and s^2(mu) = mu (1 - mu) for a share, whose D is moved by half a record, as counts are
whole numbers (Newcombe 1998, method 4): without that, coverage dips to 91 % where noise is small. An interval around the estimate by the
variance at the estimate covers as little as 74 % of shares near 0 or 1, where few records leave a variance of 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from ..data.arrays import Floats
from ..data.provenance import ReleaseProvenance
from .consistency import MarginResiduals, MeasuredMargin
from .domain import Clique, Domain

CONFIDENCE_LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class NoisyEstimate:
    """Share or mean, its interval, and its standard errors.

    value: the estimate
    lower, upper: ends of its interval; infinite where noise leaves any value possible
    noise_error: standard error from the noise
    sampling_error: standard error from sampling, 0 where it is not included
    """

    value: float
    lower: float
    upper: float
    noise_error: float
    sampling_error: float


def sampling_obstacle(provenance: ReleaseProvenance, unit_records: int) -> str:
    """Return why records are no simple random sample, so that an interval of the population fails.

    It is empty where nothing speaks against it. ``unit_records`` is the most records that a unit has.
    """
    if provenance.has_survey_design:
        return "the records have a survey design, which noisy counts do not follow"
    if unit_records > 1:
        return f"several records, at most {unit_records}, may be of one unit: they depend on each other"
    return ""


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
    share = bool(np.isin(values[meant > 0], (0.0, 1.0)).all())
    found = float((values * table).sum()) / total
    own = min(max(found, 0.0), 1.0) if share else found
    # Cells with noise may be negative, and a variance must not be.
    spread = own * (1 - own) if share else float((np.maximum(table, 0) * (values - found) ** 2).sum()) / total
    noise = residuals.weighted_sum_variance(clique, meant * (values - found))
    # mu (1 - mu) of a share; the spread of the records for a mean, whatever value is tested
    own_spread = ((0.0, 1.0, -1.0) if share else (spread, 0.0, 0.0)) if population else (0.0, 0.0, 0.0)
    lower, upper = _score_limits(
        found,
        0.5 / total if share and population else 0.0,
        total,
        _noise_quadratic(residuals, clique, values, meant),
        own_spread,
        float(ndtri((1 + level) / 2)),
    )
    sampling = spread / total if population else 0.0
    return NoisyEstimate(found, lower, upper, math.sqrt(noise) / total, math.sqrt(sampling))


Quadratic = tuple[float, float, float]
"""Coefficients of 1, mu and mu^2."""


def _noise_quadratic(residuals: MarginResiduals, clique: Clique, values: Floats, meant: Floats) -> Quadratic:
    """Return the variance, by the noise, of the wanted sum less mu times the number of records."""
    at_zero, at_one, at_minus_one = (
        residuals.weighted_sum_variance(clique, meant * (values - mu)) for mu in (0.0, 1.0, -1.0)
    )
    return at_zero, (at_one - at_minus_one) / 2, (at_one + at_minus_one) / 2 - at_zero


def _score_limits(
    mean: float, moved: float, total: float, noise: Quadratic, spread: Quadratic, z: float
) -> tuple[float, float]:
    """Return the smallest and the largest mu with (mean - mu)^2 total^2 at most z^2 (noise(mu) + total spread(mu)).

    Before, the mean is ``moved`` down for the smallest, and up for the largest.
    """
    a, b, c = (z**2 * (one + total * other) for one, other in zip(noise, spread, strict=True))
    square, ends = total**2 - c, list[float]()
    if square <= 0:
        return -math.inf, math.inf
    for sign in (-1, 1):
        # square mu^2 - 2 half mu + rest = 0
        own = mean + sign * moved
        half, rest = own * total**2 + b / 2, (own * total) ** 2 - a
        ends.append((half + sign * math.sqrt(max(half**2 - square * rest, 0.0))) / square)
    return ends[0], ends[1]
