"""The definition of every measure once more: plain loops over records, exact fractions, another program's fits.

An oracle takes a ``Case`` and gives what an output must be for each of its series, (variable, what else tells it apart):
a number, ``None`` where there must be none but a reason, or ``WITHIN`` where chance decides and the range is all there is.
Nothing here calls a function of the engine that computes something.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, combinations_with_replacement, pairwise, product
from typing import Any

import numpy as np
import pandas as pd
import statsmodels.api as sm
from scipy import integrate, special, stats

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

    def ours(self, name: str) -> list[Any]:
        return cells(self.confidential, name)

    def theirs(self, name: str) -> list[Any]:
        return cells(self.released, name)

    def both(self, name: str) -> list[Any]:
        return [*self.ours(name), *self.theirs(name)]

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


def ecdf(case: Case) -> dict[str, Answers]:
    largest: Answers = {}
    square: Answers = {}
    for name in case.spec.variables:
        ours = [case.code(name, value) for value in present(case.ours(name))]
        theirs = [case.code(name, value) for value in present(case.theirs(name))]
        pooled = [*ours, *theirs]
        points = sorted(set(pooled)) if case.spec.points == "distinct" else pooled
        gaps = [
            Fraction(sum(value <= z for value in ours), len(ours))
            - Fraction(sum(value <= z for value in theirs), len(theirs))
            for z in points
        ]
        largest[series(name)] = max(abs(gap) for gap in gaps)
        square[series(name)] = sum(gap * gap for gap in gaps) / len(points)
    return {"max_abs_difference": largest, "mean_squared_difference": square}


RULES: dict[str, Callable[[dict[str, Any]], bool | None]] = {
    "days <= 30": lambda r: None if r["days"] is None else r["days"] <= 30,
    "days <= visits + 20": lambda r: (
        None if r["days"] is None or r["visits"] is None else r["days"] <= r["visits"] + 20
    ),
    "illness = 'yes' -> days >= 1": lambda r: (
        True
        if r["illness"] == "no" or (r["days"] is not None and r["days"] >= 1)
        else None
        if r["illness"] is None or r["days"] is None
        else False
    ),
    "2 * visits - days != 1 | 2": lambda r: (
        None if r["days"] is None or r["visits"] is None else 2 * r["visits"] - r["days"] not in (1, 2)
    ),
    "income is missing or size > 'small'": lambda r: (
        r["income"] is None or (None if r["size"] is None else r["size"] != "small")
    ),
    "joined >= '2020-01-02'": lambda r: (
        None if r["joined"] is None else r["joined"] >= (pd.Timestamp("2020-01-02") - EPOCH).days
    ),
}
"""What a rule says of a record: None where nobody knows."""


def constraint_violations(case: Case) -> dict[str, Answers]:
    names = case.released.schema.names
    columns = [case.theirs(name) for name in names]
    records = [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]
    said = {name: [RULES[text](record) for record in records] for name, text in case.spec.rules.items()}
    return {
        "broken_records": {series(name): own.count(False) for name, own in said.items()},
        "unknown_records": {series(name): own.count(None) for name, own in said.items()},
    }


def in_bins(case: Case, name: str, values: Sequence[Any]) -> list[Any]:
    """Levels as they are, numbers as the number of cut points at or below them; None stays None."""
    if case.kind(name).has_levels:
        return list(values)
    rule = case.spec.bins.get(name)
    own = sorted(present(case.ours(name)))
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


def squared_distance(ours: Sequence[Any], theirs: Sequence[Any]) -> Fraction:
    """Of the shares of each value; 2 where there are none of one table."""
    if not ours or not theirs:
        return Fraction(2)
    return sum(
        (
            (Fraction(theirs.count(value), len(theirs)) - Fraction(ours.count(value), len(ours))) ** 2
            for value in {*ours, *theirs}
        ),
        Fraction(0),
    )


def distribution_distance(case: Case) -> dict[str, Answers]:
    names = dict.fromkeys([*case.spec.variables, *case.spec.given])
    hidden = {name for name in names if not shows_levels(case, name)}
    both = {name: tuple(in_bins(case, name, cells(data, name)) for data in (case.confidential, case.released))
            for name in names if name not in hidden}  # fmt: skip
    found: dict[str, Answers] = {"marginal": {}, "conditional": {}}
    for name in case.spec.variables:
        found["marginal"][series(name)] = None if name in hidden else squared_distance(*both[name])
        for given in case.spec.given:
            if given == name:
                continue
            if {name, given} & hidden:
                found["conditional"][series(name, condition=given)] = None
                continue
            ours, theirs = (list(zip(a, b, strict=True)) for a, b in zip(both[name], both[given], strict=True))
            found["conditional"][series(name, condition=given)] = sum(
                squared_distance([v for v, w in ours if w == level], [v for v, w in theirs if w == level])
                for level in {w for _, w in (*ours, *theirs)}
            )
    return found


def margin_distance(case: Case) -> dict[str, Answers]:
    names = case.spec.variables
    hidden = {name for name in names if not shows_levels(case, name)}
    both = {name: tuple(in_bins(case, name, cells(data, name)) for data in (case.confidential, case.released))
            for name in names if name not in hidden}  # fmt: skip
    found: dict[str, Answers] = {"pair": {}, "mean_pair": {}, "mean_triple": {}}

    def apart(*of: str) -> Fraction:
        ours, theirs = (list(zip(*(both[name][side] for name in of), strict=True)) for side in (0, 1))
        return (
            sum(
                (
                    abs(Fraction(theirs.count(value), len(theirs)) - Fraction(ours.count(value), len(ours)))
                    for value in {*ours, *theirs}
                ),
                Fraction(0),
            )
            / 2
        )

    for a, b in combinations(names, 2):
        found["pair"][series(a, other=b)] = None if {a, b} & hidden else apart(a, b)
    pairs = list(found["pair"].values())
    found["mean_pair"][series()] = None if hidden else sum(pairs, Fraction(0)) / len(pairs)
    if case.spec.ways == "triples":
        triples = None if hidden else [apart(*three) for three in combinations(names, 3)]
        found["mean_triple"][series()] = sum(triples, Fraction(0)) / len(triples) if triples else None
    return found


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


def summary(case: Case) -> dict[str, Answers]:
    found: dict[str, Answers] = {
        name: {} for name in ("mean", "sd", "quantile", "share_of_zeros", "share", "share_missing")
    }
    for name in case.spec.variables:
        values = present(case.theirs(name))
        if None in case.both(name):
            found["share_missing"][series(name)] = Fraction(case.theirs(name).count(None), len(case.released))
        if case.kind(name).has_levels:
            for level in case.released.frame[name].cat.categories:
                found["share"][series(name, level=level)] = Fraction(values.count(level), len(values))
            continue
        found["mean"][series(name)] = sum(values) / Fraction(len(values))
        found["sd"][series(name)] = math.sqrt(variance(values)) if len(values) > 1 else None
        for q in case.spec.quantiles:
            found["quantile"][series(name, q=q)] = quantile(sorted(values), q)
        if case.kind(name) is Kind.COUNT:
            found["share_of_zeros"][series(name)] = Fraction(values.count(0), len(values))
    return found


Interval = tuple[float, float, float, float]
"""Estimate, standard error, lower and upper end."""


def mean_interval(values: Sequence[Fraction], confidence: float, kind: Kind) -> Interval | None:
    if len(values) < 2:
        return None
    mean, error = float(sum(values) / len(values)), math.sqrt(variance(values) / len(values))
    half = stats.t.ppf((1 + confidence) / 2, len(values) - 1) * error
    return mean, error, *inside(mean, half, kind)


def inside(value: float, half: float, kind: Kind) -> tuple[float, float]:
    """The ends of an interval: of a count on the scale of the logarithm, of a share on that of the log odds."""
    if half == 0 or kind not in (Kind.COUNT, Kind.BINARY):
        return value - half, value + half
    if kind is Kind.COUNT:
        return value * math.exp(-half / value), value * math.exp(half / value)
    odds, reach = math.log(value / (1 - value)), half / (value * (1 - value))
    return 1 / (1 + math.exp(reach - odds)), 1 / (1 + math.exp(-reach - odds))


def quantile_interval(values: Sequence[Fraction], q: float, confidence: float) -> Interval | None:
    """By every resample there is, n^n of them counted by how often each record is in it."""
    n = len(values)
    if n < 2:
        return None
    chances: Counter[Fraction] = Counter()
    for drawn in combinations_with_replacement(range(n), n):
        ways = math.factorial(n)
        for times in Counter(drawn).values():
            ways //= math.factorial(times)
        chances[quantile(sorted(values[place] for place in drawn), q)] += ways
    below, tail, ends = Fraction(0), Fraction(1 - Fraction(confidence)) / 2, []
    for limit in (tail, 1 - tail):
        below = Fraction(0)
        for value in sorted(chances):
            below += Fraction(chances[value], n**n)
            if below >= limit:
                ends.append(float(value))
                break
    mean = sum(value * ways for value, ways in chances.items()) / n**n
    sd = math.sqrt(sum((value - mean) ** 2 * ways for value, ways in chances.items()) / n**n)
    return float(quantile(sorted(values), q)), sd, ends[0], ends[1]


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


def regression_distance(case: Case) -> dict[str, Answers]:
    found: dict[str, Answers] = {"distance": {}, "relative_deviation": {}}
    for model in case.spec.models:
        target = model.response.split(" >")[0]
        own, theirs = (coefficients(case, data, model) for data in (case.confidential, case.released))
        total: float | None = 0.0
        for term, interval in own.items():
            other, value = theirs[term], None
            assert interval is not None
            assert other is not None
            if abs(interval[0]) >= case.spec.near_zero * interval[1]:
                value = (other[0] - interval[0]) / interval[0]
            total = None if total is None or value is None else total + abs(value)
            found["relative_deviation"][series(target, estimand="relative deviation", term=term)] = value
        found["distance"][series(target)] = total
    return found


def estimands(case: Case, data: Microdata) -> Iterator[tuple[Series, Interval | None]]:
    spec = case.spec
    for name in spec.means:
        values = [case.code(name, value) for value in present(cells(data, name))]
        yield series(name, estimand="mean"), mean_interval(values, spec.confidence, case.kind(name))
    for name in spec.quantiles:
        for q in spec.probabilities:
            values = present(cells(data, name))
            yield series(name, estimand="quantile", q=q), quantile_interval(values, q, spec.confidence)
    for model in spec.models:
        for term, found in coefficients(case, data, model).items():
            yield series(model.response, estimand="coefficient", term=term), found


def interval_overlap(case: Case) -> dict[str, Answers]:
    own, theirs = (dict(estimands(case, data)) for data in (case.confidential, case.released))
    found: dict[str, Answers] = {"estimate": {}, "standard_error": {}, "overlap": {}}
    for key, interval in theirs.items():
        found["estimate"][key] = None if interval is None else interval[0]
        found["standard_error"][key] = None if interval is None else interval[1]
        if case.released.origin != "confidential":
            found["overlap"][key] = overlap(own[key], interval)
    return found


def overlap(first: Interval | None, second: Interval | None) -> float | None:
    """Mean of the shares that the stretch in common has of both; negative where they are apart."""
    if first is None or second is None or first[3] <= first[2] or second[3] <= second[2]:
        return None
    common = min(first[3], second[3]) - max(first[2], second[2])
    return 0.5 * (common / (first[3] - first[2]) + common / (second[3] - second[2]))


def propensity(case: Case) -> dict[str, Answers]:
    """A saturated regression predicts the share of released records in each cell; another is fitted by statsmodels."""
    names, n, m = case.spec.variables, len(case.confidential), len(case.released)
    saturated = len(names) == 1 or (len(names) == 2 and case.spec.model == "logit_interactions")
    if saturated and all(case.kind(name).has_levels for name in names):
        cell = list(zip(*(case.both(name) for name in names), strict=True))
        scores: list[Any] = [
            Fraction(sum(other == one for other in cell[n:]), sum(other == one for other in cell)) for one in cell
        ]
        free = len(set(cell))
    else:
        scores, free = fitted_scores(case, names)
    if free == 1:
        return {name: {series(): None} for name in ("pmse", "null_pmse", "s_pmse")}
    c = Fraction(m, n + m)
    pmse = sum((p - (c if saturated else float(c))) ** 2 for p in scores) / (n + m)
    null = (free - 1 - of_repeated(case, names)) * c * (1 - c) ** 2 / (n + m)
    return {"pmse": {series(): pmse}, "null_pmse": {series(): null}, "s_pmse": {series(): pmse / null}}


def of_repeated(case: Case, names: Sequence[str]) -> int:
    """The coefficients of variables whose values together make the same records in both tables: they say nothing."""
    n, found = len(case.confidential), list[str]()
    for name in names:
        records = list(zip(*(case.both(other) for other in (*found, name)), strict=True))
        if Counter(records[:n]) == Counter(records[n:]):
            found.append(name)
    if len(found) == len(names):
        return 0
    own = [len(set(case.both(name))) - 1 if case.kind(name).has_levels else 1 for name in found]
    pairs = [a * b for i, a in enumerate(own) for b in own[i + 1 :]] if case.spec.model == "logit_interactions" else []
    return sum(own) + sum(pairs)


def fitted_scores(case: Case, names: Sequence[str]) -> tuple[list[float], int]:
    blocks = []
    for name in names:
        values = case.both(name)
        if case.kind(name).has_levels:
            blocks.append(np.array([[v == level for level in sorted(set(values))[1:]] for v in values], dtype=float))
        else:
            numbers = np.array([float(value) for value in values])
            blocks.append(((numbers - numbers.mean()) / numbers.std())[:, None])
    if case.spec.model == "logit_interactions":
        mains = list(blocks)
        for i, first in enumerate(mains):
            for second in mains[i + 1 :]:
                blocks += [first[:, [a]] * second for a in range(first.shape[1])]
    x = np.hstack([np.ones((len(blocks[0]), 1)), *blocks])
    y = np.repeat([0.0, 1.0], [len(case.confidential), len(case.released)])
    fit = sm.Logit(y, x).fit(disp=0, tol=1e-14, maxiter=200)
    return list(fit.predict()), x.shape[1]


def cluster(case: Case) -> dict[str, Answers]:
    """Merge the two clusters of least average distance until G are left, every pair of rows looked at each time."""
    n = len(case.confidential)
    points = [tuple(row) for row in zip(*columns_to_cluster(case), strict=True)]
    if len(set(points)) < 2:
        return {"u_c": {series(): None}}
    clusters = [[i for i, other in enumerate(points) if other == point] for point in sorted(set(points))]
    while len(clusters) > case.spec.clusters:
        pairs = [(i, j) for i in range(len(clusters)) for j in range(i)]
        i, j = min(
            pairs,
            key=lambda pair: statistics.fmean(
                math.dist(points[a], points[b]) for a in clusters[pair[0]] for b in clusters[pair[1]]
            ),
        )
        clusters[j] += clusters[i]
        del clusters[i]
    c = Fraction(len(points) - n, len(points))
    total = Fraction(0)
    for rows in clusters:
        weight = Fraction(len(rows), len(points)) if case.spec.weights == "share" else 1
        total += weight * (Fraction(sum(row >= n for row in rows), len(rows)) - c) ** 2
    return {"u_c": {series(): total / len(clusters)}}


def columns_to_cluster(case: Case) -> Iterator[list[float]]:
    for name in case.spec.variables:
        values = case.both(name)
        if case.kind(name).has_levels:
            levels = sorted(set(values), key=str)
            if len(levels) > 1:
                yield from ([float(value == level) for value in values] for level in levels)
            continue
        there = [float(value) for value in present(values)]
        mean = statistics.fmean(there)
        filled = [mean if value is None else float(value) for value in values]
        spread = {"none": 1.0, "standard": statistics.pstdev(filled), "range": max(filled) - min(filled)}
        if max(filled) > min(filled):
            yield [(value - mean) / spread[case.spec.scaling] for value in filled]
        if None in values:
            yield [float(value is None) for value in values]


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
    ours = {name: believed.get(name, case.ours(name)) for name in names}
    theirs = {name: case.theirs(name) for name in names}
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


def identification(case: Case) -> dict[str, Answers]:
    if not case.released.linked:
        return {name: {series(): None} for name in of_matches([set()])}
    names = dict.fromkeys([*case.spec.known, *case.spec.synthesised])
    return {name: {series(): value} for name, value in of_matches(matched(case, list(names))).items()}


def learnt(known: Sequence[set[int]], similar: Sequence[set[int]], *, without_self: bool = False) -> Fraction:
    """Sum over the records of the share of those alike whose sensitive values are alike too."""
    total = Fraction(0)
    for i, (alike, near) in enumerate(zip(known, similar, strict=True)):
        members = alike - {i} if without_self and len(alike) > 1 else alike
        if members:
            total += Fraction(len(members & near), len(members))
    return total


def attribute(case: Case) -> dict[str, Answers]:
    if not case.released.linked:
        return {"risk": {series(): None}}
    known, similar = (matched(case, names) for names in (case.spec.known, case.spec.sensitive))
    found: dict[str, Answers] = {"risk": {series(): learnt(known, similar)}}
    if case.released.origin == "confidential":
        found["risk_excluding_self"] = {series(): learnt(known, similar, without_self=True)}
    return found


def inference_attack(case: Case) -> dict[str, Answers]:
    """Every record by itself: whom it agrees with on most of what is known, and what these have in common or on average."""
    name, numbers = case.spec.sensitive, not case.kind(case.spec.sensitive).has_levels
    either = ("misclassification", "mean_absolute_error")
    not_one: dict[str, Answers] = {name: {series(): None} for name in (*either, *(f"guess_{one}" for one in either))}
    if not all(shows_levels(case, other) for other in (name, *case.spec.known)):
        return not_one
    known = list(zip(*(in_given_bins(case, other, case.ours(other)) for other in case.spec.known), strict=True))
    offered = list(zip(*(in_given_bins(case, other, case.theirs(other)) for other in case.spec.known), strict=True))
    ours, theirs = case.ours(name), case.theirs(name)
    usable = [j for j, value in enumerate(theirs) if value is not None or not numbers]
    if not usable:
        return not_one
    found: dict[str, Answers] = {}
    for prefix, nothing in (("", False), ("guess_", True)):
        wrong, distance = [], []
        for own, truth in zip(known, ours, strict=True):
            agreeing = {j: sum(a == b for a, b in zip(own, offered[j], strict=True)) for j in usable}
            most = max(agreeing.values()) if case.spec.fallback == "nearest" else len(own)
            asked = [j for j in usable if agreeing[j] == most and not nothing] or usable
            values = [theirs[j] for j in asked]
            if not numbers:
                counts = Counter(values)
                modes = [value for value in counts if counts[value] == max(counts.values())]
                wrong.append(1 - Fraction(truth in modes, len(modes)))
            elif truth is not None:
                mean = sum(values) / Fraction(len(values))
                distance.append(abs(mean - truth))
                wrong.append(Fraction(not agrees(case.spec.within, truth, mean)))
        if numbers:
            found[f"{prefix}mean_absolute_error"] = {series(name): sum(distance) / len(distance)}
        if not numbers or case.spec.within:
            found[f"{prefix}misclassification"] = {series(name): sum(wrong) / len(wrong)}
    return found


def in_given_bins(case: Case, name: str, values: Sequence[Any]) -> list[Any]:
    return in_bins(case, name, values) if name in case.spec.bins else list(values)


def uniqueness(case: Case) -> dict[str, Answers]:
    ours, theirs = (
        list(zip(*(in_given_bins(case, name, cells(data, name)) for name in case.spec.keys), strict=True))
        for data in (case.confidential, case.released)
    )
    own, other = Counter(ours), Counter(theirs)
    replicated = Fraction(sum(own[key] == 1 and other[key] == 1 for key in own), len(ours))
    single = Fraction(sum(own[key] == 1 for key in theirs), len(theirs))
    means = {name for name in case.spec.keys if case.kind(name) is not case.released.schema[name].kind} - set(
        case.spec.bins
    )
    hidden = means | (set(case.spec.keys) & case.released.generalised)
    return {
        "sample_uniques": {series(): sum(times == 1 for times in other.values())},
        "population_uniques": {series(): None if hidden else single},
        "replicated_uniques": {series(): None if hidden else replicated},
        "share_in_small_groups": {
            series(size=size): Fraction(sum(other[key] <= size for key in theirs), len(theirs))
            for size in case.spec.sizes
        },
    }


def population_uniqueness(case: Case) -> dict[str, Answers]:
    names = sorted(case.spec.keys)
    theirs = list(zip(*(in_given_bins(case, name, cells(case.released, name)) for name in names), strict=True))
    n, counts = len(theirs), Counter(theirs)
    if case.spec.weight:
        population = sum(case.ours(case.spec.weight))
        given = case.theirs(case.spec.weight)
        stands_for = [weight * population / sum(given) for weight in given]
    else:
        population = len(case.confidential) / case.spec.fraction
        stands_for = [population / n] * n
    people = {key: sum(w for own, w in zip(theirs, stands_for, strict=True) if own == key) for key in counts}
    found: dict[str, Answers] = {name: {} for name in ("specification_uniques", "specification_matches")}
    models: dict[str, tuple[list[float | None], list[float]]] = {}
    for order, model in ((1, "main effects"), (2, "two-way")):
        if case.spec.model not in ("chosen", ("", "main_effects", "two_way")[order]):
            continue
        answer = by_dense_model(counts, people, order, n / (5 if order == 1 else case.spec.two_way_records))
        if answer:
            models[model] = answer
        for measure, place in (("specification_uniques", 0), ("specification_matches", 1)):
            found[measure][series(fitted=model)] = answer[0][place] if answer else None
    off = {model: max(abs(one) for one in tests if one is not None) for model, (tests, _) in models.items()}
    chosen = None
    if models:
        chosen = "main effects" if off.get("main effects", 9.0) <= 1.96 else min(off, key=lambda model: off[model])
    for place, measure in enumerate(("expected_uniques", "expected_matches")):
        found[measure] = {series(): models[chosen][1][place] if chosen else None}
    found["zayatz_uniques"] = {series(): zayatz(Counter(counts.values()), round(population), n)}
    return found


def zayatz(sizes: Mapping[int, int], population: int, n: int) -> Fraction:
    one_of = {j: Fraction(j * math.comb(population - j, n - 1), math.comb(population, n)) for j in sizes}
    below = sum(times * one_of[j] for j, times in sizes.items())
    return sizes.get(1, 0) * sizes.get(1, 0) * one_of[1] / below if sizes.get(1) else Fraction(0)


def by_dense_model(
    counts: Mapping[Any, int], people: Mapping[Any, float], order: int, most: float
) -> tuple[list[float | None], list[float]] | None:
    """Statistics of the specification test, and the expected numbers, by statsmodels on every cell; None where it is refused."""
    levels = [sorted({key[place] for key in counts}, key=str) for place in range(len(next(iter(counts))))]
    levels = [found for found in levels if len(found) > 1]
    kept = [place for place in range(len(next(iter(counts)))) if len({key[place] for key in counts}) > 1]
    short = {tuple(key[place] for place in kept): key for key in counts}
    grid = list(product(*levels))
    terms = [term for size in range(order + 1) for term in combinations(range(len(kept)), size)]
    columns = [
        [float(all(cell[place] == level for place, level in zip(term, chosen, strict=True))) for cell in grid]
        for term in terms
        for chosen in product(*(levels[place][1:] for place in term))
    ]
    if len(kept) <= order or len(columns) > most:
        return None
    design = np.array(columns).T
    f = np.array([float(counts[short[cell]]) if cell in short else 0.0 for cell in grid])
    estimated = np.array([float(people[short[cell]]) if cell in short else 0.0 for cell in grid])
    mean, expected = (
        sm.GLM(seen, design, family=sm.families.Poisson())
        .fit(tol=1e-14, maxiter=200, tol_criterion="params")
        .fittedvalues
        for seen in (f, estimated)
    )
    pi = np.minimum(mean / expected, 1)
    tests = []
    for first, second in (
        (lambda x: -math.exp(-x), lambda x: math.exp(-x)),
        (
            lambda x: (math.exp(-x) * (x + 1) - 1) / x**2,
            lambda x: (2 - math.exp(-x) * (x * x + 2 * x + 2)) / x**3,
        ),
    ):
        x = (1 - pi) * expected
        a = -expected * np.exp(-mean) * (1 - pi) * np.array([first(one) for one in x])
        b = expected * np.exp(-mean) * (1 - pi) ** 2 / (2 * pi) * np.array([second(one) for one in x])
        weighed = design * np.sqrt(mean)[:, None]
        left = a * np.sqrt(mean) - weighed @ np.linalg.lstsq(weighed, a * np.sqrt(mean), rcond=None)[0]
        variance = float(left @ left + 2 * np.sum(b**2 * mean**2))
        tests.append(float(np.sum(a * (f - mean) + b * ((f - mean) ** 2 - f))) / math.sqrt(variance))
    others = [(1 - 1 / estimated[k]) * expected[k] for k in range(len(grid)) if f[k] == 1]
    return tests, [sum(math.exp(-x) for x in others), sum((1 - math.exp(-x)) / x for x in others)]


def attributed_anyway(case: Case, values: list[list[Any]], single: list[list[Any]], row: int) -> bool:
    """Whether the margin, or one key by itself, has more than the recipe's share of its records at the record's own value."""
    ours = values[0]
    groups = [range(len(ours)), *([i for i in range(len(ours)) if key[i] == key[row]] for key in single)]
    return any(
        len(group) >= case.spec.obvious_records
        and sum(ours[i] == ours[row] for i in group) > Fraction(case.spec.obvious) * len(group)
        for group in groups
    )


def correct_attribution(case: Case) -> dict[str, Answers]:
    """Record by record: whom the intruder meets, with what value, and whether it is the record's own."""
    outputs = ("cap", "dcap", "tcap", "disco", "disco_beyond")
    found: dict[str, Answers] = {name: {} for name in outputs}
    used = {*case.spec.keys, *case.spec.sensitive}
    means = {n for n in used if case.kind(n) is not case.released.schema[n].kind} - set(case.spec.bins)
    if means | (used & case.released.generalised):
        return {name: {series(): None} for name in (*outputs, "shared_keys")}
    single = [in_given_bins(case, name, case.ours(name)) for name in case.spec.keys]
    ours = list(zip(*single, strict=True))
    theirs = list(zip(*(in_given_bins(case, name, case.theirs(name)) for name in case.spec.keys), strict=True))
    n, m = len(ours), len(theirs)
    found["shared_keys"] = {series(): Fraction(sum(key in theirs for key in ours), n)}
    for name in case.spec.sensitive:
        values = [in_given_bins(case, name, data) for data in (case.ours(name), case.theirs(name))]
        met = [[values[1][j] for j in range(m) if theirs[j] == key] for key in ours]
        within = [[values[1][j] for j in range(m) if theirs[j] == key] for key in theirs]
        own = [[values[0][i] for i in range(n) if ours[i] == key] for key in theirs]
        certain = [bool(met[i]) and set(met[i]) == {values[0][i]} for i in range(n)]
        beyond = [certain[i] and not attributed_anyway(case, values, single, i) for i in range(n)]
        spoken = [j for j in range(m) if len(set(within[j])) == 1 and own[j]]
        told = sum((Fraction(own[j].count(values[1][j]), len(own[j])) for j in spoken), Fraction(0))
        right = [Fraction(met[i].count(values[0][i]), len(met[i])) for i in range(n) if met[i]]
        found["dcap"][series(name)] = sum(right, Fraction(0)) / n
        found["cap"][series(name)] = sum(Fraction(within[j].count(values[1][j]), len(within[j])) for j in range(m)) / m
        found["tcap"][series(name)] = told / len(spoken) if spoken else None
        found["disco"][series(name)] = Fraction(sum(certain), n)
        found["disco_beyond"][series(name)] = Fraction(sum(beyond), n)
    return found


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


def nearest_guesses(
    case: Case, name: str, learned: Microdata, attacked: Microdata
) -> list[tuple[Fraction, Fraction, Fraction]]:
    """Of each attacked record with a value: the chance that its guess is right, how far the k-th nearest is, and the doubt."""
    levels = case.kind(name).has_levels
    known = {n: (cells(learned, n), cells(attacked, n)) for n in case.spec.known}
    values, truth = cells(learned, name), cells(attacked, name)
    offered = [j for j, value in enumerate(values) if levels or value is not None]
    radius = case.spec.radius.get(name)
    found = []
    for i, own in enumerate(truth):
        if own is None and not levels:
            continue
        apart = {}
        for j in offered:
            apart[j] = Fraction(0)
            for n, (theirs, ours) in known.items():
                if case.kind(n).has_levels or None in (theirs[j], ours[i]):
                    apart[j] += 2 * len(learned) * (theirs[j] != ours[i])
                else:
                    places = (half_rank(present(theirs), len(learned), v) for v in (theirs[j], ours[i]))
                    apart[j] += abs(next(places) - next(places))
        reach = sorted(apart.values())[min(case.spec.neighbours, len(offered)) - 1]
        asked = [values[j] for j in offered if apart[j] <= reach]
        agree = {v: sum(agrees(radius, w, v) for w in asked) for v in asked}
        best = [v for v, times in agree.items() if times == max(agree.values())]
        right = Fraction(sum(agrees(radius, own, v) for v in best), len(best))
        found.append((right, reach, 1 - Fraction(max(agree.values()), len(asked) + 1)))
    return found


def attribute_inference(case: Case) -> dict[str, Answers]:
    """Record by record: whom the intruder asks, what they say, and whether it is right."""
    controls = case.confidential.controls
    assert controls is not None
    names = ("attack_success", "baseline_success", "control_success", "excess_risk", "guesses", "from_controls")
    found: dict[str, Answers] = {name: {} for name in names}

    def hidden(name: str) -> bool:
        means = case.kind(name).has_levels and not case.released.schema[name].kind.has_levels
        return means or name in case.released.generalised

    for name in case.spec.sensitive:
        if any(map(hidden, (name, *case.spec.known))):
            for answers in found.values():
                answers[series(name)] = None
            continue
        own, others = (nearest_guesses(case, name, case.released, of) for of in (case.confidential, controls))
        learned = nearest_guesses(case, name, controls, case.confidential)
        found["from_controls"][series(name)] = sum(right for right, *_ in learned) / len(learned)
        values = [v for v in cells(controls, name) if v is not None or case.kind(name).has_levels]
        radius = case.spec.radius.get(name)
        agree = {v: sum(agrees(radius, w, v) for w in values) for v in values}
        best = [v for v, times in agree.items() if times == max(agree.values())]
        truth = [v for v in case.ours(name) if v is not None or case.kind(name).has_levels]
        constant = [Fraction(sum(agrees(radius, v, guess) for guess in best), len(best)) for v in truth]
        for told in ({}, {"guesses": "confident"}):
            rates = {}
            for measure, side, of in (
                ("attack_success", own, [right for right, *_ in own]),
                ("control_success", others, [right for right, *_ in others]),
                ("baseline_success", own, constant),
            ):
                order = sorted((reach, doubt) for _, reach, doubt in side)
                share = Fraction(str(case.spec.confident)) if told else Fraction(1)
                last = order[math.ceil(share * len(order)) - 1]
                chosen = [r for r, (_, reach, doubt) in zip(of, side, strict=True) if (reach, doubt) <= last]
                rates[measure] = sum(chosen) / Fraction(len(chosen))
                found[measure][series(name, **told)] = rates[measure]
                if measure == "attack_success":
                    found["guesses"][series(name, **told)] = len(chosen)
            a, c = rates["attack_success"], rates["control_success"]
            found["excess_risk"][series(name, **told)] = None if c == 1 else (a - c) / (1 - c)
    return found


def nearest_sets(case: Case, names: Sequence[str], attacked: Microdata) -> list[tuple[set[int], list[tuple[int, ...]]]]:
    """Of each attacked record the released ones that are certainly among the nearest, and every way to pick those that are missing."""
    columns = {n: (cells(case.released, n), cells(attacked, n)) for n in names}
    size = len(case.released)
    found = []
    for i in range(len(attacked)):
        apart = [Fraction(0)] * size
        for n, (theirs, ours) in columns.items():
            for j in range(size):
                if case.kind(n).has_levels or None in (theirs[j], ours[i]):
                    apart[j] += 2 * size * (theirs[j] != ours[i])
                else:
                    places = (half_rank(present(theirs), size, v) for v in (theirs[j], ours[i]))
                    apart[j] += abs(next(places) - next(places))
        k = min(case.spec.neighbours, size)
        reach = sorted(apart)[k - 1]
        sure = {j for j in range(size) if apart[j] < reach}
        ties = [j for j in range(size) if apart[j] == reach]
        found.append((sure, list(combinations(ties, k - len(sure)))))
    return found


def linkability(case: Case) -> dict[str, Answers]:
    """Every way to pick records that are equally near, on both sides, and how many of them share a record."""
    controls = case.confidential.controls
    assert controls is not None
    rates = []
    for data in (case.confidential, controls):
        sides = [nearest_sets(case, names, data) for names in (case.spec.known, case.spec.other)]
        right = []
        for (sure, picks), (also, others) in zip(*sides, strict=True):
            ways = [bool((sure | set(one)) & (also | set(two))) for one in picks for two in others]
            right.append(Fraction(sum(ways), len(ways)))
        rates.append(sum(right, Fraction(0)) / len(right))
    k, n = min(case.spec.neighbours, len(case.released)), len(case.released)
    picks = list(combinations(range(n), k))
    by_chance = Fraction(sum(bool(set(one) & set(picks[0])) for one in picks), len(picks))
    a, c = rates
    return {
        "attack_success": {series(): a},
        "baseline_success": {series(): by_chance},
        "control_success": {series(): c},
        "excess_risk": {series(): None if c == 1 else (a - c) / (1 - c)},
        "guesses": {series(): len(case.confidential)},
    }


def special_uniques(case: Case) -> dict[str, Answers]:
    """Every set of keys of every record, the smallest first."""
    keys, n = case.spec.keys, len(case.released)
    shown = [
        [str(value) for value in case.released.frame[name]]
        if name in case.released.generalised
        else in_given_bins(case, name, case.theirs(name))
        for name in keys
    ]
    most = min(case.spec.largest or len(keys), len(keys))
    score, part = [0] * n, [[0] * n for _ in keys]
    sizes = dict.fromkeys(range(1, most + 1), 0)
    for i in range(n):
        minimal: list[set[int]] = []
        for size in range(1, most + 1):
            for chosen in combinations(range(len(keys)), size):
                alone = not any(all(shown[k][i] == shown[k][j] for k in chosen) for j in range(n) if j != i)
                if alone and not any(smaller < set(chosen) for smaller in minimal):
                    minimal.append(set(chosen))
                    points = math.prod(len(keys) - k for k in range(size, min(most, len(keys) - 1) + 1))
                    score[i] += points
                    sizes[size] += 1
                    for k in chosen:
                        part[k][i] += points
    times = [sum(all(column[i] == column[j] for column in shown) for j in range(n)) for i in range(n)]
    unique, paired, f = times.count(1), times.count(2), Fraction(case.spec.sampling_fraction)
    whole = unique * f / (unique * f + paired * (1 - f)) if unique else None
    scored = [float(points) for points in score if points]
    largest: float | None = None if whole is None else 0.0
    if whole is not None and scored:
        h = 1 + (8 - len(keys)) / 20
        dealt = max(scored) ** h * sum(points**-h for points in scored)
        largest = 1 / (1 + (len(scored) / float(whole) - len(scored)) / dealt)
    total = sum(score)
    found: dict[str, Answers] = {
        "special_uniques": {series(): len(scored)},
        "minimal_uniques": {series(size=size): count for size, count in sizes.items()},
        "mean_score": {series(): Fraction(total, n)},
        "largest_score": {series(): max(score)},
        "dis": {series(): whole},
        "largest_dis": {series(): largest},
        "attribute_contribution": {},
        "level_contribution": {},
    }
    for k, name in enumerate(keys):
        found["attribute_contribution"][series(name)] = Fraction(sum(part[k]), total) if total else None
        if case.released.schema[name].kind.has_levels:
            column = case.released.frame[name]
            levels = {str(level): str(level) for level in column.cat.categories}
            if column.isna().any():
                levels["missing value"] = "nan"
            for level, text in levels.items():
                own = sum(points for points, value in zip(part[k], column, strict=True) if str(value) == text)
                found["level_contribution"][series(name, level=level)] = Fraction(own, total) if total else None
    return found


def exact_copies(case: Case) -> dict[str, Answers]:
    names = case.spec.variables
    means = {name for name in names if case.kind(name) is not case.released.schema[name].kind} - set(case.spec.bins)
    if means | (set(names) & case.released.generalised):
        return {name: {series(): None} for name in ("copies", "lone_copies")}
    ours, theirs = (
        list(zip(*(in_given_bins(case, name, cells(data, name)) for name in names), strict=True))
        for data in (case.confidential, case.released)
    )
    return {
        "copies": {series(): Fraction(sum(record in ours for record in theirs), len(theirs))},
        "lone_copies": {series(): Fraction(sum(ours.count(record) == 1 for record in theirs), len(theirs))},
    }


def groups(data: Microdata, names: Sequence[str]) -> list[list[int]]:
    found: dict[tuple[Any, ...], list[int]] = {}
    for row in range(len(data)):
        found.setdefault(tuple(cells(data, name)[row] for name in names), []).append(row)
    return list(found.values())


def matching(data: Microdata, names: Sequence[str]) -> list[list[int]]:
    """For each record those that agree with it in all columns in which both have a value."""
    rows = list(zip(*(cells(data, name) for name in names), strict=True))
    return [
        [
            place
            for place, other in enumerate(rows)
            if all(a == b or a is None or b is None for a, b in zip(row, other, strict=True))
        ]
        for row in rows
    ]


def anonymity(case: Case) -> dict[str, Answers]:
    partial = case.spec.missing == "anything"
    classes = (matching if partial else groups)(case.released, case.spec.quasi_identifiers)
    found: dict[str, Answers] = {
        "k": {series(): min(map(len, classes))},
        "classes": {series(): None if partial else len(classes)},
        **{name: {} for name in ("l_distinct", "l_entropy", "c_recursive", "t")},
    }
    least = []
    for name in case.spec.sensitive:
        values = case.theirs(name)
        parts = [[values[row] for row in rows] for rows in classes]
        least.append(min(len(set(part)) for part in parts))
        found["l_distinct"][series(name)] = least[-1]
        found["l_entropy"][series(name)] = min(math.exp(entropy(part)) for part in parts)
        found["c_recursive"][series(name)] = recursive(parts, case.spec.l)
        found["t"][series(name)] = max(distance(case, name, part, values) for part in parts)
    return {**found, "p": {series(): min(least) if least else None}}


def recursive(parts: Sequence[Sequence[Any]], l: int) -> Fraction | None:  # noqa: E741
    """The smallest c that is not enough: r_1 / (r_l + ... + r_m) of the worst class, none where one has fewer values."""
    counts = [sorted(Counter(part).values(), reverse=True) for part in parts]
    if any(len(times) < l for times in counts):
        return None
    return max(Fraction(times[0], sum(times[l - 1 :])) for times in counts)


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
    return case.kind(name).has_levels and set(case.theirs(name)) <= set(case.confidential.schema[name].levels)


def smallest(case: Case, scored: Mapping[str, Any], *, excuse: bool = True) -> Any:
    """None where a column has no value, unless it is constant in the original and there was nothing to lose."""
    excused = [name for name in scored if excuse and len(set(present(case.ours(name)))) == 1]
    if any(value is None and name not in excused for name, value in scored.items()):
        return None
    values = [value for value in scored.values() if value is not None]
    return None if not values else WITHIN if WITHIN in values else min(values)


def pairs(case: Case, name: str) -> tuple[list[Fraction], list[Fraction]]:
    ours, theirs = case.ours(name), case.theirs(name)
    both = [(case.code(name, ours[i]), case.code(name, theirs[j])) for j, i in enumerate(kept(case))]
    there = [(a, b) for a, b in both if a is not None and b is not None]
    return [a for a, _ in there], [b for _, b in there]


def correlation(case: Case, original: Sequence[Fraction], released: Sequence[Fraction]) -> tuple[float] | None:
    if len(set(original)) < 2 or len(set(released)) < 2:
        return None
    means = [sum(values) / Fraction(len(values)) for values in (original, released)]
    shared = sum((a - means[0]) * (b - means[1]) for a, b in zip(original, released, strict=True))
    spread = variance(original) * variance(released) * (len(original) - 1) ** 2
    return (0.0,) if shared <= 0 else (math.sqrt(shared * shared / spread),)


def pearson(case: Case) -> dict[str, Answers]:
    return columnwise(case, ("rho",), "minimum_rho", correlation)


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


def nmi_v1(case: Case) -> dict[str, Answers]:
    return columnwise(case, ("nmi", "unscaled"), "minimum_nmi", information("original"))


def nmi_v2(case: Case) -> dict[str, Answers]:
    return columnwise(case, ("nmi", "unscaled"), "minimum_nmi", information("released"))


def range_lost(case: Case, name: str, classes: Sequence[Sequence[int]]) -> Fraction:
    values = [case.code(name, value) for value in case.ours(name)]
    whole = max(present(values)) - min(present(values))
    parts = [part for rows in classes if (part := present([values[row] for row in rows]))]
    records = sum(map(len, parts))
    if not whole or not records:
        return Fraction(0)
    return sum((len(part) * (max(part) - min(part)) / whole for part in parts), Fraction(0)) / records


def ilm(case: Case) -> dict[str, Answers]:
    names = [name for name in case.spec.quasi_identifiers if case.kind(name) in NUMERICAL]
    loss = sum((range_lost(case, name, class_of(case, case.spec.quasi_identifiers)) for name in names), Fraction(0))
    return {"ilm": {series(): loss}, "one_minus_ilm": {series(): 1 - loss}}


def breadth(rows: Sequence[Sequence[str]], values: set[str]) -> Fraction:
    """Size of the lowest node over these values: (values below it - 1) / (values - 1); of a flat tree's root 1."""
    for level in range(len(rows[0])):
        nodes = {row[level] for row in rows if row[0] in values}
        if len(nodes) == 1:
            below = sum(row[level] in nodes for row in rows)
            return Fraction(below - 1, len(rows) - 1) if len(rows) > 1 else Fraction(level > 0)
    raise AssertionError("a tree has one root")


def category_lost(case: Case, name: str, classes: Sequence[Sequence[int]]) -> Fraction | None:
    ours = ["(missing)" if value is None else value for value in case.ours(name)]
    theirs = ["(missing)" if value is None else str(value) for value in case.theirs(name)]
    tree = case.spec.hierarchies.get(name)
    rows = [list(row) for row in tree.rows] if tree else [[value, "*"] for value in sorted(set(ours))]
    leaves = {row[0] for row in rows}
    if set(ours) - leaves:
        return None
    shown = dict(zip(kept(case), theirs, strict=True))
    total = Fraction(0)
    for members in classes:
        common = breadth(rows, {ours[row] for row in members})
        for row in members:
            below = {line[0] for line in rows if shown[row] in line}
            total += max(common, breadth(rows, below or leaves))
    return total / len(shown)


def rilm(case: Case) -> dict[str, Answers]:
    classes = class_of(case, case.spec.quasi_identifiers)
    found: dict[str, Answers] = {}
    for measure, lost in (("numerical", range_lost), ("categorical", category_lost)):
        names = [name for name in case.spec.variables if (case.kind(name) in NUMERICAL) == (measure == "numerical")]
        losses = {name: lost(case, name, classes) for name in names}
        values = {name: None if loss is None else factor(case) * (1 - loss) for name, loss in losses.items()}
        found[measure] = {series(name): value for name, value in values.items()}
        found[f"minimum_{measure}"] = {series(): smallest(case, values, excuse=False)} if names else {}
    return found


def non_suppressed(case: Case) -> dict[str, Answers]:
    share = Fraction(len(case.released), len(case.confidential))
    return {"share": {series(): None if share > 1 else share}}


# The sweep of the intruder's uncertainty ----------------------------------------------------------------------------


def swept(case: Case, believed: Sequence[Any], lacking: Sequence[bool] | None = None) -> dict[str, Any]:
    """Both risks of the sweep where the intruder believes these values of the uncertain variable, or ``lacking`` any."""
    spec = case.spec
    certain = [name for name in spec.known if name != spec.variable]
    without = matched(case, certain)
    told = matched(case, [spec.variable], {spec.variable: believed})
    unsure = lacking or [False] * len(without)
    known = [alike if free else alike & near for alike, near, free in zip(without, told, unsure, strict=True)]
    identified, similar = (
        [alike & near for alike, near in zip(known, matched(case, names), strict=True)]
        for names in (spec.synthesised, spec.sensitive)
    )
    return {**of_matches(identified), "attribute_risk": learnt(known, similar)}


FLIPPED = {"0": "1", "1": "0"}


def intruder_uncertainty(case: Case, level: float) -> dict[str, Answers]:
    """Where chance decides nothing: at level 0, or at level 1 of not knowing and of a binary variable taken wrongly."""
    own = case.ours(case.spec.variable)
    if level == 0:
        found = swept(case, own)
    elif case.spec.model == "unknown":
        found = swept(case, own, [True] * len(own))
    else:
        occurring = set(present(own))
        found = swept(case, [FLIPPED.get(value, value) if len(occurring) > 1 else value for value in own])
    return {name: {series(): value} for name, value in found.items()}


ORACLES: dict[str, Callable[..., dict[str, Answers]]] = {
    f"{key}.{output}": oracle
    for key, (oracle, outputs) in {
        "utility.cluster": (cluster, ("u_c",)),
        "utility.constraint_violations": (constraint_violations, ("broken_records", "unknown_records")),
        "utility.distribution_distance": (distribution_distance, ("marginal", "conditional")),
        "utility.margin_distance": (margin_distance, ("pair", "mean_pair", "mean_triple")),
        "utility.ecdf": (ecdf, ("max_abs_difference", "mean_squared_difference")),
        "utility.interval_overlap": (interval_overlap, ("overlap", "estimate", "standard_error")),
        "utility.propensity": (propensity, ("pmse", "null_pmse", "s_pmse")),
        "utility.regression_distance": (regression_distance, ("distance", "relative_deviation")),
        "utility.summary": (summary, ("mean", "sd", "quantile", "share_of_zeros", "share", "share_missing")),
        "quality.ilm": (ilm, ("ilm", "one_minus_ilm")),
        "quality.nmi_v1": (nmi_v1, ("nmi", "unscaled", "minimum_nmi")),
        "quality.nmi_v2": (nmi_v2, ("nmi", "unscaled", "minimum_nmi")),
        "quality.non_suppressed": (non_suppressed, ("share",)),
        "quality.pearson": (pearson, ("rho", "minimum_rho")),
        "quality.rilm": (rilm, ("numerical", "categorical", "minimum_numerical", "minimum_categorical")),
        "risk.anonymity": (anonymity, ("k", "classes", "p", "l_distinct", "l_entropy", "c_recursive", "t")),
        "risk.attribute": (attribute, ("risk", "risk_excluding_self")),
        "risk.identification": (
            identification,
            ("expected_match_risk", "true_match_rate", "false_match_rate", "unique_matches"),
        ),
        "risk.inference_attack": (
            inference_attack,
            ("misclassification", "mean_absolute_error", "guess_misclassification", "guess_mean_absolute_error"),
        ),
        "risk.attribute_inference": (
            attribute_inference,
            (
                *("attack_success", "baseline_success", "control_success", "excess_risk", "guesses"),
                "from_controls",
            ),
        ),
        "risk.linkability": (
            linkability,
            ("attack_success", "baseline_success", "control_success", "excess_risk", "guesses"),
        ),
        "risk.correct_attribution": (
            correct_attribution,
            ("dcap", "tcap", "disco", "disco_beyond", "cap", "shared_keys"),
        ),
        "risk.exact_copies": (exact_copies, ("copies", "lone_copies")),
        "risk.population_uniqueness": (
            population_uniqueness,
            (
                "expected_uniques",
                "expected_matches",
                "specification_uniques",
                "specification_matches",
                "zayatz_uniques",
            ),
        ),
        "risk.special_uniques": (
            special_uniques,
            (
                *("special_uniques", "minimal_uniques", "mean_score", "largest_score", "dis", "largest_dis"),
                *("attribute_contribution", "level_contribution"),
            ),
        ),
        "risk.uniqueness": (
            uniqueness,
            ("sample_uniques", "population_uniques", "replicated_uniques", "share_in_small_groups"),
        ),
        "studies.intruder_uncertainty": (
            intruder_uncertainty,
            ("expected_match_risk", "true_match_rate", "false_match_rate", "unique_matches", "attribute_risk"),
        ),
    }.items()
    for output in outputs
}

# Outputs for which no closed reference is possible, and why; a method's key stands for all of its outputs.
NO_ORACLE: dict[str, str] = {
    "utility.summary.population": "only tables with a survey weight have it; tests/contract/test_survey_weights.py sums the weights",
    "utility.summary.design_effect": "only tables with a survey weight have it; tests/contract/test_survey_weights.py has Kish's formula",
    "risk.record_linkage": "its weights are learned step by step; tests/engine/matching/test_splink.py compares them with splink's, and "
    "tests/engine/risk/test_record_linkage.py learns them again by loops, links by loops, and deals the records of small tables in every order",
    "risk.bayesian_posterior": "it asks the models of the release; tests/engine/risk/test_bayesian_posterior.py sums over all guesses "
    "by brute force",
    "risk.membership_inference": "it looks at all datasets together; tests/engine/risk/test_membership_inference.py scores records by loops",
    "risk.population_uniqueness.pitman_uniques": "the likelihood has its largest value where no closed form says; "
    "tests/engine/risk/test_population_uniqueness.py holds it against a grid and the probability against a chain of draws",
    "risk.singling_out": "which predicates are tried and guessed is drawn at random; tests/engine/risk/test_singling_out.py counts them record by "
    "record, and averages the control over every way to draw it",
    "studies.calibration": "its tables come from a trained generator (trees, or ctgan); the scores are those of quality.*, "
    "which have oracles, and tests/engine/studies/test_calibration.py counts what is made of them",
    "studies.intruder_knowledge": "its rows are made of all datasets at the end; "
    "tests/engine/studies/test_intruder_knowledge.py holds every subset against loops over pairs of records and Shapley values against all orders",
    "studies.minimisation": "its sub-samples are drawn at random and anonymised; the scores are those of quality.*, which have "
    "oracles, and tests/engine/studies/test_minimisation.py holds the answer against them",
    "studies.risk_utility": "it draws tables of its own; the distances and the attack are those of utility.* and risk.*, which have "
    "oracles, and tests/engine/studies/test_risk_utility.py holds copies, costs and answers against plain counts",
    **{
        f"risk.{name}.detectable_excess": "it is the power of a test: tests/engine/attacks/test_power.py counts what simulated attacks find"
        for name in ("attribute_inference", "linkability")
    },
    **{
        f"studies.intruder_uncertainty.{name}": "made of all datasets at once by statistics.crossed_layout, which "
        "tests/engine/statistics/test_crossed_layout.py holds against R's aov"
        for name in ("dataset_share", "noise_share", "interaction_share")
    },
}
