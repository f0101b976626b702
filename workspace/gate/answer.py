"""The answer whether a release may leave, one for screens, commands, reports and documents, never milder than the gate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sfumato.engine.errors import EngineError
from sfumato.engine.methods.audience import Audience
from sfumato.engine.methods.outputs import QUESTIONS
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.wording import RecordCount, count_of_noun

from ..errors import WorkspaceError
from ..policy.policy import Policy, read_policy_of_workspace
from ..store.runs import RunState, count_confidential_records, find_run
from ..store.workspace import Workspace
from . import sentences
from .contents import has_release, plan_release, variables_by_treatment
from .gate import Examination, Finding, examine_release
from .questions import key_of_question
from .sentences import fill_sentence

MayLeave = Literal["no", "to be judged", "yes"]
AUDIENCE_WORDS: dict[Audience, str] = {
    "public": "to the public",
    "contract": "to users under contract",
    "enclave": "into an enclave",
}
FOUND = "can be found"
"""Beginning of the clauses about people who can be found."""
MOST_NAMED_FINDINGS = 3
"""Findings that a sentence names; it counts the others."""


@dataclass(frozen=True, slots=True)
class ReleaseAnswer:
    """The gate's answer to the one question of a release.

    may_leave: ``no`` where an unwaived finding blocks; ``to be judged`` where a person has to decide; else ``yes``
    audience: who receives the release
    claim: what decides, in a few words for a heading: ``379 of 3,411 people can be found``; empty where there is none
    sentence: what decides, in people where people are counted, and how they are found
    learned: what is then learnt of them; where nobody is found, what a row shows
    change: what to change first
    not_covered: what was not examined; empty where everything was
    people: the largest number of people that a finding of the deciding state is about; None where none counts people
    records: confidential records of the run, or their units where several describe one, with what they are
    error: why the gate could not examine the release; empty where it could
    """

    may_leave: MayLeave
    audience: Audience
    sentence: str
    not_covered: str
    people: int | None
    records: RecordCount
    error: str = ""
    claim: str = ""
    learned: str = ""
    change: str = ""

    @property
    def headline(self) -> str:
        """Return the question with its answer and what decides: ``May this leave to the public? NO: 379 of 3,411
        people can be found``.
        """
        return f"{self.title}: {self.claim}" if self.claim else self.title

    @property
    def title(self) -> str:
        """Return the question with its answer: ``May this leave to the public? NO``."""
        return fill_sentence(
            sentences.MAY_THIS_LEAVE, audience=AUDIENCE_WORDS[self.audience], answer=self.may_leave.upper()
        )

    @property
    def lines(self) -> tuple[str, ...]:
        """Return the lines of the answer: title, who is found and how, what is learnt, what to change first, and what was
        not examined.
        """
        return (self.title, *self.texts)

    @property
    def texts(self) -> tuple[str, ...]:
        """Return the lines below the title."""
        return tuple(filter(None, (self.sentence, self.learned, self.change, self.not_covered)))

    def to_table(self) -> dict[str, Any]:
        """Return the answer as ``--json`` writes it under ``may_leave``."""
        return {
            "answer": self.may_leave,
            "audience": self.audience,
            "sentence": self.sentence,
            "learned": self.learned,
            "change": self.change,
            "not_covered": self.not_covered,
            "people": self.people,
            "records": int(self.records),
            "noun": self.records.noun,
        }


def answer_for_run(workspace: Workspace, run_id: int | str) -> ReleaseAnswer | None:
    """Examine a run's release and return the answer; None for a run that is not done or has no dataset. Raises
    NotFound.
    """
    run = find_run(workspace, run_id)
    if run.state is not RunState.DONE or not has_release(workspace, run):
        return None
    policy, records = Policy(), count_confidential_records(workspace, run)
    try:
        policy = read_policy_of_workspace(workspace.directory)
        examination = examine_release(workspace, plan_release(workspace, run.id), policy)
        return answer_from_examination(examination, run.recipe, policy, records)
    # What cannot be examined, such as a damaged table, may not leave.
    except (WorkspaceError, EngineError, OSError) as error:
        audience = policy.effective_audience(run.recipe.form.audience)
        sentence = fill_sentence(sentences.NOT_EXAMINED, error=str(error).rstrip("."))
        return ReleaseAnswer("no", audience, sentence, "", None, records, str(error))


def answer_from_examination(examination: Examination, recipe: Recipe, policy: Policy, records: int) -> ReleaseAnswer:
    """Return the answer that an examination with its waivers gives; ``records`` is the number of confidential records."""
    # An examination that comes from another process has a plain number.
    count = (
        RecordCount(records, recipe.data.rows)
        if examination.units is None
        else RecordCount(examination.units, recipe.schema.unit_noun)
    )
    described = "" if examination.units is None else count_of_noun(records, recipe.data.rows or "records")
    audience = policy.effective_audience(recipe.form.audience)
    left = {one.check for one in examination.unwaived_findings}
    blocking = [one for one in examination.lead_findings if one.check in left]
    # A witness that its lead's waiver does not cover blocks by itself.
    blocking += [one for one in examination.unwaived_findings if one.leak and one.leak not in left]
    leads = {one.check for one in examination.lead_findings if one.status in ("block", "warn")}
    # A witness whose lead is not open stands for itself: nothing open is lost behind a lead that passes.
    standing = [one for one in examination.findings if not one.leak or one.leak not in leads]
    open_findings = [one for one in standing if one.status in ("block", "warn") and one.check not in left]
    unchecked = [one for one in examination.findings if one.status == "not checked" and one.applies]
    not_covered = _not_covered_text(unchecked)
    if blocking:
        sentence, people = _worst_finding_text(blocking, count, described)
        others = len(blocking) - 1
        more = fill_sentence(sentences.OTHERS_BLOCK, others=others) if others else ""
        return ReleaseAnswer(
            "no",
            audience,
            f"{sentence}{more}",
            not_covered,
            people,
            count,
            claim=_claim_text(blocking, people, count) or fill_sentence(sentences.FINDINGS_BLOCK, number=len(blocking)),
            learned=_worst_finding(blocking).learned,
            change=_change_text(blocking),
        )
    waived = _waived_text(examination)
    if open_findings or unchecked:
        sentence, people = _worst_finding_text(open_findings, count, described) if open_findings else ("", None)
        needs = _open_findings_text(open_findings, unchecked)
        # Waived blocks may have found people, so that nobody can be said to be safe.
        nobody = ""
        if not people and not waived:
            found = fill_sentence(sentences.NOBODY_FOUND_BY_MADE_CHECKS, records=count, noun=count.noun)
            nobody = _with_attacks_tried(found, examination)
        text = " ".join(filter(None, (sentence, nobody, waived or sentences.NOTHING_BLOCKS, needs)))
        claim = _claim_text(open_findings, people, count) or (
            fill_sentence(sentences.FINDINGS_TO_JUDGE, number=len(open_findings))
            if open_findings
            else fill_sentence(sentences.CHECKS_NOT_MADE, number=len(unchecked)).rstrip(".")
        )
        return ReleaseAnswer(
            "to be judged",
            audience,
            text,
            not_covered,
            people,
            count,
            claim=claim,
            learned=(_worst_finding(open_findings).learned if people else "") or ("" if waived else _row_text(recipe)),
            change=_change_text(open_findings) if open_findings else "" if waived else sentences.NOTHING_TO_CHANGE,
        )
    # Nothing is waived here, since what is waived stays to be judged. Not "no more than chance": limits let a few be
    # found, and a measure may count them on the same page.
    return ReleaseAnswer(
        "yes",
        audience,
        _with_attacks_tried(fill_sentence(sentences.NOBODY_FOUND, records=count, noun=count.noun), examination),
        "",
        0,
        count,
        claim=sentences.NOBODY_BEYOND_LIMITS,
        learned=_row_text(recipe),
        change=sentences.NOTHING_TO_CHANGE,
    )


def _with_attacks_tried(nobody_found: str, examination: Examination) -> str:
    """Return a sentence that nobody is found, followed by the attacks of the recipe that find nobody, where it has some."""
    attacks = {key_of_question(question) for question in QUESTIONS}
    titles = [
        one.title for one in examination.findings if one.check in attacks and one.applies and one.status == "pass"
    ]
    return f"{nobody_found} {fill_sentence(sentences.ATTACKS_TRIED, titles=titles)}" if titles else nobody_found


def _claim_text(findings: Sequence[Finding], people: int | None, records: RecordCount) -> str:
    """Return how many people the worst finding is about, for a heading; empty where none counts people."""
    if not people or not records:
        return ""
    if _worst_finding(findings).headline.startswith(FOUND):
        return fill_sentence(sentences.CAN_BE_FOUND, people=people, records=records, noun=records.noun)
    return fill_sentence(sentences.PEOPLE_CONCERNED, people=people, records=records, noun=records.noun)


def _change_text(findings: Sequence[Finding]) -> str:
    """Describe what to change first for the worst finding: with its effect where that was computed, else its advice."""
    worst = _worst_finding(findings)
    change = worst.change or worst.advice
    return fill_sentence(sentences.CHANGE_FIRST, change=change) if change else ""


def _row_text(recipe: Recipe) -> str:
    """Describe which values of a row are drawn and which are a person's own; empty where none is drawn."""
    kept, replaced, _ = variables_by_treatment(recipe)
    # How another program made the values is not known.
    if recipe.origin != "synthetic" or not replaced or not recipe.makes_release:
        return ""
    drawn = _first_titles(replaced)
    if not kept:
        return fill_sentence(sentences.ALL_IS_DRAWN, drawn=drawn)
    return fill_sentence(sentences.LEARNED_OF_NOBODY, kept=_first_titles(kept), drawn=drawn)


def _waived_text(examination: Examination) -> str:
    """Describe who waived how many blocking findings; empty where nothing was waived."""
    left = {one.check for one in examination.unwaived_findings}
    # Witnesses of a leak are no further blocks.
    waived = sum(one.status == "block" and one.check not in left for one in examination.lead_findings)
    if not waived:
        return ""
    users = dict.fromkeys(one.user for one in examination.waivers)
    return fill_sentence(sentences.WAIVED, waived=waived, users=users)


def _open_findings_text(open_findings: Sequence[Finding], unchecked: Sequence[Finding]) -> str:
    """Describe how many findings a person has to judge, and what they are about."""
    titles = [one.title for one in open_findings]
    parts = []
    if titles:
        parts.append(fill_sentence(sentences.TO_BE_JUDGED, number=len(titles), titles=_first_titles(titles)))
    if unchecked:
        parts.append(fill_sentence(sentences.CHECKS_NOT_MADE, number=len(unchecked)))
    return " ".join(parts)


def _worst_finding_text(
    findings: Sequence[Finding], records: RecordCount, described: str = ""
) -> tuple[str, int | None]:
    """Return a sentence on the finding about most people, and their number; None where no finding counts people.

    ``described`` says how many records describe them, where these are units.
    """
    worst = _worst_finding(findings)
    if not worst.people:
        title = f"{worst.title[:1].upper()}{worst.title[1:]}"
        return fill_sentence(sentences.FINDING_WITH_TITLE, title=title, message=worst.message), None
    count = ""
    if records and described:
        count = fill_sentence(
            sentences.UNITS_OF_ALL,
            people=worst.people,
            records=records,
            noun=records.noun,
            described=described,
            share=worst.people / records,
        )
    elif records:
        count = fill_sentence(
            sentences.PEOPLE_OF_ALL,
            people=worst.people,
            records=records,
            noun=records.noun,
            share=worst.people / records,
        )
    if worst.headline:
        return fill_sentence(sentences.PEOPLE_AND_CLAUSE, people=count, clause=worst.headline), worst.people
    # Titles of checks that count people begin with the noun: "people whose records stand in the release".
    clause = worst.title.removeprefix("people ")
    if clause != worst.title:
        return fill_sentence(sentences.PEOPLE_AND_CLAUSE, people=count, clause=clause), worst.people
    return fill_sentence(sentences.PEOPLE_AND_TITLE, people=count, title=worst.title), worst.people


def _worst_finding(findings: Sequence[Finding]) -> Finding:
    """Return the finding about most people."""
    return max(findings, key=lambda one: (one.people or 0, bool(one.headline)))


def _first_titles(titles: Sequence[str]) -> list[str]:
    """Return the first titles, and a text that counts the others."""
    named = list(titles[:MOST_NAMED_FINDINGS])
    more = len(titles) - len(named)
    return [*named, fill_sentence(sentences.MORE_NAMES, number=more)] if more else named


def _not_covered_text(unchecked: Sequence[Finding]) -> str:
    """Describe which checks were not made; empty where all were made."""
    if not unchecked:
        return ""
    return fill_sentence(sentences.NOT_COVERED, titles=_first_titles([one.title for one in unchecked]))
