"""People whom an audit asked about: how far each stands out, as a strip, and what gives the person away, in words. Record numbers, never values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sfumato.engine.methods.labels import sentence_of
from sfumato.engine.methods.registry import method_by_key, output_by_key
from sfumato.engine.methods.rows import Row

from .words import interval, number

CELLS = 21
"""Of a strip from 0 to 1, with 1/2 in the middle."""
MOST_TARGETS, MOST_REASONS = 12, 5


@dataclass(frozen=True, slots=True)
class AuditedRecord:
    """A record, its number from 1, with the ``area`` by which releases with and without it are distinguished, limits that hold for all targets at once, and
    features by their weight in the classifier, the largest first: above 0 where more of it speaks for the record.
    """

    record: int
    area: float
    lower: float
    upper: float
    weights: tuple[tuple[str, float], ...]

    @property
    def given_away(self) -> bool:
        """Whether the area is above 1/2 beyond chance."""
        return self.lower > 0.5


def strip(one: AuditedRecord) -> str:
    """The interval on a line from 0 to 1: ``·`` outside it, ``│`` at 1/2, ``●`` the area."""
    places = [min(CELLS - 1, max(0, round(value * (CELLS - 1)))) for value in (one.lower, one.upper, 0.5, one.area)]
    cells = ["━" if places[0] <= k <= places[1] else "·" for k in range(CELLS)]
    cells[places[2]], cells[places[3]] = "│", "●"
    return "".join(cells)


def area_text(one: AuditedRecord) -> str:
    """``0.91 (0.78 .. 1)``."""
    return f"{number(one.area)} ({interval(one.lower, one.upper)})"


def given_away_lines(rows: Iterable[Row]) -> list[str]:
    """In people, what audits by shadow releases found: a sentence for each use and kind of people, or that it was not computed. Empty without an audit."""
    found = []
    for row in rows:
        method = method_by_key(row.method_key)
        if row.draw is not None or method is None or not method.measurement.refits:
            continue
        output = output_by_key(row.key)
        if output is None or output.label.counts != "people":
            continue
        said = sentence_of(row)
        if row.value is not None:
            asked = row.reason.partition(";")[0]
            between = f"95 % interval {interval(row.lower, row.upper)}"
            said = f"{said.removesuffix('.')}, of {asked}; {between}."
        found.append(said)
    return found


def strip_facts(targets: Sequence[AuditedRecord]) -> list[tuple[str, str]]:
    """A strip for each of the targets that stand out most."""
    away = sum(one.given_away for one in targets)
    facts = (
        [("people", f"{away} of {len(targets)} people asked about are given away (interval above 0.5)")]
        if targets
        else []
    )
    facts += [(f"record {one.record:,}", f"{strip(one)} {area_text(one)}") for one in targets[:MOST_TARGETS]]
    if len(targets) > MOST_TARGETS:
        facts.append(("", f"and {len(targets) - MOST_TARGETS} more, in Records"))
    return facts


def reasons(one: AuditedRecord) -> list[str]:
    """What gives the person away: the features of the largest weights, in words, each with its share of all weights."""
    whole = sum(abs(weight) for _, weight in one.weights) or 1.0
    return [
        f"{_more(feature, weight)} ({abs(weight) / whole:.0%} of the weight)"
        for feature, weight in one.weights[:MOST_REASONS]
    ]


def _more(feature: str, weight: float) -> str:
    distance = "distance" in feature
    if distance:
        return f"{'smaller' if weight < 0 else 'larger'} {feature}"
    return f"{'more' if weight > 0 else 'fewer'} {feature}"


def why_facts(one: AuditedRecord, levers: Sequence[str] = ()) -> list[tuple[str, str]]:
    """Everything about one target: the area, what gives the person away, what to change."""
    said = (
        "given away: the interval is above 0.5"
        if one.given_away
        else "not distinguished beyond chance: the interval contains 0.5"
    )
    facts = [("AUC", f"{strip(one)} {area_text(one)}"), ("result", said)]
    facts += [("what gives away" if not k else "", reason) for k, reason in enumerate(reasons(one))]
    return [*facts, *(("what to change" if not k else "", lever) for k, lever in enumerate(levers))]
