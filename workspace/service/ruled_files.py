"""Evaluation of constraints on the records of a file of data or of a recipe; nothing is stored."""

from __future__ import annotations

from dataclasses import replace

from sfumato.engine.data.schema import MissingPolicy, Schema
from sfumato.engine.methods.run import PUBLIC

from ..recipes import find_recipe
from ..reporting.constraints import RulesView
from ..views.constraints import evaluate_rules


def evaluate_rules_of_file(target: str, data_file: str | None, recipe: bool, search: bool) -> RulesView:
    """Evaluate the rules of a recipe on all records of its file; for a file of data, find rules that its records keep.

    Raises BadInput.
    """
    if not recipe:
        return _rules_of_data_file(data_file or target, search=search)
    from sfumato.engine.recipe.recipe import Recipe

    from ..ingest.files import find_source, read_file_microdata
    from ..plan.recipe_files import read_recipe_files

    found = find_recipe(target)
    plan = Recipe.from_table(read_recipe_files(found.table, found.data_directory))
    source = find_source(data_file, place="--data") if data_file else find_source(plan.data.file, found.data_directory)
    # A rule is about all records: also those that the plan does not draw, holds out or leaves out.
    everybody = replace(plan.data, sample=None, holdout=None, missing=MissingPolicy.KEEP)
    data = read_file_microdata(source, everybody, plan.schema, plan.seed, key=PUBLIC)
    return evaluate_rules(data, plan.schema, search=search)


def _rules_of_data_file(file: str, *, search: bool) -> RulesView:
    """Evaluate rules on the records of a file of data, whose kinds are guessed."""
    from sfumato.engine.data.microdata import conform_to_schema

    from ..ingest.columns import profile_columns
    from ..ingest.files import find_source
    from .importing import EVERYTHING, read_source

    raw, _ = read_source(find_source(file, place="FILE"), {}, EVERYTHING)
    schema = Schema(tuple(column.variable for column in profile_columns(raw) if column.is_included))
    return evaluate_rules(conform_to_schema(raw.frame, schema, MissingPolicy.KEEP), schema, search=search)
