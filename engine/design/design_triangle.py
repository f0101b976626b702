"""Triangle R of QR = X or QR = [X y] of a regression, without its design X (n, K).

R'R = [X y]'[X y] is all that a linear regression needs of its records. A table of one block is decomposed whole. In a
larger one, records that share all levels form a cell, which is rotated so that its mean comes first and the deviations
are 0 in every column of levels; the deviations are decomposed as the few numbers that they are. Blocks of rows are
decomposed one after another, each under the triangle of those before (TSQR: Demmel, Grigori, Hoemmen & Langou 2012).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..data.arrays import Floats
from ..data.blocks import row_blocks
from ..data.distinct_records import distinct_records, representative_records
from ..data.microdata import Microdata
from ..data.rows import DistinctRecords
from ..data.terms import PredictorTerm
from .design_matrix import Design

_MOST_GROUPS = 5_000
"""Of records whose numbers stand in the same columns; of more, all rows are decomposed in blocks."""
Response = Callable[[Microdata], Floats]
"""The response (b,) of the records of a block of a table."""


def triangle_of_blocks(blocks: Iterable[Floats]) -> Floats:
    """Return R (min(n, K), K) of the QR decomposition of stacked blocks (b, K), up to the signs of its rows.

    Some block has rows.
    """
    found: Floats | None = None
    for block in blocks:
        # Rotations keep lengths, whereas forming X'X would square the condition; TSQR is as stable as Householder's QR
        # of all rows.
        found = np.asarray(np.linalg.qr(block if found is None else np.vstack([found, block]), mode="r"))
    assert found is not None
    return found


def design_triangle(design: Design, data: Microdata, response: Response | None = None) -> Floats:
    """Return R of the design (n, K) of at least one record, with the ``response`` as a last column where it is given.

    Rows are weighted by the root of their weights. Raises BadInput outside a function's domain.
    """
    width = len(design.names) + (response is not None)
    if design.fits_in_one_block(data, width - len(design.names)):
        return triangle_of_blocks([_weight_rows(_design_with_response(design, data, response), data)])
    design.check_domains(data)
    numbers = _numeric_terms(design)
    groups = distinct_records(data, (own.by for own in numbers if own.by is not None))
    if len(groups) > _MOST_GROUPS:
        blocks = (data.select_rows(rows) for rows in row_blocks(len(data), width))
        found = triangle_of_blocks(
            _weight_rows(_design_with_response(design, block, response), block) for block in blocks
        )
    else:
        found = triangle_of_blocks(_cells_and_deviations(design, data, response, numbers, groups))
    # A fixed sign makes R independent of the order of the records, up to rounding.
    return found * np.where(np.diagonal(found) < 0, -1.0, 1.0)[:, None]


def _design_with_response(design: Design, data: Microdata, response: Response | None) -> Floats:
    x = design.build_matrix(data)
    return x if response is None else np.column_stack([x, response(data)])


def _weight_rows(rows: Floats, data: Microdata) -> Floats:
    return rows if data.weights is None else rows * np.sqrt(data.weights)[:, None]


@dataclass(frozen=True, eq=False)
class _NumericTerm:
    """Numeric part of a term: its first column ``start``, its number of columns ``width``, and the variable ``by``
    whose level selects one.
    """

    term: PredictorTerm
    start: int
    width: int
    by: str | None


def _numeric_terms(design: Design) -> tuple[_NumericTerm, ...]:
    """Return the numeric parts of all terms that have a factor without levels."""
    found, end = [], 1
    for term, width in zip(design.terms, design.widths, strict=True):
        start, end = end, end + width
        levels = [factor.column for factor in term.factors if factor.has_indicators(design.schema)]
        if len(levels) < len(term.factors):
            factors = tuple(factor for factor in term.factors if not factor.has_indicators(design.schema))
            found.append(_NumericTerm(PredictorTerm(factors), start, width, levels[0] if levels else None))
    return tuple(found)


def _spread_to_columns(values: Floats, numbers: Sequence[_NumericTerm], table: Microdata, width: int) -> Floats:
    """Return values (d, q) of numbers, with a response as the last, in the columns of the records of ``table`` (d,):
    (d, width).
    """
    found = np.zeros((len(values), width))
    for j, own in enumerate(numbers):
        if own.by is None:
            found[:, own.start] = values[:, j]
        else:
            level = table.column(own.by).cat.codes.to_numpy().astype(np.int64)
            some = np.flatnonzero(level > 0)
            found[some, own.start + level[some] - 1] = values[some, j]
    if values.shape[1] > len(numbers):
        found[:, -1] = values[:, -1]
    return found


def _cells_and_deviations(
    design: Design,
    data: Microdata,
    response: Response | None,
    numbers: Sequence[_NumericTerm],
    groups: DistinctRecords,
) -> Iterator[Floats]:
    """Yield blocks of rows whose R is that of all records: the triangles of deviations, and a row for each cell.

    ``groups`` are records whose numbers are in the same columns.
    """
    width, q = len(design.names) + (response is not None), len(numbers) + (response is not None)
    wanted = Design.from_terms([own.term for own in numbers], data)
    cells = distinct_records(data, (name for name in design.columns if design.schema[name].kind.has_levels))
    records, means = cells.sum_by_combination(data.weights), np.zeros((len(cells), q))
    blocks = list(row_blocks(len(data), 4 * (q + 1))) if q else []

    def deviations(rows: slice) -> Floats:
        """Return the numbers and the response of some records less the means of their cells."""
        return (
            _design_with_response(wanted, data.select_rows(rows), response)[:, 1:] - means[cells.combination_of[rows]]
        )

    # The mean of the deviations is added in a second pass, so that means are exact to rounding however many the
    # records, and however far from 0.
    for _ in range(2):
        sums = np.zeros_like(means)
        for rows in blocks:
            weights = None if data.weights is None else data.weights[rows]
            for j, own in enumerate(deviations(rows).T):
                sums[:, j] += np.bincount(
                    cells.combination_of[rows], own if weights is None else own * weights, len(cells)
                )
        means += sums / records[:, None]

    triangles = [np.empty((0, q))] * len(groups)
    for rows in blocks:
        left, of = _weight_rows(deviations(rows), data.select_rows(rows)), groups.combination_of[rows]
        order = np.argsort(of, kind="stable")
        ends = np.searchsorted(of[order], np.arange(len(groups) + 1))
        for group in np.unique(of):
            own = left[order[ends[group] : ends[group + 1]]]
            triangles[group] = triangle_of_blocks([np.vstack([triangles[group], own])])
    values, table = np.vstack(triangles), representative_records(groups, data)
    owners = np.repeat(np.arange(len(groups)), [len(own) for own in triangles])
    for rows in row_blocks(len(values), width):
        yield _spread_to_columns(values[rows], numbers, replace(table, frame=table.frame.iloc[owners[rows]]), width)

    table = representative_records(cells, data)
    for rows in row_blocks(len(cells), width):
        own_rows = table.select_rows(rows)
        found = np.zeros((len(own_rows), width))
        found[:, : len(design.names)] = design.build_matrix(own_rows)
        for one in numbers:
            found[:, one.start : one.start + one.width] = 0.0
        found += _spread_to_columns(means[rows], numbers, own_rows, width)
        # A cell's mean counts by the root of its number of records (or of their weights).
        yield found * np.sqrt(records[rows])[:, None]
