"""``sfumato --plain`` as a process: through a pipe and through a terminal, what it writes, how it ends, in any locale."""

from __future__ import annotations

import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from sfumato.engine.methods.run import PUBLIC
from sfumato.tui.plain.talk import DRAWING_CHARACTERS
from sfumato.workspace.store.runs import RunState, find_run, list_runs
from sfumato.workspace.store.workspace import Workspace

pytestmark = pytest.mark.slow

SFUMATO = (sys.executable, "-P", "-c", "from sfumato.tui.cli.main import main; main()")
OURS = (
    "SFUMATO_PLAIN",
    "SFUMATO_GLYPHS",
    "SFUMATO_WORKSPACE",
    "NO_COLOR",
    "LC_ALL",
    "LC_CTYPE",
    "LANG",
    "TERM",
    "FORCE_COLOR",
)
ROWS = "\n".join(f"{'north' if i % 3 else 'south'},{20 + i % 37},{(i * 37) % 91}" for i in range(240))
MAKE = """\
Projects
Import a file
people.csv
people
no
back
Data
Set a role
town
quasi-identifier
Set a role
age
quasi-identifier
Set a role
pay
sensitive
back
Plan
Draft a plan
synthesis
public
no
2
yes
back
Runs
Start a run
yes
back
Findings
Verdicts
1
back
Release
Findings of the gate
1
"""
LOOK = """\
1
1
back
2
1
back
3
2
back
4
1
back
5
1
1
2
1
1
3
1
1
no
4
1
back
6
1
1
3
1
quit
"""


def environment(**more: str) -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in OURS} | {"TERM": "xterm-256color"} | more


def pipe_script(script: str, *arguments: str, **more: str) -> tuple[int, str]:
    """The status and what is written by a process whose input is a pipe."""
    done = subprocess.run(
        [*SFUMATO, *(arguments or ("--plain", "--workspace", "w"))], input=script.encode(), capture_output=True, check=False,
        timeout=300, env=environment(**more),
    )  # fmt: skip
    assert done.stderr == b""
    return done.returncode, done.stdout.decode("utf-8")


@contextmanager
def terminal(
    *arguments: str, program: Sequence[str] = SFUMATO, **more: str
) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """A process on a pseudo-terminal that changes no line ends and repeats no input: what comes back is what the process wrote."""
    ours, theirs = pty.openpty()
    settings = termios.tcgetattr(theirs)
    settings[1] &= ~termios.OPOST
    settings[3] &= ~termios.ECHO
    termios.tcsetattr(theirs, termios.TCSANOW, settings)
    command = [*program, *(arguments or ("--plain", "--workspace", "w"))]
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment(**more))
    os.close(theirs)
    try:
        yield process, ours
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def read_to(ours: int, end: bytes, seconds: float = 120.0) -> bytes:
    """What comes until a text has come, or the other end is closed."""
    came, deadline = b"", time.monotonic() + seconds
    while end not in came and time.monotonic() < deadline:
        try:
            part = os.read(ours, 1 << 16)
        except OSError:  # Linux: the other end is closed
            break
        if not part:
            break
        came += part
    return came


def type_script(script: str, **more: str) -> tuple[int, str]:
    """The status and what is written by a process on a terminal, each line typed when it was asked for."""
    came = b""
    with terminal(**more) as (process, ours):
        for line in script.splitlines():
            came += (part := read_to(ours, b"; default: "))
            assert b"default: " in part, came.decode()
            came += read_to(ours, b".\n") if not part.endswith(b".\n") else b""
            os.write(ours, f"{line}\n".encode())
        came += read_to(ours, b"; default: ")
        os.write(ours, b"\x04")
        came += read_to(ours, b"\0")
        return process.wait(60), came.decode("utf-8")


def check_output(text: str) -> None:
    """Whole lines of text, and nothing that moves a cursor, draws or colours."""
    assert not [sign for sign in set(text) if sign != "\n" and not sign.isprintable()]
    assert not DRAWING_CHARACTERS.search(text)
    assert "\r" not in text
    assert "\x1b" not in text
    assert text.endswith("\n")
    assert all(line == line.rstrip() for line in text.splitlines())


@pytest.fixture
def people(home: Path) -> Path:
    """A file of 240 people, and a workspace whose random numbers anybody can repeat."""
    (home / "people.csv").write_text(f"town,age,pay\n{ROWS}\n")
    Workspace.create(home / "w", PUBLIC).close()
    return home


def blocks_in(text: str) -> list[str]:
    return list(dict.fromkeys(re.findall(r"(?m)^blocks: .* \((\w+)\)$", text)))


@pytest.mark.parametrize("way", [pipe_script, type_script])
def test_a_script_of_lines_makes_a_release_through_a_pipe_and_through_a_terminal(people: Path, way: object) -> None:
    status, text = way(MAKE)  # type: ignore[operator]
    check_output(text)
    assert status == 0, text[-2000:]
    assert re.search(r"(?m)^Run 1 is done after ", text)
    assert re.search(r"(?m)^1\. (met|not met|undecided|not computed): ", text)
    assert text.count("The input has ended; Sfumato ends.") == 1
    waivers = "".join(f"Waive a finding\n1\n{check}\nagreed with the data owner\n" for check in blocks_in(text))
    status, text = way(f"Release\n{waivers}Release\n1\ncsv\nout\nyes\nPast releases\n1\n")  # type: ignore[operator]
    check_output(text)
    assert status == 0, text[-2000:]
    assert "Release run 1, people, w" in text
    assert (people / "out" / "public" / "manifest.json").is_file()
    assert (people / "out" / "internal" / "report.html").is_file()
    with Workspace.open(people / "w") as workspace:
        assert find_run(workspace, 1).state is RunState.DONE
        assert workspace.connection.execute("SELECT count(*) FROM audit WHERE act = 'run released'").fetchone()[0] == 1


def test_the_same_lines_are_written_without_colour_in_ascii_and_on_a_dumb_terminal(
    home: Path, computed: Callable[..., Path]
) -> None:
    shutil.copytree(computed(), home / "w")
    status, text = pipe_script(LOOK)
    check_output(text)
    assert status == 0, text[-2000:]
    assert text.isascii()
    others: list[Mapping[str, str]] = [
        {"NO_COLOR": "1", "LC_ALL": "C"},
        {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii"},
        {"SFUMATO_GLYPHS": "ascii", "TERM": "dumb", "FORCE_COLOR": "1", "LC_ALL": "C.UTF-8"},
    ]
    for one in others:
        assert pipe_script(LOOK, **one) == (0, text), one
    assert type_script(LOOK.removesuffix("quit\n"))[1].startswith(text.removesuffix("Sfumato ends.\n"))


def test_the_environment_asks_for_plain_mode_too_and_other_commands_do_as_before(people: Path) -> None:
    status, text = pipe_script("quit\n", "--workspace", "w", SFUMATO_PLAIN="1")
    assert status == 0
    assert text.startswith("Sfumato, plain mode.")
    # a terminal that can only print lines would show the app as a heap of control sequences
    assert pipe_script("quit\n", "--workspace", "w", TERM="dumb") == (0, text)
    assert pipe_script("", "runs", "--workspace", "w", SFUMATO_PLAIN="1")[1].startswith("no runs yet")
    refused = subprocess.run(
        [*SFUMATO, "--workspace", "w"], input=b"", capture_output=True, check=False, timeout=60, env=environment(SFUMATO_PLAIN="0")
    )  # fmt: skip
    assert refused.returncode == 2
    assert b"sfumato --plain" in refused.stderr


def test_a_value_of_the_environment_that_is_neither_yes_nor_no_is_refused(people: Path) -> None:
    done = subprocess.run(
        [*SFUMATO, "runs", "-w", "w"], input=b"", capture_output=True, check=False, timeout=60, env=environment(SFUMATO_PLAIN="maybe")
    )  # fmt: skip
    assert done.returncode == 2
    assert b"SFUMATO_PLAIN" in done.stderr
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize(("plain", "rewritten"), [("1", False), ("0", True)])
def test_the_progress_of_a_command_is_whole_lines_too(study: Path, plain: str, rewritten: bool) -> None:
    with terminal("run", str(study), "-w", "w", "--jobs", "1", SFUMATO_PLAIN=plain) as (process, ours):
        text = read_to(ours, b"\0").decode()
        assert process.wait(60) == 0
    assert " steps done" in text
    assert ("\r" in text) == rewritten


def test_the_demo_opens_plain_mode_in_place_of_the_app(study: Path) -> None:
    small = (
        f"import sfumato.workspace.recipes as r; find = r.find_recipe; r.find_recipe = lambda _: find({str(study)!r}); "
    )
    program = (*SFUMATO[:-1], small + SFUMATO[-1])
    with terminal("demo", "-w", "w", "--jobs", "1", program=program, SFUMATO_PLAIN="1") as (process, ours):
        text = read_to(ours, b"default: help.\n").decode()
        os.write(ours, b"quit\n")
        assert read_to(ours, b"\0") == b"Sfumato ends.\n"
        assert process.wait(60) == 0
    assert "Sfumato, plain mode." in text
    assert "Run 1 is open." in text
    assert "\x1b" not in text


def test_a_wrong_line_of_a_script_ends_it_with_status_1_and_a_person_is_asked_again(people: Path) -> None:
    script = "Projects\nOpen a projekt\nyes\n"
    status, text = pipe_script(script)
    assert status == 1
    assert "Stopped at line 2 of the input" in text.splitlines()[-1]
    status, text = type_script(script)
    assert status == 0
    assert text.count("Wrong answer: ") == 2


@pytest.fixture
def heard() -> Iterator[None]:
    """Processes that are started hear Ctrl-C: a shell has its background jobs ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heard")
def test_ctrl_c_ends_with_130_at_a_question(people: Path) -> None:
    with terminal() as (process, ours):
        read_to(ours, b"default: help.\n")
        process.send_signal(signal.SIGINT)
        text = read_to(ours, b"\0")
        assert process.wait(60) == 130
    assert text == b"Interrupted; Sfumato ends.\n"


@pytest.mark.usefixtures("heard")
def test_ctrl_c_while_a_run_is_followed_interrupts_it_and_it_can_be_resumed(people: Path) -> None:
    assert pipe_script(MAKE.partition("back\nRuns\n")[0] + "Set a value\nrelease.m=200\n")[0] == 0
    with terminal() as (process, ours):
        read_to(ours, b"default: help.\n")
        os.write(ours, b"Runs\nStart a run\nyes\n")
        read_to(ours, b" steps done")
        process.send_signal(signal.SIGINT)
        text = read_to(ours, b"\0").decode()
        assert process.wait(60) == 130
    assert (
        "Run 1 is interrupted; its finished steps are kept, and Resume continues it.\nInterrupted; Sfumato ends.\n"
        in text
    )
    with Workspace.open(people / "w") as workspace:
        assert list_runs(workspace)[0].state is RunState.INTERRUPTED


def test_a_reader_that_has_gone_ends_it_with_141(people: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [*SFUMATO, "--plain", "--workspace", "w"], input=b"quit\n", stdout=writer, stderr=subprocess.PIPE, check=False, timeout=60,
        env=environment(),
    )  # fmt: skip
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")


def test_the_first_question_loads_neither_the_toolkit_nor_the_numerical_libraries(people: Path) -> None:
    script = """
import io, sys
from sfumato.tui.plain.mode import run_plain_mode
from sfumato.workspace.store.workspace import Workspace
from pathlib import Path
run_plain_mode(Workspace.open(Path("w")))
print(sorted({"textual", "numpy", "pandas", "scipy", "duckdb", "pyarrow"} & set(sys.modules)))
"""
    done = subprocess.run(
        [sys.executable, "-P", "-c", script], input=b"Data\nback\nquit\n", capture_output=True, check=False, timeout=60
    )
    assert done.stdout.decode().splitlines()[-1] == "[]", done.stderr.decode()


@pytest.mark.study
def test_the_demo_runs_to_a_release_by_a_script(home: Path) -> None:
    status, text = pipe_script(
        "Projects\nRun the demo\nyes\nback\nFindings\nVerdicts\n1\nback\nRelease\nFindings of the gate\n1\n"
    )
    check_output(text)
    assert status == 0
    assert len(re.findall(r"(?m)^Run 1: \d+ of \d+ steps done", text)) >= 2
    assert re.search(r"(?m)^1\. (met|not met|undecided|not computed): People found for certain, ", text)
    waivers = "".join(f"Waive a finding\n1\n{check}\nagreed with the data owner\n" for check in blocks_in(text))
    status, text = pipe_script(f"Release\n{waivers}Release\n1\ncsv\nout\nyes\n")
    assert status == 0
    assert len(list((home / "out" / "public").glob("dataset*.csv"))) == 10
