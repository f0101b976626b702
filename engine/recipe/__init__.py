"""The recipe: its sections, what they require, and what is checked before anything is computed."""
