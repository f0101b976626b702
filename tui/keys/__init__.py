"""The acts of the app and the keys that they have."""
