"""What ``utility.margin_distance`` must answer, and what must become of it when its tables change."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

from oracles import Answers, Case, cells, in_bins, series, shows_levels
from relations import Expected, at_least, equals, free, higher, same

from evidence import Evidence


def margin_distance(case: Case) -> dict[str, Answers]:
    names = case.spec.variables
    hidden = {name for name in names if not shows_levels(case, name)}
    both = {
        name: tuple(in_bins(case, name, cells(data, name)) for data in (case.confidential, case.released))
        for name in names
        if name not in hidden
    }
    found: dict[str, Answers] = {"pair": {}, "mean_pair": {}, "mean_triple": {}}

    def apart(*of: str) -> Fraction:
        ours, theirs = (list(zip(*(both[name][side] for name in of), strict=True)) for side in (0, 1))
        shares = (
            abs(Fraction(theirs.count(value), len(theirs)) - Fraction(ours.count(value), len(ours)))
            for value in {*ours, *theirs}
        )
        return sum(shares, Fraction(0)) / 2

    for a, b in combinations(names, 2):
        found["pair"][series(a, other=b)] = None if {a, b} & hidden else apart(a, b)
    pairs = list(found["pair"].values())
    found["mean_pair"][series()] = None if hidden else sum(pairs, Fraction(0)) / len(pairs)
    if case.spec.ways == "triples":
        triples = None if hidden else [apart(*three) for three in combinations(names, 3)]
        found["mean_triple"][series()] = sum(triples, Fraction(0)) / len(triples) if triples else None
    return found


EVIDENCE = Evidence(
    oracle=margin_distance,
    outputs=("pair", "mean_pair", "mean_triple"),
    tiny=[
        (
            "linked",
            {
                "ways": "triples",
                "bins": {"days": "3 equal count", "visits": "width 2"},
                "variables": ["days", "visits", "region"],
            },
        ),
        ("unlinked", {"variables": ["size", "income", "sex"], "bins": {"income": "3 equal width"}}),
        ("generalised", {"variables": ["region", "days", "illness"]}),
    ],
    settings={"variables": ["days", "income", "region"], "ways": "triples"},
    expected={
        "pair": Expected(
            doubled=same,
            copy=equals(0),
            permuted=free("two that are dealt together stay together"),
            noise=at_least(0.5),
        ),
        **dict.fromkeys(
            ("mean_pair", "mean_triple"),
            Expected(doubled=same, copy=equals(0), permuted=higher, noise=at_least(0.5)),
        ),
    },
)
