"""Logistic regressions of binary variables on those before them, fitted to distinct combinations of their values.

They are those of Reiter, Wang & Zhang §3.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from ..data.arrays import Floats
from ..data.distinct_records import distinct_records, representative_records
from ..data.microdata import Microdata
from ..data.schema import Schema
from ..data.terms import PredictorTerm, parse_term
from ..statistics.columns import independent_columns
from .design_matrix import Design
from .logistic import LogisticFit, LogisticPrior, logistic_regression


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
    kept: NDArray[np.bool_]
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
