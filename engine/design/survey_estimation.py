"""Estimates from a survey sample: weighted means, quantiles and regression coefficients, with design-based variances.

Clusters (primary sampling units) are drawn in strata; without clusters each record is one, without strata there is one.
With z_i the linearised value of record i, and Z_hc the sum of z_i over cluster c of stratum h (n_h clusters with mean
Z_h; N_h in the population, where that is given), the ultimate cluster estimator is

    V = sum_h (1 - n_h / N_h) n_h / (n_h - 1) sum_c (Z_hc - Z_h)^2

(Hansen, Hurwitz & Madow 1953; Särndal, Swensson & Wretman 1992, §4.6). Functions and results are those of R's survey
package (Lumley 2004), which tests check: ``svymean``, ``svyquantile`` (qrule "math", interval "mean") and ``svyglm``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..data.arrays import Booleans, Floats, Integers
from ..data.intervals import UNBOUNDED, Range, bounded_interval
from ..data.rows import distinct_codes, distinct_rows
from ..errors import NotComputable
from ..statistics.columns import column_scales, qr_factors
from ..statistics.combining import t_quantile
from ..statistics.interval_estimate import RESIDUAL_ROUNDING, IntervalEstimate, t_interval

_ROUNDING = 1e-12
"""How far a sum of weights may be from what it would be without rounding."""


def effective_sample_size(weights: Floats) -> float:
    """Return Kish's effective sample size (sum w)^2 / sum w^2 of weights (n,): n where all are equal."""
    scaled = weights / weights.max()
    return float(scaled.sum() ** 2 / (scaled**2).sum())


def design_effect(weights: Floats) -> float:
    """Return Kish's design effect of unequal weights, n sum w^2 / (sum w)^2.

    It is the factor by which they raise the variance of a mean that does not depend on them.
    """
    return max(1.0, len(weights) / effective_sample_size(weights))


def weighted_share(holds: Booleans, weights: Floats) -> float:
    """Return the weighted share of records (n,) for which something holds."""
    return float(weights[holds].sum() / weights.sum())


def weighted_mean(values: Floats, weights: Floats) -> float:
    """Return the weighted mean of values (n,), without overflow."""
    scale = float(column_scales(values))
    return float(weights @ (values / scale) / weights.sum()) * scale


def weighted_sd(values: Floats, weights: Floats) -> float:
    """Return the weighted standard deviation of values (n,), n at least 2."""
    n, scale = len(values), float(column_scales(values))
    deviations = values / scale - weighted_mean(values / scale, weights)
    # n / (n - 1) times the weighted mean of squared deviations.
    return float(np.sqrt(weights @ deviations**2 / weights.sum() * n / (n - 1))) * scale


def weighted_quantiles(values: Floats, weights: Floats, shares: Sequence[float]) -> Floats:
    """Return the smallest of the values (n,) with a weighted share of at least each given one, 0 to 1, at or below it,
    (k,).
    """
    order = np.argsort(values, kind="stable")
    below = np.cumsum(weights[order])
    # Lowered, so that a share that is reached exactly counts as reached despite rounding.
    wanted = np.asarray(shares) * below[-1] * (1 - _ROUNDING)
    return np.asarray(values[order][np.minimum(np.searchsorted(below, wanted), len(values) - 1)])


@dataclass(frozen=True, eq=False)
class SurveySample:
    """Survey design of n records.

    weights: above 0, (n,)
    stratum, cluster: of each record as codes from 0; clusters are numbered over all strata, (n,)
    population: clusters of the population in each stratum, infinite where unknown, (strata,)
    """

    weights: Floats
    stratum: Integers
    cluster: Integers
    population: Floats

    @classmethod
    def from_codes(
        cls,
        weights: Floats,
        strata: Integers | None = None,
        clusters: Integers | None = None,
        population: Floats | None = None,
    ) -> SurveySample:
        """Create the sample from weights, codes of strata and of clusters within them, and the population's clusters
        N_h, each (n,).

        Raises NotComputable where a stratum has several N_h, or fewer clusters in the population than in the sample.
        """
        n = len(weights)
        stratum = np.zeros(n, np.int64) if strata is None else distinct_codes(strata).codes.astype(np.int64)
        within = np.arange(n) if clusters is None else distinct_codes(clusters).codes
        cluster = distinct_rows([stratum, within], n).combination_of
        count = int(stratum.max()) + 1
        # No estimate depends on the scale of the weights.
        sample = cls(weights / weights.mean(), stratum, cluster, np.full(count, np.inf))
        if population is None:
            return sample
        largest = np.full(count, -np.inf)
        np.maximum.at(largest, stratum, population)
        if several := len(np.unique(stratum[population != largest[stratum]])):
            raise NotComputable(f"in {several:,} strata records disagree on how many clusters the population has")
        if few := int((largest < sample.clusters_by_stratum).sum()):
            raise NotComputable(f"{few:,} strata have more clusters in the sample than in the population")
        return cls(sample.weights, stratum, cluster, largest)

    @property
    def _stratum_of_cluster(self) -> Integers:
        """Return the stratum of each cluster, (clusters,)."""
        found = np.zeros(int(self.cluster.max()) + 1, dtype=np.int64)
        found[self.cluster] = self.stratum
        return found

    @property
    def clusters_by_stratum(self) -> Integers:
        """Return the number of clusters of each stratum, (strata,)."""
        return np.bincount(self._stratum_of_cluster, minlength=len(self.population))

    @property
    def single_cluster_strata(self) -> int:
        """Return the number of strata with a single cluster that is not all of the stratum."""
        return int(((self.clusters_by_stratum == 1) & (self.population > 1)).sum())

    def require_variance(self) -> None:
        """Raise NotComputable where a stratum has a single sampled cluster, since the variance between clusters is then
        unknown.
        """
        if self.single_cluster_strata:
            what = "stratum has" if self.single_cluster_strata == 1 else "strata have"
            raise NotComputable(
                f"{self.single_cluster_strata:,} {what} a single cluster, so that nothing says how much its clusters differ; join such strata with others like them"
            )

    def degrees_of_freedom(self, inside: Booleans) -> int:
        """Return the number of clusters minus that of strata, among the records (n,) inside a domain.

        Raises NotComputable where there are no more clusters than strata.
        """
        found = len(np.unique(self.cluster[inside])) - len(np.unique(self.stratum[inside]))
        if found < 1:
            raise NotComputable("there are no more clusters than strata, so the estimate has no interval")
        return found

    def root_of_variance(self, z: Floats) -> Floats:
        """Return rows Z such that Z'Z is the covariance (k, k) of estimates with linearised values z (n, k).

        Raises NotComputable as ``require_variance``.
        """
        self.require_variance()
        sizes, stratum = self.clusters_by_stratum, self._stratum_of_cluster
        totals = np.zeros((len(stratum), z.shape[1]))
        np.add.at(totals, self.cluster, z)
        means = np.zeros((len(sizes), z.shape[1]))
        np.add.at(means, stratum, totals)
        means /= sizes[:, None]
        # Without N_h the population is infinite: clusters count as drawn with replacement, whatever is drawn inside
        # them. A stratum of one cluster passes only where it is all of the stratum, and its factor is 0.
        factor = (1 - sizes / self.population) * sizes / np.maximum(sizes - 1, 1)
        return np.asarray((totals - means[stratum]) * np.sqrt(factor)[stratum, None])

    def standard_error(self, z: Floats) -> float:
        """Return the standard error of an estimate with linearised values z (n,)."""
        return float(np.linalg.norm(self.root_of_variance(z[:, None])))


def survey_mean(
    values: Floats, sample: SurveySample, confidence: float = 0.95, within: Range = UNBOUNDED
) -> IntervalEstimate:
    """Return the weighted mean of values (n,), NaN outside the domain, with its t interval inside the range of the
    values.

    Raises NotComputable where strata or clusters give no variance.
    """
    inside = ~np.isnan(values)
    present, weights = values[inside], sample.weights[inside]
    scale = float(column_scales(present))
    mean = weighted_mean(present / scale, weights)
    # z_i = w_i (y_i - ybar) / sum w. Outside the domain z_i = 0, and their clusters still count: which records have a
    # value is chance too.
    z = np.zeros(len(values))
    z[inside] = weights * (present / scale - mean) / weights.sum()
    degrees = sample.degrees_of_freedom(inside)
    error = sample.standard_error(z) * scale if np.ptp(present) > 0 else 0.0
    mean *= scale
    half = t_quantile(degrees, confidence) * error
    return IntervalEstimate(mean, error, *bounded_interval(mean, half, within), degrees)


def survey_quantile(values: Floats, sample: SurveySample, p: float, confidence: float = 0.95) -> IntervalEstimate:
    """Return the weighted p-quantile of values (n,), NaN outside the domain, with Woodruff's interval and standard
    error.

    Raises NotComputable where strata or clusters give no variance, or where too few records lie beyond the quantile for
    an end of the interval.
    """
    inside = ~np.isnan(values)
    present, weights = values[inside], sample.weights[inside]
    found = float(weighted_quantiles(present, weights, [p])[0])
    share = survey_mean(np.where(inside, values <= found, np.nan), sample, confidence)
    half = t_quantile(share.degrees_of_freedom, confidence) * share.standard_error
    # Woodruff (1952): the interval of the share at or below the quantile is inverted to values.
    ends = share.value - half, share.value + half
    if ends[0] < 0 or ends[1] > 1:
        raise NotComputable(f"too few records lie beyond the {p:g} quantile for an interval of it")
    lower, upper = map(float, weighted_quantiles(present, weights, ends))
    # Half the interval's width over its t, as svyquantile has it.
    error = (upper - lower) / (2 * t_quantile(share.degrees_of_freedom, confidence))
    return IntervalEstimate(found, error, lower, upper, share.degrees_of_freedom)


def survey_linear_coefficients(
    x: Floats, y: Floats, sample: SurveySample, inside: Booleans, confidence: float = 0.95
) -> list[IntervalEstimate]:
    """Fit weighted least squares of y (k,) on the independent columns of x (k, K), and return K coefficients with
    intervals.

    ``inside`` (n,) marks the k records among those of the sample. Raises NotComputable where strata and clusters give
    no variance, or x determines y.
    """
    degrees = _remaining_degrees(sample, inside, x.shape[1])
    root = np.sqrt(sample.weights[inside])
    factors, scale = qr_factors(x * root[:, None]), float(column_scales(y))
    scaled = y / scale * root
    on_q = factors.q.T @ scaled
    rest = scaled - factors.q @ on_q
    if np.linalg.norm(rest) <= RESIDUAL_ROUNDING * np.linalg.norm(scaled):
        raise NotComputable("the response is a linear function of the predictors, without error")
    z = np.zeros((len(inside), x.shape[1]))
    # Binder's sandwich (1983): z_i = A^-1 x_i w_i (y_i - mu_i), in the coordinates of Q.
    z[inside] = factors.q * rest[:, None]
    values = factors.coefficients_from_q(on_q) * scale
    errors = factors.standard_errors(sample.root_of_variance(z).T) * scale
    return [t_interval(float(b), float(e), degrees, confidence) for b, e in zip(values, errors, strict=True)]


def survey_logistic_coefficients(
    x: Floats, y: Floats, sample: SurveySample, inside: Booleans, confidence: float = 0.95
) -> list[IntervalEstimate]:
    """Fit a weighted logistic regression of y (k,), 0 or 1, and return K coefficients as ``survey_linear_coefficients``
    does.

    Raises NotComputable where strata and clusters give no variance, or a combination of the predictors separates the
    classes.
    """
    # SciPy's functions, which recipes that only read this module have no use for.
    from scipy.special import expit

    from .logistic import logistic_regression

    degrees = _remaining_degrees(sample, inside, x.shape[1])
    weights = sample.weights[inside]
    fit = logistic_regression(x, y, weights)
    if fit.separated:
        raise NotComputable("a combination of the predictors separates the two levels of the response")
    p = expit(x @ fit.coefficients)
    root = np.sqrt(weights * p * (1 - p))
    factors = qr_factors(x * root[:, None])
    z = np.zeros((len(inside), x.shape[1]))
    residuals = np.divide(weights * (y - p), root, out=np.zeros_like(root), where=root > 0)
    z[inside] = factors.q * residuals[:, None]
    errors = factors.standard_errors(sample.root_of_variance(z).T)
    found = zip(fit.coefficients, errors, strict=True)
    return [t_interval(float(b), float(e), degrees, confidence) for b, e in found]


def _remaining_degrees(sample: SurveySample, inside: Booleans, coefficients: int) -> int:
    """Return the degrees of freedom of coefficients. Raises NotComputable where none remain."""
    # Korn & Graubard 1999, §2.4; the intercept costs none.
    degrees = sample.degrees_of_freedom(inside) + 1 - coefficients
    if degrees < 1:
        raise NotComputable(f"the clusters are too few for {coefficients} coefficients and their intervals")
    return degrees
