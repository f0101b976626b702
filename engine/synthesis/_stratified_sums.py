"""Multinomial logits of strata, fitted to a table that is asked for sums over its blocks.

Moments of the terms come first, then R of each stratum's design with the records of each class, then log-likelihood,
gradient and Hessian at the coefficients that Newton's method comes to, of all strata together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from weakref import WeakKeyDictionary

import numpy as np

from ..data.arrays import Booleans, Floats, Integers
from ..data.block_sums import Summands, SummedTable, ask_together
from ..data.blocks import row_blocks
from ..data.distinct_records import distinct_records, representative_records
from ..data.microdata import Microdata
from ..design.categories import categories_of_variable
from ..design.completed_design import CompletedDesign, completed_triangle
from ..design.design_triangle import triangle_of_blocks
from ..design.stratified_logit import Groups, StratumRecords, strata_of_records, stratum_name
from ..statistics.columns import independent_columns
from ..statistics.multinomial_logit import LogitRows, MultinomialLogit, fit_summed_logit

LEFT_OUT = -1
"""In place of a stratum: records without a value of the target that no model is fitted to."""
BlockRows = tuple[Microdata, Floats, Integers, Integers, Booleans]
"""Distinct records of a block: their values, weights, class codes, strata, and whether a model is fitted to them, (d,)."""


@dataclass(frozen=True, eq=False)
class StratifiedTable:
    """What a block needs to be counted by stratum: the design of the terms, and the target and the strata.

    filled: whether records without a value of the target are left out
    """

    design: CompletedDesign
    target: str
    variable: str | None
    groups: Groups
    filled: bool
    _read: WeakKeyDictionary[Microdata, BlockRows] = field(default_factory=WeakKeyDictionary, repr=False)

    def rows_of(self, data: Microdata) -> BlockRows:
        """Return the distinct records of a block, which are found once for all strata."""
        if data not in self._read:
            columns = (*self.design.columns, self.target, *(() if self.variable is None else (self.variable,)))
            distinct = distinct_records(data, columns)
            table = representative_records(distinct, data)
            categories = categories_of_variable(table, self.target, None)
            y, strata = categories.category_codes(table), strata_of_records(table, self.variable, self.groups)
            counted = (y < categories.value_count) | (not self.filled)
            self._read[data] = table, distinct.sum_by_combination(), y, strata, counted
        return self._read[data]

    def describe_block(self, data: Microdata) -> Summands:
        """Return by stratum R of its design and the records of each class; R of what is left out in place of one."""
        table, weights, y, strata, counted = self.rows_of(data)
        found = {}
        for number in (LEFT_OUT, *np.unique(strata).tolist()):
            rows = np.flatnonzero(~counted if number == LEFT_OUT else (strata == number) & counted)
            triangle = np.empty((0, len(self.design.names)))
            if len(rows):
                triangle = completed_triangle(self.design, _select_rows(table, rows), weights[rows])
            found[number] = triangle, np.bincount(y[rows], weights[rows])
        return (found,)

    def sums_of_stratum(
        self, number: int, kept: Booleans, classes: Integers, b: Floats, data: Microdata
    ) -> tuple[float, Floats, Floats, Floats]:
        """Return log-likelihood, gradient, negative Hessian and squares of the columns at coefficients b (K, p)."""
        table, weights, y, strata, counted = self.rows_of(data)
        inside = np.flatnonzero((strata == number) & counted)
        likelihood, squares = 0.0, np.zeros(b.shape[1])
        gradient, hessian = np.zeros(b.shape), np.zeros((b.size, b.size))
        for part in row_blocks(len(inside), len(kept)):
            rows = inside[part]
            x = self.design.build_matrix(_select_rows(table, rows))[:, kept]
            own = LogitRows(x, np.searchsorted(classes, y[rows]), weights[rows])
            likelihood += own.log_likelihood(b)
            own.add_derivatives(b, gradient, hessian, squares)
        return likelihood, gradient, hessian, squares


def _select_rows(table: Microdata, rows: Integers) -> Microdata:
    return Microdata(table.schema, table.frame.iloc[rows], table.origin)


def _join_strata(parts: Sequence[Summands]) -> Summands:
    """Join what blocks tell of each stratum, in the order of the strata."""
    found = {}
    for number in sorted({number for (one,) in parts for number in one}):
        own = [one[number] for (one,) in parts if number in one]
        counts = np.zeros(max(len(count) for _, count in own))
        for _, count in own:
            counts[: len(count)] += count
        found[number] = triangle_of_blocks([np.vstack([triangle for triangle, _ in own])]), counts
    return (found,)


@dataclass(eq=False)
class AskedRows:
    """Rows of a stratum of which sums are asked for, all of them at each coefficients."""

    table: SummedTable
    strata: StratifiedTable
    stratum: StratumRecords
    _known: dict[bytes, Summands] = field(default_factory=dict)

    def _sums_at(self, b: Floats) -> Summands:
        if b.tobytes() not in self._known:
            own = self.stratum
            work = partial(self.strata.sums_of_stratum, own.number, own.kept, own.class_keys, b)
            self._known = {b.tobytes(): self.table.ask_sums(work)}
        return self._known[b.tobytes()]

    def log_likelihood(self, b: Floats) -> float:
        """Return the log-likelihood at coefficients b (K, p)."""
        return float(self._sums_at(b)[0])

    def add_derivatives(self, b: Floats, gradient: Floats, hessian: Floats, squares: Floats) -> None:
        """Add gradient, negative Hessian and squares of the columns to these."""
        _, *sums = self._sums_at(b)
        gradient += sums[0]
        hessian += sums[1]
        squares += sums[2]

    def column_squares(self) -> Floats:
        """Return the sum of the squares of each column, (p,)."""
        (found,) = self._known.values()
        return np.asarray(found[3])


@dataclass(frozen=True, eq=False)
class StrataOfTable:
    """Strata of a table that is asked for sums.

    strata: strata in their order, without rows
    triangle: R of the design of all records
    counts: records of each class, by stratum
    """

    table: StratifiedTable
    strata: tuple[StratumRecords, ...]
    triangle: Floats
    counts: Mapping[int, Floats]

    @classmethod
    def from_sums(
        cls,
        table: SummedTable,
        target: str,
        predictors: Sequence[str],
        variable: str | None,
        groups: Groups,
        *,
        filled: bool,
    ) -> StrataOfTable:
        """Ask a table for its strata."""
        design = CompletedDesign.from_sums(predictors, table)
        stratified = StratifiedTable(design, target, variable, groups, filled)
        (found,) = table.ask_sums(stratified.describe_block, _join_strata)
        triangle = triangle_of_blocks([np.vstack([one for one, _ in found.values()])])
        made = tuple(
            _describe_stratum(number, one, counts, stratified, table.head)
            for number, (one, counts) in found.items()
            if number != LEFT_OUT
        )
        return cls(stratified, made, triangle, {number: counts for number, (_, counts) in found.items()})

    def fit_models(self, table: SummedTable, penalty: float) -> Iterator[MultinomialLogit]:
        """Yield the model of each stratum. Raises NoMaximumError."""
        found = ask_together(table, {one.number: partial(self._fit_stratum, one, penalty) for one in self.strata}, {})
        yield from (found[one.number] for one in self.strata)

    def _fit_stratum(self, stratum: StratumRecords, penalty: float, table: SummedTable) -> MultinomialLogit:
        penalties = np.full(int(stratum.kept.sum()), float(penalty))
        penalties[0] = 0.0
        rows, shares = AskedRows(table, self.table, stratum), self.counts[stratum.number][stratum.class_keys]
        return fit_summed_logit(rows, shares, stratum.class_keys, penalties)


def _describe_stratum(
    number: int, triangle: Floats, counts: Floats, stratified: StratifiedTable, head: Microdata
) -> StratumRecords:
    """Return a stratum without rows."""
    kept = independent_columns(triangle) if len(triangle) else np.zeros(triangle.shape[1], dtype=np.bool_)
    none = np.zeros(0, dtype=np.int64)
    name = stratum_name(number, head, stratified.variable, stratified.groups)
    classes = np.flatnonzero(counts)
    return StratumRecords(
        number, name, none, kept, np.empty((0, int(kept.sum()))), none, classes, int(counts.sum()), np.empty(0)
    )
