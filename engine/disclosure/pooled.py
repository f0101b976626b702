"""What the m datasets say together that one alone does not: records that come again, and values on which they agree.

Whoever can tell which rows are the same record's takes the mean of its m numbers, or its most frequent level. A model of the population gives
a person like it away as well as the record itself; a model that remembers the record gives the record away more often.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from ..data.arrays import Floats, Integers
from ..data.microdata import Microdata
from ..data.sorting import in_order, is_first, sorted_values
from .cells import Cells, Keys, occurrences, positions_in, rows_of
from .likeness import Likeness, score_margin, standard_error
from .neighbours import Pairs

GRID = 400
"""Quantiles of an exponential distribution over which is averaged."""


def recurring_records(
    confidential: Microdata, own: Cells, releases: Sequence[Cells], kept: Sequence[str], drawn: Sequence[str]
) -> Likeness:
    """The share of the confidential records that no other equals which occur whole in at least half of the datasets, and in two.

    A model that remembers nobody draws them too. Lone rows have, together, the probability 2 N_2 / n, where N_2 rows occur twice
    (Good 1953); it is taken to be spread over the N_1 of them exponentially, as shares of a population are where nothing else is known of them.
    """
    n, m = len(confidential), len(releases)
    if m < 2:
        return Likeness(0.0, 0.0, 0.0)
    names = (*kept, *drawn)
    rows = rows_of(own, names, n)
    least = max(2, (m + 1) // 2)
    counts = occurrences(rows, rows)
    lone = np.flatnonzero(counts == 1)
    if not len(lone):
        return Likeness(0.0, 0.0, 0.0)
    released = (rows_of(cells, names) for cells in releases)
    often, size = _in_datasets(rows[lone], released)
    found = lone[often >= least]
    twice = int((counts == 2).sum()) // 2
    by_chance = _again(2 * (twice + 1) / len(lone) * size / n, m, least) if twice else 0.0
    share = len(lone) / n
    return Likeness(len(found) / n, by_chance * share, share, 2 * standard_error(by_chance, len(lone)) * share, found)


def _in_datasets(rows: Keys, released: Iterable[Keys]) -> tuple[Integers, int]:
    """In how many of the datasets each of different rows (k,) occurs, and how many rows the first dataset has."""
    total, sizes = np.zeros(len(rows), dtype=np.int64), list[int]()
    order, values = in_order(rows)
    for one in released:
        places, sizes = positions_in(values, sorted_values(one)), [*sizes, len(one)]
        found = places[places >= 0]
        total[order[found[is_first(found)]]] += 1
    return total, sizes[0]


def _again(expected: float, m: int, least: int) -> float:
    """The probability that a row is drawn in at least ``least`` of m datasets, in each of which it is ``expected`` on average."""
    from scipy.stats import binom

    means = -expected * np.log1p(-(np.arange(GRID) + 0.5) / GRID)
    return float(binom.sf(least - 1, m, -np.expm1(-means)).mean())


def agreed_values(
    confidential: Microdata,
    releases: Sequence[Microdata],
    name: str,
    pairs: Pairs,
    near: tuple[Floats, Floats],
    rows: Sequence[Integers] | None = None,
) -> Likeness:
    """The share of the paired records whose value follows from the released ones, and that of the nearest others' values.

    A number follows where the mean lies in its window, from ``near[0]`` to ``near[1]`` (n,), a level where it is the most frequent, the first of equals.
    Record i of a dataset is record i of the confidential data, or what ``rows`` (n,) of the dataset says, -1 where its row cannot be
    told. From fewer than two rows nothing follows.
    """
    if not pairs.cases or len(releases) < 2:
        return Likeness(0.0, 0.0, 0.0)
    own, other = confidential.numbers(name)[pairs.own], confidential.numbers(name)[pairs.other]
    at = [pairs.own] * len(releases) if rows is None else [one[pairs.own] for one in rows]
    known = np.stack(at) >= 0
    drawn = np.stack([one.numbers(name)[np.maximum(places, 0)] for one, places in zip(releases, at, strict=True)])
    enough = known.sum(axis=0) >= 2
    if confidential.schema[name].kind.has_levels:
        told = _most_frequent(drawn, known)
        right, alike = (_same(told, values) & enough for values in (own, other))
    else:
        told = np.where(known, drawn, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
        with np.errstate(invalid="ignore"):
            right, alike = (
                (near[0][some] <= told) & (told <= near[1][some]) & enough for some in (pairs.own, pairs.other)
            )
    value, baseline = pairs.share(right.astype(np.float64)), pairs.share(alike.astype(np.float64))
    noise = score_margin(value, baseline, pairs.cases)
    return Likeness(value, baseline, 1.0, noise, np.unique(pairs.own[right]))


def _most_frequent(codes: Floats, known: NDArray[np.bool_]) -> Floats:
    """The most frequent of each column's ``known`` codes (m, p), NaN a code of its own: (p,)."""
    filled = np.where(np.isnan(codes), -1, codes).astype(np.int64) + 1
    counts = np.zeros((int(filled.max()) + 1, filled.shape[1]), dtype=np.int32)
    for line, those in zip(filled, known, strict=True):
        counts[line[those], np.flatnonzero(those)] += 1
    most = counts.argmax(axis=0).astype(np.float64) - 1
    return np.where(most < 0, np.nan, most)


def _same(first: Floats, second: Floats) -> NDArray[np.bool_]:
    return np.asarray((first == second) | (np.isnan(first) & np.isnan(second)))
