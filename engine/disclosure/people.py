"""People of the confidential table who stand in a release: whole, but for a column, by their levels alone; and those who stand there often.

A person counts who is alone with the values of some columns in the joint table of members and controls, and whose values some
released row has. Found members are held against found controls of equal rarity, since a few rare people are averaged away in the whole
(``sfumato.engine.disclosure.evidence``). Sets of columns are a small family; rows are 64-bit numbers, so that a million are compared in a second.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from ..arrays import Floats, Integers
from .cells import Keys, mixed, occurrences
from .evidence import Found

MOST_LEFT_OUT = 10
"""Numbers of which each two are left out, so that the family stays small."""
SHARES = (0.01, 0.02, 0.05)
FEW = (25, 60, 200)
"""The rarest people that are looked at apart: so many, and these shares of them."""


@dataclass(frozen=True)
class Subset:
    """Columns to be compared, and what they are called in a sentence."""

    names: tuple[str, ...]
    what: str


def family(names: Sequence[str], numbers: Sequence[str], keys: Sequence[str], sensitive: Sequence[str]) -> list[Subset]:
    """The sets of columns that are compared, each once: all, all but one, all but two numbers, the levels, the numbers, the keys with a sensitive one."""
    levels = [name for name in names if name not in numbers]
    found = [Subset(tuple(names), f"all {len(names)} columns")]
    if len(names) > 2:
        found += [Subset(tuple(n for n in names if n != out), f"all columns but {out}") for out in names]
    found.append(Subset(tuple(levels), "all columns that are no numbers"))
    found += [
        Subset(tuple(n for n in levels if n != out), f"all columns that are no numbers but {out}")
        for out in levels
        if len(levels) > 3
    ]
    found.append(Subset(tuple(n for n in names if n in numbers), "all numbers"))
    if len(names) > 3:
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


def standing(
    own: Mapping[str, Keys],
    members: int,
    releases: Sequence[Mapping[str, Keys]],
    subsets: Sequence[Subset],
    order: Integers,
) -> list[Found]:
    """For each set of columns and stratum the people alone with their values, and how many of them a release shows.

    ``own`` are marked cells of the joint table, its first ``members`` rows the members', (N,) each; ``order`` (N,) is by rarity.
    """
    n = len(order)
    layers = strata(order)
    controls, found = n - members, list[Found]()
    for subset in subsets:
        rows = _sum(own, subset.names)
        _, place, counts = np.unique(rows, return_inverse=True, return_counts=True)
        alone = counts[place] == 1
        twice = counts[place] == 2
        if not alone.any():
            continue
        shown = np.zeros(n, dtype=np.bool_)
        size, doubles = 0, 0.0
        for cells in releases:
            those = _sum(cells, subset.names)
            shown |= alone & _isin(rows, those)
            size += len(those)
            doubles = max(
                doubles, float((np.unique(those, return_counts=True)[1] == 2).sum()) * (n / max(1, len(those))) ** 2
            )
        own_doubles = float(twice.sum()) / 2
        concentrated = max(1.0, doubles / max(own_doubles, 1.0)) if doubles > own_doubles else 1.0
        ratio = 2 * size / n
        for who, some in layers:
            inside = some[alone[some]]
            is_member = inside < members
            hit = shown[inside]
            pairs = float(twice[some].sum()) / 2 * concentrated
            found.append(
                Found(
                    who, subset.what, int((hit & is_member).sum()), int(is_member.sum()), int((hit & ~is_member).sum()),
                    int((~is_member).sum()), pairs, ratio * members / n, ratio * controls / n, inside[hit & is_member],
                )
            )  # fmt: skip
    return found


def _isin(rows: Keys, among: Keys) -> NDArray[np.bool_]:
    ordered = np.sort(among)
    if not len(ordered):
        return np.zeros(len(rows), dtype=np.bool_)
    place = np.searchsorted(ordered, rows).clip(max=len(ordered) - 1)
    return np.asarray(ordered[place] == rows)


@dataclass(frozen=True, eq=False)
class Multiplied:
    """The people whose row a dataset repeats more often than an independent sample would: how often the most repeated one is,
    how many ``expected`` to be so often, and the probability of so many.
    """

    what: str
    times: int
    people: int
    expected: float
    p: float
    rows: int
    of_rows: int
    records: Integers


def multiplied(
    own: Mapping[str, Keys], members: int, releases: Sequence[Mapping[str, Keys]], subsets: Sequence[Subset]
) -> Multiplied | None:
    """The set of columns on which rows of lone members are repeated least by chance; None where none is repeated.

    A row that occurs once among N and is drawn r times more has a share of the population that is exponential with mean 2 N_2 / (N_1 N) (Good
    1953) and at most 1 / N, so that it is drawn k times or more with probability at most (t / (1 + t))^k, t = r times that mean.
    """
    from scipy.stats import poisson

    best: Multiplied | None = None
    tests = 0
    n = len(next(iter(own.values())))
    for subset in subsets:
        rows = _sum(own, subset.names)
        _values, place, counts = np.unique(rows, return_inverse=True, return_counts=True)
        lone = np.flatnonzero(counts[place] == 1)
        if not len(lone):
            continue
        ones, twos = len(lone), int((counts == 2).sum())
        for cells in releases:
            tests += 1
            those = _sum(cells, subset.names)
            often = occurrences(rows[lone], those)
            mean = len(those) * min(1.0, 2 * (twos + 2 * np.sqrt(twos + 1) + 1) / ones) / n
            heads = often[lone < members]
            for k in (2, 3, 4, 5, 7, 10, 14, 20, 30, 50, 100):
                there = int((heads >= k).sum())
                if not there:
                    break
                expected = len(heads) * (mean / (1 + mean)) ** k
                controls = int((often[lone >= members] >= k).sum())
                if controls and there < 3 * controls * members / max(1, n - members):
                    continue
                p = float(poisson.sf(there - 1, expected))
                if best is None or p < best.p:
                    who = lone[(lone < members) & (often >= k)]
                    best = Multiplied(
                        subset.what, int(heads.max()), there, expected, p, int(heads[heads >= k].sum()), len(those), who
                    )
    if best is None:
        return None
    return Multiplied(
        best.what,
        best.times,
        best.people,
        best.expected,
        min(1.0, best.p * 4 * tests),
        best.rows,
        best.of_rows,
        best.records,
    )


def spread(values: Floats) -> float:
    """The mean of the values present; NaN without any."""
    return float(np.nanmean(values)) if np.isfinite(values).any() else float("nan")
