"""What keys cost in the app on a run over a large table: python tests/benchmarks/large_table.py [--rows 1000000] [--size 80x24] [--workspace DIR]

Imports and runs the survey of ``ten_million.py`` (five variables, m = 2, linear regression, ecdf, identification, a sweep of two levels), opens the
app on it, and presses the keys of every tab that reads records or rows. Milliseconds from the key to the first and the last byte that it
causes, what the app itself computed meanwhile, and bytes; at the end the app's memory. No key may cost more where there are more records.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from pty_app import Terminal
from ten_million import MEASURES, REGRESSION, VARIABLES, write

from sfumato.tui.session.state import AppState, save_state

STUDY = """
[[study]]
method = "studies.intruder_uncertainty"
variable = "age"
levels = [0.0, 0.05]

[[threshold]]
value = "risk.identification.true_match_rate"
max = 0.9
"""
PLACES: dict[str, tuple[str, ...]] = {
    "runs": ("j", "2"),
    "results": ("j", "pagedown", "d", "G", "enter", "q", "o"),
    "verdicts": ("j", "v", "escape"),
    "sweep": ("m", "right", "t"),
    "records": ("j", "pagedown", "pagedown", "G", "pageup", "g", "o", "G", "m", "enter", "q", "]", "enter", "q"),
    "data": ("j", "j", "j", "j", "i", "u", "p", "p", "enter", "escape"),
    "distributions": ("m", "p", "p", "t"),
    "plan": ("j", "enter", "escape"),
    "map": ("x", "escape", "t"),
}
"""Keys that are pressed one after another in a tab."""


def build(folder: Path, rows: int) -> Path:
    """A workspace with a run over so many records that is done."""
    write(folder / "survey.parquet", rows)
    steps = f"{VARIABLES}{REGRESSION}{MEASURES['ecdf']}{MEASURES['identification']}{STUDY}"
    (folder / "survey.toml").write_text(f'title = "Large survey"\n[data]\nfile = "survey.parquet"\n{steps}')
    command = [str(Path(sys.executable).with_name("sfumato")), "run", str(folder / "survey.toml")]
    subprocess.run(
        [*command, "--workspace", str(folder / "w"), "--jobs", "1", "--key", "public", "--quiet"], check=True
    )
    return folder / "w"


def rest(terminal: Terminal, still: float = 20.0, seconds: int = 120) -> None:
    """Wait until the app computes less than ``still`` milliseconds a second: what it loads in its first seconds is loaded."""
    for _ in range(seconds):
        before = terminal.computed()
        terminal.idle(1.0)
        if terminal.computed() - before < still:
            return


def measure(workspace: Path, columns: int, lines: int, only: Sequence[str]) -> None:
    """Print a line for every key."""
    print(f"{'tab':<14}{'key':<10}{'first ms':>9}{'last ms':>9}{'computed':>9}{'bytes':>8}")
    for tab in only:
        save_state(workspace, AppState(project=1, run=1, tab=tab))
        terminal = Terminal.of_app(workspace, columns, lines)
        try:
            (shown,) = terminal.until(b"Large survey")
            size, _, last = terminal.read(3.0, 3.0)
            print(f"{tab:<14}{'open':<10}{shown:>9.0f}{shown + last:>9.0f}{'':>9}{size:>8,}")
            rest(terminal)
            for key in PLACES[tab]:
                answer = terminal.press(key, quiet=0.3, patience=2.0)
                rest(terminal)
                print(
                    f"{tab:<14}{key:<10}{answer.first:>9.1f}{answer.last:>9.1f}{answer.computed:>9.1f}{answer.size:>8,}",
                    flush=True,
                )
            print(f"{tab:<14}{terminal.megabytes():.0f} MB", flush=True)
        finally:
            terminal.process.terminate()
            terminal.process.wait(10)


def main() -> None:
    """Build what is needed and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--size", default="80x24")
    parser.add_argument("--workspace", type=Path, help="one that was built before")
    parser.add_argument("--only", nargs="+", default=list(PLACES), choices=list(PLACES))
    chosen = parser.parse_args()
    columns, lines = map(int, chosen.size.split("x"))
    with tempfile.TemporaryDirectory() as folder:
        measure(chosen.workspace or build(Path(folder), chosen.rows), columns, lines, chosen.only)


if __name__ == "__main__":
    main()
