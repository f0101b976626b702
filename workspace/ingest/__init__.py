"""From strangers' files to microdata, and what their columns look like."""
