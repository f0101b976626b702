"""Statistics of general use that no library has, at the level of arrays."""
