"""The command line: one file per group of commands. Textual is never imported here."""
