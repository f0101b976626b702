"""The app is killed while it watches a run, and started again: it opens where it was, the run further on."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from prepared_workspaces import enter_recipe
from terminals import APP, PATIENCE, Pty, app_environment, kill_workers

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace.jobs.worker import start_worker
from sfumato.workspace.store.runs import find_run
from sfumato.workspace.store.workspace import Workspace

pytestmark = pytest.mark.slow

LONG = {
    "release": {"m": 200, "seed": 7},
    "study": [{"method": "studies.intruder_uncertainty", "variable": "age", "levels": [0.0, 0.05, 0.1, 0.15]}],
}


@pytest.fixture
def directory(workspace: Workspace, small_recipe: Callable[..., Recipe], small_data: Microdata) -> Iterator[Path]:
    """A workspace with a run that goes on for a while."""
    enter_recipe(workspace, small_recipe(**LONG), small_data)
    worker = start_worker(workspace.directory, 1)
    yield workspace.directory
    kill_workers(workspace.directory)
    worker.wait(PATIENCE)


def done_tasks(directory: Path) -> int:
    with Workspace.open(directory, read_only=True) as reader:
        return find_run(reader, 1).tasks_done


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def name_under_cursor(terminal: Pty) -> str:
    """The name of the number that the cursor is on; nothing where it is on none."""
    lines = terminal.screen.splitlines()
    found = [
        re.search(r"│ +(?:[✓✗] +)?(\S.*?)  ", lines[line]) for line in terminal.reversed_lines if line < len(lines)
    ]
    return next((match[1] for match in found if match), "")


def test_a_killed_app_opens_where_it_was_and_the_run_is_further_on(directory: Path, tmp_path: Path) -> None:
    start = [*APP, "--workspace", str(directory)], app_environment(tmp_path)
    with contextlib.closing(Pty(*start)) as first:
        first.see("Small study").press("enter").see(r"\[3 Runs\]", r"1 +Small study +. running +[1-9]\d*/\d+")
        # Numbers come in any order, above the cursor too, which stays with its own: the place is known by its text.
        first.press("4").see(r"\[Verdicts\]").press("]", "]").see(
            r"\[Numbers\]", "run 1", r"Findings: (?:1[4-9]|[2-9]\d) numbers", "rows so far", "People with an only match"
        ).press("g", "j", "j").until_quiet()
        wait_for(lambda: re.search(r'"row": "[1-9]', (directory / "app-state.json").read_text()) is not None)
        chosen = name_under_cursor(first)
        assert chosen
        before = done_tasks(directory)
        first.kill()
        header = first.screen.splitlines()[1]

    wait_for(lambda: done_tasks(directory) > before)

    with contextlib.closing(Pty(*start)) as second:
        second.see(r"\[Numbers\]", "run 1", "Small study")
        assert second.screen.splitlines()[1] == header
        wait_for(lambda: name_under_cursor(second) == chosen)
        second.press("3")
        line = re.search(state := r"1 +Small study +. (?:running +(\d+)/|done)", second.see(state).screen)
        further = int(line[1]) if line[1] else done_tasks(directory)  # how many tasks is said of runs that are not done
        assert further > before
