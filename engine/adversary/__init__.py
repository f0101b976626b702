"""What risks and the gate look with: nearest records, targets, attackers, calibration, shadow releases, evidence of people and copies."""
