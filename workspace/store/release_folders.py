"""The two folders of a release, and the file in each that lists the others with their hashes."""

PUBLIC_FILES, INTERNAL = "public", "internal"
MANIFEST = "manifest.json"
