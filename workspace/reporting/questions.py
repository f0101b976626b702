"""The four questions of a risk assessment, which rows answer each, and why one stays open.

A row answers a question where it was computed, where the variables that its intruder knows include every quasi-identifier of the recipe, and
where the smallest leak that it would have found (``Output.detectable``) is no larger than what the gate blocks from.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from sfumato.engine.data.schema import Role
from sfumato.engine.methods.outputs import QUESTIONS, Output, Question
from sfumato.engine.methods.registry import method_by_key, registry
from sfumato.engine.methods.rows import Row, may_come_from_step
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.statistics.comparing import is_above
from sfumato.engine.wording import format_percent

from .results import method_title, output_of
from .words import row_settings, settings_text

ASKS: Mapping[Question, str] = MappingProxyType(
    {
        "singling out": "Can a person be told apart from all others in the release, even without a name?",
        "linkability": "Can a record of the release be linked to a person, by what somebody knows of that person already?",
        "inference": "Can a value that is not known of a person be deduced from the release, better than from people like them?",
        "membership": "Can it be told from the release that a person is among the confidential records?",
    }
)
NO_LIMITS: Mapping[Question, float | None] = MappingProxyType({})
KNOWN = ("known", "synthesised", "keys", "quasi_identifiers", "variables")
"""The parameters of measures that name what the intruder knows."""
NOT_ASKED = "Strongest intruder: NOT ASKED. No number says what somebody learns of a person from the release who knows all other records and how it was made."


def questions_of(row: Row) -> tuple[Question, ...]:
    """Those that the method of a row says it answers."""
    output = output_of(row)
    return output.risk.questions if output else ()


def averages_of_risk(rows: Iterable[Row]) -> list[Row]:
    """The release's averages of risks."""
    return [
        row for row in rows if row.draw is None and row.dataset != "confidential" and row.family in ("risk", "studies")
    ]


def answering(rows: Iterable[Row], question: Question) -> list[Row]:
    """The averages of the release that answer a question."""
    return [row for row in averages_of_risk(rows) if question in questions_of(row)]


WARNS, BLOCKS = 0.05, 0.2
"""From where on the gate warns and blocks, as a share of the remaining risk beyond the baseline, where a policy has no limits of its own."""


def would_answer(question: Question) -> tuple[str, ...]:
    """The risks that would answer a question, by key."""
    return tuple(
        found.key
        for found in registry().values()
        if found.family == "risk" and any(question in output.risk.questions for output in found.result_outputs)
    )


def answered_by(
    rows: Iterable[Row], recipe: Recipe, question: Question, limit: float | None = BLOCKS
) -> tuple[list[Row], str]:
    """The averages that answer a question; without any, why it stays open, in words.

    ``limit`` is from where on the gate blocks what answers it, None for never.
    """
    kept = averages_of_risk(rows)
    found = answering(kept, question)
    if not found:
        return [], "not measured"
    reasons = {id(row): _why_not(row, kept, recipe, limit) for row in found}
    answers = [row for row in found if not reasons[id(row)]]
    return answers, "" if answers else "; ".join(dict.fromkeys(reasons[id(row)] for row in found))


def _why_not(row: Row, rows: list[Row], recipe: Recipe, limit: float | None) -> str:
    """Why a row that declares that it answers a question does not; empty where it does."""
    if row.value is None:
        return f"{method_title(row.method_key)} was not computed ({row.reason})"
    if missing := unknown_to_intruder(row, recipe):
        return f"{method_title(row.method_key)} assumes an intruder who does not know {', '.join(missing)}"
    output = output_of(row)
    if output is None or not output.detectable or limit is None:
        return ""
    least = next((one for one in rows if _same_use(one, row) and one.measure == output.detectable), None)
    if least is None or least.value is None:
        return f"the smallest leak that {method_title(row.method_key)} would find is not known"
    if is_above(found := beyond_baseline(least.value, row, output), limit):
        return f"{method_title(row.method_key)} finds a leak of {format_percent(found)} or more only, and the gate blocks from {format_percent(limit)}"
    return ""


def beyond_baseline(value: float, row: Row, output: Output) -> float:
    """How far a value of the row's output is beyond the row's baseline, as a share of what is left: the scale of the gate's limits."""
    base = 0.0 if output.risk.gate_reference == "nothing" else row.baseline or 0.0
    return (value - base) / (1 - base) if base < 1 else 0.0


def _same_use(one: Row, other: Row) -> bool:
    return (one.method_key, one.target, one.level, one.params) == (
        other.method_key,
        other.target,
        other.level,
        other.params,
    )


def unknown_to_intruder(row: Row, recipe: Recipe) -> tuple[str, ...]:
    """The quasi-identifiers that the intruder of a row does not know; none where its method names no knowledge."""
    wanted = recipe.schema.names_by_role(Role.QUASI_IDENTIFIER)
    known = known_to_intruder(row, recipe)
    return () if known is None else tuple(name for name in wanted if name not in known)


def known_to_intruder(row: Row, recipe: Recipe) -> set[str] | None:
    """What the intruder of a row knows, by the step that it comes from, else by the row itself; None where neither says."""
    for step in (*recipe.measures, *recipe.studies):
        settings = step.spec.settings(recipe.schema, recipe.released)
        if step.method.key == row.method_key and may_come_from_step(step.method, row.params, settings):
            full = step.spec.for_release(recipe.schema, recipe.released)
            return _named({name: getattr(full, name) for name in KNOWN if hasattr(full, name)})
    return _named({name: row.params[name] for name in KNOWN if name in row.params})


def _named(given: Mapping[str, object]) -> set[str] | None:
    lists = [value for value in given.values() if isinstance(value, (tuple, list)) and value]
    return {name for names in lists for name in names} if lists else None


def unanswered(
    rows: Iterable[Row], recipe: Recipe, limits: Mapping[Question, float | None] = NO_LIMITS
) -> dict[Question, str]:
    """The questions that nothing answers, each with the reason. ``limits`` are the gate's, where a policy has its own."""
    kept = averages_of_risk(rows)
    reasons = {one: answered_by(kept, recipe, one, limits.get(one, BLOCKS))[1] for one in QUESTIONS}
    return {one: reason for one, reason in reasons.items() if reason}


def coverage(rows: Iterable[Row], recipe: Recipe, limits: Mapping[Question, float | None] = NO_LIMITS) -> list[str]:
    """For each question what answers it, or why nothing does."""
    kept = averages_of_risk(rows)
    return [f"{one.capitalize()}: {_said(kept, recipe, one, limits.get(one, BLOCKS))}." for one in QUESTIONS]


def _said(rows: list[Row], recipe: Recipe, question: Question, limit: float | None) -> str:
    answers, reason = answered_by(rows, recipe, question, limit)
    methods = dict.fromkeys(method_title(row.method_key) for row in answers)
    if methods:
        return f"measured by {'; '.join(methods)}"
    return f"OPEN: {reason}" if answering(rows, question) else "NOT MEASURED"


def strongest_intruder(rows: Iterable[Row]) -> list[str]:
    """What an intruder who knows all other records guesses right, before the release and after it; or that nobody asked."""
    found = []
    for row in averages_of_risk(rows):
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
    return found or [NOT_ASKED]
