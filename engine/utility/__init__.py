"""Utility: what the release keeps. One method a file."""
