"""Measures of utility, what a release preserves of the data, one method a file."""
