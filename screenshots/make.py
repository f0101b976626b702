"""Pictures of every screen of the app: python screenshots/make.py [--workspace DIR] [--size 120x40] [--theme dark].

Writes SVG and PNG files beside this script. The PNG files need the fonts DejaVu Sans and DejaVu Sans Mono
(Debian: fonts-dejavu-core) and cairosvg, a development dependency.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import html
import os
import re
import sqlite3
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import tomli_w
from textual.pilot import Pilot
from textual.worker import WorkerCancelled

from sfumato.engine.methods.run import PUBLIC
from sfumato.tui.app.app import SfumatoApp
from sfumato.workspace.store.database import DATABASE
from sfumato.workspace.store.runs import find_run
from sfumato.workspace.store.workspace import Workspace

HERE = Path(__file__).resolve().parent
CELL = 12.2
Screens = Sequence[tuple[str, Sequence[str]]]
SCREENS = (
    ("projects", ()),
    ("runs", ("enter",)),
    ("results", ("act:results",)),
    ("explain", ("down", "down", "enter")),
    ("verdicts", ("q", "act:verdicts")),
    ("trial", ("T",)),
    ("release", ("escape", "w")),
    ("sweep", ("escape", "act:sweep", "right")),
    ("sweep-log", ("o",)),
    ("sweep-numbers", ("o", "t")),
    ("diagnostics", ("t", "act:diagnostics")),
    ("parameter", ("down", "enter")),
    ("records", ("escape", "act:records")),
    ("data", ("1",)),
    ("draft", ("D",)),
    ("plan", ("escape", "2")),
    ("distributions", ("act:distributions", "right_square_bracket")),
    ("heat-map", ("right_curly_bracket",) * 3),
    ("map", ("escape", "act:map")),
    ("compare", ("3", "space", "space", "c")),
    ("audit", ("q", "act:audit")),
    ("keys", ("q", "?")),
    ("palette", ("q", "ctrl+p")),
)

STUDY_SCREENS = (
    ("quality", ("enter", "act:quality")),
    ("calibrate", ("escape", "act:planes")),
    ("minimise", ("escape", "act:limits")),
    ("guide", ("escape", "S")),
)
BELIEF_SCREENS = (("beliefs", ("enter", "act:beliefs")), ("guesses", ("q", "act:records", "enter")))
BELIEFS: dict[str, Any] = {
    "title": "Health insurance, guessed by who knows all others",
    "data": {"file": "statsmodels:randhie", "sample": 1500},
    "variables": {
        "lncoins": {"kind": "ordinal", "role": "quasi_identifier"},
        "idp": {"kind": "binary", "role": "quasi_identifier"},
        "hlthg": {"kind": "binary", "role": "sensitive"},
        "hlthf": {"kind": "binary", "role": "sensitive"},
        "mdvis": {"kind": "count", "role": "sensitive", "bounds": [0, 365]},
    },
    "release": {"m": 5, "seed": 5},
    "synthesis": [
        {
            "method": "dirichlet_multinomial",
            "target": ["hlthg", "hlthf", "mdvis"],
            "predictors": ["lncoins", "idp"],
            "bins": {"mdvis": "at 1, 2, 3, 5, 8, 12, 20, 40"},
            "concentration": 0.02,
        }
    ],
    "measure": [{"method": "risk.bayesian_posterior", "blocks": 2, "by": "idp"}, {"method": "utility.propensity"}],
    "threshold": [{"value": "risk.bayesian_posterior.posterior_risk", "max_ratio": 1.2}],
}
STUDY: dict[str, Any] = {
    "title": "Data quality under 5-anonymity",
    "data": {"file": "statsmodels:randhie", "sample": 8000},
    "variables": {
        "lncoins": {"kind": "ordinal", "role": "quasi_identifier"},
        "lpi": {"kind": "continuous", "role": "quasi_identifier"},
        "fmde": {"kind": "continuous", "role": "quasi_identifier"},
        "mdvis": {"kind": "count", "role": "quasi_identifier"},
        "hlthg": {"kind": "binary", "role": "sensitive"},
    },
    "release": {"seed": 5},
    "anonymisation": [{"method": "mondrian", "k": 5}],
    "measure": [
        {"method": "quality.pearson"},
        {"method": "quality.rilm"},
        {"method": "quality.nmi_v1"},
        {"method": "quality.non_suppressed"},
        {"method": "risk.anonymity"},
    ],
    "study": [
        {"method": "studies.calibration", "generators": 6, "originals": 4, "sizes": [500, 2000, 8000]},
        {"method": "studies.minimisation", "n": 3000, "step": 0.1, "subsamples": 3},
    ],
    "threshold": [{"value": "risk.anonymity.k", "min": 5}, {"value": "quality.nmi_v1.minimum_nmi", "min": 0.8}],
}


def finished_workspace(directory: Path, table: dict[str, Any]) -> None:
    """A finished run of one of the recipes above."""
    from sfumato.workspace.jobs.worker import run_worker
    from sfumato.workspace.recipes import find_recipe
    from sfumato.workspace.service.prepare import prepare_run

    recipe = directory.with_suffix(".toml")
    recipe.write_text(tomli_w.dumps(table), "utf-8")
    workspace = Workspace.create(directory)
    prepare_run(find_recipe(str(recipe)), key=PUBLIC).enter(workspace)
    workspace.close()
    run_worker(directory, jobs=1, idle=0)
    with Workspace.open(directory, read_only=True) as reader:
        print(f"{directory.name} run: {find_run(reader, 'last').state}")


def empty_workspace(directory: Path) -> None:
    """A workspace as a newcomer sees it."""
    Workspace.create(directory).close()


def demo_workspace(directory: Path) -> None:
    """Two finished runs of the recipe that ships with data: with the demo's leaves and with fine ones."""
    from sfumato.workspace.jobs.worker import run_worker
    from sfumato.workspace.recipes import find_recipe
    from sfumato.workspace.service.prepare import prepare_run

    workspace = Workspace.create(directory)
    for settings in (["synthesis[1].minbucket=5"], []):
        prepare_run(find_recipe("randhie"), settings=settings, key=PUBLIC).enter(workspace)
    workspace.close()
    run_worker(directory, jobs=1, idle=0)
    with Workspace.open(directory, read_only=True) as reader:
        print(f"demo run: {find_run(reader, 'last').state}")


async def settle(pilot: Pilot[None]) -> None:
    """Wait until threads have delivered and the screen stands still."""
    for _ in range(3):
        # A newer look at the same thing cancels the one before.
        with contextlib.suppress(WorkerCancelled):
            await pilot.app.workers.wait_for_complete()
        await pilot.pause(0.1)


def copy_of(workspace: Path, directory: Path) -> Path:
    """The workspace's database in another directory, so that the user's own is only read."""
    directory.mkdir()
    opened = (contextlib.closing(sqlite3.connect(place / DATABASE)) for place in (workspace, directory))
    with next(opened) as source, next(opened) as target:
        source.backup(target)
    return directory


async def take(directory: Path, screens: Screens, size: tuple[int, int], theme: str) -> list[Path]:
    """Walk through the screens and save each."""
    os.environ |= {"COLORTERM": "truecolor", "TERM": "xterm-256color"}
    app = SfumatoApp(directory)
    app.theme = theme
    files = []
    async with app.run_test(size=size) as pilot:
        for name, keys in screens:
            await settle(pilot)
            for key in keys:
                await pilot.press(key)
                await settle(pilot)
            file = HERE / f"{name}.svg"
            file.write_text(portable(app.export_screenshot(title="Sfumato")), "utf-8")
            files.append(file)
    return files


def portable(svg: str) -> str:
    """The picture with a font of the machine in place of one that would be fetched."""
    return re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL).replace("Fira Code", "DejaVu Sans Mono")


def to_png(file: Path) -> None:
    """The PNG beside an SVG."""
    import cairosvg

    placed = re.sub(
        r'<text ([^>]*) x="([\d.]+)" ([^>]*) textLength="[\d.]+" ([^>]*)>([^<]*)</text>',
        _placed,
        file.read_text("utf-8"),
    )
    cairosvg.svg2png(bytestring=placed.encode(), write_to=str(file.with_suffix(".png")))


def _placed(text: re.Match[str]) -> str:
    """A run of text with the place of every letter; cairosvg cannot stretch one to a length.

    DejaVu Sans Mono has no braille, DejaVu Sans has.
    """
    before, x, middle, after, content = text.groups()
    places = " ".join(f"{float(x) + i * CELL:.1f}" for i in range(len(html.unescape(content))))
    font = 'style="font-family: DejaVu Sans"' if re.search(r"[\u2801-\u28ff]", content) else ""
    return f'<text {before} x="{places}" {middle} {after} {font}>{content}</text>'


def main() -> None:
    """Make them all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workspace", type=Path)
    parser.add_argument("--size", default="120x40")
    parser.add_argument("--theme", default="dark")
    arguments = parser.parse_args()
    width, height = map(int, arguments.size.split("x"))
    with tempfile.TemporaryDirectory() as temporary:
        given = arguments.workspace and arguments.workspace.resolve()
        os.chdir(temporary)  # the pictures show the workspace's path
        directory = Path("demo")
        demo_workspace(directory) if given is None else copy_of(given, directory)
        empty_workspace(Path("new"))
        finished_workspace(Path("study"), STUDY)
        finished_workspace(Path("beliefs"), BELIEFS)
        shown = (
            (Path("new"), (("welcome", ()),)),
            (directory, SCREENS),
            (Path("study"), STUDY_SCREENS),
            (Path("beliefs"), BELIEF_SCREENS),
        )
        files = [
            file
            for place, screens in shown
            for file in asyncio.run(take(place, screens, (width, height), arguments.theme))
        ]
    for file in files:
        to_png(file)
        print(file.name)


if __name__ == "__main__":
    main()
