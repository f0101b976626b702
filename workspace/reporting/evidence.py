"""Table of a privacy account beside the evidence that was measured on the released files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sfumato.engine.methods.labels import measure_name
from sfumato.engine.methods.registry import Method, method_by_key, registry
from sfumato.engine.methods.rows import Row

from .tables import DisplayCell, DisplayColumn, DisplayRow, DisplayTable
from .words import interval_text, number

TITLE = "Epsilon beside evidence"
FULL_TITLE = (
    "Epsilon beside evidence: the proof bounds what any such release could show of a person, the measures say what this one does show. "
    "Neither stands for the other."
)
NOT_MEASURED = "NOT MEASURED"
BRIEF_ACCOUNT_MEASURES = ("epsilon_release", "epsilon_sample", "sample_records")
"""Measures of an account that are listed where there is little room."""


def evidence_table(rows: Sequence[Row]) -> DisplayTable | None:
    """Return a privacy account with the measured evidence, and the kinds of evidence that were not measured.

    ``rows`` are the averages of a run and the confidential data's own values. None without an account.
    """
    kept = [row for row in rows if row.draw is None]
    account = [row for row in kept if row.family == "synthesis"]
    if not account:
        return None
    columns = (
        DisplayColumn("of", "what"),
        DisplayColumn("measure", "measure"),
        DisplayColumn("release", "release", align="right"),
        DisplayColumn("interval", "interval", page_only=True),
        DisplayColumn(
            "confidential", "confidential", align="right", drop_order=2, full_title="confidential data themselves"
        ),
        DisplayColumn("baseline", "baseline", align="right", full_title="baseline: by chance, or without protection"),
        DisplayColumn("with", "with", drop_order=1),
    )
    # epsilon bounds what any release could show, the evidence is what this one shows: neither replaces the other
    lines = [_account_line(row) for row in account]
    return DisplayTable(columns, [*lines, *_evidence_table_lines(kept)], TITLE, FULL_TITLE)


def _account_line(row: Row) -> DisplayRow:
    """Return the cells of a number of the privacy account."""
    title = measure_name(row.key)
    where = f"{title}, {row.target}" if row.target else title
    return [
        "privacy account",
        where,
        DisplayCell(_value_or_status(row), full_text=row.reason and f"{_value_or_status(row)}: {row.reason}"),
        "",
        "",
        "",
        row.reason,
    ]


def _value_or_status(row: Row) -> str:
    """Return the value as text, or the status in place of a missing one."""
    return number(row.value) if row.value is not None else row.status


def _evidence_table_lines(rows: Sequence[Row]) -> list[DisplayRow]:
    """Return the lines of each kind of evidence; a kind without a value gets a line that says so."""
    lines: list[DisplayRow] = []
    for kind, methods in methods_by_evidence().items():
        own = [row for row in rows if row.family == "risk" and _evidence_kind(row) == kind]
        released = [row for row in own if row.dataset != "confidential"]
        for row in released:
            beside = next((one for one in own if one.dataset == "confidential" and one.series == row.series), None)
            lines.append(
                [
                    kind,
                    ", ".join(part for part in (measure_name(row.key), row.target, _people_text(row)) if part),
                    _value_or_status(row),
                    interval_text(row.lower, row.upper),
                    "" if beside is None else number(beside.value),
                    _baseline_text(row, beside),
                    row.reason,
                ]
            )
        # silence would read as absence of risk
        if not any(row.value is not None for row in released):
            asked = " or ".join(f"[[measure]] {method.key}" for method in methods)
            why = "what was asked for could not be computed" if released else f"add {asked}"
            lines.append([kind, DisplayCell(NOT_MEASURED, "not computed"), "", "", "", "", why])
    return lines


def _people_text(row: Row) -> str:
    """Return the group of people that a number is about, where a measure has several groups."""
    return f"{row.params['people']} people" if "people" in row.params else ""


def _baseline_text(row: Row, beside: Row | None) -> str:
    """Return the baseline, where it differs from the value of the confidential data."""
    return "" if row.baseline is None or (beside and row.baseline == beside.value) else number(row.baseline)


def methods_by_evidence() -> dict[str, list[Method]]:
    """Return the methods that measure each kind of evidence."""
    found: dict[str, list[Method]] = {}
    for method in registry().values():
        for kind in dict.fromkeys(output.risk.evidence for output in method.outputs if output.risk.evidence):
            found.setdefault(kind, []).append(method)
    return found


def _evidence_kind(row: Row) -> str:
    """Return the kind of evidence that a row is; empty for none."""
    method = method_by_key(row.method_key)
    return next((o.risk.evidence for o in method.outputs if o.name == row.measure), "") if method else ""


def evidence_lines(rows: Iterable[Row]) -> list[str]:
    """Return the account and each kind of evidence in a line, where there is no room for a table.

    Empty without an account.
    """
    kept = [row for row in rows if row.draw is None]
    account = [row for row in kept if row.family == "synthesis"]
    if not account:
        return []
    said = [f"{_short_title(row)} {_value_or_status(row)}" for row in account if row.measure in BRIEF_ACCOUNT_MEASURES]
    lines = [f"epsilon: {', '.join(said)}"]
    for kind in methods_by_evidence():
        own = [
            row
            for row in kept
            if row.family == "risk" and _evidence_kind(row) == kind and row.dataset != "confidential"
        ]
        told = [
            f"{measure_name(row.key)} {_value_or_status(row)}"
            + (f" (baseline {number(row.baseline)})" if row.baseline is not None else "")
            for row in own
        ]
        lines.append(f"{kind}: {', '.join(told) or NOT_MEASURED}")
    return lines


def _short_title(row: Row) -> str:
    """Return the title of a measure of an account, without the unit in front."""
    method = method_by_key(row.method_key)
    return method.output(row.measure).title.removeprefix("eps ") if method else row.measure
