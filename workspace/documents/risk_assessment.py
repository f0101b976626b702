"""The risk assessment of a release, under the clauses of ISO/IEC 27559:2022: what was measured, what was not, what a person has to judge.

Which of the four questions a measure answers its method declares (``RiskOutput.questions``); what is measured and declares none
is listed as such, and a question that nothing answers is said to be open, not safe.
"""

from __future__ import annotations

from collections.abc import Sequence

from sfumato.engine.data.schema import Role
from sfumato.engine.methods.labels import name_called, quantity_of
from sfumato.engine.methods.outputs import QUESTIONS, Output, Question
from sfumato.engine.methods.rows import Row, by_series
from sfumato.engine.recipe.outcomes import worst
from sfumato.engine.recipe.thresholds import Verdict
from sfumato.engine.wording import counted

from ..gate.gate import ALL
from ..gate.question_checks import block_limits, check_of
from ..policy.disclosure import MARKING
from ..release.decision import approver_of, decision_of
from ..release.dossier import Dossier
from ..release.judgements import ASSESSMENT_FILE, CONTEXT, DATA, GOVERNANCE, JUDGEMENTS, PUBLICATION, RESIDUAL, Asked
from ..reporting.audits import given_away_lines
from ..reporting.document import Chapter, Document, Items, Open, Paragraph, Part, Signatures, Terms, Words
from ..reporting.evidence import evidence_lines
from ..reporting.findings import (
    by_status,
    compared_text,
    counts_text,
    is_open,
    lead_findings,
    limit_text,
    people_text,
)
from ..reporting.questions import (
    ASKS,
    answered_by,
    answering,
    averages_of_risk,
    coverage,
    questions_of,
    strongest_intruder,
)
from ..reporting.release_summary import APPROVED, judged, moment, release_overview
from ..reporting.results import output_of
from ..reporting.tables import Cell, Line, outcome_cell, table
from ..reporting.words import (
    DIRECTIONS,
    number,
    records_text,
    role_text,
    settings_apart,
    settings_text,
    use_text,
)
from ..reporting.words import (
    limit_text as threshold_text,
)
from .actors import VERDICTS, actor_table
from .one_leak import Said, by_advice
from .written import Written

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
BY_ACTOR = (
    "Limits are those of the gate, which every release passes before it leaves. A verdict covers what was measured of an actor alone. "
    "Not measured is not safe: the risk may be large."
)
NOT_MEASURED = (
    "NOT MEASURED. No measure of this recipe answers the question. That says nothing about the risk: it may be large. "
    "Whoever approves the release does so without knowing it."
)
OPEN = "What was measured does not answer the question: the risk may be larger than these numbers."


def risk_assessment(dossier: Dossier, written: Sequence[Written]) -> dict[str, bytes]:
    """``risk-assessment.html`` and the same in Markdown."""
    made = assessment(dossier)
    return {"risk-assessment.html": made.html().encode(), "risk-assessment.md": made.markdown().encode()}


def assessment(dossier: Dossier) -> Document:
    """What somebody who signs reads on two pages, and behind it the numbers, the findings and the variables in full."""
    pages = (_summary(dossier), _context(dossier), _data(dossier), _identifiability(dossier), _governance(dossier))
    annex = (_questions(dossier), _testing(dossier), _mitigation(dossier), _variables(dossier))
    return Document(f"Risk assessment: {dossier.plan.run.title}", MARKING, (*pages, Chapter(ANNEX, annex)))


def answer(dossier: Dossier, asked: Asked) -> Words:
    """What a person has said, or that it is still to be said."""
    return dossier.judgements.get(asked.key) or Open(asked.asked, asked.place(dossier.plan.run.id))


def _answers(dossier: Dossier, asked: Sequence[Asked]) -> Terms:
    return Terms([(one.title, answer(dossier, one)) for one in asked])


def _summary(dossier: Dossier) -> Chapter:
    plan, decision, examination = dossier.plan, decision_of(dossier), dossier.examination
    leads = [one for one in lead_findings(examination.findings) if is_open(one)]
    blocking = sorted((one for one in leads if one.status == "block"), key=lambda one: -(one.people or 0))
    waivers = [_waiver(dossier, one.check) for one in blocking]
    each = len(set(waivers)) > 1
    # The line on thresholds says what is not met: the finding about it need not repeat this.
    said = Said([one for one in examination.findings if one.check == "unmet_thresholds"])
    lines = []
    for some in by_advice([[one, *examination.witnesses(one)] for one in blocking]):
        why = dict.fromkeys(_waiver(dossier, one.check) for group in some for one in group if one.status == "block")
        lines.append([*said.line(some), *(["; ".join(filter(None, why))] if each else [])])
    by_actor = actor_table(dossier, said)
    to_judge = [[one, *examination.witnesses(one)] for one in leads if one.status == "warn"]
    judging = [said.line(some) for some in by_advice(to_judge)]
    reason = [f"Reason given: {decision.reason}"] if decision.reason else []
    if not reason and waivers and waivers[0] and not each:
        reason = [f"Waived because: {waivers[0]}"]
    title, *answer = dossier.answer.lines
    parts: list[Part] = [
        Paragraph(title, strong=True),
        *(Paragraph(line) for line in answer),
        Items(
            [
                _next_step(dossier),
                release_overview(plan.run.recipe, plan.datasets, plan.records),
                judged(plan.verdicts),
                *reason,
            ]
        ),
    ]
    if lines:
        heads = ("finding that blocks", "found", "how to fix it", *(["waived because"] if each else []))
        parts.append(table(heads, lines))
    parts += [by_actor, Paragraph(BY_ACTOR)]
    if judging:
        parts.append(table(("finding to be judged", "found", "how to fix it"), judging))
    parts.append(
        Terms(
            [
                ("Findings of the gate", counts_text(examination.findings)),
                ("Run", f"{plan.run.id}, finished {moment(plan.run.finished)}"),
                ("Policy", f"{dossier.policy.name or 'the default one'}, SHA-256 {dossier.policy.sha256}"),
            ]
        )
    )
    return Chapter("Summary", parts)


def _next_step(dossier: Dossier) -> str:
    """Return what the reader has to do."""
    answer = dossier.answer.may_leave
    if answer == "no":
        return "What to do: keep the release back. Fix each finding that blocks and run again."
    if dossier.examination.blocking:
        return "What to do: check that the reasons for waiving outweigh what is found below. Without them the gate keeps the release back."
    if answer == "to be judged":
        return "What to do: judge the findings and the actors below, complete the open answers, and sign."
    return "What to do: judge the actors below, complete the open answers, and sign."


def _waiver(dossier: Dossier, check: str) -> str:
    """By whom and why a finding was waived; nothing where nobody did."""
    waivers = {one.check: f"{one.reason} ({one.user})" for one in dossier.examination.waivers}
    return waivers.get(check) or waivers.get(ALL, "")


def _context(dossier: Dossier) -> Chapter:
    kept = ", ".join(dossier.plan.run.recipe.schema.of_role(Role.QUASI_IDENTIFIER)) or "none"
    assumed = (
        "The recipe assumes an intruder who knows, or could know, of a person the quasi-identifiers "
        f"({kept}), and looks for that person in the release. What follows measures nothing against an intruder who knows more."
    )
    parts = (Paragraph(TO_COMPLETE), _answers(dossier, CONTEXT), Paragraph(assumed))
    return Chapter("6 Context assessment", parts)


def _data(dossier: Dossier) -> Chapter:
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
            Terms(
                [
                    ("Confidential file", original.name),
                    ("Records", records_text(original.records, original.dropped)),
                    ("Used", f"{sample}{where}{held_out}"),
                ]
            ),
            _answers(dossier, DATA),
        ),
    )


def _variables(dossier: Dossier) -> Chapter:
    recipe = dossier.plan.run.recipe
    roles = [
        [
            variable.name,
            variable.title,
            variable.kind.value,
            role_text(variable.role.value),
            "left out" if variable.name in dossier.plan.left_out else _fate(dossier, variable.name),
        ]
        for variable in recipe.schema
    ]
    titles = ("variable", "meaning", "kind", "role", "in the release")
    return Chapter("Variables", (table(titles, roles),))


def _fate(dossier: Dossier, name: str) -> str:
    return "replaced" if name in dossier.plan.replaced else "as in the confidential data"


def _identifiability(dossier: Dossier) -> Chapter:
    """What the questions came to, what people judge of each, and what is left; the numbers stand in the annex."""
    limits = block_limits(dossier.policy)
    covered = dict(zip(QUESTIONS, coverage(dossier.rows, dossier.plan.run.recipe, limits), strict=True))
    return Chapter(
        "8 Identifiability assessment and mitigation",
        (
            Items(
                [
                    *(_with_verdict(dossier, question, line) for question, line in covered.items()),
                    *strongest_intruder(dossier.rows),
                    *given_away_lines(dossier.rows),
                    *(f"{line}." for line in evidence_lines(dossier.rows)),
                ]
            ),
            Terms([(question.capitalize(), answer(dossier, JUDGEMENTS[question])) for question in QUESTIONS]),
            Terms([(RESIDUAL.title, answer(dossier, RESIDUAL))]),
        ),
    )


def _with_verdict(dossier: Dossier, question: Question, line: str) -> str:
    """What answers a question, with the gate's verdict of it; a question that is open has none."""
    key, limit = check_of(question).key, block_limits(dossier.policy)[question]
    status = next((one.status for one in dossier.examination.findings if one.check == key), None)
    _, reason = answered_by(dossier.rows, dossier.plan.run.recipe, question, limit)
    if reason or status is None:
        return line
    verdict = (
        "not compared with what there would be without a disclosure" if status == "not checked" else VERDICTS[status]
    )
    return f"{line.removesuffix('.')}; {verdict}."


def _questions(dossier: Dossier) -> Chapter:
    unsaid = [
        row
        for row in averages_of_risk(dossier.rows)
        if not questions_of(row) and row.family == "risk" and row.level is None
    ]
    parts: list[Part] = [Paragraph(READING), *(_question(dossier, question) for question in QUESTIONS)]
    if unsaid:
        note = Paragraph("Their methods do not say which of the four questions these answer.")
        parts.append(Chapter("Other measurements", (note, _lines(dossier, unsaid))))
    return Chapter("Measurements by question", parts)


def _question(dossier: Dossier, question: Question) -> Chapter:
    rows = answering(dossier.rows, question)
    parts: list[Part] = [Paragraph(ASKS[question])]
    limit = block_limits(dossier.policy)[question]
    _, reason = answered_by(dossier.rows, dossier.plan.run.recipe, question, limit)
    if rows and reason:
        parts.append(Paragraph(f"OPEN: {reason}. {OPEN}", strong=True))
    parts += [_lines(dossier, rows), _meanings(rows)] if rows else [Paragraph(NOT_MEASURED, strong=True)]
    return Chapter(question.capitalize(), parts)


def _lines(dossier: Dossier, rows: Sequence[Row]) -> Part:
    """A line a number; of a sweep the level that is worst."""
    apart = settings_apart(dossier.plan.run.recipe_toml)
    own = {row.series: row for row in dossier.rows if row.dataset == "confidential" and row.draw is None}
    draws = {group[0].series: group for group in by_series(row for row in dossier.rows if row.draw is not None)}
    lines: list[Line] = []
    for row, levels in _worst_levels(rows):
        uses = apart.get(row.method_key, {})
        scenario = "; ".join(
            part
            for part in (
                row.target,
                settings_text({key: value for key, value in row.params.items() if key not in uses}),
                use_text(row.params, uses),
                f"worst of {counted(levels, 'level')}: {number(row.level)}" if row.level is not None else "",
            )
            if part
        )
        confidential = own.get(row.series)
        verdicts = _verdicts(dossier.plan.verdicts, row)
        lines.append(
            [
                name_called(row.key),
                scenario or "as the method has it by default",
                "" if confidential is None else _figure(dossier, row, confidential.value),
                f"not computed: {row.reason}" if row.value is None else _figure(dossier, row, row.value),
                _figure(dossier, row, _worst_draw(row, draws.get(row.series, ()))),
                _figure(dossier, row, row.baseline) if _own_baseline(row, confidential) else "",
                "; ".join(threshold_text(one.bound, one.limit, one.value) for one in verdicts) or "none set",
                _outcome(verdicts),
            ]
        )
    titles = (
        "measure", "scenario", "confidential data", "release", "worst dataset", "baseline", "threshold", "verdict",
    )  # fmt: skip
    return table(titles, lines, right=(2, 4, 5))


def _figure(dossier: Dossier, row: Row, value: float | None) -> str:
    """A value of a row's measure in people or its unit; empty for none."""
    return "" if value is None else quantity_of(row.key, value, dossier.original.records, row.params, unit=row.unit)


def _own_baseline(row: Row, confidential: Row | None) -> bool:
    """Whether a row's baseline is another than the confidential data's value, which stands beside it."""
    return row.baseline is not None and (confidential is None or row.baseline != confidential.value)


def _worst_levels(rows: Sequence[Row]) -> list[tuple[Row, int]]:
    """Each row with how many levels it stands for: of a sweep the worst one alone."""
    sweeps: dict[object, list[Row]] = {}
    for row in rows:
        key, target, params, level = row.series
        sweeps.setdefault((key, target, params, level is None), []).append(row)
    return [(_worst(group), len(group)) for group in sweeps.values()]


def _worst(rows: Sequence[Row]) -> Row:
    """The row of the largest risk; one without a value where none has one, or where no direction is the worse."""
    output = output_of(rows[0])
    computed = [row for row in rows if row.value is not None]
    if not computed:
        return rows[0]
    return (min if _high_is_good(output) else max)(computed, key=lambda row: row.value or 0.0)


def _high_is_good(output: Output | None) -> bool:
    return output is not None and output.goal == "high"


def _worst_draw(row: Row, draws: Sequence[Row]) -> float | None:
    """The worst value of a single dataset, or that of all together where it is worse; None where one direction is not worse than the other."""
    output = output_of(row)
    if len(draws) < 2 or output is None or output.goal == "none":
        return None
    return _worst([row, *draws]).value


def _verdicts(verdicts: Sequence[Verdict], row: Row) -> list[Verdict]:
    return [
        one
        for one in verdicts
        if one.value == row.key
        and one.target == row.target
        and one.level == row.level
        and dict(one.params or {}) == dict(row.params)
    ]


def _outcome(verdicts: Sequence[Verdict]) -> Cell | str:
    if not verdicts:
        return "no threshold"
    return outcome_cell(worst(one.outcome for one in verdicts))


def _meanings(rows: Sequence[Row]) -> Terms:
    outputs = {row.key: output_of(row) for row in rows}
    return Terms(
        [
            (name_called(key), f"{output.meaning}; {DIRECTIONS[output.goal]} ({key})")
            for key, output in outputs.items()
            if output
        ]
    )


def _testing(dossier: Dossier) -> Chapter:
    """What the gate found when it took the release against the confidential data."""
    findings = dossier.examination.findings
    titles_of = {one.check: one.title for one in findings}
    lines: list[Line] = [
        [
            one.title,
            Cell(one.state, one.status if one.applies else "does not apply"),
            f"the same leak as {titles_of.get(one.leak, one.leak)}: {one.said}" if one.leak else one.said,
            number(one.value) if one.value is not None else "",
            number(one.baseline) if one.baseline is not None else "",
            compared_text(one),
            limit_text(one) if one.applies else "",
            people_text(one),
            one.advice,
            one.source,
        ]
        for one in by_status(findings)
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
    part = table(titles, lines, right=(3, 4, 5, 6, 7)) if lines else Paragraph("The gate has no finding.")
    return Chapter("Findings of the gate", (part,))


def _mitigation(dossier: Dossier) -> Chapter:
    recipe = dossier.plan.run.recipe
    lines: list[Line] = [
        [
            step.target or ", ".join(recipe.released),
            "synthetic data" if step.target else "anonymisation",
            step.method.title,
            settings_text(step.spec.told()),
            step.method.source,
        ]
        for step in (*recipe.synthesis, *recipe.anonymisation)
    ]
    failed = [one for one in dossier.diagnostics if one.passed is False]
    told = (
        f"{counted(len(failed), 'rule')} for the models not met: {', '.join(f'{one.target} {one.parameter} {one.name}'.strip() for one in failed)}."
        if failed
        else "Every rule that the models are held against is met."
        if any(one.passed for one in dossier.diagnostics)
        else ""
    )
    return Chapter(
        "Mitigation",
        (
            table(("variables", "technique", "method", "settings", "source"), lines),
            *((Paragraph(told),) if told else ()),
        ),
    )


def _governance(dossier: Dossier) -> Chapter:
    return Chapter(
        "9 Governance",
        (
            _answers(dossier, (*GOVERNANCE, *PUBLICATION)),
            *decision_of(dossier).acts_table,
            Signatures(
                [
                    ("Assessed by", ""),
                    ("Owner of the risk", dossier.judgements.get("owner", "")),
                    (APPROVED, approver_of(dossier)),
                ]
            ),
        ),
    )
