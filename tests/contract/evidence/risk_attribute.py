"""What ``risk.attribute`` must answer, and what must become of it when its tables change."""

from __future__ import annotations

from oracles import Answers, Case, learnt, matched, series, subsets_of
from relations import ALONE, LARGEST_LEARNT, LEARNT
from tables import RADIUS

from evidence import Evidence


def attribute(case: Case) -> dict[str, Answers]:
    one_by_one = {name: [name] for name in case.spec.sensitive}
    learnt_of = one_by_one | ({"": list(one_by_one)} if len(one_by_one) > 1 else {})
    if not case.released.linked:
        return {"risk": {series(): None}, "largest_risk": {series(name): None for name in learnt_of}}
    known, similar = (matched(case, names) for names in (case.spec.known, case.spec.sensitive))
    found: dict[str, Answers] = {"risk": {series(): learnt(known, similar)}}
    candidates = [matched(case, names) for names in subsets_of(case.spec.known)]
    found["largest_risk"] = {
        series(name): max(learnt(alike, matched(case, names)) for alike in candidates)
        for name, names in learnt_of.items()
    }
    if case.released.origin == "confidential":
        found["risk_excluding_self"] = {series(): learnt(known, similar, without_self=True)}
    return found


EVIDENCE = Evidence(
    oracle=attribute,
    outputs=("risk", "risk_excluding_self", "largest_risk"),
    tiny=[
        ("linked", {"radius": RADIUS}),
        ("linked", {"known": ["visits"], "sensitive": ["income"], "radius": {"visits": "open 1", "income": "log 8%"}}),
        ("linked", {"known": ["size"], "sensitive": ["days"]}),
        ("unlinked", {"radius": RADIUS}),
        ("itself", {"radius": RADIUS}),
    ],
    settings={"radius": RADIUS},
    expected={
        "risk": LEARNT,
        "risk_excluding_self": ALONE,
        "largest_risk": LARGEST_LEARNT,
    },
)
