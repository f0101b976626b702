"""What ``risk.correct_attribution`` must answer, and what must become of it when its tables change."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from oracles import Answers, Case, in_given_bins, series, subsets_of
from relations import JOINT, NOT_SYNTHESISED, OWN_TABLE, Expected, at_most, equals, free, lower, not_higher, same

from evidence import Evidence


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
    """By all keys, and the largest over the subsets of them."""
    found = by_keys(case, case.spec.keys)
    every = [by_keys(case, keys) for keys in subsets_of(case.spec.keys)]
    for name in LARGEST:
        found[f"largest_{name}"] = {
            key: None if value is None else max(one[name][key] for one in every) for key, value in found[name].items()
        }
    return found


LARGEST = ("dcap", "disco", "disco_beyond")


def by_keys(case: Case, keys: Sequence[str]) -> dict[str, Answers]:
    """Record by record: whom the intruder meets, with what value, and whether it is the record's own."""
    outputs = ("cap", "dcap", "tcap", "disco", "disco_beyond")
    found: dict[str, Answers] = {name: {} for name in outputs}
    used = {*keys, *case.spec.sensitive}
    means = {n for n in used if case.kind(n) is not case.released.schema[n].kind} - set(case.spec.bins)
    if means | (used & case.released.generalised):
        return {name: {series(): None} for name in (*outputs, "shared_keys")}
    single = [in_given_bins(case, name, case.confidential_values(name)) for name in keys]
    ours = list(zip(*single, strict=True)) if keys else [()] * len(case.confidential)
    drawn = (in_given_bins(case, name, case.released_values(name)) for name in keys)
    theirs = list(zip(*drawn, strict=True)) if keys else [()] * len(case.released)
    n, m = len(ours), len(theirs)
    found["shared_keys"] = {series(): Fraction(sum(key in theirs for key in ours), n)}
    for name in case.spec.sensitive:
        values = [
            in_given_bins(case, name, data) for data in (case.confidential_values(name), case.released_values(name))
        ]
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


EVIDENCE = Evidence(
    oracle=correct_attribution,
    outputs=("dcap", "tcap", "disco", "disco_beyond", "cap", "shared_keys", *(f"largest_{name}" for name in LARGEST)),
    tiny=[
        ("linked", {"bins": {"income": "2 equal count"}}),
        ("unlinked", {"keys": ["region"], "sensitive": ["sex", "size"], "obvious": 0.5, "obvious_records": 2}),
        ("unlinked", {"keys": ["sex", "days"], "sensitive": ["illness"], "bins": {"days": "at 1, 4"}, "obvious": 0.6}),
        ("itself", {"keys": ["region", "size"], "sensitive": ["joined"]}),
        ("generalised", {"keys": ["sex"], "sensitive": ["illness", "days"]}),
        ("micro_aggregated", {"keys": ["visits"], "sensitive": ["days"], "bins": {"visits": "width 2"}}),
        ("suppressed", {"keys": ["region"], "sensitive": ["days"]}),
    ],
    settings={"keys": ["region", "visits"], "sensitive": ["days"], "obvious": 0.5},
    expected={
        "dcap": Expected(doubled=same, copy=same, permuted=lower, noise=equals(0)),
        "tcap": Expected(doubled=same, copy=same, permuted=lower, noise=at_most(0)),
        "disco": Expected(doubled=same, copy=same, permuted=lower, noise=equals(0)),
        "disco_beyond": Expected(
            doubled=free("twice as many records make a share of a key count"),
            copy=same,
            permuted=lower,
            noise=equals(0),
        ),
        "largest_dcap": Expected(doubled=same, copy=same, permuted=not_higher, noise=equals(0)),
        "largest_disco": Expected(doubled=same, copy=same, permuted=not_higher, noise=equals(0)),
        "largest_disco_beyond": Expected(
            doubled=free("twice as many records make a share of a key count"),
            copy=same,
            permuted=not_higher,
            noise=equals(0),
        ),
        "cap": Expected(doubled=same, copy=same, permuted=JOINT, noise=OWN_TABLE),
        "shared_keys": Expected(doubled=same, copy=equals(1), permuted=NOT_SYNTHESISED, noise=NOT_SYNTHESISED),
    },
)
