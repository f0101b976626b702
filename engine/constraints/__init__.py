"""Rules that records must satisfy: evaluated, mined from data, and kept by redraws."""
