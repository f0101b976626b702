"""One file format a file, found by listing this folder; what several share is `_name.py`."""
