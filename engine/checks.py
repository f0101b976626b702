"""What a recipe asks of the confidential data, verified before anything is computed or stored."""

from __future__ import annotations

from .microdata import Microdata
from .recipe import Recipe, Step
from .requirements import require_varying
from .terms import check_domain, parse_term

__all__ = ["check_steps"]


def check_steps(recipe: Recipe, data: Microdata) -> None:
    """BadInput at the step's place (``synthesis[1].predictors[2]``) when a step cannot be carried out on these data.

    Every step: the method's own ``check``, but for anonymisation steps after the first, which work on what that one makes.
    Synthesis steps: a target or a predictor with one single value, and
    functions of columns outside their domain.
    """
    for step in recipe.synthesis:
        require_varying(data, step.target, f"{step.place}.target")
        _check_terms(step, data)
    for step in (*recipe.synthesis, *recipe.anonymisation[:1], *recipe.measures, *recipe.studies):
        if step.method.check is not None:
            step.method.check(data, step.target, step.spec, step.place)


def _check_terms(step: Step, data: Microdata) -> None:
    for place, text in step.spec.predictor_terms(step.place):
        for factor in parse_term(text, data.schema, place).factors:
            require_varying(data, factor.column, place)
            check_domain(factor, data.numbers(factor.column), place)
