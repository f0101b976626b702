"""Runs and their tasks: the queue, the worker, its processes, and the computation of one task."""
