"""A command whose reader has closed the pipe ends with 141 and says nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from loaded_process import run_loaded

pytestmark = pytest.mark.slow
SFUMATO = (sys.executable, "-P", "-c", "from sfumato.tui.cli.main import main; main()")
CLOSED = 141
COMMANDS = [
    ("results", "1", "--json", "-"), ("results", "1", "--draws"), ("figures", "1"), ("runs",), ("records", "1"), ("audit", "list"),
    ("audit", "verify"), ("key", "fingerprint"), ("doctor",), ("examine", "1"), ("policy",), ("methods",), ("recipes", "randhie"),
    ("keys",), ("completion", "bash"), ("--help",), ("results", "--help"), ("--version",),
]  # fmt: skip
NO_WORKSPACE = {"methods", "recipes", "keys", "completion", "--help", "--version"}


@pytest.fixture
def place(computed: Callable[..., Path]) -> Path:
    """A workspace with one finished run."""
    return computed()


def called(
    command: Sequence[str], place: Path, stdout: int | None = None, stderr: int | None = None
) -> subprocess.CompletedProcess[str]:
    named = () if command[0] in NO_WORKSPACE or "--help" in command else ("--workspace", str(place))
    environment = os.environ | {"XDG_STATE_HOME": str(place.parent)}
    return run_loaded(*command, *named, environment=environment, stdout=stdout, stderr=stderr)


def closed_pipe() -> int:
    """The end of a pipe to write to, whose reader has gone."""
    reader, writer = os.pipe()
    os.close(reader)
    return writer


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_command_whose_reader_is_gone_ends_with_141_and_no_message(place: Path, command: Sequence[str]) -> None:
    done = called(command, place, stdout=(writer := closed_pipe()))
    os.close(writer)
    assert done.returncode == CLOSED
    assert done.stderr == ""


def test_a_reader_that_goes_in_the_middle_of_a_large_output_ends_it_too(place: Path) -> None:
    reader, writer = os.pipe()
    command = [*SFUMATO, "results", "1", "--json", "-", "--workspace", str(place)]
    with subprocess.Popen(command, stdout=writer, stderr=subprocess.PIPE) as process:
        os.close(writer)
        assert os.read(reader, 10)
        os.close(reader)
        _, said = process.communicate(timeout=120)
    if process.returncode != 0:  # 0 where all of it was in the pipe already
        assert (process.returncode, said) == (CLOSED, b"")


@pytest.mark.parametrize(
    "command", [("results", "99"), ("no-such-command",), ("runs", "--no-such-option")], ids=" ".join
)
def test_a_message_that_nobody_reads_ends_with_141(place: Path, command: Sequence[str]) -> None:
    done = called(command, place, stderr=(writer := closed_pipe()))
    os.close(writer)
    assert done.returncode == CLOSED
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("command", "status"),
    [(("results", "1", "--json", "-"), 0), (("runs",), 0), (("results", "99"), 2), (("--help",), 0)],
    ids=str,
)
def test_a_reader_that_stays_sees_the_status_of_the_command(place: Path, command: Sequence[str], status: int) -> None:
    """The control."""
    done = called(command, place)
    assert done.returncode == status
    assert done.stdout or done.stderr


@pytest.mark.parametrize("numbers", [(1,), (2,), (0, 1, 2)], ids=str)
@pytest.mark.parametrize(("command", "status"), [("runs", 0), ("results 99", 2)])
def test_streams_that_were_closed_before_it_began_change_nothing(
    place: Path, command: str, status: int, numbers: tuple[int, ...]
) -> None:
    closing = " ".join(f"{number}>&-" for number in numbers)
    line = f'exec "$@" {closing}'
    done = subprocess.run(
        ["sh", "-c", line, "sh", *SFUMATO, *command.split(), "--workspace", str(place)],
        env=os.environ | {"XDG_STATE_HOME": str(place.parent)}, check=False, capture_output=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == status
    assert b"Traceback" not in done.stdout + done.stderr
