"""Linear predictor X gamma without X: what a regression predicts for the records of a table.

A table whose design is one block is multiplied as a matrix. In a larger one the columns of a term with levels are no more than a table of
coefficients, looked up by the codes of the records.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..data.arrays import Floats, Integers
from ..data.blocks import row_blocks
from ..data.microdata import Microdata
from ..data.terms import PredictorTerm, TermDesign, TermFactor, factor_numbers

_SHARED = 32
"""Arrays of a block that are held at a time: few enough to stay in the processor's cache."""


def linear_predictor(design: TermDesign, data: Microdata, coefficients: Floats) -> Floats:
    """Return X gamma for each record of ``data``, (n,), by ``coefficients`` (K,); NaN where a value is missing.

    Raises BadInput outside a function's domain.
    """
    if len(list(row_blocks(len(data), len(design.names)))) < 2:
        return np.asarray(design.build_matrix(data) @ coefficients)
    design.check_domains(data)
    found = np.empty(len(data))
    for rows in row_blocks(len(data), _SHARED):
        found[rows] = _sum_terms(design, data.select_rows(rows), coefficients)
    return found


def _sum_terms(design: TermDesign, data: Microdata, coefficients: Floats) -> Floats:
    found, start = np.full(len(data), coefficients[0]), 1
    for term in design.terms:
        levels = [factor for factor in term.factors if factor.has_indicators(design.schema)]
        sizes = [len(data.column(factor.column).cat.categories) - 1 for factor in levels]
        own = coefficients[start : start + int(np.prod(sizes, dtype=np.int64))]
        start += len(own)
        found += _term_contribution(design, term, levels, own.reshape(sizes), data)
    return found


def _term_contribution(
    design: TermDesign, term: PredictorTerm, levels: Sequence[TermFactor], coefficients: Floats, data: Microdata
) -> Floats:
    """Return what one term adds: the coefficient of the record's levels, times the product of its numbers.

    The reference level stands before the others with 0, a missing one, whose code is -1, after them.
    """
    table = np.full([size + 2 for size in coefficients.shape], np.nan)
    table[(slice(None, -1),) * len(levels)] = 0.0
    table[(slice(1, -1),) * len(levels)] = coefficients
    found = np.asarray(table[tuple(_level_codes(factor, data) for factor in levels)])
    for factor in term.factors:
        if not factor.has_indicators(design.schema):
            found = found * factor_numbers(factor, data)
    return found


def _level_codes(factor: TermFactor, data: Microdata) -> Integers:
    return np.asarray(data.column(factor.column).cat.codes.to_numpy(), dtype=np.int64)
