"""What ``risk.bayesian_posterior`` must answer, and what must become of it when its tables change."""

from __future__ import annotations

from relations import Expected, free

from evidence import Evidence

EVIDENCE = Evidence(
    no_oracle=(
        "it asks the models of the release; tests/engine/risk/test_bayesian_posterior.py sums over all guesses "
        "by brute force"
    ),
    expected=dict.fromkeys(
        (
            *("posterior_risk", "prior_risk", "posterior_of_truth", "nearly_certain", "right_both", "gained", "lost"),
            *("wrong_both", "risk_ratio", "largest_risk_ratio", "expected_difference", "posterior_risk_of_first"),
            *("own_record_risk", "step_error", "effective_draws"),
        ),
        Expected(*[free("it asks the models of the release: its own tests change tables")] * 8),
    ),
)
