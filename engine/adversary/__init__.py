"""Attack components of risks and the gate: nearest records, targets, attackers, calibration, shadow releases, evidence of people and copies."""
