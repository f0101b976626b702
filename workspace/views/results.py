"""What a run found, as screens read it: filtered and sorted in SQL, a page at a time."""

from __future__ import annotations

import sqlite3
from array import array
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, fields, replace
from threading import Lock

from sfumato.engine.methods.results import Diagnostic
from sfumato.engine.methods.rows import Row
from sfumato.engine.recipe.outcomes import OUTCOMES, WORST_FIRST, Outcome, current_outcome
from sfumato.engine.recipe.thresholds import Verdict

from ..store.records import check_numbers, check_texts, check_whole, record, stored_table
from ..store.workspace import Workspace

FAILURES = "failures"
SORTS: Mapping[str, str] = {
    FAILURES: f"coalesce(unmet.place, {WORST_FIRST.index('met')}), ",
    "measure": "",
    "target": "result.target, ",
    "dataset": "result.dataset, ",
    "level": "result.level IS NULL, result.level, ",
    "value": "result.value IS NULL, result.value DESC, ",
    "status": "result.status = 'computed', ",
}
"""The orders in which results can be listed. ``failures``: first the series that a threshold fails, then those that one has no value of;
the confidential data's row stays beside the others of its series.
"""

_BY_MEASURE = """CASE result.family WHEN 'synthesis' THEN -1 WHEN 'utility' THEN 0 WHEN 'quality' THEN 1 WHEN 'risk' THEN 2 ELSE 3 END, result.method,
                 min(result.id) OVER (PARTITION BY result.family, result.method, result.measure, result.target,
                                                   result.params, result.level),
                 result.dataset, result.draw, result.id"""
"""What is the same number of different datasets stands together; breaks the ties of every other order."""


SHARE_OF_BAND = """result.level IS NOT NULL AND instr(result.params, '"of":') > 0
                   AND json_extract(result.params, '$.of') IS NOT NULL"""
"""Of a row: it says what the interval ``of`` another measure is made of, and is no curve of its own."""
_KEY = "(result.family || '.' || result.method || '.' || result.measure)"
_TEXT = """lower(result.family || '.' || result.method || '.' || result.measure || ' ' || result.target || ' '
           || result.dataset || ' ' || result.status || ' ' || result.params)"""
MOST_KEPT = 24


@dataclass(frozen=True)
class Selection:
    """Which results of a run, in which order.

    ``draws`` adds the rows of single datasets. Every word of ``text`` must occur in the row or its human name; ``!word`` must not. What makes up
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


def _where(workspace: Workspace, selection: Selection) -> tuple[str, list[object]]:
    """The condition of a selection, and the values it binds."""
    kind = "=" if has_averages(workspace, selection.run_id) else "<>"
    conditions = ["result.run_id = ?", f"task.kind {kind} 'combine'"]
    bound: list[object] = [selection.run_id]
    if not selection.draws:
        conditions.append("result.draw IS NULL")
    if not selection.draws and "share" not in selection.text.lower():
        conditions.append(f"NOT ({SHARE_OF_BAND})")
    names = _names_in(workspace, selection.run_id) if selection.text else {}
    for word in selection.text.lower().split():
        wanted = word.removeprefix("!")
        if wanted:
            called = [key for key, name in names.items() if wanted in name]
            occurs = f"(instr({_TEXT}, ?) > 0 OR {_KEY} IN ({_places(called)}))"
            conditions.append(occurs if word == wanted else f"NOT {occurs}")
            bound += [wanted, *called]
    return " AND ".join(conditions), bound


def _names_in(workspace: Workspace, run_id: int) -> dict[str, str]:
    """The human names of a run's numbers by key, in small letters."""
    from sfumato.engine.methods.labels import measure_name  # it loads methods

    found = workspace.connection.execute(f"SELECT DISTINCT {_KEY} FROM result WHERE run_id = ?", (run_id,))
    return {key: measure_name(key).lower() for (key,) in found if isinstance(key, str)}


_NAMES = [field.name for field in fields(Row)]
_COLUMNS = ", ".join(f"result.{name}" for name in _NAMES)


def selected_rows(workspace: Workspace, selection: Selection, offset: int, limit: int) -> list[Row]:
    """The rows of a selection from ``offset`` on, at most ``limit``."""
    query, bound = _in_order(workspace, selection, _COLUMNS)
    return [_row(row) for row in workspace.connection.execute(f"{query} LIMIT ? OFFSET ?", [*bound, limit, offset])]


def result_numbers(workspace: Workspace, selection: Selection) -> array[int]:
    """The rows of a selection in their order, by the numbers that the database knows them by."""
    query, bound = _in_order(workspace, selection, "result.id")
    return array("q", (number for (number,) in workspace.connection.execute(query, bound)))


def _in_order(workspace: Workspace, selection: Selection, columns: str) -> tuple[str, list[object]]:
    """The query of a selection in its order, and the values it binds."""
    where, bound = _where(workspace, selection)
    order, first, beside, places = SORTS[selection.sort], "", "", list[object]()
    if selection.sort == FAILURES:
        unmet = [one for one in judged_series(workspace, selection.run_id) if one.outcome != "met"]
        order = order if unmet else ""
        if unmet:
            values = ", ".join(["(?, ?, ?, ?, ?, ?, ?)"] * len(unmet))
            first = f"WITH unmet(family, method, measure, target, params, level, place) AS (VALUES {values}) "
            same = " AND ".join(
                f"unmet.{name} = result.{name}" for name in ("family", "method", "measure", "target", "params")
            )
            beside = f"LEFT JOIN unmet ON {same} AND unmet.level IS result.level"
            places = [value for one in unmet for value in (*one.place, WORST_FIRST.index(one.outcome))]
    query = f"""{first}SELECT {columns} FROM result JOIN task ON task.id = result.task_id {beside} WHERE {where}
                ORDER BY {order}{_BY_MEASURE}"""
    return query, [*places, *bound]


@dataclass(frozen=True, slots=True)
class Judged:
    """A series that thresholds of its run speak of: where it stands in the database, ``Row.series``, and the worst of its verdicts."""

    place: tuple[str, str, str, str, str, float | None]
    series: tuple[str, str, str, float | None]
    outcome: Outcome


def judged_series(workspace: Workspace, run_id: int) -> list[Judged]:
    """The series of a finished run that its verdicts speak of, as ``judged_row`` has them."""
    verdicts = verdicts_of(workspace, run_id)
    measures = list({verdict.value.rpartition(".")[2] for verdict in verdicts})
    targets = list({verdict.target for verdict in verdicts})
    query = f"""SELECT {_COLUMNS}, result.params AS written FROM result JOIN task ON task.id = result.task_id
                WHERE result.run_id = ? AND result.draw IS NULL AND result.dataset <> 'confidential' AND task.kind = 'combine'
                      AND result.measure IN ({_places(measures)}) AND result.target IN ({_places(targets)})
                ORDER BY result.id"""
    found = workspace.connection.execute(query, (run_id, *measures, *targets))
    rows = [(_row(one), str(one["written"])) for one in found]
    worst: dict[tuple[str, str, str, str, str, float | None], Judged] = {}
    near: dict[tuple[str, str, float | None], list[tuple[Row, str]]] = {}
    for row, written in rows:
        near.setdefault((row.key, row.target, row.level), []).append((row, written))
    for verdict in verdicts:
        beside = near.get((verdict.value, verdict.target, verdict.level), [])
        judged = next((one for one in beside if verdict.params in (None, one[0].params)), None)
        if judged is not None:
            row, written = judged
            place = row.family, row.method, row.measure, row.target, written, row.level
            if place not in worst or WORST_FIRST.index(verdict.outcome) < WORST_FIRST.index(worst[place].outcome):
                worst[place] = Judged(place, row.series, verdict.outcome)
    return list(worst.values())


def _places(values: Sequence[object]) -> str:
    """As many question marks as there are values."""
    return ", ".join("?" * len(values))


def numbered_rows(workspace: Workspace, numbers: Sequence[int]) -> list[Row]:
    """The rows of these numbers, in their order."""
    query = f"SELECT {_COLUMNS}, result.id AS number FROM result WHERE result.id IN ({_places(numbers)})"
    found = {row["number"]: row for row in workspace.connection.execute(query, list(numbers))}
    return [_row(found[number]) for number in numbers if number in found]


@record("a result row")
def _row(found: sqlite3.Row) -> Row:
    given = {name: found[name] for name in _NAMES}
    row = Row(**{**given, "params": stored_table(found["params"])})
    check_texts(row.family, row.method, row.measure, row.target, row.dataset, row.unit, row.status, row.reason)
    check_numbers(row.level, row.value, row.lower, row.upper, row.baseline)
    check_whole(row.draw)
    return row


def raw_rows(workspace: Workspace, run_id: int) -> list[Row]:
    """The rows that measures and studies left, in the order of the plan: what ``combine`` starts from."""
    return _rows(workspace, "task.kind <> 'combine'", run_id)


def result_rows(workspace: Workspace, run_id: int) -> list[Row]:
    """The finished rows of a run, averages included, in a fixed order; before it has ended, the rows so far."""
    return _rows(workspace, "task.kind = 'combine'", run_id) or raw_rows(workspace, run_id)


def study_averages(workspace: Workspace, run_id: int) -> list[Row]:
    """The averages and answers of the studies of a finished run, in a fixed order."""
    return _rows(workspace, "task.kind = 'combine' AND result.family = 'studies' AND result.draw IS NULL", run_id)


def account_and_risks(workspace: Workspace, run_id: int) -> list[Row]:
    """The averages of a finished run's privacy account and risks, in a fixed order."""
    return _rows(
        workspace, "task.kind = 'combine' AND result.family IN ('synthesis', 'risk') AND result.draw IS NULL", run_id
    )


def _rows(workspace: Workspace, which: str, run_id: int) -> list[Row]:
    rows = workspace.connection.execute(
        f"""SELECT {_COLUMNS} FROM result JOIN task ON task.id = result.task_id
            WHERE result.run_id = ? AND {which} ORDER BY result.task_id, result.id""",
        (run_id,),
    )
    return [_row(row) for row in rows]


def verdicts_of(workspace: Workspace, run_id: int) -> list[Verdict]:
    """The verdicts of a finished run in the order of its thresholds."""
    rows = workspace.connection.execute("SELECT verdict FROM verdict WHERE run_id = ? ORDER BY position", (run_id,))
    return [_verdict(row[0]) for row in rows]


@record("a verdict")
def _verdict(text: str) -> Verdict:
    """A stored verdict; its words may be those of an earlier version, and are what was sealed."""
    table = stored_table(text)
    verdict = Verdict(**{**table, "outcome": current_outcome(str(table.get("outcome")))})
    check_texts(verdict.value, verdict.target, verdict.bound, verdict.outcome, verdict.reason)
    check_numbers(verdict.level, verdict.limit, verdict.observed, verdict.margin, verdict.lower, verdict.upper)
    if verdict.outcome not in OUTCOMES or not isinstance(verdict.params, dict | None):
        raise TypeError
    return verdict


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


def rows_beside(workspace: Workspace, run_id: int, row: Row) -> list[Row]:
    """The finished rows of a run's one series: the confidential data's, the average, each dataset's, ``row`` among them."""
    query = f"""SELECT {_COLUMNS} FROM result JOIN task ON task.id = result.task_id
                WHERE result.run_id = ? AND result.family = ? AND result.method = ? AND result.measure = ?
                      AND result.target = ? AND result.level IS ? AND task.kind = 'combine'
                ORDER BY result.dataset, result.draw"""
    named = (run_id, row.family, row.method, row.measure, row.target, row.level)
    found = (_row(one) for one in workspace.connection.execute(query, named))
    return [one for one in found if one.params == row.params]


def verdicts_on(workspace: Workspace, run_id: int, row: Row) -> list[Verdict]:
    """The verdicts of a finished run that speak of a row, as ``judged_row`` has it: not of confidential data, nor of one dataset alone."""
    if row.draw is not None or row.dataset == "confidential":
        return []
    near = [
        verdict
        for verdict in verdicts_of(workspace, run_id)
        if (verdict.value, verdict.target, verdict.level) == (row.key, row.target, row.level)
    ]
    judged = [(verdict, judged_row(workspace, run_id, verdict)) for verdict in near]
    return [verdict for verdict, found in judged if found is not None and found.params == row.params]


def diagnostics_of(workspace: Workspace, run_id: int) -> list[Diagnostic]:
    """Every fitted model's statistics in the order of the plan."""
    rows = workspace.connection.execute(
        "SELECT name, parameter, value, rule, passed, target FROM diagnostic WHERE run_id = ? ORDER BY id", (run_id,)
    )
    return [_diagnostic(*row) for row in rows]


@record("a model's diagnostic")
def _diagnostic(
    name: str, parameter: str, value: float | None, rule: str, passed: int | None, target: str
) -> Diagnostic:
    check_texts(name, parameter, rule, target)
    check_numbers(value)
    check_whole(passed)
    return Diagnostic(name, parameter, value, rule, None if passed is None else bool(passed), target)


class ResultOrders:
    """The numbers of the rows of the selections asked for last, in their order. Several threads may ask.

    They hold until the run comes further: take another one then.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[Selection, Future[array[int]]] = OrderedDict()
        self._outcomes: Mapping[tuple[str, str, str, float | None], Outcome] | None = None
        self._lock = Lock()

    def numbers(self, workspace: Workspace, selection: Selection) -> array[int]:
        """The rows of a selection, by the numbers that the database knows them by. Who asks while they are sorted waits."""
        with self._lock:
            kept = self._kept.get(selection)
            promised = kept or Future()
            self._kept[selection] = promised
            self._kept.move_to_end(selection)
            if len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
        if kept is None:
            try:
                promised.set_result(result_numbers(workspace, selection))
            except Exception as error:  # noqa: BLE001  (who else waits is told the same)
                with self._lock:
                    self._kept.pop(selection, None)
                promised.set_exception(error)
        return promised.result()

    def outcomes(self, workspace: Workspace, run_id: int) -> Mapping[tuple[str, str, str, float | None], Outcome]:
        """The worst verdict on every series that a threshold speaks of, by ``Row.series``."""
        if self._outcomes is None:
            self._outcomes = {one.series: one.outcome for one in judged_series(workspace, run_id)}
        return self._outcomes

    def rows(self, workspace: Workspace, selection: Selection, offset: int, limit: int) -> list[Row]:
        """The rows of a selection from ``offset`` on, at most ``limit``."""
        return numbered_rows(workspace, self.numbers(workspace, selection)[offset : offset + limit])

    def prepare(self, workspace: Workspace, selection: Selection, unwanted: Callable[[], bool]) -> None:
        """Sort in every other way that is a key away, the likeliest first, until it is ``unwanted``."""
        for other in _others(selection):
            if unwanted():
                return
            self.numbers(workspace, other)


def _others(selection: Selection) -> Iterator[Selection]:
    names = list(SORTS)
    at = names.index(selection.sort)
    yield from (replace(selection, sort=name) for name in (*names[at + 1 :], *names[:at]))
    yield replace(selection, draws=not selection.draws)
