"""Questions of a risk assessment, the measurements that answer each, and why a question stays open."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from sfumato.engine.data.schema import Role
from sfumato.engine.methods.declared import list_declarations
from sfumato.engine.methods.outputs import QUESTIONS, Output, Question
from sfumato.engine.methods.registry import method_by_key
from sfumato.engine.methods.rows import Row, may_come_from_step
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.statistics.comparing import is_above
from sfumato.engine.wording import format_percent

from .results import method_title, row_output
from .words import row_settings, settings_text

QUESTION_TEXTS: Mapping[Question, str] = MappingProxyType(
    {
        "singling out": "Can a person be distinguished from all others in the release, even without a name?",
        "linkability": "Can a record of the release be linked to a person, by what somebody knows of that person already?",
        "inference": "Can a value that is not known of a person be deduced from the release, better than from people like them?",
        "membership": "Does the release reveal that a person is among the confidential records?",
    }
)
NO_LIMITS: Mapping[Question, float | None] = MappingProxyType({})
KNOWLEDGE_PARAMETERS = ("known", "synthesised", "keys", "quasi_identifiers", "variables")
"""Parameters of measures that name the variables which the intruder knows."""
NOT_MEASURED_TEXT = "Strongest intruder: NOT ASKED. No measure tried the intruder who knows everything of everybody else, and how the release was made."


def row_questions(row: Row) -> tuple[Question, ...]:
    """Return the questions that the measure of a row declares to answer."""
    output = row_output(row)
    return output.risk.questions if output else ()


def risk_averages(rows: Iterable[Row]) -> list[Row]:
    """Return the release's averages of risks over its datasets, without those of the units of one size."""
    return [
        row
        for row in rows
        if row.draw is None
        and row.dataset != "confidential"
        and row.family in ("risk", "studies")
        and not row.is_of_one_size
    ]


def rows_for_question(rows: Iterable[Row], question: Question) -> list[Row]:
    """Return the averages of the release whose measures declare to answer a question."""
    return [row for row in risk_averages(rows) if question in row_questions(row)]


WARN_FROM, BLOCK_FROM = 0.05, 0.2
"""Limits from which the gate warns and blocks where a policy has none, as a share of the risk beyond the baseline."""


def methods_for_question(question: Question) -> tuple[str, ...]:
    """Return the titles of the risk measures that would answer a question."""
    return tuple(found.title for found in list_declarations().values() if question in found.questions)


def answers_or_reason(
    rows: Iterable[Row], recipe: Recipe, question: Question, limit: float | None = BLOCK_FROM
) -> tuple[list[Row], str]:
    """Return the averages that answer a question, or none and the reason why it stays open.

    ``limit`` is the value from which the gate blocks what answers the question, None for never.
    """
    kept = risk_averages(rows)
    found = rows_for_question(kept, question)
    if not found:
        return [], "not measured"
    reasons = {id(row): _rejection_reason(row, kept, recipe, limit) for row in found}
    answers = [row for row in found if not reasons[id(row)]]
    return answers, "" if answers else "; ".join(dict.fromkeys(reasons[id(row)] for row in found))


def _rejection_reason(row: Row, rows: list[Row], recipe: Recipe, limit: float | None) -> str:
    """Return why a row does not answer a question that its measure declares to answer; empty where it does."""
    if row.value is None:
        return f"{method_title(row.method_key)} was not computed ({row.reason})"
    # an attack with less knowledge than the recipe assumes says nothing about the intruder it assumes
    if missing := unknown_quasi_identifiers(row, recipe):
        return f"{method_title(row.method_key)} assumes an intruder who does not know {', '.join(missing)}"
    output = row_output(row)
    if output is None or not output.detectable or limit is None:
        return ""
    # an attack too weak to find a leak that the gate would block must not count as an answer
    least = next((one for one in rows if _is_same_use(one, row) and one.measure == output.detectable), None)
    if least is None or least.value is None:
        return f"the smallest leak that {method_title(row.method_key)} would find is not known"
    if is_above(found := share_beyond_baseline(least.value, row, output), limit):
        return f"{method_title(row.method_key)} finds a leak of {format_percent(found)} or more only, and the gate blocks from {format_percent(limit)}"
    return ""


def share_beyond_baseline(value: float, row: Row, output: Output) -> float:
    """Return the excess of a value over the row's baseline, as a share of the remaining risk."""
    base = 0.0 if output.risk.gate_reference == "nothing" else row.baseline or 0.0
    # the scale on which the gate's limits are defined
    return (value - base) / (1 - base) if base < 1 else 0.0


def _is_same_use(one: Row, other: Row) -> bool:
    """Return whether two rows come from the same use of a method."""
    return (one.method_key, one.target, one.level, one.params) == (
        other.method_key,
        other.target,
        other.level,
        other.params,
    )


def unknown_quasi_identifiers(row: Row, recipe: Recipe) -> tuple[str, ...]:
    """Return the quasi-identifiers that the intruder of a row does not know; none where that is not stated."""
    wanted = recipe.schema.names_by_role(Role.QUASI_IDENTIFIER)
    known = variables_known_to_intruder(row, recipe)
    return () if known is None else tuple(name for name in wanted if name not in known)


def variables_known_to_intruder(row: Row, recipe: Recipe) -> set[str] | None:
    """Return the variables that the intruder of a row knows; None where neither its step nor the row names them."""
    for step in (*recipe.measures, *recipe.studies):
        settings = step.spec.settings(recipe.schema, recipe.released)
        if step.method.key == row.method_key and may_come_from_step(step.method, row.params, settings):
            full = step.spec.for_release(recipe.schema, recipe.released)
            return _listed_names({name: getattr(full, name) for name in KNOWLEDGE_PARAMETERS if hasattr(full, name)})
    return _listed_names({name: row.params[name] for name in KNOWLEDGE_PARAMETERS if name in row.params})


def _listed_names(given: Mapping[str, object]) -> set[str] | None:
    """Return the names in all given lists; None where no list has any."""
    lists = [value for value in given.values() if isinstance(value, (tuple, list)) and value]
    return {name for names in lists for name in names} if lists else None


def unanswered_questions(
    rows: Iterable[Row], recipe: Recipe, limits: Mapping[Question, float | None] = NO_LIMITS
) -> dict[Question, str]:
    """Return the questions that no measurement answers, each with the reason.

    ``limits`` are the limits of the gate, where a policy has its own.
    """
    kept = risk_averages(rows)
    reasons = {one: answers_or_reason(kept, recipe, one, limits.get(one, BLOCK_FROM))[1] for one in QUESTIONS}
    return {one: reason for one, reason in reasons.items() if reason}


def coverage_lines(
    rows: Iterable[Row], recipe: Recipe, limits: Mapping[Question, float | None] = NO_LIMITS
) -> list[str]:
    """Return for each question which methods answer it, or why none does."""
    kept = risk_averages(rows)
    return [
        f"{one.capitalize()}: {_coverage_text(kept, recipe, one, limits.get(one, BLOCK_FROM))}." for one in QUESTIONS
    ]


def _coverage_text(rows: list[Row], recipe: Recipe, question: Question, limit: float | None) -> str:
    """Return which methods answer a question, or that it is open or not measured."""
    answers, reason = answers_or_reason(rows, recipe, question, limit)
    methods = dict.fromkeys(method_title(row.method_key) for row in answers)
    if methods:
        return f"measured by {'; '.join(methods)}"
    return f"OPEN: {reason}" if rows_for_question(rows, question) else "NOT MEASURED"


def strongest_intruder_lines(rows: Iterable[Row]) -> list[str]:
    """Return how often an intruder who knows all other records guesses right, before and after the release.

    A line says so where this was not measured.
    """
    found = []
    for row in risk_averages(rows):
        method = method_by_key(row.method_key)
        if (
            method is None
            or method.measurement.beliefs is None
            or row.measure != method.measurement.beliefs.after
            or row_settings(row.method_key, row.params)
        ):
            continue
        use = settings_text(row.params)
        name = f"{method.title}{f' ({use})' if use else ''}"
        if row.value is None:
            found.append(f"{name}: asked, NOT COMPUTED: {row.reason}.")
        else:
            before = f", {format_percent(row.baseline)} before it is" if row.baseline is not None else ""
            found.append(
                f"{name}: {format_percent(row.value)} of the records are guessed right once the release is known{before}."
            )
    return found or [NOT_MEASURED_TEXT]
