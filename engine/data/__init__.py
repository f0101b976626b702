"""The values that everything works on: variables, records, and how both are written."""
