"""Use cases of a workspace, one in each module: import, preparation of a run, deletion, release."""
