"""The sheet of variables at 5, 60 and 500 columns: milliseconds and bytes of its keys, on a terminal of 80 by 24: prints a table."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
from pty_app import Terminal

from sfumato.tui.session.state import AppState, save_state
from sfumato.workspace.service.importing import import_file

KEYS = ("j", "space", "pagedown", "x", "u", "asterisk", "x", "u", "x", "u", "slash", "7", "escape", "G", "home")
SHOWN = {"asterisk": "*"}


def imported(folder: Path, columns: int, records: int = 2000) -> Path:
    """A workspace with a project of so many columns, counts and categories in turn."""
    rng = np.random.default_rng(1)
    frame = {
        f"v{place:03}": rng.poisson(40, records) if place % 2 else rng.choice(["a", "b", "c", "d"], records)
        for place in range(columns)
    }
    pd.DataFrame(frame).to_csv(folder / "wide.csv", index=False)
    import_file(folder / "w", str(folder / "wide.csv"), "wide")
    save_state(folder / "w", AppState(project=1, tab="data"))
    return folder / "w"


def main() -> None:
    """Print what each key costs; first what it takes until the names of variables are painted, and until values are."""
    print(f"{'columns':>7}  {'key':<10}{'first ms':>9}{'last ms':>9}{'computed':>9}{'bytes':>8}")
    for columns in (5, 60, 500):
        with tempfile.TemporaryDirectory() as folder:
            terminal = Terminal.of_app(imported(Path(folder), columns), 80, 24)
            named, read = terminal.until(b"v001", "▁".encode(), seconds=60)
            print(f"{columns:>7}  {'open':<10}{named:>9.0f}{read:>9.0f}")
            terminal.settle(2)
            for key in KEYS:
                answer = terminal.press(SHOWN.get(key, key), quiet=0.3, patience=2.0)
                time.sleep(0.5)
                terminal.settle(0.3)
                print(
                    f"{columns:>7}  {key:<10}{answer.first:>9.1f}{answer.last:>9.1f}{answer.computed:>9.1f}{answer.size:>8,}"
                )
            terminal.process.terminate()
            terminal.process.wait(10)


main()
