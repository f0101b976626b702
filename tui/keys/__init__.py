"""The acts of the app and their keys."""
