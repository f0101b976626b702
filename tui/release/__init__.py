"""The place Release: the contents of a release, the gate's findings, and the decision."""
