"""Basic types of Sfumato: variables, records, conditions and terms, and how they are written."""
