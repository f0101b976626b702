"""Detection of units: files of households and panels are found, files of people are not, however they are sorted."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from sfumato.engine.data.schema import Kind, Role, Schema, Variable
from sfumato.engine.errors import BadInput
from sfumato.workspace.ingest.columns import ColumnProfile, profile_columns
from sfumato.workspace.ingest.raw_tables import RawTable
from sfumato.workspace.ingest.unit_detection import (
    CodedTable,
    find_hidden_units,
    find_stacked_waves,
    list_unit_candidates,
    number_runs,
    propose_unit,
)
from sfumato.workspace.ingest.whole_units import number_hidden_units
from sfumato.workspace.service.importing import ImportSelection, draft_recipe
from tests.prepared.unit_tables import make_households, make_panel, stack_waves


def single_people(records: int = 2_000, seed: int = 3) -> pd.DataFrame:
    """Return people who have nothing to do with each other."""
    rng = np.random.default_rng(seed)
    columns = {
        name: rng.integers(0, levels, records)
        for name, levels in (("sex", 2), ("school", 5), ("town", 30), ("trade", 12), ("age", 70))
    }
    return pd.DataFrame({**columns, "income": rng.lognormal(8, 1, records).round(2)})


def whole_numbers(frame: pd.DataFrame) -> list[str]:
    """Return the columns that may number units."""
    return [name for name in frame if (frame[name] % 1 == 0).all()]


def test_the_number_of_a_household_is_found_with_what_is_the_same_within_it() -> None:
    frame = make_households()
    found = propose_unit(CodedTable.from_frame(frame), whole_numbers(frame))
    assert found is not None
    assert (found.name, found.n_units, found.order) == ("household", 400, "line")
    assert set(found.unit_level) == {"region", "rooms", "heating", "rent"}


@pytest.mark.parametrize("name", ["household", "HHID", "idnr", "patient_id", "q17"])
def test_names_help_and_are_not_needed_where_records_follow_each_other(name: str) -> None:
    frame = make_households().rename(columns={"household": name})
    found = propose_unit(CodedTable.from_frame(frame), whole_numbers(frame))
    assert found is not None
    assert found.name == name


def test_a_named_unit_is_found_in_any_order_of_the_records() -> None:
    frame = make_households().sample(frac=1, random_state=1)
    found = propose_unit(CodedTable.from_frame(frame), whole_numbers(frame))
    assert found is not None
    assert (found.name, found.order) == ("household", "")


def test_the_wave_of_a_panel_orders_its_people() -> None:
    frame = make_panel()
    found = propose_unit(CodedTable.from_frame(frame), whole_numbers(frame))
    assert found is not None
    assert (found.name, found.order) == ("id", "year")


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("order", [[], ["age"], ["town", "sex"], ["town", "school", "trade", "sex", "age"], ["income"]])
def test_no_unit_is_found_among_single_people_however_they_are_sorted(seed: int, order: list[str]) -> None:
    frame = single_people(seed=seed)
    frame = frame.sort_values(order).reset_index(drop=True) if order else frame
    assert propose_unit(CodedTable.from_frame(frame), whole_numbers(frame)) is None
    assert find_hidden_units(CodedTable.from_frame(frame)) is None


@pytest.mark.parametrize("make", [make_households, make_panel])
def test_units_without_a_number_are_found_by_their_neighbours(make) -> None:
    frame = make().drop(columns=["line", "sex", "age"] if make is make_households else ["id", "year"])
    frame = frame.drop(columns="household", errors="ignore").assign(again=np.arange(len(frame)) % 3 == 0)
    found = find_hidden_units(CodedTable.from_frame(frame))
    assert found is not None
    assert found.like_share > 10 * found.chance_share


def test_shuffled_records_hide_units_without_a_number() -> None:
    """The control: what speaks for units is that their records follow each other."""
    frame = make_panel().drop(columns=["id", "year"]).sample(frac=1, random_state=1).reset_index(drop=True)
    assert find_hidden_units(CodedTable.from_frame(frame)) is None


def test_runs_are_numbered_from_1_in_the_order_of_the_file() -> None:
    assert number_runs([np.array([1, 1, 2, 2, 2]), np.array([0, 0, 0, 5, 5])]).tolist() == [1, 1, 2, 3, 3]


def select_columns_of(frame: pd.DataFrame, **options: tuple[str, ...]) -> dict[str, ColumnProfile]:
    """Return the columns of an import with these options, by name."""
    columns = ImportSelection(**options).select_columns(profile_columns(RawTable.from_frame(frame)))
    return {column.variable.name: column for column in columns}


def test_an_import_asks_about_the_unit_and_its_recipe_declares_it() -> None:
    frame = make_households()
    columns = select_columns_of(frame)
    assert columns["household"].variable.role is Role.UNIT
    assert columns["household"].is_included
    assert "400 units" in columns["household"].question
    assert columns["rent"].variable.level == "unit"
    source = ImportSelection().data_source("people.csv", None, list(columns.values()))
    assert source.order == "line"
    assert 'role = "unit"' in draft_recipe(source, "people", list(columns.values()), (0, len(frame)))


def test_the_owner_says_that_each_record_is_a_person() -> None:
    columns = select_columns_of(make_households(), kinds=("household=categorical",))
    assert columns["household"].variable.role is Role.OTHER
    assert not any(column.variable.level for column in columns.values())
    assert not columns["household"].question
    assert ImportSelection().data_source("people.csv", None, list(columns.values())).order == ""


def test_the_owner_names_another_unit() -> None:
    columns = select_columns_of(make_households(), kinds=("rent=unit",))
    assert columns["rent"].variable.role is Role.UNIT
    assert not columns["household"].is_included
    with pytest.raises(BadInput, match="both number units"):
        ImportSelection(keep=("household",)).select_columns(
            [*select_columns_of(make_households()).values(), *select_columns_of(make_panel()).values()]
        )


def test_a_hidden_unit_is_a_column_more_which_can_be_left_out() -> None:
    frame = make_panel().drop(columns=["id", "year"])
    columns = select_columns_of(frame)
    unit = columns["unit"].variable
    assert set(unit.runs_of) == {"sex", "school", "town", "trade"}
    raw = number_hidden_units(RawTable.from_frame(frame), Schema((unit,)))
    ((_, numbers),) = raw.iterate_columns(["unit"])
    people = np.repeat(np.arange(300), 4)
    # of two people who follow each other and are equal in all four, one in 3,600
    by_person = pd.Series(numbers).groupby(people)
    assert (by_person.max() == by_person.min()).all()
    assert numbers.nunique() >= 297
    assert not select_columns_of(frame, leave_out=("unit",))["unit"].is_included


def test_runs_are_those_of_the_whole_file_whatever_records_are_kept() -> None:
    frame = pd.DataFrame({"a": [1, 2, 1, 1], "b": [1, 1, 1, 1]})
    unit = select_columns_of(make_panel().drop(columns=["id", "year"]))["unit"].variable
    schema = Schema((type(unit)("unit", unit.kind, Role.UNIT, runs_of=("a",)),))
    raw = number_hidden_units(RawTable.from_frame(frame).keep_records(np.array([0, 2, 3])), schema)
    ((_, numbers),) = raw.iterate_columns(["unit"])
    assert numbers.tolist() == [1, 3, 3]
    with pytest.raises(BadInput, match='no column "c"'):
        number_hidden_units(
            RawTable.from_frame(frame), Schema((type(unit)("unit", unit.kind, Role.UNIT, runs_of=("c",)),))
        )


@pytest.mark.parametrize("missing", [0.0, 0.1, 0.2])
def test_waves_of_the_same_people_are_found_although_some_miss_one(missing: float) -> None:
    for seed in range(5):
        frame = stack_waves(300, missing, seed).drop(columns="id")
        found = find_stacked_waves(CodedTable.from_frame(frame))
        assert found is not None
        assert found.wave == "year"
        assert found.like_share > 5 * found.chance_share
    asked = select_columns_of(frame)["year"].question
    assert asked.startswith("each value may be a wave of the same people")


def test_waves_of_other_people_are_no_panel() -> None:
    """The control: of 60 files with fresh people in each wave, however they are sorted, none is taken for a panel."""
    found = 0
    for seed in range(20):
        for order in ([], ["town"], ["sex", "town"]):
            parts = [single_people(300, 100 * seed + wave).drop(columns="age").assign(year=wave) for wave in range(3)]
            parts = [one.sort_values(order) if order else one for one in parts]
            found += find_stacked_waves(CodedTable.from_frame(pd.concat(parts))) is not None
    assert found == 0


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_a_number_whose_name_says_nothing_is_found_where_people_come_in_turn(missing: float) -> None:
    frame = stack_waves(300, missing, 3).rename(columns={"id": "q17"})
    found = propose_unit(CodedTable.from_frame(frame), whole_numbers(frame))
    assert found is not None
    assert (found.name, found.order) == ("q17", "year")
    mixed = frame.sample(frac=1, random_state=1).reset_index(drop=True)
    assert propose_unit(CodedTable.from_frame(mixed), whole_numbers(mixed)) is None, "the control"


def test_the_records_of_a_county_are_of_no_unit() -> None:
    variables = [Variable(name, Kind.COUNT) for name in ("county_id", "household", "state")]
    assert list_unit_candidates([*variables, Variable("weight", Kind.CONTINUOUS)]) == ["household"]
