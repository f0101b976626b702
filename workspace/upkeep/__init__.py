"""Care of a workspace: integrity, maintenance, and adopting a workspace of another account."""
