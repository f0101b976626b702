"""Anonymisation: tables whose records hide among others. One method a file."""
