"""Design X (n, K) and response y (n,) of the records of a table, held where they are one block, and formed block by block where they are more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..data.arrays import Floats
from ..data.blocks import row_blocks
from ..data.microdata import Microdata
from ..data.terms import Design
from .design_triangle import Response, design_triangle, in_one_block, triangle_of
from .linear_predictor import linear_predictor


@dataclass(frozen=True, eq=False)
class RegressionRows:
    """The n records of ``data`` as a regression reads them."""

    design: Design
    data: Microdata
    response: Response

    def __len__(self) -> int:
        return len(self.data)

    @cached_property
    def held(self) -> tuple[Floats, Floats] | None:
        """X (n, K) and y (n,) where they are one block."""
        if not in_one_block(self.design, self.data, 1):
            return None
        return self.design.matrix(self.data), self.response(self.data)

    def blocks(self) -> Iterator[tuple[slice, Floats, Floats]]:
        """Which records, and X (b, K) and y (b,) of them."""
        if self.held is not None:
            yield slice(0, len(self)), *self.held
            return
        self.design.check_domains(self.data)
        for rows in row_blocks(len(self), len(self.design.names) + 1):
            block = self.data.block(rows)
            yield rows, self.design.matrix(block), self.response(block)

    def times(self, coefficients: Floats) -> Floats:
        """X gamma, (n,), for coefficients (K,)."""
        if self.held is not None:
            return np.asarray(self.held[0] @ coefficients)
        return linear_predictor(self.design, self.data, coefficients)


def held_together(tables: Sequence[RegressionRows]) -> tuple[Floats, Floats] | None:
    """X and y of the records of several tables, one under another, where each table is one block."""
    held = [one.held for one in tables if one.held is not None]
    if len(held) < len(tables):
        return None
    return np.vstack([x for x, _ in held]), np.concatenate([y for _, y in held])


def weights_together(tables: Sequence[RegressionRows]) -> Floats | None:
    """The weights of the records of several tables, None where all are 1."""
    if all(one.data.weights is None for one in tables):
        return None
    return np.concatenate([one.data.influence for one in tables])


def triangle_together(tables: Sequence[RegressionRows]) -> Floats:
    """R with QR = [X y] of the records of several tables, as ``design_triangle`` has it of one."""
    held, weights = held_together(tables), weights_together(tables)
    if held is not None:
        rows = np.column_stack(held)
        return triangle_of([rows if weights is None else rows * np.sqrt(weights)[:, None]])
    found = triangle_of([np.vstack([design_triangle(one.design, one.data, one.response) for one in tables])])
    return found * np.where(np.diagonal(found) < 0, -1.0, 1.0)[:, None]
