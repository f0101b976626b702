"""Contract of every method, whatever its family."""

from __future__ import annotations

import dataclasses
import re
import typing
from collections.abc import Mapping
from typing import Any

import pytest

from ..data.microdata import Microdata
from ..data.schema import Kind
from ..errors import BadInput
from ..methods.outputs import Label
from ..methods.protocols import FAMILIES, MEASURES
from ..methods.registry import Method
from ..methods.release_form import AnonymisationSpec
from ..methods.spec import Spec
from ..recipe.checks import check_steps
from ..recipe.recipe import Recipe
from .examples import every_method, example_recipe, example_step_table

COUNTED = ("records", "classes", "values")
every_measure_and_study = pytest.mark.sfumato_contract(*MEASURES, "studies")


@every_method
def test_it_is_documented(method: Method) -> None:
    assert method.family in FAMILIES
    assert method.title
    assert method.source, "cite paper and section"
    assert method.func.__doc__
    assert dataclasses.is_dataclass(method.spec)
    assert issubclass(method.spec, Spec)
    assert method.spec.__dataclass_params__.frozen
    for info in method.spec.params():
        assert info.param.help, info.name


@every_method
def test_its_outputs_are_declared(method: Method) -> None:
    if method.family == "synthesis":
        assert (method.synthesis.draw is None) == method.joint
        assert set(method.synthesis.targets) <= set(Kind)
        return
    if method.family == "anonymisation":
        assert issubclass(method.spec, AnonymisationSpec)
        return
    assert method.outputs
    for output in method.outputs:
        assert output.meaning
        assert output.goal in ("low", "high", "one", "none")
    assert len({output.name for output in method.outputs}) == len(method.outputs)


LONGEST_NAME, MOST_WORDS = 45, 25


def label_problems(method: Method) -> list[str]:
    """Return what is missing or unreadable in the labels of a method's outputs."""
    found = []
    for output in method.outputs:
        label = output.label
        sentences = {"says": label.says, "good": label.good, "fails": label.fails}
        stopped = {**sentences, "scene": label.scene}
        texts = {
            "name": label.name,
            "term": label.term,
            **stopped,
            "baseline": label.baseline,
            "bad": label.bad,
            "levers": "; ".join(label.levers),
        }
        # An output without a label is shown by its meaning.
        if label == Label():
            continue
        if not label.name or len(label.name) > LONGEST_NAME:
            found.append(f"{output.name}: a name of 1 to {LONGEST_NAME} characters")
        if "{value}" not in label.says:
            found.append(f"{output.name}: a sentence with {{value}}")
        if output.goal != "none" and not (label.good and label.fails and label.levers):
            found.append(f"{output.name}: what is good, what failing means, and levers")
        found += [
            f"{output.name}: {name} ends in a full stop" for name, text in stopped.items() if text and text[-1] != "."
        ]
        found += [
            f"{output.name}: at most {MOST_WORDS} words in {name}"
            for name, text in sentences.items()
            if len(text.split()) > MOST_WORDS
        ]
        if any(re.search(r"[A-Za-z]_\w|[A-Za-z]\.[A-Za-z]", text) for name, text in texts.items() if name != "levers"):
            found.append(f"{output.name}: words, not keys")
    return found


@every_method
def test_people_can_read_its_labels(method: Method) -> None:
    assert label_problems(method) == []


@every_method
def test_its_recipe_comes_back_the_same(method: Method, confidential: Microdata) -> None:
    recipe = example_recipe(method, confidential.schema)
    again = Recipe.from_toml(recipe.to_toml())
    assert again == recipe
    assert again.sha256 == recipe.sha256


@every_method
def test_its_full_table_comes_back_the_same(method: Method, confidential: Microdata) -> None:
    spec = method.spec.from_table(example_step_table(method, confidential.schema), "step")
    full = {key: value for key, value in spec.to_full_table().items() if value is not None}
    assert method.spec.from_table(full, "step") == spec
    assert method.spec.from_table(spec.to_table(), "step") == spec


@every_method
def test_it_refuses_a_key_it_does_not_know(method: Method, confidential: Microdata) -> None:
    with pytest.raises(BadInput, match=r"^step\.nonsense: unknown key"):
        method.spec.from_table({**example_step_table(method, confidential.schema), "nonsense": 1}, "step")


@every_method
def test_it_refuses_a_column_that_is_not_there(method: Method, confidential: Microdata) -> None:
    table = example_step_table(method, confidential.schema)
    for info in method.spec.params():
        if info.param.names is None:
            continue
        if isinstance(table.get(info.name), dict):
            wrong: Any = {"absent": next(iter(table[info.name].values()))}
        elif typing.get_origin(info.type) is Mapping:
            wrong = {"absent": ["absent"]}
        else:
            wrong = ["absent"] if typing.get_origin(info.type) is tuple else "absent"
        spec = method.spec.from_table({**table, info.name: wrong}, "step")
        with pytest.raises(BadInput, match='no column "absent"') as caught:
            spec.check(confidential.schema, "step")
        assert caught.value.place.startswith(f"step.{info.name}")


@every_method
def test_the_tests_data_suit_it(method: Method, confidential: Microdata) -> None:
    check_steps(example_recipe(method, confidential.schema), confidential)


@every_measure_and_study
def test_shares_and_numbers_of_records_say_where_they_end(method: Method) -> None:
    for output in method.outputs:
        low, high = output.range
        if output.unit == "share":
            assert output.range == (0, 1), output.name
        if output.unit in COUNTED:
            assert low in (0, 1), output.name
        assert low is None or high is None or low < high, output.name


def declaration_problems(method: Method) -> list[str]:
    """Return what does not fit together in a method's declarations."""
    names = {output.name for output in method.outputs}
    curves, answers = ({output.name for output in found} for found in (method.curve_outputs, method.answer_outputs))
    parameters = {info.name for info in method.spec.params()}
    found = [
        (output.name, "minimum_of")
        for output in method.outputs
        if output.quality.minimum_of
        and (output.quality.minimum_of not in names or not method.output(output.quality.minimum_of).quality.scores)
    ]
    found += [
        (output.name, "limit")
        for output in method.outputs
        if output.quality.limit and not output.quality.minimum_of and output.quality.scores != "table"
    ]
    found += [
        (output.name, "limit_parameter")
        for output in method.outputs
        if output.study.limit_parameter and output.study.limit_parameter not in parameters
    ]
    for plane in method.study.planes:
        if not {plane.across or plane.up, plane.up} <= curves or plane.chance not in ("", "diagonal", *answers):
            found.append((plane.title, "plane"))
    if (method.study.axis is not None) != (method.family == "studies"):
        found.append((method.key, "axis"))
    if answers and method.family != "studies":
        found.append((method.key, "answer"))
    if method.study.lattice is not None:
        told = {
            f.name: getattr(method.study.lattice, f.name)
            for f in dataclasses.fields(method.study.lattice)
            if f.name != "subset"
        }
        lacking = {name for own in told.values() for name in ((own,) if isinstance(own, str) else own)} - answers
        found += [(name, "lattice") for name in sorted(lacking)]
    return [f"{name}: {what}" for name, what in found]


@every_method
def test_what_a_method_declares_fits_together(method: Method) -> None:
    assert declaration_problems(method) == []
