"""Epsilon beside evidence: what a privacy account bounds, and what the released files themselves show of people, in one table.

Epsilon bounds what any release of the method could show; copies and attacks are what this one does show. Neither says the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sfumato.engine.methods.labels import measure_name
from sfumato.engine.methods.registry import Method, method_by_key, registry
from sfumato.engine.methods.rows import Row

from .tables import Cell, Column, Line, Table
from .words import interval, number

TITLE = "Epsilon beside evidence"
FULL = (
    "Epsilon beside evidence: the proof bounds what any such release could show of a person, the measures say what this one does show. "
    "Neither stands for the other."
)
NOT_MEASURED = "NOT MEASURED"
BRIEF = ("epsilon_release", "epsilon_sample", "sample_records")
"""What of an account is said where there is little room."""


def evidence_table(rows: Sequence[Row]) -> Table | None:
    """The account of a run, the evidence that it measured, and the kinds that it did not. None where it keeps no account.

    ``rows`` are its averages and the confidential data's own.
    """
    kept = [row for row in rows if row.draw is None]
    account = [row for row in kept if row.family == "synthesis"]
    if not account:
        return None
    columns = (
        Column("of", "what"),
        Column("measure", "measure"),
        Column("release", "release", align="right"),
        Column("interval", "interval", page=True),
        Column("confidential", "confidential", align="right", spare=2, full="confidential data themselves"),
        Column("baseline", "baseline", align="right", full="baseline: by chance, or without protection"),
        Column("with", "with", spare=1),
    )
    lines = [_of_account(row) for row in account]
    return Table(columns, [*lines, *_measured(kept)], TITLE, FULL)


def _of_account(row: Row) -> Line:
    title = measure_name(row.key)
    where = f"{title}, {row.target}" if row.target else title
    return [
        "privacy account",
        where,
        Cell(_value(row), full=row.reason and f"{_value(row)}: {row.reason}"),
        "",
        "",
        "",
        row.reason,
    ]


def _value(row: Row) -> str:
    return number(row.value) if row.value is not None else row.status


def _measured(rows: Sequence[Row]) -> list[Line]:
    lines: list[Line] = []
    for kind, methods in kinds().items():
        own = [row for row in rows if row.family == "risk" and _kind(row) == kind]
        released = [row for row in own if row.dataset != "confidential"]
        for row in released:
            beside = next((one for one in own if one.dataset == "confidential" and one.series == row.series), None)
            lines.append(
                [
                    kind,
                    ", ".join(part for part in (measure_name(row.key), row.target, _people(row)) if part),
                    _value(row),
                    interval(row.lower, row.upper),
                    "" if beside is None else number(beside.value),
                    _baseline(row, beside),
                    row.reason,
                ]
            )
        if not any(row.value is not None for row in released):
            asked = " or ".join(f"[[measure]] {method.key}" for method in methods)
            why = "what was asked for could not be computed" if released else f"add {asked}"
            lines.append([kind, Cell(NOT_MEASURED, "not computed"), "", "", "", "", why])
    return lines


def _people(row: Row) -> str:
    """Of whom a number is, where a measure speaks of several groups of people."""
    return f"{row.params['people']} people" if "people" in row.params else ""


def _baseline(row: Row, beside: Row | None) -> str:
    """The baseline, where it is another number than the confidential data's own."""
    return "" if row.baseline is None or (beside and row.baseline == beside.value) else number(row.baseline)


def kinds() -> dict[str, list[Method]]:
    """The kinds of evidence that there are, and the methods that measure each."""
    found: dict[str, list[Method]] = {}
    for method in registry().values():
        for kind in dict.fromkeys(output.risk.evidence for output in method.outputs if output.risk.evidence):
            found.setdefault(kind, []).append(method)
    return found


def _kind(row: Row) -> str:
    method = method_by_key(row.method_key)
    return next((o.risk.evidence for o in method.outputs if o.name == row.measure), "") if method else ""


def evidence_lines(rows: Iterable[Row]) -> list[str]:
    """The same in a few words, the account and a line a kind: for where there is no room for a table. Empty without an account."""
    kept = [row for row in rows if row.draw is None]
    account = [row for row in kept if row.family == "synthesis"]
    if not account:
        return []
    said = [f"{_short(row)} {_value(row)}" for row in account if row.measure in BRIEF]
    lines = [f"epsilon: {', '.join(said)}"]
    for kind in kinds():
        own = [row for row in kept if row.family == "risk" and _kind(row) == kind and row.dataset != "confidential"]
        told = [
            f"{measure_name(row.key)} {_value(row)}"
            + (f" (baseline {number(row.baseline)})" if row.baseline is not None else "")
            for row in own
        ]
        lines.append(f"{kind}: {', '.join(told) or NOT_MEASURED}")
    return lines


def _short(row: Row) -> str:
    method = method_by_key(row.method_key)
    return method.output(row.measure).title.removeprefix("eps ") if method else row.measure
