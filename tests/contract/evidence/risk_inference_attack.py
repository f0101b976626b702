"""What ``risk.inference_attack`` must answer, and what must become of it when its tables change."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

from oracles import Answers, Case, agrees, in_given_bins, series, shows_levels
from relations import Expected, equals, higher, same

from evidence import Evidence


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


EVIDENCE = Evidence(
    oracle=inference_attack,
    outputs=("misclassification", "mean_absolute_error", "guess_misclassification", "guess_mean_absolute_error"),
    tiny=[
        ("linked", {"sensitive": "illness"}),
        ("unlinked", {"sensitive": "size", "known": ["region", "sex", "visits"], "fallback": "all"}),
        ("unlinked", {"sensitive": "income", "known": ["visits", "region"], "within": "10%"}),
        ("linked", {"sensitive": "days", "bins": {"visits": "width 2"}, "within": 1}),
        ("itself", {"sensitive": "region", "known": ["sex", "days"], "bins": {"days": "at 1, 4"}}),
        ("generalised", {"sensitive": "days"}),
        ("suppressed", {"sensitive": "joined", "known": ["sex", "size"], "within": 3}),
    ],
    settings={"sensitive": "days", "known": ["visits", "region"], "within": 1},
    expected={
        "misclassification": Expected(doubled=same, copy=same, permuted=higher, noise=equals(1)),
        "mean_absolute_error": Expected(doubled=same, copy=same, permuted=higher, noise=higher),
        "guess_misclassification": Expected(doubled=same, copy=same, permuted=same, noise=equals(1)),
        "guess_mean_absolute_error": Expected(doubled=same, copy=same, permuted=same, noise=higher),
    },
)
