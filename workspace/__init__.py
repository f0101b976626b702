"""The workspace: projects, tables, runs, the queue and its worker, on a local disk."""
