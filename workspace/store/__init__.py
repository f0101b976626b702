"""A workspace on the disk: database, migrations, tables, backup, and what is left behind."""
