"""The first page of Findings as a terminal shows it, of every finished run of a workspace that nobody has opened yet.

    python tests/benchmarks/first_pages.py WORKSPACE [--size 120x40] [--run N]

Prints the screen as text, without a key being pressed on the page: what a reader has before him who asks how many people
can be found, how, what is then learnt, what to change, and whether the release may leave.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
from pathlib import Path

from pty_app import Terminal

from sfumato.tui.session.state import AppState, save_state
from sfumato.workspace.store.runs import RunState, list_runs
from sfumato.workspace.store.workspace import Workspace

EXAMINED = 60.0
"""Seconds in which the gate's answer, the intruder's numbers and the trials of levers have to come."""
REST = 8.0
"""Seconds without a byte after which the page is complete."""


def main() -> None:
    """Print the first pages."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workspace", type=Path)
    parser.add_argument("--size", default="120x40")
    parser.add_argument("--run", type=int)
    found = parser.parse_args()
    columns, lines = map(int, found.size.split("x"))
    # What is known here of the workspace's history must not hold for its copies, nor these for it.
    os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp()
    with Workspace.open(found.workspace, read_only=True) as workspace:
        runs = [one for one in list_runs(workspace) if one.state is RunState.DONE and found.run in (None, one.id)]
    for run in sorted(runs, key=lambda one: one.id):
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / "workspace"
            shutil.copytree(found.workspace, copy)
            save_state(copy, AppState(project=run.project_id, run=run.id, tab="verdicts"))
            terminal = Terminal.of_app(copy, columns, lines)
            try:
                terminal.until(b"Found", seconds=EXAMINED)
                terminal.settle(REST)
                print(f"run {run.id}, {run.title}, {found.size}")
                print("\n".join(line.rstrip() for line in terminal.text()))
            finally:
                terminal.close()


if __name__ == "__main__":
    main()
