"""Measures of data quality under anonymisation, one method a file."""
