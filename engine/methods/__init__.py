"""How a method is declared, found and called, and what it returns."""
