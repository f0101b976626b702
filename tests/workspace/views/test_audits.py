"""Whom an audit asked about, read back from a run: as the engine said, and in words."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sfumato.engine.methods.rows import Row
from sfumato.tui.cli.summary import records_at_risk_object, records_at_risk_text
from sfumato.workspace.errors import NotFound
from sfumato.workspace.jobs.task_costs import estimate_task_costs
from sfumato.workspace.reporting.audits import (
    AuditedRecord,
    auc_text,
    audit_sentences,
    audited_record_facts,
    audited_strip_facts,
    give_away_reasons,
    interval_strip,
)
from sfumato.workspace.reporting.explanation import ExplainedNumber, explanation_facts
from sfumato.workspace.store.artefacts import read_record_values
from sfumato.workspace.store.runs import find_run
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.audits import (
    audit_levers,
    audited_records_of_row,
    is_audit,
    read_audited_record,
    read_audited_records,
)
from sfumato.workspace.views.most_at_risk import read_records_at_risk
from sfumato.workspace.views.records import rank_records, record_measures, select_measure
from sfumato.workspace.views.results import read_result_rows

AUDIT = [{"method": "risk.record_audit", "targets": 3, "shadows": 40, "blocks": 2, "datasets": 1}]
FEATURES = (("distance of the nearest record by age", -3.0), ("records that agree on sex", 1.0))


def test_a_strip_shows_the_interval_the_area_and_one_half() -> None:
    one = AuditedRecord(7, 0.9, 0.75, 1.0, FEATURES)
    assert interval_strip(one) == "··········│····━━━●━━"
    assert auc_text(one) == "0.9 (0.75 .. 1)"
    assert one.is_given_away
    assert give_away_reasons(one) == [
        "smaller distance of the nearest record by age (75% of the weight)",
        "more records that agree on sex (25% of the weight)",
    ]
    assert audited_strip_facts([one])[0][1].startswith("1 of 1 people")
    assert audited_strip_facts([]) == []
    assert [name for name, _ in audited_record_facts(one, ("raise minbucket",))][-1] == "what to change"


def row(value: float | None, reason: str, **params: object) -> Row:
    limits = (None, None) if value is None else (0.6, 6.0)
    status = "computed" if value is not None else "not computed"
    return Row(
        "risk", "record_audit", "given_away", "", "synthetic", None, None, value, *limits, 0.0, "records", status, reason, params
    )  # fmt: skip


def test_what_an_audit_found_is_said_in_people_and_names_nobody() -> None:
    rows = [
        row(2.0, "20 targets; 200 shadows of 500 records and 1 dataset", people="vulnerable"),
        row(1.0, "20 targets; 200 shadows of 500 records and 1 dataset"),
        row(None, "a shadow could not be made", shadows=40),
    ]
    assert audit_sentences(rows) == [
        "The audit recognises 2 people in the releases beyond chance (people easiest to find), of 20 targets; 95 % interval 0.6 .. 6.",
        "The audit recognises 1 person in the releases beyond chance, of 20 targets; 95 % interval 0.6 .. 6.",
        "Audit: people recognised (shadows 40) was not computed: a shadow could not be made.",
    ]
    assert audit_sentences([replace(rows[0], draw=1), replace(rows[0], measure="auc")]) == []


@pytest.fixture
def workspace(tmp_path: Path, computed: Callable[..., Path]) -> Iterator[Workspace]:
    shutil.copytree(computed(measure=AUDIT, threshold=[]), tmp_path / "workspace")
    with Workspace.open(tmp_path / "workspace") as opened:
        yield opened


@pytest.mark.slow
def test_targets_of_an_audit_are_read_back_with_what_gives_them_away(workspace: Workspace) -> None:
    (measure,) = record_measures(workspace, 1)
    assert is_audit(measure)
    assert not measure.draw_hashes
    found = read_audited_records(workspace, measure)
    assert measure.combined_hash is not None
    arrays = read_record_values(workspace.tables, measure.combined_hash)
    asked = np.flatnonzero(np.isfinite(arrays["audited_auc"]))
    assert sorted(one.record for one in found) == (asked + 1).tolist()
    assert [one.lower for one in found] == sorted((one.lower for one in found), reverse=True)
    assert all(one.lower <= one.auc <= one.upper for one in found)
    assert all(abs(found[0].feature_weights[0][1]) >= abs(weight) for _, weight in found[0].feature_weights)
    assert read_audited_record(workspace, measure, found[1].record) == found[1]
    missing = next(k for k in range(1, 200) if k not in {one.record for one in found})
    with pytest.raises(NotFound, match="was not asked about"):
        read_audited_record(workspace, measure, missing)
    assert audit_levers(measure)
    records = rank_records(workspace, 1, select_measure([measure]))
    assert records.n_attacked == len(found)
    row = next(
        one for one in read_result_rows(workspace, 1) if one.measure.endswith("largest_auc") and one.value is not None
    )
    assert audited_records_of_row(workspace, 1, row) == found
    assert [text for name, text in explanation_facts(ExplainedNumber(row, audited_records=found)) if name == "people"]


@pytest.mark.slow
def test_the_command_shows_targets_and_one_of_them(workspace: Workspace) -> None:
    (measure,) = record_measures(workspace, 1)
    found = read_records_at_risk(workspace, 1, "", 10, None, with_values=False)
    listed = records_at_risk_text(found)
    assert "people asked about are recognised" in listed
    assert "nan" not in listed.lower()
    assert json.loads(json.dumps(records_at_risk_object(found), allow_nan=False))
    record = read_audited_records(workspace, measure)[1].record
    alone = records_at_risk_text(read_records_at_risk(workspace, 1, "", 10, None, record, with_values=False))
    assert "recognised by" in alone


@pytest.mark.slow
def test_what_an_audit_takes_is_told_by_its_shadows(workspace: Workspace) -> None:
    recipe = find_run(workspace, 1).recipe
    blocks = [
        one
        for one in estimate_task_costs(recipe, 10_000)
        if one.method == "risk.record_audit" and one.task.point is not None
    ]
    fits = [one.seconds or 0 for one in estimate_task_costs(recipe, 10_000) if one.task.kind == "fit"]
    assert len(blocks) == 2
    assert (blocks[0].seconds or 0) > 20 * sum(fits)
