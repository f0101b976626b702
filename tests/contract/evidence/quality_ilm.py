"""What ``quality.ilm`` must answer, and what must become of it when its tables change."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from oracles import NUMERICAL, Answers, Case, class_of, range_lost, series
from relations import CLASSES, equals

from evidence import Evidence


def ilm(case: Case) -> dict[str, Answers]:
    names = [name for name in case.spec.quasi_identifiers if case.kind(name) in NUMERICAL]
    loss = sum((range_lost(case, name, class_of(case, case.spec.quasi_identifiers)) for name in names), Fraction(0))
    return {"ilm": {series(): loss}, "one_minus_ilm": {series(): 1 - loss}}


EVIDENCE = Evidence(
    oracle=ilm,
    outputs=("ilm", "one_minus_ilm"),
    tiny=[
        ("linked", {}),
        ("linked", {"quasi_identifiers": ["days", "income", "sex"]}),
        ("generalised", {}),
        ("suppressed", {}),
    ],
    settings={"quasi_identifiers": ["region", "days"]},
    expected={
        "ilm": replace(CLASSES, copy=equals(0)),
        "one_minus_ilm": CLASSES,
    },
)
