"""What a run records of records that were drawn anew for its constraints, and where that is shown and where not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from prepared_tables import variables_of

from sfumato.engine.constraints.redraw_counts import RedrawCounts
from sfumato.tui.cli.summary import run_summary_text
from sfumato.tui.runs.run_detail import RunBrief, brief_run_text
from sfumato.workspace import library
from sfumato.workspace.errors import DamagedTable
from sfumato.workspace.jobs.runs import result_object
from sfumato.workspace.release.report import make_public_report, report_page
from sfumato.workspace.reporting.constraints import redraws_objects, redraws_sentence, redraws_table
from sfumato.workspace.service.release import write_run_release
from sfumato.workspace.store.redraw_counts import read_redraws, redraws_name
from sfumato.workspace.store.runs import find_run
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.upkeep.integrity import verify_run
from sfumato.workspace.views.run_detail import read_run_detail

PLAN: dict[str, Any] = {
    "variables": variables_of(
        "age: count quasi_identifier", "married: categorical sensitive", "visits: count sensitive"
    ),
    "release": {"m": 2, "seed": 4},
    "synthesis": [{"target": "married", "method": "cart"}, {"target": "visits", "method": "cart"}],
    "constraints": {"adult_spouse": "married = 'yes' -> age >= 15", "few": "visits <= 90"},
}


def people(n: int = 240) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    age = rng.integers(0, 60, n)
    married = np.where((age >= 15) & (rng.random(n) < 0.6), "yes", "no")
    return pd.DataFrame({"age": age, "married": married, "visits": rng.integers(0, 5, n)})


@pytest.fixture(scope="module")
def workspace_with_runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    place = tmp_path_factory.mktemp("redrawn") / "workspace"
    library.synthesise(people(), PLAN, place)
    library.synthesise(people(), {name: part for name, part in PLAN.items() if name != "constraints"}, place)
    with Workspace.open(place) as workspace:
        yield workspace


def whole(records: int, of: int = 10_000, left: int = 0) -> list[RedrawCounts]:
    rule = RedrawCounts("synthesis[0]", "y", "adult_spouse", of, records, records, left)
    return [rule, replace(rule, constraint=""), RedrawCounts("", "", "", of, records, records, left)]


# the words


@pytest.mark.parametrize(
    ("redraws", "said"),
    [
        ({}, ""),
        ({1: []}, ""),
        ({1: whole(214)}, "214 of 10,000 records redrawn (adult_spouse 214)"),
        ({1: whole(0)}, "0 of 10,000 records redrawn"),
        ({1: whole(1, 1)}, "1 of 1 record redrawn (adult_spouse 1)"),
        (
            {1: whole(214), 2: whole(231)},
            "222 of 10,000 records of a dataset redrawn on average, at most 231 (adult_spouse 222)",
        ),
        (
            {1: whole(1), 2: whole(2)},
            "1.5 of 10,000 records of a dataset redrawn on average, at most 2 (adult_spouse 1.5)",
        ),
        ({1: whole(0), 2: whole(0)}, "0 of 10,000 records of a dataset redrawn on average"),
        (
            {1: whole(3, left=1)},
            "3 of 10,000 records redrawn (adult_spouse 3); 1 record of a dataset left that breaks a rule",
        ),
    ],
)
def test_a_sentence_says_how_many(redraws: dict[int, list[RedrawCounts]], said: str) -> None:
    assert redraws_sentence(redraws) == said


def test_the_names_of_rules_are_made_printable() -> None:
    line = replace(whole(2)[0], constraint="a\x1b[2J")
    assert "\x1b" not in redraws_sentence({1: [line, *whole(2)[1:]]})
    made = redraws_table({1: [line]})
    assert made is not None
    assert "\x1b" not in str(made.rows)


# what a run leaves


@pytest.mark.slow
def test_every_dataset_has_its_counts_sealed_with_the_run(workspace_with_runs: Workspace) -> None:
    found = read_redraws(workspace_with_runs, 1)
    assert list(found) == [1, 2]
    for lines in found.values():
        assert [(one.step, one.constraint) for one in lines] == [
            ("synthesis[0]", "adult_spouse"), ("synthesis[0]", ""), ("synthesis[1]", "few"), ("synthesis[1]", ""), ("", ""),
        ]  # fmt: skip
        assert lines[0].records > 0 == lines[2].records
        assert lines[-1].of == 240
    parts = {row[0] for row in workspace_with_runs.connection.execute("SELECT part FROM seal WHERE run_id = 1")}
    assert {f"table {redraws_name(1)}", f"table {redraws_name(2)}"} <= parts
    verify_run(workspace_with_runs, 1, strict=True)
    assert read_redraws(workspace_with_runs, 2) == {}, "without constraints there is nothing to count"


@pytest.mark.slow
def test_another_table_in_their_place_is_said_to_be_damaged(workspace_with_runs: Workspace) -> None:
    name = "UPDATE artefact SET sha256 = ? WHERE run_id = 1 AND name = 'redraws/1'"
    rows = dict(workspace_with_runs.connection.execute("SELECT name, sha256 FROM artefact WHERE run_id = 1").fetchall())
    with workspace_with_runs.write_transaction() as connection:
        connection.execute(name, (rows["draw/1"],))
    try:
        with pytest.raises(DamagedTable, match="no counts of redraws"):
            read_redraws(workspace_with_runs, 1)
    finally:
        with workspace_with_runs.write_transaction() as connection:
            connection.execute(name, (rows["redraws/1"],))


@pytest.mark.slow
def test_summary_app_json_and_report_say_the_same(workspace_with_runs: Workspace) -> None:
    found = read_redraws(workspace_with_runs, 1)
    said = redraws_sentence(found)
    assert f", at most {max(lines[-1].records for lines in found.values()):,} (" in said
    assert f"Constraints: {said}" in run_summary_text(workspace_with_runs, find_run(workspace_with_runs, 1))
    assert read_run_detail(workspace_with_runs, 1).redrawn_text == said
    assert said[:40] in brief_run_text(RunBrief(read_run_detail(workspace_with_runs, 1), None, []), [], 120, 40).plain
    assert result_object(workspace_with_runs, 1)["redrawn"] == redraws_objects(found)
    page = report_page(workspace_with_runs, 1)
    assert said.replace("'", "&#x27;") in page
    assert "Records redrawn" in page
    # and of a run without constraints nothing
    assert "redrawn" not in result_object(workspace_with_runs, 2)
    assert read_run_detail(workspace_with_runs, 2).redrawn_text == ""
    assert "Constraints:" not in run_summary_text(workspace_with_runs, find_run(workspace_with_runs, 2))
    assert "Records redrawn" not in report_page(workspace_with_runs, 2)


@pytest.mark.slow
def test_no_public_file_has_them(workspace_with_runs: Workspace, tmp_path: Any) -> None:
    write_run_release(workspace_with_runs, 1, tmp_path / "out", reason="simulated data only")
    public = [path for path in (tmp_path / "out" / "public").rglob("*") if path.is_file()]
    assert public
    for path in public:
        content = path.read_bytes()
        assert b"redrawn" not in content
        assert b"adult_spouse" not in content
    assert "redrawn" not in make_public_report(workspace_with_runs, 1).to_html()
