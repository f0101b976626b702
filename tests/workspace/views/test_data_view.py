"""The variables of a project's data: what is known at once, what another process finds, and the way between the two."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import get_type_hints

import numpy as np
import pandas as pd
import pytest

from sfumato.engine.errors import Cancelled
from sfumato.engine.microdata import Microdata, conform
from sfumato.engine.schema import Kind, Schema, Variable
from sfumato.workspace.errors import WorkspaceError
from sfumato.workspace.jobs.processes import call_in_process, from_json, to_json
from sfumato.workspace.plan.drafts import Draft, draft_of, save_draft
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.data_view import data_view, data_view_of, outline

SCHEMA = Schema(
    (
        Variable("town", Kind.CATEGORICAL, labels={"a": "Aachen"}),
        Variable("visits", Kind.COUNT, bounds=(0, 90)),
        Variable("income", Kind.CONTINUOUS, title="Income a year"),
        Variable("entered", Kind.DATE),
    )
)


def people() -> Microdata:
    rng = np.random.default_rng(8)
    frame = {
        "town": rng.choice(["a", "b"], 80),
        "visits": rng.poisson(3, 80),
        "income": rng.lognormal(8, 1, 80),
        "entered": pd.to_datetime("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, 80), unit="D"),
    }
    return conform(pd.DataFrame(frame), SCHEMA)


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    made = Workspace.create(tmp_path / "w")
    with made.writing():
        made.add_dataset(made.ensure_project("people"), "people.csv", "0" * 64, people())
    yield made
    made.close()


def draft(workspace: Workspace) -> Draft:
    found = draft_of(workspace, 1)
    assert found is not None
    return found


def test_a_view_comes_back_from_its_json_as_it_was(workspace: Workspace) -> None:
    view = data_view(workspace, 1)
    assert view is not None
    assert [line.profile is not None for line in view.lines] == [True] * 4
    hint = get_type_hints(data_view)["return"]
    assert from_json(hint, json.loads(json.dumps(to_json(view)))) == view
    assert from_json(hint, json.loads(json.dumps(to_json(None)))) is None


def test_what_is_known_at_once_is_what_is_found_later_without_the_values(workspace: Workspace) -> None:
    view, known = data_view(workspace, 1), outline(workspace, draft(workspace))
    assert view is not None
    assert (known.dataset, known.records, known.dropped, known.read) == ("people.csv", 80, 0, False)
    assert [(line.variable, line.planned) for line in known.lines] == [
        (line.variable, line.planned) for line in view.lines
    ]
    assert not any(line.profile for line in known.lines)


def test_until_the_values_are_read_again_profiles_of_the_same_kind_stay(workspace: Workspace) -> None:
    view = data_view(workspace, 1)
    assert view is not None
    table = draft(workspace).toml.replace('kind = "count"', 'kind = "continuous"')
    lines = outline(workspace, draft(workspace).saying(table)).keeping(view).lines
    assert [line.profile is not None for line in lines] == [True, False, True, True]


@pytest.mark.parametrize(
    ("toml", "planned"),
    [
        ("no TOML [", [False] * 4),
        ("variables = 3", [False] * 4),
        ('[variables]\nvisits = { kind = "nonsense" }\ngone = { kind = "count" }', [True, False, False, False]),
    ],
)
def test_a_plan_that_cannot_be_read_leaves_the_variables_as_they_were_stored(
    workspace: Workspace, toml: str, planned: list[bool]
) -> None:
    known = outline(workspace, draft(workspace).saying(toml))
    assert [line.planned for line in known.lines] == planned
    by_name = {line.variable.name: line.variable for line in known.lines}
    assert by_name == {variable.name: variable for variable in SCHEMA}


@pytest.mark.slow
def test_another_process_finds_the_same(workspace: Workspace) -> None:
    save_draft(workspace, replace(draft(workspace), toml=draft(workspace).toml.replace("90", "2")))
    view = data_view(workspace, 1)
    assert view is not None
    assert any(line.problem for line in view.lines)
    assert call_in_process(data_view_of, workspace.directory, 1, what="reading") == view


@pytest.mark.slow
def test_what_another_process_is_refused_is_told(workspace: Workspace) -> None:
    for table in workspace.tables.directory.glob("*.parquet"):
        table.unlink()
    with pytest.raises(WorkspaceError, match="is gone from the workspace"):
        call_in_process(data_view_of, workspace.directory, 1, what="reading")


def test_nobody_waits_for_an_answer_that_is_not_wanted_any_more(workspace: Workspace) -> None:
    with pytest.raises(Cancelled):
        call_in_process(data_view_of, workspace.directory, 1, what="reading", unwanted=lambda: True)
