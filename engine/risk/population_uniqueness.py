"""Population uniqueness: expected number of sample uniques that are unique in the population.

The records are a sample: a ``fraction`` of the population, or each with a survey ``weight``. ``expected_uniques`` (τ_1)
is the expected number of sample uniques that are population uniques, ``expected_matches`` (τ_2) the expected number of
right matches when one of the people with the same key is picked at random. Both rest on a Poisson log-linear model of
the key's cells with main effects or all two-way interactions (Skinner & Shlomo 2008; Elamir & Skinner 2006), chosen by
its specification test. ``pitman_uniques`` and ``zayatz_uniques`` use the class sizes alone and assume a simple random
sample.

With weights (same paper, complex designs) the means are fitted to the sums of weights F̂_k, and π_k = f_k / F̂_k; the
test compares unweighted counts with the same margins, and there is no interval. Intervals are 95 % intervals given the
model.

Where units have several records the Pitman and Zayatz estimates are also of units of equal composition, the keys of their
records in any order: ``fraction`` is then the share of the population's units. The log-linear model has no cells for
compositions.

A release is treated as if its values were true: with synthesised values the figures tell how rare the released keys
are, not whose they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Annotated, Any, Literal, Self

import numpy as np
from scipy.special import expi, gamma, gammainc, gammaln, hyp1f1, psi

from ..data.arrays import Floats, Integers
from ..data.intervals import NON_NEGATIVE, bounded_interval
from ..data.microdata import Microdata
from ..data.provenance import ReleaseProvenance
from ..data.schema import Kind, Role, Schema
from ..design.binning import BINNED, BinsOfKey, check_binning_rules, comparable_categories, learned_bins_text
from ..errors import BadInput, NotComputable
from ..margins.log_linear import LogLinearModel, Order
from ..methods.intruder import KeyVariables
from ..methods.levers import POPULATION
from ..methods.outputs import Label, Output, RecordArray, RiskOutput
from ..methods.registry import measure_method
from ..methods.results import Estimate, Measure
from ..methods.rows import Row, average_series, group_by_series
from ..methods.run import Run
from ..methods.spec import Param, Spec
from ..partition.equivalence_classes import class_sizes, equivalence_classes
from ..wording import agreeing_word, count_noun
from ._by_unit import BY_RECORD, UnitsOfBothTables, composition_classes, not_computed_by_unit
from ._compared import has_own_keys

ValueAndDerivatives = tuple[Floats, Floats, Floats]
"""Value of h at some x, and its first and second derivative by x."""
ALPHA_STARTS = (0.05, 0.35, 0.65, 0.95)
MAX_THETA_RATIO = 1e6
"""Largest θ per record; beyond it the sample says nothing about class sizes in the population."""
MOST_CELLS = 1_000_000
REJECTION_LIMIT = 1.96
MAIN_EFFECTS_RECORDS = 5
"""Fewest records per parameter of a main-effects model."""
MODEL_NAMES: dict[Order, str] = {1: "main effects", 2: "two-way"}


def chance_still_unique(x: Floats) -> ValueAndDerivatives:
    """Return h_1 = P(F = 1 | f = 1) = exp(-x), with x more people expected in the cell, and its first two derivatives.

    Cell k of the key has F_k ~ Poisson(λ_k) people. Each is in the sample with probability π_k, so that f_k ~
    Poisson(π_k λ_k) and F_k - f_k ~ Poisson(x_k), x_k = (1 - π_k) λ_k, independent of f_k (Skinner & Shlomo 2008). τ_1
    = Σ_{f_k = 1} h_1.
    """
    value = np.exp(-x)
    return value, -value, value


def chance_of_right_match(x: Floats) -> ValueAndDerivatives:
    """Return h_2 = E(1 / F | f = 1) = (1 - exp(-x)) / x and its first two derivatives.

    x more people are expected in the cell. τ_2 = Σ_{f_k = 1} h_2.
    """
    return _exponential_moment(1, x), -_exponential_moment(2, x), _exponential_moment(3, x)


def _exponential_moment(a: int, x: Floats) -> Floats:
    """Return ∫ t^(a-1) exp(-x t) dt over t from 0 to 1."""
    # The closed form is 0 / 0 at x = 0; two terms of the series are exact there.
    small = x < 1e-5
    safe = np.where(small, 1.0, x)
    return np.asarray(np.where(small, 1 / a - x / (a + 1), gamma(a) * gammainc(a, safe) / safe**a))


def expected_inverse_frequency(f: Floats, x: Floats) -> Floats:
    """Return E(1 / F | f) where F - f ~ Poisson(x), f at least 1."""
    return np.asarray(hyp1f1(1.0, f + 1.0, -np.where(x < 1e-12, 0.0, x)) / f)


def expected_inverse_square(x: Floats) -> Floats:
    """Return E(1 / F² | f = 1) where F - 1 ~ Poisson(x): Σ_k exp(-x) x^k / (k! (k + 1)²)."""
    series, term = np.zeros_like(x), np.exp(-np.minimum(x, 1.0))
    for k in range(20):
        series += term / (k + 1) ** 2
        term = term * np.minimum(x, 1.0) / (k + 1)
    # exp(-x) Ei(x) cancels at small x and overflows at large x, hence three ranges. The last one is its asymptotic series.
    middle = np.clip(x, 1.0, 500.0)
    exact = np.exp(-middle) * (expi(middle) - np.log(middle) - np.euler_gamma) / middle
    far = np.maximum(x, 1.0)
    return np.asarray(np.where(x < 1, series, np.where(x < 500, exact, 1 / far**2 + 1 / far**3 + 2 / far**4)))


@dataclass(frozen=True, eq=False)
class ExpectedCount:
    """Expected number of sample uniques that are population uniques or are matched rightly.

    name: name of the output
    chance: probability for one record as a function of x, with two derivatives
    variance: variance of one record's contribution as a function of x
    """

    name: str
    chance: Callable[[Floats], ValueAndDerivatives]
    variance: Callable[[Floats], Floats]


EXPECTED_UNIQUES = ExpectedCount("expected_uniques", chance_still_unique, lambda x: np.exp(-x) * -np.expm1(-x))
EXPECTED_MATCHES = ExpectedCount(
    "expected_matches",
    chance_of_right_match,
    lambda x: np.maximum(expected_inverse_square(x) - _exponential_moment(1, x) ** 2, 0.0),
)
EXPECTED_COUNTS = (EXPECTED_UNIQUES, EXPECTED_MATCHES)


@dataclass(frozen=True, eq=False)
class KeyModel:
    """Fitted log-linear model of the cells of a key; all arrays have the shape of the table.

    counts: sample frequencies f
    sample: fitted log-linear model of the sample frequencies, with means πλ
    people: expected population frequencies λ
    sampling_fraction: π of nonempty cells, 0 elsewhere, since weights give it for these alone
    """

    counts: Floats
    sample: LogLinearModel
    people: Floats
    sampling_fraction: Floats

    @property
    def expected_others(self) -> Floats:
        """Return the expected number of people outside the sample in each cell, x = (1 - π) λ."""
        return np.asarray((1 - self.sampling_fraction) * self.people)

    def expected_count(self, count: ExpectedCount) -> float:
        """Return the sum of the chances over the sample uniques."""
        return float(count.chance(self.expected_others[self.counts == 1])[0].sum())

    def half_width(self, count: ExpectedCount) -> float:
        """Return 1.96 prediction standard errors of the count.

        They cover the unseen people of the cells and the estimation of the means.
        """
        unique = self.counts == 1
        x = self.expected_others[unique]
        slope = np.zeros(self.counts.shape)
        slope[unique] = count.chance(x)[1] * x / self.sample.fitted_means[unique]
        fitting = np.sum(self.sample.fitted_means * self.sample.project(slope) ** 2)
        return 1.96 * math.sqrt(float(count.variance(x).sum() + fitting))

    def specification_statistic(self, count: ExpectedCount) -> float | None:
        """Return B over its standard error, about standard normal under the model; None if the variance is 0.

        B is the bias that slightly wrong means would cause over all cells (Skinner & Shlomo 2008):

            B_j = Σ_k λ_k exp(-π_k λ_k) {-h_j'(λ_k) (f_k - π_k λ_k) + h_j''(λ_k) [(f_k - π_k λ_k)² - f_k] / (2 π_k)}

        A positive value means missing terms, such as interactions; a negative one means overfitting.
        """
        f, mean = self.counts, self.sample.fitted_means
        share = np.minimum(np.divide(mean, self.people, out=np.ones_like(mean), where=self.people > 0), 1.0)
        _, slope, curve = count.chance((1 - share) * self.people)
        weight = self.people * np.exp(-mean)
        first = -weight * slope * (1 - share)
        second = weight * curve * (1 - share) ** 2 / (2 * share)
        bias = np.sum(first * (f - mean) + second * ((f - mean) ** 2 - f))
        # The variance leaves out the part of the residuals that the fit takes away.
        left = first - self.sample.project(first)
        variance = float(np.sum(left**2 * mean) + 2 * np.sum(second**2 * mean**2))
        scale = float(np.sum(first**2 * mean) + 2 * np.sum(second**2 * mean**2))
        # Where the sample is the population nothing varies, and the variance is rounding error.
        return float(bias) / math.sqrt(variance) if variance > 1e-16 * scale and scale > 0 else None


def pitman_log_likelihood(alpha: float, theta: float, sizes: Integers) -> tuple[float, float, float]:
    """Return the Pitman log likelihood of class sizes (u,), and its derivatives by α and θ.

    0 <= α < 1, θ > -α. A further record joins a class of size j with probability (j - α) / (n + θ), else forms a new
    one (Pitman 1995). The likelihood is (Hoshino 2001)

        ∏_{i=1}^{u-1} (θ + iα) / ∏_{i=1}^{n-1} (θ + i) · ∏_j [∏_{i=1}^{j-1} (i - α)]^{s_j}

    with n records in u classes, s_j of them of size j.
    """
    n, i = int(sizes.sum()), np.arange(1, len(sizes))
    j, s = np.unique(sizes, return_counts=True)
    steps = theta + i * alpha
    value = np.log(steps).sum() - gammaln(theta + n) + gammaln(theta + 1)
    value += (s * (gammaln(j - alpha) - gammaln(1 - alpha))).sum()
    by_alpha = (i / steps).sum() - (s * (psi(j - alpha) - psi(1 - alpha))).sum()
    by_theta = (1 / steps).sum() - psi(theta + n) + psi(theta + 1)
    return float(value), float(by_alpha), float(by_theta)


def fit_pitman(sizes: Integers) -> tuple[float, float]:
    """Return the maximum likelihood estimates of α and θ from class sizes (u,).

    Raises:
        NotComputable: if all records are unique or all are equal, or the likelihood has no maximum.
    """
    from scipy.optimize import minimize

    n = int(sizes.sum())
    if len(sizes) == n or len(sizes) == 1:
        raise NotComputable("the Pitman model needs records that share a key and keys that differ")

    def cost(point: Floats) -> tuple[float, Floats]:
        """Return minus the log likelihood per record, and its gradient by α and log(θ + α)."""
        alpha, apart = point[0], np.exp(point[1])
        value, by_alpha, by_theta = pitman_log_likelihood(alpha, apart - alpha, sizes)
        return -value / n, -np.array([by_alpha - by_theta, by_theta * apart]) / n

    # θ + α is optimised on the log scale, since θ > -α.
    bounds = [(0.0, 1 - 1e-9), (np.log(1e-9), np.log(MAX_THETA_RATIO * n))]
    tried = [
        minimize(
            cost, [alpha, np.log(max(len(sizes) * (1 - alpha), 1e-3))], jac=True, bounds=bounds, method="L-BFGS-B",
            options={"ftol": 1e-15, "gtol": 1e-10, "maxiter": 500},
        )
        for alpha in ALPHA_STARTS
    ]  # fmt: skip
    best = min(tried, key=lambda found: float(found.fun))
    alpha, apart = float(best.x[0]), float(np.exp(best.x[1]))
    # The optimum near the bound means that the likelihood grows without end in θ.
    if apart > 0.01 * MAX_THETA_RATIO * n:
        raise NotComputable("too few records share a key for the Pitman model")
    return alpha, apart - alpha


def pitman_share(alpha: float, theta: float, n: int, population: float) -> float:
    """Return the share of sample uniques that are population uniques under the Pitman model.

    The population has at least n people. A class of size 1 is still of size 1 in a population of N with probability

        ∏_{i=n}^{N-1} (θ + α + i - 1) / (θ + i) = Γ(θ+α+N-1) Γ(θ+n) / (Γ(θ+α+n-1) Γ(θ+N)).
    """
    logs = gammaln(theta + alpha + population - 1) - gammaln(theta + population)
    logs += gammaln(theta + n) - gammaln(theta + alpha + n - 1)
    return float(min(np.exp(logs), 1.0))


def zayatz_share(sizes: Integers, population: float) -> float:
    """Return the share of sample uniques that are population uniques by Zayatz (1991).

    Some of the class sizes (u,) of the sample must be 1. The population's class sizes are assumed to be distributed as
    the sample's, so that the share is

        s_1 H(1) / Σ_j s_j H(j),    H(j) = j C(N-j, n-1) / C(N, n)

    Population classes are larger than the sample's, so the estimate is too high if the sampling fraction is small.
    """
    from scipy.stats import hypergeom

    j, s = np.unique(sizes, return_counts=True)
    chance = hypergeom.pmf(1, round(population), j, int(sizes.sum()))
    return float(s[0] * chance[0] / (s * chance).sum())


BY_CLASS_SIZES = ("pitman_uniques", "zayatz_uniques")
"""Outputs that follow from the sizes of the classes alone."""
TEST_OF_COUNT = {EXPECTED_UNIQUES.name: "specification_uniques", EXPECTED_MATCHES.name: "specification_matches"}


def check_data(data: Microdata, target: str, spec: PopulationUniquenessSpec, place: str) -> None:
    """Raise BadInput if a record has no sampling weight or a weight below 1."""
    spec = spec.for_release(data.schema, ())
    if spec.weight is None:
        return
    if lacking := int(data.missing_mask(spec.weight).sum()):
        raise BadInput(
            f"{place}.weight",
            f"{count_noun(lacking, 'record')} {agreeing_word(lacking, 'has', 'have')} no weight; leave them out with [data] where",
        )
    if below := int((data.present_numbers(spec.weight) < 1).sum()):
        raise BadInput(
            f"{place}.weight",
            f"{count_noun(below, 'record')} {agreeing_word(below, 'has', 'have')} a weight below 1; a weight says how many people of the population a record stands for, "
            "itself among them; where weights are scaled to a mean of 1, say the fraction instead",
        )


def average_one_sample(rows: Sequence[Row], provenance: ReleaseProvenance) -> list[Row]:
    """Average the rows over the datasets, with averaged interval limits; no interval if one dataset has none."""
    return [_with_mean_interval(average_series(group, provenance.records), group) for group in group_by_series(rows)]


def _with_mean_interval(row: Row, rows: Sequence[Row]) -> Row:
    """Return the averaged row with the mean of the interval limits of its datasets."""
    if row.measure in TEST_OF_COUNT.values():
        return row
    ends = [(one.lower, one.upper) for one in rows if one.value is not None]
    lower, upper = ([one for one in end if one is not None] for end in zip(*ends, strict=True)) if ends else ([], [])
    # All datasets rest on one sample, so averaging them does not narrow the interval.
    if not ends or len(lower) < len(ends) or len(upper) < len(ends):
        return replace(row, lower=None, upper=None)
    return replace(row, lower=float(np.mean(lower)), upper=float(np.mean(upper)))


def _weights_and_population(
    confidential: Microdata, released: Microdata, spec: PopulationUniquenessSpec
) -> tuple[Floats, float]:
    """Return the number of people each released record represents, (n,), and the population size.

    The weights are scaled to the total of the confidential records, whatever records a release suppresses or adds.
    """
    if spec.weight is None:
        assert spec.fraction is not None
        population = len(confidential) / spec.fraction
        weights = np.full(len(released), population / len(released))
    else:
        population = float(confidential.numbers(spec.weight).sum())
        weights = released.numbers(spec.weight)
        if np.isnan(weights).any() or (weights <= 0).any():
            raise NotComputable(f'released records have no weight above 0 in "{spec.weight}"')
        weights = weights * (population / weights.sum())
    if (weights < 1 - 1e-9).any():
        raise NotComputable("released records stand for less than one person each")
    return np.maximum(weights, 1.0), population


def _class_size_estimate(name: str, sizes: Integers, population: float, remark: str) -> Estimate:
    """Return the estimated number of population uniques by the Pitman model or by Zayatz's estimator."""
    uniques = int(np.sum(sizes == 1))
    try:
        if not uniques:
            share = 0.0
        elif name == "pitman_uniques":
            share = pitman_share(*fit_pitman(sizes), int(sizes.sum()), population)
        else:
            share = zayatz_share(sizes, population)
    except NotComputable as error:
        return Estimate.not_computed(name, error.reason)
    return Estimate(name, uniques * share, reason=remark)


def _fit_key_model(codes: list[Integers], weights: Floats, order: Order, least: int) -> KeyModel:
    """Fit the log-linear model of a key, given the codes (n,) of each key variable.

    ``least`` is the smallest number of records per parameter.

    Raises:
        NotComputable: if the table of the key has too many cells, or the model too many parameters.
    """
    if len(codes) <= order:
        need = "two variables" if order == 1 else "three variables"
        raise NotComputable(f"the model ({MODEL_NAMES[order]}) needs {need} in the key that are not constant")
    shape = tuple(int(code.max()) + 1 for code in codes)
    if (count := math.prod(shape)) > MOST_CELLS:
        raise NotComputable(
            f"the key has {count:,} combinations of values, above the {MOST_CELLS:,} that a log-linear model is fitted to; put "
            "numbers in bins, or name fewer keys"
        )
    parameters = sum(
        math.prod(levels - 1 for levels in term) for size in range(order + 1) for term in combinations(shape, size)
    )
    if least * parameters > len(weights):
        raise NotComputable(
            f"the model ({MODEL_NAMES[order]}) has {parameters:,} parameters and needs {count_noun(least, 'record')} for each, of {len(weights):,}; "
            "put numbers in wider bins, or name fewer keys"
        )
    cell = np.ravel_multi_index(codes, shape)
    counts = np.bincount(cell, minlength=count).astype(np.float64).reshape(shape)
    people = np.bincount(cell, weights, minlength=count).astype(np.float64).reshape(shape)
    present = np.divide(counts, people, out=np.zeros(shape), where=people > 0)
    sample = LogLinearModel.from_table(counts, order)
    if np.ptp(weights) == 0:
        return KeyModel(counts, sample, sample.fitted_means * weights[0], present)
    return KeyModel(counts, sample, LogLinearModel.from_table(people, order).fitted_means, present)


def _largest_statistic(found: list[float | None]) -> float:
    """Return the largest absolute test statistic, 0 without any."""
    return max((abs(one) for one in found if one is not None), default=0.0)


def _choose_order(found: Mapping[Order, list[float | None]]) -> Order:
    """Choose main effects unless the test rejects them, else the model with the smaller statistics."""
    if 1 in found and _largest_statistic(found[1]) <= REJECTION_LIMIT:
        return 1
    return min(found, key=lambda order: _largest_statistic(found[order]))


def _rejection_text(order: Order, found: Mapping[Order, list[float | None]]) -> str:
    """Return the reason why there is no interval: the test rejects every fitted model; empty if a model is accepted."""
    if _largest_statistic(found[order]) <= REJECTION_LIMIT:
        return ""
    largest = max((one for one in found[order] if one is not None), key=abs)
    why = "terms are missing" if largest > 0 else "it has too many terms"
    # The text must stand alone: an average shows the first reason that its datasets have.
    least = "the least rejected one, " if len(found) > 1 else ""
    return (
        f"rejected: the specification test rejects every log-linear model that is fitted; {least}of {MODEL_NAMES[order]}, gives this "
        f"point without an interval (statistic {largest:.1f}, limit {REJECTION_LIMIT:g}: {why})"
    )


def _test_estimate(count: ExpectedCount, order: Order, value: float | None, why: str, remark: str) -> Estimate:
    reason = why or (remark if value is not None else "no residual of the model varies")
    return Estimate(TEST_OF_COUNT[count.name], value, reason=reason, params={"fitted": MODEL_NAMES[order]})


def _count_estimate(model: KeyModel, count: ExpectedCount, words: str, *, interval: bool) -> Estimate:
    """Return the expected count as an estimate, with a 95 % interval cut to [0, number of sample uniques]."""
    value, uniques = model.expected_count(count), float(np.sum(model.counts == 1))
    if not interval or uniques == 0:
        return Estimate(count.name, value, reason=words)
    lower, upper = bounded_interval(value, model.half_width(count), (0.0, uniques))
    return Estimate(count.name, value, lower=lower, upper=upper, reason=words)


def _chances_by_record(
    confidential: Microdata,
    released: Microdata,
    spec: PopulationUniquenessSpec,
    model: KeyModel,
    codes: list[Integers],
) -> dict[str, Floats]:
    """Return frequency and match probabilities of each record's released counterpart, (n,) each.

    Empty if nothing links the release to the data.
    """
    if not released.linked or (released.classes is None and len(released) != len(confidential)):
        return {}
    cell = np.ravel_multi_index(codes, model.counts.shape)
    counts, others = model.counts.ravel()[cell], model.expected_others.ravel()[cell]
    _, first, which = np.unique(cell, return_index=True, return_inverse=True)
    # A counterpart that was drawn with other keys does not lead to the person.
    own = has_own_keys(confidential, released, spec.keys, spec.bins)
    values = {
        "frequency": counts,
        "right_match": np.where(own, expected_inverse_frequency(counts[first], others[first])[which], 0.0),
        "population_unique": np.where(own & (counts == 1), np.exp(-others), 0.0),
    }
    found = {name: np.full(len(confidential), np.nan) for name in values}
    for name, value in values.items():
        found[name][released.linked_records] = value
    return found


def _unit_estimates(
    confidential: Microdata,
    released: Microdata,
    spec: PopulationUniquenessSpec,
    classes: Integers,
    weights: Floats,
    remark: str,
) -> Iterator[Estimate]:
    """Yield the estimates by unit, none where every record is a unit.

    ``classes`` (m,) are those of the released records, and ``weights`` (m,) the people that each stands for.
    """
    names = tuple(count.name for count in EXPECTED_COUNTS)
    try:
        units = UnitsOfBothTables.from_tables(confidential, released)
    except NotComputable as error:
        yield from not_computed_by_unit((*names, *BY_CLASS_SIZES), error.reason)
        return
    if units is None:
        return
    yield from not_computed_by_unit(
        names,
        "the log-linear model is of the cells of records; of units there are the estimates by Pitman and by Zayatz",
    )
    (compositions,) = composition_classes([classes], [units.released])
    # A unit stands for as many units as its records for people, on average.
    stands_for = units.released.sum_by_unit(weights) / units.released.sizes
    for part in units.parts():
        some = part.released
        for name in BY_CLASS_SIZES:
            if not some.any():
                yield Estimate.not_computed(name, "the release has no unit of this size", **part.params)
                continue
            sizes = class_sizes(compositions[some])
            found = _class_size_estimate(name, sizes[sizes > 0], float(stands_for[some].sum()), remark)
            yield replace(found, unit="units", params=part.params)


@dataclass(frozen=True, kw_only=True, slots=True)
class PopulationUniquenessSpec(Spec):
    """Settings: key variables, sampling design and model."""

    keys: KeyVariables = ()
    fraction: Annotated[
        float | None, Param("share of the population that the confidential records are", gt=0, le=1)
    ] = None
    weight: Annotated[
        str | None,
        Param(
            "variable that says how many people of the population each record stands for; the survey weight if neither it nor a "
            "fraction is said",
            names="variables",
            kinds=(Kind.COUNT, Kind.CONTINUOUS),
        ),
    ] = None
    model: Annotated[
        Literal["chosen", "main_effects", "two_way"],
        Param("terms of the log-linear model, or chosen by the specification test"),
    ] = "chosen"
    # Sparse two-way models follow single records: on a tenth of Adult, 8 records a parameter gave 118 population
    # uniques of 152 (main effects 172); with 24, in three tenths, 403 of 425.
    two_way_records: Annotated[
        int,
        Param(
            "records that a two-way model must have for each parameter; with fewer it finds too few population uniques",
            ge=5,
        ),
    ] = 20
    bins: BinsOfKey = field(default_factory=dict)

    def for_release(self, schema: Schema, released: tuple[str, ...]) -> Self:
        """Return these settings with default key and weight filled in.

        The default key consists of the quasi-identifiers without the weight. The survey weight is the default if no
        fraction is given.
        """
        weight = self.weight or next(iter(schema.names_by_role(Role.WEIGHT) if self.fraction is None else ()), None)
        out = (weight, *schema.names_by_role(Role.WEIGHT))
        keys = self.keys or tuple(n for n in schema.names_by_role(Role.QUASI_IDENTIFIER) or released if n not in out)
        return replace(self, keys=keys, weight=weight)

    def settings(self, schema: Schema, released: tuple[str, ...]) -> dict[str, Any]:
        """Return the settings to report, with the survey weight if it describes the sampling design."""
        weight = self.for_release(schema, released).weight
        return {**Spec.settings(self, schema, released), **({"weight": weight} if weight else {})}

    def check_release(self, schema: Schema, released: tuple[str, ...], place: str) -> None:
        """Raise BadInput if the key, the sampling design or a binning rule is missing or contradictory."""
        full = self.for_release(schema, released)
        keys, weight = full.keys, full.weight
        if not keys:
            raise BadInput(
                f"{place}.keys", 'no variable is in the key; name some, or give them the role "quasi_identifier"'
            )
        if (self.fraction is None) == (weight is None):
            raise BadInput(
                f"{place}.fraction",
                "say either which share of the population the records are (fraction = 0.1), or which variable says how "
                'many people each stands for (role = "weight")',
            )
        if weight in keys:
            raise BadInput(f"{place}.weight", f'"{weight}" is in the key')
        check_binning_rules(self.bins, {n: schema[n].kind for n in keys if schema[n].kind in BINNED}, f"{place}.bins")

    @property
    def model_orders(self) -> tuple[Order, ...]:
        """Return the interaction orders of the models to fit."""
        both: dict[str, tuple[Order, ...]] = {"main_effects": (1,), "two_way": (2,)}
        return both.get(self.model, (1, 2))


@measure_method(
    "Population uniqueness",
    spec=PopulationUniquenessSpec,
    source="Skinner & Shlomo (2008); Elamir & Skinner (2006); Pitman (1995), Hoshino (2001); Zayatz (1991)",
    outputs=(
        Output(
            EXPECTED_UNIQUES.name,
            "records unique on the key that are expected to be unique in the population too, by a log-linear model",
            "low",
            "records",
            range=NON_NEGATIVE,
            estimated=True,
            row_defaults=BY_RECORD,
            risk=RiskOutput(questions=("singling out",), raised_by_noise=True),
            drawn="interval",
            label=Label(
                "Unique in the population",
                "By a log-linear model, {value} with a unique key are unique in the population too.",
                "Fewer are better; at 0 each has a double in the population.",
                "Too many people are unique in the population, so a match is certain.",
                POPULATION,
            ),
        ),
        Output(
            EXPECTED_MATCHES.name,
            "records unique on the key that would be matched rightly by picking one of the people with their key",
            "low",
            "records",
            range=NON_NEGATIVE,
            estimated=True,
            row_defaults=BY_RECORD,
            risk=RiskOutput(questions=("singling out",), gate_reference="nothing", raised_by_noise=True),
            drawn="interval",
            label=Label(
                "Expected matches in the population",
                "Picking one person of the population with the same key finds {value} with a unique key.",
                "Fewer are better; at 0 no match is right.",
                "An intruder who searches the population finds too many people.",
                POPULATION,
            ),
        ),
        Output(
            "specification_uniques",
            "specification test of a model for expected_uniques: above 1.96 terms are missing, below -1.96 there are too many",
            "none",
            statbarn="StatisticalHypothesisTests",
            label=Label(
                "Test of the model for population uniques",
                "The specification test of the model is {value}; between -1.96 and 1.96 the model fits.",
            ),
        ),
        Output(
            "specification_matches",
            "specification test of a model for expected_matches: above 1.96 terms are missing, below -1.96 there are too many",
            "none",
            statbarn="StatisticalHypothesisTests",
            label=Label(
                "Test of the model for population matches",
                "The specification test of the model is {value}; between -1.96 and 1.96 the model fits.",
            ),
        ),
        Output(
            "pitman_uniques",
            "records unique on the key that are expected to be unique in the population too, by the Pitman model",
            "low",
            "records",
            range=NON_NEGATIVE,
            estimated=True,
            row_defaults=BY_RECORD,
            risk=RiskOutput(questions=("singling out",), raised_by_noise=True),
            label=Label(
                "Unique in the population (Pitman)",
                "By the Pitman model, {value} with a unique key are unique in the population too.",
                "Fewer are better; at 0 each has a double in the population.",
                "Too many people are unique in the population, so a match is certain.",
                POPULATION,
            ),
        ),
        Output(
            "zayatz_uniques",
            "records unique on the key that are expected to be unique in the population too, by Zayatz's estimate",
            "low",
            "records",
            range=NON_NEGATIVE,
            estimated=True,
            row_defaults=BY_RECORD,
            risk=RiskOutput(questions=("singling out",), raised_by_noise=True),
            label=Label(
                "Unique in the population (Zayatz)",
                "By Zayatz's estimate, {value} with a unique key are unique in the population too.",
                "Fewer are better; at 0 each has a double in the population.",
                "Too many people are unique in the population, so a match is certain.",
                POPULATION,
            ),
        ),
    ),
    per_record=(
        RecordArray(
            "frequency", "records of the released table that have the key of its row", "records", "low", "candidates"
        ),
        RecordArray(
            "right_match",
            "that picking one of the people of the population with the record's key finds its own, E(1/F | f); 0 where its row was drawn with another key",
            "share",
            "high",
            "probability",
        ),
        RecordArray(
            "population_unique",
            "that no other person in the population has its key, P(F = 1 | f); 0 where its row was drawn with another key",
            "share",
            "high",
        ),
    ),
    confidential=True,
    check=check_data,
    combine=average_one_sample,
)
def population_uniqueness(
    confidential: Microdata, released: Microdata, spec: PopulationUniquenessSpec, run: Run
) -> Measure:
    """Estimate how many uniques of the released table are population uniques.

    ``per_record``: ``frequency`` f, ``right_match`` E(1/F | f) and ``population_unique`` P(F = 1 | f), (n,) each, NaN
    for suppressed records; none if the release is not linked to the data or no log-linear model was fitted.
    """
    remark = learned_bins_text(spec.bins)
    columns = [
        comparable_categories(confidential, released, name, rule)[1]
        if (rule := spec.bins.get(name))
        else released.frame[name]
        for name in sorted(spec.keys)
    ]
    weights, population = _weights_and_population(confidential, released, spec)
    classes = equivalence_classes(columns, len(released))
    sizes = class_sizes(classes)
    others = [_class_size_estimate(name, sizes, population, remark) for name in BY_CLASS_SIZES]
    others += _unit_estimates(confidential, released, spec, classes, weights, remark)
    models: dict[Order, KeyModel] = {}
    why: dict[Order, str] = {}
    codes = [equivalence_classes([column], len(released)) for column in columns]
    # A constant variable adds no cells but counts as a factor of the model.
    cells = [code for code in codes if code.max() > 0]
    for order in spec.model_orders:
        try:
            models[order] = _fit_key_model(
                cells, weights, order, MAIN_EFFECTS_RECORDS if order == 1 else spec.two_way_records
            )
        except NotComputable as error:
            why[order] = error.reason
    found = {order: [model.specification_statistic(of) for of in EXPECTED_COUNTS] for order, model in models.items()}
    tests = [
        _test_estimate(of, order, found[order][place] if order in found else None, why.get(order, ""), remark)
        for order in spec.model_orders
        for place, of in enumerate(EXPECTED_COUNTS)
    ]
    if not models:
        reason = "; ".join(dict.fromkeys(why.values()))
        lacking = [Estimate.not_computed(of.name, reason) for of in EXPECTED_COUNTS]
        return Measure((*lacking, *tests, *others))
    order = _choose_order(found)
    model = models[order]
    rejected = _rejection_text(order, found)
    estimates = [
        _count_estimate(model, of, rejected, interval=spec.weight is None and not rejected) for of in EXPECTED_COUNTS
    ]
    return Measure((*estimates, *tests, *others), _chances_by_record(confidential, released, spec, model, cells))
