"""Recipes that ship with Sfumato."""
