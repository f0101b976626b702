"""Limits of a trial in the plan of a project."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from sfumato.engine.errors import BadInput
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.recipe.thresholds import Threshold
from sfumato.workspace.errors import NotFound
from sfumato.workspace.plan.drafts import find_draft, save_draft
from sfumato.workspace.plan.edits import merge_limits, store_limits
from sfumato.workspace.store.runs import find_run
from sfumato.workspace.store.workspace import Workspace

RATE = Threshold("risk.identification.true_match_rate", "max", 0.5)


def test_a_limit_takes_the_place_of_the_plans_and_nothing_else_changes(
    workspace: Workspace, enter: Callable[..., int]
) -> None:
    run_id = enter()
    store_limits(workspace, 1, [replace(RATE, limit=0.1)])
    draft = find_draft(workspace, 1)
    assert draft is not None
    before, after = find_run(workspace, run_id).recipe, Recipe.from_toml(draft.toml)
    assert [one.limit for one in after.thresholds] == [0.1]
    assert replace(after, thresholds=before.thresholds) == before
    assert (find_run(workspace, run_id).recipe.thresholds[0].limit, draft.revision) == (0.5, 1)


def test_each_threshold_finds_its_own_table_and_strange_ones_are_added() -> None:
    tables = [
        {"value": "a.b.c", "max": 1, "level": 0.1},
        {"value": "a.b.c", "min": 0},
        {"value": "a.b.c", "max": 2},
        {"value": "a.b.c", "max": 3},
    ]
    tried = [Threshold("a.b.c", "max", 20.0), Threshold("a.b.c", "max", 30.0), Threshold("a.b.c", "max", 4.0, "price")]
    assert merge_limits(tables, tried) == [
        *tables[:2], {"value": "a.b.c", "max": 20.0}, {"value": "a.b.c", "max": 30.0},
        {"value": "a.b.c", "target": "price", "max": 4.0},
    ]  # fmt: skip
    assert tables[2]["max"] == 2


def test_a_plan_that_cannot_be_read_stays_as_it_is(workspace: Workspace, enter: Callable[..., int]) -> None:
    enter()
    draft = find_draft(workspace, 1)
    assert draft is not None
    for broken in ("title = ", "threshold = 1"):
        save_draft(workspace, draft.with_text(broken))
        with pytest.raises(BadInput):
            store_limits(workspace, 1, [RATE])
        found = find_draft(workspace, 1)
        assert found is not None
        assert found.toml == broken
    with pytest.raises(NotFound):
        store_limits(workspace, 9, [RATE])
