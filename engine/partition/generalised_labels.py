"""Labels of generalised values: intervals and groups, as anonymisation tools write them, and what they contain.

    [20, 30)  (20,30]  [20, 30[  20-29  20 to 29  <20  >=65  65+  [2020-01-01, 2020-01-31]  [small, large]  {a, b}

What is neither an interval nor a group, such as a node of a tree or ``*``, is a label all the same: it says nothing here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..schema import Kind

Floats = NDArray[np.float64]
Read = Callable[[str], float | None]

NUMBER = r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"
DATE = r"\d{4}-\d{2}-\d{2}"
BRACKETS = re.compile(r"([\[(\]])\s*([^,;]+?)\s*[,;]\s*([^,;]+?)\s*([\])\[])")
RANGE = re.compile(rf"({DATE}|{NUMBER})\s*(?:-|\u2013|\.{{2,3}}|to)\s*({DATE}|{NUMBER})")
ONE_SIDED = re.compile(rf"(<=|>=|<|>|\u2264|\u2265)\s*({DATE}|{NUMBER})")
AND_MORE = re.compile(rf"({NUMBER})\s*\+")
GROUP = re.compile(r"\{(.*)\}")
UNBOUNDED = {"-inf": -math.inf, "-\u221e": -math.inf, "inf": math.inf, "+inf": math.inf, "\u221e": math.inf}


@dataclass(frozen=True, slots=True)
class Interval:
    """Numbers between two ends, each of which belongs to it or not."""

    low: float
    high: float
    low_closed: bool = True
    high_closed: bool = True

    def contains(self, numbers: Floats) -> NDArray[np.bool_]:
        """Which numbers (n,) lie in it."""
        above = numbers >= self.low if self.low_closed else numbers > self.low
        below = numbers <= self.high if self.high_closed else numbers < self.high
        return np.asarray(above & below)


def interval(label: str, kind: Kind, levels: Sequence[str] = ()) -> Interval | None:
    """The interval that a label writes, of numbers, of days since 1970, or of ranks of ``levels``; None if it is none.

    ``20-29`` holds all that is below 30: whole ends are those of whole numbers.
    """
    read = _reader(kind, levels)
    if found := BRACKETS.fullmatch(label):
        low, high = read(found[2]), read(found[3])
        return None if low is None or high is None else Interval(low, high, found[1] == "[", found[4] == "]")
    if kind.has_levels:
        return None
    if found := RANGE.fullmatch(label):
        low, high = read(found[1]), read(found[2])
        if low is None or high is None:
            return None
        return Interval(low, high + 1, high_closed=False) if found[2].isdigit() else Interval(low, high)
    return _one_sided(label, read)


def _one_sided(label: str, read: Read) -> Interval | None:
    if found := AND_MORE.fullmatch(label):
        return Interval(float(found[1]), math.inf)
    if not (found := ONE_SIDED.fullmatch(label)) or (end := read(found[2])) is None:
        return None
    closed = found[1] not in ("<", ">")
    if found[1] in ("<", "<=", "\u2264"):
        return Interval(-math.inf, end, high_closed=closed)
    return Interval(end, math.inf, low_closed=closed)


def _reader(kind: Kind, levels: Sequence[str]) -> Read:
    if kind is Kind.ORDINAL:
        return {level: float(rank) for rank, level in enumerate(levels)}.get
    if kind.has_levels:
        return lambda text: None
    return _day if kind is Kind.DATE else _number


def _number(text: str) -> float | None:
    return float(text) if re.fullmatch(NUMBER, text) else UNBOUNDED.get(text)


def _day(text: str) -> float | None:
    try:
        return float(np.datetime64(text, "D").astype(np.int64)) if re.fullmatch(DATE, text) else UNBOUNDED.get(text)
    except ValueError:
        return None


def label_of(number: float, *, dates: bool) -> str:
    """A number as labels write it; of dates it is days since 1970."""
    return str(np.datetime64(int(number), "D")) if dates else f"{number:.15g}"


def members(label: str) -> tuple[str, ...]:
    """The values of a group, ``{a, b}``; empty where the label writes none."""
    found = GROUP.fullmatch(label)
    return tuple(part.strip() for part in found[1].split(",")) if found else ()


def outside_of(
    labels: NDArray[np.object_], original: Floats, kind: Kind, levels: Sequence[str] = ()
) -> NDArray[np.bool_]:
    """Which of the original values, (n,), lie outside the interval or group that their label (n,) writes.

    ``original`` are numbers, days since 1970, or codes of ``levels``; NaN, missing, lies outside of nothing.
    """
    outside = np.zeros(len(labels), dtype=np.bool_)
    distinct, place = np.unique(labels.astype(str), return_inverse=True)
    for code, label in enumerate(distinct):
        rows = np.flatnonzero(place == code)
        contained = _contained(str(label), original[rows], kind, levels)
        if contained is not None:
            outside[rows] = ~contained & ~np.isnan(original[rows])
    return outside


def _contained(label: str, values: Floats, kind: Kind, levels: Sequence[str]) -> NDArray[np.bool_] | None:
    """Which values (k,) a label contains; None where it writes neither an interval nor a group."""
    if (found := interval(label, kind, levels)) is not None:
        return found.contains(values)
    group = members(label)
    if kind.has_levels:
        codes: list[float | None] = [float(levels.index(one)) if one in levels else None for one in group]
    else:
        codes = [_reader(kind, levels)(one) for one in group]
    if not codes or None in codes:
        return None
    return np.isin(values, np.array(codes, dtype=np.float64))
