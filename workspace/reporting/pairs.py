"""Pairs of variables of a release from tables: which share a table that the records were drawn from, and how far each
pair is off.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

from sfumato.engine.wording import count_noun

from ..visible_text import replace_unprintable

KEPT, LEFT_OUT = "#", "."
NAME_CELLS = 14
"""Cells of a variable's name."""


@dataclass(frozen=True)
class VariablePairs:
    """Pairs of the synthesised variables.

    names: variables
    kept_pairs: pairs that share a table that the records were drawn from
    distances: distance of the joint distribution of pairs, as shares, where a measure has it
    """

    names: tuple[str, ...]
    kept_pairs: frozenset[frozenset[str]]
    distances: dict[frozenset[str], float]

    @property
    def all_pairs(self) -> tuple[tuple[str, str], ...]:
        return tuple(combinations(self.names, 2))

    @property
    def shared_tables_text(self) -> str:
        """Return how many pairs share a table."""
        together = sum(frozenset(pair) in self.kept_pairs for pair in self.all_pairs)
        return f"{together:,} of {count_noun(len(self.all_pairs), 'pair')} of variables share a table that the records were drawn from"


def triangle_text(found: VariablePairs, width: int) -> str:
    """Draw a line a variable: its number and name, and a cell for each variable before it; in ``width`` cells where
    they suffice.
    """
    digits = len(str(len(found.names)))
    shown = bool(found.distances) and digits + 2 + NAME_CELLS + 5 * (len(found.names) - 1) <= width
    cell = 5 if shown else 1 + digits
    lines = [" " * (digits + 2 + NAME_CELLS) + "".join(f"{at:>{cell}}" for at in range(1, len(found.names)))]
    for at, name in enumerate(found.names):
        cells = "".join(_pair_cell(found, name, other, shown).rjust(cell) for other in found.names[:at])
        lines.append(f"{at + 1:>{digits}}  {replace_unprintable(name)[:NAME_CELLS]:<{NAME_CELLS}}{cells}".rstrip())
    legend = [
        f"{KEPT} stand together in a table, {LEFT_OUT} do not: what relates those is left out but for what the tables say."
    ]
    if shown:
        legend.append("Numbers are how far the joint distribution is off, in per cent of the records.")
    return "\n".join([*lines, "", *legend, *_farthest_pairs_lines(found)])


def _pair_cell(found: VariablePairs, name: str, other: str, shown: bool) -> str:
    pair = frozenset((name, other))
    mark = KEPT if pair in found.kept_pairs else LEFT_OUT
    return (
        f"{mark}{found.distances[pair] * 100:>3.0f}"
        if shown and pair in found.distances
        else f"{mark}   "
        if shown
        else mark
    )


def _farthest_pairs_lines(found: VariablePairs) -> Iterator[str]:
    """Yield the pairs that are farthest off, those that share a table and the others."""
    for kept in (True, False):
        own = [
            pair
            for pair in found.all_pairs
            if frozenset(pair) in found.distances and (frozenset(pair) in found.kept_pairs) is kept
        ]
        if own:
            farthest = sorted(own, key=lambda pair: -found.distances[frozenset(pair)])[:5]
            yield ""
            yield "Farthest off, of pairs that share a table:" if kept else "Farthest off, of the others:"
            yield from (
                f"  {found.distances[frozenset((a, b))]:6.1%}  {replace_unprintable(a)} and {replace_unprintable(b)}"
                for a, b in farthest
            )
