"""The place Release: what would be released, the gate's findings, the decision."""
