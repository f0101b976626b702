"""Tables in files: formats of tau-ARGUS, a priori files, and tables as they are printed."""
