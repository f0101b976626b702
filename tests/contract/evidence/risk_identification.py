"""What ``risk.identification`` must answer, and what must become of it when its tables change."""

from __future__ import annotations

from oracles import Answers, Case, largest_of_matches, matched, of_matches, series, subsets_of
from relations import IDENTIFIED, LARGEST_IDENTIFIED
from tables import RADIUS

from evidence import Evidence

LARGEST = ("largest_expected_match_risk", "largest_true_match_rate")


def identification(case: Case) -> dict[str, Answers]:
    if not case.released.linked:
        return {name: {series(): None} for name in (*of_matches([set()]), *LARGEST)}
    names = list(dict.fromkeys([*case.spec.known, *case.spec.synthesised]))
    largest = largest_of_matches([matched(case, chosen) for chosen in subsets_of(names)])
    return {name: {series(): value} for name, value in (of_matches(matched(case, names)) | largest).items()}


EVIDENCE = Evidence(
    oracle=identification,
    outputs=("expected_match_risk", "true_match_rate", "false_match_rate", "unique_matches", *LARGEST),
    tiny=[
        ("linked", {"radius": RADIUS}),
        ("itself", {"radius": {"income": "open 5%"}}),
        ("linked", {"known": ["sex"], "synthesised": ["income"], "radius": {"income": "log 2%"}}),
        ("linked", {"known": ["joined", "size"], "synthesised": ["days"], "radius": {"joined": 1}}),
        ("unlinked", {"radius": RADIUS}),
    ],
    settings={"radius": RADIUS},
    expected={**IDENTIFIED, **LARGEST_IDENTIFIED},
)
