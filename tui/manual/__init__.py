"""The manual in the app and on the command line, and help on keys."""
