"""Admission of tasks: a worker runs as many at a time as fit into memory, and the one with most left to do first."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from sfumato.engine.errors import EngineError

from ..errors import WorkspaceError
from ..store.runs import find_run
from ..store.workspace import Workspace
from .memory import ALWAYS_ALLOWED_BYTES, MemoryLimit, memory_text
from .queue import TaskLease, WaitingTask
from .task_costs import TaskCost, estimate_task_costs, measure_recent_costs, memory_refusal, remaining_seconds

RUNS_KEPT = 16
PEAK_MARGIN = 1.1
"""Factor on the peak of a task like it in the same run."""


class TaskAdmission:
    """Account of the memory of the tasks that a worker holds.

    limit: function that returns the memory limit, called whenever no task is held
    apart: whether tasks do not share memory, since each has a cluster worker to itself
    """

    def __init__(self, workspace: Workspace, limit: Callable[[], MemoryLimit], *, apart: bool = False) -> None:
        self.workspace = workspace
        self._ask, self._limit, self._apart = limit, limit(), apart
        self._held: dict[int, int] = {}
        self._runs: dict[int, Mapping[str, TaskCost]] = {}
        self._seconds_left: dict[int, Mapping[str, float]] = {}
        self._alone: set[int] = set()

    def has_room(self, waiting: WaitingTask) -> bool:
        """Return whether a waiting task fits beside the tasks held."""
        # Also a task that will never fit: it is claimed to be refused with a message.
        if not self._held or self._apart:
            return True
        if waiting.task_id in self._alone or self._alone & self._held.keys():
            return False
        needed, most = self.needed_bytes(waiting), self._limit.max_bytes
        if most is None:
            return True
        if needed + sum(self._held.values()) > max(most, ALWAYS_ALLOWED_BYTES):
            return False
        # Other programs may have taken memory since the limit was read.
        return self._limit.is_fixed or needed <= max(self._ask().max_bytes or 0, ALWAYS_ALLOWED_BYTES)

    def has_room_for_help(self, helped: WaitingTask, helpers: int) -> bool:
        """Return whether so many helpers, each with the memory of this task, fit beside the tasks held."""
        if self._apart:
            return True
        if self._alone & self._held.keys():
            return False
        most = self._limit.max_bytes
        return most is None or helpers * self.needed_bytes(helped) + sum(self._held.values()) <= most

    def seconds_left(self, waiting: WaitingTask) -> float:
        """Return the estimated seconds from the start of a waiting task to the end of what waits for it."""
        self._costs_of_run(waiting.run_id)
        return self._seconds_left[waiting.run_id].get(waiting.key, 0.0)

    def add_task(self, claim: TaskLease) -> None:
        """Count the memory of a task that is started."""
        self._held[claim.task_id] = self.needed_bytes(WaitingTask.from_lease(claim))

    def remove_task(self, claim: TaskLease) -> None:
        """Stop counting a task that has ended."""
        self._held.pop(claim.task_id, None)
        if not self._held:
            # Only now: while tasks run, the free memory lacks what they already use.
            self._limit = self._ask()

    def run_alone_from_now_on(self, claim: TaskLease) -> None:
        """Run a task without any other beside it the next time, since its process was killed."""
        self._alone.add(claim.task_id)

    def needed_bytes(self, waiting: WaitingTask) -> int:
        """Return the bytes that a task needs: by the peak of its step's finished tasks in the same run, else as
        estimated.
        """
        row = self.workspace.connection.execute(
            """SELECT max(peak_bytes) FROM task WHERE run_id = ? AND kind = ? AND item = ? AND state = 'done'
               AND typeof(peak_bytes) = 'integer'""",
            (waiting.run_id, waiting.kind, waiting.item),
        ).fetchone()
        if row[0]:
            return int(PEAK_MARGIN * row[0])
        cost = self._costs_of_run(waiting.run_id).get(waiting.key)
        return 0 if cost is None else cost.memory

    def refusal_message(self, claim: TaskLease) -> str:
        """Explain why the run of a claimed task cannot begin or continue; empty where each of its unfinished tasks fits
        alone.

        Only tasks that are not done count.
        """
        costs = self._costs_of_run(claim.run_id)
        if not costs or self._limit.max_bytes is None:
            return ""
        rows = self.workspace.connection.execute(
            "SELECT key FROM task WHERE run_id = ? AND state <> 'done' ORDER BY id", (claim.run_id,)
        ).fetchall()
        left = [costs[row["key"]] for row in rows if row["key"] in costs]
        said = memory_refusal(left, self._limit) if left else ""
        if said and not self._limit.is_fixed:  # others may have left memory since
            now = self._ask()
            self._limit = (
                now if now.max_bytes is None else replace(now, max_bytes=now.max_bytes + sum(self._held.values()))
            )
            said = memory_refusal(left, self._limit)
        return said

    def killed_message(self, claim: TaskLease) -> str:
        """Describe the memory of a task whose process was killed: how much was expected, and how much there was."""
        needed, most = self.needed_bytes(WaitingTask.from_lease(claim)), self._limit
        there = (
            ""
            if most.max_bytes is None
            else f" of {memory_text(most.max_bytes)} that it may have had ({most.source_text})"
        )
        return f"the machine may be short of memory: {memory_text(needed)} were expected{there}"

    def _costs_of_run(self, run_id: int) -> Mapping[str, TaskCost]:
        """Return the costs of a run's tasks by their keys; none where its recipe cannot be read."""
        if run_id not in self._runs:
            if len(self._runs) >= RUNS_KEPT:
                self._runs.clear()
                self._seconds_left.clear()
            try:
                run = find_run(self.workspace, run_id)
                data = self.workspace.find_dataset(run.dataset_id)
                costs = estimate_task_costs(
                    run.recipe,
                    data.records,
                    measure_recent_costs(self.workspace, data.records),
                    in_parts=self.workspace.tables.has_parts(data.table_sha256),
                )
                left = remaining_seconds(run.recipe, self.workspace.tables.count_levels(data.table_sha256), costs)
            # The task itself fails by the same error, which its run then reports.
            except (EngineError, WorkspaceError):
                costs, left = (), {}
            self._seconds_left[run_id] = left
            self._runs[run_id] = {cost.task.key: cost for cost in costs}
        return self._runs[run_id]
