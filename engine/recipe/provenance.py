"""Description of how the release of a recipe comes about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..data.provenance import UNDECLARED_FIT, FitUncertainty, ReleaseProvenance, StepProvenance
from ..data.schema import Role
from .recipe import Recipe
from .steps import RecipeStep

UNDECLARED_NOISE = "noise protects the data, and the method does not declare what it does to estimates"


def release_provenance(recipe: Recipe, records: int, rows: Sequence[int] | None = None) -> ReleaseProvenance:
    """Return how a release of the recipe comes about.

    Args:
        recipe: the recipe of the release.
        records: number of confidential records that it is made from.
        rows: rows of each dataset; None where the recipe alone decides them, as it does for a synthesis.
    """
    requested = records if recipe.form.records is None else recipe.form.records
    made = {name for step in recipe.synthesis for name in step.targets} or set(recipe.released)
    released = [name for name in recipe.schema.non_identifiers if recipe.schema[name].design is None]
    published = {
        "protected tables": any(
            step.method.synthesis.privacy.publishable_tables for step in recipe.synthesis if step.table is None
        ),
        "figures of utility": recipe.form.public_figures != "internal",
    }
    return ReleaseProvenance(
        origin="anonymised" if recipe.origin == "anonymised" else "synthetic",
        records=records,
        rows=(requested,) * recipe.m if rows is None else tuple(rows),
        steps=tuple(StepProvenance(step.targets, fit_uncertainty_of_step(recipe, step)) for step in recipe.synthesis),
        kept=tuple(name for name in released if name not in made),
        has_survey_design=bool(recipe.schema.names_by_role(Role.WEIGHT))
        or any(variable.design is not None for variable in recipe.schema),
        has_record_weights=recipe.weights is not None,
        published=tuple(name for name, is_published in published.items() if is_published),
    )


def fit_uncertainty_of_step(recipe: Recipe, step: RecipeStep) -> FitUncertainty:
    """Return the uncertainty of the fit of a synthesis step, as its method declares it."""
    declared = step.method.synthesis.fit_uncertainty
    if declared is not None:
        found = declared(step.spec, step.targets, recipe.schema if step.table is None else step.table.schema)
        # Where a drawn value uses the record's own, datasets differ by less than the model alone would make them.
        return replace(found, parameters="unknown") if step.spec.uses_own_record else found
    # A method that keeps a privacy account adds noise somewhere, and no difference between datasets may show it.
    private = step.method.synthesis.privacy.account is not None
    return FitUncertainty("unknown", UNDECLARED_NOISE) if private else UNDECLARED_FIT
