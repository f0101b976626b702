"""How long a run will still take, from the tasks that are done and how far the others have come."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

__all__ = ["RunningTask", "estimate_left", "seconds_left"]


@dataclass(frozen=True, slots=True)
class RunningTask:
    """A task under way: seconds since it was claimed, and the share of it that is done, 0 before it has reported."""

    kind: str
    elapsed: float
    share: float

    def projected(self) -> float | None:
        """Seconds that it will have taken, at the pace so far."""
        return self.elapsed / self.share if self.share > 0 else None


def estimate_left(
    done: Mapping[str, tuple[int, float]], running: Sequence[RunningTask], waiting: Mapping[str, int]
) -> float | None:
    """Seconds until nothing is left; None while there is nothing to judge by.

    ``done`` gives for each kind of task how many have ended and their seconds in all. A task will take what those of its
    kind took on average; those of a kind of which none has ended, what all took. The work left is shared by as many as
    run now.
    """
    known = dict(done)
    for task in running:
        if task.kind not in done and (projected := task.projected()) is not None:
            count, seconds = known.get(task.kind, (0, 0.0))
            known[task.kind] = (count + 1, seconds + projected)
    tasks = sum(count for count, _ in known.values())
    if not tasks:
        return None
    overall = sum(seconds for _, seconds in known.values()) / tasks
    mean = {kind: seconds / count for kind, (count, seconds) in known.items()}
    left = sum(count * mean.get(kind, overall) for kind, count in waiting.items())
    for task in running:
        left += max(0.0, (task.projected() or mean.get(task.kind, overall)) - task.elapsed)
    return left / max(1, len(running))


def seconds_left(connection: sqlite3.Connection, run_id: int, now: float) -> float | None:
    """The estimate for a run as it stands."""
    counted = connection.execute(
        """SELECT kind, count(*) FILTER (WHERE state = 'done'), sum(seconds) FILTER (WHERE state = 'done'),
                  count(*) FILTER (WHERE state = 'waiting') FROM task WHERE run_id = ? GROUP BY kind""",
        (run_id,),
    ).fetchall()
    under_way = connection.execute(
        "SELECT kind, started, done, total FROM task WHERE run_id = ? AND state = 'running'", (run_id,)
    )
    done = {kind: (ended, seconds or 0.0) for kind, ended, seconds, _ in counted if ended}
    waiting = {kind: left for kind, _, _, left in counted if left}
    running = [
        RunningTask(kind, max(0.0, now - (started or now)), far / total if total else 0.0)
        for kind, started, far, total in under_way
    ]
    return estimate_left(done, running, waiting)
