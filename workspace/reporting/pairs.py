"""Pairs of variables of a release drawn from tables: which share a table, and how far each is from the data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

from sfumato.engine.wording import count_noun

from ..visible_text import replace_unprintable

KEPT, LEFT_OUT = "#", "."
NAME_CELLS = 14
"""Cells in which a variable's name is drawn."""


@dataclass(frozen=True)
class VariablePairs:
    """Pairs of the synthesised variables.

    names: variables
    kept_pairs: pairs that share one of the tables that the records were drawn from
    distances: distance of the joint distribution of a pair from the confidential one, as a share, where it was measured
    """

    names: tuple[str, ...]
    kept_pairs: frozenset[frozenset[str]]
    distances: dict[frozenset[str], float]

    @property
    def all_pairs(self) -> tuple[tuple[str, str], ...]:
        """Return all pairs of the variables."""
        return tuple(combinations(self.names, 2))

    @property
    def shared_tables_text(self) -> str:
        """Return the number of pairs that share a table, in a sentence."""
        together = sum(frozenset(pair) in self.kept_pairs for pair in self.all_pairs)
        return f"{together:,} of {count_noun(len(self.all_pairs), 'pair')} of variables share a table that the records were drawn from"


def triangle_text(found: VariablePairs, width: int) -> str:
    """Draw the pairs as a triangle: a line for each variable, with a cell for each variable before it.

    Distances are drawn where the lines then fit into ``width`` cells.
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
    """Return the mark of a pair, with its distance in per cent where ``shown``."""
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
    """Yield the pairs with the largest distances: first those that share a table, then the others."""
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
