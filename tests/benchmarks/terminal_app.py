"""What the app sends to a terminal and how soon, measured on a pseudo-terminal against the targets of the terminal app.

    python tests/benchmarks/terminal_app.py [--sizes 80x24,120x40,160x50] [--repeats 20] [--only WORD] [--workspace DIR]

Builds what it needs: a run of 100,000 rows, a table of 1,000,000 records, and two small projects. Milliseconds run from the
key to the first and to the last byte that it causes. "app ms" is what the app itself computed meanwhile, "alone" the 95th
percentile to the last byte less the time for which the app was ready and other programs had the processors. A line is
"met" when the 95th percentile to the LAST byte and the most bytes are, "met alone" when it would be on an idle machine.

Every act must change what the terminal shows, and its way back lead back to the same place: an act that does not is named, and the
program ends with status 1.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import textual
from large_workspace import RECORDS, ROWS, build
from pty_app import OWN_KEYS, TABS, Answer, Terminal, take_own_keys

PAGE, STEP, PALETTE = 12_000, 1_000, 50_000
KEY_MS, PLOT_MS, PALETTE_MS = 30.0, 50.0, 200.0
WARM_MS, COLD_MS, OPEN_MS = 400.0, 1_000.0, 500.0
IDLE_BYTES, MEMORY_MB = 350.0, 150.0
IDLE_SECONDS = 12
PATIENCE = 3.0
"""Seconds after which a key is taken to have no answer."""
SETTLED = 0.3
"""Seconds of rest after which what a key opened has the keys."""
LARGE, SURVEY, CENSUS = "large", "survey", "census"


@dataclass(frozen=True)
class Act:
    """A key on a screen of a project; ``before`` and ``after`` are keys that lead there and back each time, ``once`` those that lead to
    where it begins, from where the act before it ended.
    """

    what: str
    key: str
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    once: tuple[str, ...] = ()
    size: int = PAGE
    ms: float = KEY_MS
    silent: bool = False
    """Whether it may be that nothing is to be painted."""


@dataclass(frozen=True)
class Place:
    """Acts that start from a tab of a project."""

    project: str
    tab: str
    acts: tuple[Act, ...]


def _switches() -> tuple[Act, ...]:
    """From every tab to the next by its key, and back; a key of the place that is shown would open the next tab of it."""
    slow = ("sweep", "map")
    return (
        *(
            Act(
                f"{before} to {name}", TABS[name], after=(TABS[before],),
                once=() if before == "runs" else (TABS[before],), ms=PLOT_MS if name in slow else KEY_MS,
            )
            for before, name in pairwise(TABS)
        ),
        Act("map to runs", "3", once=(TABS["map"],), after=(TABS["map"],)),
    )  # fmt: skip


PLACES = (
    Place(LARGE, "runs", (Act("open the project", "enter", once=("p", "G"), after=("p", "G")), *_switches())),
    Place(LARGE, "results", (
        Act("results: step", "j", size=STEP), Act("results: page", "pagedown"), Act("results: half a page", "ctrl+d"),
        Act("results: last row", "G", after=("g",)), Act("results: first row", "g", before=("G",)),
        Act("results: column right", "l", after=("h",), silent=True), Act("results: sort", "s"), Act("results: datasets", "b"), Act("results: open filter", "slash", after=("escape",)),
        Act("results: type into filter", "v", before=("slash",), after=("escape",), size=STEP),
        Act("results: filter", "enter", before=("slash", "value_1"), after=("slash", "clear", "enter")),
        Act("results: explain", "enter", after=("q",)), Act("results: close explain", "q", before=("enter",)),
    )),
    Place(LARGE, "verdicts", (Act("verdicts: step", "j", before=("k",), size=STEP), Act("verdicts: try limits", "T", after=("escape",)))),
    Place(LARGE, "sweep", (
        Act("sweep: measure", "m", ms=PLOT_MS), Act("sweep: cursor", "right", before=("left",), ms=PLOT_MS), Act("sweep: log", "o", ms=PLOT_MS),
        Act("sweep: zoom", "+", after=("0",), ms=PLOT_MS), Act("sweep: numbers", "t", after=("t",)),
    )),
    Place(LARGE, "diagnostics", (
        Act("diagnostics: step", "j", once=(OWN_KEYS["statistics"],), size=STEP), Act("diagnostics: plot", "t", after=("t",), ms=PLOT_MS),
    )),
    Place(LARGE, "records", (Act("records: step", "j", size=STEP), Act("records: page", "pagedown"))),
    Place(LARGE, "data", (
        Act("data: next variable", "j", ms=PLOT_MS, silent=True),
        Act("data: edit form", "enter", after=("escape",)),
    )),
    Place(LARGE, "plan", (
        Act("plan: step", "j", after=("k",)), Act("plan: to the TOML", "t", after=("escape",)),
        Act("plan: type", "#", before=("t",), after=("backspace", "escape"), size=STEP),
        Act("plan: form", "enter", before=("j",), after=("escape", "k")),
        Act("plan: methods", "a", after=("escape",)),
    )),
    Place(LARGE, "map", (Act("map: axis", "f4", after=("escape",)), Act("map: numbers", "t", after=("t",), ms=PLOT_MS))),
    Place(SURVEY, "runs", (
        Act("runs: step", "j", after=("k",), size=STEP), Act("runs: mark", "space", after=("k", "space", "k"), size=STEP),
        Act("runs: compare", "c", before=("space", "space"), after=("q", "space", "k", "space", "k")),
        Act("new run", "n", after=("escape",)),
        Act("audit", OWN_KEYS["audit"], after=("q",)), Act("keys", "?", after=("q",)), Act("manual", "f1", after=("q",)),
        Act("export", "e", after=("escape",)),
        Act("palette", "ctrl+p", after=("escape",), size=PALETTE, ms=PALETTE_MS),
        Act("palette: type", "q", before=("ctrl+p",), after=("escape",), size=PAGE, ms=PALETTE_MS),
        Act("release", "w", after=("q",)),
        Act("release: step", "j", once=("w",), size=STEP), Act("release: what leaves", "]", after=("[",)),
    )),
    Place(SURVEY, "records", (Act("records: why", "enter", after=("q",)), Act("records: dataset", "]"))),
    Place(CENSUS, "runs", (
        Act("quality", OWN_KEYS["quality"], after=("q",)), Act("calibrate", OWN_KEYS["planes"], after=("q",), ms=PLOT_MS),
        Act("minimise", OWN_KEYS["limits"], after=("q",), ms=PLOT_MS), Act("guide", "S", after=("escape",)),
    )),
)  # fmt: skip


class Board:
    """The table that is printed."""

    def __init__(self) -> None:
        self.missed: list[str] = []
        self.astray: list[str] = []
        print(
            f"{'':<30}{'bytes':>8}{'most':>8}{'first ms':>10}{'p95':>7}{'last ms':>9}{'p95':>7}{'alone':>7}{'app ms':>8}  target",
            flush=True,
        )

    def keys(self, act: Act, measured: Sequence[Answer]) -> None:
        """A line for a key that was pressed often."""
        sizes = [one.size for one in measured]
        first, last, computed = ([getattr(one, name) for one in measured] for name in ("first", "last", "computed"))
        late, alone = (
            float(np.quantile(times, 0.95)) for times in (last, [max(0.0, a.last - a.waited) for a in measured])
        )
        line = (
            f"{act.what:<30}{np.median(sizes):>8,.0f}{max(sizes):>8,}{np.median(first):>10.1f}"
            f"{np.quantile(first, 0.95):>7.1f}{np.median(last):>9.1f}{late:>7.1f}{alone:>7.1f}{np.median(computed):>8.1f}"
        )
        outcome = "NOT MET"
        if act.silent or min(sizes):
            small = max(sizes) <= act.size
            outcome = "met" if small and late <= act.ms else "met alone" if small and alone <= act.ms else "NOT MET"
        self._say(f"{line}  {act.ms:.0f} ms, {act.size // 1000} kB", act.what, outcome)

    def figure(self, what: str, value: float, unit: str, target: float) -> None:
        """A line for a single figure."""
        line = f"{what:<78}{value:>9,.0f} {unit:<6}  {target:,.0f} {unit}"
        self._say(line, what, "met" if value <= target else "NOT MET")

    def _say(self, line: str, what: str, outcome: str) -> None:
        print(f"{line:<118}{outcome}", flush=True)
        if outcome != "met":
            self.missed.append(f"{what}{' (met alone)' if outcome == 'met alone' else ''}")


def at(workspace: Path, project: str, tab: str) -> None:
    """Have the app open there."""
    from sfumato.tui.session.state import AppState, save_state

    number = {LARGE: 1, SURVEY: 2, CENSUS: 3}[project]
    save_state(workspace, AppState(project=number, tab=tab))


def chosen(arguments: argparse.Namespace, *names: str) -> bool:
    """Whether a part of the benchmark was asked for."""
    return any(arguments.only in name for name in names)


def measure_start(workspace: Path, board: Board, columns: int, lines: int, repeats: int) -> None:
    """First paint of the list of projects and of each tab as it was left."""
    (workspace / "app-state.json").unlink(missing_ok=True)
    for what, environment, target in (("warm", {}, WARM_MS), ("cold: no .pyc, files not in memory", None, COLD_MS)):
        times = [_start(workspace, columns, lines, environment, b"Census") for _ in range(max(5, repeats // 3))]
        frame, content = np.median(np.array(times), axis=0)
        board.figure(f"start to first paint, {what}", float(frame), "ms", target)
        board.figure(f"start to the projects, {what}", float(content), "ms", target)


def _start(workspace: Path, columns: int, lines: int, environment: dict[str, str] | None, text: bytes) -> list[float]:
    with tempfile.TemporaryDirectory() as nowhere:
        if environment is None:
            environment = {"PYTHONPYCACHEPREFIX": nowhere}
            _forget_files()
        terminal = Terminal.of_app(workspace, columns, lines, environment)
        found = terminal.until(b"Sfumato", text)
        terminal.settle()
        terminal.close()
    return found


def _forget_files() -> None:
    """Have the system read our sources and the toolkit's from disk again, as far as others do not use them."""
    roots = [Path(textual.__file__).parent, Path(textual.__file__).parents[1] / "rich"]
    roots += [Path(__file__).parents[2] / name for name in ("tui", "workspace", "engine")]
    roots.append(Path(os.__file__).parent)
    for root in roots:
        for path in root.rglob("*.py"):
            with path.open("rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def measure_place(workspace: Path, place: Place, board: Board, columns: int, lines: int, repeats: int) -> None:
    """Every act of a place, in one session."""
    at(workspace, place.project, place.tab)
    terminal = opened(workspace, columns, lines)
    for act in place.acts:
        _run(terminal, act.once)
        measured, unchanged, start = [], 0, _where(terminal)
        for number in range(repeats + 1):
            _run(terminal, act.before)
            shown = terminal.picture()
            answer = terminal.press(act.key, patience=PATIENCE)
            terminal.rest(SETTLED)
            unchanged += terminal.picture() == shown
            if number:
                measured.append(answer)
            _run(terminal, act.after)
        board.keys(act, measured)
        if terminal.process.poll() is not None:
            sys.exit(
                "\n".join([*board.astray, f"{act.what}: {' '.join((*act.before, act.key, *act.after))} left the app"])
            )
        if unchanged and not act.silent:
            board.astray.append(f"{act.what}: {act.key} changed nothing {unchanged} of {repeats + 1} times")
        if act.after and (end := _where(terminal)) != start:
            board.astray.append(f"{act.what}: {' '.join(act.after)} led to {end!r}, not back to {start!r}")
        if act.what == "open the project":
            _run(terminal, (act.key,))
    terminal.close()


def opened(workspace: Path, columns: int, lines: int) -> Terminal:
    """The app as it was left, once it is there and quiet."""
    terminal = Terminal.of_app(workspace, columns, lines)
    terminal.until(b"Keys")
    terminal.rest(1.0)
    return terminal


def _where(terminal: Terminal) -> list[str]:
    """The project, the place and the tab."""
    return [line.split("\N{MULTIPLICATION X}")[0].rstrip() for line in terminal.text()[:2]]


def _run(terminal: Terminal, keys: Sequence[str]) -> None:
    """Keys whose answers are not measured."""
    for key in keys:
        terminal.press(key)
        terminal.rest(SETTLED)


def measure_idle(workspace: Path, board: Board, columns: int, lines: int) -> None:
    """Bytes a second on every tab while nobody does anything."""
    at(workspace, LARGE, "plan")
    terminal = opened(workspace, columns, lines)
    for name, key in TABS.items():
        terminal.press_unmeasured(key)
        terminal.settle(3.0)
        board.figure(f"idle on {name}", terminal.idle(IDLE_SECONDS / 2), "B/s", IDLE_BYTES)
    terminal.close()


def measure_opening(workspace: Path, board: Board, columns: int, lines: int, repeats: int) -> None:
    """The million records: from the key to the histograms, and the memory of the app with them open."""
    seconds, memory = [], []
    for _ in range(max(3, repeats // 5)):
        at(workspace, LARGE, "runs")
        terminal = opened(workspace, columns, lines)
        begun = time.perf_counter() - terminal.started
        os.write(terminal.master, TABS["data"].encode())
        seconds.append(terminal.until(b"1,000,000 records")[0] - 1000 * begun)
        terminal.settle(1.0)
        terminal.press_unmeasured(TABS["results"], "s", "G")
        memory.append(terminal.megabytes())
        terminal.close()
    board.figure(f"open {RECORDS:,} records", float(np.median(seconds)), "ms", OPEN_MS)
    board.figure(f"memory with them and {ROWS:,} rows open", max(memory), "MB", MEMORY_MB)


def measure_during_work(workspace: Path, board: Board, columns: int, lines: int, repeats: int) -> None:
    """Keys in the results while threads or processes of the app are at work."""
    for what, begin in (
        ("profiling the records", (TABS["data"],)),
        ("hashing and ranking the records", (TABS["records"],)),
        ("reading and sorting the rows", (TABS["results"], "s", "s", "s")),
        ("writing the rows to a file", (TABS["results"], "e", "enter")),
    ):
        measured: list[Answer] = []
        while len(measured) < 2 * repeats:
            measured.extend(_while_working(workspace, begin, columns, lines))
        board.keys(Act(f"step while {what}"[:30], "j", size=PAGE), measured)


def _while_working(workspace: Path, begin: Sequence[str], columns: int, lines: int) -> Iterator[Answer]:
    """Fifteen steps in the results straight after work was begun."""
    at(workspace, LARGE, "results")
    terminal = opened(workspace, columns, lines)
    for key in begin:
        terminal.press(key, quiet=0.03)
    if begin[0] != TABS["results"]:
        terminal.press(TABS["results"], quiet=0.03)
    for step in range(15):
        yield terminal.press("jk"[step % 2], quiet=0.05)
    terminal.settle(0.5)
    terminal.close()


def main() -> None:
    """Measure all that was asked for, at every size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="80x24,120x40,160x50")
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--only", default="", help="a word: start, keys, idle, open, work, or a tab")
    parser.add_argument("--workspace", type=Path, help="one that was built before")
    arguments = parser.parse_args()
    missed: list[str] = []
    astray: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        workspace = Path(folder) / "workspace"
        if arguments.workspace is not None:
            shutil.copytree(arguments.workspace, workspace)
        else:
            build(workspace)
        take_own_keys(Path(folder))
        for size in arguments.sizes.split(","):
            columns, lines = map(int, size.split("x"))
            print(f"\n{size}, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}")
            board = Board()
            measure(workspace, board, columns, lines, arguments)
            missed += [f"{size} {what}" for what in board.missed]
            astray += [f"{size} {what}" for what in board.astray]
    print(f"\nnot met: {'; '.join(missed) or 'none'}")
    if astray:
        sys.exit("\n".join(["these acts were not measured, their keys do something else:", *astray]))


def measure(workspace: Path, board: Board, columns: int, lines: int, arguments: argparse.Namespace) -> None:
    """Every part that was asked for, at one size."""
    repeats = arguments.repeats
    if chosen(arguments, "start"):
        measure_start(workspace, board, columns, lines, repeats)
    if chosen(arguments, "open"):
        measure_opening(workspace, board, columns, lines, repeats)
    for place in PLACES:
        if chosen(arguments, "keys", place.tab, place.project):
            measure_place(workspace, place, board, columns, lines, repeats)
    if chosen(arguments, "work"):
        measure_during_work(workspace, board, columns, lines, repeats)
    if chosen(arguments, "idle"):
        measure_idle(workspace, board, columns, lines)


if __name__ == "__main__":
    sys.exit(main())
