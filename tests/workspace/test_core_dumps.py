"""No process that holds the key or the data leaves a core dump."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sfumato.engine.methods.run import PUBLIC
from sfumato.workspace.jobs.pool import ProcessPool
from sfumato.workspace.jobs.processes import call_in_process
from sfumato.workspace.jobs.worker import start_worker
from sfumato.workspace.store.keys import generate_key
from sfumato.workspace.store.process_identity import has_ended, host_identity, process_start
from sfumato.workspace.store.workspace import Workspace

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="prctl is Linux's")
NONE = [0, 0, 0]


LIMIT, DUMPABLE = "__import__('resource').getrlimit(4)", "__import__('ctypes').CDLL(None).prctl(3, 0, 0, 0, 0)"
CORE_DUMPS = f"[*{LIMIT}, {DUMPABLE}]"
"""The two limits on a core dump of a process, and whether it is dumpable: 4 is RLIMIT_CORE, 3 PR_GET_DUMPABLE."""
SHOW = f"\nprint(__import__('json').dumps({CORE_DUMPS}))"


def after(lines: str, *arguments: str) -> list[int]:
    """The same in a new process after these lines."""
    done = subprocess.run([sys.executable, "-c", lines + SHOW, *arguments], capture_output=True, text=True, check=True)
    found: list[int] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.slow
def test_a_process_is_dumpable_until_it_reads_a_key(tmp_path: Path) -> None:
    assert after("")[2] == 1, "the control"
    Workspace.create(tmp_path / "w").close()
    read = "import sys; from pathlib import Path; from sfumato.workspace.store.keys import read_key; read_key(Path(sys.argv[1]))"
    assert after(read, str(tmp_path / "w" / "key")) == NONE
    assert after("from sfumato.workspace.store.keys import generate_key; generate_key()") == NONE


def test_the_process_that_makes_a_key_leaves_no_dump() -> None:
    assert generate_key()
    assert eval(CORE_DUMPS) == NONE


@pytest.mark.slow
def test_the_command_line_leaves_no_dump() -> None:
    begin = """
import contextlib
from sfumato.tui.cli.main import main
with contextlib.suppress(SystemExit):
    main(["--version"])
"""
    assert after(begin) == NONE


@pytest.mark.slow
def test_a_worker_of_a_cluster_leaves_no_dump_from_its_first_task_on() -> None:
    """No process of ours until then: ``run_task`` switches dumps off before it looks at its task, here none at all."""
    begin = """
import contextlib
from pathlib import Path
from sfumato.workspace.jobs.run_task import run_task
with contextlib.suppress(AttributeError):
    run_task(Path("."), None)
"""
    assert after(begin) == NONE


@pytest.fixture
def one() -> Iterator[ProcessPool]:
    opened = ProcessPool(1)
    yield opened
    opened.close()


@pytest.mark.slow
def test_a_compute_process_leaves_no_dump(one: ProcessPool) -> None:
    assert one.submit_task(eval, CORE_DUMPS).result(60) == NONE


@pytest.mark.slow
def test_a_call_beside_the_app_leaves_no_dump() -> None:
    assert call_in_process(eval, CORE_DUMPS, what="the question") == NONE


@pytest.mark.slow
def test_a_worker_leaves_no_dump_and_is_still_known_to_live(tmp_path: Path) -> None:
    """/proc says of a process that is not dumpable when it began, and no longer whose memory it has."""
    Workspace.create(tmp_path / "w", PUBLIC).close()
    worker = start_worker(tmp_path / "w")
    try:
        deadline = time.monotonic() + 60
        with Workspace.open(tmp_path / "w") as workspace:
            while not workspace.connection.execute("SELECT 1 FROM worker").fetchall():
                assert time.monotonic() < deadline
                time.sleep(0.02)
        status = Path(f"/proc/{worker.pid}/limits").read_text("utf-8")
        line = next(one for one in status.splitlines() if one.startswith("Max core file size"))
        assert line.split()[4:6] == ["0", "0"]
        assert Path(f"/proc/{worker.pid}/environ").stat().st_uid == 0
        assert not has_ended(worker.pid, host_identity(), process_start(worker.pid))
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(30) == 0
    finally:
        worker.kill()
        worker.wait()


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("setpriv") is None, reason="becomes another user to try it")
def test_a_user_who_is_not_root_measures_memory_and_processes_as_before(tmp_path: Path) -> None:
    """Root reads and writes everything in /proc. A user loses the files of a process that is not dumpable."""
    script = """
import os
from sfumato.workspace.process import forbid_core_dumps
from sfumato.workspace.jobs import run_task
from sfumato.workspace.store.process_identity import process_start, has_ended, host_identity
forbid_core_dumps()
try:
    open("/proc/self/clear_refs", "w").close()
except PermissionError:
    print("control")
block = bytearray(200_000_000)
high = run_task.peak_memory_bytes()
del block
run_task.reset_peak_bytes()
print(high - run_task.peak_memory_bytes() > 150_000_000, process_start(os.getpid()) != "", has_ended(os.getpid(), host_identity(), process_start(os.getpid())))
"""
    other = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", sys.executable, "-c"]
    if subprocess.run([*other, "import sfumato.workspace"], capture_output=True, check=False, cwd="/").returncode:
        pytest.skip("another user cannot read this installation")
    done = subprocess.run(
        [*other, script],
        capture_output=True,
        text=True,
        check=True,
        cwd="/",
    )
    assert done.stdout.split() == ["control", "True", "True", "False"]
