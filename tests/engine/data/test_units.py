"""Tests of units of several records: against loops over records, and against the definition of equal units."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.engine.adversary.cells import unit_keys
from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.schema import Kind, MissingPolicy, Role, Schema, Variable
from sfumato.engine.data.units import Units, code_unit_numbers
from sfumato.engine.errors import BadInput
from sfumato.engine.recipe.recipe import Recipe

codes = st.lists(st.integers(-1, 4), min_size=1, max_size=25)


@given(codes)
def test_units_agree_with_a_loop_over_the_records(given_codes: list[int]) -> None:
    members: dict[object, list[int]] = {}
    for at, code in enumerate(given_codes):
        members.setdefault(("alone", at) if code < 0 else code, []).append(at)
    units = Units.from_codes(np.array(given_codes))
    lists = list(members.values())
    assert [int(one) for one in units.sizes] == [len(one) for one in lists]
    assert [[int(r) for r in units.records_of(np.array([at]))] for at in range(len(units))] == lists
    assert [int(one) for one in units.first_records] == [one[0] for one in lists]
    place = {record: at + 1 for one in lists for at, record in enumerate(one)}
    before = {record: -1 if at == 0 else one[at - 1] for one in lists for at, record in enumerate(one)}
    assert [int(one) for one in units.places] == [place[record] for record in range(len(given_codes))]
    assert [int(one) for one in units.previous_records] == [before[record] for record in range(len(given_codes))]
    values = np.arange(len(given_codes)) ** 2
    assert [int(one) for one in units.sum_by_unit(values)] == [sum(r**2 for r in one) for one in lists]
    assert [int(one) for one in units.largest_by_unit(values)] == [max(r**2 for r in one) for one in lists]


@given(codes, st.lists(st.integers(0, 2), min_size=25, max_size=25))
def test_units_are_equal_where_their_records_are_in_any_order(given_codes: list[int], values: list[int]) -> None:
    rows = np.array(values[: len(given_codes)], dtype=np.uint64)
    units = Units.from_codes(np.array(given_codes))
    keys = unit_keys(rows, units)
    records = [tuple(sorted(rows[units.records_of(np.array([at]))].tolist())) for at in range(len(units))]
    for one in range(len(units)):
        for other in range(len(units)):
            assert (keys[one] == keys[other]) == (records[one] == records[other])


def test_records_of_a_unit_follow_a_given_order() -> None:
    units = Units.from_codes(np.array([0, 1, 0, 0, 1]), np.array([3.0, 2.0, 1.0, 2.0, 2.0]))
    assert units.order.tolist() == [2, 3, 0, 1, 4]
    assert units.places.tolist() == [3, 1, 1, 2, 2]


def test_a_unit_differs_where_its_records_have_several_values() -> None:
    units = Units.from_codes(np.array([0, 0, 1, 1, 2, 2]))
    assert units.differing_units(np.array([1.0, 1.0, 2.0, 3.0, np.nan, np.nan])).tolist() == [1]
    assert units.differing_units(np.array([np.nan, 1.0, 2.0, 2.0, 0.0, 0.0])).tolist() == [0]


def table_of_households(numbers: list[object]) -> Microdata:
    """Return a table whose records have these numbers of a household."""
    schema = Schema((Variable("household", Kind.CATEGORICAL, Role.UNIT), Variable("age", Kind.COUNT)))
    frame = pd.DataFrame({"household": numbers, "age": range(len(numbers))})
    return conform_to_schema(frame, schema, MissingPolicy.KEEP)


def test_a_table_has_no_units_where_every_record_is_one() -> None:
    assert table_of_households(["a", "b", "c"]).units is None
    assert table_of_households(["a", "b", None]).units is None
    assert table_of_households(["a", "b", "c"]).n_units == 3
    assert table_of_households(["a", "b", "a"]).n_units == 2


def test_records_without_a_number_are_units_of_their_own() -> None:
    units = table_of_households(["a", "a", None, None, "b"]).units
    assert units is not None
    assert units.sizes.tolist() == [2, 1, 1, 1]


def test_a_unit_is_one_however_its_number_is_written() -> None:
    assert table_of_households(["7", "007", "7.0", " 7", "8"]).n_units == 2
    assert table_of_households(["a7", "a07", "0a7"]).units is None
    assert table_of_households(["0", "00", "1.50", "1.5"]).n_units == 3
    assert code_unit_numbers(pd.Series([7.0, np.nan, 7.0])).tolist() == [0, -1, 0]


UNIT = {"kind": "categorical", "role": "unit"}


@pytest.mark.parametrize(
    ("variables", "data", "place"),
    [
        ({"a": UNIT, "b": UNIT}, {}, "variables.b.role"),
        ({"a": {"kind": "continuous", "role": "unit"}}, {}, "variables.a.kind"),
        ({"a": {"kind": "count", "level": "unit"}}, {}, "variables.a.level"),
        ({"a": UNIT | {"level": "unit"}}, {}, "variables.a.level"),
        ({"a": UNIT, "b": {"kind": "count"}}, {"order": "c"}, "data.order"),
        ({"a": UNIT, "b": {"kind": "count"}}, {"order": "a"}, "data.order"),
        ({"b": {"kind": "count"}}, {"order": "b"}, "data.order"),
    ],
)
def test_wrong_declarations_of_units_are_named(variables: dict, data: dict, place: str) -> None:
    with pytest.raises(BadInput) as caught:
        Recipe.from_table({"data": data, "variables": variables})
    assert caught.value.place == place


def test_the_order_of_a_recipe_orders_the_records_of_a_unit() -> None:
    variables = {"person": UNIT, "wave": {"kind": "count"}, "region": {"kind": "count", "level": "unit"}}
    recipe = Recipe.from_table({"data": {"order": "wave"}, "variables": variables})
    frame = pd.DataFrame({"person": ["a", "a", "b"], "wave": [2, 1, 1], "region": [1, 1, 1]})
    units = conform_to_schema(frame, recipe.schema).units
    assert units is not None
    assert units.order.tolist() == [1, 0, 2]
    assert recipe.schema.unit == "person"
    assert recipe.schema.unit_level == ("region",)
    assert Recipe.from_table(recipe.to_table()).schema.order == "wave"


@pytest.mark.parametrize(
    ("section", "step", "place"),
    [
        ("synthesis", {"method": "cart", "target": "home"}, "synthesis[0].target"),
        (
            "synthesis",
            {"method": "cart", "target": "pay", "predictors": ["area", "home"]},
            "synthesis[0].predictors[1]",
        ),
        (
            "anonymisation",
            {"method": "mondrian", "k": 3, "quasi_identifiers": ["home"]},
            "anonymisation[0].quasi_identifiers",
        ),
    ],
)
def test_no_step_makes_or_uses_the_number_of_a_unit(section: str, step: dict, place: str) -> None:
    variables = {
        "home": UNIT,
        "area": {"kind": "categorical", "role": "quasi_identifier"},
        "pay": {"kind": "continuous"},
    }
    with pytest.raises(BadInput, match='"home" numbers units') as caught:
        Recipe.from_table({"variables": variables, section: [step]})
    assert caught.value.place == place


@pytest.mark.parametrize("missing", [0.0, 0.1, 0.3])
def test_people_of_waves_come_in_turn_and_people_in_any_order_do_not(missing: float) -> None:
    """Of 20 files each: all panels, none whose waves are in another order each, none in any order."""
    rng = np.random.default_rng(6)
    waves = [[np.flatnonzero(rng.random(200) >= missing) for _ in range(3)] for _ in range(20)]
    stacked = [np.concatenate(one) for one in waves]
    assert all(Units.from_codes(one).come_in_turn for one in stacked)
    assert all(Units.from_codes(one[::-1]).come_in_turn for one in stacked)
    assert not any(Units.from_codes(rng.permutation(one)).come_in_turn for one in stacked)
    mixed = [np.concatenate([rng.permutation(wave) for wave in one]) for one in waves]
    assert not any(Units.from_codes(one).come_in_turn for one in mixed)
    assert not Units.from_codes(np.arange(200)).come_in_turn
