"""The pairs of variables of a release from tables: which stand together in a table that it was drawn from, and how far each is off."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

from sfumato.engine.wording import count_noun

from ..visible_text import replace_unprintable

KEPT, LEFT_OUT = "#", "."
NAME = 14
"""Cells of a variable's name."""


@dataclass(frozen=True)
class PairsFound:
    """The ``names`` of the variables that were made, the ``kept`` pairs, and how far pairs are ``apart`` where a measure says it, as shares."""

    names: tuple[str, ...]
    kept: frozenset[frozenset[str]]
    apart: dict[frozenset[str], float]

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        return tuple(combinations(self.names, 2))

    @property
    def answer(self) -> str:
        """How many pairs share a table."""
        together = sum(frozenset(pair) in self.kept for pair in self.pairs)
        return f"{together:,} of {count_noun(len(self.pairs), 'pair')} of variables share a table that the records were drawn from"


def triangle(found: PairsFound, width: int) -> str:
    """A line a variable: its number and name, and a cell for each variable before it; in ``width`` cells where they suffice."""
    digits = len(str(len(found.names)))
    shown = bool(found.apart) and digits + 2 + NAME + 5 * (len(found.names) - 1) <= width
    cell = 5 if shown else 1 + digits
    lines = [" " * (digits + 2 + NAME) + "".join(f"{at:>{cell}}" for at in range(1, len(found.names)))]
    for at, name in enumerate(found.names):
        cells = "".join(_cell(found, name, other, shown).rjust(cell) for other in found.names[:at])
        lines.append(f"{at + 1:>{digits}}  {replace_unprintable(name)[:NAME]:<{NAME}}{cells}".rstrip())
    legend = [
        f"{KEPT} stand together in a table, {LEFT_OUT} do not: what relates those is left out but for what the tables say."
    ]
    if shown:
        legend.append("Numbers are how far the joint distribution is off, in per cent of the records.")
    return "\n".join([*lines, "", *legend, *_farthest(found)])


def _cell(found: PairsFound, name: str, other: str, shown: bool) -> str:
    pair = frozenset((name, other))
    mark = KEPT if pair in found.kept else LEFT_OUT
    return (
        f"{mark}{found.apart[pair] * 100:>3.0f}" if shown and pair in found.apart else f"{mark}   " if shown else mark
    )


def _farthest(found: PairsFound) -> Iterator[str]:
    """The pairs that are farthest off, kept ones and others."""
    for kept in (True, False):
        own = [
            pair for pair in found.pairs if frozenset(pair) in found.apart and (frozenset(pair) in found.kept) is kept
        ]
        if own:
            farthest = sorted(own, key=lambda pair: -found.apart[frozenset(pair)])[:5]
            yield ""
            yield "Farthest off, of pairs that share a table:" if kept else "Farthest off, of the others:"
            yield from (
                f"  {found.apart[frozenset((a, b))]:6.1%}  {replace_unprintable(a)} and {replace_unprintable(b)}"
                for a, b in farthest
            )
