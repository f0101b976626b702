"""Pairs of confidential records that are most alike in what a release keeps: what an independent person would have in a record's place.

A partly synthetic release keeps some variables of every record and draws the others anew. How often a draw that owes nothing
to the record's own values would hit a confidential record all the same is seen from another record: given to record i, the drawn
variables of the record j that is nearest to it in the kept ones are those of a person like it who is not it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

from ..arrays import Floats, Integers
from ..microdata import Microdata
from .cells import Keys

MOST_RECORDS = 500
MOST_TIES = 5
AT_ONCE = 4_000_000


@dataclass(frozen=True, eq=False)
class Pairs:
    """P pairs of records (P,): ``own``, another that is nearest to it, and their ``weight``, which sums to 1 for each of
    the ``cases`` records that have pairs.
    """

    own: Integers
    other: Integers
    weight: Floats
    cases: int

    def share(self, holds: Floats) -> float:
        """The share of the cases for which something holds, by pair (P,)."""
        return float(self.weight @ holds) / self.cases if self.cases else 0.0


def nearest_pairs(data: Microdata, names: Sequence[str], rows: Keys, among: Integers | None = None) -> Pairs:
    """At most 500 records, of those ``among`` if given, each with up to 5 of the others that are nearest to it,
    other ones of equals for each.

    The distance is 1 for each variable with levels in which two records differ, and the difference of ranks, in records / n, for each
    number (Gower 1971). Chosen in the order of their ``rows`` (n,), which says nothing of where they stand: shuffling the table changes nothing.
    """
    order = np.argsort(rows, kind="stable")
    chosen = order if among is None else order[np.isin(order, among)]
    if len(chosen) > MOST_RECORDS:
        chosen = chosen[np.linspace(0, len(chosen) - 1, MOST_RECORDS).astype(np.int64)]
    if len(data) < 2 or not len(chosen):
        return Pairs(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0), 0)
    columns = [(_place(data, name)[order], data.schema[name].kind.has_levels) for name in names]
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    at = rank[chosen]
    own: list[Integers] = []
    other: list[Integers] = []
    weight: list[Floats] = []
    step = max(1, AT_ONCE // len(data))
    for start in range(0, len(at), step):
        some = at[start : start + step]
        distance = np.zeros((len(some), len(data)), dtype=np.float32)
        for values, levels in columns:
            apart = values[some][:, None] - values[None, :]
            distance += (apart != 0) if levels else np.abs(apart)
        distance[np.arange(len(some)), some] = np.inf
        least = distance.min(axis=1)
        for i, line, low in zip(some, distance, least, strict=True):
            ties = np.flatnonzero(line == low)
            some_of = min(len(ties), MOST_TIES)
            ties = ties[(len(own) + np.arange(some_of) * len(ties) // some_of) % len(ties)]
            own.append(np.full(len(ties), i))
            other.append(ties)
            weight.append(np.full(len(ties), 1 / len(ties)))
    return Pairs(order[np.concatenate(own)], order[np.concatenate(other)], np.concatenate(weight), len(at))


def _place(data: Microdata, name: str) -> Floats:
    """Codes of levels, or ranks of numbers as a share of the records, missing ones first: (n,)."""
    numbers = data.numbers(name)
    if data.schema[name].kind.has_levels:
        return np.asarray(np.where(np.isnan(numbers), -1, numbers))
    return np.asarray(rankdata(np.where(np.isnan(numbers), -np.inf, numbers)) / len(data))
