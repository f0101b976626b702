"""Explanation of a number of a run, and the description of its measure.

The facts come in the order in which people ask: what the number says, which values are good, what it compares with, how
sure it is, whether its limit is met and what to change; then definition, method, settings and key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sfumato.engine.methods.labels import measure_name, method_and_output, quantity_of, sentence_of
from sfumato.engine.methods.outputs import Output
from sfumato.engine.methods.rows import Row
from sfumato.engine.recipe.thresholds import Verdict
from sfumato.engine.wording import format_percent

from .audits import AuditedRecord, audited_strip_facts
from .numbers import section_title
from .words import (
    DIRECTION_TEXTS,
    judged_interval_text,
    limit_quantity,
    limit_text,
    number,
    observed_text,
    outcome_text,
    row_interval_text,
)

CONFIDENTIAL_REFERENCE = {"risk": "the same data released unprotected", "studies": "the same data released unprotected"}
"""What the confidential data's own value stands for, by family; otherwise for the confidential data themselves."""
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
    folded: facts about the numbers that are folded into its line, as pairs of a name and a text
    """

    row: Row
    series_rows: Sequence[Row] = ()
    verdicts: Sequence[Verdict] = ()
    n_records: int | None = None
    audited_records: Sequence[AuditedRecord] = ()
    folded: Sequence[tuple[str, str]] = ()


def explanation_facts(found: ExplainedNumber) -> FactLines:
    """Return the facts that explain a number, as pairs of a name and a text; empty ones are left out."""
    row = found.row
    _, output = method_and_output(row.key)
    facts = [
        ("in words", sentence_of(row, found.n_records)),
        ("good is", output.label.good.removeprefix("Good is ")),
        *_reference_facts(found, output),
        ("how sure", _certainty_text(found, output)),
        # the reason of a number stands with how sure it is
        *(
            ("verdict", verdict_text(replace(one, reason="") if one.reason == row.reason else one, found.n_records))
            for one in found.verdicts
        ),
        *_failure_facts(found.verdicts, output),
        *audited_strip_facts(found.audited_records),
        ("what to change", _levers_text(found.verdicts, output)),
    ]
    return [*((name, text) for name, text in facts if text), *found.folded]


def verdict_text(verdict: Verdict, records: int | None = None) -> str:
    """Return a verdict in a line: ``✗ not met: 88 of 20,190 (0.44 %), at most 0.1 %, 0.34 points outside ...``."""
    return f"{outcome_text(verdict.outcome)}: {_verdict_judgement(verdict, records)}"


def verdict_line(verdict: Verdict, name: str, records: int | None = None) -> str:
    """Return a verdict with the name of its number: ``not met: Re-identified with certainty, 88 of 20,190 ...``."""
    return f"{verdict.outcome}: {name}, {_verdict_judgement(verdict, records)}"


def _verdict_judgement(verdict: Verdict, records: int | None) -> str:
    """Return the observed value of a verdict, its limit, its margin and its reason."""
    band = f" ({judged})" if (judged := judged_interval_text(verdict)) else ""
    parts = [] if verdict.observed is None else [f"{observed_text(verdict, records)}{band}"]
    parts += [limit_text(verdict.bound, verdict.limit, verdict.value)]
    parts += [_margin_text(verdict)] if verdict.margin else []
    why = f"; {verdict.reason}" if verdict.reason else ""
    return f"{', '.join(parts)}{why}"


def _margin_text(verdict: Verdict) -> str:
    """Return how far a verdict is inside or outside its limit."""
    assert verdict.margin is not None
    way = "inside the limit" if verdict.margin > 0 else "outside the limit"
    size = limit_quantity(verdict.bound, abs(verdict.margin), verdict.value)
    # a difference of shares is in percentage points
    return f"{size.replace(' %', ' points')} {way}"


def _failure_facts(verdicts: Sequence[Verdict], output: Output) -> FactLines:
    """Return what it means where a limit is not met."""
    fails = any(one.outcome == "not met" for one in verdicts)
    return [("this means", output.label.fails if fails else "")]


def _reference_facts(found: ExplainedNumber, output: Output) -> FactLines:
    """Return the values to compare with: that of the confidential data, and another baseline."""
    row = found.row
    # for a risk this is what releasing the data unprotected would mean
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
    """Return the interval of a number, its values in single datasets, and whether it is exact."""
    row = found.row
    parts = []
    if ends := row_interval_text(row):
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
    """Return a value as text, in per cent where its measure is a share."""
    return format_percent(value) if output.in_percent else number(value)


def _levers_text(verdicts: Sequence[Verdict], output: Output) -> str:
    """Return what to change where a limit may not be met; empty where all limits are met."""
    if verdicts and all(one.outcome == "met" for one in verdicts):
        return ""
    return "; ".join(output.label.levers)


def explanation_title(key: str) -> str:
    """Return the name of a measure with the question that it answers."""
    return f"{measure_name(key)} · {section_title(key)}"


@dataclass(frozen=True)
class MeasureDescription:
    """What a method says of its measure: title, meaning, goal, source and defaults.

    title: title of the method
    meaning: definition of the measure
    goal: which direction is better
    source: publication of the method
    defaults: defaults of its settings
    key, name: key and name of the measure
    """

    title: str
    meaning: str
    goal: str
    source: str
    defaults: Mapping[str, Any] = field(default_factory=dict)
    key: str = ""
    name: str = ""


def describe_measure(key: str) -> MeasureDescription:
    """Return the description of a measure by this version's method."""
    # imported late, since loading the methods takes long
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
    """Return the definition, method, settings, source and key of a number; empty ones are left out."""
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
