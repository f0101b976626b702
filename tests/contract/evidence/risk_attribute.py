"""What ``risk.attribute`` must answer, and what must become of it when its tables change."""

from __future__ import annotations

from oracles import Answers, Case, learnt, matched, series
from relations import ALONE, LEARNT
from tables import RADIUS

from evidence import Evidence


def attribute(case: Case) -> dict[str, Answers]:
    if not case.released.linked:
        return {"risk": {series(): None}}
    known, similar = (matched(case, names) for names in (case.spec.known, case.spec.sensitive))
    found: dict[str, Answers] = {"risk": {series(): learnt(known, similar)}}
    if case.released.origin == "confidential":
        found["risk_excluding_self"] = {series(): learnt(known, similar, without_self=True)}
    return found


EVIDENCE = Evidence(
    oracle=attribute,
    outputs=("risk", "risk_excluding_self"),
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
    },
)
