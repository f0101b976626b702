"""Shared mathematics, at the level of arrays."""
