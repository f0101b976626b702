"""What ``studies.minimisation`` must answer, and what must become of it when its tables change."""

from __future__ import annotations

from relations import OWN, Expected

from evidence import Evidence

EVIDENCE = Evidence(
    no_oracle=(
        "its sub-samples are drawn at random and anonymised; the scores are those of quality.*, which have "
        "oracles, and tests/engine/studies/test_minimisation.py holds the answer against them"
    ),
    expected=dict.fromkeys(
        ("rho", "rilm_categorical", "nmi", "non_suppressed", "passing", "smallest_size"),
        Expected(OWN, OWN, OWN, OWN, OWN, OWN, OWN, OWN),
    ),
)
