"""Answers of the gate for the runs of this session; an examination is made once and is valid until its stamp changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from sfumato.workspace.reporting.words import sign_for

if TYPE_CHECKING:
    from sfumato.engine.recipe.recipe import Recipe
    from sfumato.workspace.gate.answer import ReleaseAnswer
    from sfumato.workspace.gate.gate import Examination, Finding
    from sfumato.workspace.policy.policy import Policy
    from sfumato.workspace.store.runs import StoredRun
    from sfumato.workspace.store.workspace import Workspace

STATE_SIGNS = {"no": "block", "to be judged": "warn", "yes": "pass"}
"""The sign of each answer, as ``mark`` knows it."""
STATE_INKS = {"no": "$error bold", "to be judged": "$warning bold", "yes": "$success bold"}
NOT_ASKED, ASKING, NOT_EXAMINED = "not asked yet", "asking …", "not examined"
"""What stands in place of an answer: the gate was not asked, it examines, or it could not examine."""
BEING_EXAMINED = "being examined"
"""The same in a title line, while the gate examines."""
SHORT_ANSWERS = {"no": "may not leave", "to be judged": "to be judged", "yes": "may leave"}
"""The answer where it is one of several words in a line."""


def short_answer_text(answer: ReleaseAnswer) -> str:
    """Return an answer in few words: ``may not leave``, ``overruled by ana``."""
    # A release that the gate blocks and a person lets leave was judged already, and by whom counts.
    return f"overruled by {', '.join(answer.overruled_by)}" if answer.overruled_by else SHORT_ANSWERS[answer.may_leave]


def signed_answer_text(answer: ReleaseAnswer) -> str:
    """Return an answer in few words with its sign: ``✗ may not leave``."""
    return f"{sign_for(STATE_SIGNS[answer.may_leave])} {short_answer_text(answer)}"


@dataclass(frozen=True)
class ExaminedRun:
    """Examination of a run's release, with what this account waives of it.

    examination: with the waivers of the approval, where a second person has approved the release
    records: number of confidential records of the run
    stamp: what the examination depends on besides the run; empty where that is not known
    why_unapproved: why a second person, where the policy asks for one, has not approved the release
    waiver_reasons: reasons by check
    """

    run_id: int
    policy: Policy
    recipe: Recipe
    examination: Examination
    records: int
    stamp: str = ""
    why_unapproved: str = ""
    waiver_reasons: Mapping[str, str] = field(default_factory=dict)

    @property
    def waived_examination(self) -> Examination:
        """Return the examination with what this account waives."""
        from sfumato.workspace.audit import user

        return self.examination.with_waivers_by(user(), self.waiver_reasons)

    @property
    def unwaived_findings(self) -> tuple[Finding, ...]:
        """Return the findings that block and are not waived by name."""
        return self.waived_examination.unwaived_findings

    @property
    def why_no_reason_helps(self) -> str:
        """Return why no reason can waive one of the unwaived findings; empty where one can, or none is needed."""
        from sfumato.workspace.audit import user
        from sfumato.workspace.gate.gate import waiver_obstacle

        return next(filter(None, (waiver_obstacle(one, self.policy, user()) for one in self.unwaived_findings)), "")

    @property
    def reason_hint(self) -> str:
        """Return the hint in the field for the reason of the release."""
        if self.policy.second_person:
            return "Justification of the request"
        left = ", ".join(one.title for one in self.blocking_leads if one in self.unwaived_findings)
        if not left:
            return "Justification (optional)"
        refused = self.why_no_reason_helps
        return f"a reason cannot help: {refused}" if refused else f"Required: why may it leave in spite of {left}"

    @property
    def lead_findings(self) -> list[Finding]:
        """Return the findings that have a line of their own, the worst first."""
        from sfumato.workspace.reporting.findings import sort_by_status

        left = {one.check for one in self.unwaived_findings}
        return sort_by_status(
            # A witness that cannot be waived still blocks though its lead is waived: then it must be shown by itself.
            [one for one in self.examination.findings if not one.leak or (one.check in left and one.leak not in left)]
        )

    def witness_findings(self, check: str) -> tuple[Finding, ...]:
        """Return the other findings that see the same leak as a check."""
        return tuple(one for one in self.examination.findings if one.leak == check)

    @property
    def waived_checks(self) -> frozenset[str]:
        """Return the names of the checks that block and are waived."""
        return frozenset(one.check for one in self.examination.blocking_findings) - {
            one.check for one in self.unwaived_findings
        }

    @property
    def blocking_leads(self) -> list[Finding]:
        """Return the findings that block and have a line of their own, waived or not."""
        return [one for one in self.lead_findings if one.status == "block"]

    @property
    def waived_leads(self) -> list[Finding]:
        """Return those of ``blocking_leads`` that are waived."""
        return [one for one in self.blocking_leads if one.check in self.waived_checks]

    @cached_property
    def release_answer(self) -> ReleaseAnswer:
        """Return the gate's answer with the waivers that count."""
        from sfumato.workspace.gate.answer import answer_from_examination

        # Where a second person decides, only the waivers that were approved count.
        examination = self.examination if self.policy.second_person else self.waived_examination
        return answer_from_examination(examination, self.recipe, self.policy, self.records)


def known_answer_text(run: StoredRun, answers: Mapping[int, ReleaseAnswer], unknown: str = NOT_ASKED) -> str:
    """Return the gate's answer for a run that is done with its sign, ``unknown`` without one; empty for another run."""
    from sfumato.workspace.store.runs import RunState

    if run.state is not RunState.DONE:
        return ""
    answer = answers.get(run.id)
    return unknown if answer is None else signed_answer_text(answer)


def current_stamp(workspace: Workspace) -> str:
    """Return the stamp that valid examinations have now; empty for a policy that cannot be read."""
    from sfumato.engine.errors import EngineError
    from sfumato.workspace.errors import WorkspaceError
    from sfumato.workspace.service.examination import gate_stamp

    try:
        return gate_stamp(workspace)
    except (EngineError, WorkspaceError):
        return ""


@dataclass
class GateMemory:
    """Examinations of runs in this session.

    runs: examinations by run number
    typed: texts of the fields of a release that were left before it was written, by run number and field
    lock: held while a run is examined
    """

    runs: dict[int, ExaminedRun] = field(default_factory=dict)
    typed: dict[int, Mapping[str, str]] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)

    def examine(self, directory: Path, run_id: int, call: Callable[..., Any]) -> ExaminedRun:
        """Return the examination of a run: the one in memory if it is valid, else a new one, made in another process.

        ``call`` calls a function in a process of its own. Called in a thread. Raises BadInput, NotFound, NotReady and
        what an examination raises.
        """
        from sfumato.workspace.policy.policy import read_policy_of_workspace
        from sfumato.workspace.service.examination import examine_run, gate_stamp
        from sfumato.workspace.store.runs import find_run
        from sfumato.workspace.store.workspace import Workspace

        with self.lock:  # one at a time: the second who asks for a run finds the answer here
            with Workspace.open(directory, read_only=True) as workspace:
                kept = self.find_examination(run_id, gate_stamp(workspace))
                if kept is not None:
                    return kept
                recipe = find_run(workspace, run_id).recipe
            found = call(examine_run, directory, run_id, what="the examination of the release")
            policy = read_policy_of_workspace(directory)
            # Where the policy changed while the gate looked, the examination does not hold: the next who asks examines again.
            stamp = found.stamp if policy.sha256 == found.examination.policy_sha256 else ""
            blocking = {one.check for one in found.examination.blocking_findings}
            waive = {check: reason for check, reason in self.given_waivers(run_id).items() if check in blocking}
            examined = ExaminedRun(
                run_id, policy, recipe, found.examination, found.records, stamp, waiver_reasons=waive
            )
            self.store_examination(examined)
            return examined

    def store_examination(self, examined: ExaminedRun) -> None:
        """Store an examination without the approval of a second person."""
        # An approval may be used or withdrawn at any time.
        if examined.policy.second_person:
            bare = replace(examined.examination, waivers=(), approval=None)
            examined = replace(examined, examination=bare, why_unapproved="")
        self.runs[examined.run_id] = examined

    def find_examination(self, run_id: int, stamp: str) -> ExaminedRun | None:
        """Return the examination of a run with this stamp, or None."""
        kept = self.runs.get(run_id)
        return kept if kept is not None and kept.stamp == stamp != "" else None

    def keep_typed_texts(self, run_id: int, texts: Mapping[str, str]) -> None:
        """Keep what was typed for the release of a run and not used yet, by field."""
        self.typed[run_id] = dict(texts)

    def typed_texts(self, run_id: int) -> Mapping[str, str]:
        """Return what was typed for the release of a run and not used yet, by field."""
        return self.typed.get(run_id, {})

    def given_waivers(self, run_id: int) -> Mapping[str, str]:
        """Return the reasons by check that were given for a run in this session."""
        kept = self.runs.get(run_id)
        return {} if kept is None else kept.waiver_reasons

    def answers_by_run(self, stamp: str) -> Mapping[int, str]:
        """Return the known answers under the current stamp, ``no``, ``to be judged`` or ``yes``, by run."""
        return {run_id: answer.may_leave for run_id, answer in self.release_answers(stamp).items()}

    def release_answers(self, stamp: str) -> Mapping[int, ReleaseAnswer]:
        """Return the known answers under the current stamp, in full, by run."""
        return {one.run_id: one.release_answer for one in self.runs.values() if one.stamp == stamp != ""}
