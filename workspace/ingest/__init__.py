"""Reading of files into microdata, and descriptions of their columns."""
