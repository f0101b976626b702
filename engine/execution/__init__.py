"""A run as a graph of tasks, and the result rows of each task."""
