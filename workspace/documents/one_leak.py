"""Findings of the gate in few lines: a leak with the checks that see it, and those that one change fixes together.

Which findings are one leak the gate decides (``Finding.leak``). Findings that name no record, such as what an attack gains on average,
stand in one
line where the same advice fixes them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..gate.gate import Finding

_SIZE = re.compile(r" \(\d[\d,]* datasets? of [^()]*\)")
ABOVE = "as said above"


def group_by_advice(groups: Sequence[list[Finding]]) -> list[list[list[Finding]]]:
    """Group the leaks that are written in one line: those without records that the same advice fixes."""
    found: dict[object, list[list[Finding]]] = {}
    for at, group in enumerate(groups):
        first = group[0]
        found.setdefault(first.advice if first.advice and not first.records else at, []).append(group)
    return list(found.values())


def without_dataset_count(said: str) -> str:
    """Return what was found, without how many datasets were compared, which stands in the summary and in the annex."""
    return _SIZE.sub("", said)


class MentionedFindings:
    """What the pages before the annex have mentioned: a second time it is ``as said above``."""

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
        """Return the cells of a line: the titles of the findings, what was found and how it is fixed."""
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
    """Join the texts of several findings; an ending that all have is written once."""
    ends = {one.rpartition("; ")[2] for one in texts}
    if len(texts) < 2 or len(ends) > 1:
        return "; ".join(texts)
    return f"{'; '.join(one.rpartition('; ')[0] for one in texts)}; of each: {ends.pop()}"
