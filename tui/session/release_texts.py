"""Texts about a release: what is released, and where it was written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sfumato.engine.wording import agreeing_word, count_noun, count_records
from sfumato.workspace.visible_text import replace_unprintable

if TYPE_CHECKING:
    from sfumato.workspace.gate.answer import ReleaseAnswer
    from sfumato.workspace.gate.contents import ReleasePlan
    from sfumato.workspace.release.forms import DatasetForm
    from sfumato.workspace.service.release import PastRelease, WrittenRelease

    from .gate_answers import ExaminedRun


STAYS = "internal/: risk assessment to sign, report, recipe, results, findings; as confidential as the data"
"""What is written and does not leave the building."""
SHORT_TREATMENTS = {
    "unchanged from the confidential data": "unchanged",
    "coarser by a public rule": "coarser",
    "identifiers as surrogate keys": "surrogate keys",
    "units with new numbers": "new numbers",
    "left out, identifiers": "left out",
}
"""Treatments of variables where a column of names stands before them."""


@dataclass(frozen=True)
class ReleaseStep:
    """Step before a release may leave.

    status: ``block``, ``warn`` or ``not checked`` as of a finding; ``open`` for what is still to be done, ``done``
    act: act whose key does it; empty for none
    text: what to do
    """

    status: str
    act: str
    text: str


def released_text(done: WrittenRelease) -> str:
    """Return where a release was written, with its files and manifest, and the number of thresholds not met."""
    unmet = f"; {count_noun(done.n_unmet, 'threshold')} not met, the reason is in the audit log" if done.n_unmet else ""
    return f"released to {done.directory}: {count_noun(len(done.files), 'file')}, manifest sha256 {done.manifest_sha256}{unmet}"


def derived_names_text(plan: ReleasePlan, form: DatasetForm) -> str:
    """Return the columns whose names the program of a form refuses, each with the name in the datasets; empty for none."""
    from sfumato.workspace.release.tables import written_column_names

    written = written_column_names(form, plan.released_columns)
    return ", ".join(f"{name} ({other})" for name, other in written.items() if name != other)


def variables_by_treatment_texts(plan: ReleasePlan, form: DatasetForm) -> list[tuple[str, str]]:
    """Return how the variables are released, each treatment with its variables; none without variables."""
    parts = {
        "replaced": plan.replaced,
        "unchanged from the confidential data": plan.unchanged_variables,
        "coarser by a public rule": plan.recoded_variables,
        "identifiers as surrogate keys": plan.surrogate_keys,
        "units with new numbers": plan.renumbered_units,
        "left out, identifiers": plan.identifiers_without_key,
        f"other names, as {form} needs them": [text] if (text := derived_names_text(plan, form)) else [],
    }
    return [(words, replace_unprintable(", ".join(names))) for words, names in parts.items() if names]


def confirmation_facts(
    plan: ReleasePlan, form: DatasetForm, answer: ReleaseAnswer | None, folder: str
) -> list[tuple[str, str]]:
    """Return what leaves, to where, and who can be found by it, by name: what a person agrees to who releases it.

    answer: the gate's; None while it examines the release
    folder: output folder; empty before it is named
    """
    return [fact for group in confirmation_groups(plan, form, answer, folder) for fact in group]


def confirmation_groups(
    plan: ReleasePlan, form: DatasetForm, answer: ReleaseAnswer | None, folder: str
) -> list[list[tuple[str, str]]]:
    """Return the same in groups: what leaves and to where; who can be found; what is done to the variables, what stays."""
    from sfumato.workspace.gate.answer import AUDIENCE_WORDS

    where = f"public/ of {folder}" if folder else "public/ of a folder that you name"
    contents = release_contents_facts(plan, form)
    return [
        [
            *contents[:1],
            (
                "goes",
                f"{'' if answer is None else f'{AUDIENCE_WORDS[answer.audience]}, '}into {replace_unprintable(where)}",
            ),
        ],
        _answer_facts(answer),
        [*contents[1:], ("stays", STAYS)],
    ]


def steps_before_release(looked: ExaminedRun) -> list[ReleaseStep]:
    """Return what a person has to do before a release may leave, in its order."""
    waived = len(looked.waived_leads)
    left = len(looked.blocking_leads) - waived
    leads = looked.lead_findings
    judged = sum(one.applies and one.status == "warn" for one in leads)
    unchecked = sum(one.applies and one.status == "not checked" for one in leads)
    # A release of tables alone has no risk assessment: what it is about applies to datasets.
    has_datasets = any(one.check == "risk_measured" and one.applies for one in looked.examination.findings)
    sign = ", sign the risk assessment" if has_datasets else ""
    steps = [
        ReleaseStep(
            "block",
            "open",
            f"justifies {count_noun(left, 'finding')} that {agreeing_word(left, 'blocks', 'block')}; or change the plan"
            if left
            else "",
        ),
        ReleaseStep("done", "open", f"{count_noun(waived, 'finding')} waived, with a reason" if waived else ""),
        ReleaseStep(
            "warn",
            "open",
            f"explains {count_noun(judged, 'finding')} for you to judge: may it leave all the same?" if judged else "",
        ),
        ReleaseStep(
            "not checked",
            "open",
            f"explains {count_noun(unchecked, 'check')} not made: accept that, or change the plan" if unchecked else "",
        ),
        ReleaseStep("open", "", looked.why_unapproved),
        ReleaseStep("open", "release_run", f"name an output folder, confirm (step 3){sign}"),
    ]
    return [one for one in steps if one.text]


def contents_and_place_facts(
    plan: ReleasePlan, form: DatasetForm, answer: ReleaseAnswer | None
) -> list[tuple[str, str]]:
    """Return what leaves, and to whom, by name."""
    contents = release_contents_facts(plan, form) if plan.has_tables_alone else _contents_facts(plan, form)
    return [*contents, *_audience_facts(answer)]


def _audience_facts(answer: ReleaseAnswer | None) -> list[tuple[str, str]]:
    """Return to whom a release goes, by name; empty before the gate has answered."""
    from sfumato.workspace.gate.answer import AUDIENCE_WORDS

    return [] if answer is None else [("goes", f"{AUDIENCE_WORDS[answer.audience]}, in the folder public/")]


def brief_contents_facts(
    plan: ReleasePlan, form: DatasetForm, looked: ExaminedRun | None, past: Sequence[PastRelease]
) -> list[tuple[str, str]]:
    """Return what leaves, to whom, and who has signed, by name, without names of files.

    looked: what the gate has found; None while it examines the release
    past: earlier releases of the run
    """
    return [
        *_contents_facts(plan, form),
        *_audience_facts(None if looked is None else looked.release_answer),
        *([] if looked is None else signature_facts(looked, past)),
    ]


def _contents_facts(plan: ReleasePlan, form: DatasetForm) -> list[tuple[str, str]]:
    """Return what leaves, by name: datasets or tables with their records, and the variables by treatment."""
    printed = printed_tables_text(plan)
    return [
        ("leaves", f"{printed}, of {count_records(plan.records)}" if plan.has_tables_alone else _datasets_text(plan)),
        *([("leaves too", printed)] if printed and not plan.has_tables_alone else []),
        *_treatment_facts(plan, form),
    ]


def signature_facts(looked: ExaminedRun, past: Sequence[PastRelease]) -> list[tuple[str, str]]:
    """Return who has released this run, who has approved it, and who is still to sign, by name."""
    last = past[0] if past else None
    released = "not yet"
    if last is not None:
        times = f", {count_noun(len(past), 'time')} in all" if len(past) > 1 else ""
        released = f"by {last.user} on {last.time[:10]}{times}"
    approval = looked.examination.approval
    second = "the policy asks for none"
    if looked.policy.second_person:
        second = f"{approval.approved_by} approved it" if approval is not None else looked.why_unapproved or "is needed"
    return [
        ("released", replace_unprintable(released)),
        ("second person", replace_unprintable(second)),
        ("to sign", "internal/risk-assessment.html, by whoever answers for it"),
    ]


def release_files_facts(plan: ReleasePlan, form: DatasetForm) -> list[tuple[str, str]]:
    """Return the files that a release writes and what each holds, those that leave first; none of tables alone."""
    internal = [
        ("internal/", "risk-assessment.html: to sign; report.html, results.json: every number of the run"),
        ("", "recipe.toml, examination.json: what was done, and what the gate found"),
    ]
    return [*public_files_facts(plan, form), *([] if plan.has_tables_alone else internal)]


def public_files_facts(plan: ReleasePlan, form: DatasetForm) -> list[tuple[str, str]]:
    """Return the files that leave and what each holds; none of tables alone."""
    from sfumato.workspace.release.public_files import dataset_file_names

    if plan.has_tables_alone:
        return []
    names = dataset_file_names(plan, form)
    datasets = names[0] if len(names) == 1 else f"{names[0]} to {names[-1].rpartition('-')[2]}"
    columns = f"{count_noun(len(plan.released_columns), 'column')}: {', '.join(plan.released_columns)}"
    return [
        ("public/", f"{datasets}: {count_records(plan.records)} each, {replace_unprintable(columns)}"),
        ("", "codebook.csv, codebook-ddi.xml, croissant.json: titles, kinds and levels of the columns"),
        ("", "using-these-data.html: for users; manifest.json: the hash of each file"),
    ]


def release_contents_facts(plan: ReleasePlan, form: DatasetForm) -> list[tuple[str, str]]:
    """Return what leaves, by name: the files with their records, and the variables by treatment."""
    from sfumato.workspace.release.public_files import dataset_file_names

    printed = printed_tables_text(plan)
    if plan.has_tables_alone:
        return [("leaves", f"{printed}, of {count_records(plan.records)}: a file each, what they hide, manifest")]
    names = dataset_file_names(plan, form)
    datasets = names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"
    return [
        ("leaves", f"{_datasets_text(plan)}: {datasets}, codebook, documents for users, manifest"),
        *([("leaves too", printed)] if printed else []),
        *_treatment_facts(plan, form),
    ]


def _datasets_text(plan: ReleasePlan) -> str:
    """Return how many datasets of how many records leave, and in which order of rows."""
    return f"{count_noun(plan.datasets, 'dataset')} of {count_records(plan.records)}, {plan.row_order_text}"


def _treatment_facts(plan: ReleasePlan, form: DatasetForm) -> list[tuple[str, str]]:
    """Return the variables by treatment, with the short names of treatments."""
    return [(SHORT_TREATMENTS.get(words, words), names) for words, names in variables_by_treatment_texts(plan, form)]


def printed_tables_text(plan: ReleasePlan) -> str:
    """Return how many tables are printed: ``3 tables, protected together``; empty without any."""
    printed = len(plan.run.recipe.tables)
    return f"{count_noun(printed, 'table')}{', protected together' if printed > 1 else ''}" if printed else ""


def _answer_facts(answer: ReleaseAnswer | None) -> list[tuple[str, str]]:
    """Return who can be found by a release, what is then learnt, and what was not examined, by name."""
    if answer is None:
        return [("who can be found", "the gate is still looking")]
    texts = {
        "who can be found": answer.sentence,
        "what is learnt": answer.learned,
        "not examined": answer.not_covered,
    }
    return [(name, replace_unprintable(text)) for name, text in texts.items() if text]


def release_contents_lines(plan: ReleasePlan, form: DatasetForm) -> list[str]:
    """Return lines on what is released as files of a form, variable by variable."""
    tables = printed_tables_text(plan)
    if plan.has_tables_alone:
        return [f"{tables}, of {count_records(plan.records)}"]
    datasets = _datasets_text(plan)
    # Names come after the words, so that no name can be read as words of ours.
    return [
        datasets,
        *([tables] if tables else []),
        *(f"{words}: {names}" for words, names in variables_by_treatment_texts(plan, form)),
    ]
