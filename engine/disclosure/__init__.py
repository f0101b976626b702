"""What a release shows of single confidential records, whatever its recipe measured: copies, lone values, tails, the m datasets together."""
