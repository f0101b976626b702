"""Bytes and milliseconds of what the widgets send to a terminal, measured on a pseudo-terminal.

    python tests/benchmarks/terminal_widgets.py [columns] [lines]

Milliseconds run from the key to the last byte that it causes; targets are in brackets.
"""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import duckdb
import numpy as np
from pty_app import Answer, Terminal
from textual.app import App, ComposeResult
from textual.binding import BindingType

from sfumato.tui.widgets.grid import Grid
from sfumato.tui.widgets.heat import HeatPane, lay_out_panes, most_bins
from sfumato.tui.widgets.heatmap import HeatMap
from sfumato.tui.widgets.pages import TableRow
from sfumato.tui.widgets.plot import Plot
from sfumato.workspace.plots.figure import AxisBins, BinShares, make_shade_steps
from sfumato.workspace.plots.series import Series
from sfumato.workspace.reporting.tables import DisplayColumn

REPEATS = 8


class ParquetPages:
    """A million rows of twelve columns, read by position from a Parquet file."""

    def __init__(self, path: Path) -> None:
        self._path = str(path)
        self._database = duckdb.connect()
        names = ["id", *(f"c{i}" for i in range(11))]
        self.columns = tuple(DisplayColumn(name, name, 8, "left" if name == "c0" else "right") for name in names)

    def count(self) -> int:
        found = self._database.execute("select count(*) from read_parquet(?)", [self._path]).fetchone()
        return int(found[0]) if found else 0

    def rows(self, offset: int, limit: int) -> Sequence[TableRow]:
        query = "select * from read_parquet(?) where file_row_number between ? and ? order by file_row_number"
        query = query.replace("?)", "?, file_row_number = true)", 1)
        return self._database.execute(query, [self._path, offset, offset + limit - 1]).fetchall()


def write_table(path: Path, rows: int) -> None:
    columns = ", ".join(f"(i * {7 + k}) % {10 ** (k % 5 + 1)} / {k}.0 as c{k}" for k in range(1, 11))
    duckdb.sql(
        f"copy (select i as id, 'room ' || i % 97 as c0, {columns} from range({rows}) t(i)) to '{path}' (format parquet)"
    )


def plots() -> dict[str, list[Series]]:
    rng = np.random.default_rng(1)
    level = np.linspace(0, 0.15, 16)
    risk, walk = 0.04 * np.exp(-9 * level), rng.normal(size=50_000).cumsum()
    shares = np.arange(1, 3001) / 3000
    return {
        "three distribution functions": [
            Series(f"draw {i}", np.sort(rng.gamma(2 + i, size=3000)), shares, marker="steps") for i in range(3)
        ],
        "scatter of 400": [Series("releases", rng.random(400), rng.random(400), marker="points")],
        "sweep with bands": [
            Series("synthetic", level, risk, 0.9 * risk, 1.1 * risk),
            Series("confidential", level, 2 * risk, 1.9 * risk, 2.1 * risk),
        ],
        "bars, two groups of 20": [
            Series(name, np.arange(20), rng.random(20), marker="bars") for name in ("confidential", "synthetic")
        ],
        "trace of 50,000": [Series("walk", np.arange(50_000), walk)],
    }


class PlotApp(App[None]):
    BINDINGS: ClassVar[list[BindingType]] = [("q", "quit", "Quit")]

    def __init__(self, series: list[Series]) -> None:
        super().__init__()
        self._series = series

    def compose(self) -> ComposeResult:
        yield Plot()

    def on_mount(self) -> None:
        self.query_one(Plot).set_series(self._series, title="A plot", x_label="x", y_label="y")
        self.query_one(Plot).focus()


class HeatApp(App[None]):
    """Three maps of a joint distribution, or of noise; ``n`` shows another one."""

    BINDINGS: ClassVar[list[BindingType]] = [("q", "quit", "Quit"), ("n", "next", "Next")]

    def __init__(self, noise: bool) -> None:
        super().__init__()
        self._bins = most_bins(lay_out_panes(shutil.get_terminal_size(), 3, 3))
        self._noise, self._rng = noise, np.random.default_rng(1)

    def compose(self) -> ComposeResult:
        yield HeatMap()

    def on_mount(self) -> None:
        self.action_next()
        self.query_one(HeatMap).focus()

    def action_next(self) -> None:
        maps = [self._shares() for _ in range(2)]
        bins = [AxisBins(np.arange(many + 1.0)) for many in self._bins]
        cells = [BinShares(one, *bins) for one in maps] + [BinShares(maps[1] - maps[0], *bins, signed=True)]
        shades = [make_shade_steps(cells[:2])] * 2 + [make_shade_steps(cells[2:])]
        names = ("confidential", "synthetic", "difference")
        panes = [HeatPane(name, one, shade) for name, one, shade in zip(names, cells, shades, strict=True)]
        self.query_one(HeatMap).show_panes(panes, ("x", "y"))

    def _shares(self) -> np.ndarray:
        if self._noise:
            return self._rng.random(self._bins[::-1]) ** 3
        x, y = self._rng.gamma(2, 3, 50_000), self._rng.normal(18, 6, 50_000)
        return np.histogram2d(y, x, bins=self._bins[::-1], range=((0, 36), (0, 38)))[0] / 50_000


class GridApp(App[None]):
    BINDINGS: ClassVar[list[BindingType]] = [("q", "quit", "Quit")]

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    def compose(self) -> ComposeResult:
        yield Grid(ParquetPages(self._path))


def terminal_of(arguments: Sequence[str], columns: int, lines: int) -> Terminal:
    """An app of this file on a pseudo-terminal."""
    terminal = Terminal([sys.executable, __file__, "--app", *arguments], columns, lines)
    terminal.settle(1.0)
    return terminal


def report(what: str, measured: Sequence[Answer], target: str) -> None:
    sizes = [one.size for one in measured]
    milliseconds = statistics.median(one.last for one in measured)
    print(f"{what:<45}{statistics.median(sizes):>9,.0f} B (most {max(sizes):>6,})  {milliseconds:>6.1f} ms  {target}")


def measure_plots(columns: int, lines: int) -> None:
    for name in plots():
        terminal = terminal_of(["plot", name], columns, lines)
        terminal.press("right")
        report(f"{name}: cursor", [terminal.press("right") for _ in range(REPEATS)], "(12 kB, 50 ms)")
        report(f"{name}: zoom", [terminal.press("+") for _ in range(REPEATS)], "(12 kB, 50 ms)")
        terminal.close()


def measure_heat(columns: int, lines: int) -> None:
    for name in ("joint distribution", "noise"):
        terminal = terminal_of(["heat", name], columns, lines)
        terminal.press("right")
        report(f"heat map of {name}: cursor", [terminal.press("right") for _ in range(REPEATS)], "(1 kB, 30 ms)")
        report(f"heat map of {name}: another", [terminal.press("n") for _ in range(REPEATS)], "(55 kB, 50 ms)")
        terminal.close()


def measure_grid(columns: int, lines: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.parquet"
        write_table(path, 1_000_000)
        start = time.perf_counter()
        pages = ParquetPages(path)
        count, first = pages.count(), pages.rows(0, 500)
        print(f"1,000,000 rows, count and first page{'':<10}{1000 * (time.perf_counter() - start):>9.0f} ms  (500 ms)")
        assert (count, len(first)) == (1_000_000, 500)
        terminal = terminal_of(["grid", str(path)], columns, lines)
        report("cursor step", [terminal.press("down") for _ in range(REPEATS)], "(1 kB, 30 ms)")
        report("page", [terminal.press("pagedown") for _ in range(REPEATS)], "(12 kB, 30 ms)")
        report("end, home", [terminal.press(key) for key in ("end", "home") * (REPEATS // 2)], "(12 kB twice)")
        terminal.press("pagedown")
        report("step that scrolls", [terminal.press("k") for _ in range(REPEATS)], "(12 kB, 30 ms)")
        print(f"memory of the grid's process: {terminal.megabytes():.0f} MB  (150 MB)")
        terminal.close()


def main(arguments: Sequence[str]) -> None:
    if arguments[:1] == ["--app"]:
        kinds = {"plot": lambda name: PlotApp(plots()[name]), "heat": lambda name: HeatApp(name == "noise")}
        kinds.get(arguments[1], lambda name: GridApp(Path(name)))(arguments[2]).run()
        return
    columns, lines = [int(argument) for argument in arguments] or [120, 40]
    measure_plots(columns, lines)
    measure_heat(columns, lines)
    measure_grid(columns, lines)


if __name__ == "__main__":
    main(sys.argv[1:])
