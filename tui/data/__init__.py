"""The place Data: the variables of the project's file."""
