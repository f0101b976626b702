"""Sentences and tables of the first page of the risk assessment: who can be found, what decides, and what is new.

Full messages of findings, with their numbers, stand in the annex; here each has one line.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from sfumato.engine.data.schema import MissingPolicy, Role
from sfumato.engine.methods.labels import measure_name, method_and_output, quantity_of
from sfumato.engine.methods.rows import Row
from sfumato.engine.recipe.thresholds import Threshold
from sfumato.engine.wording import agreeing_word, count_noun, count_of_noun, format_percent, join_names, record_noun

from ..gate import sentences
from ..gate.answer import AUDIENCE_WORDS
from ..gate.gate import CHECKS, WHOLE_RELEASE, Finding
from ..gate.sentences import fill_sentence
from ..release.dossier import ReleaseDossier
from ..release.last_release import ChangesSinceRelease
from ..reporting.findings import compared_text, finding_limit_text, is_open, lead_findings
from ..reporting.questions import rows_for_question
from ..reporting.tables import DisplayCell, DisplayRow, DisplayTable, table_from_titles
from ..reporting.words import affected_group_text, limit_text
from ..visible_text import replace_unprintable

MOST_OPEN_FINDINGS = 6
"""Open findings with a line of their own; others are counted and stand in the annex."""
MOST_REASONS = 2
"""Reasons for what was not examined that have a line of their own."""
MOST_NAMED = 4
"""Variables, limits or codes that a sentence names; it counts the others."""


def strongest_match_text(dossier: ReleaseDossier) -> str:
    """Return how many people an intruder finds where no check finds anybody; empty where the gate's answer counts people."""
    if dossier.answer.people or dossier.answer.error:
        return ""
    known = join_names(dossier.plan.run.recipe.schema.names_by_role(Role.QUASI_IDENTIFIER))
    rows = [row for row in rows_for_question(dossier.rows, "linkability") if _counts_people(row)]
    if not rows or not known:
        return "No measure counts how many people an intruder finds."
    strongest = max(rows, key=lambda row: row.value or 0.0)
    found = quantity_of(
        strongest.key, strongest.value or 0.0, dossier.original.records, strongest.params, unit=strongest.unit
    )
    limits = {
        limit_text(one.bound, one.limit, one.value)
        for one in dossier.plan.verdicts
        if one.value == strongest.key and one.level is None
    }
    limit = f"; the limit is {limits.pop()}" if len(limits) == 1 else ""
    return f"The best attack, by who knows {known} of a person, finds {found}{limit}."


def _counts_people(row: Row) -> bool:
    """Return whether a row is a computed share of all people that an intruder finds."""
    output = method_and_output(row.key)[1]
    return (
        row.value is not None
        and row.level is None
        and output.label.counts == "people"
        and output.goal == "low"
        and (row.unit or output.unit) == "share"
        and not row.params.get("people")
    )


def intruder_of_check(key: str) -> str:
    """Return which intruder a check is about; ``none`` for an unknown check."""
    return next((one.intruder for one in CHECKS if one.key == key), "none")


def _names(names: Iterable[str]) -> str:
    """Return the first names in words, with the number of the others."""
    return join_names(_first_texts([replace_unprintable(name) for name in names])) or "no variable"


def next_step_text(dossier: ReleaseDossier) -> str:
    """Return the sentence that tells whoever signs what to do next."""
    answer = dossier.answer.may_leave
    if answer == "no":
        return "What to do: do not sign. Fix each finding that blocks, and run again."
    if dossier.examination.blocking_findings:
        return (
            "What to do: the gate says no, and a person overrules it. Refuse, unless the reason below outweighs what these "
            "people lose."
        )
    if answer == "to be judged" and not open_findings(dossier):
        return (
            "What to do: nothing was found against this release. Decide whether what was not examined may stay so for these recipients, "
            "complete the open answers, and sign."
        )
    if answer == "to be judged":
        return "What to do: judge the findings below, complete the open answers, and sign if none of them speaks against it."
    return "What to do: confirm that the actors below fit your release, complete the open answers, and sign."


class _WaiverReason(NamedTuple):
    """Reason of a waiver, and who gave it."""

    reason: str
    user: str


def waiver_lines(dossier: ReleaseDossier) -> list[str]:
    """Return why blocking findings were waived and by whom, a line for each reason, or the reason of the release."""
    titles = {one.check: one.title for one in dossier.examination.findings}
    checks_by_reason: dict[_WaiverReason, list[str]] = {}
    for one in dossier.examination.waivers:
        name = "everything that blocks" if one.check == WHOLE_RELEASE else titles.get(one.check, one.check)
        checks_by_reason.setdefault(_WaiverReason(one.reason, one.user), []).append(name)
    lines = [
        f'Reason given by the account {given.user} for {join_names(names)}: "{given.reason}".'
        for given, names in checks_by_reason.items()
    ]
    if not lines and dossier.reason:
        return [f"Reason given: {dossier.reason}"]
    return lines


def missing_values_text(dossier: ReleaseDossier) -> str:
    """Return what was done about missing codes and missing values."""
    recipe = dossier.plan.run.recipe
    coded = [
        f"{replace_unprintable(variable.name)} ({', '.join(map(replace_unprintable, map(str, variable.missing)))})"
        for variable in recipe.schema
        if variable.missing
    ]
    codes = (
        f"codes for no value are read as missing: {', '.join(_first_texts(coded))}"
        if coded
        else "no variable declares a code for no value, so that a code such as -8 or 999 is read as a value"
    )
    treatment = {
        MissingPolicy.KEEP: "a missing value stays missing or is drawn as missing",
        MissingPolicy.DROP: "whoever lacks a value is dropped",
        MissingPolicy.REFUSE: "no value is missing",
    }[recipe.data.missing]
    return f"Missing values: {codes}; {treatment}."


def _first_texts(texts: Sequence[str]) -> list[str]:
    """Return the first texts, and the number of the others as one more."""
    left = len(texts) - MOST_NAMED
    return [*texts[:MOST_NAMED], f"{left} more"] if left > 0 else list(texts)


def records_text(dossier: ReleaseDossier) -> str:
    """Return how the records of the file become those of the release: left out, held out, described; empty without a count."""
    coverage, used = dossier.coverage, dossier.original.records
    file = coverage.file_records
    if not file:
        return ""
    others = file - coverage.dropped - dossier.held_out - used
    steps = [
        f"{count_of_noun(file, record_noun(file))} in the file",
        f"{coverage.dropped:,} left out for a missing value" if coverage.dropped else "",
        f"{others:,} not drawn into the sample" if others > 0 else "",
        f"{dossier.held_out:,} held out to test attacks" if dossier.held_out else "",
        f"{used:,} described by the release",
    ]
    return f"Records: {'; '.join(filter(None, steps))}."


def accountable_person_text(dossier: ReleaseDossier) -> str:
    """Return who answers for the release, by name where one was given, else a line to fill in, and under which account it was assessed."""
    owner = dossier.judgements.get("owner") or "______________________________ (name and role)"
    return (
        f"Who answers for this release: {replace_unprintable(owner)}. Assessed under the account {dossier.user}, which names "
        "no person."
    )


def not_examined_texts(dossier: ReleaseDossier) -> list[str]:
    """Return what no check examined, a line for each reason with what to do about it, those about an intruder first."""
    unchecked = [one for one in dossier.examination.findings if one.status == "not checked" and one.applies]
    titles_by_reason: dict[str, list[str]] = {}
    for one in sorted(unchecked, key=lambda one: intruder_of_check(one.check) == "none"):
        titles_by_reason.setdefault(one.message, []).append(one.title)
    # The annex has the titles of the checks; the page has room for the reasons.
    texts = [
        f"Not examined, {count_noun(len(titles), 'check')}: {reason[:1].lower()}{reason[1:].rstrip('.')}."
        for reason, titles in titles_by_reason.items()
    ]
    left = sum(len(titles) for titles in list(titles_by_reason.values())[MOST_REASONS:])
    more = [f"{count_noun(left, 'further check')} could not be made; the annex has the reasons."] if left else []
    return [*texts[:MOST_REASONS], *more]


def dropped_people_text(dossier: ReleaseDossier) -> str:
    """Return how many people of the file the release does not describe, why, and which group that concerns most."""
    coverage = dossier.coverage
    if coverage.is_whole:
        return "Records left out: none of the file."
    noun = record_noun(coverage.file_records)
    count = (
        f"{coverage.dropped:,} of {coverage.file_records:,} {noun} of the file "
        f"({format_percent(coverage.dropped / coverage.file_records)})"
        if coverage.file_records
        else count_of_noun(coverage.dropped, noun)
    )
    lacking = [name for name, records in (coverage.missing_counts or {}).items() if records]
    of = f" of {_names(lacking)}" if lacking else ""
    reasons = [f"{count} for a missing value{of}"] if coverage.dropped else []
    if coverage.suppressed_share:
        reasons.append(
            f"{format_percent(coverage.suppressed_share)} of the {'others' if reasons else noun}, suppressed for protection"
        )
    group = coverage.affected_group
    most = f" {affected_group_text(group, agreeing_word(group.lacking, 'is', 'are') + ' left out')}." if group else ""
    return f"Records left out: {'; '.join(reasons)}.{most}"


def changes_text(dossier: ReleaseDossier) -> str:
    """Return what is new since the last release of the project: variables, records, limits, and whom both show."""
    change = dossier.last_release
    if change is None:
        return "Last release: none of this project from this workspace."
    parts = [*_variable_changes(change), _record_change(change), *_limit_changes(change)]
    both = [one for one in dossier.examination.findings if one.check in ("differencing", "joined_releases")]
    shown = [one for one in both if one.applies and one.status in ("block", "warn")]
    if shown:
        people = sum(one.people or 0 for one in shown)
        count = count_of_noun(people, record_noun(dossier.answer.records)) if people else "people"
        follows = f"{count} may follow from both (see the findings)"
    elif any(one.applies and one.status == "not checked" for one in both):
        follows = "whether people follow from both was not examined"
    else:
        follows = "no person is known to follow from both"
    return f"Since the last release, run {change.run_id}: {'; '.join([*parts, follows])}."


def _variable_changes(change: ChangesSinceRelease) -> list[str]:
    """Return the changes of variables, or that there is none."""
    changes = (
        (change.added, "new variables"),
        (change.removed, "no longer released"),
        (change.now_unchanged, "now unchanged"),
        (change.now_replaced, "now replaced"),
    )
    return [f"{title}: {_names(names)}" for names, title in changes if names] or ["the same variables"]


def _record_change(change: ChangesSinceRelease) -> str:
    """Return the change of the confidential records."""
    file = "the same file" if change.is_same_file else "another file"
    if change.records == change.earlier_records:
        return f"{file}, {count_of_noun(change.records, record_noun(change.records))} as before"
    return f"{file}, {count_of_noun(change.records, record_noun(change.records))} ({change.earlier_records:,} before)"


def _limit_changes(change: ChangesSinceRelease) -> list[str]:
    """Return the changes of thresholds and audience, or that there is none."""
    changes = []
    for limits, title in ((change.added_limits, "new limits"), (change.removed_limits, "limits gone")):
        if limits:
            changes.append(f"{title}: {', '.join(_first_texts([_threshold_text(one) for one in limits]))}")
    if change.audience != change.earlier_audience:
        changes.append(f"released {AUDIENCE_WORDS[change.audience]}, before {AUDIENCE_WORDS[change.earlier_audience]}")
    return changes or ["the same limits"]


def _threshold_text(threshold: Threshold) -> str:
    """Return a threshold in words: ``People found for certain, best variables at most 2 %``."""
    target = f" of {replace_unprintable(threshold.target)}" if threshold.target else ""
    return f"{measure_name(threshold.value)}{target} {limit_text(threshold.bound, threshold.limit, threshold.value)}"


def open_findings(dossier: ReleaseDossier) -> list[Finding]:
    """Return the findings that block or are to be judged, without those that others stand for, the worst first."""
    leads = [one for one in lead_findings(dossier.examination.findings) if is_open(one) and one.status != "not checked"]
    return sorted(leads, key=lambda one: (one.status != "block", -(one.people or 0)))


def open_findings_table(dossier: ReleaseDossier) -> DisplayTable | None:
    """Return the open findings with a number each, by which the risk by actor names them; None where none is open."""
    leads = open_findings(dossier)
    if not leads:
        return None
    lines: list[DisplayRow] = [
        [str(number), one.title, DisplayCell(_state_text(dossier, one), one.status), _line_of_finding(dossier, one)]
        for number, one in enumerate(leads[:MOST_OPEN_FINDINGS], start=1)
    ]
    if len(leads) > MOST_OPEN_FINDINGS:
        more = count_noun(len(leads) - MOST_OPEN_FINDINGS, "more finding")
        lines.append(["", f"{more}, in the annex", "", ""])
    return table_from_titles(("no.", "finding", "state", "found"), lines)


def finding_reference(dossier: ReleaseDossier, finding: Finding) -> str:
    """Return where the first page has a finding: ``finding 2``; the finding itself where it has no line there."""
    leads = open_findings(dossier)[:MOST_OPEN_FINDINGS]
    lead = next((one for one in leads if one.check in (finding.check, finding.leak)), None)
    if lead is not None and finding.status in ("block", "warn"):
        return f"finding {leads.index(lead) + 1}"
    text = brief_finding_text(dossier, finding)
    return text if finding.people and finding.headline else f"{finding.title}: {text}"


def _line_of_finding(dossier: ReleaseDossier, finding: Finding) -> str:
    """Return a finding in one line, without the clause about its people where the gate's answer has it."""
    if finding.people and finding.headline and finding.headline in dossier.answer.sentence:
        return _people_with_share(dossier, finding.people)
    return brief_finding_text(dossier, finding)


def _state_text(dossier: ReleaseDossier, finding: Finding) -> str:
    """Return the state of a finding, with whether it was waived."""
    left = {one.check for one in dossier.examination.unwaived_findings}
    return f"{finding.state}, waived" if finding.status == "block" and finding.check not in left else finding.state


def brief_finding_text(dossier: ReleaseDossier, finding: Finding) -> str:
    """Return a finding in one line: in people where it counts people, else what was compared and its limit."""
    if finding.people and finding.headline:
        return f"{_people_with_share(dossier, finding.people)} {finding.headline}"
    if compared := compared_text(finding):
        limit = finding_limit_text(finding)
        noun = record_noun(dossier.answer.records)
        people = f", {count_of_noun(finding.people, noun)}" if finding.people else ""
        return f"{compared}{f', limit {limit}' if limit else ''}{people}"
    return finding.message


def _people_with_share(dossier: ReleaseDossier, people: int) -> str:
    """Return a number of people with their share of all, in the gate's format."""
    records = dossier.answer.records
    if not records:
        return count_of_noun(people, record_noun(records))
    return fill_sentence(
        sentences.PEOPLE_OF_ALL, people=people, records=records, noun=record_noun(records), share=people / records
    )
