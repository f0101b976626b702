"""Strata, and the records and columns of a multinomial logit of its own in each.

A stratum is a level of a variable, or a group of its levels; levels outside all groups form one more group. Only
classes that occur in a stratum are drawn in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..data.arrays import Booleans, Floats, Integers
from ..data.distinct_records import distinct_records, representative_records
from ..data.microdata import Microdata
from ..errors import BadInput, near_miss_hint
from ..statistics.columns import independent_columns
from ..statistics.multinomial_logit import MultinomialLogit, fit_multinomial_logit
from .categories import categories_of_variable
from .completed_design import CompletedDesign

Groups = Mapping[str, tuple[str, ...]]
OTHERS = "others"
MOST_ALONE = 100_000
"""Records above which those that are alike are one row of a fit, with their number for a weight."""


@dataclass(frozen=True, eq=False)
class StratumRecords:
    """Records of one stratum that a model is fitted to, in r rows.

    rows: their places in the table, or, with ``weights``, among its distinct combinations, (r,)
    kept: columns of the design that are used; the columns before a dropped one determine it in the stratum, (C,)
    x: the kept columns, (r, p)
    y: codes of the target; a missing value has the code after the last level, (r,)
    class_keys: codes that occur, ascending, (K,)
    records: number of records
    weights: total weight of the equal records that a row stands for, (r,); None where each row is one record
    combination_of: combination of each record of the table where rows are combinations, (n,)
    """

    number: int
    name: str
    rows: Integers
    kept: Booleans
    x: Floats
    y: Integers
    class_keys: Integers
    records: int
    weights: Floats | None = None
    combination_of: Integers | None = None

    def rows_of_records(self, records: Integers) -> tuple[Integers, Booleans]:
        """Return the row of each of some records of the table, 0 where it has none, and whether it has one."""
        return find_places(records if self.combination_of is None else self.combination_of[records], self.rows)

    @property
    def coefficient_count(self) -> int:
        """Return the number of coefficients of its model, K p."""
        return int(len(self.class_keys) * self.x.shape[1])

    def fit(self, penalty: float, weights: Floats | None = None) -> MultinomialLogit:
        """Fit its model; ``weights`` (n,) are those of all records of the table."""
        if self.weights is not None:
            return fit_multinomial_logit(self.x, self.y, self.class_keys, penalty, self.weights)
        return fit_multinomial_logit(
            self.x, self.y, self.class_keys, penalty, None if weights is None else weights[self.rows]
        )


def find_places(values: Integers, ascending: Integers) -> tuple[Integers, Booleans]:
    """Return the place of each value in an ascending array, 0 where it is absent, and whether it is present."""
    places = np.minimum(np.searchsorted(ascending, values), len(ascending) - 1)
    there = ascending[places] == values
    return np.where(there, places, 0), there


def strata_of_records(data: Microdata, variable: str | None, groups: Groups) -> Integers:
    """Return the stratum of each record, (n,): the group of its level, or the level without groups.

    It is 0 without a variable. A missing value is a level of its own; with groups it is among the other levels.
    """
    if variable is None:
        return np.zeros(len(data), dtype=np.int64)
    categories = categories_of_variable(data, variable, None)
    codes = categories.category_codes(data)
    if not groups:
        return codes
    group = {level: i for i, levels in enumerate(groups.values()) for level in levels}
    levels = [group.get(str(level), len(groups)) for level in data.column(variable).cat.categories]
    return np.array([*levels, len(groups)], dtype=np.int64)[codes]


def stratum_name(number: int, data: Microdata, variable: str | None, groups: Groups) -> str:
    """Return the name of a stratum: that of its group, or its level."""
    if variable is None:
        return ""
    if groups:
        return [*groups, OTHERS][number]
    levels = [str(level) for level in data.column(variable).cat.categories]
    return f"{variable}={[*levels, 'missing'][number]}"


def check_level_groups(data: Microdata, variable: str, groups: Groups, place: str) -> None:
    """Raise BadInput where a group names a level that the variable lacks, or that another group has."""
    levels = [str(level) for level in data.column(variable).cat.categories]
    seen: set[str] = set()
    for name, group in groups.items():
        for i, level in enumerate(group):
            at = f"{place}.{name}[{i}]"
            if level not in levels:
                raise BadInput(at, f'"{variable}" has no level "{level}"{near_miss_hint(level, levels)}')
            if level in seen:
                raise BadInput(at, f'"{level}" stands in two groups, or twice in one')
            seen.add(level)


def stratified_records(
    data: Microdata,
    target: str,
    predictors: Sequence[str],
    variable: str | None = None,
    groups: Groups | None = None,
    *,
    filled: bool = False,
    together: bool = False,
) -> tuple[StratumRecords, ...]:
    """Return the records of each stratum, ordered by stratum number; with ``together``, equal records share a row.

    With ``filled``, records without a value of the target are left out of the fits rather than forming a class.
    """
    groups = groups or {}
    design, categories = (
        CompletedDesign.from_terms(predictors, data.with_positive_weight),
        categories_of_variable(data, target, None),
    )
    weights, records, of = None, np.ones(len(data)), None
    # Records of weight 0 are left out, since their class may be unique.
    table, counted = data, data.effective_weights > 0
    if together:
        columns = (*design.columns, target, *(() if variable is None else (variable,)))
        distinct = distinct_records(data, columns)
        weights, records = (
            distinct.sum_by_combination(data.weights),
            distinct.sum_by_combination(None if data.weights is None else counted.astype(np.float64)),
        )
        table, counted, of = representative_records(distinct, data), weights > 0, distinct.combination_of
    y, strata = categories.category_codes(table), strata_of_records(table, variable, groups)
    found = []
    for number in np.unique(strata):
        inside = (strata == number) & counted
        rows = np.flatnonzero(inside & (y < categories.value_count) if filled else inside)
        x = design.build_matrix(replace(table, frame=table.frame.iloc[rows], weights=None))
        kept = independent_columns(x) if len(rows) else np.zeros(x.shape[1], dtype=np.bool_)
        found.append(
            StratumRecords(
                int(number),
                stratum_name(int(number), data, variable, groups),
                rows,
                kept,
                x[:, kept],
                y[rows],
                np.unique(y[rows]),
                int(records[rows].sum()),
                None if weights is None else weights[rows],
                of,
            )
        )
    return tuple(found)
