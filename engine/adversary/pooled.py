"""Disclosure by m datasets together: values on which they agree.

An intruder who can tell which rows belong to the same record takes the mean of its m numbers, or its most frequent
level. A model of the population reveals a similar person as well as the record itself; a model that memorises the
record reveals it more often.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..data.arrays import Floats, Integers
from ..data.microdata import Microdata
from .likeness import MemorisationShare, score_margin
from .neighbours import NeighbourPairs


def measure_agreed_values(
    confidential: Microdata,
    releases: Sequence[Microdata],
    name: str,
    pairs: NeighbourPairs,
    windows: tuple[Floats, Floats],
    rows: Sequence[Integers] | None = None,
) -> MemorisationShare:
    """Measure how often several datasets together reveal a record's value.

    The baseline is the same for the value of the nearest other record.

    A number is revealed if the mean lies in its window from ``windows[0]`` to ``windows[1]``, (n,) each, a level if it
    is the mode, the first of ties. Row i of a dataset belongs to record i, or ``rows`` (n,) of the dataset tells its
    row, -1 if unknown.
    """
    if not pairs.cases or len(releases) < 2:
        return MemorisationShare(0.0, 0.0, 0.0)
    own, other = confidential.numbers(name)[pairs.own], confidential.numbers(name)[pairs.other]
    at = [pairs.own] * len(releases) if rows is None else [one[pairs.own] for one in rows]
    known = np.stack(at) >= 0
    drawn = np.stack([one.numbers(name)[np.maximum(places, 0)] for one, places in zip(releases, at, strict=True)])
    # A single row is no agreement between datasets.
    enough = known.sum(axis=0) >= 2
    if confidential.schema[name].kind.has_levels:
        told = _most_frequent_codes(drawn, known)
        right, alike = (_equal_or_both_missing(told, values) & enough for values in (own, other))
    else:
        told = np.where(known, drawn, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
        with np.errstate(invalid="ignore"):
            right, alike = (
                (windows[0][some] <= told) & (told <= windows[1][some]) & enough for some in (pairs.own, pairs.other)
            )
    value, baseline = pairs.weighted_share(right.astype(np.float64)), pairs.weighted_share(alike.astype(np.float64))
    noise = score_margin(value, baseline, pairs.cases)
    return MemorisationShare(value, baseline, 1.0, noise, np.unique(pairs.own[right]))


def _most_frequent_codes(codes: Floats, known: NDArray[np.bool_]) -> Floats:
    """Return the mode of each column's ``known`` codes (m, p), (p,); NaN is a code."""
    filled = np.where(np.isnan(codes), -1, codes).astype(np.int64) + 1
    counts = np.zeros((int(filled.max()) + 1, filled.shape[1]), dtype=np.int32)
    for line, those in zip(filled, known, strict=True):
        counts[line[those], np.flatnonzero(those)] += 1
    most = counts.argmax(axis=0).astype(np.float64) - 1
    return np.where(most < 0, np.nan, most)


def _equal_or_both_missing(first: Floats, second: Floats) -> NDArray[np.bool_]:
    return np.asarray((first == second) | (np.isnan(first) & np.isnan(second)))
