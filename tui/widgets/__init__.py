"""Widgets of the terminal app: the paged grid, the plot, and what they are made of."""
