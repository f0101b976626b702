"""What every method must satisfy, as tests that a package with a method of its own runs too: ``pytest --sfumato-method KEY``."""
