"""The place Findings: verdicts, results, studies, records at risk, and changes that would fix a verdict."""
