"""Results of a run, filtered and sorted in SQL and read a page at a time."""

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

from ..store.records import check_integers, check_numbers, check_texts, parse_json_table, raise_damaged_record
from ..store.runs import find_run
from ..store.workspace import Workspace

FAILURES = "failures"
SORTS: Mapping[str, str] = {
    FAILURES: f"coalesce(judged.place, {len(WORST_FIRST)}), ",
    "measure": "",
    "target": "result.target, ",
    "dataset": "result.dataset, ",
    "level": "result.level IS NULL, result.level, ",
    "value": "result.value IS NULL, result.value DESC, ",
    "status": "result.status = 'computed', ",
}
"""Orders of results, as the beginning of ``ORDER BY``, by name.

``failures`` lists series that fail a threshold first, then those without a value for one, then those that meet one; the
confidential data's row stays beside the others of its series.
"""

_BY_MEASURE = """CASE result.family WHEN 'risk' THEN 0 WHEN 'utility' THEN 1 WHEN 'quality' THEN 2 WHEN 'studies' THEN 3 ELSE 4 END, result.method,
                 min(result.task_id) OVER series, min(result.id) OVER series, result.dataset, result.draw, result.id"""
"""Order that breaks the ties of all others: the same number of different datasets stands together."""


SHARE_OF_BAND = """result.level IS NOT NULL AND instr(result.params, '"of":') > 0
                   AND json_extract(result.params, '$.of') IS NOT NULL"""
"""Condition for rows that are shares of the variance behind the interval of another measure."""
_KEY = "(result.family || '.' || result.method || '.' || result.measure)"
_TEXT = """lower(result.family || '.' || result.method || '.' || result.measure || ' ' || result.target || ' '
           || result.dataset || ' ' || result.status || ' ' || result.params)"""
MOST_BOUND = 5_000
"""Number of values that one query binds; SQLite accepts no more than 32,766."""
MOST_SELECTIONS = 24
"""Number of selections whose order is kept."""


@dataclass(frozen=True)
class ResultSelection:
    """Selection and order of the results of a run.

    run_id: the run
    with_draws: whether rows of single datasets are included
    filter_text: words that must all occur in the row or in its human name; ``!word`` must not
    sort: a key of ``SORTS``
    family: family of the lines that are shown; empty for all
    unfolded: whether each setting of a measure has a line of its own

    Shares of variance are included with ``with_draws``, or where ``filter_text`` asks for a share.
    """

    run_id: int
    with_draws: bool = False
    filter_text: str = ""
    sort: str = "measure"
    family: str = ""
    unfolded: bool = False

    @property
    def sorted_rows(self) -> ResultSelection:
        """Return the selection of the rows from which the lines are formed: of any family, folded or not."""
        return self if self.with_draws else replace(self, family="", unfolded=False)


def has_averages(workspace: Workspace, run_id: int) -> bool:
    """Return whether the rows of a run have been averaged; before that it has rows of single datasets only."""
    query = """SELECT EXISTS (SELECT 1 FROM result JOIN task ON task.id = result.task_id
                              WHERE result.run_id = ? AND task.kind = 'combine')"""
    return bool(workspace.connection.execute(query, (run_id,)).fetchone()[0])


def _selection_condition(workspace: Workspace, selection: ResultSelection) -> tuple[str, list[object]]:
    """Return the SQL condition of a selection, and the values it binds."""
    kind = "=" if has_averages(workspace, selection.run_id) else "<>"
    conditions = ["result.run_id = ?", f"task.kind {kind} 'combine'"]
    bound: list[object] = [selection.run_id]
    if not selection.with_draws:
        conditions.append("result.draw IS NULL")
    if not selection.with_draws and "share" not in selection.filter_text.lower():
        conditions.append(f"NOT ({SHARE_OF_BAND})")
    if selection.family:
        conditions.append("result.family = ?")
        bound.append(selection.family)
    names = _measure_names(workspace, selection.run_id) if selection.filter_text else {}
    for word in selection.filter_text.lower().split():
        wanted = word.removeprefix("!")
        if wanted:
            called = [key for key, name in names.items() if wanted in name]
            occurs = f"(instr({_TEXT}, ?) > 0 OR {_KEY} IN ({_placeholders(called)}))"
            conditions.append(occurs if word == wanted else f"NOT {occurs}")
            bound += [wanted, *called]
    return " AND ".join(conditions), bound


def _measure_names(workspace: Workspace, run_id: int) -> dict[str, str]:
    """Return the human names of a run's measures by key, in lower case."""
    from sfumato.engine.methods.labels import measure_name  # it loads methods

    found = workspace.connection.execute(f"SELECT DISTINCT {_KEY} FROM result WHERE run_id = ?", (run_id,))
    return {key: measure_name(key).lower() for (key,) in found if isinstance(key, str)}


_ROW_FIELDS = [field.name for field in fields(Row)]
_COLUMNS = ", ".join(f"result.{name}" for name in _ROW_FIELDS)


def read_selected_rows(workspace: Workspace, selection: ResultSelection, offset: int, limit: int) -> list[Row]:
    """Read the rows of a selection from ``offset`` on, at most ``limit``."""
    query, bound = _ordered_query(workspace, selection, _COLUMNS)
    return [
        _stored_row(row) for row in workspace.connection.execute(f"{query} LIMIT ? OFFSET ?", [*bound, limit, offset])
    ]


def read_selected_ids(workspace: Workspace, selection: ResultSelection) -> array[int]:
    """Read the database ids of the rows of a selection, in its order."""
    query, bound = _ordered_query(workspace, selection, "result.id")
    return array("q", (number for (number,) in workspace.connection.execute(query, bound)))


def _ordered_query(workspace: Workspace, selection: ResultSelection, columns: str) -> tuple[str, list[object]]:
    """Return the SQL query of a selection in its order, and the values it binds."""
    where, bound = _selection_condition(workspace, selection)
    order, first, beside, places = SORTS[selection.sort], "", "", list[object]()
    if selection.sort == FAILURES:
        judged = read_judged_series(workspace, selection.run_id)
        order = order if judged else ""
        if judged:
            values = ", ".join(["(?, ?, ?, ?, ?, ?, ?)"] * len(judged))
            first = f"WITH judged(family, method, measure, target, params, level, place) AS (VALUES {values}) "
            same = " AND ".join(
                f"judged.{name} = result.{name}" for name in ("family", "method", "measure", "target", "params")
            )
            # IS, unlike =, is true for two missing levels
            beside = f"LEFT JOIN judged ON {same} AND judged.level IS result.level"
            places = [value for one in judged for value in (*one.database_key, WORST_FIRST.index(one.outcome))]
    query = f"""{first}SELECT {columns} FROM result JOIN task ON task.id = result.task_id {beside} WHERE {where}
                WINDOW series AS (PARTITION BY result.family, result.method, result.measure, result.target,
                                               result.params, result.level)
                ORDER BY {order}{_BY_MEASURE}"""
    return query, [*places, *bound]


@dataclass(frozen=True, slots=True)
class JudgedSeries:
    """Series of results with verdicts.

    database_key: its columns in the database
    series: ``Row.series``
    outcome: worst outcome of its verdicts
    """

    database_key: tuple[str, str, str, str, str, float | None]
    series: tuple[str, str, str, float | None]
    outcome: Outcome


def read_judged_series(workspace: Workspace, run_id: int) -> list[JudgedSeries]:
    """Read the series of a finished run that have verdicts, matched as by ``row_of_verdict``."""
    verdicts = read_verdicts(workspace, run_id)
    measures = list({verdict.value.rpartition(".")[2] for verdict in verdicts})
    targets = list({verdict.target for verdict in verdicts})
    # the text of the parameters too, by which the database joins verdicts to rows
    query = f"""SELECT {_COLUMNS}, result.params AS written FROM result JOIN task ON task.id = result.task_id
                WHERE result.run_id = ? AND result.draw IS NULL AND result.dataset <> 'confidential' AND task.kind = 'combine'
                      AND result.measure IN ({_placeholders(measures)}) AND result.target IN ({_placeholders(targets)})
                ORDER BY result.id"""
    found = workspace.connection.execute(query, (run_id, *measures, *targets))
    rows = [(_stored_row(one), str(one["written"])) for one in found]
    worst: dict[tuple[str, str, str, str, str, float | None], JudgedSeries] = {}
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
                worst[place] = JudgedSeries(place, row.series, verdict.outcome)
    return list(worst.values())


def _placeholders(values: Sequence[object]) -> str:
    """Return as many question marks as there are values."""
    return ", ".join("?" * len(values))


def read_rows_by_id(workspace: Workspace, numbers: Sequence[int]) -> list[Row]:
    """Read the rows with these database ids, in their order."""
    found: dict[int, sqlite3.Row] = {}
    for first in range(0, len(numbers), MOST_BOUND):
        part = list(numbers[first : first + MOST_BOUND])
        query = f"SELECT {_COLUMNS}, result.id AS number FROM result WHERE result.id IN ({_placeholders(part)})"
        # SQL returns rows of IN (...) in an order of its own
        found.update((row["number"], row) for row in workspace.connection.execute(query, part))
    return [_stored_row(found[number]) for number in numbers if number in found]


@raise_damaged_record("a result row")
def _stored_row(found: sqlite3.Row) -> Row:
    """Return a stored row, checked for the types of its fields."""
    given = {name: found[name] for name in _ROW_FIELDS}
    row = Row(**{**given, "params": parse_json_table(found["params"])})
    check_texts(row.family, row.method, row.measure, row.target, row.dataset, row.unit, row.status, row.reason)
    check_numbers(row.level, row.value, row.lower, row.upper, row.baseline)
    check_integers(row.draw)
    return row


def read_raw_rows(workspace: Workspace, run_id: int) -> list[Row]:
    """Read the rows that measures and studies stored, before they are averaged, in the order of the plan."""
    return _read_rows(workspace, "task.kind <> 'combine'", run_id)


def read_result_rows(workspace: Workspace, run_id: int) -> list[Row]:
    """Read the finished rows of a run, averages included; before it has ended, the rows so far."""
    return _read_rows(workspace, "task.kind = 'combine'", run_id) or read_raw_rows(workspace, run_id)


def read_study_averages(workspace: Workspace, run_id: int) -> list[Row]:
    """Read the averages and answers of the studies of a finished run."""
    return _read_rows(workspace, "task.kind = 'combine' AND result.family = 'studies' AND result.draw IS NULL", run_id)


def read_account_and_risks(workspace: Workspace, run_id: int) -> list[Row]:
    """Read the averages of the privacy account and the risks of a finished run."""
    return _read_rows(
        workspace, "task.kind = 'combine' AND result.family IN ('synthesis', 'risk') AND result.draw IS NULL", run_id
    )


def _read_rows(workspace: Workspace, which: str, run_id: int) -> list[Row]:
    """Read the rows of a run that meet a condition, in the order of its tasks."""
    rows = workspace.connection.execute(
        f"""SELECT {_COLUMNS} FROM result JOIN task ON task.id = result.task_id
            WHERE result.run_id = ? AND {which} ORDER BY result.task_id, result.id""",
        (run_id,),
    )
    return [_stored_row(row) for row in rows]


def read_verdicts(workspace: Workspace, run_id: int) -> list[Verdict]:
    """Read the verdicts of a finished run, in the order of its thresholds."""
    rows = workspace.connection.execute("SELECT verdict FROM verdict WHERE run_id = ? ORDER BY position", (run_id,))
    return [_stored_verdict(row[0]) for row in rows]


@raise_damaged_record("a verdict")
def _stored_verdict(text: str) -> Verdict:
    """Return a stored verdict, checked for the types of its fields."""
    table = parse_json_table(text)
    # an earlier version may have written other words, which are what was sealed
    verdict = Verdict(**{**table, "outcome": current_outcome(str(table.get("outcome")))})
    check_texts(verdict.value, verdict.target, verdict.bound, verdict.outcome, verdict.reason)
    check_numbers(verdict.level, verdict.limit, verdict.observed, verdict.margin, verdict.lower, verdict.upper)
    if verdict.outcome not in OUTCOMES or not isinstance(verdict.params, dict | None):
        raise TypeError
    return verdict


def row_of_verdict(workspace: Workspace, run_id: int, verdict: Verdict) -> Row | None:
    """Read the row that a verdict is about; None where the run has no such row."""
    family, _, name = verdict.value.partition(".")
    method, _, measure = name.rpartition(".")
    query = f"""SELECT {_COLUMNS} FROM result JOIN task ON task.id = result.task_id
                WHERE result.run_id = ? AND result.family = ? AND result.method = ? AND result.measure = ?
                      AND result.target = ? AND result.level IS ? AND result.draw IS NULL
                      AND result.dataset <> 'confidential' AND task.kind = 'combine' ORDER BY result.id"""
    named = (run_id, family, method, measure, verdict.target, verdict.level)
    # parameters are compared as values, since equal ones may be written differently as JSON
    rows = [_stored_row(found) for found in workspace.connection.execute(query, named)]
    return next((row for row in rows if verdict.params in (None, row.params)), None)


def read_series_rows(workspace: Workspace, run_id: int, row: Row) -> list[Row]:
    """Read the finished rows of the series of a row: confidential data, average and each dataset."""
    query = f"""SELECT {_COLUMNS} FROM result JOIN task ON task.id = result.task_id
                WHERE result.run_id = ? AND result.family = ? AND result.method = ? AND result.measure = ?
                      AND result.target = ? AND result.level IS ? AND task.kind = 'combine'
                ORDER BY result.dataset, result.draw"""
    named = (run_id, row.family, row.method, row.measure, row.target, row.level)
    found = (_stored_row(one) for one in workspace.connection.execute(query, named))
    return [one for one in found if one.params == row.params]


def read_attack_rows(workspace: Workspace, run_id: int, row: Row, measures: Sequence[str]) -> list[Row]:
    """Read the rows of the attack of a risk that are of these measures, on the same data as the row; none of another number."""
    if row.family != "risk":
        return []
    query = f"""SELECT {_COLUMNS} FROM result JOIN task ON task.id = result.task_id
                WHERE result.run_id = ? AND result.family = ? AND result.method = ? AND result.target = ?
                      AND result.dataset = ? AND result.draw IS ? AND task.kind = 'combine'
                      AND result.measure IN ({_placeholders(measures)}) ORDER BY result.id"""
    named = (run_id, row.family, row.method, row.target, row.dataset, row.draw)
    found = (_stored_row(one) for one in workspace.connection.execute(query, [*named, *measures]))
    return [one for one in found if one.params == row.params]


def verdicts_of_row(workspace: Workspace, run_id: int, row: Row) -> list[Verdict]:
    """Return the verdicts about a row; none for confidential data or a single dataset."""
    if row.draw is not None or row.dataset == "confidential":
        return []
    near = [
        verdict
        for verdict in read_verdicts(workspace, run_id)
        if (verdict.value, verdict.target, verdict.level) == (row.key, row.target, row.level)
    ]
    judged = [(verdict, row_of_verdict(workspace, run_id, verdict)) for verdict in near]
    return [verdict for verdict, found in judged if found is not None and found.params == row.params]


def read_diagnostics(workspace: Workspace, run_id: int) -> list[Diagnostic]:
    """Read the statistics of every fitted model, in the order of the plan."""
    rows = workspace.connection.execute(
        "SELECT name, parameter, value, rule, passed, target FROM diagnostic WHERE run_id = ? ORDER BY id", (run_id,)
    )
    found = [_stored_diagnostic(*row) for row in rows]
    # Fits end in any order.
    place = {step.target: item for item, step in enumerate(find_run(workspace, run_id).recipe.synthesis)}
    return sorted(found, key=lambda one: place.get(one.target, len(place)))


@raise_damaged_record("a model's diagnostic")
def _stored_diagnostic(
    name: str, parameter: str, value: float | None, rule: str, passed: int | None, target: str
) -> Diagnostic:
    """Return a stored statistic, checked for the types of its fields."""
    check_texts(name, parameter, rule, target)
    check_numbers(value)
    check_integers(passed)
    return Diagnostic(name, parameter, value, rule, None if passed is None else bool(passed), target)


class SortedResultIds:
    """Cache of the sorted row ids of recent selections, safe for several threads.

    They are valid until the run proceeds; then a new cache is needed.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[ResultSelection, Future[array[int]]] = OrderedDict()
        self._outcomes: Mapping[tuple[str, str, str, float | None], Outcome] | None = None
        self._lock = Lock()

    def row_ids(self, workspace: Workspace, selection: ResultSelection) -> array[int]:
        """Return the database ids of the rows of a selection; a second caller waits for the first."""
        with self._lock:
            kept = self._kept.get(selection)
            # sorted outside the lock, so that other selections need not wait
            promised = kept or Future()
            self._kept[selection] = promised
            self._kept.move_to_end(selection)
            if len(self._kept) > MOST_SELECTIONS:
                self._kept.popitem(last=False)
        if kept is None:
            try:
                promised.set_result(read_selected_ids(workspace, selection))
            except Exception as error:  # noqa: BLE001  (who else waits is told the same)
                with self._lock:
                    # a selection that failed may be asked for again
                    self._kept.pop(selection, None)
                promised.set_exception(error)
        return promised.result()

    def outcome_by_series(
        self, workspace: Workspace, run_id: int
    ) -> Mapping[tuple[str, str, str, float | None], Outcome]:
        """Return the worst outcome of every series that has verdicts, by ``Row.series``."""
        if self._outcomes is None:
            self._outcomes = {one.series: one.outcome for one in read_judged_series(workspace, run_id)}
        return self._outcomes

    def read_rows(self, workspace: Workspace, selection: ResultSelection, offset: int, limit: int) -> list[Row]:
        """Read the rows of a selection from ``offset`` on, at most ``limit``."""
        return read_rows_by_id(workspace, self.row_ids(workspace, selection)[offset : offset + limit])

    def sort_ahead(self, workspace: Workspace, selection: ResultSelection, unwanted: Callable[[], bool]) -> None:
        """Sort the selections that are one key away, the likeliest first, until ``unwanted`` returns true."""
        for other in _neighbouring_selections(selection):
            if unwanted():
                return
            self.row_ids(workspace, other)


def _neighbouring_selections(selection: ResultSelection) -> Iterator[ResultSelection]:
    """Yield the selections that differ in the order, and then in single datasets."""
    names = list(SORTS)
    at = names.index(selection.sort)
    yield from (replace(selection, sort=name) for name in (*names[at + 1 :], *names[:at]))
    yield replace(selection, with_draws=not selection.with_draws)
