"""The report that goes with a release: what a data protection officer signs, in plain words first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from sfumato.engine.methods.labels import label_of
from sfumato.workspace.gate.gate import Examination, Finding, Waiver
from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.release.decision import decision_from_dossier
from sfumato.workspace.release.dossier import ReleaseDossier
from sfumato.workspace.release.report import report_page
from sfumato.workspace.reporting.release_summary import (
    ReleaseDecision,
    release_overview,
    summary_lines,
    thresholds_sentence,
)
from sfumato.workspace.reporting.words import observed_text
from sfumato.workspace.store.workspace import Workspace

Read = Callable[..., ReleaseDossier]
pytestmark = pytest.mark.slow


class Words(HTMLParser):
    """The text of a page by the heading of its second level that it stands under."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.sections: dict[str, str] = {}
        self.heading, self.inside = "", False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "h2":
            self.heading, self.inside = "", True

    def handle_endtag(self, tag: str) -> None:
        self.inside = self.inside and tag != "h2"

    def handle_data(self, data: str) -> None:
        if self.inside:
            self.heading += data
        else:
            self.sections[self.heading] = self.sections.get(self.heading, "") + data + "\n"


def test_the_summary_stands_first_and_says_what_goes_out_what_failed_and_what_was_not_measured(
    workspace: Workspace, enter: Callable[..., int]
) -> None:
    run_id = enter(threshold=[{"value": "risk.identification.true_match_rate", "max": 0.0}])
    run_worker(workspace.directory, idle=0)
    found = Words(report_page(workspace, run_id)).sections
    assert next(heading for heading in found if heading) == "Summary"
    told = found["Summary"]
    assert (
        "3 synthetic datasets of 80 records. Replaced: visits, income. Unchanged, as in the confidential data: region, age."
        in told
    )
    assert "The threshold is not met: People found for certain" in told
    assert "Inference: NOT MEASURED." in told
    assert "Membership: NOT MEASURED." in told
    assert "Linkability: measured by Identification risk." in told
    assert "nothing has been decided by it" in found["Decision"]


def test_a_release_has_its_reason_findings_waivers_and_lines_to_sign_on(
    workspace: Workspace, done_run: int, dossier_for: Read
) -> None:
    finding = Finding("equal_records", "block", "rows equal a confidential one", "3 of 80 do")
    passed = Finding("models", "pass", "models that did not converge", "all converged")
    examination = Examination(done_run, "0" * 64, (finding, passed))
    dossier = replace(
        dossier_for(done_run, "<b>the board</b> asked"), examination=examination, judgements={"owner": "Maria"}
    )
    decision = replace(decision_from_dossier(dossier), waivers=(("equal_records", "paul", "known \u202e and kept"),))
    waived = replace(dossier, examination=replace(examination, waivers=(Waiver("equal_records", "known", "paul"),)))
    found = Words(report_page(workspace, done_run, decision=decision, answer=waived.answer)).sections
    assert found["Summary"].strip().startswith("May this leave into an enclave? NO, unless a person overrules it")
    assert "1 block was waived by paul, and needs" in found["Summary"]
    assert "Reason given: <b>the board</b> asked" in found["Summary"]
    for words in ("3 of 80 do", "paul", "known \ufffd and kept", "Maria", "Data protection officer", "signature"):
        assert words in found["Decision"]
    assert "all converged" not in found["Decision"]
    assert "nothing has been decided" not in found["Decision"]


def test_a_number_that_could_not_be_computed_is_no_threshold_met(
    done_run: int, dossier_for: Read, enter: Callable[..., int], workspace: Workspace
) -> None:
    run_id = enter(threshold=[{"value": "risk.identification.true_match_rate", "max": 0.5}])
    run_worker(workspace.directory, idle=0)
    verdict = dossier_for(run_id).plan.verdicts[0]
    assert thresholds_sentence([replace(verdict, outcome="met")]) == (
        f"The threshold is met: {label_of(verdict)}: {observed_text(verdict)}, limit at most 50 %."
    ), "which limit is met, by which result"
    missing = replace(verdict, outcome="not computed", observed=None)
    assert ": not computed, limit" in thresholds_sentence([missing])
    assert thresholds_sentence([]) == "The recipe sets no threshold: nothing was compared with a limit."


def test_without_measures_every_question_is_open(done_run: int, dossier_for: Read) -> None:
    plan = dossier_for(done_run).plan
    lines = summary_lines(release_overview(plan.run.recipe, 3, 80), (), (), plan.run.recipe)
    assert [line for line in lines if "NOT MEASURED" in line] == [
        f"{name}: NOT MEASURED." for name in ("Singling out", "Linkability", "Inference", "Membership")
    ]
    assert not any("No finding of the gate" in line for line in lines)
    decided = summary_lines("", (), (), plan.run.recipe, ReleaseDecision("pass"))
    assert not any("blocks" in line for line in decided), "whether it may leave says the answer alone"
