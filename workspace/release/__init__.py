"""What leaves: the package of a run, its documents' dossier, approval, and the released tables of other tools."""
