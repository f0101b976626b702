"""State of an app session: workspace, settings, messages, jobs, and files outside the workspace."""
