"""Combination of estimates over m released datasets, and over datasets that each meet several replicates of a noise.

With q_l the estimate on dataset l and u_l its variance, q the mean of the q_l, b their variance (divisor m - 1) and u
the mean of the u_l, the variance of q as an estimate of the population's quantity is

    partial synthesis (Reiter 2003)              T_p = u + b/m,          t with (m - 1) (1 + m u / b)^2 df
    full synthesis (Raghunathan et al. 2003)     T_f = (1 + 1/m) b - u,  t with (m - 1) (1 - u / ((1 + 1/m) b))^2 df

In a crossed two-way layout m datasets (rows) each meet the same R replicates of a noise (columns), one value a cell:

    y_lr = mu + D_l + N_r + E_lr,    D, N, E independent with means 0 and variances s_D, s_N, s_E
    Var(mean of y) = s_D/m + s_N/R + s_E/(m R)
    E[MS_D] = R s_D + s_E,    E[MS_N] = m s_N + s_E,    E[MS_E] = s_E    with m - 1, R - 1 and (m - 1)(R - 1) df

(Searle, Casella & McCulloch 1992, Variance Components, §4.7; Burdick & Graybill 1992, Confidence Intervals on Variance
Components, ch. 6). Simulated coverage of its 95 % intervals over all ratios of the variances: 93.6-97.1 % with four or
more rows and columns, 94.7-99.7 % with fewer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtridf, stdtrit

from ..data.arrays import Floats
from ..data.intervals import UNBOUNDED, Range, bounded_interval
from .columns import column_scales, standard_deviation

_NORMAL_DEGREES = 1e9
_MIN_FOR_SATTERTHWAITE = 4
_ROUNDING_SHARE = 1e-9
_CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class CombinedEstimate:
    """Estimate combined from m datasets.

    estimate: the combined estimate
    variance: its variance
    degrees_of_freedom: degrees of freedom of its t distribution, infinite for a normal one
    is_adjusted: whether the variance is the adjusted one, since T_f is negative or has less than one degree of freedom
    """

    estimate: float
    variance: float
    degrees_of_freedom: float
    is_adjusted: bool = False

    def interval(self, confidence: float = 0.95, within: Range = UNBOUNDED) -> tuple[float, float]:
        """Return the lower and the upper end of the confidence interval, inside the range of the quantity."""
        half = t_quantile(self.degrees_of_freedom, confidence) * float(np.sqrt(self.variance))
        return bounded_interval(self.estimate, half, within)


def combine_partial_synthesis(
    estimates: Sequence[float], variances: Sequence[float], degrees: float = np.inf
) -> CombinedEstimate:
    """Combine estimates q_l and variances u_l of m >= 2 partially synthetic datasets (Reiter 2003).

    ``degrees`` are those of the variances, infinite where these count as known.
    """
    q, b, u, m = _combining_moments(estimates, variances)
    return CombinedEstimate(q, u + b / m, _satterthwaite_degrees(u + b / m, b / m, m, u, degrees))


def combine_full_synthesis(
    estimates: Sequence[float],
    variances: Sequence[float],
    size_ratios: Sequence[float] | None = None,
    degrees: float = np.inf,
) -> CombinedEstimate:
    """Combine estimates q_l and variances u_l of m >= 2 fully synthetic datasets (Raghunathan et al. 2003).

    size_ratios: n_l / n, the records of each released dataset for each confidential one; None where all are 1
    degrees: degrees of freedom of the variances, infinite where these count as known
    """
    q, b, u, m = _combining_moments(estimates, variances)
    total, between = (1 + 1 / m) * b - u, (1 + 1 / m) * b
    # With less than one df t intervals are anything from no width to 1e100 standard errors. Adjusting them too brings
    # the coverage nearer to 95 % (simulated means: 99.1 to 98.6 % for m = 20, 97.9 to 94.9 % for m = 5; 96 to 91 % for
    # m = 3, too few datasets for full synthesis).
    own = _satterthwaite_degrees(total, between, m, u, degrees) if total > 0 else 0.0
    if own >= 1:
        return CombinedEstimate(q, total, own)
    # Reiter (2002): (n_syn / n) u is what the variance of the confidential estimate would be. Where sizes differ each
    # dataset says so of its own; T_f needs no change, as b has the noise of each size with its share.
    adjusted = u if size_ratios is None else float(np.mean(np.multiply(size_ratios, variances)))
    return CombinedEstimate(q, adjusted, degrees, is_adjusted=True)


def _satterthwaite_degrees(total: float, between: float, m: int, within: float, degrees: float) -> float:
    """Return the degrees of freedom of a variance made of a part between m datasets and one within: V^2 / sum of V_i^2
    / df_i (Satterthwaite 1946).

    With infinite ``degrees`` within, it is (m - 1) (total / between)^2, as in Reiter (2003) and Raghunathan et al.
    (2003).
    """
    if total <= 0:
        return np.inf
    squares = (between / total) ** 2 / (m - 1) + (within / total) ** 2 / degrees
    return 1 / squares if squares > 0 else np.inf


def _combining_moments(estimates: Sequence[float], variances: Sequence[float]) -> tuple[float, float, float, int]:
    """Return the mean of the estimates, their variance, the mean of the variances, and m."""
    if len(estimates) < 2:
        raise ValueError("the variance between datasets needs two or more of them")
    return float(np.mean(estimates)), float(np.var(estimates, ddof=1)), float(np.mean(variances)), len(estimates)


def t_quantile(degrees: float, confidence: float) -> float:
    """Return the half width, in standard errors, of a t interval with ``degrees`` degrees of freedom, possibly
    infinite.
    """
    tail = (1 + confidence) / 2
    return float(ndtri(tail) if degrees > _NORMAL_DEGREES else stdtrit(degrees, tail))


def monte_carlo_mean(
    values: Sequence[float], confidence: float = 0.95, within: Range = UNBOUNDED
) -> tuple[float, float | None, float | None]:
    """Return the mean of m values and the ends of its t interval with m - 1 degrees of freedom, inside the range of the
    values.

    The interval is about the simulation: how far the average over m datasets may lie from the average over all datasets
    that the same models could have drawn. A single value has none.
    """
    # the mean of equal shares is that share, and no mean is beyond its values, whatever rounding does
    scale = float(column_scales(np.asarray(values)))
    mean = min(max(float(np.mean(np.asarray(values) / scale)) * scale, min(values)), max(values))
    if len(values) < 2:
        return mean, None, None
    spread = standard_deviation(np.asarray(values), ddof=1) if min(values) < max(values) else 0.0
    error = spread / float(np.sqrt(len(values)))
    return mean, *bounded_interval(mean, t_quantile(len(values) - 1, confidence) * error, within)


@dataclass(frozen=True, slots=True)
class VarianceShares:
    """Shares of the variance of a mean due to the datasets, the noise and their interaction, 1 in all."""

    datasets: float
    noise: float
    interaction: float


@dataclass(frozen=True, slots=True)
class CrossedMean:
    """Mean of a crossed layout with its variance.

    combined: the mean with its variance and degrees of freedom
    shares: shares of the variance; None where all values are equal
    """

    combined: CombinedEstimate
    shares: VarianceShares | None


def crossed_mean(values: Floats) -> CrossedMean:
    """Estimate the mean over fresh rows and columns from a layout ``values`` (m, R) without missing values, m and R at
    least 2.
    """
    m, replicates = values.shape
    if min(m, replicates) < 2:
        raise ValueError("a crossed layout needs two or more rows and columns")
    if np.ptp(values) == 0:
        return CrossedMean(CombinedEstimate(float(values[0, 0]), 0.0, np.inf), None)
    squares, degrees = _analysis_of_variance(values)
    parts = _variance_components(squares)
    shares = VarianceShares(*(float(part) for part in parts / parts.sum()))
    total, df = (
        _conservative_variance(squares, degrees)
        if min(values.shape) < _MIN_FOR_SATTERTHWAITE
        else _satterthwaite_variance(squares, degrees)
    )
    return CrossedMean(CombinedEstimate(float(values.mean()), total / values.size, df), shares)


def _analysis_of_variance(values: Floats) -> tuple[Floats, Floats]:
    """Return the mean squares of rows, columns and residuals, and their degrees of freedom: (3,) each."""
    m, replicates = values.shape
    deviations = values - values.mean()
    row, column = deviations.mean(axis=1, keepdims=True), deviations.mean(axis=0, keepdims=True)
    degrees = np.array([m - 1.0, replicates - 1.0, (m - 1.0) * (replicates - 1.0)])
    sums = [replicates * np.sum(row**2), m * np.sum(column**2), np.sum((deviations - row - column) ** 2)]
    return np.array(sums) / degrees, degrees


def _variance_components(squares: Floats) -> Floats:
    """Return the variance of the mean times m R by source: rows, columns and residuals, none below 0: (3,)."""
    rows, columns, residuals = squares
    return np.array([max(rows - residuals, 0.0), max(columns - residuals, 0.0), residuals])


def _satterthwaite_variance(squares: Floats, degrees: Floats) -> tuple[float, float]:
    """Return the variance of the mean times m R, and its degrees of freedom (Satterthwaite 1946)."""
    residuals = squares[2]
    # A component whose estimate is not above 0 leaves the model, and its line the formula; both gone: all lines pooled.
    present = squares[:2] > residuals * (1 + _ROUNDING_SHARE)
    if not present.any():
        return float(np.average(squares, weights=degrees)), float(degrees.sum())
    kept = np.array([*present, present.all()])
    total = float(_variance_components(squares).sum())
    df = total**2 / float(np.sum((squares**2 / degrees)[kept]))
    # Satterthwaite's df can fall below those of either line.
    return total, max(df, float(degrees.min()))


def _conservative_variance(squares: Floats, degrees: Floats) -> tuple[float, float]:
    """Return the sum of the mean squares of rows and columns, and the degrees of freedom of a conservative t interval.

    Its half width is sqrt((t_D^2 MS_D + t_N^2 MS_N) / (m R)), with the t quantile of each line's own df.
    """
    # With two or three rows or columns their component is often estimated as 0 when it is not: Satterthwaite's
    # intervals then cover as little as 87 %. So nothing is taken away.
    widths = squares * np.array([t_quantile(float(df), _CONFIDENCE) ** 2 for df in degrees])
    wide, total = float(widths[:2].sum()), float(squares[:2].sum())
    # Whole numbers can have all their variance in the residuals.
    if wide < widths[2]:
        return float(squares[2]), float(degrees[2])
    return total, float(stdtridf((1 + _CONFIDENCE) / 2, np.sqrt(wide / total)))


def complete_rows_and_columns(values: Floats) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which rows (m,) and columns (R,) to keep so that no value is missing.

    The row or column with the largest share of missing values is dropped until none is missing, rows first.
    """
    rows, columns = np.ones(values.shape[0], dtype=np.bool_), np.ones(values.shape[1], dtype=np.bool_)
    holes = np.isnan(values)
    while (left := holes & rows[:, None] & columns[None, :]).any():
        by_row, by_column = left.sum(axis=1) / columns.sum(), left.sum(axis=0) / rows.sum()
        if by_row.max() >= by_column.max():
            rows[by_row.argmax()] = False
        else:
            columns[by_column.argmax()] = False
    return rows, columns
