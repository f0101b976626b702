"""Targets of an intruder: all records, those that meet conditions, or a random sample of them.

    among = { RACE = ["3", "4"], age = ["[60, 80)", "90+"] }    # levels, and intervals of numbers or of days
    targets = 500                                               # number of them, at random

All risks by matching refer to the targets; their number is N of Reiter & Mitra (2009).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ..data.arrays import Booleans
from ..data.microdata import Microdata
from ..data.schema import Kind, Schema, Variable
from ..data.spelling import spell_as_whole
from ..errors import BadInput
from ..partition.hierarchies import Interval, parse_interval
from ..wording import count_noun

TargetConditions = Mapping[str, tuple[str, ...]]


def check_conditions(schema: Schema, among: TargetConditions, place: str) -> None:
    """Raise BadInput at ``place.among`` if a condition is empty or not an interval of numbers or dates."""
    for name, texts in among.items():
        where = f"{place}.among.{name}"
        if not texts:
            raise BadInput(where, "names no value; leave it out for any")
        if not schema[name].kind.has_levels:
            for i, text in enumerate(texts):
                _parse_interval(schema[name], text, f"{where}[{i}]")


def meets_conditions(data: Microdata, among: TargetConditions, place: str) -> Booleans:
    """Return whether each record (n,) meets all conditions; a missing value does not.

    Raises BadInput if no record does, or a level is unknown.
    """
    found = np.ones(len(data), dtype=np.bool_)
    for name, texts in among.items():
        found &= _meets_condition(data, name, texts, f"{place}.among.{name}")
    if not found.any():
        raise BadInput(f"{place}.among", "no record matches")
    return found


def target_rows(
    data: Microdata, among: TargetConditions, number: int | None, rng: np.random.Generator, place: str = "among"
) -> NDArray[np.intp]:
    """Return the rows of the targets, ascending, (N,): all that meet the conditions, or a sample of ``number``.

    Raises BadInput if there are fewer.
    """
    rows = np.flatnonzero(meets_conditions(data, among, place))
    if number is None:
        return rows
    if number > len(rows):
        raise BadInput(
            f"{place}.targets",
            f"{number:,} are more than the {count_noun(len(rows), 'record')} there are to choose from",
        )
    return np.sort(sort_rows_by_value(data, rows)[rng.choice(len(rows), number, replace=False)])


def sort_rows_by_value(data: Microdata, rows: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the rows sorted by the values of their records."""
    columns = [np.nan_to_num(data.numbers(name)[rows], nan=np.inf) for name in data.schema.names]
    # Nothing drawn from them then depends on the order of the file.
    return np.asarray(rows[np.lexsort(tuple(columns[::-1]))])


def _meets_condition(data: Microdata, name: str, texts: Sequence[str], where: str) -> Booleans:
    """Return whether each record (n,) has one of the levels or lies in one of the intervals."""
    variable = data.schema[name]
    if not variable.kind.has_levels:
        numbers = data.numbers(name)
        parts = [_parse_interval(variable, text, f"{where}[{i}]").contains(numbers) for i, text in enumerate(texts)]
        return np.asarray(np.logical_or.reduce(parts))
    levels = [str(level) for level in data.column(name).cat.categories]
    spelt = {spell_as_whole(level): level for level in levels}
    for i, text in enumerate(texts):
        if text not in levels and spell_as_whole(text) not in spelt:
            raise BadInput(f"{where}[{i}]", f'"{name}" has no level "{text}"')
    wanted = {text if text in levels else spelt[spell_as_whole(text)] for text in texts}
    return data.column(name).isin(list(wanted)).to_numpy(dtype=np.bool_)


def _parse_interval(variable: Variable, text: str, where: str) -> Interval:
    """Return the interval that a text writes. Raises BadInput."""
    found = parse_interval(text, variable.kind) or parse_interval(f"[{text}, {text}]", variable.kind)
    if found is None:
        numbers, dates = '"[20, 30)", "20-29", ">=65" or "65+"', '"[2020-01-01, 2020-06-30]" or ">= 2020-01-01"'
        forms = dates if variable.kind is Kind.DATE else numbers
        raise BadInput(where, f'"{text}" is no interval of "{variable.name}"; write one value, {forms}')
    return found
