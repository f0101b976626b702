"""What screens and commands read of a workspace. Nothing is written here."""
