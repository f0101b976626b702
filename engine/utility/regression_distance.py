"""Distances of regression coefficients between the release and the confidential data (Park & Ghosh §4.3).

With b_c and b_s the coefficients that a regression has on the confidential and on the released data:

    relative deviation  (b_s - b_c) / b_c          of each coefficient, the intercept among them
    distance            sum |(b_s - b_c) / b_c|    over all of them

A deviation, and the distance of its model, are not computed where b_c is below ``near_zero`` of its standard errors, or
where a coefficient cannot be estimated on one of the tables. The baseline of a distance is what two samples of one
population give about their coefficients. Records that lack a value of one of the model's variables are left out, as
analysts' programs do; the rows say how many. Where units have several records the errors are those of units as
clusters.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

from ..data.block_sums import SummedTable
from ..data.intervals import NON_NEGATIVE
from ..data.microdata import Microdata
from ..data.schema import Schema
from ..design.estimation import EstimateOrReason, RegressionModel, check_model_domains, check_models, left_out_remark
from ..design.survey import sample_by_units, units_remark
from ..design.survey_estimation import SurveySample
from ..errors import BadInput, NotComputable
from ..methods.asked_passes import AskedPasses, Question, Questions
from ..methods.levers import FIDELITY
from ..methods.outputs import TWO_SAMPLES, Label, Output
from ..methods.registry import measure_method
from ..methods.results import Estimate, Measure
from ..methods.run import Run
from ..methods.spec import Param, Spec
from ..statistics.interval_estimate import IntervalEstimate


def _questions(head: Microdata, spec: RegressionDistanceSpec, sample: SurveySample | None = None) -> Questions:
    """Return what is asked of a table: the coefficients of each model, with the number of records that it leaves out."""
    return {
        model.written: Question(model.columns(head.schema), partial(_coefficients_and_remark, model, head, sample))
        for model in spec.models
    }


def _coefficients_and_remark(
    model: RegressionModel, head: Microdata, sample: SurveySample | None, table: SummedTable
) -> tuple[dict[str, EstimateOrReason], str]:
    remark = left_out_remark(model.columns(head.schema), table)
    return model.coefficients_of(head, table, sample=sample), remark


def _measure_of_answers(
    confidential: Microdata,
    released: Microdata,
    spec: RegressionDistanceSpec,
    ours: Mapping[Any, Any],
    theirs: Mapping[Any, Any],
) -> Measure:
    """Return the distance of each model, and the relative deviation of each of its coefficients."""
    clusters = units_remark(confidential, released)
    return Measure(
        tuple(
            estimate
            for model in spec.models
            for estimate in _model_estimates(
                model.written,
                model.response_column(confidential.schema, ""),
                spec.near_zero,
                {"confidential": ours[model.written], "released": theirs[model.written]},
                clusters,
            )
        )
    )


def _model_estimates(
    model: str,
    target: str,
    near_zero: float,
    fits: Mapping[str, tuple[dict[str, EstimateOrReason], str]],
    clusters: str,
) -> Iterator[Estimate]:
    """Yield the estimates of a model's distance and of the deviation of each coefficient.

    ``fits`` are the coefficients of each table and which records they leave out, ``clusters`` is what their errors are by.
    """
    own, other = (coefficients for coefficients, _ in fits.values())
    found = {term: _relative_deviation(term, own[term], other[term], near_zero) for term in own}
    remark = "; ".join(filter(None, (*(f"{table}: {one}" for table, (_, one) in fits.items() if one), clusters)))
    why = next((one.reason for one in found.values() if isinstance(one, NotComputable)), "")
    deviations = [one for one in found.values() if not isinstance(one, NotComputable)]
    yield Estimate(
        "distance",
        None if why else math.fsum(abs(value) for value, _ in deviations),
        target,
        baseline=None if why else math.fsum(expected for _, expected in deviations),
        reason=why or remark,
        params={"model": model},
    )
    for term, one in found.items():
        params = {"estimand": "relative deviation", "model": model, "term": term}
        if isinstance(one, NotComputable):
            yield Estimate.not_computed("relative_deviation", one.reason, target, **params)
        else:
            yield Estimate("relative_deviation", one[0], target, baseline=0.0, reason=remark, params=params)


def _relative_deviation(
    term: str, own: EstimateOrReason, theirs: EstimateOrReason, near_zero: float
) -> tuple[float, float] | NotComputable:
    """Return the relative deviation of a coefficient, (b_s - b_c) / b_c, and the expectation of its absolute value for two
    samples of one population; or the reason why it has none.
    """
    for words, answer in (("confidential", own), ("released", theirs)):
        if isinstance(answer, NotComputable):
            return NotComputable(f'"{term}" has no coefficient on the {words} data: {answer.reason}')
    assert isinstance(own, IntervalEstimate)
    assert isinstance(theirs, IntervalEstimate)
    # A share of a coefficient near 0 has no meaning. The paper, whose coefficients are far from 0, says nothing of it.
    if own.value == 0 or abs(own.value) < near_zero * own.standard_error:
        limit = f"less than {near_zero:g} of its standard error" if near_zero else "0"
        return NotComputable(f'the confidential coefficient of "{term}" is {limit}: too near 0 to be divided by')
    value = (theirs.value - own.value) / own.value
    error = math.hypot(own.standard_error / own.value, theirs.standard_error / own.value)
    if not math.isfinite(value + error):
        return NotComputable(f'the coefficients of "{term}" are too far apart for a number to say by how much')
    # The mean size of a normal deviate is sqrt(2 / pi) of its standard deviation.
    return value, math.sqrt(2 / math.pi) * error


@dataclass(frozen=True, kw_only=True, slots=True)
class RegressionDistanceSpec(Spec):
    """Regressions that are compared, and which coefficients count as 0."""

    models: Annotated[
        tuple[RegressionModel, ...],
        Param(
            'regressions whose coefficients are compared: "log(price) ~ room_type + days", "logit: charge > 25000 ~ age"',
            filters_rows=True,
            unique=True,
        ),
    ]
    near_zero: Annotated[
        float,
        Param("confidential coefficients nearer to 0 than this many standard errors are not divided by", ge=0),
    ] = 0.1

    def check(self, schema: Schema, place: str) -> None:
        """Raise BadInput where there is no model, or a column of one does not exist or is of a wrong kind."""
        Spec.check(self, schema, place)
        if not self.models:
            raise BadInput(f"{place}.models", 'name a regression, such as "price ~ age"')
        check_models(self.models, schema, f"{place}.models")


DISTANCE_PASSES = AskedPasses[RegressionDistanceSpec](
    lambda spec, schema: schema.unit is None, _questions, sample_by_units, _measure_of_answers
)


@measure_method(
    "Distances of regression coefficients",
    spec=RegressionDistanceSpec,
    repeats_analysis=True,
    source="Park & Ghosh §4.3",
    outputs=(
        Output(
            "distance",
            "sum over the coefficients of a regression of their deviations from the confidential ones, each as a share of it",
            "low",
            range=NON_NEGATIVE,
            statbarn="CorrelationCoefficients",
            label=Label(
                "Deviation of regression coefficients",
                "The coefficients deviate by {value} in all, as shares of the confidential ones.",
                "Lower is better; 0 is the same regression.",
                "The regression of the release differs too much.",
                FIDELITY,
                baseline=TWO_SAMPLES,
            ),
        ),
        Output(
            "relative_deviation",
            "what a coefficient of the release exceeds the confidential one by, as a share of it; below 0 where it falls "
            "short, below -1 where its sign is the other",
            "none",
            drawn="interval",
            statbarn="CorrelationCoefficients",
            label=Label(
                "Deviation of one regression coefficient",
                "The coefficient exceeds the confidential one by {value}, as a share of it.",
                bad="not judged by itself: “Deviation of regression coefficients” and “Overlap of confidence intervals” have a yardstick",
            ),
        ),
    ),
    check=check_model_domains,
    measure_passes=DISTANCE_PASSES,
)
def regression_distance(
    confidential: Microdata, released: Microdata, spec: RegressionDistanceSpec, run: Run
) -> Measure:
    """Measure the distance of each model, and the relative deviation of each of its coefficients."""
    return DISTANCE_PASSES.measure_tables(confidential, released, spec)
