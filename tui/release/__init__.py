"""The place Release: what would leave, the gate's findings, the decision."""
