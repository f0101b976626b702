"""What ``risk.linkability`` must answer, and what must become of it when its tables change."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations

from oracles import Answers, Case, cells, half_rank, present, series
from relations import DEALT, JOINT, POWER, Expected, free, of_all_guesses, same, times

from evidence import Evidence
from sfumato.engine.data.microdata import Microdata

LINKED = Expected(
    doubled=free("of two equal nearest records either side picks one"), copy=same, permuted=JOINT, noise=JOINT
)


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


RANDOM = {"people": ["random"]}
"""The most vulnerable are whom tests/engine/adversary/test_targets.py says; what is asked of them is the same."""

WITHOUT = (
    *("attack_without_release", "control_without_release", "best_attack_success", "best_control_success"),
    *("best_attack_with_release", "best_control_with_release"),
)
"""What is right without the release, or by the variables of which it adds most: on halves that are drawn at random."""

EVIDENCE = Evidence(
    oracle=linkability,
    outputs=("attack_success", "baseline_success", "control_success", "excess_risk", "guesses"),
    no_oracle={
        "detectable_excess": "it is the power of a test: tests/engine/adversary/test_power.py counts what simulated attacks find",
        "excess_p_value": "it is drawn at random: tests/engine/adversary/test_permuted.py holds it against Fisher's test",
        "added_risk": "its halves of the controls are drawn at random: tests/engine/risk/test_added_risk.py knows what each person adds",
        "detectable_added_risk": "it is the power of a test: tests/engine/risk/test_added_risk.py counts what simulated attacks find",
        "largest_added_risk": "its halves are drawn at random: tests/engine/risk/test_added_risk.py knows what a leak adds",
        **dict.fromkeys(WITHOUT, "its halves are drawn at random: tests/engine/risk/test_added_risk.py counts by hand"),
        "largest_excess_risk": "its halves are drawn at random: tests/engine/risk/test_best_strategy.py chooses again by loops",
    },
    tiny=[
        ("linked", {**RANDOM}),
        ("unlinked", {**RANDOM, "known": ["region", "visits"], "other": ["days", "size", "income"], "neighbours": 2}),
        ("unlinked", {**RANDOM, "known": ["sex"], "other": ["size"], "neighbours": 3}),
        ("itself", {**RANDOM, "known": ["income"], "other": ["joined", "days"]}),
        ("few", {**RANDOM, "neighbours": 4}),
    ],
    expected={
        "attack_success": LINKED,
        "control_success": LINKED,
        "excess_risk": LINKED,
        "baseline_success": Expected(doubled=of_all_guesses(times(0.5)), copy=same, permuted=same, noise=same),
        "guesses": Expected(doubled=of_all_guesses(times(2)), copy=same, permuted=same, noise=same),
        "detectable_excess": POWER,
        **dict.fromkeys(
            ("added_risk", "detectable_added_risk", "largest_added_risk", *WITHOUT),
            Expected(*[free("halves of people and controls are dealt by values and names")] * 8),
        ),
        "excess_p_value": DEALT,
        "largest_excess_risk": Expected(*[free("other people are in each half, and choose other variables")] * 4),
    },
)
