"""What ``risk.record_audit`` must answer, and what must become of it when its tables change."""

from __future__ import annotations

from relations import Expected, free

from evidence import Evidence

EVIDENCE = Evidence(
    no_oracle=(
        "it makes releases of its own; tests/engine/risk/test_record_audit.py counts features by loops, and compares areas with "
        "exact likelihood ratios, closed forms and copies"
    ),
    expected=dict.fromkeys(
        (
            *(
                "auc",
                "largest_auc",
                "values_auc",
                "values_largest_auc",
                "given_away",
                "tpr",
                "advantage",
                "reconstruction",
                "memorisation",
            ),
            *("epsilon_lower", "epsilon_guesses", "mu_lower", "p_value", "detectable_auc"),
        ),
        Expected(*[free("it makes releases of its own: its own tests change tables")] * 8),
    ),
)
