"""Every command on a pseudo-terminal, in three kinds of terminal and two widths, on a workspace whose texts are hostile."""

from __future__ import annotations

import os
import pty
import re
import shutil
import struct
import sys
import termios
import traceback
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fcntl import ioctl
from pathlib import Path

import click
import numpy as np
import pandas as pd
import pyte
import pytest
import tomli_w
from prepared_workspaces import enter_recipe
from wcwidth import wcswidth

import sfumato.workspace.recipes
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.recipe.recipe import Recipe
from sfumato.tui.cli.main import main
from sfumato.tui.cli.main import sfumato as root
from sfumato.workspace.jobs.queue import stop_run
from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.policy.policy import own_policy_file
from sfumato.workspace.release.approval import request_release
from sfumato.workspace.service.importing import import_file
from sfumato.workspace.service.release import write_run_release
from sfumato.workspace.store.runs import RunState
from sfumato.workspace.store.workspace import Workspace

pytestmark = pytest.mark.slow

EVIL = "\x1b]52;c;b3duZWQ=\x07\x1b[8m\x1b[31m\x9b5m\u202edaer\u2066\u200b\r\n\x08\u2028調査地域"
LONG = "家計調査の長い題名" * 12
RECIPE = {
    "title": f"Survey{EVIL}{LONG}",
    "variables": {
        "地域": {
            "kind": "categorical",
            "role": "quasi_identifier",
            "title": f"Region{EVIL}{LONG}",
            "labels": {f"north{EVIL}": f"The north{EVIL}", "south": f"The south{LONG}"},
        },
        "visits": {"kind": "count", "role": "quasi_identifier", "title": f"Visits{EVIL}"},
        "income": {"kind": "continuous", "role": "sensitive", "title": f"Income{EVIL}"},
    },
    "release": {"m": 2, "seed": 7},
    "synthesis": [{"target": "income", "method": "linear_regression", "predictors": ["visits"]}],
    "measure": [
        {"method": "utility.ecdf"},
        {"method": "risk.identification", "known": ["地域", "visits"], "radius": {"income": "5%"}},
    ],
    "threshold": [{"value": "risk.identification.true_match_rate", "max": 1.0}],
    "published": [
        {
            "source": f"A paper{EVIL}, Table 4",
            "value": "risk.identification.true_match_rate",
            "dataset": "synthetic",
            "figure": 0.02,
        }
    ],
}


def frame() -> pd.DataFrame:
    rng = np.random.default_rng(20)
    region = rng.choice([f"north{EVIL}", "south"], 60)
    return pd.DataFrame({"地域": region, "visits": rng.poisson(4, 60), "income": rng.lognormal(7, 0.4, 60)})


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a workspace (two runs that are done, one that was cancelled, and a plan), a recipe, its data, a release and a request."""
    directory = tmp_path_factory.mktemp("place")
    frame().to_csv(directory / "調査.csv", index=False)
    evil = EVIL.replace("\r\n", "")  # a cell ends where its line does
    (directory / "table.csv").write_text(f"地域,count\ntotal,20\nnorth{evil},x\nsouth,12\n", "utf-8")
    recipe = Recipe.from_table(RECIPE)
    (directory / "survey.toml").write_text(tomli_w.dumps(RECIPE | {"data": {"file": "調査.csv"}}), "utf-8")
    with Workspace.create(directory / "workspace", PUBLIC) as workspace:
        for _ in range(2):
            enter_recipe(workspace, recipe, frame(), "調査.csv")
    run_worker(workspace.directory, idle=0)
    with Workspace.open(workspace.directory) as workspace:
        third = enter_recipe(workspace, recipe, frame(), "調査.csv")
        stop_run(workspace, third, RunState.CANCELLED)
    import_file(workspace.directory, str(directory / "調査.csv"), "")
    with Workspace.open(workspace.directory) as workspace:
        write_run_release(workspace, 2, directory / "released", reason=f"for a study{EVIL}")
        policy = own_policy_file()
        policy.parent.mkdir(parents=True, exist_ok=True)
        policy.write_text(f'[approval]\ndirectory = "{directory}"\n', "utf-8")
        policy.chmod(0o600)
        request_release(workspace, 1, f"for research only{EVIL}").rename(directory / "request.json")
        policy.unlink()
    return directory


@dataclass(frozen=True)
class Case:
    """How a command is called: ``status`` is how it ends; ``machine`` output is not folded; some have ``colours``, or are by an ``other`` account."""

    arguments: tuple[str, ...]
    status: int = 0
    machine: bool = False
    colours: bool = False
    other: bool = False


def case(*arguments: str, status: int = 0, machine: bool = False, colours: bool = False, other: bool = False) -> Case:
    return Case(arguments, status, machine, colours, other)


IN = ("--workspace", "workspace")
CASES: dict[str, list[Case]] = {
    "adopt": [case("adopt", "workspace", "adopted")],
    "again": [case("again", "1", *IN, colours=True)],
    "approve": [
        case("approve", "request.json", "--reason", "agreed with the board", status=2),
        case("approve", "request.json", "--reason", f"agreed{EVIL}", other=True),
    ],
    "audit accept-rollback": [case("audit", "accept-rollback", "--reason", f"none{EVIL}", *IN, status=2)],
    "audit list": [case("audit", "list", *IN)],
    "audit verify": [case("audit", "verify", *IN)],
    "audit-tables": [
        case("audit-tables", "table.csv", "--changes", "table.csv", status=1),
        case("audit-tables", f"none{EVIL}.csv", status=2),
    ],
    "cancel": [case("cancel", "3", *IN)],
    "compare": [case("compare", "1", "2", *IN)],
    "completion": [case("completion", "bash", machine=True)],
    "constraints": [case("constraints", "survey.toml", "--suggest")],
    "delete": [case("delete", "1", "--yes", *IN), case("delete", "--project", f"none{EVIL}", "--yes", *IN, status=2)],
    "demo": [case("demo", "--no-tui", *IN, colours=True)],
    "doctor": [case("doctor", *IN)],
    "draft": [case("draft", "調査.csv", "--known", "地域,visits", "--sensitive", "income", *IN, machine=True)],
    "evaluate": [
        case("evaluate", "survey.toml", "--original", "調査.csv", "--released", "調査.csv", *IN),
        case("evaluate", "survey.toml", "--original", "調査.csv", "--released", f"none{EVIL}.csv", *IN, status=2),
    ],
    "examine": [case("examine", "1", *IN, status=1)],
    "figures": [case("figures", "1", *IN, colours=True), case("figures", "1", "--svg", "drawn", *IN)],
    "help": [case("help", "release"), case("help", "--find", "k-anonymity"), case("help", f"none{EVIL}", status=2)],
    "hierarchies": [case("hierarchies", "survey.toml", "visits", "--propose", *IN)],
    "import": [case("import", "調査.csv", *IN), case("import", "調査.csv", "--preview", "--rows", *IN)],
    "init": [case("init", "new")],
    "key export": [case("key", "export", "key.txt", *IN)],
    "key fingerprint": [case("key", "fingerprint", *IN)],
    "keys": [case("keys", machine=True)],
    "methods": [case("methods"), case("methods", "risk.identification"), case("methods", f"risk.{EVIL}", status=2)],
    "new-method": [
        case("new-method", "risk.my_measure", "package"),
        case("new-method", f"risk.{EVIL}", "package", status=2),
    ],
    "plan": [
        case("plan", "調査", *IN, machine=True),
        case("plan", "調査", "-o", "plan.toml", *IN),
        case("plan", f"none{EVIL}", *IN, status=2),
    ],
    "policy": [case("policy", *IN, machine=True)],
    "population": [
        case("population", *IN, machine=True),
        case("population", "調査", *IN),
        case("population", f"none{EVIL}", *IN, status=2),
    ],
    "recipes": [case("recipes"), case("recipes", "randhie", machine=True)],
    "records": [case("records", "1", "--values", *IN), case("records", "1", "--weights", *IN, status=2)],
    "search": [
        case("search", "survey.toml", "--looks", "10", *IN, status=1),
        case("search", f"none{EVIL}", *IN, status=2),
        case("search", "--take", f"none{EVIL}", *IN, status=2),
    ],
    "release": [
        case("release", "1", "-o", "out", *IN, status=2),
        case("release", "1", "-o", "out", "--reason", f"agreed{EVIL}", *IN),
    ],
    "report": [case("report", "1", "-o", "report.html", *IN)],
    "results": [
        case("results", "1", "--draws", *IN, colours=True),
        case("results", "1", "--public", *IN),
        case("results", "1", "--json", "-", *IN, machine=True),
        case("results", f"7{EVIL}", *IN, status=2),
    ],
    "resume": [case("resume", "3", *IN, colours=True)],
    "run": [
        case("run", "survey.toml", *IN, colours=True),
        case("run", f"none{EVIL}.toml", *IN, status=2),
    ],
    "runs": [case("runs", *IN), case("runs", "1", "--note", "調査" * 60, *IN)],
    "whatif": [case("whatif", "1", *IN, machine=True), case("whatif", "1", "--known", f"none{EVIL}", *IN, status=2)],
    "tables": [case("tables", "1", *IN, status=2), case("tables", f"none{EVIL}", *IN, status=2)],
    "levers": [case("levers", "1", *IN, machine=True), case("levers", "1", "--apply", "99", *IN, status=2)],
    "verify": [
        case("verify", "released"),
        case("verify", "released", *IN),
        case("verify", f"none{EVIL}", status=2),
    ],
    "worker": [case("worker", "--idle", "0", "--workspace", f"none{EVIL}", status=2)],
}
"""Every command that prints, by its name."""


def leaves(command: click.Command, *names: str) -> Iterator[str]:
    """The names of the commands that a group leads to."""
    if not isinstance(command, click.Group):
        yield " ".join(names)
        return
    for name, one in command.commands.items():
        yield from leaves(one, *names, name)


def test_every_command_has_a_case() -> None:
    assert sorted(leaves(root)) == sorted(CASES)


@dataclass(frozen=True)
class Kind:
    """A kind of terminal by its environment."""

    environment: dict[str, str]
    colours: bool


KINDS = {
    "colour": Kind({"TERM": "xterm-256color", "COLORTERM": "truecolor"}, colours=True),
    "256 colours": Kind({"TERM": "xterm-256color"}, colours=True),
    "NO_COLOR": Kind({"TERM": "xterm-256color", "COLORTERM": "truecolor", "NO_COLOR": "1"}, colours=False),
    "dumb": Kind({"TERM": "dumb"}, colours=False),
}
OURS = (
    "TERM",
    "COLORTERM",
    "NO_COLOR",
    "COLUMNS",
    "LINES",
    "TMUX",
    "FORCE_COLOR",
    "SFUMATO_GLYPHS",
    "SFUMATO_WORKSPACE",
)
LINES = 50
SGR = re.compile(r"\x1b\[([0-9;]*)m")
COLOUR = re.compile(r"\x1b\[[0-9;]*(?:[34][0-7]|[39]8|48|9[0-7])[0-9;]*m")


def printed(one: Case, directory: Path, kind: Kind, columns: int) -> tuple[str, int]:
    """What a command writes to a terminal in ``directory``, and how it ends: in a fork of this process, not a new interpreter."""
    pid, terminal = pty.fork()
    if pid == 0:
        if one.other:
            os.geteuid = lambda: os.getuid() + 1
        _child(one.arguments, directory, kind, columns)
    ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, columns, 0, 0))
    came = []
    try:
        while part := os.read(terminal, 1 << 16):
            came.append(part)
    except OSError:  # Linux: the other end is closed
        pass
    os.close(terminal)
    return b"".join(came).decode("utf-8"), os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _child(arguments: Sequence[str], directory: Path, kind: Kind, columns: int) -> None:
    """The command, in the child: a worker's tasks are done here, and the demo's recipe is the small one."""
    status = 99
    try:
        ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, columns, 0, 0))
        sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w"), os.fdopen(2, "w")
        sys.__stdout__, sys.__stderr__ = sys.stdout, sys.stderr
        for name in OURS:
            os.environ.pop(name, None)
        state = {f"XDG_{name}_HOME": str(directory / name.lower()) for name in ("STATE", "DATA", "CONFIG")}
        os.environ.update(kind.environment | state | {"PAGER": "cat"})
        os.chdir(directory)
        _in_this_process()
        if arguments[0] == "demo":
            find = sfumato.workspace.recipes.find_recipe
            sfumato.workspace.recipes.find_recipe = lambda _: find("survey.toml")
        main(list(arguments))
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else 0
    except BaseException:  # noqa: BLE001  (the parent must not go on twice)
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _in_this_process() -> None:
    """What a command has another process do is done here: a worker's tasks, and the reading of files."""
    import sfumato.tui.session.importing
    import sfumato.workspace.jobs.following
    import sfumato.workspace.jobs.processes

    class Done:
        def poll(self) -> int:
            return 0

    def start(directory: Path, jobs: int, idle: float) -> Done:
        run_worker(directory.resolve(), idle=0)
        return Done()

    def call(function: Callable[..., object], *values: object, what: str, seconds: float = 0) -> object:
        return function(*values)

    sfumato.workspace.jobs.following.start_worker = start  # type: ignore[assignment]
    for module in (sfumato.tui.session.importing, sfumato.workspace.jobs.processes):
        module.call_in_process = call  # type: ignore[assignment]


def screen_of(text: str, columns: int) -> pyte.Screen:
    """What a terminal shows of it, on as many lines as it needs."""
    screen = pyte.Screen(columns, text.count("\n") + 60)
    pyte.Stream(screen).feed(text)
    return screen


def hidden(text: str) -> set[str]:
    """What of a text is not there to be read, but for its lines."""
    return {c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp") and c not in "\r\n"}


def faults(text: str, one: Case, kind: Kind, columns: int) -> list[str]:
    """What is wrong with what a command has written."""
    plain = SGR.sub("", text)
    screen = screen_of(text, columns)
    cells = [cell for line in screen.buffer.values() for cell in line.values()]
    lines = re.split(r"[\r\n]+", plain)
    wide = [] if one.machine else [line for line in lines if wcswidth(line) > columns]
    coloured = any(cell.fg != "default" or cell.bg != "default" for cell in cells)
    codes = {
        code for found in SGR.findall(text) for code in re.sub(r"[34]8;(2;\d+;\d+;\d+|5;\d+)", "", found).split(";")
    }
    known = (
        {"", "0", "1", "2", "7", *map(str, (*range(30, 38), *range(90, 98)))} if one.colours and kind.colours else set()
    )
    return [
        *([f"hidden characters {hidden(plain)}"] if hidden(plain) else []),
        *([f"codes {codes - known}"] if codes - known else []),
        *(["our own colours as text"] if re.search(r"\?\[([012]m|[34]8;)", plain) else []),
        *(
            [f"no colour, or colour where none is wanted: {coloured}"]
            if coloured != (one.colours and kind.colours)
            else []
        ),
        *(f"too wide: {line}" for line in wide),
    ]


TERMINALS = [("colour", 80), ("colour", 120), ("256 colours", 80), ("NO_COLOR", 80), ("NO_COLOR", 120), ("dumb", 80)]


@pytest.mark.parametrize("name", CASES)
def test_a_command_on_a_terminal_prints_no_escape_of_others_and_no_line_too_wide(
    place: Path, tmp_path: Path, name: str
) -> None:
    for number, (terminal, columns) in enumerate(TERMINALS):
        for one in CASES[name]:
            if terminal == "256 colours" and not one.colours:
                continue
            directory = Path(shutil.copytree(place, tmp_path / f"{number}", dirs_exist_ok=True))
            text, status = printed(one, directory, KINDS[terminal], columns)
            said = f"{one.arguments} on {terminal}, {columns} columns, ended with {status}:\n{text}"
            assert text.strip(), said
            assert "internal error" not in text, said
            assert status == one.status, said
            found = faults(text, one, KINDS[terminal], columns)
            assert not found, f"{found} of {said}"


def test_the_texts_are_hostile_where_nothing_is_done_to_them(place: Path) -> None:
    with Workspace.open(place / "workspace", read_only=True) as workspace:
        title = workspace.connection.execute("SELECT title FROM run").fetchone()[0]
    assert hidden(title) >= {"\x1b", "\u202e", "\u200b", "\x9b"}
