"""Measures of disclosure risk: what a release reveals of people. One method a file."""
