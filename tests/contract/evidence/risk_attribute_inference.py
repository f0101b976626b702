"""What ``risk.attribute_inference`` must answer, and what must become of it when its tables change."""

from __future__ import annotations

import math
from fractions import Fraction

from oracles import Answers, Case, agrees, cells, half_rank, present, series
from relations import DEALT, JOINT, POWER, Expected, free, not_higher, of_all_guesses, same, times
from tables import RADIUS

from evidence import Evidence
from sfumato.engine.data.microdata import Microdata

ALL_GUESSES = of_all_guesses(same)

CONFIDENT = free("which guesses are the most confident hangs on the release")


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
    names = ("attack_success", "baseline_success", "control_success", "excess_risk", "guesses")
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
        values = [v for v in cells(controls, name) if v is not None or case.kind(name).has_levels]
        radius = case.spec.radius.get(name)
        agree = {v: sum(agrees(radius, w, v) for w in values) for v in values}
        best = [v for v, times in agree.items() if times == max(agree.values())]
        truth = [v for v in case.confidential_values(name) if v is not None or case.kind(name).has_levels]
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


RANDOM = {"people": ["random"]}
"""The most vulnerable are whom tests/engine/adversary/test_targets.py says; what is asked of them is the same."""

WITHOUT = (
    *("attack_without_release", "control_without_release", "best_attack_success", "best_control_success"),
    *("best_attack_with_release", "best_control_with_release"),
)
"""What is right without the release, or by the variables of which it adds most: on halves that are drawn at random."""

EVIDENCE = Evidence(
    oracle=attribute_inference,
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
        ("linked", {**RANDOM, "radius": RADIUS}),
        (
            "linked",
            {
                **RANDOM,
                "known": ["visits", "joined"],
                "radius": {"days": "open 1", "income": "log 8%"},
                "neighbours": 3,
            },
        ),
        ("unlinked", {**RANDOM, "known": ["days", "size"], "sensitive": ["region", "joined"], "radius": {"joined": 3}}),
        ("unlinked", {**RANDOM, "known": ["sex"], "sensitive": ["days", "size"], "confident": 0.4}),
        ("itself", {**RANDOM, "known": ["region", "income"], "sensitive": ["visits"], "neighbours": 2}),
        ("generalised", {**RANDOM, "known": ["sex"], "sensitive": ["illness", "visits"]}),
        ("micro_aggregated", {**RANDOM, "known": ["visits", "size"], "sensitive": ["sex", "days"]}),
        ("suppressed", {**RANDOM, "known": ["region", "visits"], "sensitive": ["illness"]}),
    ],
    settings={"radius": RADIUS},
    expected={
        "attack_success": Expected(doubled=ALL_GUESSES, copy=same, permuted=not_higher, noise=not_higher),
        "control_success": Expected(doubled=ALL_GUESSES, copy=same, permuted=JOINT, noise=not_higher),
        "excess_risk": Expected(doubled=ALL_GUESSES, copy=same, permuted=not_higher, noise=not_higher),
        "baseline_success": Expected(doubled=ALL_GUESSES, copy=same, permuted=CONFIDENT, noise=CONFIDENT),
        "guesses": Expected(doubled=of_all_guesses(times(2)), copy=same, permuted=CONFIDENT, noise=CONFIDENT),
        "detectable_excess": POWER,
        **dict.fromkeys(
            ("added_risk", "detectable_added_risk", "largest_added_risk", *WITHOUT),
            Expected(*[free("halves of people and controls are dealt by values and names")] * 8),
        ),
        "excess_p_value": DEALT,
        "largest_excess_risk": Expected(*[free("other people are in each half, and choose other variables")] * 4),
    },
)
