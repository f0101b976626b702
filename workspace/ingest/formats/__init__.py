"""File formats, one a module, found by listing this folder; what several share is `_name.py`."""
