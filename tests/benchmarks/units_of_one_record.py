"""Every shipped recipe with a number of the records, as an identifier and as the number of units of one record each.

    python tests/benchmarks/units_of_one_record.py                        every shipped recipe, as it ships
    python tests/benchmarks/units_of_one_record.py adult anes96           some of them
    python tests/benchmarks/units_of_one_record.py --set release.m=1      with a setting, for a first look

Both runs have one key, and all files of both releases (datasets, results.json, report, documents, figures) are compared byte by
byte. What is not compared, and why, is ``MASKS`` of tests/prepared/one_record_a_unit.py: hashes and sizes of files in which
the recipe or the clock stands, times, and the role of the added column where the recipe or a table of variables states it.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[1] / "prepared"))

from one_record_a_unit import differences, files_of, release_with_numbers, roles_of
from public_data import PUBLIC_DATA

from sfumato.workspace.recipes import find_recipe, shipped_recipes

SHOWN = 5


def compare_roles(name: str, settings: list[str]) -> bool:
    """Print what differs between the two releases of a recipe; return whether nothing does."""
    file = str(find_recipe(name).table["data"]["file"])
    path = "" if file.startswith("statsmodels:") else str(PUBLIC_DATA / file)
    if path and not Path(path).exists():
        print(f"{name:24} not compared: no file {path}", flush=True)
        return False
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        one, other = (release_with_numbers(name, role, Path(folder), path, settings) for role in roles_of(name))
        found = list(differences(one, other))
        files = files_of(one)
        size = sum((one / file).stat().st_size for file in files)
    said = "equal" if not found else f"{len(found)} differences"
    print(
        f"{name:24} {len(files):4} files, {size / 1e6:7.2f} MB: {said}; {time.monotonic() - began:,.0f} s", flush=True
    )
    for text in found[:SHOWN]:
        print(f"    {text}", flush=True)
    return not found


def main() -> None:
    """Compare what the command line asks for, and fail where something differs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("recipes", nargs="*", default=[one.name for one in shipped_recipes()])
    parser.add_argument("--set", action="append", default=[], metavar="SETTING")
    given = parser.parse_args()
    equal = [compare_roles(name, given.set) for name in given.recipes]
    print(f"{sum(equal)} of {len(equal)} recipes equal")
    sys.exit(0 if all(equal) else 1)


if __name__ == "__main__":
    main()
