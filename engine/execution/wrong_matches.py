"""Test whether matching finds the right people more often than wrong people who share their kept values.

A synthetic release keeps some variables and draws others. Among people with the same kept values a drawn value agrees
with somebody's by chance, in a large table even in every dataset. If drawn values are independent of the person in
whose row they stand, the rows of such people are exchangeable: a person is found in another's row as often as in the
own one. So identities are exchanged among people with the same kept values, and the p-value is the share of exchanges
by which as many people are found (a permutation test within strata: Good 2005, Permutation, Parametric and Bootstrap
Tests of Hypotheses, ch. 3).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..data.arrays import Floats, Integers
from ..data.microdata import Microdata, units_of
from ..data.rows import distinct_rows
from ..errors import NotComputable
from ..matching.intruder import IntruderKnowledge, MatchTolerance
from ..matching.matching import ExactKey, WindowKey
from ..matching.strategies import MatchTargets, find_best_matches
from ..matching.unit_matching import UnitMatcher, find_best_unit_matches
from ..statistics.comparing import is_above

MOST = 5
"""People of a block at most: the own row and four wrong ones are tried for each."""


@dataclass(frozen=True)
class WrongMatches:
    """Result of the test of wrong matches.

    own: number of people found in their own rows with more than a given probability
    wrong: number of people found in wrong rows, averaged over all exchanges of identities
    p_value: probability of at least ``own`` if rows of people with the same kept values are exchangeable
    """

    own: int
    wrong: float
    p_value: float


def count_wrong_matches(
    confidential: Microdata,
    releases: Iterable[Microdata],
    names: Sequence[str],
    radius: Mapping[str, MatchTolerance],
    *,
    groups: NDArray[np.generic],
    order: NDArray[np.generic],
    candidates: Sequence[Floats],
    beyond: float,
    best_candidates: Sequence[Floats | None] = (),
) -> WrongMatches:
    """Count the people found in their own rows and in those of others of their block, on average over m datasets.

    Parameters
    ----------
    confidential : Microdata
        n records.
    releases : iterable of Microdata
        m datasets in which row i is that of record i.
    names : sequence of str
        Variables that the intruder knows, including kept ones.
    radius : mapping
        Tolerance of a match by variable; equality without one.
    groups : array of shape (n,)
        Equal for records that share all kept values, which a model that draws from kept values cannot distinguish.
    order : array of shape (n,)
        Uninformative number of each record, such as a hash, by which a group is divided into blocks.
    candidates : sequence of arrays of shape (n,)
        For each dataset the number of rows that match each record; NaN where it was not examined.
    beyond : float
        Probability of being found, averaged over the datasets, above which a person counts.
    best_candidates : sequence of arrays or None
        The same as ``candidates`` by the variables with the most expected finds; None for a dataset where these are all
        ``names``. A person is found by the better of both.

    Raises
    ------
    NotComputable
        Where a variable cannot be compared, or no choice of variables gives these ``best_candidates``.
    """
    best = best_candidates or [None] * len(candidates)
    people, rows, blocks = _find_testable_rows(candidates, best, groups, order, beyond)
    found = np.zeros(rows.shape)
    knowledge = IntruderKnowledge.from_variables(confidential.select_rows(list(people)), names, radius)
    everybody = (
        IntruderKnowledge.from_variables(confidential, names, radius) if any(one is not None for one in best) else None
    )
    for released, c, other in zip(releases, candidates, best, strict=True):
        agrees = {name: _agreement_with_rows(key, rows) for name, key in knowledge.keys_by_variable(released).items()}
        share = _find_probability(agrees, names, c[people], rows.shape)
        if other is not None and everybody is not None:
            share = np.maximum(
                share,
                _find_probability(
                    agrees, _best_known_variables(everybody, released, c, other), other[people], rows.shape
                ),
            )
        found += share
    sure = is_above(found / len(candidates), beyond) & (rows >= 0)
    return _exchange_distribution(sure, rows >= 0, np.unique(blocks, return_inverse=True)[1])


def count_wrong_unit_matches(
    confidential: Microdata,
    releases: Iterable[Microdata],
    names: Sequence[str],
    radius: Mapping[str, MatchTolerance],
    *,
    groups: NDArray[np.generic],
    order: NDArray[np.generic],
    candidates: Sequence[Floats],
    beyond: float,
    best_candidates: Sequence[Floats | None] = (),
) -> WrongMatches:
    """Count the units found in their own records and in those of other units of their block, on average over datasets.

    The parameters are those of ``count_wrong_matches`` with U units in place of n records: ``groups`` are equal for
    units of equal composition by what is kept. Raises NotComputable where a variable cannot be compared, no choice of
    variables gives these ``best_candidates``, or the release does not have the units of the data.
    """
    ours = units_of(confidential)
    best = best_candidates or [None] * len(candidates)
    sought, rows, blocks = _find_testable_rows(candidates, best, groups, order, beyond)
    found = np.zeros(rows.shape)
    knowledge = IntruderKnowledge.from_variables(confidential, names, radius)
    for released, c, other in zip(releases, candidates, best, strict=True):
        theirs = released.require_units()
        if len(released) != len(confidential) or not np.array_equal(theirs.unit_of, ours.unit_of):
            raise NotComputable("the release does not have the units of the data")
        matcher = UnitMatcher(
            knowledge.keys_by_variable(released),
            ours,
            theirs,
            by_place=bool(confidential.schema.order),
            own=np.arange(len(ours)),
        )
        share = _unit_hits(matcher, matcher.names, sought, rows) * _pick_probability(c)[sought, None]
        if other is not None:
            asked = np.flatnonzero(~np.isnan(c))
            by_best, _ = find_best_unit_matches(matcher, asked)
            if not np.array_equal(by_best.result.candidates, other[asked]):
                raise NotComputable("the units were matched by another choice of variables")
            hits = _unit_hits(matcher, by_best.strategy.used, sought, rows)
            share = np.maximum(share, hits * _pick_probability(other)[sought, None])
        found += share
    sure = is_above(found / len(candidates), beyond) & (rows >= 0)
    return _exchange_distribution(sure, rows >= 0, np.unique(blocks, return_inverse=True)[1])


def _find_testable_rows(
    candidates: Sequence[Floats],
    best_candidates: Sequence[Floats | None],
    groups: NDArray[np.generic],
    order: NDArray[np.generic],
    beyond: float,
) -> tuple[Integers, Integers, Integers]:
    """Return the people, or units, who may be found with more than a probability and have another in their block, (k,);
    their rows for exchanges, (k, MOST); and their blocks, (k,).
    """
    # Nobody can be found with more than these probabilities, so only those above the limit are tried.
    at_most = sum(
        _pick_probability(c) if best is None else np.maximum(_pick_probability(c), _pick_probability(best))
        for c, best in zip(candidates, best_candidates, strict=True)
    ) / len(candidates)
    found = np.asarray(is_above(at_most, beyond))
    # In a large table few people are: blocks are made of their groups alone.
    some = np.flatnonzero(np.isin(groups, groups[found]))
    blocks, others = _exchange_blocks(groups[some], order[some])
    tested = np.flatnonzero(found[some] & (others[:, 1] >= 0))
    rows = others[tested]
    return some[tested], np.where(rows >= 0, some[rows], -1), blocks[tested]


def _unit_hits(matcher: UnitMatcher, names: Sequence[str], sought: Integers, rows: Integers) -> NDArray[np.bool_]:
    """Return whether units (k,) match the released units in each column of ``rows`` (k, s), -1 for none."""
    hits = np.zeros(rows.shape, dtype=np.bool_)
    for place in range(rows.shape[1]):
        own = matcher.own.copy()
        own[sought] = rows[:, place]
        hits[:, place] = matcher.with_own(own).match(names, sought, count=False).hit
    return hits


def _pick_probability(candidates: Floats) -> Floats:
    """Return the probability of picking the right one of the candidates, (n,).

    It is 0 for records without any or not examined.
    """
    return np.divide(1.0, candidates, out=np.zeros(len(candidates)), where=candidates > 0)


def _find_probability(
    agrees: Mapping[str, NDArray[np.bool_]], used: Sequence[str], candidates: Floats, shape: tuple[int, ...]
) -> Floats:
    """Return the probability with which people (k,) are found in each of some rows, (k, s), where the ``used``
    variables agree.
    """
    every = np.ones(shape, dtype=bool)
    for name in used:
        every &= agrees[name]
    return every * _pick_probability(candidates)[:, None]


def _best_known_variables(
    known: IntruderKnowledge, released: Microdata, candidates: Floats, best: Floats
) -> tuple[str, ...]:
    """Return the variables by which most examined people are expected to be found, with ``best`` candidates, (n,)."""
    asked = np.flatnonzero(~np.isnan(candidates))
    own = np.where(asked < len(released), asked, -1)
    found, _ = find_best_matches(
        known.keys_by_variable(released), (len(candidates), len(released)), MatchTargets(asked, own)
    )
    if not np.array_equal(found.result.candidates, best[asked]):
        raise NotComputable("the records were matched by another choice of variables")
    return found.strategy.used


def _exchange_blocks(groups: NDArray[np.generic], by: NDArray[np.generic]) -> tuple[Integers, Integers]:
    """Divide the records into blocks; return the block of each record, (n,), and its rows for exchanges, (n, MOST).

    The rows are its own, then those of the next members of its block in a circle; -1 beyond the size of the block.
    """
    n = len(groups)
    # Large groups are divided: moved as a whole, one would have few exchanges, and a copy a large p-value.
    order = np.lexsort((by, groups))
    _, sizes = np.unique(groups, return_counts=True)
    size = np.repeat(sizes, sizes)
    place = np.arange(n) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    number = -(-size // MOST)  # blocks of a group, as large as each other but for one person
    within = place * number // size
    first = np.append(True, (np.diff(within) != 0) | (place[1:] == 0))[:n]
    starts = np.flatnonzero(first)
    lengths = np.diff(np.append(starts, n))
    start, length, block = (np.repeat(one, lengths) for one in (starts, lengths, np.arange(len(starts))))
    blocks, rows = np.empty(n, dtype=np.int64), np.full((n, MOST), -1, dtype=np.int64)
    blocks[order] = block
    for shift in range(MOST):
        there = shift < length
        rows[order[there], shift] = order[(start + (np.arange(n) - start + shift) % length)[there]]
    return blocks, rows


def _agreement_with_rows(key: ExactKey | WindowKey, rows: Integers) -> NDArray[np.bool_]:
    """Return whether the known value of each person agrees with that of each of some rows, (k, s)."""
    if isinstance(key, WindowKey):
        values = key.released[rows]
        return np.asarray((key.lower[:, None] <= values) & (values <= key.upper[:, None]))
    ours, theirs = key.equal_codes()
    return np.asarray(ours[:, None] == theirs[rows])


def _exchange_distribution(sure: NDArray[np.bool_], there: NDArray[np.bool_], groups: NDArray[np.intp]) -> WrongMatches:
    """Return the exact test result, in which each block is rotated by a random number of places.

    ``sure`` and ``there`` (k, s): whether each person is found in each row, and whether there is such a row;
    ``groups``: their blocks, (k,) from 0.
    """
    count = int(groups.max()) + 1 if len(groups) else 0
    by_group = np.stack([np.bincount(groups, weights=column, minlength=count) for column in sure.T], axis=1)
    tried = np.zeros((count, sure.shape[1]), dtype=bool)
    tried[groups] = there
    own = int(by_group[:, 0].sum())
    found = np.where(tried, by_group, -1).astype(np.int64)
    # Blocks with the same counts share one characteristic function.
    distinct = distinct_rows(found.T, count)
    kinds, times = found[distinct.first], distinct.counts
    length = int((times * kinds.max(axis=1, initial=0)).sum()) + 1
    # the distribution of a sum is the product of the characteristic functions
    turn = np.exp(-2j * np.pi * np.arange(length) / length)
    product, wrong = np.ones(length, dtype=complex), 0.0
    for kind, number in zip(kinds, times, strict=True):
        moves = kind[kind >= 0]
        product *= np.mean([turn**move for move in moves], axis=0) ** number
        wrong += number * float(moves.mean())
    probable = np.fft.ifft(product).real
    return WrongMatches(own, wrong, float(np.clip(probable[own:].sum(), 0.0, 1.0)))
