"""The recipe: its sections, what they require, and the checks before anything is computed."""
