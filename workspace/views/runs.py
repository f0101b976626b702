"""What each screen shows of projects and runs, put together in SQL."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from ..jobs.processes import gone
from .queries import Connected, Run, RunState, find_run, list_runs

__all__ = ["ProjectLine", "RunLine", "Tally", "attended", "project_lines", "run_line", "run_lines"]

HEARTBEAT_LOST_SECONDS = 30.0
WORKER_STARTS_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Tally:
    """How many verdicts of a run came out which way."""

    passed: int = 0
    failed: int = 0
    not_computed: int = 0

    @property
    def total(self) -> int:
        """All of them."""
        return self.passed + self.failed + self.not_computed


@dataclass(frozen=True)
class RunLine:
    """A run, its verdicts, what its workers are doing, and whether any worker lives."""

    run: Run
    tally: Tally
    doing: str
    attended: bool

    @property
    def stalled(self) -> bool:
        """Whether the run ought to go on and nobody works on it."""
        return not self.run.state.ended and not self.attended

    @property
    def resumable(self) -> bool:
        """Whether resuming would do anything."""
        return self.stalled or self.run.state in (RunState.INTERRUPTED, RunState.CANCELLED, RunState.FAILED)


@dataclass(frozen=True)
class ProjectLine:
    """A project, how much is in it, and its newest run."""

    id: int
    name: str
    created: str
    datasets: int
    runs: int
    last: RunLine | None


def project_lines(workspace: Connected) -> list[ProjectLine]:
    """Every project, the one with the newest run first."""
    rows = workspace.connection.execute(
        """SELECT project.id, name, created,
                  (SELECT count(*) FROM dataset WHERE project_id = project.id) AS datasets,
                  (SELECT count(*) FROM run WHERE project_id = project.id) AS runs,
                  (SELECT max(id) FROM run WHERE project_id = project.id) AS newest
           FROM project ORDER BY newest DESC NULLS LAST, project.id DESC"""
    ).fetchall()
    newest = {row["id"]: run_line(workspace, row["newest"]) for row in rows if row["newest"] is not None}
    return [ProjectLine(r["id"], r["name"], r["created"], r["datasets"], r["runs"], newest.get(r["id"])) for r in rows]


def run_line(workspace: Connected, run_id: int) -> RunLine:
    """One run. Raises NotFound."""
    return _lines(workspace, [find_run(workspace, run_id)])[0]


def run_lines(workspace: Connected, project_id: int) -> list[RunLine]:
    """The runs of a project, newest first."""
    return _lines(workspace, list_runs(workspace, project_id))


def _lines(workspace: Connected, runs: Sequence[Run]) -> list[RunLine]:
    alive, grace = attended(workspace), time.time() - WORKER_STARTS_SECONDS
    return [
        RunLine(run, _tally(workspace, run.id), _doing(workspace, run), alive or run.created > grace) for run in runs
    ]


def attended(workspace: Connected) -> bool:
    """Whether some worker has given a sign of life lately, and its process is not known to be gone."""
    since = time.time() - HEARTBEAT_LOST_SECONDS
    rows = workspace.connection.execute(
        """SELECT pid, host, birth FROM worker LEFT JOIN worker_process ON worker_id = worker.id
           WHERE stopped IS NULL AND heartbeat > ?""",
        (since,),
    )
    return any(row["host"] is None or not gone(row["pid"], row["host"], row["birth"]) for row in rows)


def _tally(workspace: Connected, run_id: int) -> Tally:
    query = "SELECT json_extract(verdict, '$.outcome'), count(*) FROM verdict WHERE run_id = ? GROUP BY 1"
    counts = {row[0]: row[1] for row in workspace.connection.execute(query, (run_id,))}
    return Tally(counts.get("pass", 0), counts.get("fail", 0), counts.get("not computed", 0))


def _doing(workspace: Connected, run: Run) -> str:
    """``fit 400/2,000 emcee``: the first task that is being computed; empty when there is none."""
    if run.state is not RunState.RUNNING:
        return ""
    query = "SELECT kind, done, total, what FROM task WHERE run_id = ? AND state = 'running' ORDER BY id LIMIT 1"
    row = workspace.connection.execute(query, (run.id,)).fetchone()
    if row is None:
        return ""
    far = f" {row['done']:,}/{row['total']:,}" if row["total"] else ""
    return f"{row['kind']}{far} {row['what']}".strip()
