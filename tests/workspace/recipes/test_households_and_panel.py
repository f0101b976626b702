"""The recipes of whole units: their tables come from the generators, and the truth of these comes back in a release."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from sfumato.engine.execution.tasks import draw_dataset, fit_model
from sfumato.engine.methods.run import PUBLIC
from sfumato.workspace.ingest.files import find_source
from sfumato.workspace.recipes import find_recipe
from sfumato.workspace.service.prepare import prepare_run
from tests.prepared.census import household_types, impossible_households, total_variation
from tests.prepared.panel import stayed, transitions
from tests.prepared.shipped_tables import TABLES, household_table, panel_table, written_table


@pytest.mark.parametrize("file", TABLES)
def test_a_shipped_table_is_what_its_generator_writes(file: str) -> None:
    assert find_source(f"sfumato:{file.removesuffix('.csv')}").content == written_table(file)


def drawn(name: str) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """The records of a shipped recipe, those held out, and one released dataset."""
    plan = prepare_run(find_recipe(name), None, None, ["release.m=1"], key=PUBLIC)
    fits = [fit_model(plan.recipe, item, plan.data, key=PUBLIC) for item in range(len(plan.recipe.synthesis))]
    released = draw_dataset(plan.recipe, 1, plan.data, fits, key=PUBLIC).frame
    assert plan.data.controls is not None
    return plan.data.frame, plan.data.controls.frame, released


@pytest.mark.slow
def test_drawn_households_have_the_types_of_the_census_and_none_is_impossible() -> None:
    own, held_out, released = drawn("households")
    assert set(own["household"]).isdisjoint(held_out["household"])
    assert impossible_households(household_table()) == 0
    assert impossible_households(released) == 0
    assert released["household"].nunique() == own["household"].nunique()
    # of another sample, of the 750 households held out
    fresh = total_variation(household_types(own), household_types(held_out))
    assert total_variation(household_types(own), household_types(released)) < 1.5 * fresh
    level = released.groupby("household")[["region", "tenure"]].nunique()
    assert (level == 1).all(axis=None)
    assert (released.loc[released["age"] < 18, "income"] == 0).all()


@pytest.mark.slow
def test_drawn_people_change_their_state_as_those_of_the_panel_and_leave_it_as_they_do() -> None:
    own, _, released = drawn("panel")
    assert (panel_table().groupby("person")["wave"].max() == panel_table().groupby("person").size()).all()
    numbered = released.groupby("person")["wave"].agg(["min", "max", "size"])
    assert (numbered["min"] == 1).all()
    assert (numbered["max"] == numbered["size"]).all()
    both = pd.concat([transitions(own), transitions(released)], axis=1).fillna(0.0)
    # a share of some 250 moves has a standard error of .03
    assert np.abs(both.iloc[:, 0] - both.iloc[:, 1]).max() < 0.1
    assert np.abs(stayed(own) - stayed(released)).max() < 0.05
    assert ((released["state"] == "work") == (released["pay"] > 0)).all()
