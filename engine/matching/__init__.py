"""Matching of released records with confidential ones: intruder's knowledge, candidates, record linkage."""
