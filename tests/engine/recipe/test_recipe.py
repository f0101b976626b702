from __future__ import annotations

import copy
import datetime
import tomllib
from typing import Any

import pytest

from sfumato.engine.data.schema import MissingPolicy
from sfumato.engine.errors import BadInput
from sfumato.engine.recipe.data_source import DataSource
from sfumato.engine.recipe.overrides import apply_settings
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.recipe.thresholds import Threshold

TOML = """
title = "New York Airbnb listings"
description = "An example."

[data]
file = "AB_NYC_2019.csv"
where = "price > 0"
sample = 10000
missing = "drop"

[variables]
room_type           = { kind = "categorical", role = "quasi_identifier" }
number_of_reviews   = { kind = "count", role = "quasi_identifier" }
availability_365    = { kind = "count", role = "sensitive", bounds = [0, 365] }
price               = { kind = "continuous", role = "sensitive" }

[release]
m = 3
seed = 2020

[[synthesis]]
target = "availability_365"
method = "linear_regression"
predictors = ["room_type", "log1p(number_of_reviews)"]

[[synthesis]]
target = "price"
method = "linear_regression"
transform = "log"
predictors = ["room_type", "number_of_reviews", "availability_365"]

[[measure]]
method = "utility.ecdf"

[[measure]]
method = "utility.summary"
variables = ["price"]
quantiles = [0.5]

[[threshold]]
value = "utility.ecdf.max_abs_difference"
target = "price"
max = 0.1
"""


def table() -> dict[str, Any]:
    return tomllib.loads(TOML)


def test_a_recipe_says_the_whole_plan() -> None:
    recipe = Recipe.from_toml(TOML)
    assert recipe.data == DataSource("AB_NYC_2019.csv", "price > 0", 10000, MissingPolicy.DROP)
    assert (recipe.m, recipe.seed) == (3, 2020)
    assert recipe.released == ("availability_365", "price")
    assert [step.place for step in recipe.synthesis] == ["synthesis[0]", "synthesis[1]"]
    assert [step.method.key for step in recipe.measures] == ["utility.ecdf", "utility.summary"]
    assert recipe.thresholds == (Threshold("utility.ecdf.max_abs_difference", "max", 0.1, "price"),)


def test_a_recipe_comes_back_the_same_through_toml() -> None:
    recipe = Recipe.from_toml(TOML)
    again = Recipe.from_toml(recipe.to_toml())
    assert again == recipe
    assert again.sha256 == recipe.sha256
    assert again.to_table() == recipe.to_table()


def test_the_fingerprint_sees_what_is_said_and_not_how() -> None:
    recipe = Recipe.from_toml(TOML)
    shuffled = {key: table()[key] for key in reversed(table())}
    assert Recipe.from_table(shuffled).sha256 == recipe.sha256
    spelled_out = apply_settings(
        table(), ["synthesis[0].transform=identity", "synthesis[0].method=synthesis.linear_regression"]
    )
    assert Recipe.from_table(spelled_out).sha256 == recipe.sha256
    for setting in ("release.seed=1", "release.m=4", "data.sample=9", "synthesis[1].prior_sd=3.0", "title=x"):
        assert Recipe.from_table(apply_settings(table(), [setting])).sha256 != recipe.sha256, setting


def test_the_smallest_recipe() -> None:
    recipe = Recipe.from_toml('[variables]\nprice = { kind = "continuous" }')
    assert (recipe.m, recipe.seed, recipe.released) == (1, 1, ())
    assert recipe.data == DataSource()
    assert Recipe.from_toml(recipe.to_toml()) == recipe


def test_given_releases_are_named_in_the_recipe() -> None:
    text = '[variables]\nprice = { kind = "continuous" }\n[release]\nreleased = ["price"]\nm = 4'
    recipe = Recipe.from_toml(text)
    assert (recipe.m, recipe.released) == (4, ("price",))
    assert Recipe.from_toml(recipe.to_toml()) == recipe


def step(**changes: Any) -> dict[str, Any]:
    return {"target": "price", "method": "linear_regression", **changes}


DAYS = {"target": "availability_365", "method": "linear_regression"}
REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"measures": []}, "measures", 'unknown key; did you mean "measure"?'),
    ({"title": 5}, "title", "5 must be text"),
    ({"variables": {}}, "variables", "name at least one column"),
    ({"variables": 5}, "variables", "must be a table, [variables]"),
    ({"variables": {"price": {"kind": "contnuous"}}}, "variables.price.kind", 'did you mean "continuous"?'),
    ({"data": {"fil": "x"}}, "data.fil", 'did you mean "file"?'),
    ({"data": {"file": 5}}, "data.file", "5 must be text"),
    ({"data": {"sample": 0}}, "data.sample", "0 must be at least 1; leave it out for all records"),
    ({"data": {"sample": True}}, "data.sample", "True must be a whole number"),
    ({"data": {"missing": "ignore"}}, "data.missing", '"ignore" is not one of refuse, drop'),
    ({"data": []}, "data", "must be a table, [data]"),
    ({"release": {"m": 0}}, "release.m", "0 must be at least 1"),
    ({"release": {"m": 2.0}}, "release.m", "2.0 must be a whole number"),
    ({"release": {"seed": -1}}, "release.seed", "at least 0"),
    ({"release": {"n": 1}}, "release.n", "unknown key"),
    ({"release": {"released": ["price"]}}, "release.released", "the synthesis steps already say what is released"),
    ({"synthesis": {}}, "synthesis", "must be tables, [[synthesis]]"),
    ({"synthesis": [5]}, "synthesis", "must be tables, [[synthesis]]"),
    ({"synthesis": [{"method": "linear_regression"}]}, "synthesis[0]", "needs a target"),
    ({"synthesis": [{"target": "price"}]}, "synthesis[0]", 'needs a method, such as method = "cart"'),
    ({"synthesis": [step(target="prices")]}, "synthesis[0].target", 'did you mean "price"?'),
    ({"synthesis": [step(target="room_type")]}, "synthesis[0].target", "produces count or continuous variables"),
    ({"synthesis": [step(method="linear_regresion")]}, "synthesis[0].method", 'no method "linear_regresion"'),
    ({"synthesis": [step(method="utility.ecdf")]}, "synthesis[0].method", 'no method "utility.ecdf"'),
    ({"synthesis": [step(prior_s=2)]}, "synthesis[0].prior_s", 'did you mean "prior_sd"?'),
    ({"synthesis": [step(predictors=["room"])]}, "synthesis[0].predictors[0]", 'did you mean "room_type"?'),
    ({"synthesis": [step(), step()]}, "synthesis[1].target", '"price" is synthesised twice'),
    ({"synthesis": [step(predictors=["price"])]}, "synthesis[0].predictors[0]", "from its own confidential value"),
    ({"synthesis": [step(predictors=["room_type", "room_type:log(price)"])]}, "synthesis[0].predictors[1]", "own"),
    ({"synthesis": [step(predictors=["availability_365"]), DAYS]}, "synthesis[0].predictors[0]", "by a later step"),
    ({"measure": [{"method": "synthesis.linear_regression"}]}, "measure[0].method", "no method"),
    (
        {"measure": [{"method": "utility.ecdf"}, {"variables": []}]},
        "measure[1]",
        'needs a method, such as method = "risk.identification"',
    ),
    ({"threshold": [{"value": "utility.ecdf.max", "max": 1}]}, "threshold[0].value", "is not measured by this recipe"),
]


@pytest.mark.parametrize(("changes", "place", "message"), REFUSED)
def test_a_recipe_that_cannot_be_carried_out_is_refused_at_its_place(
    changes: dict[str, Any], place: str, message: str
) -> None:
    with pytest.raises(BadInput) as caught:
        Recipe.from_table({**table(), **changes})
    assert caught.value.place == place
    assert message in caught.value.message


@pytest.mark.parametrize(
    ("released", "place", "message"),
    [
        ("price", "release.released", "must be a list, such as"),
        (["price", "days"], "release.released[1]", 'no column "days"'),
        (["price", "room_type", "price"], "release.released[2]", '"price" is listed twice'),
    ],
)
def test_given_releases_that_cannot_be_are_refused(released: Any, place: str, message: str) -> None:
    with pytest.raises(BadInput) as caught:
        Recipe.from_table({"variables": table()["variables"], "release": {"released": released}})
    assert caught.value.place == place
    assert message in caught.value.message


@pytest.mark.parametrize("text", ["title = ", "[variables]\n[variables]", "a = 1\na = 2"])
def test_text_that_is_not_toml_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match=r"^recipe: not valid TOML"):
        Recipe.from_toml(text)


@pytest.mark.parametrize(
    ("setting", "path", "value"),
    [
        ("release.m=5", ("release", "m"), 5),
        ("data.where=price > 5", ("data", "where"), "price > 5"),
        ("data.where='price > 5'", ("data", "where"), "price > 5"),
        ("data.missing = refuse", ("data", "missing"), "refuse"),
        ("synthesis[1].transform=identity", ("synthesis", 1, "transform"), "identity"),
        ("synthesis[0].predictors=['room_type']", ("synthesis", 0, "predictors"), ["room_type"]),
        ("measure[0]={method='utility.propensity'}", ("measure", 0), {"method": "utility.propensity"}),
        ("threshold[0].max=0.2", ("threshold", 0, "max"), 0.2),
        ("variables.price.bounds=[0, '']", ("variables", "price", "bounds"), [0, ""]),
        ("synthesis[0].sigma_scale=5%", ("synthesis", 0, "sigma_scale"), "5%"),
        ("title=a=b", ("title",), "a=b"),
        ("title=", ("title",), ""),
    ],
)
def test_a_setting_changes_one_value(setting: str, path: tuple[str | int, ...], value: Any) -> None:
    before = table()
    changed: Any = apply_settings(before, [setting])
    expected: Any = copy.deepcopy(before)
    holder = expected
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = value
    assert changed == expected
    assert before == table()


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("release.m", "write key=value"),
        ("=5", "write key=value"),
        ('variables."a.b.kind=count', "a quotation mark is opened and not closed"),
        ("variables.'a.b.kind=count", "a quotation mark is opened and not closed"),
        ('variables."a"b.kind=count', "a quotation mark is opened and not closed"),
        (r'variables."a\q".kind=count', "as in TOML"),
        ("synthesis[7].transform=log", "has no entry 7; there are 2, counted from 0"),
        ("synthesis[²].transform=log", "has no entry ²"),
        ("synthesis.first.transform=log", "has no entry first"),
        ("synthesis[9]=5", "has no entry 9"),
        ("title.x.y=5", "leads into a value"),
        ("title.x=5", "leads into a value"),
    ],
)
def test_a_setting_that_leads_nowhere_is_refused(setting: str, message: str) -> None:
    with pytest.raises(BadInput) as caught:
        apply_settings(table(), [setting])
    assert caught.value.place.startswith("--set")
    assert message in caught.value.message


@pytest.mark.parametrize(
    ("setting", "name"),
    [
        ('variables."a.b".kind=count', "a.b"),
        ("variables.'a.b'.kind=count", "a.b"),
        ('variables["a.b"].kind=count', "a.b"),
        ('variables."a[0]=1".kind=count', "a[0]=1"),
        (r'variables."say \"a\"".kind=count', 'say "a"'),
        ("variables.\"'age'\".kind=count", "'age'"),
        ("variables.l'âge.kind=count", "l'âge"),
        ("variables.a b.kind=count", "a b"),
    ],
)
def test_a_setting_reaches_a_column_of_any_name_by_quotation_marks(setting: str, name: str) -> None:
    assert apply_settings({}, [setting]) == {"variables": {name: {"kind": "count"}}}


def test_settings_keep_what_json_cannot_hold() -> None:
    day = datetime.date(2020, 1, 1)
    assert apply_settings({"title": day}, ["release.m=5"]) == {"title": day, "release": {"m": 5}}
