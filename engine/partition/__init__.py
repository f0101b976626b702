"""Equivalence classes, hierarchies, labels, micro-aggregation: what anonymised tables are made of."""
