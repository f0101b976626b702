"""The four questions of a risk assessment, and which rows answer each: what was measured, and what was not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from sfumato.engine.methods.outputs import QUESTIONS, Question
from sfumato.engine.methods.registry import method_called
from sfumato.engine.methods.rows import Row

from .results import method_title, output_of
from .words import number, row_settings, settings_text

ASKS: Mapping[Question, str] = MappingProxyType(
    {
        "singling out": "Can a person be told apart from all others in the release, even without a name?",
        "linkability": "Can a record of the release be linked to a person, by what somebody knows of that person already?",
        "inference": "Can a value that is not known of a person be deduced from the release, better than from people like them?",
        "membership": "Can it be told from the release that a person is among the confidential records?",
    }
)


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


def unmeasured(rows: Iterable[Row]) -> tuple[Question, ...]:
    """The questions that no number answers."""
    kept = averages_of_risk(rows)
    return tuple(one for one in QUESTIONS if all(row.value is None for row in answering(kept, one)))


def coverage(rows: Iterable[Row]) -> list[str]:
    """For each question what measured it, or that nothing did."""
    kept = averages_of_risk(rows)
    return [f"{question.capitalize()}: {_said(answering(kept, question))}." for question in QUESTIONS]


def _said(rows: list[Row]) -> str:
    methods = dict.fromkeys(method_title(row.method_key) for row in rows if row.value is not None)
    if methods:
        return f"measured by {'; '.join(methods)}"
    return "NOT MEASURED; what was asked for could not be computed" if rows else "NOT MEASURED"


NOT_ASKED = "Strongest intruder: NOT ASKED. No number says what somebody learns of a person from the release who knows all other records and how it was made."


def strongest_intruder(rows: Iterable[Row]) -> list[str]:
    """What an intruder who knows all other records guesses right, before the release and after it; or that nobody asked."""
    found = []
    for row in averages_of_risk(rows):
        method = method_called(row.method_key)
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
            before = f", {number(row.baseline)} before it is" if row.baseline is not None else ""
            found.append(
                f"{name}: {number(row.value)} of the records are guessed right once the release is known{before}."
            )
    return found or [NOT_ASKED]
