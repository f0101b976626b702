"""What follows from printed sums, computed apart from the engine: by fractions, and by writing down every table.

Nothing here imports ``sfumato.engine.tables``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

DATA = Path(os.environ.get("SFUMATO_DATA", Path(__file__).resolve().parents[4] / "shared" / "data")) / "tables"


class RationalSpan:
    """The span of columns of whole numbers, by elimination with fractions."""

    def __init__(self) -> None:
        self.rows: dict[int, list[Fraction]] = {}

    def remainder(self, column: Sequence[Any]) -> list[Fraction]:
        left = [Fraction(int(value)) if not isinstance(value, Fraction) else value for value in column]
        for at in range(len(left)):
            if left[at] and at in self.rows:
                factor = left[at]
                left = [a - factor * b for a, b in zip(left, self.rows[at], strict=True)]
        return left

    def contains(self, column: Sequence[Any]) -> bool:
        return not any(self.remainder(column))

    def add(self, column: Sequence[Any]) -> None:
        left = self.remainder(column)
        for at, value in enumerate(left):
            if value:
                self.rows[at] = [other / value for other in left]
                return

    @classmethod
    def of(cls, matrix: Any, columns: Any) -> RationalSpan:
        span = cls()
        for cell in columns:
            span.add([int(value) for value in matrix[:, cell]])
        return span


def greedy_by_fractions(matrix: Any, order: Sequence[int], protected: Sequence[int]) -> set[int]:
    """The cells that the greedy rule prints."""
    printed = list[int]()
    for cell in order:
        span = RationalSpan.of(matrix, [*printed, cell])
        if not any(span.contains([int(value) for value in matrix[:, one]]) for one in protected):
            printed.append(cell)
    return set(printed)


def all_tables(
    matrix: Any, values: Sequence[int], low: Sequence[int], high: Sequence[int | None]
) -> Iterator[list[int]]:
    """Every table of whole numbers whose cells lie within bounds, atom by atom.

    An atom that no bound holds goes up to 2 above the sum of all.
    """
    atoms, cells = matrix.shape
    ceiling = int(max(values)) + 2
    top = [
        ceiling * int(matrix[:, cell].sum()) if high[cell] is None else int(high[cell] or 0) for cell in range(cells)
    ]
    of_atom = [[cell for cell in range(cells) if matrix[atom, cell]] for atom in range(atoms)]
    last = [max(atom for atom in range(atoms) if matrix[atom, cell]) for cell in range(cells)]

    def extend(atom: int, table: list[int], sums: list[int]) -> Iterator[list[int]]:
        if atom == atoms:
            yield table
            return
        own = of_atom[atom]
        most = min([ceiling, *(top[cell] - sums[cell] for cell in own)])
        least = max([0, *(int(low[cell]) - sums[cell] for cell in own if last[cell] == atom)])
        for value in range(least, most + 1):
            following = sums.copy()
            for cell in own:
                following[cell] += value
            yield from extend(atom + 1, [*table, value], following)

    yield from extend(0, [], [0] * cells)


def cells_that_follow(
    matrix: Any,
    values: Sequence[int],
    published: Sequence[bool],
    targets: Sequence[int],
    zeros_shown: bool,
    known: Sequence[int] = (),
    limit: int = 2_000,
) -> set[int] | None:
    """The target cells with one value in all tables that fit, by writing all of them down; None where they are too many."""
    known_cells = [bool(shown) or cell in known for cell, shown in enumerate(published)]
    low = [int(v) if k else int(zeros_shown and v > 0) for v, k in zip(values, known_cells, strict=True)]
    high = [int(v) if k else None for v, k in zip(values, known_cells, strict=True)]
    left = set(targets) - set(known)
    for number, table in enumerate(all_tables(matrix, values, low, high)):
        sums = np.asarray(table) @ matrix
        left -= {cell for cell in left if sums[cell] != values[cell]}
        if not left:
            return left
        if number > limit:
            return None
    return left


def peer_cases() -> list[dict[str, Any]]:
    """The peer's answers, or none where the data are not at hand."""
    file = DATA / "gauss_suppression.json"
    return json.loads(file.read_text())["cases"] if file.exists() else []


def worked_examples() -> dict[str, Any]:
    file = DATA / "worked_examples.json"
    return json.loads(file.read_text()) if file.exists() else {"rules": [], "intervals": [], "linked": []}


def random_margins(rng: np.random.Generator, tables: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Atoms and cells of linked random tables of three variables, (atoms, cells), and records of each atom."""
    sizes = rng.integers(2, 4, 3)
    records = rng.integers(0, sizes, (int(rng.integers(6, 20)), 3))
    codes, counts = np.unique(records, axis=0, return_counts=True)
    pairs = [(0, 1), (1, 2), (0, 2)]
    columns = [np.ones(len(codes), dtype=np.int64)]
    for a, b in [pairs[at] for at in rng.permutation(3)[:tables]]:
        for i in range(sizes[a]):
            columns.append((codes[:, a] == i).astype(np.int64))
            columns += [((codes[:, a] == i) & (codes[:, b] == j)).astype(np.int64) for j in range(sizes[b])]
        columns += [(codes[:, b] == j).astype(np.int64) for j in range(sizes[b])]
    matrix = np.unique(np.array([column for column in columns if column.any()]), axis=0).T
    return matrix, counts
