"""Answers of a run's measures to the questions of the risk assessment, compared with what there would be without a
disclosure.

Methods declare which questions their measures answer, and whether the excess over the baseline is compared with limits
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
from sfumato.engine.methods.registry import Method
from sfumato.engine.methods.rows import Row
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.statistics.comparing import is_above
from sfumato.engine.statistics.estimated import ValueWithInterval, widen_for_series
from sfumato.engine.wording import record_noun

from ..policy.policy import Policy
from ..reporting.questions import (
    BLOCK_FROM,
    KNOWLEDGE_PARAMETERS,
    WARN_FROM,
    answers_or_reason,
    methods_for_question,
    risk_averages,
    rows_for_question,
    variables_known_to_intruder,
)
from ..reporting.results import row_output
from . import sentences
from .checks import KEPT_KEYS, OWN_CHOICE, STATUSES, CheckResult, Status, limits_under_policy
from .contents import variables_by_treatment
from .sentences import fill_sentence

ShareFoundBy = Callable[[Sequence[str], int], tuple[float, float]]
"""How many of so many people are picked by some columns alone, and how many are alone in them, as shares."""


def key_of_question(question: Question) -> str:
    """Return the key of the gate's check for a question."""
    return f"{question.replace(' ', '_')}_excess"


def question_limits(question: Question, policy: Policy) -> tuple[float | None, float | None]:
    """Return the limits at which the gate warns and blocks for a question; None for never."""
    return limits_under_policy(policy, key_of_question(question), WARN_FROM, BLOCK_FROM)


def block_limits_by_question(policy: Policy) -> dict[Question, float | None]:
    """Return the limit at which the gate blocks for each question; None for never."""
    return {question: question_limits(question, policy)[1] for question in QUESTIONS}


def limits_with_sources(question: Question, policy: Policy) -> tuple[tuple[float, str], ...]:
    """Return the limits at which the gate warns and blocks for a question, each with its source; limits of None are
    left out.
    """
    given = policy.findings.get(key_of_question(question))
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
        ) or f"the policy of this workspace, findings.{key_of_question(question)}"
        found.append((limit, f"from where on the gate {verb}; {OWN_CHOICE}" if own is None else of_policy))
    return tuple(found)


def open_question_text(question: Question, reason: str, rows: Sequence[Row]) -> str:
    """Explain why a question is open and, where nothing was measured, which methods would answer it."""
    add = ""
    if not rows_for_question(rows, question):
        add = fill_sentence(sentences.ADD_METHODS, methods=" or ".join(methods_for_question(question)))
    return fill_sentence(sentences.OPEN_QUESTION, question=question, reason=reason, add=add)


def only_infers_values(method: Method) -> bool:
    """Return whether a method infers values of people and never finds their records."""
    return {question for output in method.outputs for question in output.risk.questions} == {"inference"}


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
    """Return the worst result of a run's measures for a question of the risk assessment.

    This is one that blocks, else one that warns, else the one furthest beyond its baseline. Raises NotComputable where
    nothing answers the question and nothing was found.

    records: number of confidential records
    found_by: function that returns the shares of the easiest people whom kept columns alone reveal
    kept_columns_block: whether the finding on kept columns (``kept_keys``) blocks
    """
    warn, block = question_limits(question, policy)
    answers, reason = answers_or_reason(rows, recipe, question, block)
    strong = {id(row) for row in answers}
    # Intervals are simultaneous over all measures of the run that may block, whatever question they answer.
    series = sum(output.estimated for row, output in _compared_averages(rows) if output.risk.gate_reference == "chance")
    seen = [
        replace(
            _result_of_row(
                replace(row, baseline=base),
                output,
                records,
                series,
                _row_label(row, recipe),
                remark,
                at_most,
                block if id(row) in strong else None,
            ),
            leak=leak,
        )
        for row, output in _compared_averages(rows_for_question(rows, question))
        for base, remark, at_most, leak in _baselines_of_row(
            row, output, question, recipe, records, found_by, kept_columns_block=kept_columns_block
        )
    ]
    worst = max(seen, key=lambda one: _severity_under_limits(one, warn, block), default=None)
    # What is found is shown whoever looked. What is not found is a pass only where a measure was able to find it.
    found = worst is not None and _status_under_limits(worst, warn, block) != "pass"
    if worst is not None and (answers or found):
        return worst
    if reason:
        raise NotComputable(open_question_text(question, reason, rows))
    raise NotComputable(fill_sentence(sentences.QUESTION_WITHOUT_BASELINE, question=question))


def _value_and_excess(row: Row, output: Output, records: int) -> tuple[float, float, float]:
    """Return the value and the baseline of a row as shares, and the excess (value - baseline) / (1 - baseline)."""
    value = row.value or 0.0
    if output.risk.gate_reference == "nothing":
        share = value / records if output.unit == "records" else value
        return share, 0.0, share
    base = row.baseline or 0.0
    return value, base, (value - base) / (1 - base) if base < 1 else 0.0


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
    """Return the baselines of a row, each with a remark, the worst status it may give, and the check whose finding has
    the same cause.
    """
    named = sorted(set(variables_by_treatment(recipe)[0]) & (variables_known_to_intruder(row, recipe) or set()))
    # Inference is of drawn values, where kept columns make no difference.
    if question == "inference" or recipe.origin != "synthetic" or not named:
        return [(row.baseline, "", "block", "")]
    most = vulnerable_target_count(None, records) if row.params.get("people") == "vulnerable" else records
    picked, alone = found_by(named, most)
    base = row.baseline or 0.0
    # An AUC counts how often somebody else has none of the rows, which is the share of uniques; other measures pick a
    # row.
    beside = base + (1 - base) * alone if output.risk.area else max(base, picked)
    remark = fill_sentence(sentences.KNOWS_KEPT_COLUMNS, names=named, picked=picked, noun=record_noun(records))
    return [
        (row.baseline, remark, "block" if kept_columns_block else "warn", KEPT_KEYS),
        (beside, remark, "block", ""),
    ]


def _compared_averages(rows: Sequence[Row]) -> list[tuple[Row, Output]]:
    """Return the averages whose excess is compared with the gate's limits, each with its declaration."""
    return [
        (row, output)
        for row in risk_averages(rows)
        if (output := row_output(row)) is not None
        and output.risk.gate_reference
        and row.value is not None
        and row.level is None
    ]


def _row_label(row: Row, recipe: Recipe) -> str:
    """Return the label of a row with the settings that distinguish it from others of its method."""
    alone = sum(step.method.key == row.method_key for step in (*recipe.measures, *recipe.studies)) <= 1
    # Long lists of variables, which distinguish nothing where the recipe uses the method once.
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
    """Return the result of one measured row beside one baseline.

    series: number of intervals that are simultaneous
    at_most: worst status that the row may give
    block: limit of a row that could have found what blocks; None for others
    """
    value, base, beyond = _value_and_excess(row, output, records)
    found = ValueWithInterval(row.value or 0.0, row.lower, row.upper)
    if output.estimated:
        found = widen_for_series(found, series, output.range)
    if output.risk.gate_lower and found.lower is not None:
        beyond = _value_and_excess(replace(row, value=found.lower), output, records)[2]
    sure = found.lower if output.estimated else value if row.lower is None else row.lower
    figure = partial(quantity_of, row.key, params=row.params, unit=row.unit)
    against = (
        ""
        if output.risk.gate_reference == "nothing"
        else fill_sentence(sentences.WITHOUT_DISCLOSURE, baseline=figure(base))
    )
    interval = (
        fill_sentence(sentences.RISK_INTERVAL, lower=figure(found.lower), upper=figure(found.upper))
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
            consequence = sentences.ONLY_WARNS if most == "warn" else sentences.NO_FINDING
            chance = fill_sentence(sentences.CHANCE_ALONE, consequence=consequence)
    message = fill_sentence(
        sentences.MEASURED_RISK,
        label=label,
        value=figure(row.value or 0.0, records),
        interval=interval,
        baseline=against,
        remark=remark,
        chance=chance,
    )
    return CheckResult(message, value, base, beyond, at_most=most)


def _status_under_limits(one: CheckResult, warn: float | None, block: float | None) -> Status:
    """Return the status of a result under these limits."""
    beyond = [limit is not None and is_above(one.compared_value, limit) for limit in (warn, block)]
    if one.at_most == "pass" or not any(beyond):
        return "pass"
    return "block" if one.at_most == "block" and beyond[1] else "warn"


def _severity_under_limits(one: CheckResult, warn: float | None, block: float | None) -> tuple[int, float]:
    """Return a sorting key that is largest for the worst result under these limits."""
    return -STATUSES.index(_status_under_limits(one, warn, block)), one.compared_value
