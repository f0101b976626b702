"""Where tasks are computed: one thread each, killed alone, gone with their worker; memory counted for each."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Future
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from sfumato.engine.execution.tasks import TaskKind
from sfumato.workspace.jobs import run_task
from sfumato.workspace.jobs.pool import IN_PROCESS, ProcessPool, TaskPool, open_pool
from sfumato.workspace.jobs.queue import TaskResult
from sfumato.workspace.jobs.run_task import TaskInput, peak_memory_bytes, reset_peak_bytes
from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.store.process_identity import has_ended, host_identity, process_start
from sfumato.workspace.store.run_log import run_log_path
from sfumato.workspace.store.runs import list_tasks
from sfumato.workspace.store.tables import TableStore
from sfumato.workspace.store.workspace import Workspace

MEGABYTE = 1 << 20


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch) -> Iterator[ProcessPool]:
    """Two processes that have not imported what computes a task: none of these has one."""
    monkeypatch.setattr("sfumato.workspace.jobs.pool.COMPUTING_MODULE", "json")
    opened = ProcessPool(2)
    yield opened
    opened.close()


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.slow
def test_a_task_may_be_stopped_before_its_process_has_it(two: ProcessPool) -> None:
    assert two.submit_task(pow, 2, 10).result(60) == 1024
    for _ in range(30):
        two.stop_task(two.submit_task(time.sleep, 60))
        assert two.submit_task(pow, 2, 11).result(60) == 2048


@pytest.mark.slow
def test_processes_are_those_of_loky_itself_and_start_without_joblib() -> None:
    script = """
import sys
from sfumato.workspace.jobs.pool import open_pool
with open_pool(1) as pool:
    assert pool.submit_task(pow, 2, 10).result(60) == 1024
sys.exit("joblib" in sys.modules or "loky" not in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", script], check=False, timeout=120).returncode == 0


@pytest.mark.slow
def test_a_process_that_is_killed_takes_no_other_along(two: ProcessPool) -> None:
    slow, other = two.submit_task(time.sleep, 60), two.submit_task(os.getpid)
    first = other.result(30)
    two.stop_task(slow)
    again = two.submit_task(os.getpid), two.submit_task(os.getpid)
    assert first in {future.result(30) for future in again}
    assert os.getpid() not in {future.result(30) for future in again}


@pytest.mark.slow
def test_a_process_that_dies_breaks_its_own_task_and_is_started_again(two: ProcessPool) -> None:
    dying = two.submit_task(os._exit, 1)
    with pytest.raises(BrokenExecutor):
        dying.result(30)
    assert [two.submit_task(abs, -number).result(30) for number in range(4)] == [0, 1, 2, 3]


@pytest.mark.slow
def test_an_error_comes_back_and_the_process_stays(two: ProcessPool) -> None:
    with pytest.raises(ZeroDivisionError):
        two.submit_task(divmod, 1, 0).result(30)
    assert two.submit_task(abs, -1).result(30) == 1


@pytest.mark.slow
def test_processes_do_not_outlive_a_worker_that_is_killed() -> None:
    script = (
        "import os, time\nfrom sfumato.workspace.jobs.pool import ProcessPool\np = ProcessPool(1)\n"
        "print(p.submit_task(os.getpid).result(), flush=True)\np.submit_task(time.sleep, 60)\ntime.sleep(60)"
    )
    worker = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert worker.stdout is not None
    computing = int(worker.stdout.readline())
    born = process_start(computing)
    worker.send_signal(signal.SIGKILL)
    worker.communicate()
    wait_until(lambda: has_ended(computing, host_identity(), born))


def test_no_jobs_means_in_this_process() -> None:
    with open_pool(IN_PROCESS) as opened:
        assert type(opened) is TaskPool
        assert opened.submit_task(os.getpid).result() == os.getpid()


@pytest.mark.slow
def test_every_blas_has_one_thread_while_a_task_is_computed(
    workspace: Workspace, enter: Callable[..., int], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    plain = dict(run_task._COMPUTE_BY_KIND)

    def looking(tables: TableStore, order: TaskInput, report: Any, key: bytes) -> TaskResult:
        np.ones((50, 50)) @ np.ones((50, 50))
        seen.extend(library["num_threads"] for library in threadpool_info())
        return plain[TaskKind(order.lease.kind)](tables, order, report, key)

    for kind in plain:
        monkeypatch.setitem(run_task._COMPUTE_BY_KIND, kind, looking)
    enter()
    run_worker(workspace.directory, idle=0)
    assert seen
    assert set(seen) == {1}


def test_the_peak_is_that_of_the_task_and_not_of_the_processs_life() -> None:
    if not os.access("/proc/self/clear_refs", os.W_OK):
        pytest.skip("the system keeps no peak that can be reset")
    reset_peak_bytes()
    large = np.ones(64 * MEGABYTE // 8)
    with_large = peak_memory_bytes()
    del large
    reset_peak_bytes()
    without = peak_memory_bytes()
    assert 48 * MEGABYTE < with_large - without < 96 * MEGABYTE


def test_a_process_is_gone_when_its_number_belongs_to_another() -> None:
    own = process_start(os.getpid())
    assert not has_ended(os.getpid(), host_identity(), own)
    assert has_ended(os.getpid(), host_identity(), "1")
    assert not has_ended(os.getpid(), "another machine", "1")
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    assert has_ended(ended.pid, host_identity(), "") or process_start(ended.pid)


def test_a_worker_that_is_told_to_end_notes_what_it_had_in_hand(
    workspace: Workspace, enter: Callable[..., int], request: pytest.FixtureRequest
) -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell has its background jobs ignore it
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))

    class Endless(TaskPool):
        def submit_task(self, func: Callable[..., Any], *args: Any, needed_bytes: int = 0) -> Future[Any]:
            threading.Timer(0.1, signal.raise_signal, [signal.SIGINT]).start()
            return Future()

    run_id = enter()
    with pytest.raises(KeyboardInterrupt):
        run_worker(workspace.directory, opened=Endless())
    assert "fit/0" in (said := run_log_path(workspace.directory, run_id).read_text())
    assert "given back unfinished: the worker ends" in said
    assert {task.state for task in list_tasks(workspace, run_id)} == {"waiting"}
