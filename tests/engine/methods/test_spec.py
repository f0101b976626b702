from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import pytest

from sfumato.engine.data.schema import Kind, Schema, Variable
from sfumato.engine.errors import BadInput
from sfumato.engine.matching.radius import Radius
from sfumato.engine.methods.spec import Param, Spec, Variant
from sfumato.engine.recipe.recipe import Recipe

SCHEMA = Schema(
    (Variable("room", Kind.CATEGORICAL), Variable("reviews", Kind.COUNT), Variable("price", Kind.CONTINUOUS))
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Example(Spec):
    """One field of every type a recipe can write."""

    k: Annotated[int, Param("a whole number", ge=2, le=9)]
    share: Annotated[float, Param("a share", gt=0, lt=1)] = 0.5
    exact: Annotated[bool, Param("a switch")] = False
    name: Annotated[str, Param("a text")] = ""
    model: Annotated[Literal["logit", "cart"], Param("a choice")] = "logit"
    degree: Annotated[Literal[1, 2], Param("a choice of numbers")] = 1
    limit: Annotated[int | None, Param("a number or nothing", ge=1)] = None
    levels: Annotated[tuple[float, ...], Param("numbers", ge=0)] = (0.0, 0.1)
    known: Annotated[tuple[str, ...], Param("variables", names="variables")] = ()
    predictors: Annotated[tuple[str, ...], Param("terms", names="terms")] = ()
    variable: Annotated[
        str | None, Param("a number's name", names="variables", kinds=(Kind.COUNT, Kind.CONTINUOUS))
    ] = None
    radius: Annotated[Mapping[str, Radius], Param("radii", names="variables")] = field(default_factory=dict)


FULL: dict[str, Any] = {
    "k": 3,
    "share": 0.25,
    "exact": True,
    "name": "x",
    "model": "cart",
    "degree": 2,
    "limit": 4,
    "levels": [0.0, 0.5],
    "known": ["room"],
    "predictors": ["log1p(reviews)", "room:price"],
    "variable": "price",
    "radius": {"price": "5%", "reviews": 5},
}


def test_a_table_comes_back_the_same() -> None:
    spec = Example.from_table(FULL, "m")
    assert spec.radius["price"] == Radius.parse("5%")
    assert spec.to_table() == FULL
    assert Example.from_table(spec.to_full_table(), "m") == spec


def test_defaults_are_not_written() -> None:
    spec = Example.from_table({"k": 3}, "m")
    assert spec == Example(k=3)
    assert spec.to_table() == {"k": 3}
    assert set(spec.to_full_table()) == {info.name for info in Example.params()}


def test_whole_numbers_are_numbers() -> None:
    assert Example.from_table({"k": 3, "levels": [0, 1]}, "m").levels == (0.0, 1.0)


def test_declared_fields_tell_their_choices_and_whether_they_are_required() -> None:
    infos = {info.name: info for info in Example.params()}
    assert [name for name, info in infos.items() if info.is_required] == ["k"]
    assert infos["model"].choices == ("logit", "cart")
    assert infos["share"].choices == ()
    assert infos["k"].param.limits_text == "at least 2 and at most 9"
    assert infos["share"].param.limits_text == "above 0 and below 1"


@pytest.mark.parametrize(
    ("table", "place", "message"),
    [
        ({}, "m.k", "must be given: a whole number"),
        ({"kk": 3}, "m.kk", 'unknown key; did you mean "k"?'),
        ({"k": 3, "zzzz": 3}, "m.zzzz", "unknown key; known: k, share"),
        ({"k": 1}, "m.k", "1 must be at least 2 and at most 9"),
        ({"k": 10}, "m.k", "10 must be at least 2 and at most 9"),
        ({"k": 3.0}, "m.k", "3.0 must be a whole number, at least 2 and at most 9"),
        ({"k": True}, "m.k", "True must be a whole number"),
        ({"k": "3"}, "m.k", "'3' must be a whole number"),
        ({"k": 3, "share": 0}, "m.share", "above 0"),
        ({"k": 3, "share": 1.0}, "m.share", "below 1"),
        ({"k": 3, "share": float("nan")}, "m.share", "must be"),
        ({"k": 3, "levels": [float("inf")]}, "m.levels[0]", "must be"),
        ({"k": 3, "share": True}, "m.share", "True must be a number"),
        ({"k": 3, "exact": 1}, "m.exact", "1 must be true or false"),
        ({"k": 3, "name": 5}, "m.name", "5 must be text"),
        ({"k": 3, "model": "logi"}, "m.model", '"logi" is not one of logit, cart; did you mean "logit"?'),
        ({"k": 3, "model": ["logit"]}, "m.model", "is not one of logit, cart"),
        ({"k": 3, "degree": 3}, "m.degree", '"3" is not one of 1, 2'),
        ({"k": 3, "limit": 0}, "m.limit", "at least 1"),
        ({"k": 3, "levels": 0.5}, "m.levels", "must be a list"),
        ({"k": 3, "levels": [0.1, -1.0]}, "m.levels[1]", "-1.0 must be at least 0"),
        ({"k": 3, "known": "room"}, "m.known", 'must be a list, such as ["price"]'),
        ({"k": 3, "known": [1]}, "m.known[0]", "1 must be text"),
        ({"k": 3, "radius": 5}, "m.radius", "must be a table"),
        ({"k": 3, "radius": {"price": "near"}}, "m.radius.price", "near"),
    ],
)  # fmt: skip
def test_a_table_that_does_not_fit_is_refused_at_its_place(table: dict[str, Any], place: str, message: str) -> None:
    with pytest.raises(BadInput) as caught:
        Example.from_table(table, "m")
    assert caught.value.place == place
    assert message in caught.value.message


@pytest.mark.parametrize(
    ("table", "place", "message"),
    [
        ({"known": ["room", "rooms"]}, "m.known[1]", 'did you mean "room"?'),
        ({"variable": "prices"}, "m.variable", 'did you mean "price"?'),
        ({"variable": "room"}, "m.variable", '"room" is categorical; this needs count or continuous'),
        ({"predictors": ["room", "log(room)"]}, "m.predictors[1]", "has levels"),
        ({"radius": {"prce": 5}}, "m.radius.prce", 'did you mean "price"?'),
    ],
)
def test_names_are_held_against_the_schema(table: dict[str, Any], place: str, message: str) -> None:
    spec = Example.from_table({"k": 3, **table}, "m")
    with pytest.raises(BadInput) as caught:
        spec.check(SCHEMA, "m")
    assert caught.value.place == place
    assert message in caught.value.message


def test_names_that_are_there_pass() -> None:
    Example.from_table(FULL, "m").check(SCHEMA, "m")


def test_predictor_terms_carry_their_places() -> None:
    assert list(Example.from_table(FULL, "m").predictor_terms("m")) == [
        ("m.predictors[0]", "log1p(reviews)"),
        ("m.predictors[1]", "room:price"),
    ]


def test_a_method_without_parameters_says_so() -> None:
    @dataclass(frozen=True, kw_only=True, slots=True)
    class Nothing(Spec):
        """No parameters."""

    with pytest.raises(BadInput, match="this method has no parameters"):
        Nothing.from_table({"k": 1}, "m")
    assert Nothing.from_table({}, "m").to_table() == {}
    assert Nothing().grid() == ()
    assert Nothing().for_release(SCHEMA, ()) == Nothing()


Names = Annotated[tuple[str, ...], Param("names of variables", names="variables", reported=True)]


@dataclass(frozen=True, kw_only=True, slots=True)
class Lists(Spec):
    names: Names = ()
    others: Annotated[Names, Variant("other names", reported=False)] = ()
    terms: Annotated[tuple[str, ...], Param("terms", names="terms")] = ()
    sizes: Annotated[tuple[int, ...], Param("sizes", unique=True)] = ()
    weights: Annotated[tuple[int, ...], Param("weights")] = ()
    orders: Annotated[tuple[str, ...], Param("orders", names="variables", unique=False)] = ()


@pytest.mark.parametrize(
    ("table", "refusal"),
    [
        ({"names": ["room", "price", "room"]}, 'm.names[2]: "room" is listed twice'),
        ({"others": ["room", "room"]}, 'm.others[1]: "room" is listed twice'),
        ({"sizes": [2, 2]}, "m.sizes[1]: 2 is listed twice"),
        ({"names": ["room", "price"], "others": ["room"]}, ""),
        ({"terms": ["room", "room"], "weights": [2, 2], "orders": ["room", "room"]}, ""),
    ],
)
def test_a_list_that_holds_each_item_once_refuses_one_twice(table: dict[str, Any], refusal: str) -> None:
    spec = Lists.from_table(table, "m")
    if not refusal:
        spec.check_repeats("m")
        return
    with pytest.raises(BadInput) as caught:
        spec.check_repeats("m")
    assert str(caught.value) == refusal


def test_a_variant_changes_what_it_names_of_an_annotated_type() -> None:
    names, others, *_ = (info.param for info in Lists.params())
    assert names == Param("names of variables", names="variables", reported=True)
    assert others == Param("other names", names="variables", reported=False)


def test_a_variable_named_twice_is_refused_in_a_new_recipe_and_read_in_a_stored_one() -> None:
    table = {
        "variables": {"price": {"kind": "continuous"}, "room": {"kind": "count"}},
        "release": {"released": ["price"]},
        "measure": [{"method": "utility.ecdf", "variables": ["price", "price"]}],
    }
    with pytest.raises(BadInput) as caught:
        Recipe.from_table(table)
    assert caught.value.place == "measure[0].variables[1]"
    assert Recipe.from_table(table, stored=True).to_table()["measure"] == table["measure"]
