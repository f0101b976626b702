"""Releases that are dealt from families with random parameters, and what the gate says of them."""
