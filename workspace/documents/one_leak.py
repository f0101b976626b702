"""Findings of the gate in few lines: a leak with the checks that see it, and those that one act fixes together.

Which findings are one leak the gate says (``Finding.leak``). Findings that name no record, such as what an attack gains on average, stand in one
line where the same advice fixes them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..gate.gate import Finding

_SIZE = re.compile(r" \(\d[\d,]* datasets? of [^()]*\)")
ABOVE = "as said above"


def by_advice(groups: Sequence[list[Finding]]) -> list[list[list[Finding]]]:
    """The groups that are to be said in one line: those without records that the same advice mends."""
    found: dict[object, list[list[Finding]]] = {}
    for at, group in enumerate(groups):
        first = group[0]
        found.setdefault(first.advice if first.advice and not first.records else at, []).append(group)
    return list(found.values())


def briefly(said: str) -> str:
    """What was found, without how many datasets were compared, which stands in the summary and in the annex."""
    return _SIZE.sub("", said)


class Said:
    """What the pages before the annex have said: a second time it is ``as said above``."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        self._found = {briefly(one.said) for one in findings}
        self._advice = set[str]()

    def found(self, finding: Finding) -> str:
        """What a finding says, where it was not said."""
        brief = briefly(finding.said)
        if brief in self._found:
            return ABOVE
        self._found.add(brief)
        return brief

    def line(self, groups: Sequence[list[Finding]]) -> list[str]:
        """The cells of a line: what the findings are called, what was found and how it is mended."""
        titles = "; ".join(group[0].title for group in groups)
        others = [one.title for group in groups for one in group[1:]]
        found = _once(list(dict.fromkeys(self.found(group[0]) for group in groups)))
        advice = groups[0][0].advice
        again = advice in self._advice
        self._advice.add(advice)
        return [
            titles + (f"; also seen by: {', '.join(others)}" if others else ""),
            found,
            "as above" if again and advice else advice,
        ]


def _once(found: Sequence[str]) -> str:
    """What several findings say; how all of them end is said once."""
    ends = {one.rpartition("; ")[2] for one in found}
    if len(found) < 2 or len(ends) > 1:
        return "; ".join(found)
    return f"{'; '.join(one.rpartition('; ')[0] for one in found)}; of each: {ends.pop()}"
