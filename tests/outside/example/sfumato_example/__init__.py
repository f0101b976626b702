"""Four methods for Sfumato: a risk with an array of single records, a data quality, a study and a synthesis."""
