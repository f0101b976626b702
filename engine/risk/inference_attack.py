"""Inference attacks (Park & Ghosh §4.4): an intruder who knows some values of a person infers another from the release.

The intruder takes the released records that agree with the person on the known variables, and infers the most frequent of
their values, where the sensitive variable has levels, or their mean, where it is a number or a date. Every confidential
record is attacked:

    misclassification    the share of the records whose value is inferred wrongly
    mean_absolute_error  mean |inferred - true|, in the unit of the variable, of a date in days

Of equally frequent values one is picked at random, and its chance to be right counts. The paper does not say what is
inferred where no released record agrees. By default the nearest are asked, those that agree on as many of the known variables
as any does; with ``fallback = "all"`` all records are.

Both stand between two others. The baseline is what the same attack gets from data without protection: from bootstrap samples of
the confidential records, of as many records as the release has, on average over ``resamples`` of them. ``guess_misclassification``
and ``guess_mean_absolute_error`` are what an intruder gets from the release who knows nothing of the person, the same guess for
everybody. A release whose attack is no better than that guess gives nothing away by the known variables; one as good as the baseline
protects nothing. Errors have no interval of their own, since all records are attacked; that of an average is over the datasets.

**The best choice of variables.** A replaced value can lead to the wrong records, so ``least_misclassification`` and ``least_mean_absolute_error`` are the
least errors of the attack over the known variables that the intruder may use; with none of them it is the guess. All subsets of up to 6 variables are
tried, of up to 12 where all records are asked (``sfumato.engine.matching.strategies``).

A missing value of a known variable agrees with a missing one alone; of levels it is a value that can be inferred; of numbers such
records are not attacked, and not inferred from.

What an intruder infers of a record from the released ones that agree with it on what is known (Park & Ghosh §4.4).

Where no released record agrees on all known variables, the nearest are asked: those that agree on as many as any does.
They fall apart into those that agree on each set of so many variables, and no record is in two of these, so counts and
sums over the sets add up: time and memory grow with the records, not with their product.
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
from ..data.schema import Kind, Role, Schema
from ..design.binning import BINNED, BinningRule, check_binning_rules, comparable_categories, learned_bins_text
from ..errors import BadInput, NotComputable
from ..matching.intruder import check_log_scale
from ..matching.radius import Radius
from ..matching.strategies import Strategy, Subset, best_subset
from ..methods.intruder import Known
from ..methods.levers import INFERENCE
from ..methods.outputs import Label, Output, RecordArray, RiskOutput
from ..methods.registry import measure_method
from ..methods.results import Estimate, Measure
from ..methods.run import Run
from ..methods.spec import Param, Spec
from ..partition.equivalence_classes import equivalence_classes, joint_classes
from ..statistics.columns import column_scales, left_out
from ._compared import compared

Codes = Sequence[Integers]
"""A code a record for each known variable, equal for equal values of either table."""
ATTACK = "inference attack"
LEAST = "least_"
MOST_SUBSETS = {"nearest": 6, "all": 12}
"""Up to so many known variables all subsets are tried: to ask the nearest by k variables takes up to 2^k groupings, so all subsets take 3^k."""
_GUESS = "an intruder infers who has the release and knows nothing of a person"


@dataclass(frozen=True, eq=False)
class Agreeing:
    """The released records that each of n records is inferred from.

    ``query`` (n,) numbers the combinations of known values; ``sums`` (queries, 1 + F) hold of each how many released
    records it is inferred from and the sums of their F features. ``candidates`` (n,) are those that agree on all.
    """

    query: Integers
    sums: sparse.csr_array
    candidates: Integers

    @classmethod
    def of(cls, ours: Codes, theirs: Codes, features: sparse.csr_array, *, nearest: bool) -> Agreeing:
        """Sums of features (m, F) for n records; where none agrees on all d variables, of the nearest, or else of all.

        Args:
            ours: d codes (n,) each.
            theirs: d codes (m,) each, m at least 1.
            features: a row of F numbers a released record.
            nearest: what is asked where no record agrees on all: those that agree on most variables, or all.
        """
        query, asked = _distinct(ours, len(ours[0]))
        cell, offered = _distinct(theirs, features.shape[0])
        counted = sparse.hstack([np.ones((features.shape[0], 1)), features], format="csr")
        table = sparse.csr_array(_membership(cell, len(offered[0])) @ counted)
        blocks, rows, left = [], [], np.arange(len(asked[0]))
        candidates = np.zeros(len(asked[0]), dtype=np.int64)
        for size in range(len(ours), -1, -1) if nearest else (len(ours), 0):
            found = _agreeing_on(size, [codes[left] for codes in asked], offered, table)
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

    def means(self) -> Floats:
        """The mean of the one feature that there is, for each record (n,)."""
        dense = self.sums.toarray()
        return np.asarray((dense[:, 1] / dense[:, 0])[self.query])

    def probability_of_mode(self, values: Integers) -> Floats:
        """How probable it is that the most frequent feature is number ``values`` (n,), features being indicators.

        One of several equally frequent ones is picked at random: 0, 1, or a fraction.
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


def indicators(values: Integers, width: int) -> sparse.csr_array:
    """Features (m, width): 1 in the column of each value (m,)."""
    return sparse.csr_array((np.ones(len(values)), (np.arange(len(values)), values)), shape=(len(values), width))


def number(values: Floats) -> sparse.csr_array:
    """One feature, the value itself: (m, 1)."""
    return sparse.csr_array(values[:, None])


def _distinct(codes: Codes, records: int) -> tuple[Integers, list[Integers]]:
    """The combination of each record, and the codes of each combination."""
    combination = equivalence_classes(codes, records)
    first = np.unique(combination, return_index=True)[1]
    return combination, [column[first] for column in codes]


def _membership(group: Integers, groups: int) -> sparse.csr_array:
    """(groups, n): 1 where a record is of the group."""
    return sparse.csr_array((np.ones(len(group)), (group, np.arange(len(group)))), shape=(groups, len(group)))


def _agreeing_on(size: int, asked: Codes, offered: Codes, table: sparse.csr_array) -> sparse.csr_array:
    """Sums over the offered combinations that agree on some ``size`` of the variables, each set of them by itself."""
    queries: int = len(asked[0])
    total = sparse.csr_array((queries, table.shape[1]))
    for chosen in combinations(range(len(asked)), size):
        both = [np.concatenate([asked[j], offered[j]]) for j in chosen]
        group: NDArray[np.int64] = equivalence_classes(both, queries + table.shape[0])
        sums = sparse.csr_array(_membership(group[queries:], int(group.max()) + 1) @ table)
        total = total + sums[group[:queries]]
    return sparse.csr_array(total)


UNEQUAL = BinningRule.parse("10 equal count")
"""Of continuous values that are synthesised none is met again, so that they are known in bins."""


def check(data: Microdata, target: str, spec: InferenceAttackSpec, place: str) -> None:
    """BadInput where the confidential values do not suit a radius on the log scale."""
    if spec.within is not None:
        check_log_scale(data, {spec.sensitive: spec.within}, place)


def _least_errors(
    target: _Levels | _Numbers, known: _Known, names: Sequence[str], guessed: _Attack
) -> dict[str, tuple[float, Strategy]]:
    """Return the least error of each measure over subsets of the known variables ``names``, and the strategy that has it."""

    def results(chosen: Subset) -> dict[str, float]:
        at = [place for place, name in enumerate(names) if name in chosen]
        some = _Known([known.ours[k] for k in at], [known.theirs[k] for k in at], nearest=known.nearest)
        attack = target.attacked(some) if at else guessed
        return {measure: -error for measure, error in attack.errors.items()}

    found = best_subset(names, results, MOST_SUBSETS["nearest" if known.nearest else "all"])
    return {measure: (max(0.0, -value), strategy) for measure, (value, strategy) in found.items()}


@dataclass(frozen=True, eq=False)
class _Known:
    """The known variables of both tables as codes, and whether the nearest are asked where no record agrees on all."""

    ours: Codes
    theirs: Codes
    nearest: bool = True

    def offered(self, rows: Integers | None) -> Codes:
        """Those of the released records, or of a sample that has these confidential ``rows`` (m,)."""
        return self.theirs if rows is None else [codes[rows] for codes in self.ours]


@dataclass(frozen=True, eq=False)
class _Attack:
    """What an attack comes to: its errors by measure, and arrays (n,) by name of what it is record by record."""

    errors: Mapping[str, float]
    per_record: Mapping[str, Floats | Integers]


@dataclass(frozen=True, eq=False)
class _Levels:
    """Values that have levels as codes, equal for equal ones of both tables: (n,) and (m,). A missing one is a level."""

    ours: Integers
    theirs: Integers
    remark: str = ""

    def attacked(self, known: _Known, rows: Integers | None = None) -> _Attack:
        """The attack on all confidential records by the release, or by a sample that has these of them."""
        values = self.theirs if rows is None else self.ours[rows]
        features = indicators(values, int(max(self.ours.max(), self.theirs.max())) + 1)
        agreeing = Agreeing.of(known.ours, known.offered(rows), features, nearest=known.nearest)
        right = agreeing.probability_of_mode(self.ours)
        wrong = max(0.0, 1 - float(np.mean(np.sort(right))))
        return _Attack({"misclassification": wrong}, {"candidates": agreeing.candidates, "right": right})


@dataclass(frozen=True, eq=False)
class _Numbers:
    """Numbers of both tables, (n,) and (m,), NaN where they are missing; ``window``, if asked, what is near enough: (n,), (n,)."""

    ours: Floats
    theirs: Floats
    window: tuple[Floats, Floats] | None
    remark: str = ""

    def attacked(self, known: _Known, rows: Integers | None = None) -> _Attack:
        """As of levels; nothing where no record has a number to infer from."""
        values = self.theirs if rows is None else self.ours[rows]
        there, attacked = ~np.isnan(values), ~np.isnan(self.ours)
        if not there.any():
            return _Attack({}, {})
        scale = float(column_scales(np.concatenate([self.ours[attacked], values[there]])))
        offered = [codes[there] for codes in known.offered(rows)]
        agreeing = Agreeing.of(known.ours, offered, number(values[there] / scale), nearest=known.nearest)
        inferred = agreeing.means()
        error = np.abs(inferred - self.ours / scale)
        errors = {"mean_absolute_error": float(np.mean(np.sort(error[attacked]))) * scale}
        arrays: dict[str, Floats | Integers] = {"candidates": agreeing.candidates, "error": error * scale}
        if self.window is not None:
            right = (self.window[0] <= inferred * scale) & (inferred * scale <= self.window[1])
            errors["misclassification"] = 1 - float(np.mean(right[attacked]))
            arrays["right"] = right.astype(np.float64)
        return _Attack(errors, arrays)


def _target(confidential: Microdata, released: Microdata, spec: InferenceAttackSpec) -> _Levels | _Numbers:
    name = spec.sensitive
    if confidential.schema[name].kind.has_levels:
        ours, theirs = comparable_categories(confidential, released, name, None)
        return _Levels(*joint_classes([ours], [theirs]))
    own, drawn = confidential.numbers(name), released.numbers(name)
    if np.isnan(drawn).all():
        raise NotComputable(f'no released record has a value of "{name}"')
    said = [
        f"{table}: {words}"
        for table, values in (("confidential", own), ("released", drawn))
        if (words := left_out(int(np.isnan(values).sum()), len(values)))
    ]
    window = None if spec.within is None else spec.within.window(own)
    return _Numbers(own, drawn, window, "; ".join(said))


@dataclass(frozen=True, kw_only=True, slots=True)
class InferenceAttackSpec(Spec):
    """What the intruder knows, wants to learn, and does where nobody agrees."""

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
        """With the other variables of role known as known, when none is named, and bins for continuous ones that are synthesised."""
        known = self.known or tuple(
            name for name in schema.names_by_role(Role.QUASI_IDENTIFIER) if name != self.sensitive
        )
        unequal = [name for name in known if schema[name].kind is Kind.CONTINUOUS and name in released]
        return replace(self, known=known, bins={**dict.fromkeys(unequal, UNEQUAL), **self.bins})

    def check_release(self, schema: Schema, released: tuple[str, ...], place: str) -> None:
        """BadInput when nothing is known, what is inferred is known, or a variable needs bins or may have none."""
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
                "Wrong inferences, best intruder",
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
                "Mean error of inferred numbers, best intruder",
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
    check=check,
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
    """The error of the attack, beside that of a bootstrap sample and of a guess.

    ``per_record``, whosever the released records are: ``candidates`` (n,), ``right`` (n,) the probability that the value is inferred,
    ``guessed`` (n,) that it is what would be guessed of everybody, ``error`` (n,), NaN where the number is missing.
    """
    names = sorted(spec.known)
    pairs = [compared(confidential, released, [name], spec.bins) for name in names]
    known = _Known([pair[0] for pair in pairs], [pair[1] for pair in pairs], nearest=spec.fallback == "nearest")
    nothing = _Known([np.zeros(len(confidential), dtype=np.int64)], [np.zeros(len(released), dtype=np.int64)])
    target = _target(confidential, released, spec)
    found, guessed = target.attacked(known), target.attacked(nothing)
    order = np.lexsort([confidential.numbers(name) for name in (*names, spec.sensitive)])
    drawn = (order[run.rng.integers(0, len(order), len(released))] for _ in range(spec.resamples))
    samples = [target.attacked(known, rows) for rows in drawn]
    remark = "; ".join(filter(None, (learned_bins_text(spec.bins), target.remark)))
    estimates = []
    for measure, value in found.errors.items():
        unprotected = [sample.errors[measure] for sample in samples if measure in sample.errors]
        baseline = float(np.mean(unprotected)) if unprotected else None
        estimates.append(Estimate(measure, value, spec.sensitive, baseline=baseline, reason=remark))
        estimates.append(Estimate(f"guess_{measure}", guessed.errors[measure], spec.sensitive, reason=target.remark))
    for measure, (error, strategy) in _least_errors(target, known, names, guessed).items():
        said = "; ".join(filter(None, (strategy.words, remark)))
        estimates.append(Estimate(f"{LEAST}{measure}", error, spec.sensitive, reason=said))
    anyway = {"guessed": guessed.per_record["right"]} if "right" in guessed.per_record else {}
    return Measure(tuple(estimates), {**found.per_record, **anyway})
