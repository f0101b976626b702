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
from pathlib import Path

from textual.pilot import Pilot

from tui.app import SfumatoApp
from workspace.database import DATABASE
from workspace.queries import Reader, find_run

HERE = Path(__file__).resolve().parent
CELL = 12.2
SCREENS = (
    ("projects", ()),
    ("runs", ("enter",)),
    ("results", ("2",)),
    ("explain", ("down", "down", "enter")),
    ("verdicts", ("q", "3")),
    ("trial", ("t",)),
    ("release", ("escape", "w")),
    ("sweep", ("escape", "4", "right")),
    ("sweep-log", ("y",)),
    ("sweep-numbers", ("y", "t")),
    ("diagnostics", ("t", "5")),
    ("parameter", ("down", "enter")),
    ("records", ("escape", "6")),
    ("data", ("7",)),
    ("plan", ("8",)),
    ("distributions", ("D",)),
    ("heat-map", ("right_curly_bracket", "right_curly_bracket")),
    ("map", ("escape", "9")),
    ("compare", ("1", "space", "down", "space", "c")),
    ("audit", ("q", "A")),
    ("keys", ("q", "?")),
    ("palette", ("q", "ctrl+p")),
)


def demo_workspace(directory: Path) -> None:
    """Two finished runs of the recipe that ships with data: with the demo's leaves and with fine ones."""
    from workspace.prepare import prepare_run
    from workspace.recipes import find_recipe
    from workspace.worker import work
    from workspace.workspace import Workspace

    workspace = Workspace.create(directory)
    for settings in (["synthesis[1].minbucket=5"], []):
        prepare_run(find_recipe("randhie"), settings=settings).enter(workspace)
    workspace.close()
    work(directory, jobs=1, idle=0)
    with Reader(directory) as reader:
        print(f"demo run: {find_run(reader, 'last').state}")


async def settle(pilot: Pilot[None]) -> None:
    """Wait until threads have delivered and the screen stands still."""
    for _ in range(3):
        await pilot.app.workers.wait_for_complete()
        await pilot.pause(0.1)


def copy_of(workspace: Path, directory: Path) -> Path:
    """The workspace's database in another directory, so that the user's own is only read."""
    directory.mkdir()
    opened = (contextlib.closing(sqlite3.connect(place / DATABASE)) for place in (workspace, directory))
    with next(opened) as source, next(opened) as target:
        source.backup(target)
    return directory


async def take(directory: Path, size: tuple[int, int], theme: str) -> list[Path]:
    """Walk through the screens and save each."""
    os.environ |= {"COLORTERM": "truecolor", "TERM": "xterm-256color"}
    app = SfumatoApp(directory)
    app.theme = theme
    files = []
    async with app.run_test(size=size) as pilot:
        for name, keys in SCREENS:
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
        files = asyncio.run(take(directory, (width, height), arguments.theme))
    for file in files:
        to_png(file)
        print(file.name)


if __name__ == "__main__":
    main()
