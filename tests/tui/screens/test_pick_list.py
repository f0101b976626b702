"""Columns, terms, methods, values, levels and settings are chosen from lists that search; a limit is checked as it is typed."""

import tomllib

import pytest

from sfumato.engine.methods.registry import registry
from sfumato.tui.parts.fields import FormField, parse_value
from sfumato.tui.parts.form import Form
from sfumato.tui.parts.offers import OfferedValue
from sfumato.tui.parts.pick_list import MOST_SHOWN, PickList
from sfumato.tui.plan.plan import PlanTab
from sfumato.tui.plan.plan_forms import step_fields, threshold_fields, unit_term_offers

SMALL = (80, 24)
OPENED = ("enter", "down")


def plan_of(seat):
    return tomllib.loads(seat.app.screen_stack[1].query_one(PlanTab)._view.toml)


def field_text(seat, order):
    return seat.app.screen.query_one(f"#field-{order}").value


@pytest.mark.slow
async def test_several_columns_are_marked_and_keep_their_order(sit, built_data):
    async with sit(built_data, *OPENED, "f4", size=SMALL, tab="plan") as seat:
        assert isinstance(seat.app.screen, PickList)
        for words in (" 1 region", " 2 visits", "categorical", "log(income)"):
            assert words in seat.text
        await seat.press(*"REG", "space", *"square(i", "space")
        assert "marked: visits, square(income)" in seat.text
        await seat.press("enter")
        assert field_text(seat, 1) == "visits, square(income)"


@pytest.mark.slow
async def test_an_empty_field_lists_at_a_blank_and_a_search_is_taken_by_enter_alone(sit, built_data):
    async with sit(built_data, *OPENED, "end", "ctrl+u", "space", size=SMALL, tab="plan") as seat:
        assert isinstance(seat.app.screen, PickList)
        await seat.press(*"log(v", "enter")
        assert field_text(seat, 1) == "log(visits)"
        await seat.press("space")
        assert isinstance(seat.app.screen, Form), "where something stands a blank is typed"


@pytest.mark.slow
async def test_two_terms_are_joined_to_their_interaction(sit, built_data):
    async with sit(built_data, *OPENED, "f4", "act:join", "enter", size=SMALL, tab="plan") as seat:
        assert field_text(seat, 1) == "region:visits"


@pytest.mark.slow
async def test_what_no_list_has_is_taken_as_it_is_typed(sit, built_data):
    async with sit(built_data, *OPENED, "f4", *"region:log(visits)", "enter", size=SMALL, tab="plan") as seat:
        assert field_text(seat, 1) == "region, visits, region:log(visits)"


@pytest.mark.slow
async def test_escape_leaves_the_field_as_it_was(sit, built_data):
    async with sit(built_data, *OPENED, "f4", "space", "escape", size=SMALL, tab="plan") as seat:
        assert field_text(seat, 1) == "region, visits"


@pytest.mark.slow
async def test_all_that_are_found_are_marked_by_one_key(sit, built_data):
    async with sit(built_data, *OPENED, "end", "ctrl+u", "space", *"log1p", "asterisk", size=SMALL, tab="plan") as seat:
        assert "marked: log1p(visits), log1p(income)" in seat.text
        await seat.press("asterisk")
        assert "nothing is marked" in seat.text


@pytest.mark.slow
async def test_a_list_of_thousands_shows_some_and_says_how_many_more(sit, built_data):
    async with sit(built_data, size=SMALL, tab="plan") as seat:
        offers = [OfferedValue(f"column_{place}") for place in range(5000)]
        answers = []
        await seat.app.open(PickList("columns", offers), answers.append)
        await seat.press("end")
        assert f"{5000 - MOST_SHOWN:,} more are not listed" in seat.text
        await seat.press(*"4711", "enter")
        assert answers == [("column_4711",)]


@pytest.mark.slow
async def test_names_from_a_strange_file_do_not_reach_the_terminal_raw(sit, built_data):
    async with sit(built_data, size=SMALL, tab="plan") as seat:
        await seat.app.open(PickList("a\x1b]52;c;", [OfferedValue("x\x1b[31m[red]", "y\x07", "z\x9b")], several=True))
        await seat.press("space")
        assert not {"\x1b", "\x07", "\x9b"} & set(seat.text)
        assert "[red]" in seat.text


@pytest.mark.slow
async def test_a_threshold_starts_from_its_value_and_the_side_goes_with_its_direction(sit, built_data):
    """From the list of all values: seven keys and the limit; more is better, so at least is chosen."""
    async with sit(built_data, "a", *"prop", "enter", "enter", size=SMALL, tab="plan") as seat:
        await seat.press("a", *"lim", "enter")
        assert "lower is better" in seat.text
        assert "share of the records" in seat.text or "largest gap" in seat.text
        await seat.press(*"tmr", "enter")
        assert "[max]" in seat.text
        assert "Enter a limit · lower is better · share · 0 to 1" in seat.text
        await seat.press(*"0.2", "enter")
        assert plan_of(seat)["threshold"][-1] == {"value": "risk.identification.true_match_rate", "max": 0.2}


@pytest.mark.slow
async def test_50_for_a_share_is_refused_while_it_is_typed(sit, built_data):
    async with sit(built_data, "a", *"lim", "enter", *"tmr", "enter", *"50", size=SMALL, tab="plan") as seat:
        assert "✗ a share is between 0 and 1: 0.5?" in seat.text
        assert "✗ limit" in seat.text
        await seat.press("enter")
        assert isinstance(seat.app.screen, Form)


@pytest.mark.slow
async def test_the_wrong_side_is_warned_of_and_taken_only_the_second_time(sit, built_data):
    async with sit(
        built_data, "a", *"lim", "enter", *"tmr", "enter", *"0.5", "up", "right", size=SMALL, tab="plan"
    ) as seat:
        assert "! lower is better: did you mean max?" in seat.text
        await seat.press("enter")
        assert isinstance(seat.app.screen, Form)
        await seat.press("left")
        assert "did you mean" not in seat.text
        await seat.press("right", "enter")
        assert not isinstance(seat.app.screen, Form), "it was warned of once"


@pytest.mark.slow
async def test_a_limit_that_never_fails_is_warned_of(sit, built_data):
    async with sit(built_data, "a", *"lim", "enter", *"tmr", "enter", *"1", size=SMALL, tab="plan") as seat:
        assert "! a share is never above 1: it never fails" in seat.text


@pytest.mark.slow
async def test_the_side_follows_a_value_that_is_changed(sit, built_data):
    keys = (
        "a",
        *"nmi",
        "enter",
        "enter",
        "a",
        *"lim",
        "enter",
        *"tmr",
        "enter",
        "up",
        "up",
        "end",
        "ctrl+u",
        "space",
        *"minnmi",
        "enter",
    )
    async with sit(built_data, *keys, size=SMALL, tab="plan") as seat:
        assert "minimum_nmi" in seat.text
        assert "[min]" in seat.text
        assert "higher is better" in seat.text


@pytest.mark.slow
async def test_the_levels_of_a_variable_are_put_in_their_order_from_a_list(sit, built_data):
    async with sit(built_data, "enter", "down", "down", "down", "space", size=SMALL, tab="data") as seat:
        assert "records" in next(line for line in seat.text.splitlines() if "south" in line)
        await seat.press(*"sou", "space", *"nor", "enter", "enter")
        assert plan_variables(seat)["region"]["levels"] == ["south", "north"]


def plan_variables(seat):
    from sfumato.tui.data.data import DataTab

    return tomllib.loads(seat.app.screen.query_one(DataTab)._history.now.toml)["variables"]


@pytest.mark.slow
async def test_a_doubtful_limit_stands_above_the_plan_and_in_the_question_before_it_runs(sit, built_data):
    from sfumato.workspace.plan.drafts import find_draft, save_draft
    from sfumato.workspace.store.workspace import Workspace

    with Workspace.open(built_data) as workspace:
        draft = find_draft(workspace, 1)
        save_draft(workspace, draft.with_text(draft.toml.replace("max = 0.9", "min = 0.9")))
    async with sit(built_data, size=(160, 50), tab="plan") as seat:
        assert "! threshold[0].min: lower is better: did you mean max?" in seat.text
        await seat.press("R")
        assert "did you mean max?" in seat.text.split("Run this plan?")[1]
        await seat.press("n")


TABLE = {
    "measure": [{"method": "utility.propensity", "model": "cart"}, {"method": "risk.anonymity", "quasi_identifiers": ["a"]}],
    "study": [{"method": "studies.intruder_uncertainty", "variable": "b", "levels": [0.0, 0.25]}],
    "variables": {"a": {"kind": "categorical", "role": "quasi_identifier"}, "b": {"kind": "count", "title": "visits"}},
}  # fmt: skip


def offers_of(fields, name):
    return {offer.value: offer for offer in next(field for field in fields if field.name == name).list_offers}


def test_the_list_of_values_has_every_output_with_method_unit_and_direction():
    values = offers_of(threshold_fields({}, TABLE), "value")
    for step in (*TABLE["measure"], *TABLE["study"]):
        method = registry()[step["method"]]
        assert {f"{method.key}.{output.name}" for output in method.result_outputs} <= set(values)
    assert "higher is better" in values["risk.anonymity.k"].note
    assert "records" in values["risk.anonymity.k"].note
    assert values["risk.anonymity.k"].explanation


@pytest.mark.parametrize(("value", "bound"), [("risk.anonymity.k", "min"), ("utility.propensity.pmse", "max")])
def test_the_side_of_a_new_limit_is_that_of_the_direction(value, bound):
    fields = {field.name: field for field in threshold_fields({"value": value}, TABLE)}
    assert fields["bound"].value == bound
    kept = {field.name: field for field in threshold_fields({"value": value, "max_ratio": 2}, TABLE)}
    assert kept["bound"].value == "max_ratio"


def test_levels_and_settings_are_those_of_the_plan():
    fields = threshold_fields({}, TABLE)
    assert {"0.0", "0.25"} <= set(offers_of(fields, "level"))
    assert "model = cart" in offers_of(fields, "params")


def test_columns_are_offered_only_where_their_kind_can_be_used():
    spec = registry()["anonymisation.generalisation"]
    fields = step_fields(spec, {}, TABLE["variables"])
    assert set(offers_of(fields, "widths")) == {"b"}
    assert set(offers_of(fields, "hierarchies")) == {"a"}
    assert "quasi_identifier" in offers_of(fields, "quasi_identifiers")["a"].note


def test_terms_of_earlier_records_are_offered_where_units_are_drawn():
    variables = {
        "home": {"kind": "count", "role": "unit"}, "region": {"kind": "binary", "level": "unit"},
        "job": {"kind": "categorical"}, "age": {"kind": "count"},
    }  # fmt: skip
    table = {"variables": variables, "release": {"units": "drawn"}}
    spec = registry()["synthesis.cart"]
    fields = step_fields(spec, {}, variables, unit_term_offers(table))
    terms = {
        "first(job)",
        "previous(job)",
        *(f"{name}(age)" for name in ("first", "previous", "least", "largest", "mean")),
    }
    assert set(offers_of(fields, "predictors")) == {*variables, "size", "place", "size - place", *terms}
    assert set(offers_of(fields, "target")) == set(variables)
    assert unit_term_offers({"variables": variables}) == {}


@pytest.mark.parametrize(
    ("kind", "text", "chosen", "after"),
    [
        ("list", "a, b", ("b", "c d"), "b, c d"),
        ("list", "", ("x, y",), '"x, y"'),
        ("table", "price = 5, days = 10%", ("days", "rooms"), "days = 10%, rooms = "),
        ("table", "a = ", ("b",), "b = "),
        ("text", "a", ("b",), "b"),
        ("value", "", ("0.25",), "0.25"),
    ],
)
def test_a_text_says_what_was_chosen_and_keeps_what_it_said_of_it(kind, text, chosen, after):
    field = FormField("x", "", kind, offers=(OfferedValue("a"),))
    assert field.text_for_chosen(text, chosen) == after


def test_what_a_text_says_is_marked_in_the_list():
    assert FormField("x", "", "list").chosen_values("a, log(b), c:d") == ("a", "log(b)", "c:d")
    assert FormField("x", "", "table", offers=(OfferedValue("model = cart"),)).chosen_values(
        "model = cart, cp = 0"
    ) == (
        "model = cart",
        "cp",
    )
    assert parse_value(FormField("x", "", "list").text_for_chosen("", ("1", "a b")), "list", "x") == [1, "a b"]
