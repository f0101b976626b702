"""Design X (n, K) and response y (n,) of the records of a table: kept in memory if they are one block, else formed
block by block.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..data.arrays import Floats
from ..data.blocks import row_blocks
from ..data.microdata import Microdata
from .design_matrix import Design
from .design_triangle import Response, design_triangle, triangle_of_blocks


@dataclass(frozen=True, eq=False)
class RegressionRows:
    """The n records of ``data`` as design rows and responses of a regression."""

    design: Design
    data: Microdata
    response: Response

    def __len__(self) -> int:
        return len(self.data)

    @cached_property
    def single_block(self) -> tuple[Floats, Floats] | None:
        """Return X (n, K) and y (n,) where they are one block, else None."""
        if not self.design.fits_in_one_block(self.data, 1):
            return None
        return self.design.build_matrix(self.data), self.response(self.data)

    def blocks(self) -> Iterator[tuple[slice, Floats, Floats]]:
        """Yield the rows of each block, with X (b, K) and y (b,)."""
        if self.single_block is not None:
            yield slice(0, len(self)), *self.single_block
            return
        self.design.check_domains(self.data)
        for rows in row_blocks(len(self), len(self.design.names) + 1):
            block = self.data.select_rows(rows)
            yield rows, self.design.build_matrix(block), self.response(block)

    def multiply(self, coefficients: Floats) -> Floats:
        """Return X gamma, (n,), for coefficients (K,)."""
        if self.single_block is not None:
            return np.asarray(self.single_block[0] @ coefficients)
        return self.design.predict(self.data, coefficients)


def stack_blocks(tables: Sequence[RegressionRows]) -> tuple[Floats, Floats] | None:
    """Return X and y of several tables, stacked, where each table is one block; else None."""
    held = [one.single_block for one in tables if one.single_block is not None]
    if len(held) < len(tables):
        return None
    return np.vstack([x for x, _ in held]), np.concatenate([y for _, y in held])


def stack_weights(tables: Sequence[RegressionRows]) -> Floats | None:
    """Return the weights of the records of several tables, stacked; None where all are 1."""
    if all(one.data.weights is None for one in tables):
        return None
    return np.concatenate([one.data.effective_weights for one in tables])


def joint_triangle(tables: Sequence[RegressionRows]) -> Floats:
    """Return R of QR = [X y] of the records of several tables, as ``design_triangle`` does for one."""
    held, weights = stack_blocks(tables), stack_weights(tables)
    if held is not None:
        rows = np.column_stack(held)
        return triangle_of_blocks([rows if weights is None else rows * np.sqrt(weights)[:, None]])
    return stack_triangles([design_triangle(one.design, one.data, one.response) for one in tables])


def stack_triangles(triangles: Sequence[Floats]) -> Floats:
    """Return R of the rows behind several triangles R (., K), in this order, with a diagonal of no negative number."""
    found = triangle_of_blocks([np.vstack(triangles)])
    return found * np.where(np.diagonal(found) < 0, -1.0, 1.0)[:, None]
