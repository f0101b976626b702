"""Values that all of Sfumato works on: variables, records, and how both are written."""
