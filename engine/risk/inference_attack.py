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

A missing value of a known variable agrees with a missing one alone; of levels it is a value that can be inferred; of numbers such
records are not attacked, and not inferred from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Literal, Self

import numpy as np

from ..arrays import Floats, Integers
from ..data.intervals import NON_NEGATIVE, SHARE
from ..data.microdata import Microdata
from ..data.schema import Kind, Role, Schema
from ..design.binning import BINNED, Binning, as_categories, check_binning, learned_words
from ..errors import BadInput, NotComputable
from ..matching.inference import Agreeing, Codes, indicators, number
from ..matching.intruder import check_log_scale
from ..matching.radius import Radius
from ..methods.outputs import Output, RecordArray
from ..methods.registry import method
from ..methods.results import Estimate, Measure
from ..methods.run import Run
from ..methods.spec import Param, Spec
from ..partition.equivalence_classes import joint_classes
from ..statistics.columns import column_scales, left_out
from ._compared import compared


@dataclass(frozen=True, kw_only=True, slots=True)
class InferenceAttackSpec(Spec):
    """What the intruder knows, wants to learn, and does where nobody agrees."""

    sensitive: Annotated[str, Param("the variable that the intruder infers", names="variables")]
    known: Annotated[
        tuple[str, ...],
        Param("variables the intruder knows; left out, the others of role known", names="variables", told=True),
    ] = ()
    bins: Annotated[
        Mapping[str, Binning],
        Param(
            'bins in which known numbers and dates agree, by variable: "width 5", "at 18, 65", "10 equal count" or '
            '"10 equal width" (both learned from the confidential data); without one they must be equal',
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
        """With the other variables of role known as known, when none is named."""
        return replace(
            self,
            known=self.known or tuple(name for name in schema.of_role(Role.QUASI_IDENTIFIER) if name != self.sensitive),
        )

    def check_release(self, schema: Schema, released: tuple[str, ...], place: str) -> None:
        """BadInput when nothing is known, what is inferred is known, or a variable needs bins or may have none."""
        known = self.for_release(schema, released).known
        if not known:
            raise BadInput(
                f"{place}.known", 'the intruder knows no variable; name some, or give them the role "quasi_identifier"'
            )
        if self.sensitive in known:
            raise BadInput(f"{place}.sensitive", f'"{self.sensitive}" is among the known variables')
        check_binning(self.bins, {n: schema[n].kind for n in known if schema[n].kind in BINNED}, f"{place}.bins")
        for name in known:
            if schema[name].kind is Kind.CONTINUOUS and name in released and name not in self.bins:
                raise BadInput(
                    f"{place}.bins",
                    f'"{name}" is continuous and synthesised, so that no value is met again: {name} = "10 equal count"',
                )
        if self.within is not None and schema[self.sensitive].kind.has_levels:
            raise BadInput(f"{place}.within", f'"{self.sensitive}" has levels, which are right or wrong')
        if self.within is not None and schema[self.sensitive].kind is Kind.DATE and self.within.kind != "absolute":
            raise BadInput(f"{place}.within", "a date has no share; give the radius in days, such as 5")


def check(data: Microdata, target: str, spec: InferenceAttackSpec, place: str) -> None:
    """BadInput where the confidential values do not suit a radius on the log scale."""
    if spec.within is not None:
        check_log_scale(data, {spec.sensitive: spec.within}, place)


ATTACK = "inference attack"
_GUESS = "an intruder infers who has the release and knows nothing of a person"


@method(
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
            questions=("inference",),
            evidence=ATTACK,
        ),
        Output(
            "mean_absolute_error",
            "distance of the number so inferred from the record's own, averaged over the records",
            "high",
            range=NON_NEGATIVE,
            questions=("inference",),
            evidence=ATTACK,
        ),
        Output(
            "guess_misclassification",
            f"share of the records that {_GUESS} wrongly",
            "none",
            "share",
            range=SHARE,
            evidence=ATTACK,
        ),
        Output(
            "guess_mean_absolute_error",
            f"distance from the number that {_GUESS}",
            "none",
            range=NON_NEGATIVE,
            evidence=ATTACK,
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
    remark = "; ".join(filter(None, (learned_words(spec.bins), target.remark)))
    estimates = []
    for measure, value in found.errors.items():
        unprotected = [sample.errors[measure] for sample in samples if measure in sample.errors]
        baseline = float(np.mean(unprotected)) if unprotected else None
        estimates.append(Estimate(measure, value, spec.sensitive, baseline=baseline, reason=remark))
        estimates.append(Estimate(f"guess_{measure}", guessed.errors[measure], spec.sensitive, reason=target.remark))
    anyway = {"guessed": guessed.per_record["right"]} if "right" in guessed.per_record else {}
    return Measure(tuple(estimates), {**found.per_record, **anyway})


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
        ours, theirs = as_categories(confidential, released, name, None)
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
