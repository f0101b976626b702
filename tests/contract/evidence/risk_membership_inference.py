"""What ``risk.membership_inference`` must answer, and what must become of it when its tables change."""

from __future__ import annotations

from relations import Expected, free

from evidence import Evidence

EVIDENCE = Evidence(
    no_oracle="it looks at all datasets together; tests/engine/risk/test_membership_inference.py scores records by loops",
    expected=dict.fromkeys(
        (
            *(
                "auc",
                "attack_success",
                "baseline_success",
                "control_success",
                "control_without_release",
                "excess_risk",
                "detectable_excess",
                "added_risk",
                "detectable_added_risk",
                "guesses",
            ),
            *("family_auc", "family_tpr", "p_value", "detectable_auc"),
        ),
        Expected(*[free("it looks at all datasets: its own tests change tables")] * 8),
    ),
)
