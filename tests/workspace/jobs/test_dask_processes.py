"""A Dask cluster of processes of their own: the same bytes, workers that die, memory that each has. Skipped without the package distributed."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.execution.tasks import execute_run
from sfumato.engine.methods import measured_rates
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace.errors import NoCluster, NotEnoughMemory, WorkspaceError
from sfumato.workspace.jobs import pool
from sfumato.workspace.jobs.computing import ClusterState, check_runs_fit, inspect_cluster
from sfumato.workspace.jobs.pool import DaskPool
from sfumato.workspace.jobs.settings import DASK_VARIABLE, MEMORY_VARIABLE
from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.store.runs import RunState, find_run, list_runs
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.results import read_result_rows

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
pytest.importorskip("distributed")

Enter = Callable[..., int]
DASK_COMMAND = Path(sys.executable).with_name("dask")
LONG = {"m": 30, "seed": 3}
PATIENCE = 120.0
GB = 1_000_000_000


class Cluster:
    """A scheduler and workers, each a process; none is started again."""

    def __init__(self, folder: Path, memory: Sequence[str]) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.address = f"tcp://127.0.0.1:{probe.getsockname()[1]}"
        self.folder = folder
        self.scheduler = self._start("scheduler", "--host", self.address, "--no-dashboard")
        self.workers = [
            self._start(
                "worker", self.address, "--no-nanny", "--nthreads", "1", "--memory-limit", limit, "--no-dashboard"
            )
            for limit in memory
        ]

    def _start(self, *words: str) -> subprocess.Popen[bytes]:
        quiet = subprocess.DEVNULL
        return subprocess.Popen(
            [DASK_COMMAND, *words], cwd=self.folder, stdout=quiet, stderr=quiet, start_new_session=True
        )

    def wait(self) -> None:
        """Until every worker is there."""
        deadline = time.monotonic() + PATIENCE
        while True:
            with contextlib.suppress(NoCluster):
                if inspect_cluster(self.address).workers == len(self.workers):
                    return
            assert time.monotonic() < deadline, "the cluster does not start"
            time.sleep(0.2)

    def close(self) -> None:
        """End the processes that were started here."""
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Cluster]]:
    """Start a cluster whose workers have so much memory."""
    opened: list[Cluster] = []

    def make(*memory: str) -> Cluster:
        opened.append(Cluster(tmp_path, memory))
        opened[-1].wait()
        return opened[-1]

    yield make
    for cluster in opened:
        cluster.close()


def test_two_workers_find_the_same_bytes_though_one_is_killed_in_mid_run_and_a_run_without_any_ends_soon(
    start: Callable[..., Cluster],
    workspace: Workspace,
    enter: Enter,
    small_recipe: Callable[..., Recipe],
    small_data: Microdata,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = start("2GB", "2GB")
    run_id = enter(release=LONG)

    def kill_one() -> None:
        with Workspace.open(workspace.directory) as own:
            deadline = time.monotonic() + PATIENCE
            while find_run(own, run_id).tasks_done < 5 and time.monotonic() < deadline:
                time.sleep(0.01)
        os.kill(cluster.workers[0].pid, signal.SIGKILL)

    killer = threading.Thread(target=kill_one)
    killer.start()
    run_worker(workspace.directory, idle=0, dask=cluster.address)
    killer.join()
    run = find_run(workspace, run_id)
    assert (run.state, run.error) == (RunState.DONE, "")
    assert read_result_rows(workspace, run_id) == list(
        execute_run(small_recipe(release=LONG), small_data, key=PUBLIC).rows
    )
    tables = {path.name for path in workspace.tables.directory.glob("*.parquet")}

    monkeypatch.setattr(pool, "NO_WORKER_SECONDS", 1.0)
    again = enter()
    os.kill(cluster.workers[1].pid, signal.SIGKILL)
    with pytest.raises(NoCluster):
        run_worker(workspace.directory, idle=0, dask=cluster.address)
    assert find_run(workspace, again).state in (RunState.QUEUED, RunState.RUNNING)
    run_worker(workspace.directory, idle=0)
    assert find_run(workspace, again).state is RunState.DONE
    assert tables < {path.name for path in workspace.tables.directory.glob("*.parquet")} | tables


def test_a_task_goes_where_it_has_room_and_is_refused_where_none_has(
    start: Callable[..., Cluster], workspace: Workspace, enter: Enter, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = start("1GB", "4GB")
    assert inspect_cluster(cluster.address) == ClusterState(2, 4 * GB)
    large = cluster.workers[1].pid
    opened = DaskPool(cluster.address)
    try:
        assert {opened.submit_task(os.getpid, needed_bytes=2 * GB).result(60) for _ in range(6)} == {large}
        assert {opened.submit_task(os.getpid).result(60) for _ in range(1)} <= {
            worker.pid for worker in cluster.workers
        }
    finally:
        opened.close()
    monkeypatch.setenv(DASK_VARIABLE, cluster.address)
    monkeypatch.setenv(MEMORY_VARIABLE, "")
    monkeypatch.setitem(measured_rates.RATES, "synthesis.linear_regression", (1.0, 3.5e9, 0.0, 0.0))
    with pytest.raises(
        NotEnoughMemory,
        match=r"needs about 3.5 GB of memory, and there is about 3.2 GB \(80% of the memory of the largest worker",
    ):
        enter()
    assert list_runs(workspace) == []


@pytest.mark.study
def test_where_no_scheduler_answers_nothing_is_stored(
    workspace: Workspace, small: tuple[Recipe, Microdata], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(DASK_VARIABLE, "tcp://127.0.0.1:9")
    with pytest.raises(WorkspaceError, match="no Dask scheduler answers at tcp://127"):
        check_runs_fit(workspace, [(small[0], 80)])


RECIPE = """
[variables]
region = { kind = "categorical" }
income = { kind = "continuous" }
[release]
m = 2
seed = 1
[[synthesis]]
target = "income"
method = "linear_regression"
predictors = ["region"]
[[measure]]
method = "utility.ecdf"
"""


@pytest.mark.study
def test_the_cluster_of_the_manual_computes_a_run_over_tls(tmp_path: Path) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    manual = (Path(__file__).parents[3] / "workspace" / "manual" / "running.md").read_text("utf-8")
    block = manual.partition("<!-- cluster -->")[2].partition("```sh\n")[2].partition("```")[0]
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    (tmp_path / "recipe.toml").write_text(f'[data]\nfile = "data.csv"\n{RECIPE}')
    (tmp_path / "data.csv").write_text(
        "region,income\n" + "".join(f"{'north' if n % 2 else 'south'},{100 + n % 7 + n % 2}\n" for n in range(200))
    )
    bin_ = Path(sys.executable).parent
    lines = [
        line.replace("8786", port).replace(
            "RECIPE", f"{tmp_path}/recipe.toml --workspace {tmp_path}/on --key public --json {tmp_path}/on.json --quiet"
        )
        for line in block.splitlines()
    ]
    here = f"sfumato run {tmp_path}/recipe.toml --workspace {tmp_path}/here --key public --json {tmp_path}/here.json --quiet"
    script = "\n".join(["set -e", f"PATH={bin_}:$PATH", *lines, here])
    done = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, done.stderr[-2000:]
    without = [(tmp_path / name).read_text().partition('"rows"')[2] for name in ("on.json", "here.json")]
    assert without[0] == without[1] != ""
    assert (tmp_path / "cluster" / "key.pem").stat().st_mode & 0o077 == 0
    tables = [{path.name for path in (tmp_path / name / "tables").glob("*.parquet")} for name in ("on", "here")]
    assert tables[0] == tables[1] != set()
