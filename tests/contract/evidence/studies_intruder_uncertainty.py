"""What ``studies.intruder_uncertainty`` must answer, and what must become of it when its tables change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oracles import Answers, Case, largest_of_matches, learnt, matched, of_matches, present, series
from relations import IDENTIFIED, LARGEST_IDENTIFIED, LARGEST_LEARNT, LEARNT, TOGETHER
from tables import RADIUS

from evidence import Evidence


def swept(case: Case, believed: Sequence[Any], lacking: Sequence[bool] | None = None) -> dict[str, Any]:
    """Both risks of the sweep where the intruder believes these values of the uncertain variable, or ``lacking`` any."""
    spec = case.spec
    certain = [name for name in spec.known if name != spec.variable]
    without = matched(case, certain)
    told = matched(case, [spec.variable], {spec.variable: believed})
    unsure = lacking or [False] * len(without)
    known = [alike if free else alike & near for alike, near, free in zip(without, told, unsure, strict=True)]

    def counted_with(own: list[set[int]], names: Sequence[str]) -> list[set[int]]:
        return [alike & near for alike, near in zip(own, matched(case, names), strict=True)]

    # What is believed, and ignoring it: by what is known alone, with the replaced values, with the sensitive ones.
    ways = [(own, counted_with(own, spec.synthesised), counted_with(own, spec.sensitive)) for own in (known, without)]
    _, identified, similar = ways[0]
    return {
        **of_matches(identified),
        **largest_of_matches([found for kept, replaced, _ in ways for found in (kept, replaced)]),
        "attribute_risk": learnt(known, similar),
        "largest_attribute_risk": max(learnt(kept, near) for kept, _, near in ways),
    }


FLIPPED = {"0": "1", "1": "0"}


def intruder_uncertainty(case: Case, level: float) -> dict[str, Answers]:
    """Where chance decides nothing: at level 0, or at level 1 of not knowing and of a binary variable taken wrongly."""
    own = case.confidential_values(case.spec.variable)
    if level == 0:
        found = swept(case, own)
    elif case.spec.model == "unknown":
        found = swept(case, own, [True] * len(own))
    else:
        occurring = set(present(own))
        found = swept(case, [FLIPPED.get(value, value) if len(occurring) > 1 else value for value in own])
    return {name: {series(): value} for name, value in found.items()}


EVIDENCE = Evidence(
    oracle=intruder_uncertainty,
    outputs=(*IDENTIFIED, *LARGEST_IDENTIFIED, "attribute_risk", "largest_attribute_risk"),
    no_oracle=dict.fromkeys(
        ("dataset_share", "noise_share", "interaction_share"),
        "made of all datasets at once by statistics.crossed_layout, which "
        "tests/engine/statistics/test_crossed_layout.py holds against R's aov",
    ),
    tiny=[
        ("linked", {"variable": "visits", "radius": {"income": "5%", "visits": 1}, "levels": [0.0]}),
        ("linked", {"variable": "visits", "model": "unknown", "radius": RADIUS, "levels": [0.0, 1.0]}),
        ("linked", {"variable": "region", "model": "unknown", "radius": RADIUS, "levels": [1.0]}),
        ("linked", {"variable": "sex", "model": "misclassification", "radius": RADIUS, "levels": [1.0]}),
        ("itself", {"variable": "visits", "model": "unknown", "radius": RADIUS, "levels": [0.0, 1.0]}),
    ],
    settings={"variable": "visits", "levels": [0.0], "radius": RADIUS},
    expected={
        **IDENTIFIED,
        **LARGEST_IDENTIFIED,
        "attribute_risk": LEARNT,
        "largest_attribute_risk": LARGEST_LEARNT,
        **dict.fromkeys(("dataset_share", "noise_share", "interaction_share"), TOGETHER),
    },
)
