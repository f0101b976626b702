"""The triangle R of QR = X or QR = [X y] of a regression, without its design X (n, K).

R'R = [X y]'[X y] is all that a linear regression asks of its records. Forming that product would square the condition of X; here records are only ever turned by
orthogonal matrices, which keep every length. A table whose design is one block is decomposed as it is. Of a larger one

- the records of a *cell*, which are alike in all variables with levels, are turned such that their mean, times the root of their number, comes first; deviations
  from it are 0 in every column of a term with levels. What is left of the table is a row for each cell, and deviations in the columns of
  numbers and in y. A mean is taken of deviations once more, so that it is exact to rounding however many the records, and however far from 0.
- blocks of rows are decomposed one after another, each under the triangle of those before (TSQR: Demmel, Grigori, Hoemmen & Langou 2012, which is as
  stable as the QR of Householder of all rows).

A term that is a product of levels and numbers leaves deviations in many columns; then all rows are decomposed in blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np

from ..arrays import Floats
from ..microdata import Microdata
from ..row_blocks import row_blocks
from ..terms import Design, Term
from .distinct_records import distinct_records

Response = Callable[[Microdata], Floats]
"""The response (b,) of the records of a block of a table."""


def triangle_of(blocks: Iterable[Floats]) -> Floats:
    """R (min(n, K), K) with QR = the blocks (b, K) one under another, up to the signs of its rows; some block has rows."""
    found: Floats | None = None
    for block in blocks:
        found = np.asarray(np.linalg.qr(block if found is None else np.vstack([found, block]), mode="r"))
    assert found is not None
    return found


def in_one_block(design: Design, data: Microdata, more: int = 0) -> bool:
    """Whether the design of all records, with so many columns ``more``, is one block."""
    return len(data) <= 1 or len(list(row_blocks(len(data), len(design.names) + more))) == 1


def design_triangle(design: Design, data: Microdata, response: Response | None = None) -> Floats:
    """R of the design (n, K) of at least one record, with the ``response`` as one column more where there is one.

    Rows count by the root of their weights. Where the table is more than one block, the diagonal of R is not negative, so that
    R does not hang on the order of the records but for rounding. Raises BadInput outside a function's domain.
    """
    width = len(design.names) + (response is not None)
    if in_one_block(design, data, width - len(design.names)):
        return triangle_of([_weighted(_rows(design, data, response), data)])
    design.check_domains(data)
    if any(_mixed(design, term) for term in design.terms):
        blocks = (data.block(rows) for rows in row_blocks(len(data), width))
        found = triangle_of(_weighted(_rows(design, block, response), block) for block in blocks)
    else:
        found = triangle_of(_cells_and_deviations(design, data, response))
    return found * np.where(np.diagonal(found) < 0, -1.0, 1.0)[:, None]


def _rows(design: Design, data: Microdata, response: Response | None) -> Floats:
    x = design.matrix(data)
    return x if response is None else np.column_stack([x, response(data)])


def _weighted(rows: Floats, data: Microdata) -> Floats:
    return rows if data.weights is None else rows * np.sqrt(data.weights)[:, None]


def _numeric(design: Design, term: Term) -> bool:
    return not any(design.schema[name].kind.has_levels for name in term.columns)


def _mixed(design: Design, term: Term) -> bool:
    return not _numeric(design, term) and any(not design.schema[name].kind.has_levels for name in term.columns)


def _cells_and_deviations(design: Design, data: Microdata, response: Response | None) -> Iterator[Floats]:
    """Blocks of rows with the R of all records: a row for each cell, and the triangle of deviations."""
    numbers = Design.of([term for term in design.terms if _numeric(design, term)], data)
    ends = np.cumsum([len(Design.of([term], data).names) - 1 for term in design.terms], dtype=np.int64)
    columns = [int(end) for end, term in zip(ends, design.terms, strict=True) if _numeric(design, term)]
    columns += [] if response is None else [len(design.names)]
    width = len(design.names) + (response is not None)
    cells = distinct_records(data, (name for name in design.columns if design.schema[name].kind.has_levels))

    def values(rows: slice) -> Floats:
        return _rows(numbers, data.block(rows), response)[:, 1:]

    records = cells.sums(data.weights)
    means = np.zeros((len(cells), len(columns)))
    blocks = list(row_blocks(len(data), 4 * (len(columns) + 1)))
    for _ in range(2 if columns else 0):
        sums = np.zeros_like(means)
        for rows in blocks:
            of, weights = cells.of[rows], None if data.weights is None else data.weights[rows]
            left = values(rows) - means[of]
            for j, own in enumerate(left.T):
                sums[:, j] += np.bincount(of, own if weights is None else own * weights, len(cells))
        means += sums / records[:, None]
    if columns:
        deviations = triangle_of(_weighted(values(rows) - means[cells.of[rows]], data.block(rows)) for rows in blocks)
        spread = np.zeros((len(deviations), width))
        spread[:, columns] = deviations
        yield spread
    table = cells.table(data)
    for rows in row_blocks(len(cells), width):
        found = np.column_stack(
            [design.matrix(table.block(rows)), np.zeros((rows.stop - rows.start, width - len(design.names)))]
        )
        found[:, columns] = means[rows]
        yield found * np.sqrt(records[rows])[:, None]
