"""Command line: one module for each group of commands. Textual is never imported here."""
