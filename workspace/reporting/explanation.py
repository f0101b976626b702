"""A number explained, in the order in which people ask: what it says, whether that is good, compared with what, how sure, what to change;
then its definition, formula, settings and key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sfumato.engine.methods.labels import measure_name, method_and_output, quantity_of, sentence_of
from sfumato.engine.methods.outputs import Output
from sfumato.engine.methods.rows import Row
from sfumato.engine.recipe.thresholds import Verdict
from sfumato.engine.wording import format_percent

from .audits import AuditedRecord, strip_facts
from .words import (
    DIRECTIONS,
    FAMILIES,
    interval,
    judged_interval,
    limit_quantity,
    limit_text,
    number,
    observed_text,
    outcome_text,
)

OWN_VALUE = {"risk": "the same data released unprotected", "studies": "the same data released unprotected"}
"""By family what the confidential data's own value stands for; else the confidential data themselves."""
Facts = list[tuple[str, str]]
NO_FACTS: Facts = []


@dataclass(frozen=True)
class FoundNumber:
    """A row, the finished rows of its series (``row`` among them), the verdicts on it, how many confidential records the run has, and of an audit its targets."""

    row: Row
    beside: Sequence[Row] = ()
    verdicts: Sequence[Verdict] = ()
    records: int | None = None
    targets: Sequence[AuditedRecord] = ()


def explanation(found: FoundNumber) -> Facts:
    """What people ask first of a number, answer by answer; only what there is."""
    row = found.row
    _, output = method_and_output(row.key)
    facts = [
        ("in words", sentence_of(row, found.records)),
        *(("verdict", verdict_text(one, found.records)) for one in found.verdicts),
        *_judged(found.verdicts, output),
        *_compared(found, output),
        ("how sure", _certainty(found, output)),
        *strip_facts(found.targets),
        ("what to change", _levers(found.verdicts, output)),
    ]
    return [(name, text) for name, text in facts if text]


def verdict_text(verdict: Verdict, records: int | None = None) -> str:
    """``✗ not met: 88 of 20,190 (0.44 %), at most 0.1 %, over by 0.34 points; why``."""
    return f"{outcome_text(verdict.outcome)}: {_judgement(verdict, records)}"


def verdict_line(verdict: Verdict, name: str, records: int | None = None) -> str:
    """``not met: Re-identified with certainty, 88 of 20,190 (0.44 %), at most 0.1 %, ...``: the state by its word, then the number's name."""
    return f"{verdict.outcome}: {name}, {_judgement(verdict, records)}"


def _judgement(verdict: Verdict, records: int | None) -> str:
    band = f" ({judged})" if (judged := judged_interval(verdict)) else ""
    parts = [] if verdict.observed is None else [f"{observed_text(verdict, records)}{band}"]
    parts += [limit_text(verdict.bound, verdict.limit, verdict.value)]
    parts += [_by_how_much(verdict)] if verdict.margin else []
    why = f"; {verdict.reason}" if verdict.reason else ""
    return f"{', '.join(parts)}{why}"


def _by_how_much(verdict: Verdict) -> str:
    assert verdict.margin is not None
    way = "inside the limit" if verdict.margin > 0 else "outside the limit"
    size = limit_quantity(verdict.bound, abs(verdict.margin), verdict.value)
    return f"{size.replace(' %', ' points')} {way}"


def _judged(verdicts: Sequence[Verdict], output: Output) -> Facts:
    """What failing means where a limit is not met; what good values are."""
    fails = any(one.outcome == "not met" for one in verdicts)
    return [("this means", output.label.fails if fails else ""), ("good is", output.label.good)]


def _compared(found: FoundNumber, output: Output) -> Facts:
    """The confidential data's own value, and the row's baseline where it is another one."""
    row = found.row
    own = next((one for one in found.beside if one.dataset == "confidential" and one.value is not None), None)
    facts = []
    if own is not None and own.value is not None and row.dataset != "confidential":
        of = OWN_VALUE.get(row.family, "the confidential data")
        facts.append(
            ("compared with", f"{quantity_of(row.key, own.value, found.records, row.params, unit=row.unit)}: {of}")
        )
    if row.baseline is not None and (own is None or row.baseline != own.value or output.label.baseline):
        of = output.label.baseline or "the baseline of the method"
        value = quantity_of(row.key, row.baseline, found.records, row.params, unit=row.unit)
        facts.append(("compared with", f"{value}: {of}"))
    return facts


def _certainty(found: FoundNumber, output: Output) -> str:
    """The interval, the single datasets, and whether the number is exact."""
    row = found.row
    parts = []
    if row.lower is not None and row.upper is not None:
        ends = (
            f"{format_percent(row.lower)} to {format_percent(row.upper)}"
            if output.in_percent
            else interval(row.lower, row.upper)
        )
        over = ", over the released datasets" if row.draw is None else ""
        parts.append(f"95 % interval {ends}{over}")
    elif row.value is not None:
        parts.append("an estimate without an interval" if output.estimated else "exact for this release and these data")
    draws = [one for one in found.beside if one.draw is not None and one.dataset != "confidential"]
    if len(draws) > 1 and row.draw is None:
        values = ", ".join(one.status if one.value is None else _short(one.value, output) for one in draws)
        parts.append(f"single datasets: {values}")
    parts += [row.reason] if row.value is not None and row.reason else []
    return "; ".join(parts)


def _short(value: float, output: Output) -> str:
    return format_percent(value) if output.in_percent else number(value)


def _levers(verdicts: Sequence[Verdict], output: Output) -> str:
    """What to change where a limit is not known to be met; nothing where all are."""
    if verdicts and all(one.outcome == "met" for one in verdicts):
        return ""
    return "; ".join(output.label.levers)


def title_called(key: str) -> str:
    """The heading of an explanation: the human name of a measure, under its family."""
    family = FAMILIES.get(key.partition(".")[0], "")
    return f"{measure_name(key)}{f' · {family}' if family else ''}"


@dataclass(frozen=True)
class Meaning:
    """What a method says of itself and of one of its measures, by its ``key``; ``name`` is the human one, ``defaults`` those of its settings."""

    title: str
    meaning: str
    goal: str
    source: str
    defaults: Mapping[str, Any] = field(default_factory=dict)
    key: str = ""
    name: str = ""


def meaning_of(key: str) -> Meaning:
    """What this version's method says of a measure; slow the first time."""
    from sfumato.engine.methods.spec import to_plain_value

    method, output = method_and_output(key)
    if method is None:
        return Meaning(
            "a method that this version does not have", output.meaning, output.goal, "", key=key, name=measure_name(key)
        )
    defaults = {info.name: to_plain_value(info.default) for info in method.spec.params() if not info.is_required}
    return Meaning(method.title, output.meaning, output.goal, method.source, defaults, key, measure_name(key))


def definition(meaning: Meaning, variable: str, level: float | None, settings: Facts = NO_FACTS) -> Facts:
    """What a number is, how it was made, by which settings, where that comes from, and its key; only what there is."""
    return given(
        [
            ("definition", meaning.meaning),
            ("direction", DIRECTIONS.get(meaning.goal, "")),
            ("method", meaning.title),
            ("variable", variable),
            ("level", "" if level is None else f"S = {number(level)}"),
            ("source", meaning.source),
            *settings,
            ("key", meaning.key),
        ]
    )


def given(named: Facts) -> Facts:
    """Those of the facts that say something."""
    return [(name, text) for name, text in named if text]
