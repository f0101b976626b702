"""Package of a release: dossier of its documents, approval, released files; and released tables of other tools."""
