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

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.schema import Kind, Role, Schema, Variable
from sfumato.engine.errors import Cancelled
from sfumato.workspace.errors import WorkspaceError
from sfumato.workspace.jobs.processes import call_in_process, from_json, to_json
from sfumato.workspace.plan.drafts import PlanDraft, find_draft, store_missing_counts
from sfumato.workspace.plan.variables import change_variables
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views import data_view
from sfumato.workspace.views.data_view import DataView, ProfiledColumn, profile_stored_columns, read_data_view

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
    return conform_to_schema(pd.DataFrame(frame), SCHEMA)


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    made = Workspace.create(tmp_path / "w")
    with made.write_transaction():
        made.add_dataset(made.ensure_project("people"), "people.csv", "0" * 64, people())
    yield made
    made.close()


def draft(workspace: Workspace) -> PlanDraft:
    found = find_draft(workspace, 1)
    assert found is not None
    return found


def profile_columns(workspace: Workspace, *variables: Variable) -> dict[str, ProfiledColumn]:
    columns = profile_stored_columns(workspace.directory, 1, variables or tuple(SCHEMA))
    return {column.name: column for column in columns}


def test_what_is_found_of_columns_comes_back_from_its_json_as_it_was(workspace: Workspace) -> None:
    columns = profile_stored_columns(workspace.directory, 1, tuple(SCHEMA))
    assert [column.profile is not None for column in columns] == [True] * 4
    hint = get_type_hints(profile_stored_columns)["return"]
    assert from_json(hint, json.loads(json.dumps(to_json(columns)))) == columns


def test_every_stored_column_has_a_line_at_once(workspace: Workspace) -> None:
    known = read_data_view(workspace, draft(workspace))
    assert (known.stored.name, known.stored.records, known.stored.dropped) == ("people.csv", 80, 0)
    assert [(line.variable, line.is_planned, line.is_stored) for line in known.lines] == [
        (variable, True, True) for variable in SCHEMA
    ]


def test_values_are_read_as_the_plan_has_a_column_and_what_does_not_fit_is_counted(workspace: Workspace) -> None:
    town, visits, *_ = SCHEMA
    codes = replace(visits, missing=(3,))
    true = people()
    share = float((true.numbers("visits") == 3).mean())
    as_planned = profile_columns(workspace, codes, replace(town, kind=Kind.COUNT))
    assert as_planned["visits"].missing == pytest.approx(share)
    assert as_planned["visits"].problem == ""
    assert "80 records are not a number" in as_planned["town"].problem
    assert profile_columns(workspace, visits)["visits"].missing == 0
    low = profile_columns(workspace, replace(visits, bounds=(0, 2)))["visits"]
    assert f"{int((true.numbers('visits') > 2).sum())} records are above 2" in low.problem
    assert low.profile == profile_columns(workspace, visits)["visits"].profile


def test_only_the_columns_that_are_asked_for_are_read_whatever_they_are_called(tmp_path: Path) -> None:
    names = ["a", "a.b", "a.b.c", "b c", "é"]
    frame = pd.DataFrame({name: [1.5, 2.5, float(place)] for place, name in enumerate(names)})
    schema = Schema(tuple(Variable(name, Kind.CONTINUOUS) for name in names))
    with Workspace.create(tmp_path / "w") as made:
        with made.write_transaction():
            made.add_dataset(made.ensure_project("p"), "p.csv", "0" * 64, conform_to_schema(frame, schema))
        for name in names:
            (column,) = profile_stored_columns(made.directory, 1, (schema[name],))
            assert (column.name, column.profile and column.profile.mean) == (name, pytest.approx(frame[name].mean()))


def test_columns_that_were_counted_and_not_stored_are_left_out_and_told_apart(workspace: Workspace) -> None:
    with workspace.write_transaction() as connection:
        store_missing_counts(connection, 1, {"name": 3, "town": 0}, 80)
    text = draft(workspace).toml
    line = next(line for line in read_data_view(workspace, draft(workspace)).lines if line.variable.name == "name")
    assert (line.is_planned, line.is_stored, line.missing, line.variable.role) == (
        False,
        False,
        3 / 80,
        Role.IDENTIFIER,
    )
    taken = change_variables(text, {"name": line.variable.to_table(), "gone": {"kind": "count"}})
    lines = {line.variable.name: line for line in read_data_view(workspace, draft(workspace).with_text(taken)).lines}
    assert (lines["name"].is_planned, lines["name"].is_stored, lines["name"].problem) == (True, False, "")
    assert "no such column" in lines["gone"].problem
    assert profile_stored_columns(workspace.directory, 1, (lines["name"].variable,)) == ()


def test_a_column_that_is_left_out_is_as_it_was_described(workspace: Workspace) -> None:
    text = change_variables(
        draft(workspace).toml, {"visits": {"kind": "count", "role": "sensitive", "bounds": [0, 90]}}
    )
    out = change_variables(text, {"visits": None})
    line = next(
        line
        for line in read_data_view(workspace, draft(workspace).with_text(out)).lines
        if line.variable.name == "visits"
    )
    assert (line.is_planned, line.variable.role, line.variable.bounds) == (False, Role.SENSITIVE, (0, 90))


@pytest.mark.parametrize(
    ("toml", "planned", "problem"),
    [
        ("no TOML [", [False] * 4, "not valid TOML"),
        ("variables = 3", [False] * 4, "must be a table"),
        ('[variables]\nvisits = { kind = "nonsense" }\ngone = { kind = "count" }', [True, True, *[False] * 3], ""),
    ],
)
def test_a_plan_that_cannot_be_read_leaves_the_variables_as_they_were_stored(
    workspace: Workspace, toml: str, planned: list[bool], problem: str
) -> None:
    known = read_data_view(workspace, draft(workspace).with_text(toml))
    assert [line.is_planned for line in known.lines] == planned
    assert problem in known.problem
    by_name = {line.variable.name: line.variable for line in known.lines if line.is_stored}
    assert by_name == {variable.name: variable for variable in SCHEMA}
    assert any("nonsense" in line.problem for line in known.lines) is ("nonsense" in toml)


@pytest.mark.slow
def test_lines_taken_over_from_the_view_before_an_edit_are_those_that_would_be_made_anew(workspace: Workspace) -> None:
    before = read_data_view(workspace, draft(workspace))
    edits = {
        "income": {"kind": "continuous", "role": "sensitive"}, "visits": None, "new": {"kind": "count", "role": "other"},
        "town": {"kind": "count", "role": "other", "levels": ["a"]},
    }  # fmt: skip
    for name, said in edits.items():
        now = before.draft.with_text(change_variables(before.draft.toml, {name: said}))
        after = DataView.from_draft(now, before.stored, before)
        assert after == DataView.from_draft(now, before.stored)
        assert after != before
        kept = {line.variable.name: line for line in before.lines}
        same = [line.variable.name for line in after.lines if line is kept.get(line.variable.name)]
        assert same == [line.variable.name for line in after.lines if line.variable.name != name], (
            "nothing else is made anew"
        )
        before = after
    assert DataView.from_draft(before.draft.with_text("no TOML"), before.stored, before) == DataView.from_draft(
        before.draft.with_text("no TOML"), before.stored
    )


@pytest.mark.slow
def test_another_process_finds_the_same(workspace: Workspace) -> None:
    variables = (replace(SCHEMA["visits"], bounds=(0.0, 2.0)), SCHEMA["town"], SCHEMA["entered"])
    here = profile_stored_columns(workspace.directory, 1, variables)
    assert any(column.problem for column in here)
    assert call_in_process(profile_stored_columns, workspace.directory, 1, variables, what="reading") == here


@pytest.mark.slow
def test_what_another_process_is_refused_is_told(workspace: Workspace) -> None:
    for table in workspace.tables.directory.glob("*.parquet"):
        table.unlink()
    with pytest.raises(WorkspaceError, match="is gone from the workspace"):
        call_in_process(profile_stored_columns, workspace.directory, 1, tuple(SCHEMA), what="reading")


def test_nobody_waits_for_an_answer_that_is_not_wanted_any_more(workspace: Workspace) -> None:
    with pytest.raises(Cancelled):
        call_in_process(
            profile_stored_columns, workspace.directory, 1, tuple(SCHEMA), what="reading", is_unwanted=lambda: True
        )


def test_columns_are_found_alike_however_many_are_read_at_once(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = profile_stored_columns(workspace.directory, 1, tuple(SCHEMA))
    for at_once in (1, 160):
        monkeypatch.setattr(data_view, "READ_AT_ONCE", at_once)
        assert profile_stored_columns(workspace.directory, 1, tuple(SCHEMA)) == expected
