"""Studies: methods composed over a grid. One study a file."""
