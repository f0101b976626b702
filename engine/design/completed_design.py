"""Design matrix without missing values, with standardised numbers, so that a penalty means the same for every column.

Numbers are standardised by the mean and standard deviation of the confidential values; indicators stay 0 and 1. Where a
term has missing values, its columns are filled with their means, and an indicator of missing values is added.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..data.arrays import Floats
from ..data.blocks import row_blocks
from ..data.distinct_records import distinct_records, representative_records
from ..data.microdata import Microdata
from ..data.terms import PredictorTerm, parse_term
from ..errors import BadInput
from ..statistics.columns import column_scales, independent_columns
from .design_matrix import Design
from .design_triangle import triangle_of_blocks


@dataclass(frozen=True, eq=False)
class _TermColumns:
    """Columns (k) of one term.

    fill: value in place of a missing one, (k,)
    shift, divisor: subtracted from and dividing each column, (k,)
    gaps: whether an indicator of missing values is added
    """

    design: Design
    fill: Floats
    shift: Floats
    divisor: Floats
    gaps: bool

    @property
    def column_names(self) -> tuple[str, ...]:
        gap = (f"{self.design.terms[0]} missing",) if self.gaps else ()
        return (*self.design.names[1:], *gap)

    def term_matrix(self, data: Microdata) -> Floats:
        """Return the filled and standardised columns of some records, with the indicator of missing values where there
        is one.
        """
        x = self.design.build_matrix(data)[:, 1:]
        missing = np.asarray(np.isnan(x).any(axis=1))
        x = (np.where(missing[:, None], self.fill, x) - self.shift) / self.divisor
        return np.column_stack([x, missing]) if self.gaps else x


@dataclass(frozen=True, eq=False)
class CompletedDesign:
    """Design of an intercept and terms, without missing values and standardised.

    blocks: columns of each term, from a ``Design`` of that term alone
    names: names of the columns, (p,)
    """

    # Not a Design: its columns depend on the values of a table as well as on its levels.
    blocks: tuple[_TermColumns, ...]
    names: tuple[str, ...]

    @classmethod
    def from_terms(cls, terms: Sequence[str], data: Microdata) -> CompletedDesign:
        """Create the design of these terms, with fills and scales learned from this table."""
        blocks = tuple(_term_columns(parse_term(text, data.schema, text), data) for text in terms)
        return cls(blocks, ("intercept", *(name for block in blocks for name in block.column_names)))

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the variables that the terms read, each once."""
        return tuple(dict.fromkeys(name for block in self.blocks for name in block.design.columns))

    def build_matrix(self, data: Microdata) -> Floats:
        """Return the matrix (n, p) for the records of ``data``, which may be synthetic."""
        return np.column_stack([np.ones(len(data)), *(block.term_matrix(data) for block in self.blocks)])


def _term_columns(term: PredictorTerm, data: Microdata) -> _TermColumns:
    """Return the columns of one term, with fills and scales learned from the data."""
    design = Design.from_terms([term], data)
    mean, sd, missing = (_column_moments if design.fits_in_one_block(data) else _column_moments_in_blocks)(design, data)
    numbers = any(not factor.has_indicators(data.schema) for factor in term.factors)
    shift, divisor = np.zeros(len(mean)), np.ones(len(mean))
    if numbers and sd is not None:
        shift, divisor = mean, np.where(sd > 0, sd, 1.0)
    return _TermColumns(design, mean, shift, divisor, missing)


def _column_moments(design: Design, data: Microdata) -> tuple[Floats, Floats | None, bool]:
    """Return means and standard deviations (k,) of a term's columns, and whether a record has a missing value.

    The standard deviations are None where every record has one.
    """
    x = design.build_matrix(data)[:, 1:]
    missing = np.asarray(np.isnan(x).any(axis=1))
    present = np.sort(x[~missing], axis=0)  # a sum in this order does not depend on that of the records
    if not len(present):
        return np.zeros(x.shape[1]), None, bool(missing.any())
    scale = column_scales(present)
    return (present / scale).mean(axis=0) * scale, (present / scale).std(axis=0) * scale, bool(missing.any())


def _column_moments_in_blocks(design: Design, data: Microdata) -> tuple[Floats, Floats | None, bool]:
    """Return the result of ``_column_moments`` block by block, from distinct combinations of values."""
    design.check_domains(data)
    distinct = distinct_records(data, design.columns)
    table, counts, k = representative_records(distinct, data), distinct.sum_by_combination(), len(design.names) - 1

    def present() -> Iterator[tuple[Floats, Floats]]:
        """Yield the columns and numbers of records of complete combinations, block by block."""
        for rows in row_blocks(len(distinct), k + 1):
            x = design.build_matrix(table.select_rows(rows))[:, 1:]
            there = ~np.isnan(x).any(axis=1)
            yield x[there], counts[rows][there]

    records = sum(float(own.sum()) for _, own in present())
    missing = records < len(data)
    if not records:
        return np.zeros(k), None, missing
    scale = column_scales(np.stack([np.abs(x).max(axis=0, initial=0.0) for x, _ in present()]))
    mean = sum((own @ (x / scale) for x, own in present()), np.zeros(k)) / records
    variance = sum((own @ (x / scale - mean) ** 2 for x, own in present()), np.zeros(k)) / records
    return mean * scale, np.sqrt(variance) * scale, missing


def require_independent_terms(data: Microdata, terms: Sequence[str], place: str) -> None:
    """Raise BadInput at ``place[j]`` where the intercept and the terms before determine a column of term j."""
    design = CompletedDesign.from_terms(terms, data)
    distinct = distinct_records(data, design.columns)
    table, root = representative_records(distinct, data), np.sqrt(distinct.sum_by_combination())
    x = triangle_of_blocks(
        design.build_matrix(table.select_rows(rows)) * root[rows, None]
        for rows in row_blocks(len(table), len(design.names))
    )
    owners = np.repeat(np.arange(len(terms)), [len(block.column_names) for block in design.blocks])
    told = np.concatenate([[False], *(_missing_indicators(block) for block in design.blocks)])
    # Indicators of missing values come last and are exempt: two variables may lack the same records.
    order = np.argsort(told, kind="stable")
    dependent = np.empty(x.shape[1], dtype=np.bool_)
    dependent[order] = ~independent_columns(x[:, order])
    wrong = np.flatnonzero(dependent & ~told)
    if len(wrong):
        j = int(owners[wrong[0] - 1])
        raise BadInput(
            f"{place}[{j}]",
            f'"{terms[j]}" is aliased: the intercept and the terms before it determine a column of it, or no record has '
            "one of its levels; leave it out",
        )


def _missing_indicators(block: _TermColumns) -> NDArray[np.bool_]:
    """Mark the columns of a block that are indicators of missing values."""
    return np.asarray(np.arange(len(block.column_names)) >= len(block.fill))
