"""Plans: where one starts, that edits are kept and written down, and that a text edited by a form means what was meant."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from hypothesis import given, settings
from hypothesis import strategies as st
from prepared_tables import variables_of

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.data.toml import read_toml
from sfumato.engine.errors import BadInput
from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace.audit import audit_rows, chain_problem, read_head
from sfumato.workspace.errors import NotFound
from sfumato.workspace.plan.drafts import (
    PlanDraft,
    draft_of_run,
    find_draft,
    missing_shares,
    save_draft,
    store_missing_counts,
    write_plan,
)
from sfumato.workspace.plan.edits import (
    StepPlace,
    list_step_places,
    move_step,
    remove_step,
    replace_sections,
    replace_step,
    replace_variable,
)
from sfumato.workspace.recipes import shipped_recipes
from sfumato.workspace.store import database
from sfumato.workspace.store.workspace import Workspace

Enter = Callable[..., int]


def test_a_project_with_nothing_has_no_plan(workspace: Workspace) -> None:
    with workspace.write_transaction():
        project_id = workspace.ensure_project("empty")
    assert find_draft(workspace, project_id) is None


def test_a_project_with_data_starts_from_their_description(workspace: Workspace, small_data: Microdata) -> None:
    with workspace.write_transaction():
        project_id = workspace.ensure_project("imported")
        dataset_id = workspace.add_dataset(project_id, "people.csv", "0" * 64, small_data)
    draft = find_draft(workspace, project_id)
    assert draft is not None
    assert (draft.dataset_id, draft.revision) == (dataset_id, 0)
    assert Recipe.from_toml(draft.toml).schema == small_data.schema


def test_a_project_with_runs_starts_from_the_newest_ones_recipe(workspace: Workspace, enter: Enter) -> None:
    enter()
    newest = enter()
    draft = find_draft(workspace, 1)
    assert draft == draft_of_run(workspace, newest)
    assert draft.uses_same_data(read_toml(draft.toml))
    assert not draft.uses_same_data({**read_toml(draft.toml), "data": {"file": "another.csv"}})


def test_an_edit_is_kept_counted_and_written_down(workspace: Workspace, enter: Enter) -> None:
    enter()
    first = find_draft(workspace, 1)
    assert first is not None
    saved = save_draft(workspace, first.with_text('title = "one"'))
    again = save_draft(workspace, saved.with_text('title = "two"'))
    assert (saved.revision, again.revision) == (1, 2)
    with Workspace.open(workspace.directory, read_only=True) as reader:
        assert find_draft(reader, 1) == again
    acts = [row.act for row in audit_rows(workspace.connection)]
    assert acts.count("plan edited") == 2
    assert chain_problem(audit_rows(workspace.connection), read_head(workspace.connection)) == ""
    assert not any("one" in row.details for row in audit_rows(workspace.connection))


def test_a_plan_of_a_project_that_is_gone_is_refused(workspace: Workspace) -> None:
    with pytest.raises(NotFound, match="no project 7"):
        save_draft(workspace, PlanDraft(7, 1, "{}", ""))


def test_missing_values_are_kept_as_shares(workspace: Workspace, small_data: Microdata) -> None:
    with workspace.write_transaction() as connection:
        dataset_id = workspace.add_dataset(workspace.ensure_project("p"), "people.csv", "0" * 64, small_data)
        store_missing_counts(connection, dataset_id, {"a": 1, "b": 0}, 8)
    assert missing_shares(workspace, dataset_id) == {"a": 0.125, "b": 0.0}


def test_a_workspace_of_the_version_before_gets_the_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:

    before = [step for step in database.MIGRATIONS if step.__name__ != "plans"]
    at = database.MIGRATIONS.index(next(step for step in database.MIGRATIONS if step.__name__ == "plans"))
    with monkeypatch.context() as older:
        older.setattr(database, "MIGRATIONS", before[:at])
        (tmp_path / "old").mkdir()
        with closing(database.open_database(tmp_path / "old" / database.DATABASE)) as connection:
            database.migrate_database(connection)
    with closing(Workspace.open(tmp_path / "old")) as workspace:
        assert find_draft(workspace, 1) is None


TABLE: dict[str, Any] = {
    "variables": {"a": {"kind": "count"}},
    "synthesis": [{"target": "a"}, {"target": "b"}, {"target": "c"}],
    "measure": [{"method": "utility.ecdf"}],
}
TOML = tomli_w.dumps(TABLE)


def test_steps_are_listed_in_the_recipes_order() -> None:
    assert list(map(str, list_step_places(TABLE))) == ["synthesis[0]", "synthesis[1]", "synthesis[2]", "measure[0]"]
    with pytest.raises(BadInput, match=r"measure: must be tables"):
        list_step_places({"measure": 3})


@pytest.mark.slow
@given(st.permutations(["a", "b", "c"]), st.integers(0, 2), st.integers(-3, 3))
def test_moving_is_taking_out_and_putting_in(targets: list[str], index: int, by: int) -> None:
    toml = tomli_w.dumps({"synthesis": [{"target": target} for target in targets]})
    moved = [step["target"] for step in read_toml(move_step(toml, StepPlace("synthesis", index), by))["synthesis"]]
    if not 0 <= index + by < 3:
        assert moved == targets
    else:
        assert moved[index + by] == targets[index]
        assert [t for t in moved if t != targets[index]] == [t for t in targets if t != targets[index]]


def test_adding_changing_and_removing() -> None:
    added = replace_step(TOML, StepPlace("study", 0), {"method": "x"})
    assert read_toml(added) == {**TABLE, "study": [{"method": "x"}]}
    changed = replace_step(TOML, StepPlace("synthesis", 1), {"target": "z"})
    assert [step["target"] for step in read_toml(changed)["synthesis"]] == ["a", "z", "c"]
    assert "measure" not in read_toml(remove_step(TOML, StepPlace("measure", 0)))
    assert [step["target"] for step in read_toml(remove_step(TOML, StepPlace("synthesis", 0)))["synthesis"]] == [
        "b",
        "c",
    ]
    assert read_toml(replace_variable(TOML, "b", {"kind": "date"}))["variables"] == variables_of("a: count", "b: date")
    assert "variables" not in read_toml(replace_sections(TOML, {"variables": None, "title": "t"}))


VALUE = st.recursive(
    st.one_of(st.integers(-(2**60), 2**60), st.booleans(), st.floats(allow_nan=False), st.text(max_size=6)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=4), inner, max_size=3)),
    max_leaves=8,
)


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(st.dictionaries(st.sampled_from(["title", "data", "measure", "x y", ""]), VALUE, max_size=4))
def test_a_plan_is_written_as_it_is_read(table: dict[str, Any]) -> None:
    assert tomllib.loads(write_plan(table)) == table


def test_the_shipped_recipes_are_written_as_they_are_read() -> None:
    for recipe in shipped_recipes():
        text = write_plan(recipe.table)
        assert read_toml(text) == recipe.table
        # A recipe of printed tables alone measures nothing else.
        assert "[[measure]]" in text or "[[table]]" in text


def test_a_text_that_is_no_plan_is_refused() -> None:
    with pytest.raises(BadInput, match="not valid TOML"):
        replace_variable("title = ", "a", {})
    with pytest.raises(BadInput, match="variables: must be a table"):
        replace_variable("variables = 3", "a", {})
