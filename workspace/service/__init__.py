"""What people do with a workspace, one use case a module: import, prepare a run, delete, release."""
