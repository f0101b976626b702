"""Changes of a run since the run before it in its project: of its plan in words, and of its numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from sfumato.engine.data.toml import read_toml
from sfumato.engine.execution.comparison import ComparedNumber
from sfumato.engine.methods.labels import measure_name
from sfumato.engine.recipe.difference import plan_differences
from sfumato.engine.wording import agreeing_word

from ..errors import DifferentData, NotReady
from ..reporting.comparison import brief_difference_outcome
from ..reporting.plan_changes import differences_in_words
from ..reporting.tables import DisplayColumn, DisplayTable
from ..reporting.words import number, shorten_names
from ..store.runs import StoredRun, find_run, list_runs
from ..store.workspace import Workspace
from .comparison import RunComparison, compare_runs

MOST_COMPARED = 20_000
"""Most results of two runs together that are compared without being asked for."""
LEAST_NAME = 20
"""Least cells of a number's name."""
BESIDE_NAME = 2 * (9 + 2) + 2 + 13
"""Cells of the columns beside the names: both values, and which run is better."""


@dataclass(frozen=True)
class RunChanges:
    """Changes of a run since the run before it.

    run_id: the run
    previous_run_id: the run before it
    plan_lines: changes of the plan in words; empty for the same plan
    numbers_text: how many numbers changed, or why the numbers are not compared
    changed: the numbers that changed, one for each measure, those first that differ beyond chance
    """

    run_id: int
    previous_run_id: int
    plan_lines: Sequence[str]
    numbers_text: str
    changed: Sequence[ComparedNumber] = ()

    def numbers_table(self, most: int, width: int) -> DisplayTable:
        """Return the first ``most`` changed numbers with their values in both runs, and the better run.

        Names are shortened where the table would take more than ``width`` cells.
        """
        runs, shown = (self.previous_run_id, self.run_id), self.changed[:most]
        whole = [f"{measure_name(one.key)}{f' ({one.target})' if one.target else ''}" for one in shown]
        names = shorten_names(whole, max(LEAST_NAME, width - BESIDE_NAME))
        columns = (
            DisplayColumn("name", "number", 28),
            *(DisplayColumn(f"run {run}", f"run {run}", 9, "right") for run in runs),
            DisplayColumn("better", "better", 9),
        )
        rows = [
            (
                names[name],
                *(number(None if side is None else side.value) for side in (one.first, one.second)),
                _better_run_text(one, runs),
            )
            for one, name in zip(shown, whole, strict=True)
        ]
        return DisplayTable(columns, rows)


def _better_run_text(one: ComparedNumber, runs: tuple[int, int]) -> str:
    """Return the run that is better beyond chance; that the difference may be chance, if no run is."""
    if one.distinguishable is False:
        return "may be chance"
    return brief_difference_outcome(one, runs).lstrip("<>*~=? ") or "differs"


def read_run_changes(workspace: Workspace, run_id: int) -> RunChanges | None:
    """Read what a run and its plan have otherwise than the run before it in the project; None for the first run.

    Raises NotFound.
    """
    run = find_run(workspace, run_id)
    before = next((one for one in list_runs(workspace, run.project_id) if one.id < run.id), None)
    if before is None:
        return None
    tables = read_toml(before.recipe_toml), read_toml(run.recipe_toml)
    plan = differences_in_words(plan_differences(*tables), *tables)
    try:
        return _with_numbers(workspace, before, run, plan)
    except DifferentData:
        why = "not compared: the two runs are on different records"
    except NotReady as error:
        why = f"not compared: {error}"
    return RunChanges(run.id, before.id, plan, why)


def _with_numbers(workspace: Workspace, before: StoredRun, run: StoredRun, plan: Sequence[str]) -> RunChanges:
    """Return the changes of plan and numbers. Raises DifferentData and NotReady."""
    query = "SELECT count(*) FROM result WHERE run_id IN (?, ?)"
    (count,) = workspace.connection.execute(query, (before.id, run.id)).fetchone()
    if count > MOST_COMPARED:
        return RunChanges(run.id, before.id, plan, "too many to be compared here")
    found = compare_runs(workspace, before.id, run.id)
    changed = _most_changed(found)
    return RunChanges(run.id, before.id, plan, _counts_text(found.shared_rows), changed)


def _counts_text(rows: Sequence[ComparedNumber]) -> str:
    """Return how many numbers of both runs differ, and how sure that is."""
    if not rows:
        return "the two runs have no number in common"
    differing = [row for row in rows if row.difference]
    by_surety = Counter(row.distinguishable for row in differing)
    parts = [
        (by_surety[True], f"{agreeing_word(by_surety[True], 'differs', 'differ')} beyond chance"),
        (by_surety[None], f"{agreeing_word(by_surety[None], 'differs', 'differ')}, by chance or not is not known"),
        (by_surety[False], "may differ by chance"),
        (len(rows) - len(differing), f"{agreeing_word(len(rows) - len(differing), 'is', 'are')} equal or not computed"),
    ]
    return f"of {len(rows)}, {'; '.join(f'{count} {words}' for count, words in parts if count)}"


_SURETY = {True: 0, None: 1, False: 2}
"""Order in which numbers are listed, by whether their difference is distinguishable from chance."""


def _most_changed(found: RunComparison) -> list[ComparedNumber]:
    """Return the numbers that differ, the largest change of each measure, those first that differ beyond chance."""
    differing = [row for row in found.shared_rows if row.difference]
    ranked = sorted(differing, key=lambda row: (_SURETY[row.distinguishable], -_relative_change(row)))
    first = {row.key: row for row in reversed(ranked)}
    return [row for row in ranked if first[row.key] is row]


def _relative_change(row: ComparedNumber) -> float:
    """Return the difference of a number as a share of the larger of its two values, in size."""
    sides = [abs(side.value) for side in (row.first, row.second) if side is not None and side.value is not None]
    return abs(row.difference or 0.0) / max([*sides, 1e-300])
