"""A release is killed, or fails, at two hundred moments: afterwards it is there with its row in the audit log, or nothing of it is."""

from __future__ import annotations

import hashlib
import random
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest
from prepared_tables import variables_of
from prepared_workspaces import begin_free_release, enter_recipe

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace.audit import AuditAct, audit_rows
from sfumato.workspace.jobs.queue import requeue_run
from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.release.verification import verify_release
from sfumato.workspace.service.release import write_run_release
from sfumato.workspace.store.process_identity import host_identity
from sfumato.workspace.store.releases_in_progress import settle_releases
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.upkeep.integrity import verify_workspace

pytestmark = pytest.mark.slow


@pytest.fixture
def workspace_with_runs(tmp_path: Path, small_data: Microdata) -> Path:
    """A workspace with a run that is done, small so that its release is quick."""
    recipe = Recipe.from_table(
        {
            "variables": variables_of("age: count quasi_identifier", "visits: count sensitive"),
            "release": {"m": 2, "seed": 1},
            "synthesis": [{"target": "visits", "method": "linear_regression", "predictors": ["age"]}],
            "measure": [{"method": "utility.ecdf"}],
        }
    )
    data = Microdata(recipe.schema, small_data.frame[["age", "visits"]].astype({"age": "int64"}), "confidential")
    directory = tmp_path / "workspace"
    with Workspace.create(directory, bytes(range(32))) as workspace:
        enter_recipe(workspace, recipe, data)
        run_worker(directory, idle=0)
    return directory


class Releases:
    """Releases in a process of their own, killed when they are told."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.asked: IO[str] = process.stdin
        self.told: IO[str] = process.stdout

    def __call__(self, moment: str) -> str:
        self.asked.write(f"{moment}\n")
        self.asked.flush()
        said = self.told.readline().strip()
        return f"{said} {self.told.readline().strip()}" if said.startswith(("count", "failed")) else said


@pytest.fixture
def releases(workspace_with_runs: Path, tmp_path: Path) -> Iterator[Releases]:
    script = str(Path(__file__).with_name("killed_releases.py"))
    with subprocess.Popen(
        [sys.executable, script, str(workspace_with_runs), str(tmp_path / "out")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield Releases(process)
        assert process.stdin is not None
        process.stdin.close()


def rows(workspace: Workspace) -> list[str]:
    wanted = (AuditAct.RELEASE_BEGUN, AuditAct.RUN_RELEASED, AuditAct.RELEASE_UNDONE)
    return [row.act for row in audit_rows(workspace.connection) if row.act in wanted]


def released_hashes(workspace: Workspace) -> list[str]:
    """The hashes that the audit log has of what was released."""
    rows = audit_rows(workspace.connection)
    return [row.details_table["manifest_sha256"] for row in rows if row.act == AuditAct.RUN_RELEASED]


@pytest.mark.parametrize(
    ("by_step", "by_time", "by_failure"), [(6, 2, 4), pytest.param(110, 40, 50, marks=pytest.mark.study)]
)
def test_whenever_it_is_killed_or_fails_it_is_there_with_its_row_or_not_at_all(
    workspace_with_runs: Path, releases: Releases, tmp_path: Path, by_step: int, by_time: int, by_failure: int
) -> None:
    out = tmp_path / "out"
    _, steps, of_files, seconds, *_ = releases("count").split()
    assert verify_release(out).problems == ()
    shutil.rmtree(out)
    rng, counted = random.Random(3), Counter[str]()
    last = int(steps)
    moments = [f"step:{round(1 + i * (last - 1) / (by_step - 1))}" for i in range(by_step)]
    moments += [f"time:{rng.uniform(0, float(seconds)):.4f}" for _ in range(by_time)]
    moments += [f"fail:{round(1 + i * (int(of_files) - 1) / (by_failure - 1))}" for i in range(by_failure)]
    assert len(set(moments)) == by_step + by_time + by_failure
    waiting = [*moments]
    while waiting:
        moment = waiting.pop(0)
        with Workspace.open(workspace_with_runs) as workspace:
            before = rows(workspace)
        ended = releases(moment)
        kind, at = moment.split(":")
        assert not (kind == "fail" and there_without_row(tmp_path, workspace_with_runs)), (
            "what failed has removed its files itself"
        )
        if kind == "time" and "killed" not in ended and float(at) > 0.01:  # that release was quicker than the one timed
            waiting.append(f"time:{float(at) / 2:.4f}")
        there = out.exists()
        with Workspace.open(workspace_with_runs) as workspace:
            requeue_run(workspace, 1)
            said = settle_releases(workspace)
            new = rows(workspace)[len(before) :]
            assert said == [], "resume has settled everything"
            assert verify_workspace(workspace).wrong == ()
        names = {path.name for path in tmp_path.iterdir()} - {"workspace"}
        if out.exists():
            assert (names, new) == ({"out"}, ["release begun", "run released"]), moment
            assert verify_release(out).problems == ()
            signed = hashlib.sha256((out / "internal/manifest.json").read_bytes()).hexdigest()
            with Workspace.open(workspace_with_runs) as workspace:
                assert released_hashes(workspace)[-1] == signed, moment
            shutil.rmtree(out)
        else:
            assert (names, new) in ((set(), []), (set(), ["release begun", "release undone"])), moment
        assert not (there and new[-1:] != ["run released"])
        how = "before it began" if not new else new[-1]
        # A head of the audit log that cannot be written beside the database is no reason to fail.
        otherwise = "went on after a failure" if kind == "fail" else "not stopped in time"
        counted[f"{next((word for word in ('killed', 'failed') if word in ended), otherwise)}: {how}"] += 1
    print("\n".join(f"{number:4}  {what}" for what, number in sorted(counted.items())))
    assert counted["not stopped in time: run released"] <= 0.1 * len(moments)
    assert sum(counted[what] for what in counted if what.startswith("went on")) <= 0.6 * by_failure
    with Workspace.open(workspace_with_runs) as workspace:
        assert write_run_release(workspace, 1, out, reason="agreed with the board").files


def there_without_row(place: Path, directory: Path) -> bool:
    """Whether files of a release that has not ended lie in a place."""
    with Workspace.open(directory) as workspace:
        ended = rows(workspace)[-1:] != [AuditAct.RELEASE_BEGUN]
    return any(place.glob(".out.writing-*")) or ((place / "out").exists() and not ended)


def test_the_next_release_settles_one_that_was_cut_off(
    workspace_with_runs: Path, releases: Releases, tmp_path: Path
) -> None:
    _, steps, *_ = releases("count").split()
    shutil.rmtree(tmp_path / "out")
    assert "killed" in releases(f"step:{int(steps) // 2}")
    assert len(list(tmp_path.glob(".out.writing-*"))) == 1, "the control: something is left"
    with Workspace.open(workspace_with_runs) as workspace:
        write_run_release(workspace, 1, tmp_path / "other", reason="agreed with the board")
        assert list(tmp_path.glob(".out.writing-*")) == []
        assert rows(workspace)[2:] == ["release begun", "release undone", "release begun", "run released"]


def test_a_release_that_still_goes_on_is_left_alone(workspace_with_runs: Path, tmp_path: Path) -> None:
    with Workspace.open(workspace_with_runs) as workspace, Workspace.open(workspace_with_runs) as other:
        with begin_free_release(workspace, 1, tmp_path / "out") as one:
            assert settle_releases(other) == []
            assert one.working_folder.is_dir()
            assert any("has begun and not ended" in note for note in verify_workspace(other).notes)
        workspace.connection.execute("DELETE FROM releasing")
        assert "nothing says how it ended" in verify_workspace(other).wrong[-1]


def test_a_directory_that_others_name_is_not_removed(workspace_with_runs: Path, tmp_path: Path) -> None:
    """Whoever may write the database, but has not the key, has nothing removed by it."""
    mine = tmp_path / ".out.writing-0000"
    mine.mkdir()
    with Workspace.open(workspace_with_runs) as workspace:
        workspace.connection.execute(
            "INSERT INTO releasing VALUES (1, 1, ?, ?, '{}', '', 1, ?, '1', 'x')",
            (
                str(mine),
                str(tmp_path / "out"),
                host_identity(),
            ),
        )
        assert "not as it was entered" in settle_releases(workspace)[0]
    assert mine.is_dir()
