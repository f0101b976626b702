"""Margins of a table of categories: chosen, protected, made consistent, and records drawn from them alone."""
