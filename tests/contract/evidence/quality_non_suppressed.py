"""What ``quality.non_suppressed`` must answer, and what must become of it when its tables change."""

from __future__ import annotations

from fractions import Fraction

from oracles import Answers, Case, series
from relations import ONE

from evidence import Evidence


def non_suppressed(case: Case) -> dict[str, Answers]:
    share = Fraction(len(case.released), len(case.confidential))
    # the tables of a case are whole: no record of a file was dropped before
    return {name: {series(): None if share > 1 else share} for name in ("share", "file_share")}


EVIDENCE = Evidence(
    oracle=non_suppressed,
    outputs=("share", "file_share"),
    tiny=[("unlinked", {}), ("suppressed", {})],
    expected={
        "share": ONE,
        "file_share": ONE,
    },
)
