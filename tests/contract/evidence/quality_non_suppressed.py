"""What ``quality.non_suppressed`` must answer, and what must become of it when its tables change."""

from __future__ import annotations

from fractions import Fraction

from oracles import Answers, Case, series
from relations import ONE

from evidence import Evidence


def non_suppressed(case: Case) -> dict[str, Answers]:
    share = Fraction(len(case.released), len(case.confidential))
    return {"share": {series(): None if share > 1 else share}}


EVIDENCE = Evidence(
    oracle=non_suppressed,
    outputs=("share",),
    tiny=[("unlinked", {}), ("suppressed", {})],
    expected={
        "share": ONE,
    },
)
