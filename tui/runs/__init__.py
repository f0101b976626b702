"""The place Runs: the runs of a project, followed and compared."""
