"""Findings of the gate in few lines: one leak with all checks that see it, and leaks that one change fixes together.

The gate decides which findings are one leak (``Finding.leak``).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..gate.gate import Finding

_SIZE = re.compile(r" \(\d[\d,]* datasets? of [^()]*\)")
ABOVE = "as said above"


def group_by_advice(groups: Sequence[list[Finding]]) -> list[list[list[Finding]]]:
    """Group the leaks that share a line: those whose findings name no record and have the same advice."""
    found: dict[object, list[list[Finding]]] = {}
    for at, group in enumerate(groups):
        first = group[0]
        # A finding that names a record needs its own line; an average over attacks does not.
        found.setdefault(first.advice if first.advice and not first.records else at, []).append(group)
    return list(found.values())


def without_dataset_count(said: str) -> str:
    """Return the text of a finding without the number of datasets that were compared."""
    # That number stands in the summary and in the annex.
    return _SIZE.sub("", said)


class MentionedFindings:
    """Findings and advice that the pages before the annex have mentioned: the second time it is ``as said above``."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        self._found = {without_dataset_count(one.message) for one in findings}
        self._advice = set[str]()

    def finding_text(self, finding: Finding) -> str:
        """Return the text of a finding, or ``as said above`` where it was mentioned before."""
        brief = without_dataset_count(finding.message)
        if brief in self._found:
            return ABOVE
        self._found.add(brief)
        return brief

    def table_cells(self, groups: Sequence[list[Finding]]) -> list[str]:
        """Return the cells of a line: titles of the findings, what was found, and how to fix it."""
        titles = "; ".join(group[0].title for group in groups)
        others = [one.title for group in groups for one in group[1:]]
        found = _join_without_repeats(list(dict.fromkeys(self.finding_text(group[0]) for group in groups)))
        advice = groups[0][0].advice
        again = advice in self._advice
        self._advice.add(advice)
        return [
            titles + (f"; also seen by: {', '.join(others)}" if others else ""),
            found,
            "as above" if again and advice else advice,
        ]


def _join_without_repeats(texts: Sequence[str]) -> str:
    """Join the texts of several findings; an ending that all have in common is written once."""
    ends = {one.rpartition("; ")[2] for one in texts}
    if len(texts) < 2 or len(ends) > 1:
        return "; ".join(texts)
    return f"{'; '.join(one.rpartition('; ')[0] for one in texts)}; of each: {ends.pop()}"
