"""Runs and their tasks: the queue, the worker, its processes, and one task done."""
