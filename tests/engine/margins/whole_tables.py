"""All tables of whole numbers that have published counts, by plain search, and the counts that are the same in all of them.

Nothing here is taken from the audit: cells are filled one after another, and a table is given up as soon as a published count cannot be reached.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, product

import numpy as np

Cells = tuple[tuple[int, ...], ...]
Margin = tuple[tuple[int, ...], np.ndarray, np.ndarray]
"""Variables of a published margin, the smallest and the largest count of each of its cells."""


def cells_of(sizes: Sequence[int]) -> list[tuple[int, ...]]:
    return list(product(*map(range, sizes)))


def sums_of(sizes: Sequence[int], margins: Sequence[Margin]) -> dict[tuple[tuple[int, int], ...], list[int]]:
    """Every combination of categories of some variables, with the cells that it counts; of those of the same people the one of fewest variables.

    Cells that a published 0 empties hold nobody.
    """
    cells = cells_of(sizes)
    empty = {
        i
        for i, cell in enumerate(cells)
        if any(most[tuple(cell[at] for at in variables)] == 0 for variables, _, most in margins)
    }
    found: dict[tuple[tuple[int, int], ...], list[int]] = {}
    seen = set()
    for width in range(1, len(sizes) + 1):
        for some in combinations(range(len(sizes)), width):
            for levels in product(*(range(sizes[at]) for at in some)):
                own = [
                    i
                    for i, cell in enumerate(cells)
                    if i not in empty and all(cell[at] == v for at, v in zip(some, levels, strict=True))
                ]
                if tuple(own) not in seen:
                    seen.add(tuple(own))
                    found[tuple(zip(some, levels, strict=True))] = own
    return found


def tables_with(sizes: Sequence[int], margins: Sequence[Margin], low: float, high: float) -> Iterator[list[int]]:
    """Every table of whole numbers with these margins and so many records; endless where nothing bounds a cell."""
    cells = cells_of(sizes)
    sums: list[tuple[float, float]] = [(low, high)]
    of_cell: list[list[int]] = [[0] for _ in cells]
    for variables, least, most in margins:
        for place in np.ndindex(*least.shape):
            for i, cell in enumerate(cells):
                if tuple(cell[at] for at in variables) == place:
                    of_cell[i].append(len(sums))
            sums.append((float(least[place]), float(most[place])))
    last = [max((i for i, own in enumerate(of_cell) if at in own), default=-1) for at in range(len(sums))]
    so_far, table = [0] * len(sums), [0] * len(cells)

    def fill(i: int) -> Iterator[list[int]]:
        if i == len(cells):
            yield table
            return
        room = min(sums[at][1] - so_far[at] for at in of_cell[i])
        need = max((sums[at][0] - so_far[at] for at in of_cell[i] if last[at] == i), default=0)
        for value in range(max(0, int(need)), int(room) + 1):
            for at in of_cell[i]:
                so_far[at] += value
            table[i] = value
            yield from fill(i + 1)
            for at in of_cell[i]:
                so_far[at] -= value
        table[i] = 0

    yield from fill(0)


def counts_that_follow(
    sizes: Sequence[int], margins: Sequence[Margin], truth: np.ndarray, limit: int, low: float, high: float, most: int
) -> set[tuple[tuple[int, int], ...]] | None:
    """The small counts of a table that every other table with the same margins has too; None where there are more than ``most`` tables to look at."""
    flat = truth.ravel()
    left = {name: (own, int(flat[own].sum())) for name, own in sums_of(sizes, margins).items()}
    left = {name: one for name, one in left.items() if 0 < one[1] < limit}
    for number, table in enumerate(tables_with(sizes, margins, low, high)):
        if number >= most:
            return None
        left = {name: (own, count) for name, (own, count) in left.items() if sum(table[i] for i in own) == count}
        if not left:
            break
    return set(left)
