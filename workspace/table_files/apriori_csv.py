"""A priori files in CSV: a line a cell, with its table, the label of each variable and what is decided.

    table,region,trade,status,level,cost,factor
    turnover,north,,published,,,
    turnover,south,retail,,,,3

An empty label is the total. The column ``table`` may be left out where a recipe has one table, and so may columns in
which nothing is decided.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_args

from sfumato.engine.errors import BadInput, near_miss_hint
from sfumato.engine.recipe.table_sections import CellStatus
from sfumato.engine.tables.declared_table import TOTAL
from sfumato.engine.wording import count_noun

from .delimited_lines import LINE_END, check_code, format_number, join_cells, parse_number, split_lines

NUMBERS = ("level", "cost", "factor")
DECIDED = ("status", *NUMBERS)
TABLE = "table"


def read_apriori_csv(text: str, tables: Mapping[str, Sequence[str]], place: str) -> list[dict[str, Any]]:
    """Read the entries of a recipe's ``fixed``; ``tables`` are the variables of each table. Raises BadInput at the line."""
    first = next((line for line in LINE_END.split(text) if line.strip()), "")
    separator = max(",;\t", key=first.count)
    lines = split_lines(text, separator, place)
    number, heads = next(lines, (1, list[str]()))
    _check_heads(heads, tables, f"{place}, line {number}")
    return [_read_entry(heads, cells, tables, separator, f"{place}, line {number}") for number, cells in lines]


def _check_heads(heads: Sequence[str], tables: Mapping[str, Sequence[str]], place: str) -> None:
    """Raise BadInput where the first line does not name columns of such a file."""
    variables = list(dict.fromkeys(name for by in tables.values() for name in by))
    known = [TABLE, *variables, *DECIDED]
    for head in heads:
        if head not in known:
            raise BadInput(place, f'no column "{head}"{near_miss_hint(head, known) or "; known: " + ", ".join(known)}')
        if heads.count(head) > 1:
            raise BadInput(place, f'has the column "{head}" twice')
    if not set(heads) & set(DECIDED):
        raise BadInput(place, f"decides nothing; add a column {', '.join(DECIDED[:-1])} or {DECIDED[-1]}")
    if TABLE not in heads and len(tables) > 1:
        raise BadInput(place, "the recipe has several tables; add a column table that names the one of each line")


def _read_entry(
    heads: Sequence[str], cells: Sequence[str], tables: Mapping[str, Sequence[str]], separator: str, place: str
) -> dict[str, Any]:
    """Return the entry of a line. Raises BadInput."""
    if len(cells) != len(heads):
        raise BadInput(place, f"has {count_noun(len(cells), 'cell')}; the first line has {len(heads)}")
    given = {head: cell for head, cell in zip(heads, cells, strict=True) if cell}
    name = given.pop(TABLE, next(iter(tables)) if len(tables) == 1 else "")
    if name not in tables:
        raise BadInput(place, f'there is no table "{name}"{near_miss_hint(name, tables)}')
    found: dict[str, Any] = {TABLE: name}
    if cell := {key: label for key, label in given.items() if key not in DECIDED}:
        if strange := [key for key in cell if key not in tables[name]]:
            raise BadInput(place, f'"{name}" is not by "{strange[0]}"; leave the label out')
        found["cell"] = cell
    if status := given.get("status"):
        if status not in get_args(CellStatus):
            words = get_args(CellStatus)
            raise BadInput(place, f'"{status}" is not one of {", ".join(words)}{near_miss_hint(status, words)}')
        found["status"] = status
    found |= {key: parse_number(given[key], separator, place) for key in NUMBERS if key in given}
    if not set(found) & set(DECIDED):
        raise BadInput(place, "decides nothing; say a status, a level, a cost or a factor")
    return found


def write_apriori_csv(entries: Sequence[Mapping[str, Any]], tables: Mapping[str, Sequence[str]]) -> str:
    """Return the entries of a recipe's ``fixed`` as a CSV file."""
    variables = list(dict.fromkeys(name for by in tables.values() for name in by))
    lines = [join_cells([TABLE, *variables, *DECIDED], ",")]
    for entry in entries:
        labels = [check_code(entry.get("cell", {}).get(name, TOTAL)) for name in variables]
        numbers = [format_number(entry[key]) if key in entry else "" for key in NUMBERS]
        lines.append(join_cells([entry[TABLE], *labels, entry.get("status", ""), *numbers], ","))
    return "".join(lines)
