"""People whom an audit by shadow releases has attacked: how far each stands out, and what gives the person away. Record numbers, never values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sfumato.engine.methods.labels import sentence_of
from sfumato.engine.methods.registry import method_by_key, output_by_key
from sfumato.engine.methods.rows import Row

from .words import interval_text, number

STRIP_CELLS = 21
"""Of a strip from 0 to 1, with 1/2 in the middle."""
MOST_TARGETS, MOST_REASONS = 12, 5


@dataclass(frozen=True, slots=True)
class AuditedRecord:
    """One target of an audit by shadow releases.

    record: its number, from 1
    auc: area under the curve by which releases with and without the record are distinguished
    lower, upper: limits of the area that hold for all targets at once
    feature_weights: features of the release and their weights in the classifier, the largest first; above 0 where more of a feature
        speaks for the record
    """

    record: int
    auc: float
    lower: float
    upper: float
    feature_weights: tuple[tuple[str, float], ...]

    @property
    def is_given_away(self) -> bool:
        """Return whether the area is above 1/2 beyond chance."""
        return self.lower > 0.5


def interval_strip(one: AuditedRecord) -> str:
    """Draw the interval on a line from 0 to 1: ``·`` outside it, ``│`` at 1/2, ``●`` the area."""
    places = [
        min(STRIP_CELLS - 1, max(0, round(value * (STRIP_CELLS - 1)))) for value in (one.lower, one.upper, 0.5, one.auc)
    ]
    cells = ["━" if places[0] <= k <= places[1] else "·" for k in range(STRIP_CELLS)]
    cells[places[2]], cells[places[3]] = "│", "●"
    return "".join(cells)


def auc_text(one: AuditedRecord) -> str:
    """Return the area and its interval: ``0.91 (0.78 .. 1)``."""
    return f"{number(one.auc)} ({interval_text(one.lower, one.upper)})"


def audit_sentences(rows: Iterable[Row]) -> list[str]:
    """Return a sentence for each use and kind of people: how many an audit by shadow releases found, or that it was not computed.

    Empty without an audit.
    """
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
            between = f"95 % interval {interval_text(row.lower, row.upper)}"
            said = f"{said.removesuffix('.')}, of {asked}; {between}."
        found.append(said)
    return found


def audited_strip_facts(targets: Sequence[AuditedRecord]) -> list[tuple[str, str]]:
    """Return a strip for each of the targets that stand out most."""
    away = sum(one.is_given_away for one in targets)
    facts = (
        [("people", f"{away} of {len(targets)} people asked about are recognised (interval above 0.5)")]
        if targets
        else []
    )
    facts += [(f"record {one.record:,}", f"{interval_strip(one)} {auc_text(one)}") for one in targets[:MOST_TARGETS]]
    if len(targets) > MOST_TARGETS:
        facts.append(("", f"and {len(targets) - MOST_TARGETS} more, in Records"))
    return facts


def give_away_reasons(one: AuditedRecord) -> list[str]:
    """Return what gives the person away: the features of the largest weights, in words, each with its share of all weights."""
    whole = sum(abs(weight) for _, weight in one.feature_weights) or 1.0
    return [
        f"{_feature_text(feature, weight)} ({abs(weight) / whole:.0%} of the weight)"
        for feature, weight in one.feature_weights[:MOST_REASONS]
    ]


def _feature_text(feature: str, weight: float) -> str:
    distance = "distance" in feature
    if distance:
        return f"{'smaller' if weight < 0 else 'larger'} {feature}"
    return f"{'more' if weight > 0 else 'fewer'} {feature}"


def audited_record_facts(one: AuditedRecord, levers: Sequence[str] = ()) -> list[tuple[str, str]]:
    """Return everything about one target: the area, what gives the person away, what to change."""
    said = (
        "recognised: the interval is above 0.5"
        if one.is_given_away
        else "not distinguished beyond chance: the interval contains 0.5"
    )
    facts = [("AUC", f"{interval_strip(one)} {auc_text(one)}"), ("result", said)]
    facts += [("recognised by" if not k else "", reason) for k, reason in enumerate(give_away_reasons(one))]
    return [*facts, *(("what to change" if not k else "", lever) for k, lever in enumerate(levers))]
