"""Screens of the terminal app, one a file."""
