"""Shared parts of the measures of numerical columns: which columns, suppression, a row for each and the smallest.

Normalized mutual information, of which there are two versions (Lighthouse data quality §3.4), is sampled and scaled: r
= MI(O_i, A_i) / H, kept within [0, 1], where H is the entropy of the original or of the released values; scaled 1 - (1
- r) (1 - 2^-e) / (e log 2) with e = H(O_i) in nats (eq. 1). MI is the nearest-neighbour estimate (Kraskov, Stögbauer &
Grassberger 2004), H the plug-in entropy of the values unless that is asked of nearest neighbours too.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Literal, Self

import numpy as np
from numpy.typing import NDArray

from ..data.arrays import Floats
from ..data.intervals import SHARE
from ..data.microdata import Microdata
from ..data.schema import Schema
from ..errors import BadInput, NotComputable
from ..methods.levers import COARSENING
from ..methods.outputs import Label, Limit, Output, QualityOutput
from ..methods.results import Estimate, Measure
from ..methods.run import Run
from ..methods.spec import Param, Spec
from ..partition.pairs import NUMBERS, LinkedTables, compared_quasi_identifiers
from ..statistics.combining import monte_carlo_mean
from ..statistics.estimated import ValueWithInterval, widen_for_series

EntropyEstimate = Literal["plug_in", "nearest_neighbour"]
SAMPLE_SIZE = 10_000
ColumnScore = Callable[[str, Floats, Floats], Sequence[float | ValueWithInterval]]
Divisor = Literal["original", "released"]


def plug_in_entropy(values: NDArray[np.generic]) -> float:
    """Return the entropy H = -sum p log p in nats, p the shares of the distinct values among ``values`` (n,), n >= 1.

    0 for a constant, log n where no value repeats: the entropy of the values at hand, not of a density.
    """
    shares = np.unique(values, return_counts=True)[1] / len(values)
    # + 0.0 turns the -0.0 of a constant into 0.
    return float(-(shares @ np.log(shares))) + 0.0


def nearest_neighbour_information(x: Floats, y: Floats, neighbours: int, rng: np.random.Generator) -> float:
    """Estimate the mutual information in nats of paired values, (n,) each: Kraskov, Stögbauer & Grassberger (2004), eq.
    8.

    scikit-learn's estimate, at least 0: variables are scaled to variance 1, and noise of 1e-10 breaks ties, so that
    discrete numbers have one too. Even of a variable with itself it stays below log n - psi(neighbours).
    """
    from sklearn.feature_selection import mutual_info_regression

    # The library takes a seed alone. Its 31 bits are enough: they decide the last digits of a measure.
    seed = int(rng.integers(2**31))
    return float(mutual_info_regression(x[:, None], y, n_neighbors=min(neighbours, len(x) - 1), random_state=seed)[0])


def estimate_entropy(x: Floats, estimate: EntropyEstimate, neighbours: int, rng: np.random.Generator) -> float:
    """Estimate the entropy of values (n,) in nats, at least 0."""
    # The paper names scikit-learn for the entropy, which has none of numbers. Its Figures 5 and 6 are met to the last
    # digit by the nearest-neighbour information of x with itself (entropies of 10.26, 6.91, 4.61 and 2.37 nats, shares
    # of 0.21 and 0.27). The plug-in entropy of values that never repeat is larger by psi(4) = 1.26 nats, so that an
    # unchanged column scores 0.86 unscaled in samples of 10,000. Where values repeat, both agree to 0.01; scaled,
    # within 0.02.
    return plug_in_entropy(x) if estimate == "plug_in" else nearest_neighbour_information(x, x, neighbours, rng)


def scale_information_share(share: float, entropy: float) -> float:
    """Return 1 - (1/e) integral from 0 to e of (1 - r) 2^-x dx (eq. 1), for a ``share`` r and an ``entropy`` e > 0 in
    nats.
    """
    # In closed form 1 - (1 - r) (1 - 2^-e) / (e log 2).
    return 1 - (1 - share) * -math.expm1(-entropy * math.log(2)) / (entropy * math.log(2))


@dataclass(frozen=True, slots=True)
class NormalisedInformation:
    """MI / H before and after scaling: means over samples, or over several ways to break ties, with their t intervals.

    unscaled: before scaling
    scaled: after scaling

    Where nothing was random the intervals have no width; a single random value has none.
    """

    unscaled: ValueWithInterval
    scaled: ValueWithInterval


def normalised_information(
    original: Floats,
    anonymised: Floats,
    divisor: Floats,
    *,
    samples: int,
    neighbours: int,
    rng: np.random.Generator,
    entropy: EntropyEstimate = "plug_in",
) -> NormalisedInformation | None:
    """Estimate MI(O, A) / H, with H the entropy of ``divisor``, all three (n,), n >= 2; None where a sample of O or of
    the divisor is constant.
    """
    found, ratios = [], []
    # Samples of 10,000, so that files of different sizes compare: the estimate grows with n. In smaller files only the
    # noise that breaks ties is random.
    drawn = len(original) > SAMPLE_SIZE or any(len(np.unique(one)) < len(one) for one in (original, anonymised))
    for rows, child in _draw_samples(len(original), samples if drawn else 1, rng):
        shared, own = (estimate_entropy(each[rows], entropy, neighbours, child) for each in (divisor, original))
        if shared == 0 or own == 0:
            return None
        information = nearest_neighbour_information(anonymised[rows], original[rows], neighbours, child)
        # The estimate of MI may exceed that of the entropy a little.
        share = min(1.0, information / shared)
        ratios.append(information / shared)
        found.append((share, scale_information_share(share, own)))
    means = [ValueWithInterval(*monte_carlo_mean(values, within=SHARE)) for values in zip(*found, strict=True)]
    _, low, high = monte_carlo_mean(ratios)
    if drawn and min(ratios) >= 1 and low is not None and high is not None:
        # Cut at 1 in every sample they look exact; how much the samples differ is seen before the cut.
        lower = max(0.0, 1 - (high - low) / 2)
        ends = (lower, scale_information_share(lower, own))
        means = [ValueWithInterval(mean.value, end, 1.0) for mean, end in zip(means, ends, strict=True)]
    return NormalisedInformation(
        *(one if drawn else ValueWithInterval(one.value, one.value, one.value) for one in means)
    )


def _draw_samples(
    n: int, samples: int, rng: np.random.Generator
) -> Iterator[tuple[NDArray[np.intp] | slice, np.random.Generator]]:
    """Yield the rows of each sample, and its random numbers; all rows where there are no more than ``SAMPLE_SIZE``."""
    if n <= SAMPLE_SIZE:
        for child in (rng, *rng.spawn(samples - 1)):
            yield slice(None), child
        return
    for child in rng.spawn(samples):
        yield child.choice(n, SAMPLE_SIZE, replace=False), child


@dataclass(frozen=True, kw_only=True, slots=True)
class ColumnsSpec(Spec):
    """Columns to score, and whether suppressed records count against them."""

    variables: Annotated[
        tuple[str, ...],
        Param("columns to score; left out, the numerical quasi-identifiers", names="variables", kinds=NUMBERS),
    ] = ()
    count_suppressed: Annotated[bool, Param("multiply each value by the share of records that are not suppressed")] = (
        False
    )

    def for_release(self, schema: Schema, released: tuple[str, ...]) -> Self:
        """Return the parameters with the numerical quasi-identifiers where no column is named."""
        found = tuple(name for name in compared_quasi_identifiers(schema, released) if schema[name].kind in NUMBERS)
        return replace(self, variables=self.variables or found)

    def check_release(self, schema: Schema, released: tuple[str, ...], place: str) -> None:
        """Raise BadInput where no column is named and no quasi-identifier is numerical."""
        if not self.for_release(schema, released).variables:
            raise BadInput(place, f"no quasi-identifier is {', '.join(NUMBERS[:-1])} or {NUMBERS[-1]}; leave it out")


def measure_columns(
    original: Microdata,
    released: Microdata,
    spec: ColumnsSpec,
    names: Sequence[str],
    score: ColumnScore,
) -> Measure:
    """Measure each column and return its rows, and the smallest value of the first measure named.

    names: the measures
    score: function of a column's name and its original and released values (k,), without suppressed records and missing
    values, that returns the values of these measures; it may raise NotComputable
    """
    pairs = LinkedTables.from_tables(original, released)
    factor = pairs.released_share if spec.count_suppressed else 1.0
    estimates: list[Estimate] = []
    for name in spec.variables:
        estimates.extend(_column_estimates(pairs, name, names, score, factor))
    # A column that is constant in the original has nothing to lose.
    constant = [name for name in spec.variables if np.ptp(original.present_numbers(name)) == 0]
    columns = [estimate for estimate in estimates if estimate.measure == names[0]]
    return Measure((*estimates, minimum_estimate(f"minimum_{names[0]}", columns, constant)))


def _column_estimates(
    pairs: LinkedTables, name: str, names: Sequence[str], score: ColumnScore, factor: float
) -> Iterator[Estimate]:
    """Yield the estimates of one column by each measure."""
    try:
        values = score(name, *_complete_pairs(*pairs.number_pairs(name)))
    except NotComputable as error:
        yield from (Estimate.not_computed(measure, error.reason, name) for measure in names)
        return
    for measure, found in zip(names, values, strict=True):
        value, *ends = (
            (found.value, found.lower, found.upper) if isinstance(found, ValueWithInterval) else (found, None, None)
        )
        lower, upper = (None if end is None else factor * end for end in ends)
        yield Estimate(measure, factor * value, name, lower, upper)


def _complete_pairs(original: Floats, released: Floats) -> tuple[Floats, Floats]:
    """Return the pairs of values of which neither is missing. Raises NotComputable for fewer than two."""
    present = ~(np.isnan(original) | np.isnan(released))
    if present.sum() < 2:
        raise NotComputable("fewer than two records have both values")
    return original[present], released[present]


@dataclass(frozen=True, kw_only=True, slots=True)
class InformationSpec(ColumnsSpec):
    """Columns to score, and how the information is estimated."""

    samples: Annotated[
        int,
        Param(
            "samples of 10,000 records to average over, where there are more records; else noises that break ties of values",
            ge=1,
        ),
    ] = 5
    neighbours: Annotated[int, Param("nearest neighbours of the estimate", ge=1)] = 3
    entropy: Annotated[
        EntropyEstimate,
        Param("entropy of the values' shares, or as the paper's figures have it, of nearest neighbours too"),
    ] = "plug_in"


def information_outputs(divisor: Divisor, short: str, advice: str, limit: Limit | None = None) -> tuple[Output, ...]:
    """Return the declared outputs of a version of normalised information; ``advice`` is what is known of a threshold."""
    return (
        Output(
            "nmi",
            f"information kept, as a share of the {divisor} values' entropy, scaled",
            "high",
            range=SHARE,
            short=short,
            estimated=True,
            quality=QualityOutput(scores="numbers"),
            statbarn="CorrelationCoefficients",
            label=Label(
                f"Information kept, by {divisor} values",
                "The release keeps {value} of the information in {variable}, after scaling.",
                "Higher is better; 100 % is all information.",
                "The released values say too little of the original ones.",
                COARSENING,
                counts="share",
            ),
        ),
        Output(
            "unscaled",
            "the same before scaling",
            "high",
            range=SHARE,
            estimated=True,
            statbarn="CorrelationCoefficients",
            label=Label(
                f"Unscaled information kept, by {divisor} values",
                "The release keeps {value} of the information in {variable}, before scaling.",
                "Higher is better; 100 % is all information.",
                "The released values say too little of the original ones.",
                COARSENING,
                counts="share",
            ),
        ),
        Output(
            "minimum_nmi",
            f"smallest scaled value of the columns; {advice}",
            "high",
            range=SHARE,
            estimated=True,
            quality=QualityOutput(minimum_of="nmi", limit=limit),
            statbarn="CorrelationCoefficients",
            label=Label(
                f"Least information kept, by {divisor} values",
                "The column that loses most keeps {value} of its information, after scaling.",
                "Higher is better; 100 % is all information in every column.",
                "At least one column says too little of the original values.",
                COARSENING,
                counts="share",
            ),
        ),
    )


def measure_information_kept(
    confidential: Microdata, released: Microdata, spec: InformationSpec, run: Run, divisor: Divisor
) -> Measure:
    """Measure the scaled and the unscaled information kept in each numerical column, and the smallest scaled one."""
    chosen = spec.for_release(confidential.schema, ())
    secret = run.rng.integers(2**32, size=4).tolist()
    score = partial(_column_information, chosen, secret, divisor)
    return measure_columns(confidential, released, chosen, ("nmi", "unscaled"), score)


def _column_information(
    spec: InformationSpec, secret: Sequence[int], divisor: Divisor, name: str, original: Floats, released: Floats
) -> tuple[ValueWithInterval, ValueWithInterval]:
    """Return the scaled and the unscaled information of values (n,). Raises NotComputable where an entropy is 0.

    ``secret`` and the column's name make its random numbers.
    """
    # One stream for all columns, one after the other, would let their order change every value.
    words = np.frombuffer(hashlib.sha256(name.encode()).digest(), "<u4").tolist()
    rng = np.random.default_rng(np.random.SeedSequence([*secret, *words]))
    by = original if divisor == "original" else released
    found = normalised_information(
        original, released, by, samples=spec.samples, neighbours=spec.neighbours, rng=rng, entropy=spec.entropy
    )  # fmt: skip
    if found is None:
        which = "original" if np.ptp(original) == 0 or divisor == "original" else "released"
        raise NotComputable(f"the {which} values are all the same, so there is no entropy to share")
    return found.scaled, found.unscaled


def minimum_estimate(measure: str, columns: Sequence[Estimate], constant_columns: Collection[str] = ()) -> Estimate:
    """Return the smallest of the columns' values (§3.6).

    A column without a value leaves none for the minimum, except those of ``constant_columns``: constant in the
    original.
    """
    missing = [column for column in columns if column.value is None]
    for column in missing:
        # A minimum over the other columns would hide a column that could not be measured.
        if column.target not in constant_columns:
            return Estimate.not_computed(measure, f"{column.target}: {column.reason}")
    known = [
        ValueWithInterval(column.value, column.lower, column.upper) for column in columns if column.value is not None
    ]
    if not known:
        return Estimate.not_computed(measure, missing[0].reason if missing else "there is no such variable")
    drawn = sum(one.lower != one.upper for one in known)
    ends = [ends for one in known if (ends := widen_for_series(one, drawn, SHARE).interval) is not None]
    # The simultaneous intervals all cover, so that the smallest of their ends enclose the smallest value.
    lower, upper = map(min, zip(*ends, strict=True)) if len(ends) == len(known) else (None, None)
    return Estimate(measure, min(one.value for one in known), "", lower, upper)
