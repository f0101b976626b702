"""Which tasks a worker starts beside those it holds: as many as have room in memory, and none that has not, were it alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from sfumato.engine.errors import EngineError

from ..errors import WorkspaceError
from ..store.runs import find_run
from ..store.workspace import Workspace
from .memory import ALWAYS, MemoryLimit, size_text
from .queue import Claim, Waiting
from .task_costs import TaskCost, earlier_runs, refusal, task_costs

RUNS_KEPT = 16
MARGIN = 1.1
"""What a task gets beyond the peak of one like it in the same run."""


class Admission:
    """Counts the memory of the tasks that a worker holds. ``limit`` is asked whenever none is held.

    ``apart``: tasks do not share the memory, since each has a machine's, or a cluster's worker's, to itself.
    """

    def __init__(self, workspace: Workspace, limit: Callable[[], MemoryLimit], *, apart: bool = False) -> None:
        self.workspace = workspace
        self._ask, self._limit, self._apart = limit, limit(), apart
        self._held: dict[int, int] = {}
        self._runs: dict[int, Mapping[str, TaskCost]] = {}
        self._alone: set[int] = set()

    def fits(self, waiting: Waiting) -> bool:
        """Whether a waiting task has room beside those held. One that never will has: it is claimed to be refused."""
        if not self._held or self._apart:
            return True
        if waiting.task_id in self._alone or self._alone & self._held.keys():
            return False
        needed, most = self.needed(waiting), self._limit.bytes
        if most is None:
            return True
        if needed + sum(self._held.values()) > max(most, ALWAYS):
            return False
        return self._limit.fixed or needed <= max(self._ask().bytes or 0, ALWAYS)

    def hold(self, claim: Claim) -> None:
        self._held[claim.task_id] = self.needed(Waiting.of(claim))

    def leave(self, claim: Claim) -> None:
        self._held.pop(claim.task_id, None)
        if not self._held:
            self._limit = self._ask()

    def try_alone(self, claim: Claim) -> None:
        """Start a task whose process was killed beside no other from now on."""
        self._alone.add(claim.task_id)

    def needed(self, waiting: Waiting) -> int:
        """Bytes that a task will take: by those of its step that are done in the same run, else as estimated."""
        row = self.workspace.connection.execute(
            """SELECT max(peak_bytes) FROM task WHERE run_id = ? AND kind = ? AND item = ? AND state = 'done'
               AND typeof(peak_bytes) = 'integer'""",
            (waiting.run_id, waiting.kind, waiting.item),
        ).fetchone()
        if row[0]:
            return int(MARGIN * row[0])
        cost = self._costs(waiting.run_id).get(waiting.key)
        return 0 if cost is None else cost.memory

    def refusal(self, claim: Claim) -> str:
        """Why a claimed task's run is not begun, or does not go on, in words; empty where all of its tasks have room.

        Tasks that are done say nothing any more: what is left is what counts.
        """
        costs = self._costs(claim.run_id)
        if not costs or self._limit.bytes is None:
            return ""
        rows = self.workspace.connection.execute(
            "SELECT key FROM task WHERE run_id = ? AND state <> 'done' ORDER BY id", (claim.run_id,)
        ).fetchall()
        left = [costs[row["key"]] for row in rows if row["key"] in costs]
        said = refusal(left, self._limit) if left else ""
        if said and not self._limit.fixed:  # others may have left memory since
            now = self._ask()
            self._limit = now if now.bytes is None else replace(now, bytes=now.bytes + sum(self._held.values()))
            said = refusal(left, self._limit)
        return said

    def killed(self, claim: Claim) -> str:
        """What to say of a task whose process was killed: how much it was expected to take, and what it had."""
        needed, most = self.needed(Waiting.of(claim)), self._limit
        there = "" if most.bytes is None else f" of {size_text(most.bytes)} that it may have had ({most.said})"
        return f"the machine may be short of memory: {size_text(needed)} were expected{there}"

    def _costs(self, run_id: int) -> Mapping[str, TaskCost]:
        """The tasks of a run by their keys; none where the run is gone or its recipe cannot be read, which it fails by."""
        if run_id not in self._runs:
            if len(self._runs) >= RUNS_KEPT:
                self._runs.clear()
            try:
                run = find_run(self.workspace, run_id)
                records = self.workspace.dataset(run.dataset_id).records
                costs = task_costs(run.recipe, records, earlier_runs(self.workspace, records))
            except (EngineError, WorkspaceError):
                costs = ()
            self._runs[run_id] = {cost.task.key: cost for cost in costs}
        return self._runs[run_id]
