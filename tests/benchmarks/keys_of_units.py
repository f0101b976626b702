"""Files of whole units from file to verdict by the app's keys, beside Adult: python tests/benchmarks/keys_of_units.py [--size 80x24] [--only WORD]

A generated census and a generated panel, sdcMicro's household survey (``testdata.csv``), and Adult, whose records are people: as ``keys_of_public_files.py``
presses them. Roles take a key a column, or a capital for all below, and files have different columns; so the last lines compare the other keys with those of
Adult: a file of units may take two more. Needs the files of SFUMATO_DATA.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

from keys_of_public_files import PublicTable, print_ways
from pty_app import read_request

sys.path.insert(0, str(Path(__file__).parents[1] / "prepared"))
import census
import panel

ADULT = "adult.csv"
MOST_MORE = 2
TABLES = (
    PublicTable(ADULT, "people", "iiwiiisiiiooiis"),
    PublicTable("census.csv", "households, generated", "iooiiis"),
    PublicTable("panel.csv", "people over waves, generated", "iios"),
    PublicTable("testdata.csv", "households of sdcMicro", "ioooooiioosoX"),
)


def main() -> None:
    """Press all keys, and compare."""
    asked = read_request(__doc__, "path")
    with tempfile.TemporaryDirectory() as temporary:
        folder, own = Path(temporary), Path(os.environ["SFUMATO_DATA"])
        for name in (ADULT, "testdata.csv"):
            shutil.copy(own / name, folder)
        census.draw_census(3000, 7).to_csv(folder / "census.csv", index=False)
        panel.draw_panel(1500, 7).to_csv(folder / "panel.csv", index=False)
        keys = print_ways(TABLES, folder, asked)
    others = {table.path: keys[table.path] - len(table.roles) for table in TABLES if table.path in keys}
    for path, count in others.items():
        more = count - others[ADULT] if ADULT in others else None
        compared = "" if more is None else f", {more:+d} beside Adult: {'met' if more <= MOST_MORE else 'NOT MET'}"
        print(f"{path}: {count} keys besides roles{compared}")


if __name__ == "__main__":
    main()
