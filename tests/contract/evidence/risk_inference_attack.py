"""What ``risk.inference_attack`` must answer, and what must become of it when its tables change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from oracles import Answers, Case, agrees, in_given_bins, series, shows_levels, subsets_of
from relations import Expected, equals, higher, not_lower, same

from evidence import Evidence


def inference_attack(case: Case) -> dict[str, Answers]:
    """Every record by itself: whom it agrees with on most of what is known, and what these have in common or on average."""
    name, numbers = case.spec.sensitive, not case.kind(case.spec.sensitive).has_levels
    either = ("misclassification", "mean_absolute_error")
    prefixes = ("", "least_", "guess_")
    not_one: dict[str, Answers] = {f"{prefix}{one}": {series(): None} for one in either for prefix in prefixes}
    if not all(shows_levels(case, other) for other in (name, *case.spec.known)):
        return not_one
    ours, theirs = case.confidential_values(name), case.released_values(name)
    usable = [j for j, value in enumerate(theirs) if value is not None or not numbers]
    if not usable:
        return not_one

    def errors(names: Sequence[str]) -> dict[str, Fraction]:
        known = _rows([in_given_bins(case, other, case.confidential_values(other)) for other in names], len(ours))
        offered = _rows([in_given_bins(case, other, case.released_values(other)) for other in names], len(theirs))
        wrong, distance = [], []
        for own, truth in zip(known, ours, strict=True):
            agreeing = {j: sum(a == b for a, b in zip(own, offered[j], strict=True)) for j in usable}
            most = max(agreeing.values()) if case.spec.fallback == "nearest" else len(own)
            asked = [j for j in usable if agreeing[j] == most] or usable
            values = [theirs[j] for j in asked]
            if not numbers:
                counts = Counter(values)
                modes = [value for value in counts if counts[value] == max(counts.values())]
                wrong.append(1 - Fraction(truth in modes, len(modes)))
            elif truth is not None:
                mean = sum(values) / Fraction(len(values))
                distance.append(abs(mean - truth))
                wrong.append(Fraction(not agrees(case.spec.within, truth, mean)))
        said = {"mean_absolute_error": sum(distance) / Fraction(len(distance))} if numbers else {}
        return said | (
            {"misclassification": sum(wrong) / Fraction(len(wrong))} if not numbers or case.spec.within else {}
        )

    every = {chosen: errors(chosen) for chosen in map(tuple, subsets_of(list(case.spec.known)))}
    found: dict[str, Answers] = {}
    for one in every[()]:
        found[one] = {series(name): every[tuple(case.spec.known)][one]}
        found[f"guess_{one}"] = {series(name): every[()][one]}
        found[f"least_{one}"] = {series(name): min(errors[one] for errors in every.values())}
    return found


def _rows(columns: Sequence[Sequence[Any]], records: int) -> list[tuple[Any, ...]]:
    return list(zip(*columns, strict=True)) if columns else [()] * records


EVIDENCE = Evidence(
    oracle=inference_attack,
    outputs=tuple(
        f"{prefix}{one}" for prefix in ("", "least_", "guess_") for one in ("misclassification", "mean_absolute_error")
    ),
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
        # Who uses nothing that is known still guesses.
        "least_misclassification": Expected(doubled=same, copy=same, permuted=not_lower, noise=equals(1)),
        "least_mean_absolute_error": Expected(doubled=same, copy=same, permuted=not_lower, noise=higher),
        "guess_misclassification": Expected(doubled=same, copy=same, permuted=same, noise=equals(1)),
        "guess_mean_absolute_error": Expected(doubled=same, copy=same, permuted=same, noise=higher),
    },
)
