"""People of the confidential table who stand in a release: whole, but for a column, by their levels alone; and those who stand there often.

A person counts who is alone with the values of some columns in the joint table of members and controls, and whose values some
released row has. Found members are held against found controls of equal rarity, since a few rare people are averaged away in the whole
(``sfumato.engine.disclosure.evidence``). Sets of columns are a small family; rows are 64-bit numbers, so that a million are compared in a second.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from ..data.arrays import Integers, side_by_side
from ..data.sorting import in_order, is_first, sorted_values
from .cells import Keys, mixed
from .evidence import WEAK, Found

MANY = 200_000
"""Records from which on the family is smaller: it takes a second for a set of columns and a million of them."""
MOST_LEFT_OUT = 10
"""Numbers of which each two are left out, so that the family stays small."""
SHARES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
FEW = (25, 60)
"""The rarest people that are looked at apart: so many, and these shares of them."""


@dataclass(frozen=True)
class Subset:
    """Columns to be compared, and what they are called in a sentence."""

    names: tuple[str, ...]
    what: str


def family(
    names: Sequence[str],
    numbers: Sequence[str],
    keys: Sequence[str],
    sensitive: Sequence[str],
    records: int = 0,
) -> list[Subset]:
    """The sets of columns that are compared, each once: all, all but one, all but two numbers, the levels, the numbers, the keys with a sensitive one.

    Of many ``records`` fewer sets.
    """
    levels, small = [name for name in names if name not in numbers], records <= MANY
    found = [Subset(tuple(names), f"all {len(names)} columns")]
    if len(names) > 2:
        found += [Subset(tuple(n for n in names if n != out), f"all columns but {out}") for out in names]
    found.append(Subset(tuple(levels), "all columns that are no numbers"))
    found += [
        Subset(tuple(n for n in levels if n != out), f"all columns that are no numbers but {out}")
        for out in levels
        if len(levels) > 2 and small
    ]
    found.append(Subset(tuple(n for n in names if n in numbers), "all numbers"))
    if len(names) > 3 and small:
        some = [n for n in names if n in numbers][:MOST_LEFT_OUT]
        found += [
            Subset(tuple(n for n in names if n not in out), f"all columns but {' and '.join(out)}")
            for out in combinations(some, 2)
        ]
    found.append(Subset(tuple(keys), "all quasi-identifiers"))
    found += [Subset((*keys, one), f"all quasi-identifiers and {one}") for one in sensitive if keys]
    found.append(Subset(tuple(sensitive), "all sensitive columns"))
    once: dict[frozenset[str], Subset] = {}
    for one in found:
        if len(one.names) > 1 or (len(one.names) == 1 and len(names) == 1):
            once.setdefault(frozenset(one.names), one)
    return list(once.values())


def marked(cells: Mapping[str, Keys], names: Sequence[str]) -> dict[str, Keys]:
    """Cells mixed with the place of their column, so that rows are their sums."""
    return {name: mixed(cells[name] ^ mixed(np.full(1, at + 1, dtype=np.uint64))) for at, name in enumerate(names)}


def _sum(cells: Mapping[str, Keys], names: Sequence[str]) -> Keys:
    total = cells[names[0]].copy()
    for name in names[1:]:
        total += cells[name]
    return total


def strata(order: Integers) -> list[tuple[str, Integers]]:
    """The rarest people of N in their order, rarest first: some numbers of them, some shares of them, all."""
    n = len(order)
    sizes = sorted({size for size in (*FEW, *(round(share * n) for share in SHARES)) if 20 <= size <= n // 2})
    return [*((f"the {size:,} rarest people", order[:size]) for size in sizes), (f"all {n:,} people", order)]


@dataclass(frozen=True, eq=False)
class Multiplied:
    """``people`` whose row a dataset repeats ``times`` or more often, where an independent sample would repeat ``expected`` so often; ``p`` is the
    probability of so many, ``most`` how often the most repeated one is. Their rows are ``rows`` of the dataset's ``of_rows``.
    """

    what: str
    times: int
    most: int
    people: int
    expected: float
    p: float
    rows: int
    of_rows: int
    records: Integers


@dataclass(frozen=True, eq=False)
class Standing:
    """What a release shows of the people who are alone with their values: who stands in it, by set of columns and stratum, and who often."""

    found: tuple[Found, ...]
    multiplied: tuple[Multiplied, ...]


def standing(
    own: Mapping[str, Keys],
    members: int,
    releases: Sequence[Mapping[str, Keys]],
    subsets: Sequence[Subset],
    order: Integers,
) -> Standing:
    """For each set of columns and stratum the people alone with their values, and how many of them a release shows.

    ``own`` are marked cells of the joint table, its first ``members`` rows the members', (N,) each; ``order`` (N,) is by rarity.
    """
    n = len(order)
    layers = strata(order)
    own = {name: cells[order] for name, cells in own.items()}  # records stand by rarity: a stratum is the first of them
    is_member = order < members

    def look(subset: Subset) -> Standing:
        rows = _Runs.of(_sum(own, subset.names))
        if not len(rows.lone):
            return Standing((), ())
        shown, often = np.zeros(n, dtype=np.bool_), list[Multiplied]()
        size, doubles = 0, 0.0
        for cells in releases:
            those = _Released.of(_sum(cells, subset.names))
            times = _counts_in(those.ascending, rows.lone_rows)
            shown[rows.lone[times > 0]] = True
            size += len(those.ascending)
            doubles = max(doubles, those.doubles * (n / max(1, len(those.ascending))) ** 2)
            often += _multiplied(subset.what, times, rows, is_member, those, order)
        # a release in which fewer different rows are drawn than in the population finds more by chance, at most as many times more
        concentrated = max(1.0, doubles / max(1.0, float(rows.twice.sum()) / 2))
        whole = len(subset.names) == len(own)
        found = _by_stratum(subset.what, layers, rows, shown, is_member, 2 * size / n, concentrated, whole)
        return Standing(tuple(found), tuple(often))

    looked = side_by_side(look, subsets)
    return Standing(
        tuple(one for part in looked for one in part.found), tuple(one for part in looked for one in part.multiplied)
    )


@dataclass(frozen=True, eq=False)
class _Runs:
    """Rows (N,) by how often each occurs: ``lone`` records with their rows ascending, and which records occur ``twice``, (N,)."""

    ascending: Keys
    lone: Integers
    lone_rows: Keys
    alone: NDArray[np.bool_]
    twice: NDArray[np.bool_]

    @classmethod
    def of(cls, rows: Keys) -> _Runs:
        order, ascending = in_order(rows)
        single, pairs = _once_and_twice(ascending)
        lone = order[single]
        alone, twice = (np.zeros(len(rows), dtype=np.bool_) for _ in range(2))
        alone[lone] = True
        twice[order[pairs]] = True
        twice[order[pairs + 1]] = True
        return cls(ascending, lone, ascending[single], alone, twice)


def _once_and_twice(ascending: Keys) -> tuple[NDArray[np.bool_], Integers]:
    """Which of some keys, ascending (n,), occur once, and where those begin that occur exactly twice."""
    first = np.append(is_first(ascending), [True, True])
    once = first[:-2] & first[1:-1]
    return once, np.flatnonzero(first[:-2] & ~first[1:-1] & first[2:])


@dataclass(frozen=True, eq=False)
class _Released:
    """Rows of a dataset, ascending (r,), those that occur once, and how many values occur exactly twice."""

    ascending: Keys
    lone_rows: Keys
    doubles: float

    @classmethod
    def of(cls, rows: Keys) -> _Released:
        ascending = sorted_values(rows)
        single, pairs = _once_and_twice(ascending)
        return cls(ascending, ascending[single], float(len(pairs)))


def _by_stratum(
    what: str,
    layers: Sequence[tuple[str, Integers]],
    rows: _Runs,
    shown: NDArray[np.bool_],
    is_member: NDArray[np.bool_],
    ratio: float,
    concentrated: float,
    whole: bool,
) -> list[Found]:
    """Whole rows of everybody and of the rarer half come first: a copied row is the plainest leak, and it may be of a few.

    Records stand by rarity here, as in ``layers``, each of which is the first of them.
    """
    found, n, members = [], len(shown), int(is_member.sum())
    alone_members, hits = rows.alone & is_member, np.flatnonzero(shown)  # who is shown is alone
    hit_members = hits[is_member[hits]]
    for who, some in layers:
        k = len(some)
        of_members, theirs = int(np.count_nonzero(alone_members[:k])), hit_members[: np.searchsorted(hit_members, k)]
        pairs = float(np.count_nonzero(rows.twice[:k])) / 2 * concentrated
        first = whole and k >= n // 2
        found.append(
            Found(
                who, what, len(theirs), of_members, int(np.searchsorted(hits, k)) - len(theirs),
                int(np.count_nonzero(rows.alone[:k])) - of_members, pairs, ratio * members / n, ratio * (n - members) / n,
                some[theirs], 4 * WEAK if first else 2 * WEAK, first, bound=True,
            )
        )  # fmt: skip
    return found


TIMES = (2, 3, 4, 5, 7, 10, 14, 20, 30, 50, 100)


def _multiplied(
    what: str, times: Integers, rows: _Runs, is_member: NDArray[np.bool_], those: _Released, order: Integers
) -> list[Multiplied]:
    """The lone members whose row a dataset, its rows ascending, has k times or more, for several k.

    An independent sample and the joint table are exchangeable: rows that are alone in the one and occur k times in the other are as many either
    way, so that those alone in the release say how many are expected. Beyond the k that still occur the number falls with every time more by
    the share of the release in both tables, times (k + 2) / (k + 1), which is at most 1.25 from there on.
    """
    from scipy.stats import poisson

    if times.max(initial=0) < TIMES[0]:
        return []
    n, size = len(rows.alone), len(those.ascending)
    fall = min(0.9, 1.25 * size / (n + size))
    reverse = _counts_in(rows.ascending, those.lone_rows)
    ours = is_member[rows.lone]
    heads, tails = times[ours], times[~ours]
    found, bound = [], np.inf
    for k, before in zip(TIMES, (1, *TIMES), strict=False):
        there, others = int((heads >= k).sum()), int((tails >= k).sum())
        if not there:
            break
        turned = float((reverse >= k).sum())
        bound = min(bound * fall ** (k - before), turned + 2 * np.sqrt(turned + 1) + 1)
        if others * len(heads) * 3 > there * len(tails):  # controls are repeated too: it is the model's way
            continue
        p = float(poisson.sf(there - 1, bound))
        repeated = ours & (times >= k)
        found.append(
            Multiplied(what, k, int(heads.max()), there, bound, p, int(times[repeated].sum()), size, order[rows.lone[repeated]])
        )  # fmt: skip
    return found


def _counts_in(ascending: Keys, values: Keys) -> Integers:
    """How often values (k,), ascending, occur among others, ascending too, (k,)."""
    counts = np.zeros(len(values), dtype=np.int64)
    if not len(ascending):
        return counts
    left = np.searchsorted(ascending, values)
    there = np.flatnonzero(ascending[left.clip(max=len(ascending) - 1)] == values)
    counts[there] = np.searchsorted(ascending, values[there], side="right") - left[there]
    return counts


def most_multiplied(found: Sequence[Multiplied]) -> Multiplied | None:
    """The one that chance explains least, its p times the number of tests; None without any."""
    if not found:
        return None
    best = min(found, key=lambda one: (one.p, -one.rows))
    return replace(best, p=min(1.0, best.p * len(found)))
