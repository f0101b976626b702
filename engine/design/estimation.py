"""Estimates with standard error and confidence interval, as an analyst of one dataset computes them: means, quantiles,
regressions.

    model     := [("linear" | "logit") ":"] response "~" term ("+" term)*
    response  := column | function "(" column ")" | condition
    condition := column (">" | ">=" | "<" | "<=") number

``term`` and ``function`` are those of ``sfumato.engine.data.terms``; a condition on a number is a response of
``logit``, which is 1 where it holds. Nothing is ever evaluated.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np

from ..data.arrays import Booleans, Floats
from ..data.block_sums import BlockWork, Summands, SummedTable, keep_parts
from ..data.intervals import UNBOUNDED, Range, bounded_interval
from ..data.microdata import Microdata
from ..data.schema import Kind, Schema
from ..data.terms import PredictorTerm, TermFactor, check_domain, count_outside, parse_term, require_domain
from ..errors import BadInput, NotComputable
from ..statistics.bootstrap_quantiles import bootstrap_quantile, needed_ranks
from ..statistics.columns import column_scales, independent_columns, missing_values_text, qr_factors
from ..statistics.combining import t_quantile
from ..statistics.interval_estimate import RESIDUAL_ROUNDING, IntervalEstimate, t_interval
from ..statistics.number_facts import NumberFacts
from ..statistics.ordered_blocks import (
    bounds_of_rank,
    cut_values,
    quantile_of_neighbours,
    rank_of_quantile,
    values_at_ranks,
    values_between,
)
from ..wording import count_noun
from .design_matrix import Design
from .design_triangle import design_triangle
from .logistic import BlockedLogistic, LogisticFit, logistic_regression
from .regression_rows import stack_triangles
from .sparse_design import AskedDesign, independent_basis, make_sparse_design
from .survey_estimation import SurveySample, survey_linear_coefficients, survey_logistic_coefficients

NO_VALUE = "no record has a value"
RESAMPLES_ALIKE = "resamples of one record are all the same, so its quantile has no interval"
ALL_LACK_VALUES = "every record lacks a value of one of the variables"
_NEARLY_COLLINEAR = 1e-12
"""Of a column's length, what is left of one that ``independent_columns`` took for independent, however rounding goes."""
EstimateOrReason = IntervalEstimate | NotComputable
"""An estimate, or why it cannot be computed."""
_WRITTEN = re.compile(r"\s*(?:(linear|logit)\s*:)?([^~]+)~([^~]+)")
_CONDITION = re.compile(
    r"(?P<column>.+?)\s*(?P<sign>[<>]=?)\s*(?P<limit>[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
)
_SIGNS = {">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le}
_SURVEY_FITS = {"linear": survey_linear_coefficients, "logit": survey_logistic_coefficients}
_NUMBERS = (Kind.COUNT, Kind.CONTINUOUS)
_RESPONSES = {"linear": _NUMBERS, "logit": (Kind.BINARY,)}


def mean_of_variable(
    name: str, table: SummedTable, confidence: float = 0.95, within: Range = UNBOUNDED
) -> IntervalEstimate:
    """Return the mean of a variable's values with its t interval inside their range.

    Raises NotComputable where there are fewer than two values.
    """
    (parts,) = table.ask_sums(partial(_facts_of_block, name), keep_parts)
    facts = NumberFacts.from_blocks(parts)
    if not facts.present:
        raise NotComputable(NO_VALUE)
    if facts.present < 2:
        raise NotComputable("one record has no standard deviation, so its mean has no interval")
    error = 0.0
    if facts.high > facts.low:
        # Scaled, so that squares of huge or tiny values neither overflow nor vanish.
        deviation = math.sqrt(facts.squares / (facts.present - 1))
        error = deviation / math.sqrt(facts.present) * facts.scale
    half = t_quantile(facts.present - 1, confidence) * error
    return IntervalEstimate(facts.mean, error, *bounded_interval(facts.mean, half, within))


def _facts_of_block(name: str, data: Microdata) -> Summands:
    return (NumberFacts.from_values(data.numbers(name)).as_array,)


def quantiles_of_variable(
    name: str, probabilities: Sequence[float], table: SummedTable, confidence: float = 0.95
) -> list[IntervalEstimate]:
    """Return interpolated quantiles of a variable's values, with the percentile interval and standard error of infinitely
    many resamples.

    Raises NotComputable where there are fewer than two values.
    """
    counts, largest, cuts = table.ask_sums(partial(_cuts_of_block, name), keep_parts)
    records = int(sum(counts))
    if records < 2:
        raise NotComputable(RESAMPLES_ALIKE if records else NO_VALUE)
    ranks = [needed_ranks(records, p) for p in probabilities]
    between = []
    for own in ranks:
        low, high = (bounds_of_rank(cuts, counts, int(rank) - 1) for rank in (own[0], own[-1]))
        between.append((low[0], high[1]))
    found = table.ask_sums(partial(_values_between, name, between), keep_parts)
    scale = float(column_scales(np.array(largest)))
    return [
        _quantile_of_ordered(values_at_ranks(near, own - 1), p, confidence, scale, records, int(own[0]))
        for p, own, near in zip(probabilities, ranks, found, strict=True)
    ]


def _cuts_of_block(name: str, data: Microdata) -> Summands:
    """Return the number of values of a block, the largest in size, and cuts of them."""
    values = data.present_numbers(name)
    return len(values), np.abs(values).max(initial=0.0), cut_values(values)


def _values_between(name: str, between: Sequence[tuple[float, float]], data: Microdata) -> Summands:
    return tuple(values_between(data.present_numbers(name), between))


def _quantile_of_ordered(
    ordered: Floats, p: float, confidence: float, scale: float, records: int, first: int = 1
) -> IntervalEstimate:
    """Return the p-quantile of ``records`` values, of which ``ordered`` are those from rank ``first``, from 1."""
    scaled = ordered / scale
    found = bootstrap_quantile(scaled, p, records, first)
    lower, upper = found.interval(confidence)
    place = rank_of_quantile(records, p) + 1 - first
    lower_value, upper_value = (float(scaled[min(at, len(scaled) - 1)]) for at in (place, place + 1))
    value = quantile_of_neighbours(lower_value, upper_value, records, p)
    return IntervalEstimate(value * scale, found.sd * scale, lower * scale, upper * scale)


def linear_coefficients(
    x: Floats, y: Floats, confidence: float = 0.95, records: int | None = None
) -> list[IntervalEstimate]:
    """Fit least squares of y (n,) on the independent columns of x (n, K), and return K coefficients with t intervals on
    n - K df.

    For ``records`` > n, [x y] may be the triangle R of their QR decomposition, which contains all that these estimates
    need. Raises NotComputable where there are no more records than coefficients, or x determines y.
    """
    n, k = len(x) if records is None else records, x.shape[1]
    if n <= k:
        raise NotComputable(f"{count_noun(n, 'record')} cannot determine {k} coefficients and a standard deviation")
    factors, scale = qr_factors(x), float(column_scales(y))
    scaled = y / scale
    on_q = factors.q.T @ scaled
    rest = float(np.linalg.norm(scaled - factors.q @ on_q))
    if rest <= RESIDUAL_ROUNDING * np.linalg.norm(scaled):
        raise NotComputable("the response is a linear function of the predictors, without error")
    values = factors.coefficients_from_q(on_q) * scale
    errors = factors.standard_errors(np.eye(k)) * (rest / np.sqrt(n - k) * scale)
    return [t_interval(float(b), float(e), n - k, confidence) for b, e in zip(values, errors, strict=True)]


def logistic_coefficients(x: Floats, y: Floats, confidence: float = 0.95) -> list[IntervalEstimate]:
    """Fit a logistic regression of y (n,), 0 or 1, on the independent columns of x (n, K), and return K coefficients
    with normal intervals.

    Raises NotComputable where a combination of the predictors separates the classes.
    """
    return _with_intervals(logistic_regression(x, y), confidence)


def _with_intervals(fit: LogisticFit, confidence: float) -> list[IntervalEstimate]:
    """Return a fit's coefficients with normal intervals. Raises NotComputable where the classes are separated."""
    if fit.separated:
        raise NotComputable("a combination of the predictors separates the two levels of the response")
    found = zip(fit.coefficients, fit.errors, strict=True)
    return [t_interval(float(b), float(e), np.inf, confidence) for b, e in found]


_FITS = {"linear": linear_coefficients, "logit": logistic_coefficients}


@dataclass(frozen=True, slots=True)
class RegressionModel:
    """Linear or logistic regression of a response on predictor terms, each as the recipe writes it."""

    response: str
    terms: tuple[str, ...]
    family: Literal["linear", "logit"] = "linear"

    @classmethod
    def parse(cls, value: object) -> RegressionModel:
        """Parse a model as a recipe writes it, such as ``log(price) ~ room_type + days`` or ``logit: smoker ~ age``.

        Raises ValueError where the text has another form.
        """
        if isinstance(value, RegressionModel):
            return value
        found = _WRITTEN.fullmatch(value) if isinstance(value, str) else None
        if found is None:
            raise ValueError(
                f'{value!r} is not a model: write "log(price) ~ room_type + days" or "logit: smoker ~ age"'
            )
        response, terms = found[2].strip(), tuple(term.strip() for term in found[3].split("+"))
        if not response or not all(terms):
            raise ValueError(f"{value!r} lacks a response or a term beside ~ or +")
        if twice := [term for position, term in enumerate(terms) if term in terms[:position]]:
            raise ValueError(f'{value!r} has the term "{twice[0]}" twice')
        return cls(response, terms, "logit" if found[1] == "logit" else "linear")

    @property
    def written(self) -> str:
        """Return the form that a recipe carries: ``RegressionModel.parse(model.written) == model``."""
        return ("logit: " if self.family == "logit" else "") + f"{self.response} ~ {' + '.join(self.terms)}"

    def response_column(self, schema: Schema, place: str) -> str:
        """Return the column that the response is, or is a function of. Raises BadInput."""
        return self._response_term(schema, place).columns[0]

    def columns(self, schema: Schema) -> tuple[str, ...]:
        """Return the columns that the regression reads, each once."""
        terms = (self._response_term(schema, ""), *self._predictor_terms(schema, ""))
        return tuple(dict.fromkeys(name for term in terms for name in term.columns))

    def check_schema(self, schema: Schema, place: str) -> None:
        """Raise BadInput where a column does not exist, or has a kind that the regression cannot use."""
        condition = self._match_condition(schema)
        column, allowed = self.response_column(schema, place), _NUMBERS if condition else _RESPONSES[self.family]
        if condition and self.family == "linear":
            raise BadInput(place, f'the response "{self.response}" holds or not; write "logit: {self.written}"')
        if (kind := schema[column].kind) not in allowed:
            other = f'; write "logit: {self.written}"' if kind is Kind.BINARY and not condition else ""
            raise BadInput(place, f'the response "{column}" is {kind}; this needs {" or ".join(allowed)}{other}')
        for term in self._predictor_terms(schema, place):
            if column in term.columns:
                raise BadInput(place, f'"{column}" is the response; leave it out of the terms')

    def check_domains(self, data: Microdata, place: str) -> None:
        """Raise BadInput where a function of a column is undefined for some of its values."""
        for term in (self._response_term(data.schema, place), *self._predictor_terms(data.schema, place)):
            for factor in term.factors:
                check_domain(factor, data.numbers(factor.column), place)

    def coefficients_of(
        self, confidential: Microdata, table: SummedTable, confidence: float = 0.95, sample: SurveySample | None = None
    ) -> dict[str, EstimateOrReason]:
        """Estimate the coefficients on a table, by name.

        The confidential data fix the levels, the first of which is the reference. Aliased columns have no estimate.
        Records that lack a value of one of the columns are left out. With ``sample``, the survey design of a table in
        memory, the coefficients are those of the population.
        """
        design = Design.from_terms(self._predictor_terms(confidential.schema, ""), confidential)
        try:
            if sample is None:
                kept, estimates = self._fit_coefficients(design, table, confidence)
            else:
                x, y, whole = self._complete_rows(design, table.head)
                kept = independent_columns(x)
                estimates = _SURVEY_FITS[self.family](x[:, kept], y, sample, whole, confidence)
        except NotComputable as error:
            return dict.fromkeys(design.names, error)
        except BadInput as error:
            return dict.fromkeys(design.names, NotComputable(error.message))
        found = iter(estimates)
        aliased = NotComputable("aliased: the terms before it determine it here, or no record has the level")
        every = (next(found) if independent else aliased for independent in kept)
        return dict(zip(design.names, every, strict=True))

    def _fit_coefficients(
        self, design: Design, table: SummedTable, confidence: float
    ) -> tuple[Booleans, list[IntervalEstimate]]:
        """Return which columns are independent, and their coefficients."""
        self._require_two_levels(table.head.schema)
        facts = table.ask_sums(partial(self._regression_facts, design, table.n_blocks == 1), _join_regression_facts)
        whole, outside, triangle, x, y = facts
        if not whole:
            raise NotComputable(ALL_LACK_VALUES)
        for factor, count in zip(self._factors(design.schema), outside.tolist(), strict=True):
            require_domain(factor, count)
        if len(x):
            kept = independent_columns(x)
            return kept, _FITS[self.family](x[:, kept], y, confidence)
        kept = independent_columns(triangle[:, :-1])
        if self.family == "linear":
            return kept, linear_coefficients(triangle[:, :-1][:, kept], triangle[:, -1], confidence, int(whole))
        asked = AskedDesign(len(design.names), table, partial(_work_on_complete, self, design))
        basis = independent_basis(asked, among=kept, tolerance=_NEARLY_COLLINEAR)
        if len(basis) < kept.sum():
            raise NotComputable("columns of the predictors are too nearly collinear")
        every = _with_intervals(BlockedLogistic(basis, np.empty(0)).fit(), confidence)
        return kept, [one for one, is_kept in zip(every, kept, strict=True) if is_kept]

    def _factors(self, schema: Schema) -> list[TermFactor]:
        """Return the factors of the predictors, and the response."""
        terms = (*self._predictor_terms(schema, ""), self._response_term(schema, ""))
        return [factor for term in terms for factor in term.factors]

    def _regression_facts(self, design: Design, alone: bool, data: Microdata) -> Summands:
        """Return the complete records of a block and the values outside the domain of each factor; and R of the design
        and the response, or both themselves where the block is ``alone`` and small.
        """
        outside = np.array(
            [count_outside(one, data.numbers(one.column)) for one in self._factors(design.schema)], dtype=np.int64
        )
        none = np.empty((0, len(design.names) + 1))
        own = self._complete_records(design.schema, data)
        if not len(own) or outside.any():
            return len(own), outside, none, none[:, 1:], none[:, 0]
        if alone and design.fits_in_one_block(data, 1):
            return len(own), outside, none, *self._complete_rows(design, data)[:2]
        return len(own), outside, design_triangle(design, own, self._response_values), none[:, 1:], none[:, 0]

    def _complete_rows(self, design: Design, data: Microdata) -> tuple[Floats, Floats, Booleans]:
        """Return design and response of the complete records, and which they are, (n,). Raises NotComputable."""
        whole = self._is_complete(design.schema, data)
        if not whole.any():
            raise NotComputable(ALL_LACK_VALUES)
        return design.build_matrix(data)[whole], self._response_values(data)[whole], whole

    def _complete_records(self, schema: Schema, data: Microdata) -> Microdata:
        """Return the records that lack no value of the regression's columns, without weights."""
        whole = self._is_complete(schema, data)
        return replace(data, frame=data.frame if whole.all() else data.frame[whole], weights=None)

    def _is_complete(self, schema: Schema, data: Microdata) -> Booleans:
        return np.asarray(~np.any([data.missing_mask(name) for name in self.columns(schema)], axis=0))

    def _response_values(self, data: Microdata) -> Floats:
        """Return the response (n,)."""
        response = self._response_term(data.schema, "")
        if condition := self._match_condition(data.schema):
            holds = _SIGNS[condition["sign"]](data.numbers(response.columns[0]), float(condition["limit"]))
            return np.asarray(holds, dtype=np.float64)
        if self.family == "logit":
            self._require_two_levels(data.schema)
            return data.numbers(response.columns[0])
        return Design.from_terms([response], data).build_matrix(data)[:, 1]

    def _require_two_levels(self, schema: Schema) -> None:
        """Raise NotComputable where a binary response is released as numbers."""
        is_number = schema[self.response_column(schema, "")].kind is not Kind.BINARY
        if self.family == "logit" and is_number and not self._match_condition(schema):
            raise NotComputable(f'"{self.response}" is released as class means, which are not among its two levels')

    def _match_condition(self, schema: Schema) -> re.Match[str] | None:
        """Return the parts of a response that is a condition; None for any other."""
        # A column may have any name, even one that reads like a condition.
        return None if self.response in schema else _CONDITION.fullmatch(self.response)

    def _response_term(self, schema: Schema, place: str) -> PredictorTerm:
        """Return the column or function of a column that the response reads. Raises BadInput."""
        if condition := self._match_condition(schema):
            schema.require_variable(condition["column"], place)
            return PredictorTerm((TermFactor(condition["column"]),))
        response = parse_term(self.response, schema, place)
        if len(response.factors) > 1:
            raise BadInput(place, f'the response "{self.response}" must be a column, or a function of one')
        return response

    def _predictor_terms(self, schema: Schema, place: str) -> list[PredictorTerm]:
        return [parse_term(text, schema, place) for text in self.terms]


def check_model_domains(data: Microdata, target: str, spec: Any, place: str) -> None:
    """Raise BadInput where a model of a step takes a function of a column outside its domain, such as the logarithm of 0."""
    for i, model in enumerate(spec.models):
        model.check_domains(data, f"{place}.models[{i}]")


def check_models(models: Sequence[RegressionModel], schema: Schema, place: str) -> None:
    """Raise BadInput at ``place[i]`` where a column of model i does not exist or has a wrong kind."""
    for i, model in enumerate(models):
        model.check_schema(schema, f"{place}[{i}]")


def _join_regression_facts(parts: Sequence[Summands]) -> Summands:
    """Join what ``_regression_facts`` returns of blocks."""
    whole, outside, triangles, x, y = zip(*parts, strict=True)
    some = [one for one in triangles if len(one)]
    triangle = triangles[0] if len(some) == 0 else some[0] if len(parts) == 1 else stack_triangles(some)
    return sum(whole), sum(outside), triangle, x[0], y[0]


def _work_on_complete(model: RegressionModel, design: Design, work: BlockWork, data: Microdata) -> Summands:
    """Return what a work computes from the entries of the complete records of a block."""
    own = model._complete_records(design.schema, data)
    return make_sparse_design(design, own).sum_blocks(work, model._response_values(own))


def left_out_remark(columns: Sequence[str], table: SummedTable) -> str:
    """Return the number of records that lack one of the columns, in words; empty where none does."""
    return missing_values_text(*table.ask_sums(partial(_count_missing, columns)))


def _count_missing(columns: Sequence[str], data: Microdata) -> Summands:
    return int(np.any([data.missing_mask(name) for name in columns], axis=0).sum()), len(data)
