"""What a run found, as screens read it: filtered and sorted in SQL, a page at a time."""

from __future__ import annotations

import json
import sqlite3
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from sfumato.engine.results import Diagnostic
from sfumato.engine.rows import Row
from sfumato.engine.thresholds import Verdict

from ..store.workspace import Workspace

SORTS: Mapping[str, str] = {
    "measure": "",
    "target": "result.target, ",
    "dataset": "result.dataset, ",
    "level": "result.level IS NULL, result.level, ",
    "value": "result.value IS NULL, result.value DESC, ",
    "status": "result.status = 'computed', ",
}
"""The orders in which results can be listed."""

_BY_MEASURE = """CASE result.family WHEN 'utility' THEN 0 WHEN 'quality' THEN 1 WHEN 'risk' THEN 2 ELSE 3 END, result.method,
                 min(result.id) OVER (PARTITION BY result.family, result.method, result.measure, result.target,
                                                   result.params, result.level),
                 result.dataset, result.draw, result.id"""
"""What is the same number of different datasets stands together; breaks the ties of every other order."""


@dataclass(frozen=True)
class Selection:
    """Which results of a run, in which order.

    ``draws`` adds the rows of single datasets. Every word of ``text`` must occur in the row; ``!word`` must not. What makes up
    the bands of a sweep stands beside them; their shares come as rows with ``draws``, or when ``text`` asks for a share.
    """

    run_id: int
    draws: bool = False
    text: str = ""
    sort: str = "measure"


def has_averages(workspace: Workspace, run_id: int) -> bool:
    """Whether the run's rows have been combined; before that there are only rows of single datasets."""
    query = """SELECT EXISTS (SELECT 1 FROM result JOIN task ON task.id = result.task_id
                              WHERE result.run_id = ? AND task.kind = 'combine')"""
    return bool(workspace.connection.execute(query, (run_id,)).fetchone()[0])


_TEXT = """lower(result.family || '.' || result.method || '.' || result.measure || ' ' || result.target || ' '
           || result.dataset || ' ' || result.status || ' ' || result.params)"""


def _where(workspace: Workspace, selection: Selection) -> tuple[str, list[object]]:
    """The condition of a selection, and the values it binds."""
    kind = "=" if has_averages(workspace, selection.run_id) else "<>"
    conditions = ["result.run_id = ?", f"task.kind {kind} 'combine'"]
    bound: list[object] = [selection.run_id]
    if not selection.draws:
        conditions.append("result.draw IS NULL")
    if not selection.draws and "share" not in selection.text.lower():
        conditions.append(f"result.measure NOT IN ({', '.join('?' * len(BAND_SHARES))})")
        bound.extend(BAND_SHARES)
    for word in selection.text.lower().split():
        wanted = word.removeprefix("!")
        if wanted:
            conditions.append(f"instr({_TEXT}, ?) {'= 0' if word != wanted else '> 0'}")
            bound.append(wanted)
    return " AND ".join(conditions), bound


_NAMES = [field.name for field in fields(Row)]
_COLUMNS = ", ".join(f"result.{name}" for name in _NAMES)


def selected_rows(workspace: Workspace, selection: Selection, offset: int, limit: int) -> list[Row]:
    """The rows of a selection from ``offset`` on, at most ``limit``."""
    where, bound = _where(workspace, selection)
    query = f"""SELECT {_COLUMNS} FROM result JOIN task ON task.id = result.task_id WHERE {where}
                ORDER BY {SORTS[selection.sort]}{_BY_MEASURE} LIMIT ? OFFSET ?"""
    return [_row(row) for row in workspace.connection.execute(query, [*bound, limit, offset])]


def result_numbers(workspace: Workspace, selection: Selection) -> array[int]:
    """The rows of a selection in their order, by the numbers that the database knows them by."""
    where, bound = _where(workspace, selection)
    query = f"""SELECT result.id FROM result JOIN task ON task.id = result.task_id WHERE {where}
                ORDER BY {SORTS[selection.sort]}{_BY_MEASURE}"""
    return array("q", (number for (number,) in workspace.connection.execute(query, bound)))


def numbered_rows(workspace: Workspace, numbers: Sequence[int]) -> list[Row]:
    """The rows of these numbers, in their order."""
    places = ", ".join("?" * len(numbers))
    query = f"SELECT {_COLUMNS}, result.id AS number FROM result WHERE result.id IN ({places})"
    found = {row["number"]: row for row in workspace.connection.execute(query, list(numbers))}
    return [_row(found[number]) for number in numbers if number in found]


def _row(found: sqlite3.Row) -> Row:
    given = {name: found[name] for name in _NAMES}
    return Row(**{**given, "params": json.loads(found["params"])})


def raw_rows(workspace: Workspace, run_id: int) -> list[Row]:
    """The rows that measures and studies left, in the order of the plan: what ``combine`` starts from."""
    return _rows(workspace, "task.kind <> 'combine'", run_id)


def result_rows(workspace: Workspace, run_id: int) -> list[Row]:
    """The finished rows of a run, averages included, in a fixed order; before it has ended, the rows so far."""
    return _rows(workspace, "task.kind = 'combine'", run_id) or raw_rows(workspace, run_id)


def _rows(workspace: Workspace, which: str, run_id: int) -> list[Row]:
    rows = workspace.connection.execute(
        f"""SELECT {_COLUMNS} FROM result JOIN task ON task.id = result.task_id
            WHERE result.run_id = ? AND {which} ORDER BY result.task_id, result.id""",
        (run_id,),
    )
    return [_row(row) for row in rows]


@dataclass(frozen=True)
class Curve:
    """One measure of a study along its levels, for one dataset: values and intervals (n,), None where not computed."""

    key: str
    measure: str
    target: str
    params: Mapping[str, Any]
    dataset: str
    levels: tuple[float, ...]
    values: tuple[float | None, ...]
    lower: tuple[float | None, ...]
    upper: tuple[float | None, ...]
    shares: tuple[tuple[float, float, float] | None, ...] = ()
    """Of the variance behind each interval, what datasets, noise and both together make; empty where nothing says."""


SUMMED_UP = ("calibration", "minimisation")
"""Studies that have screens and tables of their own."""
BAND_SHARES = ("dataset_share", "noise_share", "interaction_share")
"""Measures that say what the intervals of a sweep are made of, each ``of`` another measure: no curves of their own."""
_NO_CURVES = (*BAND_SHARES, "replicates")


def curves(workspace: Workspace, run_id: int) -> list[Curve]:
    """Every sweep of what an intruder knows of a run. Before the averages are there, the mean of the rows so far, without intervals."""
    combined = has_averages(workspace, run_id)
    which = "task.kind = 'combine' AND result.draw IS NULL" if combined else "task.kind <> 'combine'"
    ends = ("lower", "upper") if combined else ("NULL", "NULL")
    rows = workspace.connection.execute(
        f"""SELECT result.family || '.' || result.method AS key, measure, target, params, dataset, level,
                   avg(value) AS value, avg({ends[0]}) AS lower, avg({ends[1]}) AS upper
            FROM result JOIN task ON task.id = result.task_id
            WHERE result.run_id = ? AND {which} AND level IS NOT NULL
                  AND result.method NOT IN ({", ".join("?" * len(SUMMED_UP))})
                  AND measure NOT IN ({", ".join("?" * len(_NO_CURVES))})
            GROUP BY key, measure, target, params, dataset, level
            ORDER BY min(task_id), min(result.id), level""",
        (run_id, *SUMMED_UP, *_NO_CURVES),
    )
    grouped: dict[tuple[str, ...], list[sqlite3.Row]] = {}
    for row in rows:
        name = (row["key"], row["measure"], row["target"], row["params"], row["dataset"])
        grouped.setdefault(name, []).append(row)
    shares = _band_shares(workspace, run_id) if combined else {}
    return [_curve(name, points, shares) for name, points in grouped.items()]


def band_shares(rows: Iterable[Row]) -> dict[tuple[str, float], tuple[float, float, float]]:
    """For each measure and level of one sweep's rows what datasets, noise and both make of the variance behind its interval."""
    found: dict[tuple[str, float], dict[str, float]] = {}
    for row in rows:
        if row.measure in BAND_SHARES and row.value is not None and row.level is not None:
            found.setdefault((str(row.params["of"]), row.level), {})[row.measure] = row.value
    known = {place: _three(shares) for place, shares in found.items()}
    return {place: shares for place, shares in known.items() if shares}


_Shares = Mapping[tuple[object, ...], dict[str, float]]


def _band_shares(workspace: Workspace, run_id: int) -> _Shares:
    """The shares by name for every sweep, measure, dataset and level that has them."""
    rows = workspace.connection.execute(
        f"""SELECT measure, target, params, dataset, level, value FROM result
            WHERE run_id = ? AND measure IN ({", ".join("?" * len(BAND_SHARES))}) AND value IS NOT NULL""",
        (run_id, *BAND_SHARES),
    )
    found: dict[tuple[object, ...], dict[str, float]] = {}
    for row in rows:
        params = json.loads(row["params"])
        of = params.pop("of", "")
        place = (of, row["target"], json.dumps(params, sort_keys=True), row["dataset"], row["level"])
        found.setdefault(place, {})[row["measure"]] = row["value"]
    return found


def _curve(name: tuple[str, ...], points: Sequence[sqlite3.Row], shares: _Shares) -> Curve:
    key, measure, target, text, dataset = name
    params = json.loads(text)
    rising = sorted(points, key=lambda row: row["level"])
    level, value, lower, upper = (
        tuple(row[column] for row in rising) for column in ("level", "value", "lower", "upper")
    )
    places = [(measure, target, json.dumps(params, sort_keys=True), dataset, row["level"]) for row in rising]
    known = [_three(shares.get(place, {})) for place in places]
    return Curve(key, measure, target, params, dataset, level, value, lower, upper, tuple(known) if any(known) else ())


def _three(found: Mapping[str, float]) -> tuple[float, float, float] | None:
    values = [found[name] for name in BAND_SHARES if name in found]
    return (values[0], values[1], values[2]) if len(values) == len(BAND_SHARES) else None


def verdicts_of(workspace: Workspace, run_id: int) -> list[Verdict]:
    """The verdicts of a finished run in the order of its thresholds."""
    rows = workspace.connection.execute("SELECT verdict FROM verdict WHERE run_id = ? ORDER BY position", (run_id,))
    return [Verdict(**json.loads(row[0])) for row in rows]


def judged_row(workspace: Workspace, run_id: int, verdict: Verdict) -> Row | None:
    """The row of the results that a verdict speaks of; None where the run has no such row."""
    family, _, name = verdict.value.partition(".")
    method, _, measure = name.rpartition(".")
    query = f"""SELECT {_COLUMNS} FROM result JOIN task ON task.id = result.task_id
                WHERE result.run_id = ? AND result.family = ? AND result.method = ? AND result.measure = ?
                      AND result.target = ? AND result.level IS ? AND result.draw IS NULL
                      AND result.dataset <> 'confidential' AND task.kind = 'combine' ORDER BY result.id"""
    named = (run_id, family, method, measure, verdict.target, verdict.level)
    rows = [_row(found) for found in workspace.connection.execute(query, named)]
    return next((row for row in rows if verdict.params in (None, row.params)), None)


def diagnostics_of(workspace: Workspace, run_id: int) -> list[Diagnostic]:
    """Every fitted model's statistics in the order of the plan."""
    rows = workspace.connection.execute(
        "SELECT name, parameter, value, rule, passed, target FROM diagnostic WHERE run_id = ? ORDER BY id", (run_id,)
    )
    return [
        Diagnostic(name, parameter, value, rule, None if passed is None else bool(passed), target)
        for name, parameter, value, rule, passed, target in rows
    ]
