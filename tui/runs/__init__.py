"""The place Runs: the runs of a project, compared and followed."""
