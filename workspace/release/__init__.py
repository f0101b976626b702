"""What leaves: a run's package, and the released tables of other tools."""
