"""Margins of a table of categories: which are kept, how they are protected and made consistent, and records drawn from them alone."""
