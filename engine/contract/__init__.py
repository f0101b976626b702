"""Contract of every method, as tests that a package with a method of its own runs too: ``pytest --sfumato-method KEY``."""
