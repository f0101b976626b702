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

from .audits import AuditedRecord, audited_strip_facts
from .words import (
    DIRECTION_TEXTS,
    FAMILY_HEADINGS,
    interval_text,
    judged_interval_text,
    limit_quantity,
    limit_text,
    number,
    observed_text,
    outcome_text,
)

CONFIDENTIAL_REFERENCE = {"risk": "the same data released unprotected", "studies": "the same data released unprotected"}
"""By family what the confidential data's own value stands for; else the confidential data themselves."""
FactLines = list[tuple[str, str]]
NO_FACTS: FactLines = []


@dataclass(frozen=True)
class ExplainedNumber:
    """A result row with what is needed to explain it.

    row: the row
    series_rows: finished rows of its series, ``row`` among them
    verdicts: verdicts on it
    n_records: number of confidential records of the run
    audited_records: targets, where an audit made the row
    """

    row: Row
    series_rows: Sequence[Row] = ()
    verdicts: Sequence[Verdict] = ()
    n_records: int | None = None
    audited_records: Sequence[AuditedRecord] = ()


def explanation_facts(found: ExplainedNumber) -> FactLines:
    """Explain a number in the order in which people ask; empty answers are left out."""
    row = found.row
    _, output = method_and_output(row.key)
    facts = [
        ("in words", sentence_of(row, found.n_records)),
        *(("verdict", verdict_text(one, found.n_records)) for one in found.verdicts),
        *_goodness_facts(found.verdicts, output),
        *_reference_facts(found, output),
        ("how sure", _certainty_text(found, output)),
        *audited_strip_facts(found.audited_records),
        ("what to change", _levers_text(found.verdicts, output)),
    ]
    return [(name, text) for name, text in facts if text]


def verdict_text(verdict: Verdict, records: int | None = None) -> str:
    """Return ``✗ not met: 88 of 20,190 (0.44 %), at most 0.1 %, over by 0.34 points; why``."""
    return f"{outcome_text(verdict.outcome)}: {_verdict_judgement(verdict, records)}"


def verdict_line(verdict: Verdict, name: str, records: int | None = None) -> str:
    """Return ``not met: Re-identified with certainty, 88 of 20,190 (0.44 %), at most 0.1 %, ...``: the outcome in words, then the number's
    name.
    """
    return f"{verdict.outcome}: {name}, {_verdict_judgement(verdict, records)}"


def _verdict_judgement(verdict: Verdict, records: int | None) -> str:
    band = f" ({judged})" if (judged := judged_interval_text(verdict)) else ""
    parts = [] if verdict.observed is None else [f"{observed_text(verdict, records)}{band}"]
    parts += [limit_text(verdict.bound, verdict.limit, verdict.value)]
    parts += [_margin_text(verdict)] if verdict.margin else []
    why = f"; {verdict.reason}" if verdict.reason else ""
    return f"{', '.join(parts)}{why}"


def _margin_text(verdict: Verdict) -> str:
    assert verdict.margin is not None
    way = "inside the limit" if verdict.margin > 0 else "outside the limit"
    size = limit_quantity(verdict.bound, abs(verdict.margin), verdict.value)
    return f"{size.replace(' %', ' points')} {way}"


def _goodness_facts(verdicts: Sequence[Verdict], output: Output) -> FactLines:
    """Return what failing means where a limit is not met, and which values are good."""
    fails = any(one.outcome == "not met" for one in verdicts)
    return [("this means", output.label.fails if fails else ""), ("good is", output.label.good)]


def _reference_facts(found: ExplainedNumber, output: Output) -> FactLines:
    """Return the value of the confidential data, and the row's baseline where that is another value."""
    row = found.row
    own = next((one for one in found.series_rows if one.dataset == "confidential" and one.value is not None), None)
    facts = []
    if own is not None and own.value is not None and row.dataset != "confidential":
        of = CONFIDENTIAL_REFERENCE.get(row.family, "the confidential data")
        facts.append(
            ("compared with", f"{quantity_of(row.key, own.value, found.n_records, row.params, unit=row.unit)}: {of}")
        )
    if row.baseline is not None and (own is None or row.baseline != own.value or output.label.baseline):
        of = output.label.baseline or "the baseline of the method"
        value = quantity_of(row.key, row.baseline, found.n_records, row.params, unit=row.unit)
        facts.append(("compared with", f"{value}: {of}"))
    return facts


def _certainty_text(found: ExplainedNumber, output: Output) -> str:
    """Return the interval, the values of single datasets, and whether the number is exact."""
    row = found.row
    parts = []
    if row.lower is not None and row.upper is not None:
        ends = (
            f"{format_percent(row.lower)} to {format_percent(row.upper)}"
            if output.in_percent
            else interval_text(row.lower, row.upper)
        )
        over = ", over the released datasets" if row.draw is None else ""
        parts.append(f"95 % interval {ends}{over}")
    elif row.value is not None:
        parts.append("an estimate without an interval" if output.estimated else "exact for this release and these data")
    draws = [one for one in found.series_rows if one.draw is not None and one.dataset != "confidential"]
    if len(draws) > 1 and row.draw is None:
        values = ", ".join(one.status if one.value is None else _short_value(one.value, output) for one in draws)
        parts.append(f"single datasets: {values}")
    parts += [row.reason] if row.value is not None and row.reason else []
    return "; ".join(parts)


def _short_value(value: float, output: Output) -> str:
    return format_percent(value) if output.in_percent else number(value)


def _levers_text(verdicts: Sequence[Verdict], output: Output) -> str:
    """Return what to change where a limit may not be met; empty where all limits are met."""
    if verdicts and all(one.outcome == "met" for one in verdicts):
        return ""
    return "; ".join(output.label.levers)


def explanation_title(key: str) -> str:
    """Return the heading of an explanation: the human name of a measure, under its family."""
    family = FAMILY_HEADINGS.get(key.partition(".")[0], "")
    return f"{measure_name(key)}{f' · {family}' if family else ''}"


@dataclass(frozen=True)
class MeasureDescription:
    """How a method describes one of its measures.

    title: title of the method
    meaning: definition of the measure
    goal: which way is better
    source: where the method comes from
    defaults: defaults of its settings
    key, name: key and human name of the measure
    """

    title: str
    meaning: str
    goal: str
    source: str
    defaults: Mapping[str, Any] = field(default_factory=dict)
    key: str = ""
    name: str = ""


def describe_measure(key: str) -> MeasureDescription:
    """Return the description of a measure by this version's method; slow the first time, since methods are loaded."""
    from sfumato.engine.methods.spec import to_plain_value

    method, output = method_and_output(key)
    if method is None:
        return MeasureDescription(
            "a method that this version does not have", output.meaning, output.goal, "", key=key, name=measure_name(key)
        )
    defaults = {info.name: to_plain_value(info.default) for info in method.spec.params() if not info.is_required}
    return MeasureDescription(
        method.title, output.meaning, output.goal, method.source, defaults, key, measure_name(key)
    )


def definition_facts(
    meaning: MeasureDescription, variable: str, level: float | None, settings: FactLines = NO_FACTS
) -> FactLines:
    """Return the definition, method, settings, source and key of a number; empty entries are left out."""
    return nonempty_facts(
        [
            ("definition", meaning.meaning),
            ("direction", DIRECTION_TEXTS.get(meaning.goal, "")),
            ("method", meaning.title),
            ("variable", variable),
            ("level", "" if level is None else f"S = {number(level)}"),
            ("source", meaning.source),
            *settings,
            ("key", meaning.key),
        ]
    )


def nonempty_facts(named: FactLines) -> FactLines:
    """Return the facts that have a text."""
    return [(name, text) for name, text in named if text]
