"""The numbers of a run that say most, in the columns of a narrow pane: people first, each with their share."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rich.cells import cell_len
from textual.content import Content

from sfumato.engine.methods.rows import Row
from sfumato.engine.recipe.thresholds import Verdict
from sfumato.engine.wording import record_noun, singular_noun
from sfumato.tui.terminal.text import fit_text
from sfumato.tui.widgets.facts import INDENT, wrap_text
from sfumato.workspace.reporting.numbers import (
    BEST_CHOICE,
    PEOPLE_SECTION,
    SECTIONS,
    NumberLine,
    fold_number_lines,
    line_cells,
    line_subject,
    number_lines,
    section_title,
    split_title,
    titled_name,
    whole_name,
)
from sfumato.workspace.reporting.words import SettingsByMethod

MOST_PEOPLE, MOST_OTHERS, MOST_SECTIONS = 6, 2, 2
"""Most numbers of people who are found and of any other question, and most questions."""
ROOM_FOR_DATA = 46
"""Width in cells from which the confidential data have a column too."""
_COUNT = re.compile(r"([\d.,e-]+) of ([\d,]+)(?: \S+)? \((.+)\)")
"""Number of people as the tables have it: how many, of whom, and their share."""
BEGINNINGS = re.compile(r"(People (found|with) |Sensitive values )(?=\S)")
"""Beginning of names that need not say it below their question and the head that counts people."""
AT_BEST = " at best"
"""Words for the choice of the best variables in few cells."""
HEADS = ("release", "data", "share")


def number_list(
    rows: Sequence[Row], verdicts: Sequence[Verdict], records: int | None, apart: SettingsByMethod, width: int
) -> list[Content]:
    """Return the numbers that say most about the first questions, each after a blank line and with its heading.

    A number has one line where its name fits beside its values: how many people, and their share.
    """
    sections: dict[str, list[NumberLine]] = {}
    for line in fold_number_lines(number_lines(rows, verdicts)):
        sections.setdefault(section_title(line.row.key), []).append(line)
    lines: list[Content] = []
    asked = [one for one in SECTIONS if one in sections][:MOST_SECTIONS]
    # Whom a release exposes decides before how near it is to the data.
    asked = asked[: max(1, sum(one in SECTIONS[:5] for one in asked))]
    for section in asked:
        most = MOST_PEOPLE if section == PEOPLE_SECTION else MOST_OTHERS
        shown = _people_first(sections[section], records)[:most]
        lines += [Content(""), *_section_lines(section, shown, records, apart, width)]
    return lines


def _people_first(lines: Sequence[NumberLine], records: int | None) -> list[NumberLine]:
    """Return the lines that count people in the release; without any those of the data, else all."""
    for name in ("release", "confidential"):
        if counted := [line for line in lines if _count_texts(line, records, name)]:
            return counted
    return list(lines)


def _count_texts(line: NumberLine, records: int | None, name: str) -> tuple[str, str, str] | None:
    """Return how many people a value counts, of whom, and their share; None where it counts none."""
    found = _COUNT.fullmatch(line_cells(line, records)[name])
    return None if found is None else (found[1], found[2], found[3])


def _section_lines(
    section: str, found: Sequence[NumberLine], records: int | None, apart: SettingsByMethod, width: int
) -> list[Content]:
    """Return the lines of one question: it, the heads, then names to the left and values to the right, below the titles
    that several of them share.
    """
    has_data = width >= ROOM_FOR_DATA
    rows = [(line, *_value_texts(line, records, has_data=has_data)) for line in found]
    totals = list(dict.fromkeys(total for _, _, total in rows if total))
    head = f"of {totals[0]} {_noun_of_total(totals[0], records)}" if len(totals) == 1 else ""
    heads = [head if any(values[at] for _, values, _ in rows) else "" for at, head in enumerate(HEADS)]
    sizes = [
        max(cell_len(heads[at]), *(cell_len(values[at]) for _, values, _ in rows)) if heads[at] else 0
        for at in range(len(HEADS))
    ]
    named = width - sum(size + len(INDENT) for size in sizes if size)
    first, is_beside = Content.styled(section, "bold"), cell_len(f"{section}{INDENT}{head}") <= width
    if is_beside and head:
        first = Content.assemble(first, (f"{INDENT}{head}", "$text-muted"))
    lines = [first, *([Content.styled(head, "$text-muted")] if not is_beside and cell_len(head) > named else [])]
    told = "number" if is_beside or len(lines) > 1 or not head else head
    lines.append(_table_line(told, heads, named, sizes, "$text-muted"))
    titles = [split_title(line.row.key)[0] for line in found]
    units = getattr(records, "units", None)
    by_unit = "" if units is None else f", by {singular_noun(record_noun(units))}"
    shown = ""
    for (line, values, _), title in zip(rows, titles, strict=True):
        is_titled = titles.count(title) > 1
        if is_titled and title != shown:
            lines += [Content.styled(one, "$text-muted") for one in wrap_text(title, width, "", INDENT)]
        shown = title
        subject = line_subject(line, apart, records)
        name = titled_name(line, subject) if is_titled else whole_name(line, apart, records)
        lead = INDENT if is_titled else ""
        # The head says that people are counted.
        brief = name.removesuffix(by_unit) if values[0] else name
        brief = brief if has_data or not values[0] else BEGINNINGS.sub("", brief, count=1).replace(BEST_CHOICE, AT_BEST)
        *above, last = wrap_text(brief, named, lead, f"{lead}{INDENT}") or [""]
        lines += [Content(one) for one in above]
        lines.append(_table_line(last, values, named, sizes, ""))
    return lines


def _value_texts(line: NumberLine, records: int | None, *, has_data: bool) -> tuple[tuple[str, str, str], str]:
    """Return the number of the release, that of the data and the share of the release, and of whom they are; a dash for
    none.
    """
    cells, counted = line_cells(line, records), _count_texts(line, records, "release")
    own = _count_texts(line, records, "confidential")
    data = (own[0] if own else cells["confidential"]) or "-" if has_data else ""
    if counted is not None:
        return (counted[0], data, counted[2]), counted[1]
    if own is not None:
        return ("-", data, ""), own[1]
    return (cells["release"] or "-", data, ""), ""


def _noun_of_total(total: str, records: int | None) -> str:
    """Return what a total counts: records, or the units that they belong to."""
    units = getattr(records, "units", None)
    return record_noun(units if units is not None and total == f"{units:,}" else records)


def _table_line(name: str, values: Sequence[str], named: int, sizes: Sequence[int], ink: str) -> Content:
    """Return a line of a name to the left and values to the right."""
    cells = [fit_text(text, size, "right") for text, size in zip(values, sizes, strict=True) if size]
    return Content.styled(INDENT.join([fit_text(name, named), *cells]), ink)
