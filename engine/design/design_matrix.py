"""Design matrix X (n, K) of an intercept and predictor terms, which every regression of the engine uses.

Products of a design are computed without forming X whole: X b by ``Design.predict``, R of QR = [X y] by
    ``design_triangle``, X'WX by ``sparse_design``, and X block by block by ``regression_rows``. ``completed_design``
    fills missing values and standardises columns. The designs of propensity scores, clusters and trees are separate:
    they use all variables of two tables, with the levels that occur.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..data.arrays import Floats
from ..data.blocks import row_blocks
from ..data.microdata import Microdata
from ..data.schema import Schema
from ..data.terms import LEVEL_CODE, PredictorTerm, TermFactor, check_domain, level_numbers, parse_term

_SHARED = 32
"""Arrays of a block that are held at a time: few enough to stay in the processor's cache."""


@dataclass(frozen=True)
class Design:
    """Design of an intercept and terms, with the levels of the confidential data.

    Variables with levels enter as treatment-coded indicators (the first level is the reference), or by ``code`` as a
    number; dates as days.

    terms: the terms
    schema: schema of the confidential data
    term_names: names of the columns of each term
    """

    terms: tuple[PredictorTerm, ...]
    schema: Schema
    term_names: tuple[tuple[str, ...], ...]

    @classmethod
    def from_terms(cls, terms: Sequence[PredictorTerm], data: Microdata) -> Design:
        """Create the design of these terms for the levels of this table."""
        return cls(tuple(terms), data.schema, tuple(_column_names(term, data) for term in terms))

    @classmethod
    def from_texts(cls, texts: Iterable[str], data: Microdata) -> Design:
        """Create the design of the terms that these texts write. Raises BadInput where one is invalid."""
        return cls.from_terms([parse_term(text, data.schema, text) for text in texts], data)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Return the names of the columns of X, (K,)."""
        return ("intercept", *(name for names in self.term_names for name in names))

    @property
    def widths(self) -> tuple[int, ...]:
        """Return the number of columns of each term."""
        return tuple(map(len, self.term_names))

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the variables that the terms read, each once, in their order."""
        return tuple(dict.fromkeys(name for term in self.terms for name in term.columns))

    def check_domains(self, data: Microdata) -> None:
        """Raise BadInput where a function of a column is undefined for some records of ``data``."""
        for factor in (factor for term in self.terms for factor in term.factors if factor.function):
            check_domain(factor, data.numbers(factor.column))

    def fits_in_one_block(self, data: Microdata, more: int = 0) -> bool:
        """Return whether X of all records, with ``more`` further columns, is one block."""
        return len(data) <= 1 or len(list(row_blocks(len(data), len(self.names) + more))) == 1

    def build_matrix(self, data: Microdata) -> Floats:
        """Return X (n, K) for the records of ``data``, which may be synthetic; NaN where a value is missing.

        Raises BadInput outside a function's domain.
        """
        columns = [np.ones((len(data), 1))]
        for term in self.terms:
            block = np.ones((len(data), 1))
            for factor in term.factors:
                values = _factor_columns(factor, data)
                block = (block[:, :, None] * values[:, None, :]).reshape(len(data), -1)
            columns.append(block)
        return np.hstack(columns)

    def predict(self, data: Microdata, coefficients: Floats) -> Floats:
        """Return X b for each record of ``data``, (n,), by ``coefficients`` (K,); NaN where a value is missing.

        Raises BadInput outside a function's domain.
        """
        if self.fits_in_one_block(data):
            return np.asarray(self.build_matrix(data) @ coefficients)
        self.check_domains(data)
        found = np.empty(len(data))
        for rows in row_blocks(len(data), _SHARED):
            found[rows] = self._sum_terms(data.select_rows(rows), coefficients)
        return found

    def _sum_terms(self, data: Microdata, coefficients: Floats) -> Floats:
        """Return X b of some records, (b,), as the sum of the terms' contributions."""
        found, start = np.full(len(data), coefficients[0]), 1
        for term in self.terms:
            levels = [factor for factor in term.factors if factor.has_indicators(self.schema)]
            sizes = [len(data.column(factor.column).cat.categories) - 1 for factor in levels]
            own = coefficients[start : start + int(np.prod(sizes, dtype=np.int64))]
            start += len(own)
            found += self._term_contribution(term, levels, own.reshape(sizes), data)
        return found

    def _term_contribution(
        self, term: PredictorTerm, levels: Sequence[TermFactor], coefficients: Floats, data: Microdata
    ) -> Floats:
        """Return the contribution of one term to X b: the coefficient of each record's levels times the product of its
        numbers.
        """
        # The reference level is at 0 with coefficient 0; a missing one, whose code is -1, takes the NaN at the end.
        table = np.full([size + 2 for size in coefficients.shape], np.nan)
        table[(slice(None, -1),) * len(levels)] = 0.0
        table[(slice(1, -1),) * len(levels)] = coefficients
        codes = tuple(data.column(factor.column).cat.codes.to_numpy().astype(np.int64) for factor in levels)
        found = np.asarray(table[codes])
        for factor in term.factors:
            if not factor.has_indicators(self.schema):
                found = found * factor_numbers(factor, data)
        return found


def _column_names(term: PredictorTerm, data: Microdata) -> tuple[str, ...]:
    """Return the names of a term's columns."""
    names = [""]
    for factor in term.factors:
        own = [str(factor)]
        if factor.has_indicators(data.schema):
            own = [f"{factor.column}={level}" for level in data.column(factor.column).cat.categories[1:]]
        names = [f"{a}:{b}" if a else b for a in names for b in own]
    return tuple(names)


def _factor_columns(factor: TermFactor, data: Microdata) -> Floats:
    """Return the indicators of a factor with levels, or its numbers, (n, columns)."""
    numbers = data.numbers(factor.column)
    if factor.has_indicators(data.schema):
        levels = len(data.column(factor.column).cat.categories)
        indicators = np.equal(numbers[:, None], np.arange(1, levels)).astype(np.float64)
        # A comparison with NaN is False, which would read as the reference level.
        indicators[np.isnan(numbers)] = np.nan
        return indicators
    check_domain(factor, numbers)
    return factor_numbers(factor, data)[:, None]


def factor_numbers(factor: TermFactor, data: Microdata) -> Floats:
    """Return the numbers of a factor without indicators, (n,), inside the domain of its function."""
    numbers = data.numbers(factor.column)
    if factor.function is None:
        return numbers
    if factor.function != LEVEL_CODE:
        return np.asarray(getattr(np, factor.function)(numbers))
    levels = np.append(level_numbers(data.column(factor.column).cat.categories), np.nan)
    return np.asarray(levels[np.where(np.isnan(numbers), -1, numbers).astype(np.int64)])
