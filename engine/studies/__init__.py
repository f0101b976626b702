"""Studies: methods evaluated over a grid. One study a file."""
