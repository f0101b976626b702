"""The strongest intruder before a release: what the gate finds, what the assessment and the report say, what never leaves."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from believed import INTRUDER, RECIPE, believed_workspace, survey
from prepared_workspaces import run_recipe

from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace.gate import people_checks
from sfumato.workspace.gate.contents import plan_release
from sfumato.workspace.gate.gate import Finding, examine_release
from sfumato.workspace.gate.policy_text import policy_toml
from sfumato.workspace.policy.policy import FindingLimit, Policy
from sfumato.workspace.release.report import report_page
from sfumato.workspace.service.release import write_run_release
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.beliefs import belief_measures, read_beliefs

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def workspace_with_beliefs(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return Workspace.open(believed_workspace(tmp_path_factory.mktemp("believed") / "workspace"))


def entered(workspace: Workspace, **changes: Any) -> int:
    recipe, (_, data) = Recipe.from_table({**RECIPE, **changes}), survey()
    return run_recipe(workspace, recipe, data.frame, "survey.csv")


def findings_by_check(workspace: Workspace, run_id: int = 1, policy: Policy | None = None) -> dict[str, Finding]:
    examination = examine_release(workspace, plan_release(workspace, run_id), policy or Policy())
    return {one.check: one for one in examination.findings}


def test_truths_that_become_nearly_certain_are_found(workspace_with_beliefs: Workspace) -> None:
    """The last record alone is a divorced lodger: with next to no virtual records only it can have brought one into the release."""
    findings = findings_by_check(workspace_with_beliefs)
    uniform = read_beliefs(workspace_with_beliefs, 1, belief_measures(workspace_with_beliefs, 1)[1])
    newly = findings["newly_certain"]
    assert newly.records == (*sorted(int(n) - 1 for n in uniform.record_numbers[uniform.newly_certain]),)
    assert newly.compared_value == pytest.approx(uniform.newly_certain.mean())
    assert newly.compared_value > 0
    assert newly.status == ("block" if newly.compared_value > 0.01 else "warn")
    strict = findings_by_check(
        workspace_with_beliefs, policy=Policy(findings={"newly_certain": FindingLimit(warn=0.0, block=0.5)})
    )
    assert strict["newly_certain"].status == "warn"


def test_truths_that_were_certain_before_are_not_the_release_s_doing(
    workspace_with_beliefs: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    (one, _) = [
        read_beliefs(workspace_with_beliefs, 1, measure) for measure in belief_measures(workspace_with_beliefs, 1)
    ]
    sure = np.full(one.n_attacked, 0.99)
    for prior, share in ((np.full(one.n_attacked, 0.96), 0.0), (np.full(one.n_attacked, 0.5), 1.0)):
        changed = replace(one, prior=prior, posterior=sure)
        monkeypatch.setattr(people_checks, "_intruder_beliefs", lambda _, changed=changed: [changed])
        finding = findings_by_check(workspace_with_beliefs)["newly_certain"]
        assert finding.compared_value == share
        assert finding.status == ("block" if share else "pass")


def test_guesses_beyond_the_prior_are_judged_where_the_prior_knows_something(
    workspace_with_beliefs: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    (one, uniform) = [
        read_beliefs(workspace_with_beliefs, 1, measure) for measure in belief_measures(workspace_with_beliefs, 1)
    ]
    assert one.is_informed
    assert not uniform.is_informed

    def finding(after: float, before: float, lower: float | None = None) -> Finding:
        changed = replace(
            one,
            right_after=replace(one.right_after, value=after, lower=lower),
            right_before=replace(one.right_before, value=before),
        )
        monkeypatch.setattr(people_checks, "_intruder_beliefs", lambda _: [changed, uniform])
        return findings_by_check(workspace_with_beliefs)["guessed_beyond_prior"]

    assert finding(0.25, 0.25).status == "pass"
    assert finding(0.20, 0.25).status == "pass"
    assert finding(0.1471, 0.1402).status == "pass"  # Reiter, Wang & Zhang, Table 2, stratum 1
    assert finding(0.2616, 0.2445).status == "pass"  # stratum 2
    assert finding(0.33, 0.25).status == "warn"
    assert finding(0.90, 0.25).status == "block"
    assert finding(0.90, 0.25).compared_value == pytest.approx(0.65 / 0.75)
    assert finding(0.90, 0.25, lower=0.2).status == "warn"  # of a few records, which chance may have chosen
    assert finding(1.0, 1.0).status == "pass"
    monkeypatch.setattr(people_checks, "_intruder_beliefs", lambda _: [uniform])
    alone = findings_by_check(workspace_with_beliefs)["guessed_beyond_prior"]
    assert alone.status == "not checked"
    assert "prior that knows nothing" in alone.message


def test_the_gate_reads_records_of_which_nobody_asked_as_unknown(workspace_with_beliefs: Workspace) -> None:
    """NaN is held above no limit: the worst record must come from those that were asked about."""
    finding = findings_by_check(workspace_with_beliefs)["worst_records"]
    assert finding.value is not None
    assert np.isfinite(finding.value)
    assert finding.message.startswith("Identification risk")


def test_the_limits_stand_in_the_policy_with_their_reason(workspace_with_beliefs: Workspace) -> None:
    text = policy_toml(Policy())
    for words in ("[findings.newly_certain]", "[findings.guessed_beyond_prior]", "Reiter, Wang & Zhang"):
        assert words in text


def test_a_run_that_did_not_ask_says_so_in_gate_assessment_and_report(tmp_path: Path) -> None:
    with Workspace.create(tmp_path / "w", PUBLIC) as workspace:
        run_id = entered(workspace, measure=[{"method": "risk.identification"}], threshold=[])
        findings = findings_by_check(workspace, run_id)
        for check in ("newly_certain", "guessed_beyond_prior"):
            assert findings[check].status == "not checked"
            assert "no measure tried an intruder who knows everybody else" in findings[check].message
        write_run_release(workspace, run_id, tmp_path / "out", reason="released for a test")
        assessment = (tmp_path / "out" / "internal" / "risk-assessment.md").read_text("utf-8")
        assert "Strongest intruder: NOT ASKED" in assessment
        assert "Strongest intruder: NOT ASKED" in report_page(workspace, run_id)


def test_the_assessment_and_the_report_say_what_was_asked_and_nothing_of_it_is_public(
    workspace_with_beliefs: Workspace, tmp_path: Path
) -> None:
    one, uniform = (
        read_beliefs(workspace_with_beliefs, 1, measure) for measure in belief_measures(workspace_with_beliefs, 1)
    )
    write_run_release(workspace_with_beliefs, 1, tmp_path / "out", reason="released for a test")
    assessment = (tmp_path / "out" / "internal" / "risk-assessment.md").read_text("utf-8")
    assert "NOT ASKED" not in assessment
    assert (
        f"{100 * one.right_after.value:.4g} % of the records are guessed right once the release is known" in assessment
    )
    page = report_page(workspace_with_beliefs, 1)
    for words in (
        "correct after",
        "By the first datasets",
        "records whose truth is most probable",
        "Belief in the truth",
    ):
        assert words in page
    own = page[page.index('id="strongest-intruder') : page.index('id="figures"')]
    assert not [level for level in ("zqxdivorced", "lodger", "tenant", "widowed") if level in own]
    values = [value for found in (one, uniform) for value in (found.right_after.value, found.right_before.value)]
    secrets = {f"{value:.4g}" for value in values} | {f"{100 * value:.4g} %" for value in values}
    for file in (tmp_path / "out" / "public").rglob("*"):
        if file.is_file() and file.suffix not in (".csv", ".parquet"):
            text = file.read_text("utf-8", errors="replace")
            assert "bayesian_posterior" not in text, file
            assert "intruder" not in text.lower() or "Strongest" not in text, file
            assert not [secret for secret in secrets if secret in text], file
    assert json.loads((tmp_path / "out" / "internal" / "results.json").read_text("utf-8"))["rows"]


def test_the_limits_are_of_the_records_asked_about(tmp_path: Path) -> None:
    with Workspace.create(tmp_path / "w", PUBLIC) as workspace:
        run_id = entered(workspace, measure=[{"method": INTRUDER, "records": 10, "blocks": 2}], threshold=[])
        asked = read_beliefs(workspace, run_id, belief_measures(workspace, run_id)[0])
        assert asked.n_attacked == 10
        assert asked.n_records == 90
        assert "10 of 90 records" in findings_by_check(workspace, run_id)["newly_certain"].message
