"""What ``studies.calibration`` must answer, and what must become of it when its tables change."""

from __future__ import annotations

from relations import OWN, Expected

from evidence import Evidence

EVIDENCE = Evidence(
    no_oracle=(
        "its tables come from a trained generator (trees, or ctgan); the scores are those of quality.*, "
        "which have oracles, and tests/engine/studies/test_calibration.py counts what is made of them"
    ),
    expected=dict.fromkeys(
        (
            *("rho", "rilm_numerical", "rilm_categorical", "nmi_v1", "nmi_v2", "one_minus_ilm", "non_suppressed"),
            *("generators", "originals", "anonymisations", "auc", "average_precision", "good", "suggested_threshold"),
            *("lost", "spurious", "sign_flip", "errors", "true_positive_rate", "false_positive_rate", "precision"),
            "error_rate",
        ),
        Expected(OWN, OWN, OWN, OWN, OWN, OWN, OWN, OWN),
    ),
)
