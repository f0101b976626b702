"""Risk assessment of a release, under the clauses of ISO/IEC 27559:2022: measurements, gaps, and what to judge.

Each method declares which of the four questions its measures answer (``RiskOutput.questions``). Measures that declare
none are listed as such, and a question that no measure answers is reported as open, not as safe.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from sfumato.engine.data.schema import Role
from sfumato.engine.methods.labels import measure_name, quantity_of
from sfumato.engine.methods.outputs import QUESTIONS, Output, Question
from sfumato.engine.methods.rows import Row, group_by_series
from sfumato.engine.recipe.outcomes import worst_outcome
from sfumato.engine.recipe.thresholds import Verdict
from sfumato.engine.wording import count_noun

from ..gate.questions import block_limits_by_question
from ..gate.run_checks import check_of_question
from ..policy.disclosure import MARKING
from ..release.decision import approver_text, decision_from_dossier
from ..release.dossier import ReleaseDossier
from ..release.judgements import (
    ASSESSMENT_FILE,
    CONTEXT,
    DATA,
    GOVERNANCE,
    JUDGEMENTS,
    PUBLICATION,
    RESIDUAL,
    JudgementQuestion,
)
from ..reporting.audits import audit_sentences
from ..reporting.document import (
    BulletList,
    Chapter,
    DefinitionList,
    Document,
    DocumentPart,
    OpenQuestion,
    Paragraph,
    SignatureLines,
    TextOrQuestion,
)
from ..reporting.evidence import evidence_lines
from ..reporting.findings import (
    compared_text,
    finding_counts_text,
    finding_limit_text,
    people_text,
    sort_by_status,
)
from ..reporting.questions import (
    QUESTION_TEXTS,
    answers_or_reason,
    coverage_lines,
    risk_averages,
    row_questions,
    rows_for_question,
    strongest_intruder_lines,
)
from ..reporting.release_summary import APPROVED, RECODING_REMARK, release_overview, thresholds_sentence, utc_time_text
from ..reporting.results import row_output
from ..reporting.tables import DisplayCell, DisplayRow, outcome_cell, table_from_titles
from ..reporting.words import (
    DIRECTION_TEXTS,
    method_use_text,
    number,
    records_and_dropped_text,
    role_text,
    settings_text,
    varying_settings_of_recipe,
)
from ..reporting.words import (
    limit_text as threshold_text,
)
from .actors import VERDICTS, actor_table
from .first_page import (
    accountable_person_text,
    changes_text,
    dropped_people_text,
    intruder_of_check,
    missing_values_text,
    next_step_text,
    not_examined_texts,
    open_findings_table,
    records_text,
    strongest_match_text,
    waiver_lines,
)
from .written import WrittenFile

READING = (
    "Values of the release are averages over its datasets, or of all datasets together; beside them stands the worst. The confidential data's "
    "own value is the risk of releasing them unchanged; a baseline is what the measure would be by chance, or without a "
    "difference. A threshold is what the recipe set before the run. None of these numbers is a probability that a person "
    "is re-identified: each holds for the scenario in its line. Maximum or average: they are averages, sums and shares over all records "
    "unless a line says worst; the worst records stand under the findings of the gate. Population or sample: the "
    "measures take it that the intruder knows who is in the file. Where it is a sample and the intruder does not "
    "know that, linking succeeds less often than they say."
)
ANNEX = "Annex"
TO_COMPLETE = f"What is to be completed only a person can say: in {ASSESSMENT_FILE}, under the key in brackets."
NOT_MEASURED = (
    "NOT MEASURED. No measure of this recipe answers the question. That says nothing about the risk: it may be large. "
    "Whoever approves the release does so without knowing it."
)
OPEN = "What was measured does not answer the question: the risk may be larger than these numbers."


def risk_assessment(dossier: ReleaseDossier, written: Sequence[WrittenFile]) -> dict[str, bytes]:
    """Return ``risk-assessment.html`` and the same in Markdown, as bytes by name."""
    made = assessment_document(dossier)
    return {"risk-assessment.html": made.to_html().encode(), "risk-assessment.md": made.to_markdown().encode()}


def assessment_document(dossier: ReleaseDossier) -> Document:
    """Return the risk assessment: at most four pages for whoever signs, and an annex with all numbers and findings."""
    pages = (
        _summary_chapter(dossier),
        _context_chapter(dossier),
        _data_chapter(dossier),
        _identifiability_chapter(dossier),
        _governance_chapter(dossier),
    )
    annex = (
        _questions_chapter(dossier),
        _findings_chapter(dossier),
        _mitigation_chapter(dossier),
        _variables_chapter(dossier),
        _about_chapter(dossier),
    )
    return Document(f"Risk assessment: {dossier.plan.run.title}", MARKING, (*pages, Chapter(ANNEX, annex)))


def judgement_text(dossier: ReleaseDossier, question: JudgementQuestion) -> TextOrQuestion:
    """Return a person's answer to a question, or the open question."""
    return dossier.judgements.get(question.key) or OpenQuestion(
        question.question, question.key_in_file(dossier.plan.run.id)
    )


def _judgement_terms(dossier: ReleaseDossier, questions: Sequence[JudgementQuestion]) -> DefinitionList:
    """Return questions to people with their answers, as a list of definitions."""
    return DefinitionList([(one.title, judgement_text(dossier, one)) for one in questions])


def _summary_chapter(dossier: ReleaseDossier) -> Chapter:
    """Return the first page: the gate's answer, whom it is about, what decides it, and the risk by actor."""
    plan = dossier.plan
    answer = dossier.answer
    # What was not examined has lines of its own here, with what to do about it.
    # Keys of a recipe in brackets are for whoever edits it, not for whoever signs.
    others = [
        re.sub(r" \(\[[^)]*\)", "", f"{label}: {text}")
        for label, text in answer.labelled_lines
        if label in ("Learnt", "Change first")
    ]
    findings = open_findings_table(dossier)
    parts: list[DocumentPart] = [
        Paragraph(answer.title, is_strong=True),
        Paragraph(answer.sentence),
        BulletList(
            [
                *filter(None, [strongest_match_text(dossier)]),
                *others,
                *not_examined_texts(dossier),
                next_step_text(dossier),
                *waiver_lines(dossier),
                accountable_person_text(dossier),
                *filter(None, [records_text(dossier)]),
                release_overview(plan.run.recipe, plan.datasets, plan.records).removesuffix(f" {RECODING_REMARK}"),
                thresholds_sentence(plan.verdicts, dossier.original.records),
                missing_values_text(dossier),
                dropped_people_text(dossier),
                changes_text(dossier),
            ]
        ),
        *([findings] if findings is not None else []),
        actor_table(dossier),
    ]
    return Chapter("Summary", parts)


def _context_chapter(dossier: ReleaseDossier) -> Chapter:
    """Return the chapter on recipients, environment and the intruder that the recipe assumes."""
    kept = ", ".join(dossier.plan.run.recipe.schema.names_by_role(Role.QUASI_IDENTIFIER)) or "none"
    assumed = (
        "The recipe assumes an intruder who knows, or could know, of a person the quasi-identifiers "
        f"({kept}), and looks for that person in the release. {_stronger_intruder_text(dossier)}"
    )
    parts = (Paragraph(TO_COMPLETE), _judgement_terms(dossier, CONTEXT), Paragraph(assumed))
    return Chapter("6 Context assessment", parts)


def _stronger_intruder_text(dossier: ReleaseDossier) -> str:
    """Return whether an intruder was tried who knows more than the quasi-identifiers of a person."""
    tried = any(
        one.status != "not checked" and intruder_of_check(one.check) == "holder"
        for one in dossier.examination.findings
        if one.applies
    )
    if tried:
        return "An intruder who knows all records but one was tried too (chapter 8)."
    return "What follows measures nothing against an intruder who knows more."


def _data_chapter(dossier: ReleaseDossier) -> Chapter:
    """Return the chapter on the confidential file and the records that were used."""
    recipe, original = dossier.plan.run.recipe, dossier.original
    sample = f"a sample of {recipe.data.sample:,} records of it" if recipe.data.sample else "all of its records"
    where = ", of those that meet a condition" if recipe.data.where else ""
    by = recipe.data.holdout
    share = f"{by:.0%} of these" if isinstance(by, int | float) else f"the records that the column {by} marks"
    held_out = (
        ""
        if by is None
        else f"; {share} are the hold-out: no release is made of them, and attacks are compared with them"
    )
    return Chapter(
        "7 Data assessment",
        (
            DefinitionList(
                [
                    ("Confidential file", original.name),
                    ("Records", records_and_dropped_text(original.records, original.dropped)),
                    (
                        "People of the file",
                        "" if dossier.coverage.is_whole else f"The release {dossier.coverage.text}.",
                    ),
                    ("Used", f"{sample}{where}{held_out}"),
                ]
            ),
            _judgement_terms(dossier, DATA),
        ),
    )


def _variables_chapter(dossier: ReleaseDossier) -> Chapter:
    """Return the chapter on the variables: roles, and how each is released."""
    recipe = dossier.plan.run.recipe
    roles = [
        [
            variable.name,
            variable.title,
            variable.kind.value,
            role_text(variable.role.value),
            _treatment_word(dossier, variable.name),
        ]
        for variable in recipe.schema
    ]
    titles = ("variable", "meaning", "kind", "role", "in the release")
    return Chapter("Variables", (table_from_titles(titles, roles),))


def _treatment_word(dossier: ReleaseDossier, name: str) -> str:
    """Return whether a variable is replaced, as in the confidential data, renumbered or left out."""
    if name in dossier.plan.renumbered_units:
        return "renumbered"
    if name in dossier.plan.left_out:
        return "left out"
    return "replaced" if name in dossier.plan.replaced else "as in the confidential data"


def _identifiability_chapter(dossier: ReleaseDossier) -> Chapter:
    """Return the chapter on what was found for each question, what people judge of it, and the residual risk."""
    limits = block_limits_by_question(dossier.policy)
    covered = dict(zip(QUESTIONS, coverage_lines(dossier.rows, dossier.plan.run.recipe, limits), strict=True))
    return Chapter(
        "8 Identifiability assessment and mitigation",
        (
            BulletList(
                [
                    *(_add_verdict(dossier, question, line) for question, line in covered.items()),
                    *strongest_intruder_lines(dossier.rows),
                    *audit_sentences(dossier.rows),
                    *(f"{line}." for line in evidence_lines(dossier.rows)),
                ]
            ),
            DefinitionList(
                [(question.capitalize(), judgement_text(dossier, JUDGEMENTS[question])) for question in QUESTIONS]
            ),
            DefinitionList([(RESIDUAL.title, judgement_text(dossier, RESIDUAL))]),
        ),
    )


def _add_verdict(dossier: ReleaseDossier, question: Question, line: str) -> str:
    """Return the line that answers a question, with the gate's verdict; an open question has none."""
    key, limit = check_of_question(question).key, block_limits_by_question(dossier.policy)[question]
    status = next((one.status for one in dossier.examination.findings if one.check == key), None)
    _, reason = answers_or_reason(dossier.rows, dossier.plan.run.recipe, question, limit)
    if reason or status is None:
        return line
    verdict = (
        "not compared with what there would be without a disclosure" if status == "not checked" else VERDICTS[status]
    )
    return f"{line.removesuffix('.')}; {verdict}."


def _questions_chapter(dossier: ReleaseDossier) -> Chapter:
    """Return the chapter with all measurements, by the question that they answer."""
    unsaid = [
        row
        for row in risk_averages(dossier.rows)
        if not row_questions(row) and row.family == "risk" and row.level is None
    ]
    parts: list[DocumentPart] = [Paragraph(READING), *(_question_chapter(dossier, question) for question in QUESTIONS)]
    if unsaid:
        note = Paragraph("Their methods do not say which of the four questions these answer.")
        parts.append(Chapter("Other measurements", (note, _measurement_table(dossier, unsaid))))
    return Chapter("Measurements by question", parts)


def _question_chapter(dossier: ReleaseDossier, question: Question) -> Chapter:
    """Return the chapter with the measurements that answer one question."""
    rows = rows_for_question(dossier.rows, question)
    parts: list[DocumentPart] = [Paragraph(QUESTION_TEXTS[question])]
    limit = block_limits_by_question(dossier.policy)[question]
    _, reason = answers_or_reason(dossier.rows, dossier.plan.run.recipe, question, limit)
    if rows and reason:
        parts.append(Paragraph(f"OPEN: {reason}. {OPEN}", is_strong=True))
    parts += (
        [_measurement_table(dossier, rows), _meaning_terms(rows)] if rows else [Paragraph(NOT_MEASURED, is_strong=True)]
    )
    return Chapter(question.capitalize(), parts)


def _measurement_table(dossier: ReleaseDossier, rows: Sequence[Row]) -> DocumentPart:
    """Return a table with a line for each number; of a sweep the worst level alone."""
    apart = varying_settings_of_recipe(dossier.plan.run.recipe_toml)
    own = {row.series: row for row in dossier.rows if row.dataset == "confidential" and row.draw is None}
    draws = {group[0].series: group for group in group_by_series(row for row in dossier.rows if row.draw is not None)}
    lines: list[DisplayRow] = []
    for row, levels in _worst_levels(rows):
        uses = apart.get(row.method_key, {})
        scenario = "; ".join(
            part
            for part in (
                row.target,
                settings_text({key: value for key, value in row.params.items() if key not in uses}),
                method_use_text(row.params, uses),
                f"worst of {count_noun(levels, 'level')}: {number(row.level)}" if row.level is not None else "",
            )
            if part
        )
        confidential = own.get(row.series)
        verdicts = _verdicts_of_row(dossier.plan.verdicts, row)
        lines.append(
            [
                measure_name(row.key),
                scenario or "as the method has it by default",
                "" if confidential is None else _figure_text(dossier, row, confidential.value),
                f"not computed: {row.reason}" if row.value is None else _figure_text(dossier, row, row.value),
                _figure_text(dossier, row, _worst_dataset_value(row, draws.get(row.series, ()))),
                _figure_text(dossier, row, row.baseline) if _has_own_baseline(row, confidential) else "",
                "; ".join(threshold_text(one.bound, one.limit, one.value) for one in verdicts) or "none set",
                _outcome_of_verdicts(verdicts),
            ]
        )
    titles = (
        "measure", "scenario", "confidential data", "release", "worst dataset", "baseline", "threshold", "verdict",
    )  # fmt: skip
    return table_from_titles(titles, lines, right=(2, 4, 5))


def _figure_text(dossier: ReleaseDossier, row: Row, value: float | None) -> str:
    """Return a value of a row's measure in people or in its unit; empty for None."""
    return "" if value is None else quantity_of(row.key, value, dossier.original.records, row.params, unit=row.unit)


def _has_own_baseline(row: Row, confidential: Row | None) -> bool:
    """Return whether a row's baseline differs from the confidential data's value."""
    # That value stands in the same line: the table would show one number twice.
    return row.baseline is not None and (confidential is None or row.baseline != confidential.value)


def _worst_levels(rows: Sequence[Row]) -> list[tuple[Row, int]]:
    """Return each row with the number of levels it stands for: of a sweep the worst row alone."""
    sweeps: dict[object, list[Row]] = {}
    for row in rows:
        key, target, params, level = row.series
        sweeps.setdefault((key, target, params, level is None), []).append(row)
    return [(_worst_row(group), len(group)) for group in sweeps.values()]


def _worst_row(rows: Sequence[Row]) -> Row:
    """Return the row of the largest risk; the first where none has a value."""
    output = row_output(rows[0])
    computed = [row for row in rows if row.value is not None]
    if not computed:
        return rows[0]
    # A measure without a better direction is taken as a risk: the largest value is the worst.
    return (min if _is_high_good(output) else max)(computed, key=lambda row: row.value or 0.0)


def _is_high_good(output: Output | None) -> bool:
    """Return whether high values of an output are better."""
    return output is not None and output.goal == "high"


def _worst_dataset_value(row: Row, draws: Sequence[Row]) -> float | None:
    """Return the worst value of single datasets and of all together; None where no direction is worse."""
    output = row_output(row)
    if len(draws) < 2 or output is None or output.goal == "none":
        return None
    # The row of all datasets is compared too: the worst dataset must not look better than the release.
    return _worst_row([row, *draws]).value


def _verdicts_of_row(verdicts: Sequence[Verdict], row: Row) -> list[Verdict]:
    """Return the verdicts on the number of a row."""
    return [
        one
        for one in verdicts
        # A verdict counts for its own series and for no other with the same measure.
        if one.value == row.key
        and one.target == row.target
        and one.level == row.level
        and dict(one.params or {}) == dict(row.params)
    ]


def _outcome_of_verdicts(verdicts: Sequence[Verdict]) -> DisplayCell | str:
    """Return the cell with the worst outcome of some verdicts."""
    if not verdicts:
        return "no threshold"
    return outcome_cell(worst_outcome(one.outcome for one in verdicts))


def _meaning_terms(rows: Sequence[Row]) -> DefinitionList:
    """Return the measures of some rows with their meaning and direction, as a list of definitions."""
    outputs = {row.key: row_output(row) for row in rows}
    return DefinitionList(
        [
            (measure_name(key), f"{output.meaning}; {DIRECTION_TEXTS[output.goal]}")
            for key, output in outputs.items()
            if output
        ]
    )


def _findings_chapter(dossier: ReleaseDossier) -> Chapter:
    """Return the chapter on what the gate found when it compared the release with the confidential data."""
    findings = dossier.examination.findings
    titles_of = {one.check: one.title for one in findings}
    lines: list[DisplayRow] = [
        [
            one.title,
            DisplayCell(one.state, one.status if one.applies else "does not apply"),
            f"the same leak as {titles_of.get(one.leak, one.leak)}: {one.message}" if one.leak else one.message,
            number(one.value) if one.value is not None else "",
            number(one.baseline) if one.baseline is not None else "",
            compared_text(one),
            finding_limit_text(one) if one.applies else "",
            people_text(one),
            one.advice,
            one.source,
        ]
        for one in sort_by_status(findings)
    ]
    titles = (
        "check",
        "state",
        "found",
        "value",
        "baseline",
        "compared value",
        "limit",
        "people",
        "how to fix it",
        "limit from",
    )
    part = table_from_titles(titles, lines, right=(3, 4, 5, 6, 7)) if lines else Paragraph("The gate has no finding.")
    return Chapter("Findings of the gate", (part,))


def _mitigation_chapter(dossier: ReleaseDossier) -> Chapter:
    """Return the chapter on the methods of synthesis and anonymisation, and whether their models meet the rules."""
    recipe = dossier.plan.run.recipe
    lines: list[DisplayRow] = [
        [
            step.target or ", ".join(recipe.released),
            "synthetic data" if step.target else "anonymisation",
            step.method.title,
            settings_text(step.spec.to_reported_table()),
            step.method.source,
        ]
        for step in (*recipe.synthesis, *recipe.anonymisation)
    ]
    failed = [one for one in dossier.diagnostics if one.passed is False]
    told = (
        f"{count_noun(len(failed), 'rule')} for the models not met: {', '.join(f'{one.target} {one.parameter} {one.name}'.strip() for one in failed)}."
        if failed
        else "The models meet every rule."
        if any(one.passed for one in dossier.diagnostics)
        else ""
    )
    return Chapter(
        "Mitigation",
        (
            table_from_titles(("variables", "technique", "method", "settings", "source"), lines),
            *((Paragraph(told),) if told else ()),
        ),
    )


def _about_chapter(dossier: ReleaseDossier) -> Chapter:
    """Return the chapter with the run, the policy and the counts of findings, and what is published about the release."""
    plan = dossier.plan
    return Chapter(
        "Run and publication",
        (
            DefinitionList(
                [
                    ("Findings of the gate", finding_counts_text(dossier.examination.findings)),
                    ("Run", f"{plan.run.id}, finished {utc_time_text(plan.run.finished)}"),
                    ("Policy", f"{dossier.policy.name or 'the default one'}, SHA-256 {dossier.policy.sha256}"),
                ]
            ),
            _judgement_terms(dossier, PUBLICATION),
        ),
    )


def _governance_chapter(dossier: ReleaseDossier) -> Chapter:
    """Return the chapter on responsibility, the request and its approval, with the lines to sign on."""
    return Chapter(
        "9 Governance",
        (
            _judgement_terms(dossier, GOVERNANCE),
            *decision_from_dossier(dossier).request_tables,
            SignatureLines(
                [
                    ("Assessed by", ""),
                    ("Owner of the risk", dossier.judgements.get("owner", "")),
                    (APPROVED, approver_text(dossier)),
                ]
            ),
        ),
    )
