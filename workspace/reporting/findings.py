"""What the gate found, as a table, and one finding in words. Record numbers, never values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Protocol, TypeVar

from sfumato.engine.wording import counted, percent

from ..visible_text import printable
from .tables import Column, Table
from .words import mark, number

COLUMNS = (
    Column("status", "status", 13),
    Column("check", "check", 23),
    Column("value", "value", 10, "right"),
    Column("baseline", "baseline", 10, "right", spare=3),
    Column("held", "held", 9, "right", spare=2, full="compared value"),
    Column("limit", "limit", 9, "right"),
    Column("unit", "unit of held and limit", 30, spare=1, grows=1),
)
SHARES = ("share", "probability", "of the budget")
"""How the unit of what is said in per cent begins."""
BARE = ("ratio", "s_pmse")
"""Units that count nothing."""
SINGULAR = {"people": "person", "policies": "policy"}
STATUSES = ("block", "warn", "not checked", "pass")
"""The worst first."""
MOST_NAMED = 24
"""So many record numbers are said."""


class Found(Protocol):
    """A finding of the gate: ``sfumato.workspace.release.gate.Finding``."""

    @property
    def check(self) -> str: ...

    @property
    def status(self) -> str:
        """``pass``, ``warn``, ``block`` or ``not checked``."""
        ...

    @property
    def applies(self) -> bool:
        """Whether the check says anything of this kind of release."""
        ...

    @property
    def title(self) -> str: ...

    @property
    def said(self) -> str: ...

    @property
    def value(self) -> float | None: ...

    @property
    def baseline(self) -> float | None:
        """The value of an independent sample, or of the confidential data."""
        ...

    @property
    def held(self) -> float | None:
        """What the limit is held against."""
        ...

    @property
    def limit(self) -> float | None: ...

    @property
    def unit(self) -> str: ...

    @property
    def reason(self) -> str: ...

    @property
    def source(self) -> str: ...

    @property
    def advice(self) -> str: ...

    @property
    def waivable(self) -> bool: ...

    @property
    def records(self) -> Sequence[int]:
        """The confidential records that it is about, from 0."""
        ...


FoundT = TypeVar("FoundT", bound=Found)


def by_status(findings: Sequence[FoundT]) -> list[FoundT]:
    """What blocks first, then what warns, then what was not checked, each in the order of the checks; last what does not apply."""
    return sorted(findings, key=lambda one: (not one.applies, STATUSES.index(one.status)))


def finding_cells(finding: Found, *, waived: bool = False) -> tuple[str, ...]:
    """A finding's cells by column; one that is waived says so in place of its status."""
    return (
        "waived" if waived else f"{mark(finding.status)} {finding.status}",
        finding.check,
        *("" if one is None else number(one) for one in (finding.value, finding.baseline, finding.held, finding.limit)),
        finding.unit,
    )


def judged_cells(finding: Found) -> dict[str, str]:
    """What is held against the limit, and the limit with what it counts: ``6.67 %`` and ``0 %``, ``3`` and ``0 questions``."""
    held, limit = finding.held, finding.limit
    if finding.unit.startswith(SHARES):
        said = ["" if one is None else percent(one, beside) for one, beside in ((held, limit), (limit, held))]
        return {"held": said[0], "limit": said[1]}
    counts = "" if finding.unit in BARE else re.split(r" (?:beyond|of) ", finding.unit)[0].split()[-1]
    if limit == 1:
        counts = SINGULAR.get(counts, counts.removesuffix("s"))
    return {
        "held": "" if held is None else number(held),
        "limit": "" if limit is None else f"{number(limit)} {counts}".rstrip(),
    }


def finding_table(findings: Sequence[Found]) -> Table:
    return Table(COLUMNS, [finding_cells(one) for one in by_status(findings)])


def finding_text(finding: Found) -> list[str]:
    """One finding in paragraphs: what was seen, what it was held against and why, whose records, and what would mend it."""
    return [printable(line) for line in _paragraphs(finding)]


def _paragraphs(finding: Found) -> Iterator[str]:
    yield f"{mark(finding.status)} {finding.status}: {finding.title} ({finding.check})"
    yield f"{finding.said}."
    if finding.limit is not None and finding.held is not None:
        source = f" Source: {finding.source}." if finding.source else ""
        yield f"{number(finding.held)} ({finding.unit}); limit {number(finding.limit)}. Why: {finding.reason}.{source}"
    if finding.records and finding.status in ("block", "warn"):
        yield records_text(finding.records)
    if finding.advice:
        yield f"How to fix it: {finding.advice}."
    if finding.status == "block":
        yield "It can be waived, with a reason." if finding.waivable else "It cannot be waived."


def records_text(records: Sequence[int]) -> str:
    """``3 records: 1, 5, 9``: numbers from 1 in the confidential table, the first few."""
    named = ", ".join(str(record + 1) for record in records[:MOST_NAMED])
    more = f" and {len(records) - MOST_NAMED:,} more" if len(records) > MOST_NAMED else ""
    return f"{counted(len(records), 'record')}: {named}{more}"


def counts_text(findings: Sequence[Found]) -> str:
    """``2 block, 1 warn, 3 not checked, 18 pass, 4 do not apply``."""
    counts = {status: sum(one.status == status and one.applies for one in findings) for status in STATUSES}
    out = sum(not one.applies for one in findings)
    counts["does not apply" if out == 1 else "do not apply"] = out
    return ", ".join(f"{number_of} {status}" for status, number_of in counts.items() if number_of)
