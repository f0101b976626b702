"""Findings of the gate, as a table and each in words. Record numbers, never values."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from sfumato.engine.statistics.comparing import is_above, is_below
from sfumato.engine.wording import agreeing_word, count_noun, format_percent, join_first_names, singular_noun

from ..visible_text import replace_unprintable
from .tables import DisplayCell, DisplayColumn, DisplayRow, DisplayTable
from .words import number, sign_for

COLUMNS = (
    DisplayColumn("status", "state", 15),
    DisplayColumn("title", "finding", 34, grow_order=1),
    DisplayColumn("check", "check", 23),
    DisplayColumn("compared_value", "compared", 10, "right", full_title="compared value"),
    DisplayColumn("limit", "limit", 15, "right"),
    DisplayColumn("people", "people", 8, "right"),
)
SHARE = "share of the "
"""Beginning of the units of numbers that are written in per cent."""
BEYOND = " beyond "
"""In the units of numbers of people from which what chance gives has been taken off."""
EXCESS = "excess"
"""Scale of numbers from which what chance gives has been taken off."""
MULTIPLE = "multiple of chance"
"""Scale of the difference that a classifier finds, of which chance alone gives 1."""
SCALES = (EXCESS, "missing variation", "probability", "ratio", MULTIPLE)
"""Units of numbers that count nothing; the name of the unit precedes the number."""
STATUSES = ("block", "warn", "not checked", "pass")
"""Statuses of findings, the worst first."""
NO_PEOPLE = "-"
NONE, NONE_ALLOWED = "none", "none allowed"
MAY_BE_CHANCE = "may be chance"
"""Why a number beyond the limit passes: its interval has what chance gives in it, or little more can be seen."""
MOST_LISTED_RECORDS = 1000
"""Most record numbers that a finding holds (``gate.MOST_RECORDS``)."""
MOST_NAMED_RECORDS = 24
"""Most record numbers that a message names."""
_STATES = (
    ("block", ("blocks", "block")),
    ("warn", ("to be judged", "to be judged")),
    ("not checked", ("not checked", "not checked")),
    ("pass", ("passes", "pass")),
)


class ReportableFinding(Protocol):
    """Protocol of a finding of the gate, as reports read it (``sfumato.workspace.gate.gate.Finding``)."""

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
        """Return the number of people that it is about; None where it counts none."""
        ...

    @property
    def leak(self) -> str:
        """Return the key of the check that already reports the same leak; empty for a finding that leads."""
        ...

    @property
    def at_least(self) -> bool:
        """Return whether the value must be at least the limit."""
        ...

    @property
    def title(self) -> str: ...

    @property
    def message(self) -> str: ...

    @property
    def value(self) -> float | None: ...

    @property
    def baseline(self) -> float | None:
        """Return the value of an independent sample, or of the confidential data."""
        ...

    @property
    def compared_value(self) -> float | None:
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
    def effects(self) -> Sequence[str]:
        """Return what changes would do, each in a line; empty where that was not computed."""
        ...

    @property
    def waivable(self) -> bool: ...

    @property
    def records(self) -> Sequence[int]:
        """Return the numbers, from 0, of the confidential records that it is about."""
        ...


FindingT = TypeVar("FindingT", bound=ReportableFinding)


def stored_message(table: Mapping[str, Any]) -> str:
    """Return the message of a stored finding."""
    # findings stored before version 0.2 have the message as ``said``
    return str(table["message"] if "message" in table else table["said"])


def sort_by_status(findings: Sequence[FindingT]) -> list[FindingT]:
    """Sort findings by status: blocking ones first, those that do not apply last."""
    return sorted(findings, key=lambda one: (not one.applies, STATUSES.index(one.status)))


def lead_findings(findings: Sequence[FindingT]) -> list[FindingT]:
    """Return the findings that no other finding already covers, the worst first."""
    return sort_by_status([one for one in findings if not one.leak])


def findings_of_same_leak(finding: ReportableFinding, findings: Sequence[FindingT]) -> list[FindingT]:
    """Return the findings about the same leak as ``finding``, which leads them."""
    return [one for one in findings if one.leak == finding.check]


def is_open(finding: ReportableFinding) -> bool:
    """Return whether a reader has to look at a finding: it applies and does not pass."""
    return finding.applies and finding.status != "pass"


def state_text(finding: ReportableFinding) -> str:
    """Return the state of a finding with its sign: ``✗ blocks``, ``! to be judged``."""
    return f"{sign_for(_status_mark(finding))} {finding.state}"


def _status_mark(finding: ReportableFinding) -> str:
    """Return the name of the sign of a finding."""
    return finding.status if finding.applies else "does not apply"


def finding_cells(finding: ReportableFinding, *, waived: bool = False) -> tuple[str, ...]:
    """Return the cells of a finding by column, with ``waived`` in place of its state where it is."""
    return (
        "waived" if waived else state_text(finding),
        finding.title,
        finding.check,
        compared_text(finding),
        finding_limit_text(finding),
        people_text(finding),
    )


def scale_name(unit: str) -> str:
    """Return the name of a unit that counts nothing, such as ``excess``; empty for a share or a count."""
    return next((one for one in SCALES if unit.startswith(one)), "")


def scaled_text(figure: str, unit: str) -> str:
    """Return a number of a unit that counts nothing with its meaning: ``probability 0.5``, ``0.48 above chance``.

    A number of another unit stays as it is.
    """
    name = scale_name(unit)
    if BEYOND in unit and figure:
        return f"{figure} beyond chance"
    if name != EXCESS or not figure:
        return f"{name} {figure}".strip() if figure else ""
    return f"{figure} above {'chance' if 'by chance' in unit else 'an independent sample'}"


def passes_by_chance(finding: ReportableFinding) -> bool:
    """Return whether a finding passes although its number is beyond the limit, since chance alone may give as much."""
    compared_value, limit = finding.compared_value, finding.limit
    if finding.status != "pass" or not finding.applies or compared_value is None or limit is None:
        return False
    return is_below(compared_value, limit) if finding.at_least else is_above(compared_value, limit)


def _unit_noun(unit: str, count: float) -> str:
    """Return the noun that a unit counts, agreeing with ``count``: ``person``, ``released rows``, ``of the budget``."""
    words = re.split(r" (?:beyond|of) | \(", unit)[0]
    if count != 1 or words.startswith("of "):
        return words
    *first, last = words.split()
    return " ".join([*first, singular_noun(last)])


def compared_text(finding: ReportableFinding) -> str:
    """Return the number that is compared with the limit, in its unit: ``6.67 %``, ``excess 0.48``, ``3 people``.

    Empty where nothing was measured.
    """
    compared_value, unit = finding.compared_value, finding.unit
    if compared_value is None:
        return ""
    if unit.startswith(SHARE):
        return format_percent(compared_value, finding.limit)
    text = _distinct_number(compared_value, finding.limit)
    if _counts_none(unit, compared_value):
        return NONE
    return scaled_text(text, unit) if scale_name(unit) else f"{text} {_unit_noun(unit, compared_value)}".rstrip()


def finding_limit_text(finding: ReportableFinding) -> str:
    """Return the limit with its direction: ``at most 0 %``, ``at least 1 measure``; empty without a limit.

    Of what is counted, a limit of 0 reads ``none allowed``. Where a number beyond the limit passes, it says why.
    """
    if passes_by_chance(finding):
        return f"not counted: {MAY_BE_CHANCE}"
    if not finding.at_least and _counts_none(finding.unit, finding.limit):
        return NONE_ALLOWED
    bound = "at least" if finding.at_least else "at most"
    return "" if finding.limit is None else f"{bound} {_limit_number_text(finding, finding.limit)}"


def _limit_number_text(finding: ReportableFinding, limit: float) -> str:
    """Return the limit in its unit, with digits that distinguish it from the compared number."""
    if finding.unit.startswith(SHARE):
        return format_percent(limit, finding.compared_value)
    text = number(limit)
    return text if scale_name(finding.unit) else f"{text} {_unit_noun(finding.unit, limit)}".rstrip()


def _distinct_number(value: float, beside: float | None, above: str = "above", below: str = "below") -> str:
    """Return a number with digits that distinguish it from another one beside it."""
    text = number(value)
    if beside is None or value == beside or text != number(beside):
        return text
    # A check may count a value as the next number above a limit: its seventeen digits say nothing to a reader.
    if math.isclose(value, beside, rel_tol=1e-9):
        return f"{above if value > beside else below} {text}"
    # all digits, where four would make a value beyond the limit read as the limit
    return repr(value)


def _counts_none(unit: str, number_of: float | None) -> bool:
    """Return whether a number in its unit is 0 things that are counted."""
    return number_of == 0 and not unit.startswith(SHARE) and not scale_name(unit) and unit not in ("", NO_PEOPLE)


def people_text(finding: ReportableFinding) -> str:
    """Return the number of people that a finding is about; a dash where it counts none."""
    return NO_PEOPLE if finding.people is None else f"{finding.people:,}"


def compact_finding_cells(finding: ReportableFinding) -> dict[str, str]:
    """Return the compared number and the limit in few cells: ``6.67 %`` and ``≤ 0 %``, ``3`` and ``≤ 5 rows``.

    Of what is counted, 0 reads ``none``, and a limit of 0 ``none allowed``.
    """
    compared_value, limit, unit = finding.compared_value, finding.limit, finding.unit
    if unit.startswith(SHARE):
        compared, most = [
            "" if one is None else format_percent(one, other)
            for one, other in ((compared_value, limit), (limit, compared_value))
        ]
    else:
        compared = "" if compared_value is None else _distinct_number(compared_value, limit, ">", "<")
        most = "" if limit is None else number(limit)
        if (
            limit is not None
            and not scale_name(unit)
            and (things := _unit_noun(unit, limit))
            and not things.startswith("of ")
        ):
            # The last word says what is counted: rows of released rows.
            most = f"{most} {things.split()[-1]}"
    if passes_by_chance(finding):
        return {"compared_value": compared, "limit": MAY_BE_CHANCE}
    bound = sign_for("at least" if finding.at_least else "at most")
    if _counts_none(unit, compared_value):
        compared = NONE
    if not finding.at_least and _counts_none(unit, limit):
        return {"compared_value": compared, "limit": NONE_ALLOWED}
    return {"compared_value": compared, "limit": f"{bound} {most}" if most else ""}


def finding_table(findings: Sequence[FindingT], *, every: bool = False) -> DisplayTable:
    """Return the findings as a table, the worst first, each with the checks that see the same leak.

    Findings that pass or do not apply are left out unless ``every`` is true.
    """
    shown = [one for one in lead_findings(findings) if every or is_open(one)]
    return DisplayTable(COLUMNS, [_finding_row(one, findings_of_same_leak(one, findings)) for one in shown])


def _finding_row(finding: ReportableFinding, witnesses: Sequence[ReportableFinding]) -> DisplayRow:
    """Return the cells of a finding, with the titles of the checks that see the same leak."""
    _, title, *cells = finding_cells(finding)
    return [DisplayCell(finding.state, _status_mark(finding)), f"{title}{also_seen_text(witnesses, '; ')}", *cells]


def also_seen_text(witnesses: Sequence[ReportableFinding], before: str = "") -> str:
    """Return the titles of the checks that see the same leak: ``also seen by: ...``; empty for none."""
    return f"{before}also seen by: {', '.join(one.title for one in witnesses)}" if witnesses else ""


def finding_text(
    finding: ReportableFinding, witnesses: Sequence[ReportableFinding] = (), *, with_keys: bool = True
) -> list[str]:
    """Return a finding in paragraphs: what was found, what was compared and why, which records, and how to fix it.

    ``witnesses`` are the findings about the same leak, whose messages follow. ``with_keys`` names the checks by the keys
    that waivers use.
    """
    return [replace_unprintable(line) for line in _finding_paragraphs(finding, witnesses, with_keys=with_keys)]


def _finding_paragraphs(
    finding: ReportableFinding, witnesses: Sequence[ReportableFinding], *, with_keys: bool
) -> Iterator[str]:
    """Yield the paragraphs about a finding."""
    yield f"{state_text(finding)}: {finding.title}{f' ({finding.check})' if with_keys else ''}"
    yield _as_sentence(finding.message)
    if finding.status == "not checked" and finding.applies and finding.reason:
        yield f"Why it is looked at: {finding.reason}."
    if finding.limit is not None and finding.compared_value is not None:
        source = f" Source: {finding.source}." if finding.source else ""
        yield f"Compared: {_compared_sentence(finding)}; limit: {finding_limit_text(finding)}. Why: {finding.reason}.{source}"
    if finding.records and finding.status in ("block", "warn"):
        # A finding holds at most a thousand record numbers; people counts all of them.
        capped = len(finding.records) >= MOST_LISTED_RECORDS
        yield finding_records_text(finding.records, (finding.people or 0) if capped else 0)
    if witnesses:
        yield _as_sentence(also_seen_text(witnesses))
        for one in witnesses:
            yield f"{one.title}{f' ({one.check})' if with_keys else ''}: {one.message}."
    if finding.advice:
        yield f"How to fix it: {finding.advice}."
    yield from finding.effects
    if finding.status == "block":
        yield "It can be waived, with a reason." if finding.waivable else "It cannot be waived."


def finding_sections(
    finding: ReportableFinding, witnesses: Sequence[ReportableFinding] = ()
) -> list[tuple[str, list[str]]]:
    """Return a finding in sections, each a heading with its paragraphs: what to do, what was found, and why it counts.

    ``witnesses`` are the findings about the same leak. Keys of checks and numbers of records are left out; a section
    without a paragraph too.
    """
    todo = [f"{_as_sentence(finding.advice)}"] if finding.advice else []
    todo += finding.effects
    if finding.status == "block":
        todo.append("It can be waived, with a reason." if finding.waivable else "It cannot be waived.")
    what, is_measured = (
        [_as_sentence(finding.message)],
        finding.limit is not None and finding.compared_value is not None,
    )
    if is_measured:
        what.append(f"Compared: {_compared_sentence(finding)}; limit: {finding_limit_text(finding)}.")
    what += [f"{_as_sentence(one.title)} {_as_sentence(one.message)}" for one in witnesses]
    has_reason = finding.reason and (is_measured or (finding.status == "not checked" and finding.applies))
    why = [_as_sentence(finding.reason), *([f"Source: {finding.source}."] if finding.source else [])]
    sections = [("How to fix it", todo), ("What was found", what), ("Why it counts", why if has_reason else [])]
    return [
        (heading, [replace_unprintable(text) for text in paragraphs]) for heading, paragraphs in sections if paragraphs
    ]


def _compared_sentence(finding: ReportableFinding) -> str:
    """Return the compared number, and the value and baseline that it comes from."""
    scale = finding.unit.partition(" (")[2].rstrip(")")
    text = compared_text(finding) + (f" ({scale})" if scale else "")
    if finding.value is None or finding.value == finding.compared_value:
        return text
    base = "" if finding.baseline is None else f" and the baseline {number(finding.baseline)}"
    return f"{text}, from the value {number(finding.value)}{base}"


def brief_message(message: str) -> str:
    """Return the first clause of a message as a sentence of its own, for a list beside which the whole stands.

    A clause ends where a semicolon or a full stop does, outside brackets.
    """
    first = next(_clause_ends(message, ";."), len(message.rstrip(".")))
    return _as_sentence(message[:first]) if message else ""


def text_without_last_clause(text: str) -> str:
    """Return a text without what follows its last semicolon, full stop or colon; the same where it has but one clause."""
    *_, last = (len(text), *_clause_ends(text, ";.:"))
    return text if last == len(text) else f"{text[:last]}."


def _clause_ends(text: str, marks: str) -> Iterator[int]:
    """Yield the places of the marks that end a clause outside brackets, where another one follows."""
    depth = 0
    for at, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if not depth and letter in marks and text[at + 1 : at + 2] == " ":
            yield at


def _as_sentence(text: str) -> str:
    """Return a text as a sentence; a key or a name of a column at its start stays unchanged."""
    name = text.partition(" ")[0].rstrip(":,;")
    return (
        f"{text}." if "." in name or "_" in name or ":" in text[: len(name) + 1] else f"{text[:1].upper()}{text[1:]}."
    )


def finding_records_text(records: Sequence[int], total: int = 0) -> str:
    """Return the first record numbers of ``total``, counted from 1: ``3 records: 1, 5, 9``."""
    total = max(total, len(records))
    numbers = [str(record + 1) for record in records[:MOST_NAMED_RECORDS]]
    return f"{count_noun(total, 'record')}: {join_first_names(numbers, MOST_NAMED_RECORDS, total=total)}"


def finding_counts_text(findings: Sequence[ReportableFinding]) -> str:
    """Return the number of leaks by state: ``1 blocks, 3 to be judged, 2 not checked, 24 pass, 12 do not apply``."""
    return ", ".join(_state_counts([one for one in findings if not one.leak]))


def folded_counts_text(findings: Sequence[ReportableFinding]) -> str:
    """Return the number of findings by state that a table leaves out: ``24 pass, 12 do not apply``; empty for none."""
    return ", ".join(_state_counts([one for one in findings if not one.leak and not is_open(one)]))


def _state_counts(findings: Sequence[ReportableFinding]) -> list[str]:
    """Return the number of findings in each state that occurs, in words."""
    counts = [(sum(one.status == status and one.applies for one in findings), words) for status, words in _STATES]
    counts.append((sum(not one.applies for one in findings), ("does not apply", "do not apply")))
    return [f"{count} {agreeing_word(count, *words)}" for count, words in counts if count]
