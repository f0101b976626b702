"""A run at a glance."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.engine.recipe import Recipe
from sfumato.workspace.jobs.worker import work
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.run_detail import Change, changes, run_detail

Enter = Callable[..., int]
VALUES = st.recursive(
    st.integers() | st.text(max_size=3) | st.lists(st.integers(), max_size=2),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3) | st.lists(inner, max_size=2),
    max_leaves=6,
)
TABLES = st.dictionaries(st.sampled_from("abc"), VALUES, max_size=3)


def test_a_changed_a_new_and_a_dropped_setting_are_named_by_their_place() -> None:
    before = {"release": {"m": 5, "seed": 1}, "synthesis": [{"target": "a"}, {"target": "b", "minbucket": 50}]}
    now = {"release": {"m": 5, "seed": 2}, "synthesis": [{"target": "a", "proper": True}, {"target": "b"}]}
    assert list(changes(before, now)) == [
        Change("release.seed", 1, 2),
        Change("synthesis[0].proper", None, True),
        Change("synthesis[1].minbucket", 50, None),
    ]


@pytest.mark.slow
@given(TABLES)
def test_a_recipe_does_not_differ_from_itself(table: dict[str, object]) -> None:
    assert list(changes(table, table)) == []


@pytest.mark.slow
@given(TABLES, TABLES)
def test_changes_back_are_the_changes_turned_round(one: dict[str, object], other: dict[str, object]) -> None:
    there = {(c.place, repr(c.before), repr(c.now)) for c in changes(one, other)}
    assert there == {(c.place, repr(c.now), repr(c.before)) for c in changes(other, one)}


@pytest.mark.slow
def test_a_run_says_its_data_its_phases_and_what_changed(
    workspace: Workspace, enter: Enter, small_recipe: Callable[..., Recipe]
) -> None:
    first, second = enter(), enter()
    detail = run_detail(workspace, second)
    (data,) = workspace.datasets(1)
    assert (detail.data, detail.records, detail.seed) == (data.name, data.records, small_recipe().seed)
    assert (detail.against, detail.changes) == (first, ())
    assert run_detail(workspace, first).against is None
    assert sum(phase.tasks for phase in detail.phases) == len(list(small_recipe_tasks(workspace, second)))
    assert {phase.done for phase in detail.phases} == {0}
    work(workspace.directory, idle=0)
    done = run_detail(workspace, second).phases
    assert all(phase.done == phase.tasks and phase.seconds > 0 for phase in done)


def small_recipe_tasks(workspace: Workspace, run_id: int) -> list[object]:
    return workspace.connection.execute("SELECT id FROM task WHERE run_id = ?", (run_id,)).fetchall()
