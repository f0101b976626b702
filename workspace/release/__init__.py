"""What leaves the building: the package of a run, the dossier of its documents, approval, and the released tables of other tools."""
