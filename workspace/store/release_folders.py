"""Names of the two folders of a release, and of the file in each that lists the others with their hashes."""

PUBLIC_FOLDER, INTERNAL_FOLDER = "public", "internal"
MANIFEST_FILE = "manifest.json"
