"""The gate: what is examined before a release, what was found, and the one answer."""
