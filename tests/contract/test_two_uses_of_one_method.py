"""Two uses of one method in one recipe: their numbers stand apart, and the same use twice is refused."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Mapping
from typing import Any

import pytest
from method_contract import MEASURES, STUDIES, SYNTHESISED, table_of

from sfumato.engine.errors import BadInput
from sfumato.engine.execution import execute
from sfumato.engine.methods import Method
from sfumato.engine.microdata import Microdata
from sfumato.engine.recipe import Recipe
from sfumato.engine.rows import Row
from sfumato.engine.schema import Schema
from sfumato.engine.spec import ParamInfo

pytestmark = pytest.mark.slow

# What keeps the studies short.
SHORT: dict[str, dict[str, Any]] = {
    "studies.calibration": {"generators": 1, "subsets": 1, "ks": [2]},
    "studies.minimisation": {"step": 1.0, "subsamples": 1},
    "studies.intruder_uncertainty": {"levels": [0.0, 0.1]},
}


def another(info: ParamInfo, value: Any, schema: Schema) -> list[Any]:
    """Other values of a parameter that has this one; empty where none can be derived."""
    if info.choices:
        return [choice for choice in info.choices if choice != value]
    if info.param.names == "variables" and typing.get_origin(info.type) is tuple:
        return [[v.name] for v in schema if not info.param.kinds or v.kind in info.param.kinds]
    if info.type is bool:
        return [not value]
    if info.type is int:
        return [value + 1, value - 1]
    if info.type is float:
        return [value / 2, (value + 1) / 2]
    if typing.get_origin(info.type) is tuple and value:
        return [list(value)[:-1]] if isinstance(value[0], int | float) and len(value) > 1 else []
    return []


def recipe_with(method: Method, schema: Schema, steps: list[dict[str, Any]]) -> Recipe:
    section = "study" if method.family == "studies" else "measure"
    return Recipe.from_table(
        {
            "title": method.title,
            "variables": {variable.name: variable.to_table() for variable in schema},
            "release": {"m": 2, "released": list(SYNTHESISED)},
            section: [{"method": method.key, **step} for step in steps],
        }
    )


def plain_table(method: Method, schema: Schema) -> dict[str, Any]:
    return {**table_of(method, schema), **SHORT.get(method.key, {})}


def changed_tables(method: Method, data: Microdata) -> Mapping[str, dict[str, Any]]:
    """The method's table with one parameter changed, by the parameter's name, where a recipe takes it."""
    table, found = plain_table(method, data.schema), {}
    for info in method.spec.params():
        value = table.get(info.name, None if info.default is dataclasses.MISSING else info.default)
        for other in another(info, value, data.schema) if value is not None else []:
            changed = {**table, info.name: other}
            try:
                recipe = recipe_with(method, data.schema, [changed])
            except BadInput:
                continue
            step = (*recipe.measures, *recipe.studies)[0]
            if step.spec != method.spec.from_table(table, "step") and info.name not in found:
                found[info.name] = changed
    return found


def results(recipe: Recipe, data: Microdata, releases: list[Microdata]) -> list[Row]:
    """The rows of all datasets together and of the confidential data."""
    return [row for row in execute(recipe, data, releases).rows if row.draw is None]


@pytest.mark.parametrize("method", [*MEASURES, *STUDIES])
def test_two_uses_of_one_method_stay_apart(method: Method, confidential: Microdata, releases: list[Microdata]) -> None:
    table, schema = plain_table(method, confidential.schema), confidential.schema
    first = results(recipe_with(method, schema, [table]), confidential, releases)
    tables = list(changed_tables(method, confidential).items())
    for name, changed in tables[:1] if method.family == "studies" else tables:
        second = results(recipe_with(method, schema, [changed]), confidential, releases)
        both = results(recipe_with(method, schema, [table, changed]), confidential, releases)
        assert len(both) == len(first) + len(second), name
        assert len({(row.dataset, row.series) for row in both}) == len(both), name


@pytest.mark.parametrize("method", [*MEASURES, *STUDIES])
def test_the_same_step_twice_is_refused(method: Method, confidential: Microdata) -> None:
    table = plain_table(method, confidential.schema)
    with pytest.raises(BadInput):
        recipe_with(method, confidential.schema, [table, dict(table)])


def test_all_methods_but_those_without_parameters_are_used_twice(confidential: Microdata) -> None:
    alone = {p.id for p in (*MEASURES, *STUDIES) if not changed_tables(p.values[0], confidential)}
    assert alone == {"quality.non_suppressed"}
