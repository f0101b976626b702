"""Inference attacks (Park & Ghosh §4.4): error of values inferred from known ones by the release.

The intruder takes the released records that agree with the person on the known variables and infers their most frequent
value (levels) or their mean (numbers, dates). Every confidential record is attacked.

    misclassification    share of the records whose value is inferred wrongly
    mean_absolute_error  mean |inferred - true|, in the unit of the variable, days for a date

If no released record agrees on all known variables, those that agree on the most are taken, or all records with
``fallback = "all"``. The baseline is the mean error of the same attack from ``resamples`` bootstrap samples of the
confidential records, as large as the release. ``guess_misclassification`` and ``guess_mean_absolute_error`` are the
errors of an intruder who has the release and knows nothing of the person. An attack no better than that guess reveals
nothing by the known variables; one as good as the baseline shows that the release protects nothing.
``least_misclassification`` and ``least_mean_absolute_error`` are the least errors over subsets of the known variables.

A missing known value agrees with a missing one only; a missing level can be inferred; records with a missing number are
left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Annotated, Literal, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..data.arrays import Floats, Integers
from ..data.intervals import NON_NEGATIVE, SHARE
from ..data.microdata import Microdata
from ..data.rows import first_records
from ..data.schema import Kind, Role, Schema
from ..design.binning import BINNED, BinningRule, check_binning_rules, comparable_categories, learned_bins_text
from ..errors import BadInput, NotComputable
from ..matching.intruder import check_log_scale
from ..matching.radius import Radius
from ..matching.strategies import IntruderStrategy, Subset, find_best_subsets
from ..methods.intruder import Known
from ..methods.levers import INFERENCE
from ..methods.outputs import Label, Output, RecordArray, RiskOutput
from ..methods.registry import measure_method
from ..methods.results import Estimate, Measure
from ..methods.run import Run
from ..methods.spec import Param, Spec
from ..partition.equivalence_classes import equivalence_classes, joint_classes
from ..statistics.columns import column_scales, missing_values_text
from ._attacked_records import order_by_values
from ._compared import comparison_codes

KeyCodes = Sequence[Integers]
"""Codes of the records for each known variable, equal for equal values of either table."""
ATTACK = "inference attack"
LEAST = "least_"
MAX_VARIABLES_ALL_SUBSETS = {"nearest": 6, "all": 12}
"""Number of known variables up to which all subsets are tried; with "nearest", k variables need up to 2^k groupings."""
_GUESS = "an intruder infers who has the release and knows nothing of a person"


@dataclass(frozen=True, eq=False)
class DonorRecords:
    """Sums over the released records from which each of n records is inferred, by combination of known values.

    query: combination of known values of each record, (n,)
    sums: for each combination the number of donors and the sums of their F features, (queries, 1 + F)
    candidates: number of released records that agree on all known variables, (n,)
    """

    query: Integers
    sums: sparse.csr_array
    candidates: Integers

    @classmethod
    def from_codes(cls, ours: KeyCodes, theirs: KeyCodes, features: sparse.csr_array, *, nearest: bool) -> DonorRecords:
        """Sum the features (m, F) of the donors of n records.

        Args:
            ours: codes of the n records for each of d known variables, (n,) each.
            theirs: codes of the m >= 1 released records, (m,) each.
            features: features of the released records, (m, F).
            nearest: whether records without full agreement use those that agree on most variables, or else all.
        """
        query, asked = _distinct_combinations(ours, len(ours[0]))
        cell, offered = _distinct_combinations(theirs, features.shape[0])
        counted = sparse.hstack([np.ones((features.shape[0], 1)), features], format="csr")
        table = sparse.csr_array(_group_indicators(cell, len(offered[0])) @ counted)
        blocks, rows, left = [], [], np.arange(len(asked[0]))
        candidates = np.zeros(len(asked[0]), dtype=np.int64)
        # At the largest size with any agreement no released record can be in two of the sets, so sums over the sets add
        # up, and time and memory grow with the records and not with their product.
        for size in range(len(ours), -1, -1) if nearest else (len(ours), 0):
            found = _sums_agreeing_on(size, [codes[left] for codes in asked], offered, table)
            there = found[:, [0]].toarray().ravel()
            if size == len(ours):
                candidates[left] = there.astype(np.int64)
            blocks.append(found[there > 0])
            rows.append(left[there > 0])
            left = left[there == 0]
            if not len(left):
                break
        order = np.argsort(np.concatenate(rows))
        sums = sparse.csr_array(sparse.vstack(blocks, format="csr")[order])
        sums.sort_indices()
        return cls(query, sums, candidates[query])

    def mean_features(self) -> Floats:
        """Return the donors' mean of the only feature for each record, (n,)."""
        dense = self.sums.toarray()
        return np.asarray((dense[:, 1] / dense[:, 0])[self.query])

    def probability_of_mode(self, values: Integers) -> Floats:
        """Return the probability that the donors' mode is level ``values``, (n,); ties share it.

        The features must be indicators.
        """
        width = self.sums.shape[1]
        row = np.repeat(np.arange(self.sums.shape[0]), np.diff(self.sums.indptr))
        own = self.sums.indices > 0
        row, column, count = row[own], self.sums.indices[own].astype(np.int64), self.sums.data[own]
        largest = np.zeros(self.sums.shape[0])
        np.maximum.at(largest, row, count)
        modes = count == largest[row]
        ties = np.bincount(row[modes], minlength=len(largest))
        keys = row[modes] * width + column[modes]
        wanted = self.query * width + values + 1
        place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        return np.asarray(np.where(keys[place] == wanted, 1 / ties[self.query], 0.0))


def indicator_features(values: Integers, width: int) -> sparse.csr_array:
    """Return the indicator matrix of values (m,), with shape (m, width)."""
    return sparse.csr_array((np.ones(len(values)), (np.arange(len(values)), values)), shape=(len(values), width))


def number_feature(values: Floats) -> sparse.csr_array:
    """Return the values as one feature, (m, 1)."""
    return sparse.csr_array(values[:, None])


def _distinct_combinations(codes: KeyCodes, records: int) -> tuple[Integers, list[Integers]]:
    """Return the number of each record's combination, and the codes of each distinct combination."""
    combination = equivalence_classes(codes, records)
    first = first_records(combination, int(combination.max(initial=-1)) + 1)
    return combination, [column[first] for column in codes]


def _group_indicators(group: Integers, groups: int) -> sparse.csr_array:
    """Return the matrix (groups, n) that is 1 where a record is in the group."""
    return sparse.csr_array((np.ones(len(group)), (group, np.arange(len(group)))), shape=(groups, len(group)))


def _sums_agreeing_on(size: int, asked: KeyCodes, offered: KeyCodes, table: sparse.csr_array) -> sparse.csr_array:
    """Sum the table over the offered combinations that agree on each set of ``size`` variables, and add up all sets."""
    queries: int = len(asked[0])
    total = sparse.csr_array((queries, table.shape[1]))
    for chosen in combinations(range(len(asked)), size):
        both = [np.concatenate([asked[j], offered[j]]) for j in chosen]
        group: NDArray[np.int64] = equivalence_classes(both, queries + table.shape[0])
        sums = sparse.csr_array(_group_indicators(group[queries:], int(group.max()) + 1) @ table)
        total = total + sums[group[:queries]]
    return sparse.csr_array(total)


CONTINUOUS_BINS = BinningRule.parse("10 equal count")
"""Default bins of synthesised continuous variables, whose exact values never recur."""


def check_data(data: Microdata, target: str, spec: InferenceAttackSpec, place: str) -> None:
    """Raise BadInput if confidential values do not suit a radius on the log scale."""
    if spec.within is not None:
        check_log_scale(data, {spec.sensitive: spec.within}, place)


def _least_errors(
    target: _SensitiveLevels | _SensitiveNumbers, known: _KnownCodes, names: Sequence[str], guessed: _InferenceErrors
) -> dict[str, tuple[float, IntruderStrategy]]:
    """Return for each measure the least error over subsets of the known variables, and the strategy that attains it."""

    def negative_errors(chosen: Subset) -> dict[str, float]:
        """Return minus the error of each measure with some of the known variables."""
        at = [place for place, name in enumerate(names) if name in chosen]
        some = _KnownCodes([known.ours[k] for k in at], [known.theirs[k] for k in at], nearest=known.nearest)
        attack = target.attack(some) if at else guessed
        # The search maximises.
        return {measure: -error for measure, error in attack.errors.items()}

    found = find_best_subsets(names, negative_errors, MAX_VARIABLES_ALL_SUBSETS["nearest" if known.nearest else "all"])
    return {measure: (max(0.0, -value), strategy) for measure, (value, strategy) in found.items()}


@dataclass(frozen=True, eq=False)
class _KnownCodes:
    """Known variables of both tables as codes.

    ours: codes of the confidential records, (n,) each
    theirs: codes of the released records, (m,) each
    nearest: whether the nearest records are used if none agrees on all, else all records
    """

    ours: KeyCodes
    theirs: KeyCodes
    nearest: bool = True

    def donor_codes(self, rows: Integers | None) -> KeyCodes:
        """Return the codes of the released records or, given ``rows`` (m,), of a sample of confidential ones."""
        return self.theirs if rows is None else [codes[rows] for codes in self.ours]


@dataclass(frozen=True, eq=False)
class _InferenceErrors:
    """Errors of an attack by measure, and arrays (n,) by name with values for single records."""

    errors: Mapping[str, float]
    per_record: Mapping[str, Floats | Integers]


@dataclass(frozen=True, eq=False)
class _SensitiveLevels:
    """Sensitive categorical variable as codes of both tables, (n,) and (m,); missing is a level."""

    ours: Integers
    theirs: Integers
    remark: str = ""

    def attack(self, known: _KnownCodes, rows: Integers | None = None) -> _InferenceErrors:
        """Attack all confidential records by the release or, given ``rows``, by a sample of confidential records."""
        values = self.theirs if rows is None else self.ours[rows]
        features = indicator_features(values, int(max(self.ours.max(), self.theirs.max())) + 1)
        agreeing = DonorRecords.from_codes(known.ours, known.donor_codes(rows), features, nearest=known.nearest)
        right = agreeing.probability_of_mode(self.ours)
        # Sorted, so that the order of records does not change the last digits.
        wrong = max(0.0, 1 - float(np.mean(np.sort(right))))
        return _InferenceErrors({"misclassification": wrong}, {"candidates": agreeing.candidates, "right": right})


@dataclass(frozen=True, eq=False)
class _SensitiveNumbers:
    """Sensitive numeric variable of both tables, NaN for missing values.

    ours: numbers of the confidential records, (n,)
    theirs: numbers of the released records, (m,)
    window: ends of the window of values near enough, (n,) each; None if not requested
    remark: number of records without a value, in words
    """

    ours: Floats
    theirs: Floats
    window: tuple[Floats, Floats] | None
    remark: str = ""

    def attack(self, known: _KnownCodes, rows: Integers | None = None) -> _InferenceErrors:
        """Attack all confidential records that have a number; the result is empty if no donor has one."""
        values = self.theirs if rows is None else self.ours[rows]
        there, attacked = ~np.isnan(values), ~np.isnan(self.ours)
        if not there.any():
            return _InferenceErrors({}, {})
        scale = float(column_scales(np.concatenate([self.ours[attacked], values[there]])))
        offered = [codes[there] for codes in known.donor_codes(rows)]
        agreeing = DonorRecords.from_codes(
            known.ours, offered, number_feature(values[there] / scale), nearest=known.nearest
        )
        inferred = agreeing.mean_features()
        error = np.abs(inferred - self.ours / scale)
        errors = {"mean_absolute_error": float(np.mean(np.sort(error[attacked]))) * scale}
        arrays: dict[str, Floats | Integers] = {"candidates": agreeing.candidates, "error": error * scale}
        if self.window is not None:
            right = (self.window[0] <= inferred * scale) & (inferred * scale <= self.window[1])
            errors["misclassification"] = 1 - float(np.mean(right[attacked]))
            arrays["right"] = right.astype(np.float64)
        return _InferenceErrors(errors, arrays)


def _target_values(
    confidential: Microdata, released: Microdata, spec: InferenceAttackSpec
) -> _SensitiveLevels | _SensitiveNumbers:
    """Return the sensitive variable of both tables. Raises NotComputable if no released record has a value."""
    name = spec.sensitive
    if confidential.schema[name].kind.has_levels:
        ours, theirs = comparable_categories(confidential, released, name, None)
        return _SensitiveLevels(*joint_classes([ours], [theirs]))
    own, drawn = confidential.numbers(name), released.numbers(name)
    if np.isnan(drawn).all():
        raise NotComputable(f'no released record has a value of "{name}"')
    said = [
        f"{table}: {words}"
        for table, values in (("confidential", own), ("released", drawn))
        if (words := missing_values_text(int(np.isnan(values).sum()), len(values)))
    ]
    window = None if spec.within is None else spec.within.window(own)
    return _SensitiveNumbers(own, drawn, window, "; ".join(said))


@dataclass(frozen=True, kw_only=True, slots=True)
class InferenceAttackSpec(Spec):
    """Settings: known and sensitive variables, and what is done if no record agrees."""

    sensitive: Annotated[str, Param("the variable that the intruder infers", names="variables")]
    known: Known = ()
    bins: Annotated[
        Mapping[str, BinningRule],
        Param(
            'bins in which known numbers and dates agree, by variable: "width 5", "at 18, 65", "10 equal count" or '
            '"10 equal width" (both learned from the confidential data); default: 10 equal count for continuous variables '
            "that are synthesised, equal values for others",
            names="variables",
            kinds=BINNED,
        ),
    ] = field(default_factory=dict)
    within: Annotated[
        Radius | None,
        Param('how near an inferred number counts as right: 5, "5%" or "log 5%"; left out, only its error is found'),
    ] = None
    fallback: Annotated[
        Literal["nearest", "all"],
        Param(
            "where no released record agrees on all known variables: those that agree on most of them, or all records"
        ),
    ] = "nearest"
    resamples: Annotated[int, Param("bootstrap samples of the baseline", ge=1)] = 5

    def for_release(self, schema: Schema, released: tuple[str, ...]) -> Self:
        """Return these settings with default known variables and bins.

        The other quasi-identifiers are known by default. Continuous known variables that are synthesised get bins.
        """
        known = self.known or tuple(
            name for name in schema.names_by_role(Role.QUASI_IDENTIFIER) if name != self.sensitive
        )
        unequal = [name for name in known if schema[name].kind is Kind.CONTINUOUS and name in released]
        return replace(self, known=known, bins={**dict.fromkeys(unequal, CONTINUOUS_BINS), **self.bins})

    def check_release(self, schema: Schema, released: tuple[str, ...], place: str) -> None:
        """Raise BadInput if known and sensitive variables, bins or radius do not fit."""
        known = self.for_release(schema, released).known
        if not known:
            raise BadInput(
                f"{place}.known", 'the intruder knows no variable; name some, or give them the role "quasi_identifier"'
            )
        if self.sensitive in known:
            raise BadInput(f"{place}.sensitive", f'"{self.sensitive}" is among the known variables')
        check_binning_rules(self.bins, {n: schema[n].kind for n in known if schema[n].kind in BINNED}, f"{place}.bins")
        if self.within is not None and schema[self.sensitive].kind.has_levels:
            raise BadInput(f"{place}.within", f'"{self.sensitive}" has levels, which are right or wrong')
        if self.within is not None and schema[self.sensitive].kind is Kind.DATE and self.within.kind != "absolute":
            raise BadInput(f"{place}.within", "a date has no share; give the radius in days, such as 5")


@measure_method(
    "Inference attack",
    spec=InferenceAttackSpec,
    source="Park & Ghosh §4.4",
    outputs=(
        Output(
            "misclassification",
            "share of the records whose value an intruder infers wrongly from the released records that agree on the known "
            "variables; its baseline is from data without protection",
            "high",
            "share",
            range=SHARE,
            risk=RiskOutput(questions=("inference",), evidence=ATTACK),
            label=Label(
                "Wrong inferences from similar records",
                "An intruder who infers {variable} from similar released records is wrong for {value}.",
                "Higher is better: inferences are as wrong as without the release.",
                "An intruder infers too many people's values rightly.",
                INFERENCE,
                counts="people",
                baseline="with the data released unprotected",
            ),
        ),
        Output(
            "mean_absolute_error",
            "distance of the number so inferred from the record's own, averaged over the records",
            "high",
            range=NON_NEGATIVE,
            risk=RiskOutput(questions=("inference",), evidence=ATTACK),
            label=Label(
                "Mean error of inferred numbers",
                "An intruder who infers {variable} from similar released records errs by {value} on average.",
                "Higher is better: inferred numbers are far from the truth.",
                "An intruder infers numbers too near the true ones.",
                INFERENCE,
                baseline="with the data released unprotected",
            ),
        ),
        Output(
            "least_misclassification",
            "least share of the records whose value is inferred wrongly, over the known variables that the intruder may use",
            "high",
            "share",
            range=SHARE,
            short="least misclassification",
            risk=RiskOutput(questions=("inference",), evidence=ATTACK, never_falls_with_knowledge=True),
            label=Label(
                "Wrong inferences, best variables",
                "An intruder who ignores what misleads infers {variable} wrongly for {value}.",
                "Higher is better: inferences are as wrong as without the release.",
                "The best choice of variables infers too many people's values rightly.",
                INFERENCE,
                counts="people",
            ),
        ),
        Output(
            "least_mean_absolute_error",
            "least distance of the number inferred from the record's own, averaged over the records, over the known variables that the intruder may use",
            "high",
            range=NON_NEGATIVE,
            short="least error",
            risk=RiskOutput(questions=("inference",), evidence=ATTACK, never_falls_with_knowledge=True),
            label=Label(
                "Error of inferred numbers, best variables",
                "An intruder who ignores what misleads errs by {value} in {variable} on average.",
                "Higher is better: inferred numbers are far from the truth.",
                "The best choice of variables infers numbers too near the true ones.",
                INFERENCE,
            ),
        ),
        Output(
            "guess_misclassification",
            f"share of the records that {_GUESS} wrongly",
            "none",
            "share",
            range=SHARE,
            risk=RiskOutput(evidence=ATTACK),
            label=Label(
                "Wrong guesses without knowledge of a person",
                "An intruder who knows nothing of a person guesses {variable} wrongly for {value}.",
                counts="people",
            ),
        ),
        Output(
            "guess_mean_absolute_error",
            f"distance from the number that {_GUESS}",
            "none",
            range=NON_NEGATIVE,
            risk=RiskOutput(evidence=ATTACK),
            label=Label(
                "Mean error without knowledge of a person",
                "An intruder who knows nothing of a person errs by {value} in {variable} on average.",
            ),
        ),
    ),
    confidential=True,
    check=check_data,
    per_record=(
        RecordArray(
            "candidates",
            "released records that agree with the record on all known variables",
            "records",
            "low",
            "candidates",
        ),
        RecordArray("right", "that the value inferred of the record is its own", "share", "high", "probability"),
        RecordArray("guessed", "that the value guessed of everybody is its own", "share", "none", "prior"),
        RecordArray("error", "how far the number inferred of the record is from its own", "", "low"),
    ),
)
def inference_attack(confidential: Microdata, released: Microdata, spec: InferenceAttackSpec, run: Run) -> Measure:
    """Compute the error of the attack, of the same attack from bootstrap samples, and of a guess.

    ``per_record``, whether or not the release is linked, (n,) each: ``candidates``; ``right``, the probability that the
    value is inferred; ``guessed``, that it is the constant guess; ``error``, NaN if the number is missing.
    """
    names = sorted(spec.known)
    pairs = [comparison_codes(confidential, released, [name], spec.bins) for name in names]
    known = _KnownCodes([pair[0] for pair in pairs], [pair[1] for pair in pairs], nearest=spec.fallback == "nearest")
    nothing = _KnownCodes([np.zeros(len(confidential), dtype=np.int64)], [np.zeros(len(released), dtype=np.int64)])
    target = _target_values(confidential, released, spec)
    found, guessed = target.attack(known), target.attack(nothing)
    # Sorted by value, so that the samples do not depend on the order of the file.
    order = order_by_values(confidential, (*names, spec.sensitive))
    drawn = (order[run.rng.integers(0, len(order), len(released))] for _ in range(spec.resamples))
    samples = [target.attack(known, rows) for rows in drawn]
    remark = "; ".join(filter(None, (learned_bins_text(spec.bins), target.remark)))
    estimates = []
    for measure, value in found.errors.items():
        unprotected = [sample.errors[measure] for sample in samples if measure in sample.errors]
        baseline = float(np.mean(unprotected)) if unprotected else None
        estimates.append(Estimate(measure, value, spec.sensitive, baseline=baseline, reason=remark))
        estimates.append(Estimate(f"guess_{measure}", guessed.errors[measure], spec.sensitive, reason=target.remark))
    for measure, (error, strategy) in _least_errors(target, known, names, guessed).items():
        said = "; ".join(filter(None, (strategy.description, remark)))
        estimates.append(Estimate(f"{LEAST}{measure}", error, spec.sensitive, reason=said))
    anyway = {"guessed": guessed.per_record["right"]} if "right" in guessed.per_record else {}
    return Measure(tuple(estimates), {**found.per_record, **anyway})
