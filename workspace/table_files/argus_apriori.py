"""A priori files of tau-ARGUS (.hst): what is decided of single cells before any rule, a line a decision.

    North, Total, u             unsafe           North, Total, c, 5           hiding it costs 5
    North, Total, s             safe             North, Total, pl, 10, 12     protection levels below and above
    North, Total, p             always printed   North, Total, ml             hidden; may follow from others

Codes come first, in the order of the table's variables; the total has its own code, or none. Source: tau-ARGUS manual
4.1, section 4.3.5.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sfumato.engine.errors import BadInput, near_miss_hint
from sfumato.engine.recipe.table_sections import CellStatus
from sfumato.engine.tables.declared_table import TOTAL
from sfumato.engine.wording import count_noun

from .delimited_lines import LINE_END, check_code, format_number, join_cells, parse_number, split_lines

STATUS_OF_WORD: dict[str, CellStatus] = {"u": "unsafe", "s": "safe", "p": "published", "ml": "hidden", "m": "hidden"}
WORD_OF_STATUS = {"unsafe": "u", "safe": "s", "published": "p", "hidden": "ml"}
NUMBERS_OF_WORD = {"c": 1, "w": 1, "pl": 2}
"""Numbers that follow a word."""
SEPARATORS = (",", ";", "\t", "|")
TOTALS = ("", "Total", "Tot", "T")


@dataclass(frozen=True, slots=True)
class AprioriLine:
    """Decision about one cell; one of the three is not None.

    codes: code of each variable, "" for the total
    status: what becomes of it
    cost: what hiding it costs
    levels: how far below and above its value it must stay possible
    """

    codes: tuple[str, ...]
    status: CellStatus | None = None
    cost: float | None = None
    levels: tuple[float, float] | None = None

    def to_fixed(self, table: str, by: Sequence[str]) -> dict[str, Any]:
        """Return the entry of a recipe's ``fixed`` that decides the same."""
        cell = {name: code for name, code in zip(by, self.codes, strict=True) if code != TOTAL}
        found: dict[str, Any] = {"table": table} | ({"cell": cell} if cell else {})
        if self.status is not None:
            found["status"] = self.status
        if self.cost is not None:
            found["cost"] = self.cost
        if self.levels is not None:
            found["level"] = max(self.levels)
        return found


def read_apriori(
    text: str, variables: int, place: str, separator: str = "", totals: Iterable[str] = TOTALS
) -> tuple[AprioriLine, ...]:
    """Read the decisions about cells of a table of so many variables. Raises BadInput at the line.

    The separator is found by the first line where none is given. ``totals`` are codes of a total.
    """
    separator = separator or _find_separator(text, variables, place)
    known, found = set(totals), list[AprioriLine]()
    for number, cells in split_lines(text, separator, place):
        at = f"{place}, line {number}"
        if len(cells) <= variables:
            raise BadInput(
                at,
                f"has {count_noun(len(cells), 'cell')}; a line has {count_noun(variables, 'code')} and what is decided",
            )
        codes = tuple(TOTAL if code in known else code for code in cells[:variables])
        found.append(_read_decision(codes, cells[variables:], separator, at))
    return tuple(found)


def _find_separator(text: str, variables: int, place: str) -> str:
    """Return the sign that separates the cells of the first line. Raises BadInput."""
    first = next((line for line in LINE_END.split(text) if line.strip()), "")
    for separator in SEPARATORS if first else SEPARATORS[:1]:
        try:
            cells = next((cells for _, cells in split_lines(first, separator, place)), [])
        except BadInput:
            continue
        if not first or (len(cells) > variables and cells[variables].lower() in (*STATUS_OF_WORD, *NUMBERS_OF_WORD)):
            return separator
    raise BadInput(
        place,
        f"its first line is not {count_noun(variables, 'code')} and what is decided, such as u, s or p, with one of , ; | "
        "or a tab between them",
    )


def _read_decision(codes: tuple[str, ...], cells: Sequence[str], separator: str, place: str) -> AprioriLine:
    """Return the decision of a line. Raises BadInput."""
    word, rest = cells[0].lower(), [cell for cell in cells[1:] if cell]
    if word not in (*STATUS_OF_WORD, *NUMBERS_OF_WORD):
        words = ("u", "s", "p", "m", "ml", "c", "pl")
        raise BadInput(place, f'"{cells[0]}" decides nothing{near_miss_hint(word, words)}; known: {", ".join(words)}')
    wanted = NUMBERS_OF_WORD.get(word, 0)
    if len(rest) != wanted:
        raise BadInput(place, f'"{word}" is followed by {count_noun(wanted, "number")}, not {len(rest)}')
    numbers = [parse_number(cell, separator, place) for cell in rest]
    if word == "pl":
        if min(numbers) < 0 or not max(numbers):
            raise BadInput(place, "protection levels are 0 or more, and one of them above 0")
        return AprioriLine(codes, levels=(numbers[0], numbers[1]))
    if wanted:
        if numbers[0] < 0:
            raise BadInput(place, f"a cost cannot be {numbers[0]:g}; it is above 0")
        # tau-ARGUS takes a cost of 0 as 1.
        return AprioriLine(codes, cost=numbers[0] or 1.0)
    return AprioriLine(codes, STATUS_OF_WORD[word])


def write_apriori(lines: Iterable[AprioriLine], separator: str = ",", total: str = "Total") -> str:
    """Return decisions as an a priori file of tau-ARGUS."""
    found = list[str]()
    for one in lines:
        cells = [check_code(code) or total for code in one.codes]
        if one.status is not None:
            cells.append(WORD_OF_STATUS[one.status])
        elif one.cost is not None:
            cells += ["c", format_number(one.cost)]
        elif one.levels is not None:
            cells += ["pl", *map(format_number, one.levels)]
        found.append(join_cells(cells, separator))
    return "".join(found)
