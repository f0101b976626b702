"""The study of subsets in the app: variables are known or not by a key, and what is found follows."""

import numpy as np
import pandas as pd
import pytest
from towns import TOWNS

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.execution.tasks import execute_run
from sfumato.engine.methods.registry import registry
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.recipe.recipe import Recipe
from sfumato.tui.findings.study_lattice import LatticeView
from sfumato.tui.widgets.grid import LiveGrid
from sfumato.tui.widgets.plot import Plot
from sfumato.workspace.reporting.knowledge_lattice import KnowledgeLattice, lattice_parts
from sfumato.workspace.reporting.results import study_parts
from sfumato.workspace.reporting.tables import DisplayTable, format_table
from sfumato.workspace.reporting.words import number
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.results import read_result_rows
from sfumato.workspace.views.studies import read_studies

KEY = TOWNS["study"][1]["method"]


@pytest.fixture
def lattice(towns_once) -> KnowledgeLattice:
    with Workspace.open(towns_once, read_only=True) as workspace:
        (study,) = read_studies(workspace, 1)
    return KnowledgeLattice.from_rows(study.method, study.rows)


def reading_text(seat) -> str:
    return seat.reading


@pytest.mark.slow
async def test_space_makes_a_variable_known_or_not_and_what_is_found_follows(sit, towns_once, lattice, size):
    async with sit(towns_once, tab="sweep", size=size) as seat:
        assert isinstance(seat.app.focused, Plot), "curves first"
        await seat.press("full_stop")
        assert isinstance(seat.app.focused, LiveGrid), "then the variables, listed"
        assert "Coarsen age first: then at most" in seat.text
        known = lattice.strongest_subset
        assert f"known: {lattice.subset_text(known)}   found on average {lattice.risk_text(known)}" in reading_text(
            seat
        )
        for keys, name in ((("g", "space"), "town"), (("down", "space"), "age"), (("space",), "age")):
            await seat.press(*keys)
            known ^= {name}
            assert f"known: {lattice.subset_text(known)}   found on average {lattice.risk_text(known)}" in reading_text(
                seat
            )
            assert f"confidential data {lattice.risk_text(known, own=True)}" in reading_text(seat) or size[0] == 80
        await seat.press("m")
        assert f"found for certain {lattice.risk_text(known, measure='true_match_rate')}" in reading_text(seat)
        await seat.press("t")
        assert isinstance(seat.app.focused, Plot)
        assert "how many of the variables the intruder knows, of 3" in seat.text
        assert "Which variables let an intruder find people?" in seat.text
        assert "known now" in seat.text
        await seat.press("comma")
        assert isinstance(seat.app.focused, Plot)
        assert "known:" not in reading_text(seat)


def test_turning_a_variable_twice_comes_back_and_every_subset_is_exported(lattice) -> None:
    view = LatticeView.from_lattice(lattice)
    assert view.toggle_variable(1.0).toggle_variable(1.0) == view
    assert view.toggle_variable(1.0).known == view.known ^ {"age"}
    heads, rows = view.export_rows(0)
    rows = list(rows)
    assert len(rows) == len({row[0] for row in rows}) == 2**3
    assert dict(zip(heads, rows[0], strict=True))["variables known"] == "nothing"
    values = {row["variable"]: row["turned"] for row in view.study_table(0).rows}
    assert values == {name: lattice.risk_text(view.known ^ {name}) for name in ("town", "age", "pay")}
    series = {one.name: one for one in view.panel_at(0).series}
    most, least = series["release, most"], series["release, least"]
    assert (most.y >= least.y).all()
    assert most.x.tolist() == [0, 1, 2, 3]


def test_gain_and_loss_are_differences_of_what_is_found(lattice) -> None:
    for own in (False, True):
        assert lattice.gain_alone("age", own=own) == lattice.risk_value(["age"], own=own) - lattice.risk_value(
            [], own=own
        )
        largest = lattice.by_measure[own, "largest_risk"].value
        assert lattice.loss_without("age", own=own) == pytest.approx(
            largest - lattice.by_variable[own, "risk_without", "age"].value
        )
    row = LatticeView.from_lattice(lattice).study_table(0).rows[1]
    assert (row["variable"], row["alone"]) == ("age", number(lattice.gain_alone("age")))
    assert row["loss"] == number(lattice.loss_without("age"))


def test_report_and_command_show_the_same_lattice(towns_once) -> None:
    with Workspace.open(towns_once, read_only=True) as workspace:
        rows = [row for row in read_result_rows(workspace, 1) if row.method_key == KEY and row.draw is None]
    method = registry()[KEY]
    sentence, variables, subsets = study_parts(method, rows)
    assert "first: without it no intruder finds more than" in str(sentence)
    assert isinstance(variables, DisplayTable)
    assert isinstance(subsets, DisplayTable)
    assert [line[0] for line in variables.rows] == ["town", "age", "pay"]
    assert [line[0] for line in subsets.rows] == list("01112223")
    heads = format_table(variables)
    assert "gain from it alone" in heads
    assert "loss without it" in heads
    assert "Shapley" not in heads


def test_of_many_variables_those_subsets_of_each_size_are_listed_that_find_most() -> None:
    names = [f"v{i}" for i in range(7)]
    rng = np.random.default_rng(2)
    frame = pd.DataFrame({name: rng.choice(list("ab"), 50) for name in names})
    table = {
        "variables": {name: {"kind": "binary", "role": "quasi_identifier"} for name in names},
        "release": {"m": 1, "released": ["v6"]},
        "study": [{"method": KEY}],
    }
    recipe = Recipe.from_table(table)
    data = conform_to_schema(frame, recipe.schema)
    rows = execute_run(recipe, data, [Microdata(data.schema, data.frame, "synthetic")], key=PUBLIC).rows
    _, _, subsets = lattice_parts(registry()[KEY], rows)
    assert isinstance(subsets, DisplayTable)
    assert [line[0] for line in subsets.rows] == [
        str(size) for size in range(8) for _ in range(1 if size in (0, 7) else 3)
    ]


def test_a_release_that_cannot_be_matched_says_why(lattice) -> None:
    recipe = Recipe.from_table({**TOWNS, "synthesis": [], "release": {"released": ["pay"], "order": "shuffled"}})
    frame = pd.DataFrame({"town": list("xyzx"), "age": [1, 2, 3, 4], "pay": [1.0, 2, 3, 4]})
    data = conform_to_schema(frame, recipe.schema)
    released = Microdata(data.schema, data.frame, "synthetic", linked=False)
    rows = [row for row in execute_run(recipe, data, [released], key=PUBLIC).rows if row.method_key == KEY]
    found = KnowledgeLattice.from_rows(registry()[KEY], rows)
    assert found.summary_text().startswith("Not computed: the release is not in the original's order")
    view = LatticeView.from_lattice(found)
    assert view.known == {"town", "age", "pay"}
    assert view.study_table(0).rows[0]["turned"] == "-"
    assert "release, most" not in {one.name for one in view.panel_at(0).series}
