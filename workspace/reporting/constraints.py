"""Rules and how records keep to them, as tables and sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sfumato.engine.wording import counted

from .tables import Cell, Table, table
from .words import printable


@dataclass(frozen=True, slots=True)
class RuleLine:
    """A rule by its name, and what ``records`` say of it: how many break it, of how many nobody can say, how many bear it out.

    ``source`` is what a recipe says of it; ``support`` is None of a rule that was not found in the data.
    """

    name: str
    text: str
    source: str
    broken: int
    unknown: int
    records: int
    support: int | None = None

    def to_value(self) -> str | dict[str, str]:
        """What a recipe writes after its name."""
        return self.text if self.source == "declared" else {"holds": self.text, "source": self.source}


@dataclass(frozen=True, slots=True)
class RulesView:
    """The rules ``said``, in their order, and those ``found`` in the data that are not said, the surest first."""

    records: int
    said: tuple[RuleLine, ...]
    found: tuple[RuleLine, ...] = ()


MOST_LETTERS = 120


def _short(rule: str) -> Cell:
    """A rule in a table: its beginning where it is long, all of it on a page."""
    said = printable(rule)
    return Cell(said if len(said) <= MOST_LETTERS else f"{said[: MOST_LETTERS - 1]}…", full=said)


def said_table(lines: Sequence[RuleLine]) -> Table:
    """The rules of a recipe, and how many records break each."""
    rows: list[list[Cell | str]] = [
        [
            Cell("broken", "fail") if line.broken else Cell("kept", "pass"),
            printable(line.name),
            _short(line.text),
            f"{line.broken:,}",
            f"{line.unknown:,}",
            line.source,
        ]
        for line in lines
    ]
    return table(("", "constraint", "rule", "records", "unknown", "source"), rows, right=(3, 4), spare=(5,))


def found_table(lines: Sequence[RuleLine]) -> Table:
    """Rules that all records keep to, and how many bear each out."""
    rows: list[list[Cell | str]] = [
        [printable(line.name), _short(line.text), f"{line.support or 0:,}"] for line in lines
    ]
    return table(("name", "rule that every record keeps to", "records"), rows, right=(2,))


def kept_text(view: RulesView) -> str:
    """How many records break how many rules, in a sentence."""
    broken = [line for line in view.said if line.broken]
    rules = f"{len(view.said)} {'rule' if len(view.said) == 1 else 'rules'}"
    if not view.said:
        return f"{counted(view.records, 'record')}; the recipe declares no constraints"
    if not broken:
        return f"{counted(view.records, 'record')}; none breaks one of {rules}"
    said = ", ".join(f"{printable(line.name)}: {line.broken:,}" for line in broken)
    return f"{counted(view.records, 'record')}; {len(broken)} of {rules} broken ({said})"


def as_recipe(lines: Sequence[RuleLine]) -> dict[str, Any]:
    """The ``[constraints]`` of a recipe that has these rules."""
    return {line.name: line.to_value() for line in lines}
