"""Plan of a project: drafts, edits that keep comments, and what makes a run of it."""
