"""How long keys wait while the tab Data reads and profiles a large table, and while a plan is checked: prints a table."""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from large_workspace import large_data

from sfumato.tui.app.app import SfumatoApp
from sfumato.tui.session.state import AppState, save_state
from sfumato.workspace.store.workspace import Workspace


async def waits(directory: Path, keys: list[str], beats: int) -> tuple[list[float], float]:
    """How late a clock of 5 ms rang, in ms, while the keys were pressed; seconds until the data were shown."""
    late: list[float] = []
    app = SfumatoApp(directory)
    async with app.run_test(size=(120, 40)) as pilot:
        start, shown = time.perf_counter(), 0.0
        for beat in range(beats):
            before = time.perf_counter()
            await asyncio.sleep(0.005)
            late.append((time.perf_counter() - before - 0.005) * 1000)
            if keys and beat % 40 == 39:
                app.simulate_key(keys[(beat // 40) % len(keys)])
            head = app.screen.query("#data-head")
            if not shown and head and "records" in str(head.first().render()):
                shown = time.perf_counter() - start
        await pilot.pause()
    return late, shown


def main() -> None:
    """Print the waits for a table of the size given, else a million records."""
    records = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    with tempfile.TemporaryDirectory() as folder:
        workspace = Workspace.create(Path(folder) / "w")
        with workspace.write_transaction():
            workspace.add_dataset(workspace.ensure_project("large"), "large.csv", "0" * 64, large_data(records))
        workspace.close()
        print(f"{'screen':<28}{'shown s':>9}{'median ms':>11}{'p95 ms':>9}{'worst ms':>10}")
        for tab, keys in (("data", ["j", "k"]), ("plan", ["j", "k", "t", "#", "escape"])):
            save_state(Path(folder) / "w", AppState(project=1, tab=tab))
            late, shown = asyncio.run(waits(Path(folder) / "w", keys, 800))
            said = f"{tab}, {records:,} records"
            print(f"{said:<28}{shown:>9.2f}{np.median(late):>11.1f}{np.quantile(late, 0.95):>9.1f}{max(late):>10.1f}")


main()
