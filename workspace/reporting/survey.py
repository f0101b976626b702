"""Survey design of a recipe in words: which measures are weighted and which count records."""

from __future__ import annotations

from sfumato.engine.design.survey import INFORMATION, SurveyDesign, is_unweighted
from sfumato.engine.methods.registry import Method
from sfumato.engine.recipe.recipe import Recipe

WEIGHED = "where a variable is the survey weight it speaks of the population, by weights, strata and clusters"
NOT_WEIGHED = "unweighted: where a variable is the survey weight it speaks of the records still"


def weighted_form_text(method: Method) -> str:
    """Return whether an information measure has a weighted form; empty for other methods."""
    if method.family not in INFORMATION:
        return ""
    return WEIGHED if method.measurement.survey_weighted else NOT_WEIGHED


def survey_design_text(recipe: Recipe) -> str:
    """Return the survey weight of a recipe and which of its measures use it; empty without a survey weight."""
    design = SurveyDesign.from_schema(recipe.schema)
    if design is None:
        return ""
    methods = {step.method.key: step.method for step in recipe.measures}.values()
    weighed = [found.key for found in methods if found.measurement.survey_weighted]
    plain = [found.key for found in methods if is_unweighted(found, recipe.schema)]
    said = [
        str(design),
        f"used by {', '.join(weighed)}" if weighed else "no measure of the recipe uses it",
        f"unweighted: {', '.join(plain)}" if plain else "",
        "risks count records",
    ]
    return "; ".join(filter(None, said))
