"""Release in three steps: what the gate finds, what leaves, the confirmation; and what was released before."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.engine.wording import count_noun
from sfumato.workspace.audit import user
from sfumato.workspace.policy.justification import checked_justification
from sfumato.workspace.reporting.findings import (
    by_status,
    counts_text,
    finding_text,
    is_open,
    lead_findings,
    witnesses_of,
)
from sfumato.workspace.store.runs import Run, records_of

from .run_words import run_text
from .session import Entry, Menu, Session
from .talk import NotPossible

if TYPE_CHECKING:
    from sfumato.workspace.gate.answer import ReleaseAnswer
    from sfumato.workspace.gate.contents import ReleasePlan
    from sfumato.workspace.gate.gate import Examination, Finding
    from sfumato.workspace.policy.policy import Policy


@dataclass(frozen=True)
class Looked:
    """A run at the gate: what would leave, the policy, and what was found with the waivers of this session."""

    run: Run
    records: int
    plan: ReleasePlan
    policy: Policy
    examination: Examination

    @property
    def answer(self) -> ReleaseAnswer:
        """Return whether the release may leave, with the waivers of this session."""
        from sfumato.workspace.gate.answer import answer_from_examination

        return answer_from_examination(self.examination, self.run.recipe, self.policy, self.records)

    @property
    def headline(self) -> str:
        """``run 7, Visits, with 2 blocks waived by ana``: what a confirmation is about."""
        blocks, left = len(self.examination.blocking_findings), len(self.examination.unwaived_findings)
        with_what = "which no finding blocks"
        if left:
            with_what = f"which {count_noun(left, 'block')} of the gate {'stops' if left == 1 else 'stop'}"
        elif blocks:
            names = ", ".join(dict.fromkeys(one.user for one in self.examination.waivers))
            with_what = f"with {count_noun(blocks, 'block')} waived by {names}"
        return f"run {run_text(self.run)}, {with_what}"


def examine_run(session: Session, run: Run) -> Looked:
    """Have the gate examine a run. Raises NotPossible, NotAsSealed, BadInput for a policy that cannot be."""
    from sfumato.workspace.gate.contents import plan_release
    from sfumato.workspace.gate.gate import examine_release
    from sfumato.workspace.policy.policy import read_policy_of_workspace

    workspace = session.workspace
    session.talk.say(f"The gate examines run {run.id}; this can take a minute.")
    plan, policy = plan_release(workspace, run.id), read_policy_of_workspace(workspace.directory)
    examination = examine_release(workspace, plan, policy).with_waivers_by(user(), session.waived.get(run.id, {}))
    return Looked(run, records_of(workspace, run), plan, policy, examination)


def _look(session: Session) -> Looked:
    """Ask for a run and have the gate examine it. Raises what ``examine_run`` raises."""
    return examine_run(session, session.ask_run("Release which run?", done=True))


def say_findings(session: Session, looked: Looked) -> None:
    """Say the answer, then how many findings there are by state, then each that a reader has to look at."""
    examination, left = looked.examination, {one.check for one in looked.examination.unwaived_findings}
    session.talk.say_all(list(looked.answer.lines))
    session.talk.say(f"The gate: {counts_text(examination.findings)}.")
    for finding in lead_findings(examination.findings):
        if is_open(finding):
            waived = finding.status == "block" and finding.check not in left
            witnesses = witnesses_of(finding, examination.findings)
            own = ["It is waived in this session."] if waived else []
            session.talk.say_all([*finding_text(finding, witnesses), *own])


def show_findings(session: Session) -> None:
    """Say whether the release may leave, and what the gate finds, blocks first; checks that pass are counted."""
    looked = _look(session)
    session.talk.say(f"Release of {looked.headline}.")
    say_findings(session, looked)


def waive(session: Session) -> None:
    """Waive a finding that blocks, with a justification that the audit log will keep."""
    from sfumato.workspace.gate.gate import waiver_obstacle

    looked, talk = _look(session), session.talk
    left = by_status(looked.examination.unwaived_findings)
    if not left:
        raise NotPossible(f"no finding blocks {looked.headline.partition(', which')[0]}; there is nothing to waive.")
    one = left[
        talk.choose("Waive which finding?", [f.check for f in left], explain=partial(_list_blocks, session, left))
    ]
    if refused := waiver_obstacle(one, looked.policy, user()):
        raise NotPossible(f"{refused}.")
    talk.say_all(finding_text(one))
    reason = talk.ask(
        f"Why is {one.check} waived? The audit log keeps the justification.",
        "a justification in words",
        partial(checked_justification, place=""),
    )
    session.waived.setdefault(looked.run.id, {})[one.check] = reason
    talk.say(f"Waived: {one.check}, by {user()}, because: {reason}.")
    talk.say(f"{count_noun(len(left) - 1, 'block')} left. A waiver takes effect with the release.")


def _list_blocks(session: Session, left: list[Finding]) -> None:
    session.talk.list([f"{one.check}: {one.said}." for one in left])


def show_contents(session: Session) -> None:
    """What leaves: datasets, variables by treatment, the two folders."""
    from sfumato.workspace.gate.contents import plan_release

    from ..session.release_texts import contents_lines

    run = session.ask_run("Release which run?", done=True)
    session.talk.say(f"Run {run_text(run)} would release:")
    session.talk.say_all([f"{line}." for line in contents_lines(plan_release(session.workspace, run.id))])
    session.talk.say("public: datasets, codebook, documents for users, manifest. This folder leaves the building.")
    session.talk.say(
        "internal: report, recipe, results, findings, manifest. This folder is as confidential as the data."
    )


def write_release(session: Session) -> None:
    """Write a release that nothing unwaived blocks, after its folder and a question with the headline."""
    from sfumato.workspace.release.forms import form_for_file, writable_forms
    from sfumato.workspace.service.release import past_releases, write_run_release

    from ..session.release_texts import released_text

    looked, talk, workspace = _look(session), session.talk, session.workspace
    talk.say_all(list(looked.answer.lines))
    known = writable_forms()
    own = form_for_file(workspace.dataset(looked.run.dataset_id).name)
    second = looked.policy.second_person
    if not second:
        _check_waived(looked)
    form = known[talk.choose("In which format?", known, own, what="Format")]
    if second and not _approved(session, looked, form):
        return
    folder = talk.ask("Into which folder?", "the path of a folder that is empty or not there yet", _folder)
    talk.say(f"Folder: {folder}.")
    if not talk.confirm(
        f"Release {looked.headline if not second else f'run {run_text(looked.run)}, as approved'}, to {folder}?",
        default=False,
    ):
        talk.say("Nothing is released.")
        return
    waivers = {} if second else {one.check: one.reason for one in looked.examination.waivers}
    done = write_run_release(workspace, looked.run.id, Path(folder), form, "", waivers)
    session.waived.pop(looked.run.id, None)
    talk.say(f"Run {looked.run.id} {released_text(done)}.")
    talk.say(
        f"Leaves the building: {done.directory / 'public'}. As confidential as the data: {done.directory / 'internal'}."
    )
    last = past_releases(workspace, looked.run.id)[0]
    talk.say(f"Released {last.time[:16].replace('T', ' ')} UTC by {last.user}.")


def _check_waived(looked: Looked) -> None:
    """Raises NotPossible where a finding blocks that this session has not waived."""
    if left := looked.examination.unwaived_findings:
        names = ", ".join(one.check for one in left)
        raise NotPossible(
            f"the gate blocks the release: {names}. Waive each with a justification first, or change the plan."
        )


def _approved(session: Session, looked: Looked, form: str) -> bool:
    """Whether another account has approved the release, where the policy asks for one; else offer to ask it."""
    from dataclasses import replace

    from sfumato.workspace.release.approval import approve_or_explain, request_release

    talk, run = session.talk, looked.run
    bare = replace(looked.examination, waivers=(), approval=None)
    found, why_not = approve_or_explain(session.workspace, looked.plan, looked.policy, bare, form)
    if not why_not and found.approval is not None:
        talk.say(f"Approved by {found.approval.approved_by}, because: {found.approval.approval_reason}.")
        return True
    talk.say(f"The policy asks for a second person. {why_not}.")
    if not talk.confirm("Ask another account for the release now?", default=False):
        return False
    reason = talk.ask("Why is it released?", "a justification in words", partial(checked_justification, place=""))
    request = request_release(session.workspace, run.id, reason, session.waived.get(run.id, {}), form)
    talk.say(f"Asked, because: {reason}. Another account answers with: sfumato approve {request} --reason TEXT")
    return False


def _folder(answer: str) -> str:
    """The whole path of a folder that a release can be written to. Raises BadInput."""
    from sfumato.engine.errors import BadInput

    path = Path(answer).expanduser().absolute()
    if not path.parent.is_dir():
        raise BadInput("", f'There is no folder "{path.parent}".')
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise BadInput("", f'"{path}" is not an empty folder.')
    return str(path)


def show_past(session: Session) -> None:
    """The releases of a run, the last first: when, by whom, why."""
    from sfumato.workspace.service.release import past_releases

    run = session.ask_run("The releases of which run?")
    past = past_releases(session.workspace, run.id)
    session.talk.say(f"Run {run_text(run)}: {count_noun(len(past), 'release')}.")
    for one in past:
        because = f", because: {one.reason}" if one.reason else ""
        when = one.time[:16].replace("T", " ")
        session.talk.say(f"{when} UTC by {one.user}, as {one.form}{because}; manifest {one.manifest_sha256[:12]}.")


MENU = Menu(
    "Release",
    "what the gate finds, what leaves, confirm",
    (
        Entry("Findings of the gate", "blocks first, each with how to fix it", show_findings),
        Entry("Waive a finding", "one that blocks, with a justification", waive),
        Entry("What leaves", "datasets, variables and folders", show_contents),
        Entry("Release", "writes the two folders, after a question", write_release),
        Entry("Past releases", "when and by whom", show_past),
    ),
)
