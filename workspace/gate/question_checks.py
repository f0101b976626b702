"""The gate's checks by question: what intruders learn beyond what they would without a disclosure, and which questions are open.

Which measures answer a question, and whether what they find beyond their baseline is compared with limits, their methods declare
(``RiskOutput.questions``, ``RiskOutput.gate_reference``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from sfumato.engine.adversary.targets import vulnerable_target_count
from sfumato.engine.errors import NotComputable
from sfumato.engine.methods.labels import SeriesIdentity, label_of, quantity_of
from sfumato.engine.methods.outputs import QUESTIONS, Output, Question
from sfumato.engine.methods.rows import Row
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.statistics.comparing import is_above
from sfumato.engine.statistics.estimated import Estimated, simultaneous
from sfumato.engine.wording import format_percent, record_noun

from ..policy.policy import Policy
from ..reporting.questions import (
    BLOCK_FROM,
    KNOWLEDGE_PARAMETERS,
    WARN_FROM,
    answers_or_reason,
    methods_for_question,
    risk_averages,
    rows_for_question,
    unanswered_questions,
    variables_known_to_intruder,
)
from ..reporting.results import row_output
from ..views.weights import record_weight_lines
from .checks import KEPT_KEYS, STATUSES, CheckResult, ExaminedRelease, GateCheck, Status
from .contents import variables_by_treatment
from .kept_column_checks import kept_columns_of_release

ShareFoundBy = Callable[[Sequence[str], int], tuple[float, float]]
"""Shares of a number of people who are picked by some columns alone, and who are unique in them."""
EXCESS = "excess (0 by chance, 1 for certain)"
"""The unit of an attack's success beyond its baseline, as a share of the rest above the baseline."""
_OWN_CHOICE = "a choice of ours; no rule of the field has a number"
_TITLES_AND_REASONS: dict[Question, tuple[str, str, str]] = {
    "singling out": (
        "singling out people",
        "a person who can be singled out can be found",
        "singling out, Article 29 Working Party (WP216); residual risk: Giomi et al. (2023), eq. 3",
    ),
    "linkability": (
        "linking the records of people",
        "a record that is linked rightly gives all of it away",
        "linkability, Article 29 Working Party (WP216); linkage beside chance: Domingo-Ferrer & Torra (2001)",
    ),
    "inference": (
        "inferring values of people",
        "what is inferred of people who were not in the data too is no disclosure, what is inferred beyond it is; "
        "without controls an attribution does not show which, so it only warns",
        "inference, Article 29 Working Party (WP216); Giomi et al. (2023), eq. 3; Raab, Nowok & Dibben (2024)",
    ),
    "membership": (
        "telling who is in the data",
        "that somebody is in the data may be what must not be known",
        "consensus on measuring disclosure of synthetic data: Pilgram et al. (2025)",
    ),
}


def _measured_rows(case: ExaminedRelease) -> list[Row]:
    return list(case.measured_rows)


def question_limits(question: Question, policy: Policy) -> tuple[float | None, float | None]:
    """Return the limits from which on the gate warns of and blocks what answers a question."""
    return check_of_question(question).limits_under_policy(policy)


def check_of_question(question: Question) -> GateCheck:
    """Return the gate's check of a question."""
    return next(check for check in QUESTION_CHECKS if check.key == _key_of_question(question))


def block_limits_by_question(policy: Policy) -> dict[Question, float | None]:
    """Return the limit from which on the gate blocks what answers each question; None for never."""
    return {question: question_limits(question, policy)[1] for question in QUESTIONS}


def _check_open_questions(case: ExaminedRelease) -> CheckResult:
    rows = _measured_rows(case)
    left = unanswered_questions(rows, case.recipe, block_limits_by_question(case.policy))
    said = "; ".join(_open_question_text(question, reason, rows) for question, reason in left.items())
    return CheckResult(said or f"all are answered: {', '.join(QUESTIONS)}", len(left))


def _open_question_text(question: Question, reason: str, rows: Sequence[Row]) -> str:
    """Return why a question is open; where nothing was measured, what would answer it."""
    add = "" if rows_for_question(rows, question) else f"; add {' or '.join(methods_for_question(question))}"
    return f"{question}: {reason}{add}"


def _value_and_excess(row: Row, output: Output, records: int) -> tuple[float, float, float]:
    """Return value and baseline of a row as shares, and how far the value is beyond the baseline, relative to what the baseline leaves."""
    value = row.value or 0.0
    if output.risk.gate_reference == "nothing":
        share = value / records if output.unit == "records" else value
        return share, 0.0, share
    base = row.baseline or 0.0
    return value, base, (value - base) / (1 - base) if base < 1 else 0.0


def _check_question(case: ExaminedRelease, question: Question) -> CheckResult:
    blocks = kept_columns_of_release(case).is_blocking
    return evaluate_question(
        question,
        _measured_rows(case),
        case.recipe,
        case.policy,
        case.plan.records,
        case.share_found_by_columns,
        kept_columns_block=blocks,
    )


def evaluate_question(
    question: Question,
    rows: Sequence[Row],
    recipe: Recipe,
    policy: Policy,
    records: int,
    found_by: ShareFoundBy,
    *,
    kept_columns_block: bool = False,
) -> CheckResult:
    """Return the result of a question: of its measures the one that blocks, else the one that warns, else the one furthest beyond its
        baseline.

    What chance may have produced is no finding, unless it is beyond what blocks and the measure would have seen that: then a person has
    to judge it.

    Who knows columns that a synthesis releases unchanged finds people by these alone: at most the share that ``found_by`` returns for the
    people who are easiest to find. An AUC counts who of others has none of the rows. What they find is part of the finding on kept columns
    (``kept_keys``) and blocks where that does (``kept_columns_block``); what is found beyond it may block by itself. Inference is of
    values that are
    drawn, where this makes no difference.
    Intervals are simultaneous over all measures of the run that may block. What is found is shown whoever looked. What is not found is
    no pass
    where nothing answers the question: then it raises NotComputable.
    """
    warn, block = question_limits(question, policy)
    answers, reason = answers_or_reason(rows, recipe, question, block)
    strong = {id(row) for row in answers}
    series = sum(output.estimated for row, output in _compared_averages(rows) if output.risk.gate_reference == "chance")
    seen = [
        replace(
            _result_of_row(
                replace(row, baseline=base),
                output,
                records,
                series,
                _row_label(row, recipe),
                said,
                at_most,
                block if id(row) in strong else None,
            ),
            leak=leak,
        )
        for row, output in _compared_averages(rows_for_question(rows, question))
        for base, said, at_most, leak in _baselines_of_row(
            row, output, question, recipe, records, found_by, kept_columns_block=kept_columns_block
        )
    ]
    worst = max(seen, key=lambda one: _severity_under_limits(one, warn, block), default=None)
    found = worst is not None and _status_under_limits(worst, warn, block) != "pass"
    if worst is not None and (answers or found):
        return worst
    if reason:
        raise NotComputable(_open_question_text(question, reason, rows))
    raise NotComputable(f"{question}: measured, by nothing that says what there would be without a disclosure")


def _baselines_of_row(
    row: Row,
    output: Output,
    question: Question,
    recipe: Recipe,
    records: int,
    found_by: ShareFoundBy,
    *,
    kept_columns_block: bool,
) -> list[tuple[float | None, str, Status, str]]:
    """Return each baseline of a row with what a reader should know of it, the worst status it may give, and the check whose finding has
    the same cause.
    """
    named = sorted(set(variables_by_treatment(recipe)[0]) & (variables_known_to_intruder(row, recipe) or set()))
    if question == "inference" or recipe.origin != "synthetic" or not named:
        return [(row.baseline, "", "block", "")]
    most = vulnerable_target_count(None, records) if row.params.get("people") == "vulnerable" else records
    picked, alone = found_by(named, most)
    base = row.baseline or 0.0
    beside = base + (1 - base) * alone if output.risk.area else max(base, picked)
    said = f"; the intruder knows columns that are released unchanged ({', '.join(named)}), by which alone at most {format_percent(picked)} of the {record_noun(records)} can be found"
    return [
        (row.baseline, said, "block" if kept_columns_block else "warn", KEPT_KEYS),
        (beside, said, "block", ""),
    ]


def _compared_averages(rows: Sequence[Row]) -> list[tuple[Row, Output]]:
    """Return the averages that are compared with the gate's limits."""
    return [
        (row, output)
        for row in risk_averages(rows)
        if (output := row_output(row)) is not None
        and output.risk.gate_reference
        and row.value is not None
        and row.level is None
    ]


def _row_label(row: Row, recipe: Recipe) -> str:
    """Return the name of a number with the settings that distinguish it from others of its method.

    The variables that the intruder knows are named only where the recipe uses the method several times.
    """
    alone = sum(step.method.key == row.method_key for step in (*recipe.measures, *recipe.studies)) <= 1
    named = (*KNOWLEDGE_PARAMETERS, "sensitive", "radius") if alone else ()
    kept = {key: value for key, value in row.params.items() if key not in named}
    return label_of(SeriesIdentity(row.key, row.target, row.level, kept))


def _result_of_row(
    row: Row,
    output: Output,
    records: int,
    series: int,
    label: str,
    remark: str,
    at_most: Status,
    block: float | None,
) -> CheckResult:
    value, base, beyond = _value_and_excess(row, output, records)
    found = Estimated(row.value or 0.0, row.lower, row.upper)
    if output.estimated:
        found = simultaneous(found, series, output.range)
    if output.risk.gate_lower and found.lower is not None:
        beyond = _value_and_excess(replace(row, value=found.lower), output, records)[2]
    sure = found.lower if output.estimated else value if row.lower is None else row.lower
    figure = partial(quantity_of, row.key, params=row.params, unit=row.unit)
    against = "" if output.risk.gate_reference == "nothing" else f", {figure(base)} without a disclosure"
    interval = (
        f" (interval {figure(found.lower)} to {figure(found.upper)})"
        if output.estimated and found.lower is not None and found.upper is not None
        else ""
    )
    may = output.risk.gate_reference == "chance" and sure is not None and is_above(sure, base)
    most, chance = at_most, ""
    if not may:
        most = "warn"
        # over all tests of the run together: an interval that has the baseline in it is no finding, whatever its middle is
        if interval and output.risk.gate_reference == "chance" and not (block is not None and is_above(beyond, block)):
            most = "pass"
        if interval and is_above(beyond, WARN_FROM):
            chance = (
                f"; chance alone may give as much, so that it {'only warns' if most == 'warn' else 'is no finding'}"
            )
    said = f"{label}: {figure(row.value or 0.0, records)}{interval}{against}{remark}{chance}"
    return CheckResult(said, value, base, beyond, at_most=most)


def _status_under_limits(one: CheckResult, warn: float | None, block: float | None) -> Status:
    """Return the status that the gate gives to a result under these limits."""
    beyond = [limit is not None and is_above(one.compared_value, limit) for limit in (warn, block)]
    if one.at_most == "pass" or not any(beyond):
        return "pass"
    return "block" if one.at_most == "block" and beyond[1] else "warn"


def _severity_under_limits(one: CheckResult, warn: float | None, block: float | None) -> tuple[int, float]:
    """Return a sorting key: what blocks under the policy before what warns, then what is further beyond."""
    return -STATUSES.index(_status_under_limits(one, warn, block)), one.compared_value


def _key_of_question(question: Question) -> str:
    return f"{question.replace(' ', '_')}_excess"


def _check_weighted_records(case: ExaminedRelease) -> CheckResult:
    lines = record_weight_lines(case.workspace, case.plan.run.id)
    if not lines:
        return CheckResult("every record says as much to the models as any other", 0)
    said = f"the run is weighted: {lines[0]}. What it measured is of its own release; no number measures what the weights themselves reveal"
    return CheckResult(said, 1)


QUESTION_CHECKS = (
    *(
        GateCheck(
            _key_of_question(question), title, EXCESS, WARN_FROM, BLOCK_FROM,
            f"{reason}; {_OWN_CHOICE}; it blocks where the interval is above the baseline too",
            "larger leaves or smoothing = true under [[synthesis]], coarser values, or a smaller m under [release]",
            partial(_check_question, question=question), source,
        )
        for question, (title, reason, source) in _TITLES_AND_REASONS.items()
    ),
    GateCheck(
        "questions_open", "questions of the risk assessment that nothing answers", "questions", 0, None,
        "a risk that was not measured is not known to be low; it may be large",
        "measure what the finding names, against an intruder who knows every quasi-identifier; attacks that need people who were not in the data "
        "want [data] holdout in the recipe, of more records where they find large leaks only", _check_open_questions,
        "singling out, linkability, inference: Article 29 Working Party (WP216); membership: Pilgram et al. (2025)",
    ),
    GateCheck(
        "weighted_records", "weights by which records say less to the models", "weights", None, None,
        "weights change what the models know of people, and say themselves who was at risk: keep them where the data are", "nothing has to be done",
        _check_weighted_records, "risk-weighted pseudo posterior: Hu, Savitsky & Williams (2022)", is_note=True,
    ),
)  # fmt: skip


def limits_with_sources(question: Question, policy: Policy) -> tuple[tuple[float, str], ...]:
    """Return the limits from which on the gate warns of and blocks what answers a question, each with whose limit it is; missing limits
    are left out.
    """
    given = policy.findings.get(_key_of_question(question))
    found = []
    for limit, own, verb in zip(
        question_limits(question, policy),
        (None, None) if given is None else (given.warn, given.block),
        ("warns", "blocks"),
        strict=True,
    ):
        if limit is None:
            continue
        of_policy = (
            given.source if given is not None else ""
        ) or f"the policy of this workspace, findings.{_key_of_question(question)}"
        found.append((limit, f"from where on the gate {verb}; {_OWN_CHOICE}" if own is None else of_policy))
    return tuple(found)
