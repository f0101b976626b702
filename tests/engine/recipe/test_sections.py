"""The sections of a recipe: one declaration gives their keys, their messages and what is written."""

from __future__ import annotations

from typing import Any

import pytest

from sfumato.engine.errors import BadInput
from sfumato.engine.recipe.recipe import SECTIONS, Recipe, recipe_keys, recipe_params

VALUE = "utility.ecdf.max_abs_difference"
PLAN: dict[str, Any] = {
    "variables": {"age": {"kind": "count"}, "job": {"kind": "categorical"}},
    "release": {"released": ["age"]},
    "measure": [{"method": "utility.ecdf"}],
}
DECLARED = ("recipe", "data.format", *(name for name, own in SECTIONS.items() if own))


def refusal(**changes: Any) -> BadInput:
    with pytest.raises(BadInput) as caught:
        Recipe.from_table({**PLAN, **changes})
    return caught.value


@pytest.mark.parametrize(
    ("changes", "place", "near"),
    [
        ({"titel": "a"}, "titel", "title"),
        ({"data": {"sampel": 5}}, "data.sampel", "sample"),
        ({"data": {"format": {"delimeter": ";"}}}, "data.format.delimeter", "delimiter"),
        ({"release": {"sead": 3}}, "release.sead", "seed"),
        ({"release": {"epsilom": 3}}, "release.epsilom", "epsilon"),
        ({"weights": {"run": 1, "strenght": 1}}, "weights.strenght", "strength"),
        ({"variables": {"age": {"kind": "count", "levls": []}}}, "variables.age.levls", "levels"),
        ({"threshold": [{"value": VALUE, "maxi": 1}]}, "threshold[0].maxi", "max"),
        ({"published": [{"figur": 1}]}, "published[0].figur", "figure"),
        ({"constraints": {"adult": {"holds": "age >= 15", "sorce": "data"}}}, "constraints.adult.sorce", "source"),
    ],
)
def test_an_unknown_key_of_any_section_names_its_path_and_the_near_miss(
    changes: dict[str, Any], place: str, near: str
) -> None:
    error = refusal(**changes)
    assert (error.place, error.message) == (place, f'unknown key; did you mean "{near}"?')


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"title": 5}, "title: 5 must be text"),
        ({"companions": ["a", "a"]}, 'companions[1]: "a" is listed twice'),
        ({"data": {"format": 5}}, 'data.format: must be a table, such as { delimiter = ";", decimal = "," }'),
        ({"data": {"format": {"skip": 1001}}}, "data.format.skip: 1001 must be at least 0 and at most 1000"),
        ({"data": {"missing": "dorp"}}, 'data.missing: "dorp" is not one of refuse, drop, keep; did you mean "drop"?'),
        ({"data": {"sample": "5"}}, "data.sample: '5' must be a whole number, at least 1; leave it out for all records"),
        ({"release": {"released": ["agee"]}}, 'release.released[0]: no column "agee"; did you mean "age"?'),
        ({"release": {"order": "shufled"}}, 'release.order: "shufled" is not one of original, shuffled; did you mean "shuffled"?'),
        ({"release": {"redraws": 10_001}}, "release.redraws: 10001 must be at least 0 and at most 10000"),
        ({"release": {"epsilon": 0}}, "release.epsilon: 0.0 must be above 0"),
        ({"release": {"records": 10**9}}, "release.records: 1000000000 must be at least 1 and at most 100,000,000"),
        ({"weights": {"run": 1, "strength": 2}}, "weights.strength: 2.0 must be above 0 and at most 1"),
        ({"weights": {"run": True}}, "weights.run: True must be a whole number, at least 1"),
        ({"variables": {"age": {"kind": "count", "may_be_missing": 1}}}, "variables.age.may_be_missing: 1 must be true or false"),
        ({"published": [{"source": "a"}]}, "published[0].value: must be given: the measure that it is a figure of"),
        ({"threshold": [{"value": VALUE, "max": 1, "level": "a"}]}, "threshold[0].level: 'a' must be a number"),
        ({"constraints": {"adult": {"holds": 5}}}, "constraints.adult: 5 is no condition"),
    ],
)  # fmt: skip
def test_a_wrong_value_names_its_place_and_the_rule(changes: dict[str, Any], message: str) -> None:
    assert str(refusal(**changes)).startswith(message)


@pytest.mark.parametrize("section", DECLARED)
def test_every_key_of_a_section_has_a_help_text(section: str) -> None:
    assert all(info.param.help for info in recipe_params(section))
    assert len(set(recipe_keys(section))) == len(recipe_keys(section))


@pytest.mark.parametrize("section", ["synthesis", "measure", "nothing"])
def test_a_section_of_steps_declares_no_keys(section: str) -> None:
    with pytest.raises(LookupError):
        recipe_keys(section)


def test_every_section_is_written_as_it_was_read() -> None:
    table: dict[str, Any] = {
        "title": "t",
        "label": "l",
        "description": "d",
        "companions": ["other"],
        "data": {
            "file": "a.csv",
            "where": "age > 3",
            "sample": 9,
            "missing": "keep",
            "holdout": "part",
            "format": {"encoding": "latin-1", "delimiter": ";", "decimal": ",", "skip": 2, "missing": ["NA"]},
            "sheet": "s",
        },
        "variables": {
            "id": {"kind": "categorical", "role": "identifier"},
            "age": {"kind": "count", "role": "quasi_identifier", "bounds": [0, ""], "missing": [-9], "may_be_missing": True},
            "job": {"kind": "ordinal", "role": "other", "levels": ["a", "b"], "labels": {"a": "one"}, "title": "work"},
        },
        "release": {
            "m": 2, "seed": 7, "released": ["age", "job"], "order": "shuffled", "title": "public", "epsilon": 2.0, "link": "id",
            "generalised": ["job"], "redraws": 3, "unmet": "keep",
        },
        "measure": [{"method": "utility.ecdf", "variables": ["age"]}, {"method": "utility.constraint_violations"}],
        "threshold": [{"value": VALUE, "target": "age", "max": 0.5}],
        "published": [{"source": "s", "value": VALUE, "dataset": "synthetic", "target": "age", "figure": 0.1}],
        "constraints": {"adult": "age >= 15", "found": {"holds": "age <= 99", "source": "data"}},
    }  # fmt: skip
    assert Recipe.from_table(table).to_table() == table
