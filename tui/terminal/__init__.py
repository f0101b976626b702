"""Code that depends on private parts of Textual, and on how terminals behave."""
