"""What every registered method must satisfy, whatever its family. A new method is covered by being registered."""

from __future__ import annotations

import dataclasses
import typing

import pytest
from method_contract import (
    MEASURES,
    METHODS,
    SYNTHESIS,
    assert_sound,
    every_method,
    recipe_of,
    refuses_missing,
    table_of,
    with_missing,
    without_identifiers,
)

from sfumato.engine.anonymisation._base import AnonymisationSpec
from sfumato.engine.checks import check_steps
from sfumato.engine.errors import BadInput
from sfumato.engine.methods import FAMILIES, Method, registry
from sfumato.engine.microdata import Microdata
from sfumato.engine.recipe import Recipe
from sfumato.engine.results import Estimate
from sfumato.engine.schema import Kind
from sfumato.engine.spec import Spec


def test_there_are_methods() -> None:
    assert SYNTHESIS
    assert MEASURES


@pytest.mark.parametrize(
    "unsound",
    [
        Estimate("pmse", float("nan")),
        Estimate("pmse", 0.1, lower=0.2, upper=0.3),
        Estimate("pmse", 0.1, baseline=float("inf")),
        Estimate("pmse", None),
        Estimate("undeclared", 0.1),
    ],
)
def test_what_is_unsound_is_noticed(unsound: Estimate) -> None:
    with pytest.raises((AssertionError, KeyError)):
        assert_sound(registry()["utility.propensity"], [unsound])


@every_method
def test_it_is_documented(method: Method) -> None:
    assert method.family in FAMILIES
    assert method.title
    assert method.source, "cite paper and section"
    assert method.func.__doc__
    assert dataclasses.is_dataclass(method.spec)
    assert issubclass(method.spec, Spec)
    assert method.spec.__dataclass_params__.frozen  # type: ignore[attr-defined]
    for info in method.spec.params():
        assert info.param.help, info.name


@every_method
def test_its_outputs_are_declared(method: Method) -> None:
    if method.family == "synthesis":
        assert method.draw is not None
        assert set(method.targets) <= set(Kind)
        return
    if method.family == "anonymisation":
        assert issubclass(method.spec, AnonymisationSpec)
        return
    assert method.outputs
    for output in method.outputs:
        assert output.meaning
        assert output.goal in ("low", "high", "none")
    assert len({output.name for output in method.outputs}) == len(method.outputs)


@every_method
def test_its_recipe_comes_back_the_same(method: Method, confidential: Microdata) -> None:
    recipe = recipe_of(method, confidential.schema)
    again = Recipe.from_toml(recipe.to_toml())
    assert again == recipe
    assert again.sha256 == recipe.sha256


@every_method
def test_its_full_table_comes_back_the_same(method: Method, confidential: Microdata) -> None:
    spec = method.spec.from_table(table_of(method, confidential.schema), "step")
    full = {key: value for key, value in spec.to_full_table().items() if value is not None}
    assert method.spec.from_table(full, "step") == spec
    assert method.spec.from_table(spec.to_table(), "step") == spec


@every_method
def test_it_refuses_a_key_it_does_not_know(method: Method, confidential: Microdata) -> None:
    with pytest.raises(BadInput, match=r"^step\.nonsense: unknown key"):
        method.spec.from_table({**table_of(method, confidential.schema), "nonsense": 1}, "step")


@every_method
def test_it_refuses_a_column_that_is_not_there(method: Method, confidential: Microdata) -> None:
    table = table_of(method, confidential.schema)
    for info in method.spec.params():
        if info.param.names is None:
            continue
        wrong = {"absent": next(iter(table[info.name].values()))} if isinstance(table.get(info.name), dict) else None
        if wrong is None:
            wrong = ["absent"] if typing.get_origin(info.type) is tuple else "absent"
        spec = method.spec.from_table({**table, info.name: wrong}, "step")
        with pytest.raises(BadInput, match='no column "absent"') as caught:
            spec.check(confidential.schema, "step")
        assert caught.value.place.startswith(f"step.{info.name}")


@every_method
def test_the_tests_data_suit_it(method: Method, confidential: Microdata) -> None:
    check_steps(recipe_of(method, confidential.schema), confidential)


def test_only_what_needs_every_value_refuses_missing_ones(confidential: Microdata) -> None:
    data = with_missing(without_identifiers(confidential), 1)
    refusing = {method.key for (method,) in (p.values for p in METHODS) if refuses_missing(method, data)}
    assert {"synthesis.linear_regression", "synthesis.zero_inflated_truncated_poisson"} <= refusing
    allowed = {"synthesis", "anonymisation", "studies"}
    assert {key for key in refusing if key.partition(".")[0] not in allowed} == set()
    assert not refusing & {"synthesis.cart", "studies.intruder_uncertainty"}
