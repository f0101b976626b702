"""Menu Release: gate findings, contents, confirmation, and earlier releases."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.engine.wording import count_noun
from sfumato.workspace.audit import user
from sfumato.workspace.policy.justification import checked_justification
from sfumato.workspace.reporting.findings import (
    finding_counts_text,
    finding_text,
    findings_of_same_leak,
    is_open,
    lead_findings,
    sort_by_status,
)
from sfumato.workspace.store.runs import StoredRun, count_confidential_records

from .run_words import run_text
from .session import MenuEntry, NumberedMenu, PlainSession
from .talk import ActNotPossible

if TYPE_CHECKING:
    from sfumato.workspace.gate.answer import ReleaseAnswer
    from sfumato.workspace.gate.contents import ReleasePlan
    from sfumato.workspace.gate.gate import Examination, Finding
    from sfumato.workspace.policy.policy import Policy


@dataclass(frozen=True)
class RunAtGate:
    """Run examined by the gate.

    records: number of confidential records
    plan: what would be released
    examination: findings, with the waivers of this session
    """

    run: StoredRun
    records: int
    plan: ReleasePlan
    policy: Policy
    examination: Examination

    @property
    def release_answer(self) -> ReleaseAnswer:
        """Return whether the release may leave, with the waivers of this session."""
        from sfumato.workspace.gate.answer import answer_from_examination

        return answer_from_examination(self.examination, self.run.recipe, self.policy, self.records)

    @property
    def waived_checks(self) -> frozenset[str]:
        """Return the checks that block and are waived in this session."""
        left = {one.check for one in self.examination.unwaived_findings}
        return frozenset(one.check for one in self.examination.blocking_findings) - left

    @property
    def confirmation_headline(self) -> str:
        """Return the run and its waived blocks, for a confirmation: ``run 7, Visits, with 2 blocks waived by ana``."""
        blocks, left = len(self.examination.blocking_findings), len(self.examination.unwaived_findings)
        with_what = "which no finding blocks"
        if left:
            with_what = f"which {count_noun(left, 'block')} of the gate {'stops' if left == 1 else 'stop'}"
        elif blocks:
            names = ", ".join(dict.fromkeys(one.user for one in self.examination.waivers))
            with_what = f"with {count_noun(blocks, 'block')} waived by {names}"
        return f"run {run_text(self.run)}, {with_what}"


def examine_at_gate(session: PlainSession, run: StoredRun) -> RunAtGate:
    """Examine a run at the gate. Raises ActNotPossible, NotAsSealed, and BadInput for an invalid policy."""
    # Imported here: the first question of plain mode must not wait for numerical libraries.
    from sfumato.workspace.gate.contents import plan_release
    from sfumato.workspace.gate.gate import examine_release
    from sfumato.workspace.policy.policy import read_policy_of_workspace

    workspace = session.workspace
    session.conversation.say(f"The gate examines run {run.id}; this can take a minute.")
    plan, policy = plan_release(workspace, run.id), read_policy_of_workspace(workspace.directory)
    examination = examine_release(workspace, plan, policy).with_waivers_by(
        user(), session.waiver_reasons.get(run.id, {})
    )
    return RunAtGate(run, count_confidential_records(workspace, run), plan, policy, examination)


def _ask_and_examine_run(session: PlainSession) -> RunAtGate:
    """Ask for a run and examine it at the gate. Raises what ``examine_at_gate`` raises."""
    return examine_at_gate(session, session.ask_run("Release which run?", must_be_done=True))


def finding_lines(run_at_gate: RunAtGate) -> dict[str, list[str]]:
    """Return the lines about each finding that is open, by its check, with its witnesses and whether it is waived."""
    findings, waived = run_at_gate.examination.findings, run_at_gate.waived_checks
    return {
        one.check: [
            *finding_text(one, findings_of_same_leak(one, findings)),
            *(["It is waived in this session."] if one.check in waived else []),
        ]
        for one in lead_findings(findings)
        if is_open(one)
    }


def say_findings(session: PlainSession, run_at_gate: RunAtGate) -> None:
    """Print the answer, the number of findings by state, and each finding that is open."""
    session.conversation.print_lines(list(run_at_gate.release_answer.lines))
    session.conversation.say(f"The gate: {finding_counts_text(run_at_gate.examination.findings)}.")
    for lines in finding_lines(run_at_gate).values():
        session.conversation.print_lines(lines)


def show_gate_findings(session: PlainSession) -> None:
    """Print whether the release may leave, and the gate's findings, blocks first; checks that pass are counted."""
    looked = _ask_and_examine_run(session)
    session.conversation.say(f"Release of {looked.confirmation_headline}.")
    say_findings(session, looked)


def waive_finding(session: PlainSession) -> None:
    """Waive a finding that blocks, with a justification that the audit log keeps."""
    from sfumato.workspace.gate.gate import waiver_obstacle

    looked, talk = _ask_and_examine_run(session), session.conversation
    left = sort_by_status(looked.examination.unwaived_findings)
    if not left:
        raise ActNotPossible(
            f"no finding blocks {looked.confirmation_headline.partition(', which')[0]}; there is nothing to waive."
        )
    one = left[
        talk.choose("Waive which finding?", [f.check for f in left], explain=partial(_list_blocks, session, left))
    ]
    if refused := waiver_obstacle(one, looked.policy, user()):
        raise ActNotPossible(f"{refused}.")
    talk.print_lines(finding_text(one))
    reason = talk.ask(
        f"Why is {one.check} waived? The audit log keeps the justification.",
        "a justification in words",
        partial(checked_justification, place=""),
    )
    session.waiver_reasons.setdefault(looked.run.id, {})[one.check] = reason
    talk.say(f"Waived: {one.check}, by {user()}, because: {reason}.")
    talk.say(f"{count_noun(len(left) - 1, 'block')} left. A waiver takes effect with the release.")


def _list_blocks(session: PlainSession, left: list[Finding]) -> None:
    session.conversation.print_numbered([f"{one.check}: {one.message}." for one in left])


def show_release_contents(session: PlainSession) -> None:
    """Print what is released: datasets, variables by treatment, the two folders."""
    from sfumato.workspace.gate.contents import plan_release
    from sfumato.workspace.release.forms import form_for_file

    from ..session.release_texts import release_contents_lines

    run = session.ask_run("Release which run?", must_be_done=True)
    session.conversation.say(f"Run {run_text(run)} would release:")
    plan = plan_release(session.workspace, run.id)
    form = form_for_file(session.workspace.find_dataset(plan.run.dataset_id).name)
    session.conversation.print_lines([f"{line}." for line in release_contents_lines(plan, form)])
    session.conversation.say(
        "public: datasets, codebook, documents for users, manifest. This folder leaves the building."
    )
    session.conversation.say(
        "internal: report, recipe, results, findings, manifest. This folder is as confidential as the data."
    )


def write_release(session: PlainSession) -> None:
    """Ask for a folder and a confirmation, and write a release that no unwaived finding blocks."""
    from sfumato.workspace.release.forms import form_for_file, writable_forms
    from sfumato.workspace.service.release import past_releases, write_run_release

    from ..session.release_texts import confirmation_facts, released_text

    looked, talk, workspace = _ask_and_examine_run(session), session.conversation, session.workspace
    talk.print_lines(list(looked.release_answer.lines))
    known = writable_forms()
    own = form_for_file(workspace.find_dataset(looked.run.dataset_id).name)
    second = looked.policy.second_person
    if not second:
        _check_all_waived(looked)
    form = known[talk.choose("In which format?", known, own, what="Format")]
    if second and not _check_approval(session, looked, form):
        return
    folder = talk.ask("Into which folder?", "the path of a new or empty folder", _check_release_folder)
    talk.say(f"Folder: {folder}.")
    answer = looked.release_answer
    for name, text in confirmation_facts(looked.plan, form, answer, folder):
        talk.say(f"{name[:1].upper()}{name[1:]}: {text.rstrip('.')}.")
    if not talk.confirm(
        f"Release {looked.confirmation_headline if not second else f'run {run_text(looked.run)}, as approved'}, to {folder}?",
        default=False,
    ):
        talk.say("Nothing is released.")
        return
    # An approved release has the waivers of its request.
    waivers = {} if second else {one.check: one.reason for one in looked.examination.waivers}
    done = write_run_release(workspace, looked.run.id, Path(folder), form, "", waivers)
    session.waiver_reasons.pop(looked.run.id, None)
    talk.say(f"Run {looked.run.id} {released_text(done)}.")
    talk.say(
        f"Leaves the building: {done.directory / 'public'}. As confidential as the data: {done.directory / 'internal'}."
    )
    last = past_releases(workspace, looked.run.id)[0]
    talk.say(f"Released {last.time[:16].replace('T', ' ')} UTC by {last.user}.")


def _check_all_waived(looked: RunAtGate) -> None:
    """Raise ActNotPossible where a finding blocks that this session has not waived."""
    if left := looked.examination.unwaived_findings:
        names = ", ".join(one.check for one in left)
        raise ActNotPossible(
            f"the gate blocks the release: {names}. Waive each with a justification first, or change the plan."
        )


def _check_approval(session: PlainSession, looked: RunAtGate, form: str) -> bool:
    """Return whether another account has approved the release; else offer to request it."""
    from dataclasses import replace

    from sfumato.workspace.release.approval import approve_or_explain, request_release

    talk, run = session.conversation, looked.run
    # Where a second person decides, only the waivers that this person has approved count.
    bare = replace(looked.examination, waivers=(), approval=None)
    found, why_not = approve_or_explain(session.workspace, looked.plan, looked.policy, bare, form)
    if not why_not and found.approval is not None:
        talk.say(f"Approved by {found.approval.approved_by}, because: {found.approval.approval_reason}.")
        return True
    talk.say(f"The policy asks for a second person. {why_not}.")
    if not talk.confirm("Ask another account for the release now?", default=False):
        return False
    reason = talk.ask("Why is it released?", "a justification in words", partial(checked_justification, place=""))
    request = request_release(session.workspace, run.id, reason, session.waiver_reasons.get(run.id, {}), form)
    talk.say(f"Asked, because: {reason}. Another account answers with: sfumato approve {request} --reason TEXT")
    return False


def _check_release_folder(answer: str) -> str:
    """Return the absolute path of a folder that a release can be written to. Raises BadInput."""
    from sfumato.engine.errors import BadInput

    path = Path(answer).expanduser().absolute()
    if not path.parent.is_dir():
        raise BadInput("", f'There is no folder "{path.parent}".')
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise BadInput("", f'"{path}" is not an empty folder.')
    return str(path)


def show_past_releases(session: PlainSession) -> None:
    """Print the releases of a run, the newest first: when, by whom, why."""
    from sfumato.workspace.service.release import past_releases

    run = session.ask_run("The releases of which run?")
    past = past_releases(session.workspace, run.id)
    session.conversation.say(f"Run {run_text(run)}: {count_noun(len(past), 'release')}.")
    for one in past:
        because = f", because: {one.reason}" if one.reason else ""
        when = one.time[:16].replace("T", " ")
        session.conversation.say(
            f"{when} UTC by {one.user}, as {one.form}{because}; manifest {one.manifest_sha256[:12]}."
        )


def show_population_ledger(session: PlainSession) -> None:
    """Print what was spent of the privacy budget of the people of the open project, and by which runs."""
    from sfumato.workspace.reporting.ledger import charge_sentences, ledger_sentences
    from sfumato.workspace.service.population import ledger_of_project

    ledger = ledger_of_project(session.workspace, session.current_project().id)
    session.conversation.print_lines([*ledger_sentences(ledger), *charge_sentences(ledger)])


def state_other_people(session: PlainSession) -> None:
    """State that other people were asked for the open project, with a name and a reason for the audit log."""
    from sfumato.workspace.policy.justification import checked_full_justification
    from sfumato.workspace.service.population import begin_population, check_new_population, population_names_in_use

    talk, project_id = session.conversation, session.current_project().id
    show_population_ledger(session)
    in_use = population_names_in_use(session.workspace.connection)
    name = talk.ask(
        "What are the other people called?", "a new name", partial(check_new_population, in_use=in_use, place="")
    )
    reason = talk.ask(
        "Who was asked, and when? The audit log keeps the reason.",
        "a reason in words",
        partial(checked_full_justification, place=""),
    )
    talk.say(f"The ledger of {name} begins with the whole budget. The audit log keeps your name and the reason.")
    if not talk.confirm(f"State that other people were asked, and begin the ledger of {name}?", default=False):
        talk.say("Nothing is stated.")
        return
    begin_population(session.workspace, project_id, name, reason)
    talk.say(f"Stated by {user()}: other people were asked. Releases are charged to {name} from now on.")


MENU = NumberedMenu(
    "Release",
    "what the gate finds, what leaves, confirm",
    (
        MenuEntry("Findings of the gate", "blocks first, each with how to fix it", show_gate_findings),
        MenuEntry("Waive a finding", "one that blocks, with a justification", waive_finding),
        MenuEntry("What leaves", "datasets, variables and folders", show_release_contents),
        MenuEntry("Release", "writes the two folders, after a question", write_release),
        MenuEntry("Past releases", "when and by whom", show_past_releases),
        MenuEntry(
            "Privacy ledger", "what was spent of the budget of these people, and by which runs", show_population_ledger
        ),
        MenuEntry("Other people", "state that other people were asked, with a reason", state_other_people),
    ),
)
