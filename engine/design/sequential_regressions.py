"""Logistic regressions of binary variables on those before them, fitted to distinct combinations of their values.

They are those of Reiter, Wang & Zhang §3.1. A table that is asked for sums gives R of every design and the counts of every
target first, and then the likelihood of all regressions, at the coefficients to which Newton's method comes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations

import numpy as np

from ..data.arrays import Booleans, Floats
from ..data.block_sums import Summands, SummedTable, ask_together
from ..data.blocks import row_blocks
from ..data.distinct_records import distinct_records, representative_records
from ..data.microdata import Microdata
from ..data.schema import Schema
from ..data.terms import PredictorTerm, parse_term
from ..statistics.columns import QRFactors, independent_columns, qr_factors
from .design_matrix import Design
from .design_triangle import design_triangle, triangle_of_blocks
from .logistic import LogisticFit, LogisticPrior, SummedLogistic, logistic_regression, logistic_sums


@dataclass(frozen=True, eq=False)
class SequentialRegression:
    """Regression of one binary target on distinct rows, each of several records of which a share has the second level.

    terms: of the design
    names: of all columns, (C,)
    kept: columns that are used, (C,); a column that those before determine is left out, such as a product that no
        record has
    x: the kept columns, (d, K)
    records, ones: the records and those of the second level, (d,)
    """

    target: str
    terms: tuple[PredictorTerm, ...]
    names: tuple[str, ...]
    kept: Booleans
    x: Floats
    records: Floats
    ones: Floats

    @property
    def left_out(self) -> tuple[str, ...]:
        return tuple(name for name, kept in zip(self.names, self.kept, strict=True) if not kept)

    def fit(self, prior: LogisticPrior) -> LogisticFit:
        return logistic_regression(self.x, self.ones / self.records, self.records, prior)


def sequential_terms(
    target: str, targets: Sequence[str], predictors: Sequence[str], order: int, schema: Schema
) -> tuple[PredictorTerm, ...]:
    """Return the terms of a target's regression: predictors, targets before it, and for order 2 the products of two of
    those.
    """
    before = targets[: targets.index(target)]
    terms = [parse_term(text, schema, "predictors") for text in (*predictors, *before)]
    if order == 2:
        single = [term for term in terms if len(term.factors) == 1]
        there = {frozenset(map(str, term.factors)) for term in terms}
        for a, b in combinations(single, 2):
            product = PredictorTerm((*a.factors, *b.factors))
            if a.columns != b.columns and frozenset(map(str, product.factors)) not in there:
                terms.append(product)
    return tuple(terms)


def sequential_regressions(
    data: Microdata, targets: Sequence[str], predictors: Sequence[str], order: int, weights: Floats | None = None
) -> tuple[SequentialRegression, ...]:
    """Return the regressions in the order of the targets, without those that have no term.

    ``weights`` (n,), at least 0, are the influence of single records (a pseudo-likelihood); by default each counts as
    one.
    """
    found = []
    for target in targets:
        if terms := sequential_terms(target, targets, predictors, order, data.schema):
            design = Design.from_terms(terms, data)
            distinct = distinct_records(data, design.columns)
            records = distinct.sum_by_combination(weights)
            ones = distinct.sum_by_combination(
                data.numbers(target) if weights is None else weights * data.numbers(target)
            )
            some = records > 0
            x = design.build_matrix(representative_records(distinct, data))[some]
            kept = independent_columns(x)
            found.append(SequentialRegression(target, terms, design.names, kept, x[:, kept], records[some], ones[some]))
    return tuple(found)


def level_counts(data: Microdata, target: str, weights: Floats | None = None) -> tuple[float, float]:
    """Return the numbers of records with the first and with the second level, from which a first target without terms
    is drawn.
    """
    own = np.ones(len(data)) if weights is None else weights
    ones = float(own @ data.numbers(target))
    return float(own.sum()) - ones, ones


@dataclass(frozen=True, eq=False)
class RegressionsOfTable:
    """Regressions of a table that is asked for sums.

    counts: records with the first and with the second level of each target
    triangles: R of the design of each target that has terms, (K, C)
    models: their regressions, without rows
    """

    counts: dict[str, tuple[float, float]]
    triangles: dict[str, Floats]
    models: tuple[SequentialRegression, ...]

    @classmethod
    def from_sums(
        cls,
        table: SummedTable,
        targets: Sequence[str],
        predictors: Sequence[str],
        order: int,
        check_block: Callable[[Microdata], None],
    ) -> RegressionsOfTable:
        """Ask a table for the counts and triangles of its regressions. ``check_block`` is called with each block."""
        every = {one: sequential_terms(one, targets, predictors, order, table.head.schema) for one in targets}
        designs = {one: Design.from_terms(terms, table.head) for one, terms in every.items() if terms}
        counts, triangles = table.ask_sums(
            partial(_describe_block, tuple(targets), designs, check_block), _join_descriptions
        )
        models = []
        for target, design in designs.items():
            kept, none = independent_columns(triangles[target]), np.empty(0)
            rows = np.empty((0, int(kept.sum())))
            models.append(SequentialRegression(target, design.terms, design.names, kept, rows, none, none))
        return cls({one: (zeros, ones) for one, (zeros, ones) in counts.items()}, triangles, tuple(models))

    def fit_models(self, table: SummedTable) -> dict[str, LogisticFit]:
        """Return the fit of each regression, by target."""
        return ask_together(table, {one.target: partial(self._fit_model, one) for one in self.models}, {})

    def _fit_model(self, model: SequentialRegression, table: SummedTable) -> LogisticFit:
        design = Design.from_terms(model.terms, table.head)
        factors = qr_factors(self.triangles[model.target][:, model.kept])
        # A factor's triangle maps coefficients of orthonormal columns to those of the design.
        to_q = factors.coefficients_by_column(np.eye(len(factors.scales)))

        def sums_at(gamma: Floats) -> Summands:
            return table.ask_sums(partial(_likelihood_of_block, design, model.target, model.kept, to_q, gamma))

        return SummedLogistic(QRFactors(np.empty((0, len(to_q))), factors.triangle, factors.scales), sums_at).fit()


def _describe_block(
    targets: tuple[str, ...], designs: dict[str, Design], check_block: Callable[[Microdata], None], data: Microdata
) -> Summands:
    """Return the counts of each target in a block, and R of each design."""
    check_block(data)
    counts = {target: level_counts(data, target) for target in targets}
    return counts, {target: design_triangle(design, data) for target, design in designs.items()}


def _join_descriptions(parts: Sequence[Summands]) -> Summands:
    """Add counts, and decompose stacked triangles, in the order of the blocks."""
    first = parts[0]
    counts = {one: tuple(map(sum, zip(*(part[0][one] for part in parts), strict=True))) for one in first[0]}
    return counts, {one: triangle_of_blocks([np.vstack([part[1][one] for part in parts])]) for one in first[1]}


def _likelihood_of_block(
    design: Design, target: str, kept: Booleans, to_q: Floats, gamma: Floats, data: Microdata
) -> Summands:
    """Return the sums of ``logistic_sums`` over the records of a block."""
    distinct = distinct_records(data, design.columns)
    table, records = representative_records(distinct, data), distinct.sum_by_combination()
    shares = distinct.sum_by_combination(data.numbers(target)) / records
    value, score, information = 0.0, np.zeros(len(gamma)), np.zeros((len(gamma), len(gamma)))
    for rows in row_blocks(len(table), len(kept)):
        x = design.build_matrix(table.select_rows(rows))[:, kept] @ to_q
        own = logistic_sums(x, shares[rows], records[rows], gamma)
        value, score, information = value + own[0], score + own[1], information + own[2]
    return value, score, information
