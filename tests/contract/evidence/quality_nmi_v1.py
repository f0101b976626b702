"""What ``quality.nmi_v1`` must answer, and what must become of it when its tables change."""

from __future__ import annotations

from oracles import Answers, Case, columnwise, information
from relations import NMI

from evidence import Evidence


def nmi_v1(case: Case) -> dict[str, Answers]:
    return columnwise(case, ("nmi", "unscaled"), "minimum_nmi", information("original"))


EVIDENCE = Evidence(
    oracle=nmi_v1,
    outputs=("nmi", "unscaled", "minimum_nmi"),
    tiny=[("linked", {"variables": ["days", "income"]}), ("suppressed", {"variables": ["visits"]})],
    larger=[("linked", {"variables": ["income"]})],
    settings={"variables": ["income"]},
    expected={
        "nmi": NMI,
        "unscaled": NMI,
        "minimum_nmi": NMI,
    },
)
