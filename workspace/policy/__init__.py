"""Policy of the office that releases, and how much of each kind of output may be disclosed."""
