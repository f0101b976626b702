"""What ``risk.identification`` must answer, and what must become of it when its tables change."""

from __future__ import annotations

from oracles import Answers, Case, matched, of_matches, series
from relations import IDENTIFIED
from tables import RADIUS

from evidence import Evidence


def identification(case: Case) -> dict[str, Answers]:
    if not case.released.linked:
        return {name: {series(): None} for name in of_matches([set()])}
    names = dict.fromkeys([*case.spec.known, *case.spec.synthesised])
    return {name: {series(): value} for name, value in of_matches(matched(case, list(names))).items()}


EVIDENCE = Evidence(
    oracle=identification,
    outputs=("expected_match_risk", "true_match_rate", "false_match_rate", "unique_matches"),
    tiny=[
        ("linked", {"radius": RADIUS}),
        ("itself", {"radius": {"income": "open 5%"}}),
        ("linked", {"known": ["sex"], "synthesised": ["income"], "radius": {"income": "log 2%"}}),
        ("linked", {"known": ["joined", "size"], "synthesised": ["days"], "radius": {"joined": 1}}),
        ("unlinked", {"radius": RADIUS}),
    ],
    settings={"radius": RADIUS},
    expected=IDENTIFIED,
)
