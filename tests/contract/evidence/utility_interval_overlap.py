"""What ``utility.interval_overlap`` must answer, and what must become of it when its tables change."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations_with_replacement

from oracles import Answers, Case, Interval, Series, cells, coefficients, present, quantile, series, variance
from relations import UNIT, Expected, at_most, each, equals, free, higher, lower, same, times
from scipy import stats

from evidence import Evidence
from sfumato.engine.data.microdata import Microdata
from sfumato.engine.data.schema import Kind


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
        for many in Counter(drawn).values():
            ways //= math.factorial(many)
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


EVIDENCE = Evidence(
    oracle=interval_overlap,
    outputs=("overlap", "estimate", "standard_error"),
    tiny=[
        ("linked", {"means": ["days", "illness"], "confidence": 0.9}),
        ("unlinked", {"means": ["income"]}),
        ("itself", {"means": ["income", "sex"]}),
        ("few", {"quantiles": ["income", "days"], "probabilities": [0.0, 0.3, 0.5]}),
    ],
    larger=[
        ("linked", {"models": ["days ~ region + visits", "logit: illness ~ visits + sex"], "confidence": 0.9}),
        ("unlinked", {"models": ["income ~ size + days"]}),
    ],
    settings={"means": ["days"], "quantiles": ["income"], "probabilities": [0.5]},
    expected={
        "overlap": Expected(
            doubled=free("intervals of more records are narrower"), copy=equals(1), permuted=equals(1), noise=at_most(0)
        ),
        "estimate": Expected(
            doubled=each(lambda before, after: abs(after - before) < 0.05 * before),
            copy=same,
            permuted=same,
            noise=higher,
            unit=times(UNIT, "income"),
        ),
        "standard_error": Expected(doubled=lower, copy=same, permuted=same, noise=higher, unit=times(UNIT, "income")),
    },
)
