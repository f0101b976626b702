"""Components of attacks for risks and the gate: nearest records, targets, attackers, shadows, evidence of copies."""
