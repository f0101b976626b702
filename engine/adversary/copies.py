"""Confidential records that a release repeats, beside how many an independent sample would repeat.

What an independent draw from the same population would share with the confidential data is seen in these themselves, by
leaving one out: where the release keeps nothing, the share of the records that equal another one, which is computed exactly
and is unbiased for a reference of n - 1 records (halves of the data would answer for n / 2). Where it keeps variables, the drawn
ones of the nearest other record in the record's place (``sfumato.engine.adversary.neighbours``). That record is compared with those that share
its kept values but itself, one fewer than a released row is. So what a released row gains by one more of them is added: the share of released rows
that would no longer be found if one of those records, at random, were left out; at most what the records themselves show of it, since a release
that copies records gains more. Numbers with many digits hardly ever repeat.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..data.arrays import Floats, Integers
from ..data.microdata import Microdata
from ..data.sorting import distinct_codes, in_order, is_first, sorted_values
from .cells import Cells, Keys, occurrences, positions_in, rows_of, runs_in
from .likeness import Likeness, standard_error
from .membership_evidence import Look, LookCounts, count_look
from .neighbours import Pairs, nearest_pairs


def equal_records(
    confidential: Microdata,
    own: Cells,
    releases: Sequence[Cells],
    kept: Sequence[str],
    drawn: Sequence[str],
    pairs: Pairs | None = None,
) -> Likeness:
    """The share of the released rows, on average over the datasets, that equal a confidential record in all variables.

    ``own`` and ``releases`` are the cells of the confidential data and of each dataset, ``pairs`` the nearest ones in what is kept where they
    are known. ``records`` are those that are repeated.
    A dataset that has exactly the confidential rows is a copy, however alike these are: then the baseline is 0.
    """
    n = len(confidential)
    kept_rows, drawn_rows = rows_of(own, kept, n), rows_of(own, drawn, n)
    rows, names = kept_rows + drawn_rows, (*kept, *drawn)
    ordered, lengths, copied = sorted_values(rows), list[int](), False
    classes = _Classes.of(rows, kept_rows) if kept else None
    by_one = list[float]()

    def ascending() -> Iterator[Keys]:
        nonlocal copied
        for cells in releases:
            one = sorted_values(rows_of(cells, names))
            copied |= np.array_equal(one, ordered)
            lengths.append(len(one))
            if classes is not None:
                by_one.append(classes.found_by_one(one))
            yield one

    shares, taken = _taken(ordered[is_first(ordered)], ascending())
    value, repeated = float(np.mean(shares)), np.flatnonzero(positions_in(taken, rows) >= 0)
    if copied:
        return Likeness(1.0, 0.0, records=repeated)
    if classes is None:
        repeats = runs_in(ordered)[1]
        baseline, cases = int(repeats[repeats > 1].sum()) / n, n
    else:
        pairs = nearest_pairs(confidential, kept, rows) if pairs is None else pairs
        made = kept_rows[pairs.own] + drawn_rows[pairs.other]
        found = np.searchsorted(ordered, made, side="right") - np.searchsorted(ordered, made)
        alike = kept_rows[pairs.own] == kept_rows[pairs.other]
        found -= alike
        one_fewer = pairs.share(np.where(alike & (found == 1), 1 / np.maximum(classes.sizes[pairs.own] - 1, 1), 0.0))
        baseline = min(1.0, pairs.share((found > 0).astype(np.float64)) + min(one_fewer, float(np.mean(by_one))))
        cases = pairs.cases
    noise = 2 * float(np.hypot(standard_error(baseline, cases), standard_error(baseline, lengths[0])))
    return Likeness(value, baseline, 1.0, noise, repeated)


@dataclass(frozen=True, eq=False)
class _Classes:
    """Records of the same kept values. ``sizes`` (n,): how many each record is one of. ``rows`` (u,): the different rows, ascending, with the probability
    of each, ``lost`` (u,), that no record has it any more once one of its class, at random, is left out; 0 in a class of one.
    """

    sizes: Integers
    rows: Keys
    lost: Floats

    @classmethod
    def of(cls, rows: Keys, kept_rows: Keys) -> _Classes:
        classes = distinct_codes(kept_rows)
        sizes = classes.counts[classes.codes]
        order, ascending = in_order(rows)
        first = np.flatnonzero(is_first(ascending))
        alike, counts = sizes[order[first]], np.diff(np.append(first, len(rows)))
        return cls(sizes, ascending[first], np.where((counts == 1) & (alike > 1), 1 / alike, 0.0))

    def found_by_one(self, released: Keys) -> float:
        """The share of released rows (k,) that no record would have any more."""
        places = positions_in(self.rows, released)
        return float(self.lost[places[places >= 0]].sum()) / max(1, len(released))


def rows_of_members(rows: Keys, members: int, releases: Sequence[Keys]) -> LookCounts:
    """How many members, and how many hold-out people, have a row that some release has: the rows of both (N,), members first.

    A model that draws common rows more often than the population has them equals more confidential rows than an independent sample
    does, and as many rows of people who were held out.
    """
    shown = np.zeros(len(rows), dtype=np.bool_)
    for one in releases:
        shown |= occurrences(rows, one) > 0
    return count_look(Look("all people", "", np.flatnonzero(shown)), members, len(rows))


def _taken(values: Keys, releases: Iterable[Keys]) -> tuple[list[float], Keys]:
    """Of each release the share of its keys (k,) that are one of the values, ascending (n,), and which values some are."""
    shares, taken = [], np.zeros(len(values), dtype=np.bool_)
    for one in releases:
        places = positions_in(values, sorted_values(one))
        found = places[places >= 0]
        taken[found] = True
        shares.append(len(found) / len(one) if len(one) else 0.0)
    return shares, values[taken]
