"""What a session of the app holds: its workspace, settings, messages, jobs, and what is written outside it."""
