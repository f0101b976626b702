"""Data quality under anonymisation. One method a file."""
