"""What ``studies.intruder_knowledge`` must answer, and what must become of it when its tables change."""

from __future__ import annotations

from relations import Expected, free

from evidence import Evidence

EVIDENCE = Evidence(
    no_oracle=(
        "its rows are made of all datasets at the end; "
        "tests/engine/studies/test_intruder_knowledge.py holds every subset against loops over pairs of records and Shapley values against all orders"
    ),
    expected=dict.fromkeys(
        (
            *("expected_match_risk", "true_match_rate", "largest_risk", "shapley_risk", "added_risk", "risk_without"),
            *("lowering_share", "coarsen_first"),
        ),
        Expected(
            *[free("all its rows are made of all datasets at the end: its own tests double, copy and permute")] * 8
        ),
    ),
)
