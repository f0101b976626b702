"""Disclosure risk: what the release gives away. One method a file."""
