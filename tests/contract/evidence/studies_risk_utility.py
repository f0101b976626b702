"""What ``studies.risk_utility`` must answer, and what must become of it when its tables change."""

from __future__ import annotations

from relations import OWN, Expected

from evidence import Evidence

EVIDENCE = Evidence(
    no_oracle=(
        "it draws tables of its own; the distances and the attack are those of utility.* and risk.*, which have "
        "oracles, and tests/engine/studies/test_risk_utility.py holds copies, costs and answers against plain counts"
    ),
    expected=dict.fromkeys(
        (
            *("marginal", "conditional", "regression", "misclassification", "mean_absolute_error", "exact_copies"),
            *("unique_records", "epsilon_release", "least_epsilon", "largest_epsilon"),
            *("conditional_given", "coefficient_deviation"),
        ),
        Expected(OWN, OWN, OWN, OWN, OWN, OWN, OWN, OWN),
    ),
)
