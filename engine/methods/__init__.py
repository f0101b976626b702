"""Methods: how one is declared, found and called, and what it returns."""
