"""Reading of files that a recipe names and that lie beside it: trees, seed pools, intruder files, decided cells.

    hierarchies = { education = "education.csv" }     # ARX's layout, a line a value: value;level 1;...;root (or tau-Argus's)
    also = { region = { coast = "coast.csv" } }       # a line a value: value;group
    seeds = "pool.csv"                                # a CSV table with a column a target, public already
    fixed = { turnover = "turnover.hst" }             # cells of a table that are decided, in CSV or as tau-ARGUS has them
    external = "register.csv"                         # a CSV table with a column a variable that the intruder knows

Only plain files in UTF-8, in the recipe's folder or below it and up to a size, are read.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sfumato.engine.design.seed_pools import SeedPool
from sfumato.engine.errors import BadInput, near_miss_hint
from sfumato.engine.matching.intruder_file import IntruderFile
from sfumato.engine.partition.hierarchy_files import parse_hierarchy_rows
from sfumato.engine.statistics.csv_lines import MAX_TABLE_BYTES as MOST_OF_LINES

from ..errors import StrangeFile
from ..plain_files import read_plain
from ..table_files.apriori_csv import read_apriori_csv
from ..table_files.argus_apriori import read_apriori

SECTIONS_WITH_FILES = ("synthesis", "anonymisation", "measure", "study", "table")
MAX_TREE_BYTES = 64 << 20
ARGUS_APRIORI = ".hst"


def read_recipe_files(table: Mapping[str, Any], folder: Path | None) -> dict[str, Any]:
    """Return a copy of a recipe's table with the content of files in place of their names.

    ``folder`` is where the files lie. Raises BadInput at ``anonymisation[0].hierarchies.education`` or
    ``synthesis[0].seeds``.
    """
    read = {
        key: _read_section_files(value, key, folder) if key in SECTIONS_WITH_FILES else value
        for key, value in table.items()
    }
    rules = read.get("tables")
    if isinstance(rules, Mapping) and isinstance(fixed := rules.get("fixed"), str | Mapping):
        read["tables"] = {**rules, "fixed": _read_fixed_cells(fixed, read.get("table"), folder)}
    return read


def _read_fixed_cells(fixed: str | Mapping[str, Any], tables: Any, folder: Path | None) -> Any:
    """Return the decided cells of a priori files: of one in CSV, or of one of tau-ARGUS for a table. Raises BadInput."""
    place = "tables.fixed"
    by = {
        str(one.get("name")): tuple(map(str, one.get("by") or ()))
        for one in (tables if isinstance(tables, list) else ())
        if isinstance(one, Mapping)
    }
    if isinstance(fixed, str) and not fixed.lower().endswith(ARGUS_APRIORI):
        return read_apriori_csv(_read_apriori_text(fixed, place, folder), by, f'{place}, "{fixed}"')
    if isinstance(fixed, str):
        if len(by) != 1:
            raise BadInput(place, f'"{fixed}" names no table; write fixed = {{ TABLE = "{fixed}" }}')
        fixed = {next(iter(by)): fixed}
    found = []
    for table, name in fixed.items():
        if table not in by:
            raise BadInput(f"{place}.{table}", f'there is no table "{table}"{near_miss_hint(table, by)}')
        text = _read_apriori_text(name, f"{place}.{table}", folder)
        lines = read_apriori(text, len(by[table]), f'{place}.{table}, "{name}"')
        found += [one.to_fixed(table, by[table]) for one in lines]
    return found


def _read_apriori_text(name: Any, place: str, folder: Path | None) -> str:
    """Return the text of an a priori file. Raises BadInput."""
    if not isinstance(name, str):
        raise BadInput(place, 'must be the name of a file, such as "turnover.hst"')
    if folder is None:
        raise BadInput(
            place, f'"{name}" is a file beside a recipe, and this recipe lies in no folder; give the cells as a list'
        )
    return _read_text_beside(
        name,
        place,
        folder,
        MOST_OF_LINES,
        "an a priori file",
        "name a CSV file, or one of tau-ARGUS, beside the recipe",
    )


def _read_section_files(steps: Any, section: str, folder: Path | None) -> Any:
    """Return the steps of a section with the content of the files that they name."""
    if not isinstance(steps, list):
        return steps
    return [_read_step_files(step, f"{section}[{i}]", folder) for i, step in enumerate(steps)]


def _read_step_files(step: Any, place: str, folder: Path | None) -> Any:
    """Return a step's table with the content of the files that it names."""
    # What is no table is left for ``Recipe.from_table`` to refuse, with its place.
    if not isinstance(step, Mapping):
        return step
    read: dict[str, Any] = {}
    if isinstance(trees := step.get("hierarchies"), Mapping):
        at = f"{place}.hierarchies"
        read["hierarchies"] = {
            name: _read_tree(tree, f"{at}.{name}", folder) if isinstance(tree, str) else tree
            for name, tree in trees.items()
        }
    if isinstance(also := step.get("also"), Mapping):
        read["also"] = {
            variable: _read_groupings(groupings, f"{place}.also.{variable}", folder)
            for variable, groupings in also.items()
        }
    seeds = step.get("seeds")
    if isinstance(seeds, str) and seeds not in SeedPool.words:
        read["seeds"] = _read_seed_pool(seeds, f"{place}.seeds", folder)
    if isinstance(external := step.get("external"), str):
        read["external"] = _read_intruder_file(external, f"{place}.external", folder)
    return {**step, **read}


def _read_tree(name: str, place: str, folder: Path | None) -> list[list[str]]:
    """Read a tree of generalisation: a row for each value, from the value to the root. Raises BadInput."""
    if folder is None:
        raise BadInput(place, "names a file, and this recipe lies in no folder; give the tree as rows")
    text = _read_text_beside(name, place, folder, MAX_TREE_BYTES, "a tree", "a tree is a file with a line a value")
    try:
        return [list(row) for row in parse_hierarchy_rows(text)]
    except ValueError as error:
        raise BadInput(place, f'"{name}": {error}') from None
    except csv.Error:
        raise BadInput(place, f'"{name}" is not a table of values with semicolons') from None


def _read_groupings(groupings: Any, place: str, folder: Path | None) -> Any:
    """Return the second groupings of a variable with rows in place of files. Raises BadInput."""
    # A text names a variable; files stand under the name of their grouping.
    if not isinstance(groupings, Mapping):
        return groupings
    return {
        name: _read_tree(rows, f"{place}.{name}", folder) if isinstance(rows, str) else rows
        for name, rows in groupings.items()
    }


def _read_seed_pool(name: str, place: str, folder: Path | None) -> str | list[str]:
    """Read a pool of seeds as a recipe writes it. Raises BadInput."""
    known = " or ".join(f'"{word}"' for word in SeedPool.words)
    if folder is None:
        raise BadInput(
            place, f'"{name}" is not {known}; a file of seeds lies beside a recipe, and this one lies in no folder'
        )
    text = _read_text_beside(
        name, place, folder, MOST_OF_LINES, "a seed pool", f"say {known}, or name a CSV file beside the recipe"
    )
    try:
        return SeedPool.from_text(text).written
    except ValueError as error:
        raise BadInput(place, str(error)) from None


def _read_intruder_file(name: str, place: str, folder: Path | None) -> list[str]:
    """Read an intruder's file as the lines that a recipe writes. Raises BadInput."""
    if folder is None:
        raise BadInput(place, f'"{name}" is a file beside a recipe, and this recipe lies in no folder')
    text = _read_text_beside(
        name, place, folder, MOST_OF_LINES, "an intruder's file", "name a CSV file beside the recipe"
    )
    try:
        return IntruderFile.from_text(text).written
    except ValueError as error:
        raise BadInput(place, str(error)) from None


def _read_text_beside(name: str, place: str, beside: Path, most: int, what: str, advice: str) -> str:
    """Read the text of a plain file in the folder of the recipe or below, up to ``most`` bytes. Raises BadInput."""
    try:
        folder, path = beside.resolve(), (beside / name).resolve()
        # A recipe may come from somebody else: it must not make us read, and quote in messages, any other file.
        # ``resolve`` has followed links.
        if not path.is_relative_to(folder):
            raise BadInput(place, f'"{name}" lies outside the folder of the recipe; put the file beside the recipe')
        # Spreadsheets write a byte order mark before the first value.
        return read_plain(path, most).decode("utf-8-sig")
    except StrangeFile as error:
        raise BadInput(place, f'"{name}" is {error.kind}, not {what}; {advice}') from None
    except BadInput:
        raise
    except UnicodeDecodeError:
        raise BadInput(place, f'"{name}" is not text in UTF-8') from None
    except (OSError, ValueError):  # no path has a NUL
        raise BadInput(place, f'"{name}" cannot be read; {advice}') from None
