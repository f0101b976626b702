"""Units that drop out by a yes/no variable: who leaves depends on what was, and nobody comes after."""

from __future__ import annotations

from typing import Any

import census
import numpy as np
import pandas as pd
import panel
import pytest

from sfumato.engine.constraints.earlier_records import DropOut
from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.errors import BadInput
from sfumato.engine.execution.tasks import draw_dataset, fit_model
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.recipe.checks import check_steps
from sfumato.engine.recipe.recipe import Recipe


def draw(table: dict[str, Any], frame: pd.DataFrame) -> pd.DataFrame:
    recipe = Recipe.from_table(table)
    data = conform_to_schema(frame, recipe.schema)
    check_steps(recipe, data)
    return draw_data(recipe, data)


def draw_data(recipe: Recipe, data: Microdata) -> pd.DataFrame:
    fits = [fit_model(recipe, item, data, key=PUBLIC) for item in range(len(recipe.synthesis))]
    return draw_dataset(recipe, 1, data, fits, key=PUBLIC).frame


def late_entrants(seed: int = 1, people: int = 3000) -> pd.DataFrame:
    """A panel of which a third begins in wave 3, and none of these people is seen before it."""
    table = panel.draw_panel(people, seed)
    late = table["person"] % 3 == 0
    return table[~late | (table["wave"] > 2)].reset_index(drop=True)


def test_people_of_a_panel_leave_as_they_do() -> None:
    table = panel.draw_panel(8000, 1)
    drawn = draw(panel.panel_recipe(20, until="dropped"), table)
    assert list(drawn) == list(panel.VARIABLES)
    assert (panel.transitions(drawn) - panel.transitions(table)).abs().max() < 0.03
    # Another sample of 8,000 people differs by .091.
    assert census.total_variation(panel.trajectories(drawn), panel.trajectories(table)) <= 0.10
    assert abs(panel.stayed(drawn) - panel.stayed(table)).max() < 0.01
    assert (panel.leavers(drawn) - panel.leavers(table)).abs().max() < 0.01
    assert (drawn.groupby("person").cumcount() + 1 == drawn["wave"]).all()
    assert drawn["wave"].max() == panel.WAVES
    of_person = drawn.groupby("person")[["sex", "education"]]
    assert (of_person.transform("first") == drawn[["sex", "education"]]).all().all()


def test_nobody_has_a_record_after_the_last_wave_wherever_they_begin() -> None:
    table = late_entrants()
    recipe = panel.panel_recipe(20, until="dropped")
    steps = {str(one["target"]): one for one in recipe["synthesis"]}
    steps["wave"]["predictors"] = ["place", "previous(wave)"]
    steps["dropped"]["predictors"] = ["state", "wave"]
    drawn = draw(recipe, table)
    waves = drawn.groupby("person")["wave"].agg(list)
    assert all(own == list(range(own[0], own[0] + len(own))) for own in waves)
    assert {own[0] for own in waves} == {1, 3}
    assert drawn["wave"].max() == panel.WAVES
    # Nobody of wave 6 left before it: they are no drop-outs, although they have four records where others have six.
    for first in (1, 3):
        own, true = (
            one[one.groupby("person")["wave"].transform("min") == first].groupby("person")["wave"].max()
            for one in (drawn, table)
        )
        assert (own == panel.WAVES).mean() == pytest.approx((true == panel.WAVES).mean(), abs=0.05)


def test_marked_records_are_the_last_ones_of_those_who_left() -> None:
    table = late_entrants(2, 500).sample(frac=1, random_state=1).reset_index(drop=True)
    recipe = Recipe.from_table(panel.panel_recipe(20, until="dropped"))
    data = conform_to_schema(table, recipe.schema)
    found = DropOut.of_data(data)
    last = table.groupby("person")["wave"].transform("max")
    expected = (table["wave"] == last) & (last < panel.WAVES)
    assert found.mark_records(data).tolist() == expected.tolist()
    place = table.groupby("person")["wave"].rank()
    assert found.places.tolist() == sorted(place[expected].astype(int).unique())
    assert (found.largest_size, found.last) == (6, 6.0)


def test_records_of_weight_0_leave_no_trace_of_when_units_end() -> None:
    table = panel.draw_panel(1500, 3)
    recipe = Recipe.from_table(panel.panel_recipe(20, until="dropped"))
    data = conform_to_schema(table, recipe.schema)
    long = (table.groupby("person")["wave"].transform("max") > 4).to_numpy()
    assert draw_data(recipe, data.with_weights(np.where(long, 0.0, 1.0)))["wave"].max() == 4


def test_nobody_leaves_where_nobody_leaves() -> None:
    table = panel.draw_panel(3000, 4)
    size = table.groupby("person")["wave"].transform("max")
    drawn = draw(panel.panel_recipe(200, until="dropped"), table[size != 2])
    assert 2 not in set(drawn.groupby("person").size())


def test_a_variable_of_the_file_is_released_and_says_who_left() -> None:
    table = panel.draw_panel(2000, 5)
    recipe = panel.panel_recipe(20, until="gone")
    recipe["variables"] = {**panel.VARIABLES, "gone": {"kind": "binary", "levels": ["0", "1"]}}
    last = table.groupby("person")["wave"].transform("max")
    table["gone"] = np.where((table["wave"] == last) & (last < panel.WAVES), "1", "0")
    drawn = draw(recipe, table)
    last = drawn.groupby("person")["wave"].transform("max")
    assert ((drawn["gone"] == "1") == ((drawn["wave"] == last) & (last < panel.WAVES))).all()
    wrong = table.assign(gone=table["gone"].mask(table.index == table.index[table["wave"] == 1][7], "1"))
    wrong.loc[wrong["wave"].eq(panel.WAVES).idxmax(), "gone"] = "1"
    with pytest.raises(BadInput, match="2 units differ") as caught:
        draw(recipe, wrong)
    assert caught.value.place == "release.until"


def test_people_who_break_a_rule_are_drawn_again_without_a_size() -> None:
    recipe = panel.panel_recipe(20, until="dropped")
    recipe["constraints"] = {"few": 'count(state = "search") <= 2', "stay": "size >= 2"}
    drawn = draw(recipe, panel.draw_panel(1500, 6))
    assert drawn["person"].nunique() == 1500
    assert drawn.groupby("person")["state"].agg(lambda own: (own == "search").sum()).max() == 2
    assert drawn.groupby("person").size().min() == 2


def with_step(**changes: Any) -> dict[str, Any]:
    """The recipe with another step of drop-out."""
    recipe = panel.panel_recipe(20, until="dropped")
    recipe["synthesis"][-1] |= changes
    return recipe


@pytest.mark.parametrize(
    ("recipe", "place", "says"),
    [
        (with_step(predictors=["size"]), "synthesis[4].predictors[0]", "the size of a unit follows"),
        (with_step(predictors=["size - place"]), "synthesis[4].predictors[0]", "the size of a unit follows"),
        (with_step(target="size"), "synthesis[4].target", "the size of a unit follows"),
        ({**with_step(), "release": {"units": "kept", "until": "dropped"}}, "release.until", "only drawn units"),
        ({**with_step(), "release": {"until": "dropped"}}, "release.until", "only drawn units"),
        ({**with_step(), "release": {"units": "drawn", "until": "state"}}, "release.until", "must be a binary"),
        ({**with_step(), "release": {"units": "drawn", "until": "sex"}}, "release.until", "must be a binary"),
        ({**with_step(), "release": {"units": "drawn", "until": "place"}}, "release.until", "another variable"),
        ({**with_step(), "release": {"units": "drawn", "until": 3}}, "release.until", "name of a variable"),
        (panel.panel_recipe(20) | {"release": {"units": "drawn", "until": "left"},
         "synthesis": panel.panel_recipe(20, until="dropped")["synthesis"][:-1]}, "release.until", 'no step draws "left"'),
    ],
)  # fmt: skip
def test_what_cannot_be_is_said_at_its_place(recipe: dict[str, Any], place: str, says: str) -> None:
    with pytest.raises(BadInput) as caught:
        Recipe.from_table(recipe)
    assert (caught.value.place, says in caught.value.message) == (place, True), caught.value


def test_a_recipe_with_drop_out_is_read_back() -> None:
    recipe = Recipe.from_table(panel.panel_recipe(20, until="dropped"))
    assert Recipe.from_toml(recipe.to_toml()) == recipe
    assert recipe.released == ("sex", "education", "wave", "state")
