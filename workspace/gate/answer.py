"""The answer whether a release may leave, one for screens, commands, reports and documents, never milder than the gate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sfumato.engine.errors import EngineError
from sfumato.engine.methods.audience import Audience
from sfumato.engine.methods.outputs import QUESTIONS
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.wording import RecordCount, count_of_noun

from ..errors import WorkspaceError
from ..plan.change_parts import PartsOfChange
from ..plan.levers import FINDING_ADVICE, parts_of_advice
from ..policy.policy import Policy, read_policy_of_workspace
from ..reporting.findings import BEYOND
from ..reporting.words import CAN_BE_FOUND
from ..store.runs import RunState, count_confidential_records, find_run
from ..store.workspace import Workspace
from . import sentences
from .checks import KEPT_KEYS
from .contents import has_release, plan_release, variables_by_treatment
from .gate import Examination, Finding, examine_release
from .kept_columns import names_as_released
from .questions import key_of_question
from .sentences import fill_sentence

MayLeave = Literal["no", "to be judged", "yes"]
AUDIENCE_WORDS: dict[Audience, str] = {
    "public": "to the public",
    "contract": "to users under contract",
    "enclave": "into an enclave",
}
MOST_NAMED_FINDINGS = 3
"""Findings that a sentence names; it counts the others."""
MOST_NAMED_VARIABLES = 8
"""Variables that a sentence names; it counts the others."""


LABELS = ("Why", "Found", "How", "Learnt", "Change first", "May leave", "Not examined")
"""Labels of the lines of an answer, in their order."""
BESIDE_SENTENCE = ("Learnt", "Change first", "Not examined")
"""Labels of the lines that say what the sentence of the answer does not."""
ATTACKS: Mapping[str, str] = dict(
    zip(
        map(key_of_question, QUESTIONS),
        ("singling out", "linking records", "inferring values", "guessing who is in the data"),
        strict=True,
    )
)
"""What an intruder tries, by the check of the question that it answers."""
INTRUDER_KNOWS_OTHERS = "what an intruder learns who knows everybody else"
MEMBERS_SHOWN = "whether artificial values show who is in the data"
UNMADE_CHECKS: Mapping[str, str] = {
    "worst_records": "who is found most surely",
    KEPT_KEYS: "who is found by columns that are released unchanged",
    "singling_out_excess": "who can be singled out",
    "linkability_excess": "whose records can be linked",
    "inference_excess": "whose values can be inferred",
    "membership_excess": MEMBERS_SHOWN,
    "membership_evidence": MEMBERS_SHOWN,
    "newly_certain": INTRUDER_KNOWS_OTHERS,
    "guessed_beyond_prior": INTRUDER_KNOWS_OTHERS,
    "own_values": "whose own row says what was drawn",
    "agreed_values": "what the datasets reveal together",
    "equal_records": "whose record is released unchanged",
    "unmet_thresholds": "whether the plan's limits are met",
}
"""What is not known where a check was not made, in words of what an intruder does, the gravest first; others have their
titles."""

KNOWS_COLUMNS = "whether recipients can know these columns"
KNOWING_DECIDES: Mapping[str, str] = {KNOWS_COLUMNS: "; if they can, it must not leave"}
"""What follows from the answer to a question, after all that is left to a person."""
LEAST_CLAUSES = 2
"""Number of acts left to a person above which each has a clause of its own."""
JUDGED_QUESTIONS: Mapping[str, str] = {
    "worst_records": KNOWS_COLUMNS,
    KEPT_KEYS: KNOWS_COLUMNS,
    "membership_evidence": "whether it harms anybody to be known as part of the data",
    "own_values": "whether these people may be read from their own rows",
}
"""What a person has to judge of a finding of these checks that does not block; of others their titles say it."""


@dataclass(frozen=True, slots=True)
class ReleaseAnswer:
    """The gate's answer to the one question of a release.

    may_leave: ``no`` where an unwaived finding blocks; ``to be judged`` where a person has to decide; else ``yes``
    audience: who receives the release
    claim: what decides, in a few words for a heading: ``379 of 3,411 people can be found``; empty where there is none
    sentence: what decides, in people where people are counted, how they are found, and what is left to judge
    found: how many people are found, and why they count; empty where what decides counts nobody
    how: how they are found; where nobody is, what was tried
    learned: what is then learnt of them; where nobody is found, what a row shows
    change: what to change first
    advised: the changes that ``change`` names, each in its parts, the best first; empty where it names none as data
    change_has_effect: whether ``change`` says whom one still finds after it
    decision: whether the release may leave, and what decides it
    check: key of the check that decides; empty where none does
    not_covered: what was not examined, in words of what an intruder does; empty where everything was
    people: the largest number of people that a finding of the deciding state is about; None where none counts people
    records: confidential records of the run, or their units where several describe one, with what they are
    error: why the gate could not examine the release; empty where it could
    is_overruled: whether the gate blocks, and a person waived all that does: ``to be judged`` then, and no milder
    overruled_by: accounts that waived what blocks; empty where nobody did
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
    found: str = ""
    how: str = ""
    decision: str = ""
    check: str = ""
    is_overruled: bool = False
    overruled_by: tuple[str, ...] = ()
    advised: tuple[PartsOfChange, ...] = ()
    change_has_effect: bool = False

    @property
    def advised_columns(self) -> frozenset[str]:
        """Return the columns that the line on what to change names."""
        parts = (part for change in self.advised for part in change if part.kind != "settings")
        return frozenset(name for part in parts for name in part.names)

    @property
    def headline(self) -> str:
        """Return the question with its answer and what decides: ``May this leave to the public? NO: 379 of 3,411
        people can be found``.
        """
        return f"{self.title}: {self.claim}" if self.claim else self.title

    @property
    def title(self) -> str:
        """Return the question with its answer: ``May this leave to the public? NO``."""
        # What the gate blocks stays a no that a person overrules: to name it a judgement alone would be milder.
        answer = sentences.OVERRULED_ANSWER if self.is_overruled else self.may_leave.upper()
        return fill_sentence(sentences.MAY_THIS_LEAVE, audience=AUDIENCE_WORDS[self.audience], answer=answer)

    @property
    def lines(self) -> tuple[str, ...]:
        """Return the lines of the answer: the title, then each labelled line as ``Found: 379 of 3,411 people (11 %).``"""
        return (self.title, *(f"{label}: {text}" for label, text in self.labelled_lines))

    @property
    def labelled_lines(self) -> tuple[tuple[str, str], ...]:
        """Return the lines below the title, each a label and a sentence: who is found and how, what is learnt, what to
        change first, whether it may leave, and what was not examined.
        """
        # Where what decides counts nobody, its sentence says why.
        why = "" if self.found else self.sentence
        texts = (why, self.found, self.how, self.learned, self.change, self.decision, self.not_covered)
        return tuple((label, text) for label, text in zip(LABELS, texts, strict=True) if text)

    @property
    def document_lines(self) -> tuple[str, ...]:
        """Return the lines for documents: the title, the whole sentence, and the labelled lines that it does not say."""
        others = [f"{label}: {text}" for label, text in self.labelled_lines if label in BESIDE_SENTENCE]
        return (self.title, self.sentence, *others)

    def to_table(self) -> dict[str, Any]:
        """Return the answer as ``--json`` writes it under ``may_leave``."""
        return {
            "answer": self.may_leave,
            "audience": self.audience,
            "sentence": self.sentence,
            "found": self.found,
            "how": self.how,
            "learned": self.learned,
            "change": self.change,
            "decision": self.decision,
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
        found, how = _found_texts(blocking, count)
        others = len(blocking) - 1
        milder = [one for one in open_findings if one not in blocking]
        more = fill_sentence(sentences.OTHERS_BLOCK, others=others) if others else ""
        return ReleaseAnswer(
            "no",
            audience,
            f"{sentence}{more}",
            not_covered,
            people,
            count,
            claim=_claim_text(blocking, people, count) or fill_sentence(sentences.FINDINGS_BLOCK, number=len(blocking)),
            learned=worst_finding(blocking).learned,
            change=_change_text(blocking),
            found=found,
            how=how,
            decision=_decision_text(len(blocking), milder, unchecked),
            check=worst_finding(blocking).check,
            advised=advised_changes(worst_finding(blocking)),
            change_has_effect=worst_finding(blocking).change_has_effect,
        )
    waived = _waived_text(examination)
    if open_findings or unchecked:
        sentence, people = _worst_finding_text(open_findings, count, described) if open_findings else ("", None)
        needs = _open_findings_text(examination, open_findings, unchecked)
        # Waived blocks may have found people, so that nobody can be said to be safe.
        nobody = ""
        found, how = _found_texts(open_findings, count) if people else ("", "")
        if not people and not waived:
            nobody = fill_sentence(sentences.NOBODY_FOUND_BY_MADE_CHECKS, records=count, noun=count.noun)
            found = fill_sentence(sentences.NOBODY_OF_ALL_BY_MADE_CHECKS, records=count, noun=count.noun)
            how = _attacks_tried_text(examination)
            nobody = f"{nobody} {how}".rstrip()
        text = " ".join(filter(None, (sentence, nobody, "" if waived else sentences.NOTHING_BLOCKS, needs)))
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
            learned=(worst_finding(open_findings).learned if people else "") or ("" if waived else _row_text(recipe)),
            change=_change_text(open_findings) if open_findings else "" if waived else sentences.NOTHING_TO_CHANGE,
            found=found,
            how=how,
            decision=f"{_decision_text(0, open_findings, unchecked)} {waived}".rstrip(),
            check=worst_finding(open_findings).check if open_findings else "",
            advised=advised_changes(worst_finding(open_findings)) if open_findings else (),
            change_has_effect=bool(open_findings) and worst_finding(open_findings).change_has_effect,
            is_overruled=bool(waived),
            overruled_by=tuple(_waiving_users(examination)) if waived else (),
        )
    # Nothing is waived here, since what is waived stays to be judged. Not "no more than chance": limits let a few be
    # found, and a measure may count them on the same page.
    tried = _attacks_tried_text(examination)
    return ReleaseAnswer(
        "yes",
        audience,
        f"{fill_sentence(sentences.NOBODY_FOUND, records=count, noun=count.noun)} {tried}".rstrip(),
        "",
        0,
        count,
        claim=sentences.NOBODY_BEYOND_LIMITS,
        learned=_row_text(recipe),
        change=sentences.NOTHING_TO_CHANGE,
        found=fill_sentence(sentences.NOBODY_OF_ALL, records=count, noun=count.noun),
        how=tried,
        decision=sentences.MAY_LEAVE,
    )


def _attacks_tried_text(examination: Examination) -> str:
    """Describe the attacks of the recipe that find nobody; empty where it has none."""
    attacks = [
        ATTACKS[one.check]
        for one in examination.findings
        if one.check in ATTACKS and one.applies and one.status == "pass"
    ]
    return fill_sentence(sentences.ATTACKS_TRIED, attacks=attacks) if attacks else ""


def _found_texts(findings: Sequence[Finding], records: RecordCount) -> tuple[str, str]:
    """Return how many people the worst finding is about and why they count, and how they are found; empty where none
    counts people.
    """
    worst = worst_finding(findings)
    if not worst.people:
        return "", ""
    people = _capitalised(_finding_people_text(worst, records))
    counted = f": {worst.counted}" if worst.counted else ""
    by = worst.headline.removeprefix(CAN_BE_FOUND).strip()
    if worst.headline.startswith(CAN_BE_FOUND) and by:
        return fill_sentence(sentences.PEOPLE_COUNTED, people=people, counted=counted), f"{_capitalised(by)}."
    clause = worst.headline or worst.title.removeprefix("people ")
    if not worst.headline and clause == worst.title:
        return fill_sentence(sentences.PEOPLE_AND_TITLE, people=people, title=worst.title), ""
    return fill_sentence(sentences.PEOPLE_AND_CLAUSE, people=people, clause=clause, counted=counted), worst.how


def _finding_people_text(finding: Finding, records: RecordCount) -> str:
    """Return how many people of all a finding is about; ``about`` so many where what chance gives has been taken off."""
    people = _people_text(finding.people or 0, records)
    return fill_sentence(sentences.ABOUT_PEOPLE, people=people) if people and BEYOND in finding.unit else people


def _people_text(people: int, records: RecordCount) -> str:
    """Return a number of people of all with its share: ``379 of 3,411 people (11 %)``."""
    if not records:
        return ""
    return fill_sentence(
        sentences.PEOPLE_OF_ALL, people=people, records=records, noun=records.noun, share=people / records
    )


def _decision_text(blocking: int, open_findings: Sequence[Finding], unchecked: Sequence[Finding]) -> str:
    """Describe how many checks block, and what a person has to judge before the release may leave."""
    question = JUDGED_QUESTIONS.get(worst_finding(open_findings).check, "") if open_findings else ""
    acts, judged = [], len(open_findings)
    # What blocks has its own lines above, so that a question about "these columns" would be read of them.
    if question and not blocking:
        acts.append(fill_sentence(sentences.DECIDE, question=question))
        judged -= 1
    if judged and blocking:
        acts.append(fill_sentence(sentences.JUDGE_MILDER, number=judged))
    elif judged and acts:
        acts.append(fill_sentence(sentences.JUDGE_OTHERS, number=judged))
    elif judged:
        acts.append(fill_sentence(sentences.JUDGE_FINDINGS, number=judged))
    if unchecked:
        acts.append(fill_sentence(sentences.ACCEPT_UNMADE, number=len(unchecked)))
    if not blocking:
        if len(acts) > LEAST_CLAUSES:
            # Clauses of their own, of which a short line leaves out the last ones whole.
            acts = ["; ".join(acts)]
        return fill_sentence(sentences.TO_DO_FIRST, acts=acts, then=KNOWING_DECIDES.get(question, ""))
    then = fill_sentence(sentences.TO_DO_THEN, acts=acts) if acts else ""
    return f"{fill_sentence(sentences.MAY_NOT_LEAVE, number=blocking)}{then}"


def _capitalised(text: str) -> str:
    """Return a text with its first letter in upper case."""
    return f"{text[:1].upper()}{text[1:]}"


def _claim_text(findings: Sequence[Finding], people: int | None, records: RecordCount) -> str:
    """Return how many people the worst finding is about, for a heading; empty where none counts people."""
    if not people or not records:
        return ""
    headline = worst_finding(findings).headline
    if headline.startswith(CAN_BE_FOUND):
        return fill_sentence(sentences.CAN_BE_FOUND, people=people, records=records, noun=records.noun)
    if headline == sentences.SHOWN_BEYOND_CHANCE:
        return fill_sentence(sentences.PEOPLE_EXPOSED, people=people, records=records, noun=records.noun)
    return fill_sentence(sentences.PEOPLE_CONCERNED, people=people, records=records, noun=records.noun)


def _change_text(findings: Sequence[Finding]) -> str:
    """Describe what to change first for the worst finding: with its effect where that was computed, else its advice."""
    worst = worst_finding(findings)
    change = worst.change or worst.advice
    return f"{_capitalised(change)}." if change else ""


def advised_changes(finding: Finding) -> tuple[PartsOfChange, ...]:
    """Return the changes that are advised against a finding, each in its parts, the best first."""
    if finding.change:
        return finding.advised
    found = (parts_of_advice(advice) for advice in FINDING_ADVICE.get(finding.check, ()))
    return tuple(dict.fromkeys(filter(None, found)))


def _row_text(recipe: Recipe) -> str:
    """Describe which values of a row are drawn and which are a person's own; empty where none is drawn."""
    kept, replaced, _ = variables_by_treatment(recipe)
    # How another program made the values is not known.
    if recipe.origin != "synthetic" or not replaced or not recipe.makes_release:
        return ""
    drawn = _first_titles(replaced, MOST_NAMED_VARIABLES)
    if not kept:
        return fill_sentence(sentences.ALL_IS_DRAWN, drawn=drawn)
    return fill_sentence(
        sentences.LEARNED_OF_NOBODY,
        kept=_first_titles(names_as_released(recipe, kept), MOST_NAMED_VARIABLES),
        drawn=drawn,
    )


def _waived_text(examination: Examination) -> str:
    """Describe who waived how many blocking findings; empty where nothing was waived."""
    waived = len(_waived_blocks(examination))
    return fill_sentence(sentences.WAIVED, waived=waived, users=_waiving_users(examination)) if waived else ""


def _waived_blocks(examination: Examination) -> list[Finding]:
    """Return the blocking findings that were waived; witnesses of a leak are no further blocks."""
    left = {one.check for one in examination.unwaived_findings}
    return [one for one in examination.lead_findings if one.status == "block" and one.check not in left]


def _waiving_users(examination: Examination) -> list[str]:
    """Return the accounts that waived something, once each."""
    return list(dict.fromkeys(one.user for one in examination.waivers))


def _open_findings_text(
    examination: Examination, open_findings: Sequence[Finding], unchecked: Sequence[Finding]
) -> str:
    """Describe how many findings a person has to judge, and what they are about: waived blocks first, each once."""
    waived = _waived_blocks(examination)
    titles = [one.title for one in open_findings if one not in waived]
    parts = []
    if waived:
        parts.append(
            fill_sentence(
                sentences.WAIVED_TO_JUDGE,
                waived=len(waived),
                users=_waiving_users(examination),
                titles=_first_titles([one.title for one in waived]),
            )
        )
    if titles:
        named, number = _first_titles(titles), len(titles)
        parts.append(
            fill_sentence(sentences.OTHERS_TO_BE_JUDGED, number=number, titles=named)
            if waived
            else fill_sentence(sentences.TO_BE_JUDGED, number=number, titles=named)
        )
    if unchecked:
        parts.append(fill_sentence(sentences.CHECKS_NOT_MADE, number=len(unchecked)))
    return " ".join(parts)


def _worst_finding_text(
    findings: Sequence[Finding], records: RecordCount, described: str = ""
) -> tuple[str, int | None]:
    """Return a sentence on the finding about most people, and their number; None where no finding counts people.

    ``described`` says how many records describe them, where these are units.
    """
    worst = worst_finding(findings)
    if not worst.people:
        return fill_sentence(sentences.FINDING_WITH_TITLE, title=_capitalised(worst.title), message=worst.message), None
    count = _finding_people_text(worst, records)
    if records and described:
        count = fill_sentence(
            sentences.UNITS_OF_ALL,
            people=worst.people,
            records=records,
            noun=records.noun,
            described=described,
            share=worst.people / records,
        )
        count = fill_sentence(sentences.ABOUT_PEOPLE, people=count) if BEYOND in worst.unit else count
    count = _capitalised(count)
    counted = f": {worst.counted}" if worst.counted else ""
    if worst.headline:
        text = fill_sentence(sentences.PEOPLE_AND_CLAUSE, people=count, clause=worst.headline, counted=counted)
        return text, worst.people
    # Titles of checks that count people begin with the noun: "people whose records stand in the release".
    clause = worst.title.removeprefix("people ")
    if clause != worst.title:
        text = fill_sentence(sentences.PEOPLE_AND_CLAUSE, people=count, clause=clause, counted=counted)
        return text, worst.people
    return fill_sentence(sentences.PEOPLE_AND_TITLE, people=count, title=worst.title), worst.people


def worst_finding(findings: Sequence[Finding]) -> Finding:
    """Return the finding about most people."""
    return max(findings, key=lambda one: (one.people or 0, bool(one.headline)))


def _first_titles(titles: Sequence[str], most: int = MOST_NAMED_FINDINGS) -> list[str]:
    """Return the first ``most`` titles, and a text that counts the others."""
    named = list(titles[:most])
    more = len(titles) - len(named)
    return [*named, fill_sentence(sentences.MORE_NAMES, number=more)] if more else named


def _not_covered_text(unchecked: Sequence[Finding]) -> str:
    """Describe which checks were not made; empty where all were made."""
    if not unchecked:
        return ""
    keys = list(UNMADE_CHECKS)
    ordered = sorted(unchecked, key=lambda one: keys.index(one.check) if one.check in keys else len(keys))
    # Two checks may ask the same; whoever counts the checks below must find as many here.
    checks = Counter(UNMADE_CHECKS.get(one.check, one.title) for one in ordered)
    clauses = [
        clause if number == 1 else fill_sentence(sentences.CLAUSE_OF_CHECKS, clause=clause, number=number)
        for clause, number in checks.items()
    ]
    if more := sum(list(checks.values())[MOST_NAMED_FINDINGS:]):
        clauses = [*clauses[:MOST_NAMED_FINDINGS], fill_sentence(sentences.MORE_CHECKS, number=more)]
    return _capitalised(fill_sentence(sentences.NOT_COVERED, clauses=clauses))
