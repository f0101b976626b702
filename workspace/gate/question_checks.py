"""The gate's checks by question: what intruders get beyond what there would be without a disclosure, and what nobody asked.

Which measures answer a question, and whether what they find beyond their baseline is held against limits, their methods declare
(``RiskOutput.questions``, ``RiskOutput.gate_reference``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from sfumato.engine.adversary.targets import number_of
from sfumato.engine.errors import NotComputable
from sfumato.engine.methods.labels import Subject, label_of, quantity_of
from sfumato.engine.methods.outputs import QUESTIONS, Output, Question
from sfumato.engine.methods.rows import Row
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.statistics.comparing import is_above
from sfumato.engine.statistics.estimated import Estimated, simultaneous
from sfumato.engine.wording import noun_of, percent

from ..policy.policy import Policy
from ..reporting.questions import (
    BLOCKS,
    KNOWN,
    WARNS,
    answered_by,
    answering,
    averages_of_risk,
    known_to_intruder,
    unanswered,
    would_answer,
)
from ..reporting.results import output_of
from ..views.weights import weights_said
from .checks import KEPT_KEYS, STATUSES, Case, Check, Sighting, Status
from .contents import treatment_of
from .kept_column_checks import kept_columns_of

FoundBy = Callable[[Sequence[str], int], tuple[float, float]]
"""How many of so many people are picked by some columns alone, and how many are alone in them, as shares."""
EXCESS = "excess (0 by chance, 1 for certain)"
"""The unit of what an attack gets right beyond its baseline, as a part of what the baseline leaves."""
_CHOICE = "a choice of ours; no rule of the field has a number"
_WHY: dict[Question, tuple[str, str, str]] = {
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


def _rows(case: Case) -> list[Row]:
    return list(case.rows)


def limits_of(question: Question, policy: Policy) -> tuple[float | None, float | None]:
    """From where on the gate warns of what answers a question, and blocks."""
    return check_of(question).limits(policy)


def check_of(question: Question) -> Check:
    """The gate's check of a question."""
    return next(check for check in QUESTION_CHECKS if check.key == _key(question))


def block_limits(policy: Policy) -> dict[Question, float | None]:
    """From where on the gate blocks what answers each question; None for never."""
    return {question: limits_of(question, policy)[1] for question in QUESTIONS}


def _asked(case: Case) -> Sighting:
    rows = _rows(case)
    left = unanswered(rows, case.recipe, block_limits(case.policy))
    said = "; ".join(_open(question, reason, rows) for question, reason in left.items())
    return Sighting(said or f"all are answered: {', '.join(QUESTIONS)}", len(left))


def _open(question: Question, reason: str, rows: Sequence[Row]) -> str:
    """Why a question is open; where nothing was measured, what would answer it."""
    add = "" if answering(rows, question) else f"; add {' or '.join(would_answer(question))}"
    return f"{question}: {reason}{add}"


def _held(row: Row, output: Output, records: int) -> tuple[float, float, float]:
    """Value and baseline of a row as shares, and how far it is beyond, of what is left."""
    value = row.value or 0.0
    if output.risk.gate_reference == "nothing":
        share = value / records if output.unit == "records" else value
        return share, 0.0, share
    base = row.baseline or 0.0
    return value, base, (value - base) / (1 - base) if base < 1 else 0.0


def _beyond(case: Case, question: Question) -> Sighting:
    blocks = kept_columns_of(case).blocks
    return answer_of(
        question, _rows(case), case.recipe, case.policy, case.plan.records, case.found_by, kept_columns_block=blocks
    )


def answer_of(
    question: Question,
    rows: Sequence[Row],
    recipe: Recipe,
    policy: Policy,
    records: int,
    found_by: FoundBy,
    *,
    kept_columns_block: bool = False,
) -> Sighting:
    """The measure of a question that blocks, or else warns, or else is furthest beyond its baseline.

    What chance may have put there is no finding, unless it is beyond what blocks and the measure would have seen that: then a person has to judge it.

    Who knows columns that a synthesis releases unchanged finds people by these alone: at most the share that ``found_by`` says of so many
    people, those who are easiest to find. An AUC counts who of others has none of the rows. What they find is part of the finding on kept columns
    (``kept_keys``) and blocks where that does (``kept_columns_block``); what is found beyond it may block by itself. Inference is of values that are
    drawn, where this makes no difference.
    Intervals are simultaneous over all measures of the run that may block. What is found is shown whoever looked. What is not found is no pass
    where nothing answers the question: then it raises NotComputable.
    """
    warn, block = limits_of(question, policy)
    answers, reason = answered_by(rows, recipe, question, block)
    strong = {id(row) for row in answers}
    series = sum(output.estimated for row, output in _compared(rows) if output.risk.gate_reference == "chance")
    seen = [
        replace(
            _sighting(
                replace(row, baseline=base),
                output,
                records,
                series,
                _label(row, recipe),
                said,
                at_most,
                block if id(row) in strong else None,
            ),
            leak=leak,
        )
        for row, output in _compared(answering(rows, question))
        for base, said, at_most, leak in _baselines(
            row, output, question, recipe, records, found_by, kept_columns_block=kept_columns_block
        )
    ]
    worst = max(seen, key=lambda one: _order(one, warn, block), default=None)
    found = worst is not None and _status(worst, warn, block) != "pass"
    if worst is not None and (answers or found):
        return worst
    if reason:
        raise NotComputable(_open(question, reason, rows))
    raise NotComputable(f"{question}: measured, by nothing that says what there would be without a disclosure")


def _baselines(
    row: Row,
    output: Output,
    question: Question,
    recipe: Recipe,
    records: int,
    found_by: FoundBy,
    *,
    kept_columns_block: bool,
) -> list[tuple[float | None, str, Status, str]]:
    """Return what a row is compared with, what a reader should know of it, how bad it may be, and the check that it is a witness of."""
    named = sorted(set(treatment_of(recipe)[0]) & (known_to_intruder(row, recipe) or set()))
    if question == "inference" or recipe.origin != "synthetic" or not named:
        return [(row.baseline, "", "block", "")]
    most = number_of(None, records) if row.params.get("people") == "vulnerable" else records
    picked, alone = found_by(named, most)
    base = row.baseline or 0.0
    beside = base + (1 - base) * alone if output.risk.area else max(base, picked)
    said = f"; the intruder knows columns that are released unchanged ({', '.join(named)}), by which alone at most {percent(picked)} of the {noun_of(records)} can be found"
    return [
        (row.baseline, said, "block" if kept_columns_block else "warn", KEPT_KEYS),
        (beside, said, "block", ""),
    ]


def _compared(rows: Sequence[Row]) -> list[tuple[Row, Output]]:
    """The averages that are compared with the gate's limits."""
    return [
        (row, output)
        for row in averages_of_risk(rows)
        if (output := output_of(row)) is not None
        and output.risk.gate_reference
        and row.value is not None
        and row.level is None
    ]


def _label(row: Row, recipe: Recipe) -> str:
    """The name of a number, with what tells it from others of its method; who knows which variables where the recipe has several uses."""
    alone = sum(step.method.key == row.method_key for step in (*recipe.measures, *recipe.studies)) <= 1
    named = (*KNOWN, "sensitive", "radius") if alone else ()
    kept = {key: value for key, value in row.params.items() if key not in named}
    return label_of(Subject(row.key, row.target, row.level, kept))


def _sighting(
    row: Row,
    output: Output,
    records: int,
    series: int,
    label: str,
    more: str,
    at_most: Status,
    block: float | None,
) -> Sighting:
    value, base, beyond = _held(row, output, records)
    found = Estimated(row.value or 0.0, row.lower, row.upper)
    if output.estimated:
        found = simultaneous(found, series, output.range)
    if output.risk.gate_lower and found.lower is not None:
        beyond = _held(replace(row, value=found.lower), output, records)[2]
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
        if interval and is_above(beyond, WARNS):
            chance = (
                f"; chance alone may give as much, so that it {'only warns' if most == 'warn' else 'is no finding'}"
            )
    said = f"{label}: {figure(row.value or 0.0, records)}{interval}{against}{more}{chance}"
    return Sighting(said, value, base, beyond, at_most=most)


def _status(one: Sighting, warn: float | None, block: float | None) -> Status:
    """Return what the gate makes of a sighting under these limits."""
    beyond = [limit is not None and is_above(one.held, limit) for limit in (warn, block)]
    if one.at_most == "pass" or not any(beyond):
        return "pass"
    return "block" if one.at_most == "block" and beyond[1] else "warn"


def _order(one: Sighting, warn: float | None, block: float | None) -> tuple[int, float]:
    """What blocks under the policy before what warns, then what is further beyond."""
    return -STATUSES.index(_status(one, warn, block)), one.held


def _key(question: Question) -> str:
    return f"{question.replace(' ', '_')}_excess"


def _weighted(case: Case) -> Sighting:
    lines = weights_said(case.workspace, case.plan.run.id)
    if not lines:
        return Sighting("every record says as much to the models as any other", 0)
    said = f"the run is weighted: {lines[0]}. What it measured is of its own release; what the weights give away themselves no number says"
    return Sighting(said, 1)


QUESTION_CHECKS = (
    *(
        Check(
            _key(question), title, EXCESS, WARNS, BLOCKS,
            f"{reason}; {_CHOICE}; it blocks where the interval is above the baseline too",
            "larger leaves or smoothing = true under [[synthesis]], coarser values, or a smaller m under [release]",
            partial(_beyond, question=question), source,
        )
        for question, (title, reason, source) in _WHY.items()
    ),
    Check(
        "questions_open", "questions of the risk assessment that nothing answers", "questions", 0, None,
        "a risk that was not measured is not known to be low; it may be large",
        "measure what the finding names, against an intruder who knows every quasi-identifier; attacks that need people who were not in the data "
        "want [data] holdout in the recipe, of more records where they find large leaks only", _asked,
        "singling out, linkability, inference: Article 29 Working Party (WP216); membership: Pilgram et al. (2025)",
    ),
    Check(
        "weighted_records", "weights by which records say less to the models", "weights", None, None,
        "weights change what the models know of people, and say themselves who was at risk: keep them where the data are", "nothing has to be done",
        _weighted, "risk-weighted pseudo posterior: Hu, Savitsky & Williams (2022)", note=True,
    ),
)  # fmt: skip


def gate_limits(question: Question, policy: Policy) -> tuple[tuple[float, str], ...]:
    """From where on the gate warns of what answers a question, and blocks, each with whose limit that is; without those that a policy has not."""
    given = policy.findings.get(_key(question))
    found = []
    for limit, own, verb in zip(
        limits_of(question, policy),
        (None, None) if given is None else (given.warn, given.block),
        ("warns", "blocks"),
        strict=True,
    ):
        if limit is None:
            continue
        of_policy = (
            given.source if given is not None else ""
        ) or f"the policy of this workspace, findings.{_key(question)}"
        found.append((limit, f"from where on the gate {verb}; {_CHOICE}" if own is None else of_policy))
    return tuple(found)
