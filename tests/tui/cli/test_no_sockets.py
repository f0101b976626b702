"""No command opens a network socket, nor does any process that it starts: an audit hook in each of them would tell."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

HOOK = """
import os, sys

INTERNET = (2, 10)

def watch(event, arguments):
    address = arguments[1] if len(arguments) > 1 else None
    opened = event == "socket.__new__" and address in INTERNET
    named = event in ("socket.connect", "socket.bind") and isinstance(address, tuple)
    if opened or named or event == "socket.getaddrinfo":
        with open(os.environ["OPENED"], "a") as file:
            file.write(f"{event} {arguments[1:]} in {sys.orig_argv}\\n")
        os._exit(66)

with open(os.environ["WATCHED"], "a") as file:
    file.write(f"{sys.orig_argv}\\n")
sys.addaudithook(watch)
"""
Command = Callable[..., int]


@pytest.fixture
def watched(study: Path, tmp_path: Path) -> Command:
    """Run Python in a process that, like all its children, dies when it opens a network socket."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(HOOK)
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, (str(tmp_path / "site"), os.environ.get("PYTHONPATH")))),
        "OPENED": str(tmp_path / "opened"),
        "WATCHED": str(tmp_path / "watched"),
        "SFUMATO_WORKSPACE": str(tmp_path / "workspace"),
    }

    def python(*arguments: str) -> int:
        done = subprocess.run(
            [sys.executable, *arguments], env=environment, cwd=tmp_path, capture_output=True, timeout=120, check=False
        )
        return done.returncode

    return python


def sfumato(watched: Command, *arguments: str) -> int:
    return watched("-P", "-c", "from sfumato.tui.cli.main import main; main()", *arguments)


ONE_AFTER_ANOTHER = """
import shlex, sys
from sfumato.tui.cli.main import main
commands = sys.argv[1:]
for command in commands:
    sys.argv = ["sfumato", *shlex.split(command)]
    try:
        main()
    except SystemExit as ended:
        if ended.code not in (None, 0, 1):
            sys.exit(f"{command}: {ended.code}")
"""


@pytest.mark.parametrize(
    "attempt", ["socket.socket()", "socket.create_connection(('127.0.0.1', 9))", "socket.getaddrinfo('localhost', 1)"]
)
def test_the_hook_tells(watched: Command, tmp_path: Path, attempt: str) -> None:
    assert watched("-c", f"import socket; {attempt}") == 66
    assert "socket" in (tmp_path / "opened").read_text()


def test_a_pair_of_pipes_within_the_machine_is_let_through(watched: Command) -> None:
    assert watched("-c", "import socket; socket.socketpair()") == 0


def assert_nothing_was_opened(folder: Path) -> None:
    assert not (folder / "opened").exists(), (folder / "opened").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [pytest.param("1", marks=pytest.mark.study), "2"])
def test_no_run_and_no_worker_opens_a_socket(watched: Command, tmp_path: Path, study: Path, jobs: str) -> None:
    assert sfumato(watched, "run", str(study), "--quiet", "--jobs", jobs) in (0, 1)
    assert_nothing_was_opened(tmp_path)
    heard = (tmp_path / "watched").read_text()
    assert "sfumato.workspace.jobs.worker_main" in heard, "the hook was in the workers"
    assert "loky" in heard, "the hook was in the processes that compute"


@pytest.mark.slow
def test_no_other_command_opens_a_socket(
    watched: Command, tmp_path: Path, study: Path, visits_table: pd.DataFrame
) -> None:
    visits_table.assign(visits=visits_table["visits"] + 1).to_csv(tmp_path / "release.csv", index=False)
    (tmp_path / "evaluate.toml").write_text(
        study.read_text().split("[[synthesis]]")[0].replace("m = 2", 'released = ["visits"]')
        + '[[measure]]\nmethod = "risk.identification"\nradius = { visits = 1 }\n'
    )
    files = ["--original", "visits.csv", "--released", "release.csv"]
    evaluation = " ".join(("evaluate", "evaluate.toml", *files, "--jobs", "1"))
    reading = ("results", "runs last", "methods", "recipes", "audit list", "audit verify", "doctor")
    assert watched("-P", "-c", ONE_AFTER_ANOTHER, evaluation, *reading) == 0
    assert_nothing_was_opened(tmp_path)


@pytest.mark.study
def test_the_demo_opens_no_socket(watched: Command, tmp_path: Path) -> None:
    for jobs in ("1", "2"):
        assert sfumato(watched, "demo", "--no-tui", "--jobs", jobs) in (0, 1)
    assert_nothing_was_opened(tmp_path)
