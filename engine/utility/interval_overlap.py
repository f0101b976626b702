"""Overlap of confidence intervals: whether an analyst of the release comes to the conclusions of the confidential data.

For a mean, a quantile or a regression coefficient, ``overlap`` I^l of the interval of released dataset l with that of
the confidential data (Karr et al. 2006; Guo & Hu §3.2, eq. 10), averaged over l. Beside it ``estimate``, with its
interval, and ``standard_error``; those of the m datasets together follow the combining rule for the way in which the
release came about (``sfumato.engine.statistics.combining``), so that the interval is about the population and not about
the simulation. Where no rule covers, the rows have no interval and say why.

Intervals of means and of combined quantiles stay between the bounds of the variable. Where values are missing, means
and quantiles are of the values present and regressions of the complete records, as in analysts' programs; the rows say
how many records are left out. With a survey weight estimates are of the population and standard errors those of the
design of each table. Without a survey weight, where units have several records, standard errors are those of the
units as clusters: records of a household are not independent.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, Literal, Self

import numpy as np

from ..data.arrays import Floats
from ..data.block_sums import SummedTable
from ..data.intervals import AT_MOST_ONE, NON_NEGATIVE, UNBOUNDED, Range
from ..data.microdata import Microdata
from ..data.schema import Kind, Schema, compared_variables, value_range
from ..design.estimation import (
    NO_VALUE,
    EstimateOrReason,
    RegressionModel,
    check_model_domains,
    check_models,
    left_out_remark,
    mean_of_variable,
    quantiles_of_variable,
)
from ..design.survey import SurveyDesign, sample_of_records, units_remark
from ..design.survey_estimation import SurveySample, survey_mean, survey_quantile
from ..errors import BadInput, NotComputable
from ..execution.combining import BOUNDS, DEGREES, by_combining_rules, stated_bounds
from ..methods.asked_passes import AskedPasses, Question
from ..methods.drafting import Case, Offer, drafts
from ..methods.levers import FIDELITY
from ..methods.outputs import Label, Output
from ..methods.registry import measure_method
from ..methods.results import Estimate, Measure
from ..methods.run import Run
from ..methods.spec import Param, Spec
from ..statistics.interval_estimate import IntervalEstimate

NUMERIC = (Kind.COUNT, Kind.CONTINUOUS)
AVERAGED = (*NUMERIC, Kind.BINARY)


@dataclass(frozen=True, slots=True)
class OverlapEstimand:
    """A quantity that is estimated on both tables.

    target: the variable that it is about
    params: what distinguishes it from others of that variable
    columns: variables that it reads
    range: range of its values
    """

    target: str
    params: tuple[tuple[str, Any], ...]
    columns: tuple[str, ...]
    range: Range = UNBOUNDED


def _questions(head: Microdata, spec: IntervalOverlapSpec, sample: SurveySample | None) -> dict[Hashable, Question]:
    """Return what is asked of a table, given the confidential one without its records: estimates by what they are of, and
    by columns how many records lack a value of one.

    With the ``sample`` of a table in memory its estimates are of the population.
    """
    spec, schema, found = spec.for_release(head.schema, ()), head.schema, dict[Hashable, Question]()
    for name in spec.means:
        within = value_range(schema[name])
        found["mean", name] = Question((name,), partial(_estimate_mean, name, sample, spec.confidence, within))
    for name in spec.quantiles:
        found["quantiles", name] = Question((name,), partial(_estimate_quantiles, name, sample, spec))
    for model in spec.models:
        estimate = partial(model.coefficients_of, head, confidence=spec.confidence, sample=sample)
        found["model", model.written] = Question(model.columns(schema), estimate)
    for columns in [asked.columns for asked in found.values()]:
        found[columns] = Question(columns, partial(left_out_remark, columns))
    return found


def _estimates_of_answers(
    head: Microdata, spec: IntervalOverlapSpec, answers: Mapping[Any, Any]
) -> dict[OverlapEstimand, EstimateOrReason]:
    """Return the estimate of every estimand, or the reason why it cannot be estimated."""
    schema, found = head.schema, dict[OverlapEstimand, EstimateOrReason]()
    for name in spec.means:
        found[OverlapEstimand(name, (("estimand", "mean"),), (name,), value_range(schema[name]))] = answers[
            "mean", name
        ]
    for name in spec.quantiles:
        own = answers["quantiles", name]
        for i, p in enumerate(spec.probabilities):
            estimand = OverlapEstimand(name, (("estimand", "quantile"), ("q", p)), (name,), value_range(schema[name]))
            found[estimand] = own if isinstance(own, NotComputable) else own[i]
    for model in spec.models:
        target = model.response_column(schema, "")
        for term, answer in answers["model", model.written].items():
            params = (("estimand", "coefficient"), ("model", model.written), ("term", term))
            found[OverlapEstimand(target, params, model.columns(schema))] = answer
    return found


def _estimate_mean(
    name: str, sample: SurveySample | None, confidence: float, within: Range, table: SummedTable
) -> IntervalEstimate:
    """Estimate the mean of a variable, of the population where there is a survey sample."""
    if sample is None:
        return mean_of_variable(name, table, confidence, within)
    return survey_mean(_required_numbers(table.head, name), sample, confidence, within)


def _estimate_quantiles(
    name: str, sample: SurveySample | None, spec: IntervalOverlapSpec, table: SummedTable
) -> Sequence[EstimateOrReason]:
    """Estimate quantiles of a variable, of the population where there is a survey sample."""
    if sample is None:
        return quantiles_of_variable(name, spec.probabilities, table, spec.confidence)
    values = _required_numbers(table.head, name)
    return [_quantile_or_reason(values, sample, p, spec.confidence) for p in spec.probabilities]


def _quantile_or_reason(values: Floats, sample: SurveySample, p: float, confidence: float) -> EstimateOrReason:
    try:
        return survey_quantile(values, sample, p, confidence)
    except NotComputable as error:
        return error


def _required_numbers(data: Microdata, name: str) -> Floats:
    """Return the values of a variable, NaN where missing. Raises NotComputable where all are."""
    values = data.numbers(name)
    if np.isnan(values).all():
        raise NotComputable(NO_VALUE)
    return values


def _estimate_rows(
    estimand: OverlapEstimand, answer: EstimateOrReason, own: EstimateOrReason | None = None, remark: str = ""
) -> tuple[Estimate, ...]:
    """Return the rows of an estimate and its standard error, with those of the confidential data as baselines."""
    target, params = estimand.target, dict(estimand.params)
    if isinstance(answer, NotComputable):
        names = ("estimate", "standard_error")
        return tuple(Estimate.not_computed(name, answer.reason, target, **params) for name in names)
    baseline, error = (own.value, own.standard_error) if isinstance(own, IntervalEstimate) else (None, None)
    return (
        Estimate("estimate", answer.value, target, answer.lower, answer.upper, baseline, reason=remark, params=params),
        Estimate("standard_error", answer.standard_error, target, baseline=error, reason=remark, params=params),
    )


def _overlap_row(estimand: OverlapEstimand, answer: EstimateOrReason, own: EstimateOrReason) -> Estimate:
    """Return the row of the overlap of the released and the confidential interval."""
    target, params = estimand.target, dict(estimand.params)
    try:
        value = mean_overlap(_required_interval(own), _required_interval(answer))
    except NotComputable as error:
        return Estimate.not_computed("overlap", error.reason, target, **params)
    return Estimate("overlap", value, target, baseline=1.0, params=params)


def _required_interval(answer: EstimateOrReason) -> tuple[float, float]:
    """Return the interval of an estimate; raise the reason where there is none."""
    if isinstance(answer, NotComputable):
        raise answer
    return answer.interval


def mean_overlap(confidential: tuple[float, float], released: tuple[float, float]) -> float:
    """Return the overlap of two intervals (lower, upper): the mean of the shares that their intersection has of each.

    I = (U_i - L_i) / (2 (U_c - L_c)) + (U_i - L_i) / (2 (U_s - L_s)) with U_i the smaller upper and L_i the larger
    lower end: 1 for equal intervals, negative for disjoint ones, the more the further apart. Raises NotComputable when
    an interval has no width.
    """
    for words, (lower, upper) in (("confidential", confidential), ("released", released)):
        if upper <= lower:
            raise NotComputable(f"the interval of the {words} data has no width, so it has no share in common")
    common = min(confidential[1], released[1]) - max(confidential[0], released[0])
    return common / (2 * (confidential[1] - confidential[0])) + common / (2 * (released[1] - released[0]))


@dataclass(frozen=True, kw_only=True, slots=True)
class IntervalOverlapSpec(Spec):
    """Quantities that are estimated."""

    synthesis: Annotated[
        Literal["partial", "full"] | None,
        Param(
            "whether some variables are synthesised or all of them, as rows report it; left out, by the variables. "
            "The combining rule follows from how the release was made",
            reported=True,
        ),
    ] = None
    confidence: Annotated[float, Param("confidence level of the intervals", ge=0.5, lt=1, reported=True)] = 0.95
    means: Annotated[
        tuple[str, ...],
        Param(
            "variables whose mean is estimated; of a binary one the share of its second level",
            names="variables",
            kinds=AVERAGED,
            filters_rows=True,
        ),
    ] = ()
    quantiles: Annotated[
        tuple[str, ...],
        Param("variables whose quantiles are estimated", names="variables", kinds=NUMERIC, filters_rows=True),
    ] = ()
    probabilities: Annotated[tuple[float, ...], Param("which quantiles", ge=0, le=1, filters_rows=True)] = (
        0.25,
        0.5,
        0.9,
    )
    models: Annotated[
        tuple[RegressionModel, ...],
        Param(
            'regressions whose coefficients are estimated: "log(price) ~ room_type + days", "logit: smoker ~ age", '
            '"logit: price > 100 ~ age"',
            filters_rows=True,
            unique=True,
        ),
    ] = ()

    def check(self, schema: Schema, place: str) -> None:
        """Raise BadInput for a column that does not exist or is of a wrong kind."""
        Spec.check(self, schema, place)
        check_models(self.models, schema, f"{place}.models")

    def check_release(self, schema: Schema, released: tuple[str, ...], place: str) -> None:
        """Raise BadInput where nothing is named and no released variable is a number."""
        spec = self.for_release(schema, released)
        if not (spec.means or spec.quantiles or spec.models):
            raise BadInput(place, "no released variable is count or continuous; name means, quantiles or models")

    def for_release(self, schema: Schema, released: tuple[str, ...]) -> Self:
        """Return the parameters with means and quantiles of the released numbers where nothing is named."""
        kept = [name for name in schema.non_identifiers if name not in released and schema[name].design is None]
        spec = self if self.synthesis else replace(self, synthesis="partial" if kept else "full")
        if self.means or self.quantiles or self.models:
            return spec
        names = compared_variables(schema, released, NUMERIC)
        return replace(spec, means=names, quantiles=names)


def _draft_offer(case: Case) -> Offer | None:
    """Offer the measure for a synthesis of two or more datasets with numbers."""
    numbers = [name for name in case.released if case.table[name].variable.kind in NUMERIC]
    if case.want == "anonymisation" or not numbers or case.m < 2:
        return None
    # No variable is named, since a plan may come to release others, and no rule, since it follows from the steps.
    return Offer("whether means and quantiles come out as from the data, all datasets together")


def _has_plain_records(spec: IntervalOverlapSpec, schema: Schema) -> bool:
    """Return whether records are independent: there is no survey design, and every record is a unit."""
    return SurveyDesign.from_schema(schema) is None and schema.unit is None


def _measure_of_answers(
    confidential: Microdata,
    released: Microdata,
    spec: IntervalOverlapSpec,
    ours: Mapping[Any, Any],
    theirs: Mapping[Any, Any],
) -> Measure:
    """Return overlap, estimate and standard error of each estimand; for the confidential data no overlap."""
    spec = spec.for_release(confidential.schema, ())
    own = _estimates_of_answers(confidential, spec, ours)
    is_confidential = released.origin == "confidential"
    has_degrees = SurveyDesign.from_schema(confidential.schema) is not None or confidential.units is not None
    estimates: list[Estimate] = []
    for estimand, answer in _estimates_of_answers(confidential, spec, theirs).items():
        remark = "; ".join(filter(None, (theirs[estimand.columns], units_remark(confidential, released))))
        estimates += _estimate_rows(estimand, answer, None if is_confidential else own[estimand], remark)
        if is_confidential:
            continue
        estimates.append(_overlap_row(estimand, answer, own[estimand]))
        if isinstance(answer, IntervalEstimate):
            estimates += stated_bounds(estimand.range, estimand.target, dict(estimand.params))
            if has_degrees:
                estimates.append(
                    Estimate(DEGREES.name, answer.degrees_of_freedom, estimand.target, params=dict(estimand.params))
                )
    return Measure(tuple(estimates))


OVERLAP_PASSES = AskedPasses[IntervalOverlapSpec](
    _has_plain_records, _questions, sample_of_records, _measure_of_answers
)


LITTLE_OVERLAP = "below about 29 %: two samples as large as the data overlap by 71 % on average, and by less than 29 % in 1 of 20 cases"
"""Which overlap is bad: of two intervals of a width of 2 * 1.96 errors whose estimates differ by 1.96 sqrt(2) of these."""


@measure_method(
    "Confidence interval overlap",
    spec=IntervalOverlapSpec,
    repeats_analysis=True,
    source="Karr et al. (2006); Guo & Hu §3.2, eq. 10; Reiter (2003); Raab, Nowok & Dibben (2017); Hutson & Ernst (2000)",
    outputs=(
        Output(
            "overlap",
            "mean of the shares that the common part has of the confidential and of the released confidence interval: "
            "1 when they are equal, negative when they are apart",
            "high",
            range=AT_MOST_ONE,
            short="interval overlap",
            drawn="note",
            statbarn="StatisticalHypothesisTests",
            label=Label(
                "Overlap of confidence intervals",
                "The confidence intervals of an estimate, from the release and from the data, overlap by {value}.",
                "Higher is better; 100 % are equal intervals, below 0 they are apart.",
                "The release leads to other conclusions than the data.",
                FIDELITY,
                counts="share",
                baseline="equal intervals",
                bad=LITTLE_OVERLAP,
            ),
        ),
        Output(
            "estimate",
            "estimate with its confidence interval, of all datasets by the combining rule for how they were made",
            "none",
            drawn="interval",
            label=Label("Estimate", "Who analyses the release estimates {value}."),
        ),
        Output(
            "standard_error",
            "standard error of the estimate, of all datasets by the combining rule",
            "none",
            range=NON_NEGATIVE,
            statbarn="Shape",
            label=Label(
                "Standard error of an estimate",
                "Who analyses the release gets a standard error of {value} for the estimate.",
                bad="not judged by itself: “Overlap of confidence intervals” judges it and the estimate together",
            ),
        ),
        *BOUNDS,
        # No longer computed: rows of it are in runs that an earlier version began.
        Output(
            "size_ratio",
            "released records for each confidential one",
            "none",
            intermediate=True,
            range=NON_NEGATIVE,
        ),
        DEGREES,
    ),
    confidential=True,
    survey_weighted=True,
    check=check_model_domains,
    combine=by_combining_rules,
    measure_passes=OVERLAP_PASSES,
)
@drafts(_draft_offer)
def interval_overlap(confidential: Microdata, released: Microdata, spec: IntervalOverlapSpec, run: Run) -> Measure:
    """Measure overlap, estimate and standard error of each estimand; for the confidential data no overlap."""
    return OVERLAP_PASSES.measure_tables(confidential, released, spec)
