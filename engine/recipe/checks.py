"""What recipe and methods ask of the confidential data, verified before anything is computed or stored.

Each check raises BadInput at the place that has to be mended.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..constraints.evaluation import check_on_data
from ..data.arrays import Floats
from ..data.microdata import Microdata
from ..data.recoding import check_rules_on
from ..data.terms import Design, check_domain, parse_term
from ..design.design_triangle import design_triangle
from ..design.survey import INFORMATION, check_weights
from ..errors import BadInput
from ..statistics.columns import independent_columns
from ..wording import agree, counted
from .budget import check_budget
from .recipe import Recipe
from .steps import Step


def require_complete(data: Microdata, target: str, terms: Sequence[str], place: str) -> None:
    """BadInput at ``place.target`` or ``place.predictors[j]`` when records lack the target or a column of term j."""
    columns = [(f"{place}.target", target)]
    for j, text in enumerate(terms):
        where = f"{place}.predictors[{j}]"
        columns += [(where, name) for name in parse_term(text, data.schema, where).columns]
    for where, name in columns:
        if lacking := int(data.missing(name).sum()):
            raise BadInput(
                where,
                f'{counted(lacking, "record")} {agree(lacking, "has", "have")} no "{name}"; these models need every value: use cart, or missing = "drop"',
            )


def require_varying(data: Microdata, name: str, place: str) -> None:
    """BadInput at ``place`` when every record has the same value of this variable."""
    numbers = data.numbers(name)
    if (numbers == numbers[0]).all():
        raise BadInput(place, f'every value of "{name}" is the same; leave it out')


def require_full_rank(data: Microdata, terms: Sequence[str], place: str, triangle: Floats | None = None) -> None:
    """BadInput at ``place[j]`` when term j has a column that the intercept and the terms before it already determine.

    ``triangle`` (K, K) is that of the terms' design, where it is known. Weights do not enter.
    """
    parsed = [parse_term(text, data.schema, f"{place}[{j}]") for j, text in enumerate(terms)]
    if triangle is None:
        triangle = design_triangle(Design.of(parsed, data), replace(data, weights=None))
    independent = independent_columns(triangle)
    if independent.all():
        return
    widths = [len(Design.of([term], data).names) - 1 for term in parsed]
    column = int(np.flatnonzero(~independent)[0])
    j = int(np.searchsorted(np.cumsum(widths), column))
    raise BadInput(
        f"{place}[{j}]",
        f'"{terms[j]}" is aliased: the intercept and the terms before it determine a column of it, or no record has '
        "one of its levels; leave it out",
    )


def check_steps(recipe: Recipe, data: Microdata) -> None:
    """BadInput at the step's place (``synthesis[1].predictors[2]``) when a step cannot be carried out on these data.

    Every step: the method's own ``check``, but for anonymisation steps after the first, which work on what that one makes.
    Synthesis steps: a target or a predictor with one single value (a target of a step with a privacy account may have one: to refuse
    it would tell of the records), and functions of columns outside their domain. Every record has a survey weight, where there is one. The run must keep to its budget of epsilon.
    """
    check_weights(data.alone)
    if recipe.data.screen is None:  # few records may lack a level that few have
        check_rules_on(recipe.form.recode, data, "release.recode")
    exact, data = data, recipe.recoded(data)
    for step in recipe.synthesis:
        for name in step.targets if step.method.synthesis.account is None else ():
            require_varying(data, name, f"{step.place}.target")
        _check_terms(step, data.alone)
    asked = tuple(name for step in recipe.synthesis if step.method.synthesis.release_model for name in step.targets)
    for step in (*recipe.synthesis, *recipe.anonymisation[:1], *recipe.measures, *recipe.studies):
        targets = asked if step.method.whole else step.targets
        seen = exact if step.method.family in INFORMATION else data
        step.method.check_on(seen if step.method.measurement.controls else seen.alone, targets, step.spec, step.place)
    check_on_data(data, recipe.schema)
    check_budget(recipe, data.alone)


def _check_terms(step: Step, data: Microdata) -> None:
    for place, column, any_order in step.spec.columns_named(data.schema, step.place):
        if not any_order:
            require_varying(data, column, place)
    for place, text in step.spec.predictor_terms(step.place):
        for factor in parse_term(text, data.schema, place).factors:
            check_domain(factor, data.numbers(factor.column), place)
