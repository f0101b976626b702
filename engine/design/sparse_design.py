"""Designs in which each row has at most one number for each term, multiplied block by block without forming the matrix.

The main effects of a variable with levels are indicators, of which a record has one at most, so a term is stored as a
column index and a number for each record. X'WX then consists of weighted cross-tables, and neither time nor memory grow
with rows times columns.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial, reduce
from itertools import pairwise
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from ..data.arrays import Booleans, Floats, Integers
from ..data.block_sums import BlockWork, Summands, SummedTable, add_sums
from ..data.blocks import row_blocks
from ..data.microdata import Microdata
from ..data.terms import TermFactor
from .design_matrix import Design, factor_numbers

CLEAR = 1e-4
"""The share of a column's length that X'X can tell from none: its square is far above what rounding leaves."""
_REFINEMENTS = 2


class TermEntries(NamedTuple):
    """Entries of a term of ``width`` columns in b rows.

    column: the column of each row's number, None for the first; a row whose column is ``width`` has no number, (b,)
    number: the numbers, None for ones, (b,)
    """

    width: int
    column: Integers | None
    number: Floats | None


class SparseTerm(Protocol):
    """Columns of a design, of which each row has a number in one at most."""

    @property
    def width(self) -> int: ...

    def entries_of(self, rows: slice) -> TermEntries: ...


@dataclass(frozen=True)
class InterceptTerm:
    """Column of ones."""

    width: int = 1

    def entries_of(self, rows: slice) -> TermEntries:
        return TermEntries(1, None, None)


@dataclass(frozen=True, eq=False)
class IndicatorTerm:
    """Indicators of all but the first of the levels that occur: ``column`` (n,) is ``width`` for records of the first
    level.
    """

    column: NDArray[np.int32]
    width: int

    @classmethod
    def from_codes(cls, codes: Floats) -> IndicatorTerm:
        """Create the indicators of whole codes (n,), from -1."""
        # Code -1 stands for a missing value, which is a level too.
        code = codes.astype(np.int32) + 1
        column, width = cls.number_columns(np.bincount(code) > 0)
        return cls(column[code], width)

    @staticmethod
    def number_columns(occurs: Booleans) -> tuple[NDArray[np.int32], int]:
        """Return the column of each code from -1, (k,), and their number, given which codes occur, (k,)."""
        column = np.cumsum(occurs, dtype=np.int32) - 2
        width = int(occurs.sum()) - 1
        return np.where(column < 0, width, column).astype(np.int32), width

    def entries_of(self, rows: slice) -> TermEntries:
        """Return a one in each row, but for those of the first level."""
        return TermEntries(self.width, self.column[rows].astype(np.int64), None)


@dataclass(frozen=True, eq=False)
class StandardisedTerm:
    """Column of numbers (n,) divided by a power of two, centred, and divided by their standard deviation."""

    values: Floats
    scale: float
    mean: float
    deviation: float
    width: int = 1

    @classmethod
    def from_values(cls, values: Floats, scale: float) -> StandardisedTerm:
        scaled = values / scale
        return cls(values, scale, float(scaled.mean()), float(scaled.std()))

    def entries_of(self, rows: slice) -> TermEntries:
        return TermEntries(1, None, (self.values[rows] / self.scale - self.mean) / self.deviation)


@dataclass(frozen=True)
class ProductTerm:
    """Products of every column of one term with every column of the other."""

    one: SparseTerm
    other: SparseTerm

    @property
    def width(self) -> int:
        return self.one.width * self.other.width

    def entries_of(self, rows: slice) -> TermEntries:
        """Return the product of both numbers in rows that have both."""
        (own, i, a), (theirs, j, b) = self.one.entries_of(rows), self.other.entries_of(rows)
        number = a if b is None else b if a is None else a * b
        if i is None or j is None:
            return TermEntries(self.width, i if j is None else j, number)
        return TermEntries(self.width, np.where((i == own) | (j == theirs), self.width, i * theirs + j), number)


def multiply_entries(entries: Sequence[TermEntries], coefficients: Floats, rows: int) -> Floats:
    """Return X b, (rows,), for a block of ``rows`` rows and coefficients (K,)."""
    found, start = np.zeros(rows), 0
    for width, column, number in entries:
        own = coefficients[start : start + width]
        # The appended 0 is the coefficient of rows without a number in this term.
        part = own[0] if column is None else np.append(own, 0.0)[column]
        found += part if number is None else part * number
        start += width
    return found


def multiply_transposed(entries: Sequence[TermEntries], values: Floats) -> Floats:
    """Return X'v, (K,), for a block and values (b,)."""
    return np.concatenate([_column_sums(one, values if one.number is None else values * one.number) for one in entries])


def cross_products(entries: Sequence[TermEntries], weights: Floats) -> Floats:
    """Return X'WX, (K, K), for a block and weights (b,)."""
    starts = np.cumsum([0, *(one.width for one in entries)])
    places = [slice(start, end) for start, end in pairwise(starts)]
    found = np.zeros((starts[-1], starts[-1]))
    for i, one in enumerate(entries):
        weighted = weights if one.number is None else weights * one.number
        for j, other in enumerate(entries[: i + 1]):
            values = weighted if other.number is None else weighted * other.number
            # A row has one number a term at most, so the products within a term are on the diagonal.
            part = np.diag(_column_sums(one, values)) if i == j else _cross_table(one, other, values)
            found[places[i], places[j]], found[places[j], places[i]] = part, part.T
    return found


def _column_sums(entries: TermEntries, values: Floats) -> Floats:
    """Return the sum of the values (b,) in each column, (width,)."""
    if entries.column is None:
        return np.asarray(values.sum())[None]
    return np.asarray(np.bincount(entries.column, values, entries.width + 1)[: entries.width], dtype=np.float64)


def _cross_table(one: TermEntries, other: TermEntries, values: Floats) -> Floats:
    """Return the sum of the values (b,) in each pair of columns, (width, width)."""
    if one.column is None or other.column is None:
        return _column_sums(other if one.column is None else one, values).reshape(one.width, other.width)
    shape = one.width + 1, other.width + 1
    table = np.bincount(one.column * shape[1] + other.column, values, shape[0] * shape[1])
    return np.asarray(table.reshape(shape)[: one.width, : other.width], dtype=np.float64)


class SummedDesign(ABC):
    """Design X of K = ``width`` columns, of which sums over blocks of rows are computed."""

    width: int

    @abstractmethod
    def sum_blocks(self, work: BlockWork, labels: Floats | None = None) -> Summands:
        """Return the sums of what the work computes from each block of rows, in the order of the blocks."""

    @cached_property
    def squares(self) -> Floats:
        """Return X'X, (K, K)."""
        (found,) = self.sum_blocks(_squares_of_block)
        return np.asarray(found)


@dataclass(frozen=True)
class SparseDesign(SummedDesign):
    """Design of ``terms`` side by side, with ``rows`` rows and K = ``width`` columns."""

    terms: Sequence[SparseTerm]
    rows: int

    @cached_property
    def width(self) -> int:  # type: ignore[override]
        return sum(term.width for term in self.terms)

    def blocks(self) -> Iterator[tuple[slice, list[TermEntries]]]:
        """Yield the rows of each block, with the entries of every term there."""
        for rows in row_blocks(self.rows, self.width):
            yield rows, [term.entries_of(rows) for term in self.terms]

    def sum_blocks(self, work: BlockWork, labels: Floats | None = None) -> Summands:
        """Return the sums of what the work computes from each block of rows; ``labels`` are (rows,)."""
        found: Summands = ()
        for rows, entries in self.blocks():
            own = () if labels is None else (labels[rows],)
            part = work(entries, rows.stop - rows.start, *own)
            found = tuple(0.0 + one for one in part) if not found else add_sums([found, part])
        return found

    def matrix(self) -> Floats:
        """Return the design as a dense matrix, (rows, K), for a design of few rows."""
        found, start = np.zeros((self.rows, self.width)), 0
        for term in self.terms:
            width, column, number = term.entries_of(slice(None))
            has = np.arange(self.rows) if column is None else np.flatnonzero(column < width)
            found[has, start if column is None else start + column[has]] = 1.0 if number is None else number[has]
            start += width
        return found


@dataclass
class AskedDesign(SummedDesign):
    """Design of a table that is asked for sums over its blocks.

    table: the table
    on_block: carries out a work on the entries, number and labels of the rows of a block of the table
    """

    width: int
    table: SummedTable
    on_block: Callable[..., Summands]

    def sum_blocks(self, work: BlockWork, labels: Floats | None = None) -> Summands:
        """Return sums over the blocks, which have labels of their own."""
        return self.table.ask_sums(partial(self.on_block, work))


def _squares_of_block(entries: Sequence[TermEntries], rows: int, *_: Floats) -> tuple[Floats]:
    return (cross_products(entries, np.ones(rows)),)


def make_sparse_design(design: Design, data: Microdata) -> SparseDesign:
    """Create a design with the columns of ``design.build_matrix(data)``, in that order, for records without missing
    values.

    Raises BadInput outside a function's domain.
    """
    design.check_domains(data)
    terms = (reduce(ProductTerm, [_term_of_factor(factor, data) for factor in term.factors]) for term in design.terms)
    return SparseDesign([InterceptTerm(), *terms], len(data))


def _term_of_factor(factor: TermFactor, data: Microdata) -> SparseTerm:
    """Return the indicators of a factor with levels, or the numbers of any other."""
    if not factor.has_indicators(data.schema):
        return StandardisedTerm(factor_numbers(factor, data), 1.0, 0.0, 1.0)
    levels = data.column(factor.column).cat
    column, width = levels.codes.to_numpy().astype(np.int32) - np.int32(1), len(levels.categories) - 1
    return IndicatorTerm(np.where(column < 0, np.int32(width), column), width)


@dataclass(frozen=True, eq=False)
class ColumnBasis:
    """Independent columns B that span some columns of a design X.

    kept: columns of the design itself, (k,)
    combined: combinations X C of all columns, C (K, c)
    to_orthonormal: T, upper triangular, (k + c, k + c): the columns of B T are orthonormal up to rounding
    """

    design: SummedDesign
    kept: Integers
    combined: Floats
    to_orthonormal: Floats

    def __len__(self) -> int:
        return len(self.to_orthonormal)

    def sum_blocks(self, work: BlockWork, labels: Floats | None = None) -> Summands:
        """Return sums over blocks as the design does, of the entries of X and then X C, (K + c) columns."""
        return self.design.sum_blocks(partial(_work_with_combined, work, self.combined), labels)

    @property
    def places(self) -> Integers:
        """Return the places of the columns of B among the (K + c) columns."""
        return np.append(self.kept, self.design.width + np.arange(self.combined.shape[1]))

    def extended_coefficients(self, of_orthonormal: Floats) -> Floats:
        """Return coefficients (K + c,) of X and X C, given those of B T (k + c,)."""
        found = np.zeros(self.design.width + self.combined.shape[1])
        found[self.places] = self.to_orthonormal @ of_orthonormal
        return found

    @property
    def to_design(self) -> Floats:
        """Return the matrix that maps coefficients of B T to those of the design alone, (K, k + c)."""
        found = np.zeros((self.design.width + self.combined.shape[1], len(self)))
        found[self.places] = self.to_orthonormal
        return np.asarray(found[: self.design.width] + self.combined @ found[self.design.width :])


def _work_with_combined(
    work: BlockWork, combined: Floats, entries: list[TermEntries], rows: int, *labels: Floats
) -> Summands:
    """Return what a work computes from the entries of X and X C in a block."""
    more = (TermEntries(1, None, multiply_entries(entries, column, rows)) for column in combined.T)
    return work([*entries, *more], rows, *labels)


def independent_basis(design: SummedDesign, among: Booleans | None = None, tolerance: float = 1e-10) -> ColumnBasis:
    """Return a basis of the columns of a design, or of those marked by ``among`` (K,).

    A column counts as dependent where its residual after the basis is below ``tolerance`` of its length, as for
    ``columns.independent_columns``.
    """
    lengths = np.sqrt(np.diag(design.squares))
    asked = np.flatnonzero(lengths > 0 if among is None else among & (lengths > 0))
    clear = _clearly_independent(design.squares[np.ix_(asked, asked)])
    basis = _make_basis(design, asked[clear], np.empty((design.width, 0)))
    doubtful = asked[~clear]
    while len(doubtful):
        # Squares keep half of a double's digits: where X'X leaves little of a column, its residual is computed record
        # by record and takes the column's place.
        rests, squares = _residual_columns(basis, doubtful)
        length = np.sqrt(np.diag(squares))
        left = length > tolerance * lengths[doubtful]
        clear = _clearly_independent(squares[np.ix_(left, left)])
        scaled = (rests[:, left] / length[left])[:, clear]
        basis = _make_basis(design, basis.kept, np.column_stack([basis.combined, scaled])) if len(clear) else basis
        doubtful = doubtful[left][~clear]
    return basis


def _clearly_independent(squares: Floats) -> Booleans:
    """Mark the columns with cross-products (k, k) whose residual after the marked columns before exceeds ``CLEAR`` of
    their length, (k,).
    """
    lengths = np.sqrt(np.diag(squares))
    rest = squares / np.outer(lengths, lengths)
    found = np.zeros(len(rest), dtype=np.bool_)
    for k in range(len(rest)):
        found[k] = rest[k, k] > CLEAR**2
        if found[k]:
            # One step of a Cholesky decomposition (the Schur complement).
            rest -= np.outer(rest[:, k], rest[k] / rest[k, k])
    return found


def _make_basis(design: SummedDesign, kept: Integers, combined: Floats) -> ColumnBasis:
    """Return the basis of these columns, orthonormalised by the Cholesky factor of its cross-products."""
    basis = ColumnBasis(design, kept, combined, np.eye(len(kept) + combined.shape[1]))
    chosen = np.ix_(basis.places, basis.places)
    squares = (basis.sum_blocks(_squares_of_block)[0] if combined.shape[1] else design.squares)[chosen]
    lengths = np.sqrt(np.diag(squares))
    # Columns of unit length first, so that units of the variables do not matter.
    root = np.linalg.cholesky(squares / np.outer(lengths, lengths))
    inverse = solve_triangular(root, np.eye(len(root)), lower=True).T / lengths[:, None]
    return ColumnBasis(design, kept, combined, np.asarray(inverse))


def _residual_columns(basis: ColumnBasis, doubtful: Integers) -> tuple[Floats, Floats]:
    """Return the residuals of the ``doubtful`` columns (d,) after a basis, as combinations of all columns (K, d), and
    their cross-products (d, d).
    """
    width, t = basis.design.width, basis.to_orthonormal
    combination = np.eye(width + basis.combined.shape[1])[:, doubtful]
    # A second projection removes what rounding left along the basis in the first.
    for _ in range(_REFINEMENTS):
        along = basis.sum_blocks(partial(_residual_parts, basis.places, combination))[0]
        combination[basis.places] -= t @ (t.T @ along)
    squares = basis.sum_blocks(partial(_residual_parts, basis.places, combination))[1]
    return combination[:width] + basis.combined @ combination[width:], squares


def _residual_parts(
    places: Integers, combination: Floats, entries: Sequence[TermEntries], rows: int, *_: Floats
) -> tuple[Floats, Floats]:
    """Return the summands of B'R, (k + c, d), and R'R, (d, d), for R = [X, X C] times a ``combination`` (K + c, d)."""
    rests = [multiply_entries(entries, column, rows) for column in combination.T]
    along = np.column_stack([multiply_transposed(entries, rest)[places] for rest in rests])
    return along, np.array([[one @ other for other in rests] for one in rests])
