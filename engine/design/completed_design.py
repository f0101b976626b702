"""Design matrix without missing values, with standardised numbers, so that a penalty means the same for every column.

Numbers are standardised by the mean and standard deviation of the confidential values; indicators stay 0 and 1. Where a
term has missing values, its columns are filled with their means, and an indicator of missing values is added.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.arrays import Floats
from ..data.block_sums import Summands, SummedTable
from ..data.blocks import row_blocks
from ..data.distinct_records import distinct_records, representative_records
from ..data.microdata import Microdata
from ..data.terms import PredictorTerm, parse_term
from ..errors import BadInput
from ..statistics.columns import column_scales, independent_columns
from ..statistics.number_facts import NumberFacts
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
        return cls.from_blocks([_term_columns(parse_term(text, data.schema, text), data) for text in terms])

    @classmethod
    def from_arrays(cls, terms: Sequence[str], head: Microdata, arrays: Mapping[str, NDArray[Any]]) -> CompletedDesign:
        """Create the design that has these ``arrays`` (``as_arrays``), for the levels of a table."""
        designs = [Design.from_terms([parse_term(text, head.schema, text)], head) for text in terms]
        ends = np.cumsum([len(design.names) - 1 for design in designs])[:-1]
        fill, shift, divisor = (np.split(arrays[name], ends)[: len(designs)] for name in ("fill", "shift", "divisor"))
        gaps = map(bool, arrays["gaps"])
        return cls.from_blocks([_TermColumns(*own) for own in zip(designs, fill, shift, divisor, gaps, strict=True)])

    @classmethod
    def from_blocks(cls, blocks: Sequence[_TermColumns]) -> CompletedDesign:
        """Create the design of the columns of each term."""
        return cls(tuple(blocks), ("intercept", *(name for block in blocks for name in block.column_names)))

    @classmethod
    def from_sums(cls, terms: Sequence[str], table: SummedTable) -> CompletedDesign:
        """Create the design of these terms as ``from_terms`` does, from a table that is asked for sums."""
        designs = [Design.from_terms([parse_term(text, table.head.schema, text)], table.head) for text in terms]
        (parts,) = table.ask_sums(partial(_facts_of_terms, designs), lambda parts: ([one for (one,) in parts],))
        blocks = []
        for own, design in zip(zip(*parts, strict=True), designs, strict=True):
            # the first row counts records with a missing value
            facts = [NumberFacts.from_blocks(column) for column in zip(*(one[1:] for one in own), strict=True)]
            mean, sd = np.array([one.mean for one in facts]), None
            if facts and facts[0].present:
                sd = np.array([one.standard_deviation() for one in facts])
            blocks.append(_make_term_columns(design, table.head, mean, sd, any(one[0, 0] for one in own)))
        return cls.from_blocks(blocks)

    @property
    def as_arrays(self) -> dict[str, NDArray[Any]]:
        """Return what was learned from the table: numbers of the columns, and which terms have gaps."""
        found: dict[str, NDArray[Any]] = {
            name: np.concatenate([np.empty(0), *(getattr(block, name) for block in self.blocks)])
            for name in ("fill", "shift", "divisor")
        }
        return {**found, "gaps": np.array([block.gaps for block in self.blocks], dtype=np.bool_)}

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
    return _make_term_columns(design, data, mean, sd, missing)


def _facts_of_terms(designs: Sequence[Design], data: Microdata) -> Summands:
    """Return for each term of a block the records with a missing value, and the facts of its columns: (1 + k, 7)."""
    found = []
    for design in designs:
        parts = []
        for rows in row_blocks(len(data), len(design.names)):
            x = design.build_matrix(data.select_rows(rows))[:, 1:]
            missing = np.isnan(x).any(axis=1)
            own = [NumberFacts.from_values(column).as_array for column in x[~missing].T]
            parts.append(np.array([np.full(7, float(missing.sum())), *own]))
        joined = [NumberFacts.from_blocks([one[j] for one in parts]).as_array for j in range(1, len(design.names))]
        found.append(np.array([np.sum([one[0] for one in parts], axis=0), *joined]))
    return (found,)


def _make_term_columns(design: Design, data: Microdata, mean: Floats, sd: Floats | None, missing: bool) -> _TermColumns:
    """Return the columns of one term by their means and standard deviations (k,), None where all are missing."""
    numbers = any(not factor.has_indicators(data.schema) for factor in design.terms[0].factors)
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
    table = representative_records(distinct, data)
    require_independent_columns(design, completed_triangle(design, table, distinct.sum_by_combination()), terms, place)


def completed_triangle(design: CompletedDesign, table: Microdata, weights: Floats) -> Floats:
    """Return R of the design of at least one record, with rows by the roots of their weights (d,)."""
    root = np.sqrt(weights)
    return triangle_of_blocks(
        design.build_matrix(table.select_rows(rows)) * root[rows, None]
        for rows in row_blocks(len(table), len(design.names))
    )


def require_independent_columns(design: CompletedDesign, x: Floats, terms: Sequence[str], place: str) -> None:
    """Raise BadInput at ``place[j]`` where in R of the design of these terms columns before determine one of term j."""
    owners = np.repeat(np.arange(len(terms)), [len(block.column_names) for block in design.blocks])
    is_indicator = np.concatenate(
        [[False], *(np.arange(len(one.column_names)) >= len(one.fill) for one in design.blocks)]
    )
    # Indicators of missing values come last and are exempt: two variables may lack the same records.
    order = np.argsort(is_indicator, kind="stable")
    dependent = np.empty(x.shape[1], dtype=np.bool_)
    dependent[order] = ~independent_columns(x[:, order])
    wrong = np.flatnonzero(dependent & ~is_indicator)
    if len(wrong):
        j = int(owners[wrong[0] - 1])
        raise BadInput(
            f"{place}[{j}]",
            f'"{terms[j]}" is aliased: the intercept and the terms before it determine a column of it, or no record has '
            "one of its levels; leave it out",
        )
