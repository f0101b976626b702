"""What a workspace is on the disk: database, migrations, tables, backup, and what is left behind."""
