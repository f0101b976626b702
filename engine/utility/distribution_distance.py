"""Squared distances between distributions, of each variable and given each level of others (Park & Ghosh §4.3).

With p_c(v) and p_s(v) the shares of the confidential and of the released records whose value is v:

    marginal             sum_v (p_s(v) - p_c(v))^2
    conditional given u  sum_w sum_v (p_s(v | u = w) - p_c(v | u = w))^2

over all values v, and all levels w of u, that occur in either table. As in the paper each level counts alike, however
few records have it. Numbers and dates are values by bins. A missing value is a value of its own, of the variable and of
u. The baseline is what two samples of one distribution give; it does not exist where a table lacks a level. With a
survey weight shares are of the population, each table's by its own weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, NamedTuple, Self

import numpy as np
import pandas as pd

from ..data.arrays import Floats, Integers
from ..data.intervals import NON_NEGATIVE
from ..data.microdata import Microdata
from ..data.schema import Kind, Schema, compared_variables
from ..design.binning import (
    BINNED,
    TEN_OF_EQUAL_COUNT,
    BinningRule,
    BinsOfCompared,
    check_binning_rules,
    comparable_categories,
    learned_bins_text,
)
from ..design.survey import SurveyDesign
from ..errors import BadInput, NotComputable
from ..methods.levers import FIDELITY
from ..methods.outputs import TWO_SAMPLES, Label, Output
from ..methods.registry import measure_method
from ..methods.results import Estimate, Measure
from ..methods.run import Run
from ..methods.spec import Param, Spec
from ..partition.equivalence_classes import joint_classes

LARGEST_DISTANCE = 2.0
"""The squared distance of two distributions that share no value and have one each."""
TableWeights = tuple[Floats, Floats]
"""The survey weights of both tables, (n,) and (m,)."""


class _TableCodes(NamedTuple):
    """A variable of both tables as common codes.

    ours: codes of the confidential records, (n,)
    theirs: codes of the released records, (m,)
    remark: remark on their bins
    """

    ours: Integers
    theirs: Integers
    remark: str


def _encode_variable(
    confidential: Microdata, released: Microdata, name: str, bins: Mapping[str, BinningRule]
) -> _TableCodes | NotComputable:
    """Return a variable of both tables as common codes, or why its values cannot be compared."""
    rule = bins.get(name, TEN_OF_EQUAL_COUNT) if confidential.schema[name].kind in BINNED else None
    try:
        ours, theirs = comparable_categories(confidential, released, name, rule)
    except NotComputable as error:
        return error
    remark = learned_bins_text({name: rule} if rule else {})
    return _TableCodes(*joint_classes([ours], [theirs]), remark)


def _distance_estimate(
    name: str,
    values: _TableCodes | NotComputable,
    weights: TableWeights | None,
    given: str = "",
    levels: _TableCodes | NotComputable | None = None,
) -> Estimate:
    """Return the estimate of the distance between the distributions of a variable, given the ``levels`` of another."""
    measure, params = ("conditional", {"condition": given}) if given else ("marginal", {})
    for of in (values, levels):
        if isinstance(of, NotComputable):
            return Estimate.not_computed(measure, of.reason, name, **params)
    assert isinstance(values, _TableCodes)
    at = (
        levels
        if isinstance(levels, _TableCodes)
        else _TableCodes(np.zeros_like(values.ours), np.zeros_like(values.theirs), "")
    )
    found = squared_distance(values.ours, values.theirs, at.ours, at.theirs, weights)
    lacking = f'{found.n_lacking:,} of {found.n_levels:,} levels of "{given}" are in one table alone: each counts 2'
    reason = "; ".join(filter(None, (values.remark, at.remark, lacking if found.n_lacking else "")))
    return Estimate(measure, found.value, name, baseline=found.expected, reason=reason, params=params)


@dataclass(frozen=True, slots=True)
class DistributionDistance:
    """Squared distance of two conditional distributions.

    value: the distance
    expected: what two samples of one distribution give; None where a level is lacking
    n_lacking: levels that only one table has
    n_levels: levels of both tables
    """

    value: float
    expected: float | None
    n_lacking: int
    n_levels: int


def squared_distance(
    ours: Integers,
    theirs: Integers,
    our_level: Integers,
    their_level: Integers,
    weights: TableWeights | None = None,
) -> DistributionDistance:
    """Compute the squared distance between distributions of values given levels.

    ours, theirs: codes of the values from 0, (n,) and (m,)
    our_level, their_level: codes of the levels from 0, (n,) and (m,)
    weights: survey weights of both tables; None without a weight
    """
    values = int(max(ours.max(initial=-1), theirs.max(initial=-1))) + 1
    pairs = np.concatenate([our_level * values + ours, their_level * values + theirs])
    cell, distinct = pd.factorize(pairs)
    level = distinct // values
    levels = int(level.max()) + 1
    own = (np.ones(len(ours)), np.ones(len(theirs))) if weights is None else weights
    tables = zip(np.split(cell, [len(ours)]), own, strict=True)
    cells = [np.bincount(part, w, len(distinct)).astype(np.float64) for part, w in tables]
    parts = tuple(zip((our_level, their_level), own, strict=True))
    sizes = [np.bincount(part, w, levels) for part, w in parts]
    squares = [np.bincount(part, w**2, levels) for part, w in parts]
    both = (sizes[0] > 0) & (sizes[1] > 0)
    kept = np.flatnonzero(both[level])
    (a, b), (p, q) = [count[kept] for count in cells], [size[level[kept]] for size in sizes]
    # Kish's effective sample size within each level.
    n, m = (size**2 / square[level[kept]] for size, square in zip((p, q), squares, strict=True))
    pooled = (a + b) / (p + q)
    # Given the pooled values, every split into n and m is equally likely (sampling without replacement).
    expected = pooled * (1 - pooled) * (1 / n + 1 / m) * (n + m) / (n + m - 1)
    lacking = int(np.sum((sizes[0] > 0) ^ (sizes[1] > 0)))
    # The paper does not say what a level counts that one table lacks. With the largest distance it is never better to
    # leave a level out than to have it. Sorted, the rounding of sums does not depend on the order of the records.
    total = float(np.sum(np.sort((b / q - a / p) ** 2))) + LARGEST_DISTANCE * lacking
    return DistributionDistance(
        total, None if lacking else float(np.sum(np.sort(expected))), lacking, lacking + int(both.sum())
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class DistributionDistanceSpec(Spec):
    """Variables to compare, those that their distributions are conditioned on, and bins."""

    variables: Annotated[
        tuple[str, ...], Param("variables to compare; the released ones if empty", names="variables", filters_rows=True)
    ] = ()
    given: Annotated[
        tuple[str, ...],
        Param(
            "variables given whose levels the distributions of the others are compared too",
            names="variables",
            filters_rows=True,
        ),
    ] = ()
    bins: BinsOfCompared = field(default_factory=dict)

    def for_release(self, schema: Schema, released: tuple[str, ...]) -> Self:
        """Return the parameters with the released variables where none is named."""
        return replace(self, variables=self.variables or compared_variables(schema, released, tuple(Kind)))

    def check_release(self, schema: Schema, released: tuple[str, ...], place: str) -> None:
        """Raise BadInput where there is nothing to compare, or bins are of a variable that is not compared."""
        names = self.for_release(schema, released).variables
        if not names:
            raise BadInput(place, "no released variable can be compared; name some")
        used = {name: schema[name].kind for name in (*names, *self.given) if schema[name].kind in BINNED}
        check_binning_rules(self.bins, used, f"{place}.bins")


@measure_method(
    "Distances of distributions",
    spec=DistributionDistanceSpec,
    source="Park & Ghosh §4.3",
    outputs=(
        Output(
            "marginal",
            "sum over the values of the squared differences of the shares that they have of both tables",
            "low",
            range=(0.0, LARGEST_DISTANCE),
            statbarn="StatisticalHypothesisTests",
            label=Label(
                "Distance between the two distributions",
                "The shares of the values of {variable} are {value} away from those of the data (0: equal, 2: nothing in common).",
                "Lower is better; 0 is the same distribution.",
                "The distribution of the variable differs too much.",
                FIDELITY,
                baseline=TWO_SAMPLES,
            ),
        ),
        Output(
            "conditional",
            "the same given each level of another variable, summed over its levels; a level that one table lacks counts 2",
            "low",
            range=NON_NEGATIVE,
            statbarn="StatisticalHypothesisTests",
            label=Label(
                "Distance between conditional distributions",
                "Among records alike in {condition}, the shares of {variable} are {value} away from those of the data (0: equal), summed over its values.",
                "Lower is better; 0 is the same distribution.",
                "The relation of the two variables differs too much.",
                FIDELITY,
                baseline=TWO_SAMPLES,
            ),
        ),
    ),
    survey_weighted=True,
)
def distribution_distance(
    confidential: Microdata, released: Microdata, spec: DistributionDistanceSpec, run: Run
) -> Measure:
    """Measure the marginal distance of each variable, and its conditional distance given each variable of ``given``."""
    spec = spec.for_release(confidential.schema, ())
    design = SurveyDesign.from_schema(confidential.schema)
    weights = None if design is None else (design.weights_of(confidential), design.weights_of(released))
    found = {name: _encode_variable(confidential, released, name, spec.bins) for name in {*spec.variables, *spec.given}}
    return Measure(
        (
            *(_distance_estimate(name, found[name], weights) for name in spec.variables),
            *(
                _distance_estimate(name, found[name], weights, given, found[given])
                for given in spec.given
                for name in spec.variables
                if name != given
            ),
        )
    )
