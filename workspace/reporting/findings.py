"""What the gate found, as a table, and one finding in words. Record numbers, never values."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import Protocol, TypeVar

from sfumato.engine.wording import agreeing_word, count_noun, format_percent, singular_noun

from ..visible_text import replace_unprintable
from .tables import DisplayCell, DisplayColumn, DisplayRow, DisplayTable
from .words import number, sign_for

COLUMNS = (
    DisplayColumn("status", "state", 15),
    DisplayColumn("title", "finding", 34, grow_order=1),
    DisplayColumn("check", "check", 23),
    DisplayColumn("held", "compared", 10, "right", full_title="compared value"),
    DisplayColumn("limit", "limit", 15, "right"),
    DisplayColumn("people", "people", 8, "right"),
)
SHARE = "share of the "
"""Beginning of the units of numbers that are written in per cent."""
SCALES = ("excess", "missing variation", "probability", "ratio", "s_pmse")
"""Units that count nothing; their name stands before the number."""
STATUSES = ("block", "warn", "not checked", "pass")
"""The worst first."""
NO_PEOPLE = "-"
MOST_LISTED_RECORDS = 1000
"""Record numbers that a finding holds at most (``gate.MOST_RECORDS``)."""
MOST_NAMED_RECORDS = 24
"""Number of record numbers that a message names."""
_STATES = (
    ("block", ("blocks", "block")),
    ("warn", ("to be judged", "to be judged")),
    ("not checked", ("not checked", "not checked")),
    ("pass", ("passes", "pass")),
)


class ReportableFinding(Protocol):
    """A finding of the gate as reports read it: ``sfumato.workspace.gate.gate.Finding``."""

    @property
    def check(self) -> str: ...

    @property
    def status(self) -> str:
        """Return ``pass``, ``warn``, ``block`` or ``not checked``."""
        ...

    @property
    def state(self) -> str:
        """Return ``blocks``, ``to be judged``, ``not checked``, ``passes`` or ``does not apply``."""
        ...

    @property
    def applies(self) -> bool:
        """Return whether the check applies to this kind of release."""
        ...

    @property
    def people(self) -> int | None:
        """Return how many people it is about; None where it counts none."""
        ...

    @property
    def leak(self) -> str:
        """Return the key of the check whose finding has the same cause; empty where it stands for itself."""
        ...

    @property
    def at_least(self) -> bool:
        """Return whether the value must be at least the limit."""
        ...

    @property
    def title(self) -> str: ...

    @property
    def said(self) -> str: ...

    @property
    def value(self) -> float | None: ...

    @property
    def baseline(self) -> float | None:
        """Return the value of an independent sample, or of the confidential data."""
        ...

    @property
    def held(self) -> float | None:
        """Return the value that is compared with the limit."""
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
        """Return the confidential records that it is about, from 0."""
        ...


FindingT = TypeVar("FindingT", bound=ReportableFinding)


def sort_by_status(findings: Sequence[FindingT]) -> list[FindingT]:
    """Sort findings: what blocks first, then what is to be judged, what was not checked, what passes, and what does not apply."""
    return sorted(findings, key=lambda one: (not one.applies, STATUSES.index(one.status)))


def lead_findings(findings: Sequence[FindingT]) -> list[FindingT]:
    """Return the findings that stand for themselves, the worst first."""
    return sort_by_status([one for one in findings if not one.leak])


def findings_of_same_leak(finding: ReportableFinding, findings: Sequence[FindingT]) -> list[FindingT]:
    """Return the findings that have the same cause as ``finding``, which stands for them."""
    return [one for one in findings if one.leak == finding.check]


def is_open(finding: ReportableFinding) -> bool:
    """Return whether a reader has to look at a finding: it neither passes nor is out of place."""
    return finding.applies and finding.status != "pass"


def state_text(finding: ReportableFinding) -> str:
    """Return the state with its sign: ``✗ blocks``, ``! to be judged``."""
    return f"{sign_for(_status_mark(finding))} {finding.state}"


def _status_mark(finding: ReportableFinding) -> str:
    return finding.status if finding.applies else "does not apply"


def finding_cells(finding: ReportableFinding, *, waived: bool = False) -> tuple[str, ...]:
    """Return a finding's cells by column; one that is waived says so in place of its state."""
    return (
        "waived" if waived else state_text(finding),
        finding.title,
        finding.check,
        compared_text(finding),
        finding_limit_text(finding),
        people_text(finding),
    )


def _scale_name(unit: str) -> str:
    """Return the name of a unit that counts nothing, such as ``excess``; empty for a share or for what counts things."""
    return next((one for one in SCALES if unit.startswith(one)), "")


def _unit_noun(unit: str, count: float) -> str:
    """Return what a unit counts, in the number that goes with ``count``: ``person``, ``released rows``, ``of the budget``."""
    words = re.split(r" (?:beyond|of) | \(", unit)[0]
    if count != 1 or words.startswith("of "):
        return words
    *first, last = words.split()
    return " ".join([*first, singular_noun(last)])


def compared_text(finding: ReportableFinding) -> str:
    """Return the number that is compared with the limit, in its unit: ``6.67 %``, ``excess 0.48``, ``3 people``; empty for none."""
    held, unit = finding.held, finding.unit
    if held is None:
        return ""
    if unit.startswith(SHARE):
        return format_percent(held, finding.limit)
    text = _distinct_number(held, finding.limit)
    return f"{scale} {text}" if (scale := _scale_name(unit)) else f"{text} {_unit_noun(unit, held)}".rstrip()


def finding_limit_text(finding: ReportableFinding) -> str:
    """Return the limit with its direction: ``at most 0 %``, ``at least 1 measure``; empty for none."""
    bound = "at least" if finding.at_least else "at most"
    return "" if finding.limit is None else f"{bound} {_limit_number_text(finding, finding.limit)}"


def _limit_number_text(finding: ReportableFinding, limit: float) -> str:
    if finding.unit.startswith(SHARE):
        return format_percent(limit, finding.held)
    text = number(limit)
    return text if _scale_name(finding.unit) else f"{text} {_unit_noun(finding.unit, limit)}".rstrip()


def _distinct_number(value: float, beside: float | None, above: str = "just above", below: str = "just below") -> str:
    """Return a number that does not read as another one that it is compared with."""
    text = number(value)
    if beside is None or value == beside or text != number(beside):
        return text
    # A check may count a value as the next number above a limit: its seventeen digits say nothing to a reader.
    if math.isclose(value, beside, rel_tol=1e-9):
        return f"{above if value > beside else below} {text}"
    return repr(value)


def people_text(finding: ReportableFinding) -> str:
    """Return how many people a finding is about; a dash where it counts none."""
    return NO_PEOPLE if finding.people is None else f"{finding.people:,}"


def compact_finding_cells(finding: ReportableFinding) -> dict[str, str]:
    """Return the compared number and its limit in few cells: ``6.67 %`` and ``≤ 0 %``, ``3`` and ``≤ 0 questions``."""
    held, limit, unit = finding.held, finding.limit, finding.unit
    if unit.startswith(SHARE):
        compared, most = [
            "" if one is None else format_percent(one, other) for one, other in ((held, limit), (limit, held))
        ]
    else:
        compared = "" if held is None else _distinct_number(held, limit, ">", "<")
        most = "" if limit is None else number(limit)
        if (
            limit is not None
            and not _scale_name(unit)
            and (things := _unit_noun(unit, limit))
            and not things.startswith("of ")
        ):
            # The last word says what is counted: rows of released rows.
            most = f"{most} {things.split()[-1]}"
    bound = sign_for("at least" if finding.at_least else "at most")
    return {"held": compared, "limit": f"{bound} {most}" if most else ""}


def finding_table(findings: Sequence[FindingT], *, every: bool = False) -> DisplayTable:
    """Return the findings as a table, the worst first, each with the checks that see the same leak.

    What passes and what does not apply is left out unless ``every`` is true; ``folded_counts_text`` counts it.
    """
    shown = [one for one in lead_findings(findings) if every or is_open(one)]
    return DisplayTable(COLUMNS, [_finding_row(one, findings_of_same_leak(one, findings)) for one in shown])


def _finding_row(finding: ReportableFinding, witnesses: Sequence[ReportableFinding]) -> DisplayRow:
    _, title, *cells = finding_cells(finding)
    return [DisplayCell(finding.state, _status_mark(finding)), f"{title}{also_seen_text(witnesses, '; ')}", *cells]


def also_seen_text(witnesses: Sequence[ReportableFinding], before: str = "") -> str:
    """Return ``also seen by: ...`` with the titles of the checks that see the same leak; empty for none."""
    return f"{before}also seen by: {', '.join(one.title for one in witnesses)}" if witnesses else ""


def finding_text(finding: ReportableFinding, witnesses: Sequence[ReportableFinding] = ()) -> list[str]:
    """Return one finding in paragraphs: what was seen, what was compared and why, whose records, and how to fix it.

    ``witnesses`` are the findings that see the same leak; what each of them saw follows.
    """
    return [replace_unprintable(line) for line in _finding_paragraphs(finding, witnesses)]


def _finding_paragraphs(finding: ReportableFinding, witnesses: Sequence[ReportableFinding]) -> Iterator[str]:
    yield f"{state_text(finding)}: {finding.title} ({finding.check})"
    yield _as_sentence(finding.said)
    if finding.limit is not None and finding.held is not None:
        source = f" Source: {finding.source}." if finding.source else ""
        yield f"Compared: {_compared_sentence(finding)}; limit: {finding_limit_text(finding)}. Why: {finding.reason}.{source}"
    if finding.records and finding.status in ("block", "warn"):
        # A finding holds at most a thousand record numbers; people counts all of them.
        capped = len(finding.records) >= MOST_LISTED_RECORDS
        yield finding_records_text(finding.records, (finding.people or 0) if capped else 0)
    if witnesses:
        yield _as_sentence(also_seen_text(witnesses))
        for one in witnesses:
            yield f"{one.title} ({one.check}): {one.said}."
    if finding.advice:
        yield f"How to fix it: {finding.advice}."
    if finding.status == "block":
        yield "It can be waived, with a reason." if finding.waivable else "It cannot be waived."


def _compared_sentence(finding: ReportableFinding) -> str:
    """Return the compared number, and where that is not the value itself, the value and its baseline."""
    scale = finding.unit.partition(" (")[2].rstrip(")")
    text = compared_text(finding) + (f" ({scale})" if scale else "")
    if finding.value is None or finding.value == finding.held:
        return text
    base = "" if finding.baseline is None else f" and the baseline {number(finding.baseline)}"
    return f"{text}, from the value {number(finding.value)}{base}"


def _as_sentence(text: str) -> str:
    """Return a text as a sentence; a key or a name of a column at its start stays unchanged."""
    name = text.partition(" ")[0].rstrip(":,;")
    return (
        f"{text}." if "." in name or "_" in name or ":" in text[: len(name) + 1] else f"{text[:1].upper()}{text[1:]}."
    )


def finding_records_text(records: Sequence[int], total: int = 0) -> str:
    """Return ``3 records: 1, 5, 9``: numbers from 1 in the confidential table, the first few of ``total``."""
    total = max(total, len(records))
    named = ", ".join(str(record + 1) for record in records[:MOST_NAMED_RECORDS])
    left = total - min(MOST_NAMED_RECORDS, len(records))
    return f"{count_noun(total, 'record')}: {named}{f' and {left:,} more' if left else ''}"


def finding_counts_text(findings: Sequence[ReportableFinding]) -> str:
    """Return how many leaks there are by state: ``1 blocks, 3 to be judged, 2 not checked, 24 pass, 12 do not apply``."""
    return ", ".join(_state_counts([one for one in findings if not one.leak]))


def folded_counts_text(findings: Sequence[ReportableFinding]) -> str:
    """Return how many findings a table leaves out: ``24 pass, 12 do not apply``; empty for none."""
    return ", ".join(_state_counts([one for one in findings if not one.leak and not is_open(one)]))


def _state_counts(findings: Sequence[ReportableFinding]) -> list[str]:
    counts = [(sum(one.status == status and one.applies for one in findings), words) for status, words in _STATES]
    counts.append((sum(not one.applies for one in findings), ("does not apply", "do not apply")))
    return [f"{count} {agreeing_word(count, *words)}" for count, words in counts if count]
