"""The command line: one file a group of commands. Textual is never imported here."""
