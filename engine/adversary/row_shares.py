"""Share of a population that has each record's row, where most rows occur once and counts alone say nothing.

A row's share is the product of the shares of its values given those of a few other columns. The columns are taken in
the order of their numbers of classes; each gets, one by one, the column before it that predicts it best, as long as one
does (greedy structure search, Heckerman, Geiger & Chickering 1995). A share given several columns is shrunk towards
that given one fewer. Each record is left out of its own shares, so that another column that predicts nothing is not
taken. Members and hold-out people are one table: who is a member is not used.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..data.arrays import Floats, Integers
from ..data.bits import Keys, mix_bits
from ..data.rows import distinct_codes
from .coded import CodedColumn, value_classes

PRIOR_RECORDS = 30.0
"""Number of records for which the share given one column fewer counts."""
MOST_GIVEN = 4
"""Largest number of columns on which the share of a value depends."""
MOST_FOR_SEARCH = 20_000
"""About the largest number of records among which columns are searched."""


class RowShares:
    """Shares of the rows of N records in sets of columns."""

    def __init__(self, columns: Sequence[CodedColumn], rows: Keys) -> None:
        """Prepare the classes of each column.

        columns: columns of the joint table, with distinct names
        rows: key of each record's row, (N,), by which records are sampled, whatever their order
        """
        classes = {one.name: distinct_codes(value_classes(one)).codes.astype(np.int64) for one in columns}
        numbers = {name: int(codes.max(initial=-1)) + 1 for name, codes in classes.items()}
        # Ties by how the records spread, so that neither names nor the order of columns choose.
        spread = {name: int(np.square(np.bincount(codes)).sum()) for name, codes in classes.items()}
        self.names = sorted(classes, key=lambda name: (numbers[name], -spread[name]))
        self._all = classes
        chosen = mix_bits(rows) <= np.uint64(min(1.0, MOST_FOR_SEARCH / max(1, len(rows))) * (2**64 - 2**12))
        self._some = classes if chosen.all() else {name: codes[chosen] for name, codes in classes.items()}
        self._within = {one.name: _log_shares_within_class(one, classes[one.name]) for one in columns}
        self._scores: dict[tuple[str, ...], float] = {}

    def log_shares(self, names: Sequence[str]) -> Floats:
        """Return the log share of the population that has each record's row in some columns, (N,)."""
        found, before = np.zeros(len(next(iter(self._all.values())))), list[str]()
        for name in (one for one in self.names if one in names):
            found += _log_shares_given(self._all, name, self._search_given(name, before)) + self._within[name]
            before.append(name)
        return found

    def _search_given(self, name: str, before: Sequence[str]) -> list[str]:
        """Return the columns, of those before it, on which the share of a column's values depends."""
        given, best = list[str](), self._score(name)
        while len(given) < MOST_GIVEN and (left := [one for one in before if one not in given]):
            score, another = max((self._score(name, *given, one), -at) for at, one in enumerate(left))
            if score <= best:
                break
            best = score
            given.append(left[-int(another)])
        return given

    def _score(self, name: str, *given: str) -> float:
        """Return the log probability of a column given others, of each record by all others."""
        key = (name, *given)
        if key not in self._scores:
            self._scores[key] = float(_log_shares_given(self._some, name, given).sum())
        return self._scores[key]


def _log_shares_given(classes: dict[str, Integers], name: str, given: Sequence[str]) -> Floats:
    """Return the log share of each record's class among the other records that are equal in the given columns, (n,)."""
    own = classes[name]
    n_classes, group, share = int(own.max(initial=0)) + 1, np.zeros(len(own), dtype=np.int64), 1.0 / max(1, len(own))
    of_class: Floats = np.full(len(own), 1.0 / n_classes)
    for at in range(len(given) + 1):
        if at:
            another = classes[given[at - 1]]
            group = distinct_codes(group * (int(another.max(initial=0)) + 1) + another).codes.astype(np.int64)
        equal = distinct_codes(group * n_classes + own)
        alike = np.bincount(group)[group] - 1
        prior = PRIOR_RECORDS if at else float(n_classes)
        of_class = (equal.counts[equal.codes] - 1 + prior * of_class) / (alike + prior)
    return np.asarray(np.log(np.maximum(of_class, share * 1e-9)))


def _log_shares_within_class(one: CodedColumn, classes: Integers) -> Floats:
    """Return the log share of each record's value among the values of its class, (N,)."""
    return np.asarray(np.log(one.counts[one.codes] / np.bincount(classes)[classes]))
