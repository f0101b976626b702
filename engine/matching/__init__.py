"""Matching of released records with confidential ones: what an intruder knows, candidates, record linkage."""
