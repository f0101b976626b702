"""Widgets of the terminal app: the paged grid, the plot, the heat map, and the parts that they are made of."""
