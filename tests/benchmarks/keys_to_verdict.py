"""Keys and seconds from an empty workspace to a verdict and to a release, pressed in the app on a pseudo-terminal.

    python tests/benchmarks/keys_to_verdict.py [--size 80x24] [--only WORD]

Needs the files of SFUMATO_DATA. Every key counts, those that type a path too; the text of a justification and the name of a folder count apart. Seconds run from
the first key to the last picture; in brackets those of them in which the app or a worker computed and nobody could press a key.
"""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pty_app import Terminal, plain, read_request

from sfumato.engine.methods.run import PUBLIC
from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.recipes import find_recipe
from sfumato.workspace.service.prepare import prepare_run
from sfumato.workspace.store.database import DATABASE
from sfumato.workspace.store.workspace import Workspace

ADULT_ROLES = "iiwiiisiiiooiis"
"""A letter for each of the fifteen variables: i quasi-identifier, s sensitive, w weight, o other."""
WAIT_SECONDS = 900.0


@dataclass(frozen=True)
class Wait:
    """Until the newest run is done, or until a text is on the screen."""

    text: str = ""


@dataclass(frozen=True)
class Typed:
    """Text that is no key of the app's: a reason, a folder."""

    text: str


Step = str | Wait | Typed
IMPORT_ADULT = ("I", "a", "right", "enter", Wait("How adult.csv is read"), "enter", Wait("Role of age"))
ROLES: tuple[Step, ...] = tuple(ADULT_ROLES)
RUN: tuple[Step, ...] = (Wait("runs this plan"), "R", "y", Wait(), "4", Wait("Disclosure risk"))


@dataclass(frozen=True)
class Task:
    """What is to be reached from which workspace, and by which keys."""

    what: str
    goal: int
    start: str
    steps: tuple[Step, ...]


TASKS = (
    Task(
        "ce, imported, to a verdict", 12, "",
        ("I", "c", "right", "enter", Wait("Role of"), *"iiis", Wait("Draft a plan"), "enter", *RUN),
    ),
    Task("Adult, imported, to a verdict", 28, "", (*IMPORT_ADULT, *ROLES, Wait("Draft a plan"), "enter", *RUN)),
    Task(
        "Adult, k = 5 and l = 3", 30, "",
        (*IMPORT_ADULT, *ROLES, Wait("Draft a plan"), "right", Wait("generalised"), "down", "down", "3", "enter", *RUN),
    ),
    Task("three riskiest records and why", 2, "done", ("4", "4", Wait("driver"))),
    Task(
        "a verdict not met, its lever, a new run", 4, "not met",
        ( "enter", Wait("enter changes"), "enter", Wait("The plan has changed"), "R", Wait("Run this plan"), "y", Wait()),
    ),
    Task(
        "release with one waiver", 6, "not met",
        (
            "w", Wait("unmet_thresholds"), "enter", Wait("Justification for"), Typed("Agreed with the data owner on 3 March."), "enter",
            Wait("waived"), "w", Typed("out"), "enter", Wait("recorded"), "y", Wait("leaves the building"),
        ),
    ),
)  # fmt: skip


def build(directory: Path, start: str) -> None:
    """An empty workspace, or one whose only run is done; with a limit that is ``not met`` where that is asked for."""
    from sfumato.tui.session.state import AppState, save_state

    workspace = Workspace.create(directory)
    if not start:
        workspace.close()
        return
    settings = ["synthesis[1].minbucket=5"] if start == "not met" else []
    prepare_run(find_recipe("randhie"), settings=settings, key=PUBLIC).enter(workspace)
    workspace.close()
    run_worker(directory, jobs=1, idle=0)
    save_state(directory, AppState(project=1, run=1, tab="verdicts" if start == "not met" else "runs"))


class Hand:
    """Presses the keys of a task and waits where a person would."""

    def __init__(self, terminal: Terminal, directory: Path) -> None:
        self._terminal, self._directory = terminal, directory
        self.keys, self.waited = 0, 0.0
        self._seen = ""
        self._runs = self._done_runs()

    def _done_runs(self) -> int:
        with sqlite3.connect(f"file:{self._directory / DATABASE}?mode=ro", uri=True) as connection:
            return int(connection.execute("SELECT count(*) FROM run WHERE state = 'done'").fetchone()[0])

    def do(self, steps: Sequence[Step]) -> None:
        for step in steps:
            if isinstance(step, Wait):
                self._wait(step)
            elif isinstance(step, Typed):
                for character in step.text:
                    self._press(character)
            else:
                self.keys += 1
                self._seen = ""
                self._press(step)

    def _press(self, key: str) -> None:
        self._seen += plain(self._terminal.read_after(key))

    def _wait(self, step: Wait) -> None:
        """Raises TimeoutError where it does not come about."""
        begun = time.perf_counter()
        while not (self._shows(step.text) if step.text else self._done_runs() > self._runs):
            if time.perf_counter() - begun > WAIT_SECONDS:
                raise TimeoutError(f"{step}: {self._seen[-2000:]}")
            self._seen += plain(self._terminal.bytes_within(0.2))
        self.waited += time.perf_counter() - begun

    def _shows(self, text: str) -> bool:
        return re.sub(r"\s+", "", text) in re.sub(r"\s+", "", self._seen)


def measure(task: Task, columns: int, lines: int) -> tuple[int, float, float]:
    """Keys, seconds, and seconds of waiting."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        for name in ("adult.csv", "ce.csv"):
            shutil.copy(Path(os.environ["SFUMATO_DATA"]) / name, place)
        build(place / "workspace", task.start)
        terminal = Terminal.of_app(place / "workspace", columns, lines)
        try:
            terminal.settle(2.0)
            hand = Hand(terminal, place / "workspace")
            begun = time.perf_counter()
            hand.do(task.steps)
            return hand.keys, time.perf_counter() - begun, hand.waited
        finally:
            terminal.close()


def main() -> None:
    """Press every task that was asked for."""
    asked = read_request(__doc__, "task")
    print(f"{'':<42}{'keys':>5}{'goal':>6}{'seconds':>10}  waiting")
    for task in TASKS:
        if asked.word in task.what:
            keys, seconds, waited = measure(task, asked.columns, asked.lines)
            met = "met" if keys <= task.goal else "NOT MET"
            print(f"{task.what:<42}{keys:>5}{task.goal:>6}{seconds:>10.1f}  ({waited:.1f})  {met}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
