"""Synthesis: models that draw released values. One method a file."""
