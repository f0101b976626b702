"""The place Findings: verdicts, numbers, studies, records at risk, and what would change them."""
