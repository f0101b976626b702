"""The definition of every measure once more: plain loops over records, exact fractions, another program's fits.

An oracle takes a ``Case`` and gives what an output must be for each of its series, (variable, what else tells it apart):
a number, ``None`` where there must be none but a reason, or ``WITHIN`` where chance decides and the range is all there is.
Nothing here calls a function of the engine that computes something.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import statsmodels.api as sm
from scipy import integrate, special

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.data.schema import Kind

Series = tuple[str, tuple[tuple[str, Any], ...]]
Value = Any
"""A number, None, or ``WITHIN``."""
Answers = dict[Series, Value]

WITHIN = "within [0, 1]"
TELLING_APART = (
    "people",
    "q",
    "level",
    "size",
    "estimand",
    "term",
    "condition",
    "other",
    "fitted",
    "kind",
    "guesses",
)  # what rows of one use and one variable differ in
NUMERICAL = (Kind.COUNT, Kind.CONTINUOUS, Kind.DATE, Kind.BINARY)
EPOCH = pd.Timestamp("1970-01-01")


@dataclass(frozen=True)
class Case:
    """Two tables and the parameters as a run hands them to a measure."""

    confidential: Microdata
    released: Microdata
    spec: Any

    def kind(self, name: str) -> Kind:
        return self.confidential.schema[name].kind

    def confidential_values(self, name: str) -> list[Any]:
        return cells(self.confidential, name)

    def released_values(self, name: str) -> list[Any]:
        return cells(self.released, name)

    def both_values(self, name: str) -> list[Any]:
        return [*self.confidential_values(name), *self.released_values(name)]

    def code(self, name: str, value: Any) -> Any:
        """A level as its rank, anything else as it is."""
        if value is None or not self.kind(name).has_levels or not isinstance(value, str):
            return value
        return Fraction(list(self.confidential.frame[name].cat.categories).index(value))


def cells(data: Microdata, name: str) -> list[Any]:
    """A variable's values: text for levels, exact fractions for numbers, days for dates, None where missing."""
    found: list[Any] = []
    for value in data.frame[name].tolist():
        if pd.isna(value):
            found.append(None)
        elif isinstance(value, str):
            found.append(value)
        elif isinstance(value, pd.Timestamp):
            found.append(Fraction((value - EPOCH).days))
        else:
            found.append(Fraction(float(value)))
    return found


def series(target: str = "", **told: Any) -> Series:
    return target, tuple(sorted(told.items()))


def present(values: Sequence[Any]) -> list[Any]:
    return [value for value in values if value is not None]


# Utility ------------------------------------------------------------------------------------------------------------


def in_bins(case: Case, name: str, values: Sequence[Any]) -> list[Any]:
    """Levels as they are, numbers as the number of cut points at or below them; None stays None."""
    if case.kind(name).has_levels:
        return list(values)
    rule = case.spec.bins.get(name)
    own = sorted(present(case.confidential_values(name)))
    n = 10 if rule is None else int(rule.amount)
    if rule is None or rule.kind == "equal count":
        cuts = [own[k * len(own) // n] for k in range(1, n) if own[k * len(own) // n] > own[0]]
    elif rule.kind == "equal width":
        cuts = [own[0] + (own[-1] - own[0]) * Fraction(k, n) for k in range(1, n)]
    elif rule.kind == "at":
        cuts = [Fraction(cut) for cut in rule.cuts]
    else:
        return [None if value is None else value // Fraction(str(rule.amount)) for value in values]
    return [None if value is None else sum(cut <= value for cut in set(cuts)) for value in values]


def shows_levels(case: Case, name: str) -> bool:
    """Not intervals or nodes, and not means of a variable that has levels."""
    released = case.released
    return name not in released.generalised and case.kind(name).has_levels == released.schema[name].kind.has_levels


def quantile(ordered: Sequence[Fraction], q: float) -> Fraction:
    """Interpolated between the two nearest of the sorted values."""
    place = (len(ordered) - 1) * Fraction(q)
    low = math.floor(place)
    return ordered[low] + (place - low) * (ordered[min(low + 1, len(ordered) - 1)] - ordered[low])


def variance(values: Sequence[Fraction]) -> Fraction:
    mean = Fraction(sum(values), len(values))
    return sum(((value - mean) ** 2 for value in values), Fraction(0)) / (len(values) - 1)


Interval = tuple[float, float, float, float]
"""Estimate, standard error, lower and upper end."""


def coefficients(case: Case, data: Microdata, model: Any) -> dict[str, Interval | None]:
    """By statsmodels: days or illness on numbers and on indicators of all but the first level."""
    names = list(model.terms)
    response = model.response.split(" >")[0]
    numbers = {name: cells(data, name) for name in (*names, response)}
    columns, labels = [np.ones(len(data))], ["intercept"]
    for name in names:
        if case.kind(name).has_levels:
            for level in case.confidential.frame[name].cat.categories[1:]:
                columns.append(np.array([value == level for value in numbers[name]], dtype=float))
                labels.append(f"{name}={level}")
        else:
            columns.append(np.array([float(value) for value in numbers[name]]))
            labels.append(name)
    y = np.array([answered(case, model, value) for value in numbers[response]])
    x = np.column_stack(columns)
    fit = sm.OLS(y, x).fit() if model.family == "linear" else sm.Logit(y, x).fit(disp=0, tol=1e-14, maxiter=200)
    ends = np.asarray(fit.conf_int(1 - getattr(case.spec, "confidence", 0.95)))
    return {
        label: (float(value), float(error), float(low), float(high))
        for label, value, error, (low, high) in zip(labels, fit.params, fit.bse, ends, strict=True)
    }


def answered(case: Case, model: Any, value: Any) -> float:
    """The response of a record: its number, its level's rank, or whether its number is above the limit."""
    if " > " in model.response:
        return float(value > Fraction(model.response.split(" > ")[1]))
    return float(case.code(model.response, value))


# Risk ---------------------------------------------------------------------------------------------------------------


def agrees(radius: Any, confidential: Any, released: Any) -> bool:
    """One variable: equal, or within its radius; missing agrees with missing alone."""
    if confidential is None or released is None or radius is None:
        return bool(confidential == released)
    distance, reach = abs(released - confidential), Fraction(radius.amount)
    if radius.kind == "relative":
        reach = reach * abs(confidential) / 100
    elif radius.kind == "log_relative":
        if confidential == released:
            return bool(radius.closed or confidential > 0)
        logs = math.log1p(confidential), math.log1p(released)
        return abs(logs[1] - logs[0]) < radius.amount * logs[0] / 100
    return bool(distance <= reach if radius.closed else distance < reach)


Believed = Mapping[str, Sequence[Any]]
"""What the intruder takes for the confidential values, by variable, where that is not what they are."""


def matched(case: Case, names: Sequence[str], believed: Believed = {}) -> list[set[int]]:  # noqa: B006
    """The released records that each confidential one cannot be told from by these variables, as the intruder believes."""
    ours = {name: believed.get(name, case.confidential_values(name)) for name in names}
    theirs = {name: case.released_values(name) for name in names}
    return [
        {
            j
            for j in range(len(case.released))
            if all(agrees(case.spec.radius.get(name), ours[name][i], theirs[name][j]) for name in names)
        }
        for i in range(len(case.confidential))
    ]


def of_matches(found: Sequence[set[int]]) -> dict[str, Any]:
    unique = [(i, candidates) for i, candidates in enumerate(found) if len(candidates) == 1]
    wrong = sum(i not in candidates for i, candidates in unique)
    return {
        "expected_match_risk": sum((Fraction(1, len(c)) for i, c in enumerate(found) if i in c), Fraction(0)),
        "true_match_rate": Fraction(len(unique) - wrong, len(found)),
        "false_match_rate": Fraction(wrong, len(unique)) if unique else None,
        "unique_matches": len(unique),
    }


def subsets_of(names: Sequence[str]) -> list[list[str]]:
    return [[name for at, name in enumerate(names) if mask >> at & 1] for mask in range(1 << len(names))]


def largest_of_matches(found: Sequence[Sequence[set[int]]]) -> dict[str, Any]:
    """The largest of the two risks over what an intruder may match on."""
    every = [of_matches(one) for one in found]
    return {f"largest_{name}": max(one[name] for one in every) for name in ("expected_match_risk", "true_match_rate")}


def learnt(known: Sequence[set[int]], similar: Sequence[set[int]], *, without_self: bool = False) -> Fraction:
    """Sum over the records of the share of those alike whose sensitive values are alike too."""
    total = Fraction(0)
    for i, (alike, near) in enumerate(zip(known, similar, strict=True)):
        members = alike - {i} if without_self and len(alike) > 1 else alike
        if members:
            total += Fraction(len(members & near), len(members))
    return total


def in_given_bins(case: Case, name: str, values: Sequence[Any]) -> list[Any]:
    return in_bins(case, name, values) if name in case.spec.bins else list(values)


HALF_RANK = 2**20
"""Places are told to this part of half a rank."""


def half_rank(values: Sequence[Fraction], records: int, value: Fraction) -> Fraction:
    """Twice the values below and once those equal, stretched from these values to all records; between two values on the line between."""

    def at(own: Fraction) -> Fraction:
        return Fraction(sum((v < own) + (v <= own) for v in values) * records, len(values))

    below, above = ([v for v in values if v < value], [v for v in values if v > value])
    if value in values:
        place = at(value)
    elif not below or not above:
        place = Fraction(2 * records if below else 0)
    else:
        low, high = max(below), min(above)
        place = at(low) + (at(high) - at(low)) * (value - low) / (high - low)
    return Fraction(round(place * HALF_RANK), HALF_RANK)


def groups(data: Microdata, names: Sequence[str]) -> list[list[int]]:
    found: dict[tuple[Any, ...], list[int]] = {}
    for row in range(len(data)):
        found.setdefault(tuple(cells(data, name)[row] for name in names), []).append(row)
    return list(found.values())


def entropy(values: Sequence[Any]) -> float:
    return -sum(times / len(values) * math.log(times / len(values)) for times in Counter(values).values())


def distance(case: Case, name: str, part: Sequence[Any], whole: Sequence[Any]) -> Fraction:
    """Earth mover's distance; values with an order are as far apart as their ranks, others all alike."""
    ordered = case.kind(name) in (Kind.COUNT, Kind.CONTINUOUS, Kind.DATE, Kind.ORDINAL)
    distinct = set(whole)
    gap = {
        value: Fraction(part.count(value), len(part)) - Fraction(whole.count(value), len(whole)) for value in distinct
    }
    if not ordered or None in distinct or name in case.released.generalised:
        return sum(map(abs, gap.values()), Fraction(0)) / 2
    ranked = sorted(distinct, key=lambda value: case.code(name, value))
    moved = [abs(sum((gap[value] for value in ranked[: i + 1]), Fraction(0))) for i in range(len(ranked) - 1)]
    return sum(moved, Fraction(0)) / max(len(ranked) - 1, 1)


# Quality ------------------------------------------------------------------------------------------------------------


def kept(case: Case) -> list[int]:
    """The confidential row of each released record."""
    of = case.released.classes
    return list(range(len(case.released))) if of is None else [i for i, number in enumerate(of) if number >= 0]


def class_of(case: Case, names: Sequence[str]) -> list[list[int]]:
    """The confidential rows of each equivalence class."""
    of = case.released.classes
    if of is None:
        return groups(case.released, names)
    return [[i for i, number in enumerate(of) if number == one] for one in sorted(set(of) - {-1})]


def factor(case: Case) -> Fraction:
    return Fraction(len(case.released), len(case.confidential)) if case.spec.count_suppressed else Fraction(1)


def columnwise(case: Case, names: tuple[str, ...], least: str, score: Callable[..., Any]) -> dict[str, Answers]:
    found: dict[str, Answers] = {name: {} for name in (*names, least)}
    scored: dict[str, Any] = {}
    for name in case.spec.variables:
        values = score(case, *pairs(case, name)) if shows_values(case, name) else None
        for place, measure in enumerate(names):
            value = None if values is None else values[place]
            found[measure][series(name)] = value if value in (None, WITHIN) else float(factor(case)) * float(value)
        scored[name] = found[names[0]][series(name)]
    found[least][series()] = smallest(case, scored)
    return found


def shows_values(case: Case, name: str) -> bool:
    """Not intervals or nodes; a binary variable may be left as it is, even where others are generalised."""
    if name not in case.released.generalised:
        return True
    return case.kind(name).has_levels and set(case.released_values(name)) <= set(case.confidential.schema[name].levels)


def smallest(case: Case, scored: Mapping[str, Any], *, excuse: bool = True) -> Any:
    """None where a column has no value, unless it is constant in the original and there was nothing to lose."""
    excused = [name for name in scored if excuse and len(set(present(case.confidential_values(name)))) == 1]
    if any(value is None and name not in excused for name, value in scored.items()):
        return None
    values = [value for value in scored.values() if value is not None]
    return None if not values else WITHIN if WITHIN in values else min(values)


def pairs(case: Case, name: str) -> tuple[list[Fraction], list[Fraction]]:
    ours, theirs = case.confidential_values(name), case.released_values(name)
    both = [(case.code(name, ours[i]), case.code(name, theirs[j])) for j, i in enumerate(kept(case))]
    there = [(a, b) for a, b in both if a is not None and b is not None]
    return [a for a, _ in there], [b for _, b in there]


def nearest_neighbour_information(x: Sequence[float], y: Sequence[float], k: int) -> float:
    """Kraskov, Stögbauer & Grassberger (2004), eq. 8, of values none of which repeat, by counting."""
    a, b = ([value / statistics.pstdev(values) for value in values] for values in (x, y))
    n = len(a)
    terms = []
    for i in range(n):
        apart = sorted(max(abs(a[i] - a[j]), abs(b[i] - b[j])) for j in range(n) if j != i)
        reach = apart[k - 1]
        near = [sum(abs(values[i] - values[j]) < reach for j in range(n) if j != i) for values in (a, b)]
        terms.append(special.digamma(near[0] + 1) + special.digamma(near[1] + 1))
    return max(0.0, float(special.digamma(n) + special.digamma(k) - statistics.fmean(terms)))


def equally_near(x: Sequence[Fraction], y: Sequence[Fraction]) -> bool:
    """Whether some record has two others, or another in two variables, at the same distance."""
    a, b = ([float(value) / statistics.pstdev(map(float, values)) for value in values] for values in (x, y))
    for i in range(len(a)):
        apart = sorted(abs(values[i] - values[j]) for values in (a, b) for j in range(len(a)) if j != i)
        if min((after - before for before, after in pairwise(apart)), default=0.0) < 1e-8:
            return True
    return False


def information(divisor: str) -> Callable[..., Any]:
    def score(case: Case, original: Sequence[Fraction], released: Sequence[Fraction]) -> Any:
        if len(original) < 2:
            return None
        own, by = entropy(original), entropy(original if divisor == "original" else released)
        if own == 0 or by == 0:
            return None
        if len(set(released)) == 1:
            return WITHIN, WITHIN
        if equally_near(original, released):
            return WITHIN, WITHIN  # the estimate adds noise, which decides who is nearer
        x, y = ([float(value) for value in values] for values in (released, original))
        share = min(1.0, nearest_neighbour_information(x, y, min(case.spec.neighbours, len(x) - 1)) / by)
        lost, _ = integrate.quad(lambda e: (1 - share) * 2**-e, 0, own)
        return 1 - lost / own, share

    return score


def range_lost(case: Case, name: str, classes: Sequence[Sequence[int]]) -> Fraction:
    values = [case.code(name, value) for value in case.confidential_values(name)]
    whole = max(present(values)) - min(present(values))
    parts = [part for rows in classes if (part := present([values[row] for row in rows]))]
    records = sum(map(len, parts))
    if not whole or not records:
        return Fraction(0)
    return sum((len(part) * (max(part) - min(part)) / whole for part in parts), Fraction(0)) / records


# The sweep of the intruder's uncertainty ----------------------------------------------------------------------------
