"""The form of a table in Plan: it writes the table and the rules, keeps other keys, and says what is wrong at its field."""

import pytest

from sfumato.engine.data.toml import read_toml
from sfumato.engine.errors import BadInput
from sfumato.engine.recipe.recipe import Recipe
from sfumato.tui.plan.plan_forms import new_step
from sfumato.tui.plan.table_form import form_of_step, proposed_name, table_fields, table_sections
from sfumato.tui.widgets.entries import TomlText
from sfumato.workspace.plan.edits import StepPlace, parse_plan, remove_step

PLAN = """title = "t"

[variables]
region = { kind = "categorical" }
sex = { kind = "binary" }
pay = { kind = "continuous" }
"""
WITH_TABLE = f"""{PLAN}
[[table]]
name = "mine"
by = ["region"]
without_total = ["region"]

[tables]
threshold = 4
cost = "cells"
"""


def form_of(toml, place=None):
    view = parse_plan(toml)
    edited = []
    place, step = (place, view.table["table"][place.index]) if place else new_step(view, "table")
    form, apply = form_of_step(view, place, step, lambda change, want: edited.append(change(toml)))
    return form, apply, edited


def test_a_plan_without_rules_is_offered_a_threshold():
    fields = {field.name: field for field in table_fields({}, read_toml(PLAN))}
    assert list(fields)[:2] == ["by", "value"]
    assert fields["threshold"].value == 10
    assert [offer.value for offer in fields["by"].list_offers] == ["region", "sex", "pay"]
    assert [offer.value for offer in fields["value"].list_offers] == ["pay"]


def test_the_form_writes_the_table_and_the_rules():
    _, apply, edited = form_of(PLAN)
    apply({"by": ["region", "sex"], "value": "pay", "threshold": 5, "p_percent": 15})
    recipe = Recipe.from_toml(edited[0])
    assert [(one.name, one.by, one.value) for one in recipe.tables] == [
        ("pay by region and sex", ("region", "sex"), "pay")
    ]
    assert recipe.table_protection.threshold == 5
    assert recipe.table_protection.p_percent == 15


def test_keys_without_a_field_and_the_name_stay():
    _, apply, edited = form_of(WITH_TABLE, StepPlace("table", 0))
    apply({"by": ["region"], "threshold": 6, "name": "mine"})
    table = read_toml(edited[0])
    assert table["table"] == [{"name": "mine", "by": ["region"], "without_total": ["region"]}]
    assert table["tables"] == {"threshold": 6, "cost": "cells"}


def test_a_name_is_its_own():
    table = read_toml(WITH_TABLE)
    table["table"].append({"name": "records by region"})
    assert proposed_name({"by": ["region"]}, {}, table) == "records by region 2"
    assert proposed_name({}, {}, table) == "records"
    own, _ = table_sections({"by": ["region"]}, table["table"][1], table)
    assert own["name"] == "records by region"


@pytest.mark.parametrize(
    ("answers", "field", "message"),
    [
        ({"by": ["regin"], "threshold": 3}, "by", "did you mean"),
        ({"by": ["pay"], "threshold": 3}, "by", "no groups"),
        ({"by": ["region"]}, "", "no rule says"),
        ({"by": ["region"], "p_percent": 15}, "p_percent", "no table has a value"),
        ({"by": ["region"], "threshold": 0}, "threshold", "at least 1"),
    ],
)
def test_a_problem_is_told_at_its_field(answers, field, message):
    form, _, _ = form_of(PLAN)
    with pytest.raises(BadInput) as caught:
        form._check(answers)
    assert caught.value.place == field
    assert message in caught.value.message


def test_the_rules_go_with_the_last_table():
    assert "tables" not in read_toml(remove_step(WITH_TABLE, StepPlace("table", 0)))
    assert parse_plan(remove_step(WITH_TABLE, StepPlace("table", 0))).problem == ""


@pytest.mark.slow
async def test_a_table_is_added_in_the_plan_without_toml(sit, anonymising):
    async with sit(anonymising, size=(80, 24)) as seat:
        await seat.press("a", *"table")
        await seat.until(lambda: "A table to protect and print" in seat.text)
        await seat.press("enter")
        assert "Table to protect and print" in seat.text
        await seat.press(*"work", "enter")
        await seat.until(lambda: "[[table]]" in seat.app.screen.query_one(TomlText).text)
        text = seat.app.screen.query_one(TomlText).text
        assert read_toml(text)["table"] == [{"name": "records by work", "by": ["work"]}]
        assert read_toml(text)["tables"] == {"threshold": 10}
        assert "records by work" in seat.text
