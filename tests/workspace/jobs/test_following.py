"""One worker for runs that are entered one after the other: kept while it lives, replaced where it has ended."""

from __future__ import annotations

from pathlib import Path

import pytest

from sfumato.workspace.jobs import following


def test_a_worker_stays_while_it_lives_and_is_replaced_where_it_has_ended(monkeypatch: pytest.MonkeyPatch):
    started = []

    class Worker:
        status: int | None = None

        def poll(self) -> int | None:
            return self.status

    def start(directory: Path, jobs: int, idle: float) -> Worker:
        started.append((jobs, idle))
        return Worker()

    monkeypatch.setattr(following, "start_worker", start)
    worker_of = following.WorkerStarter(Path("w"), 2, 30.0)
    first = worker_of()
    assert worker_of() is first
    Worker.status = 0
    assert worker_of() is not first
    assert started == [(2, 30.0)] * 2
