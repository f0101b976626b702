"""Results of an audit by shadow releases: which targets are recognised, and by what. Record numbers, never values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sfumato.engine.methods.labels import sentence_of
from sfumato.engine.methods.registry import method_by_key, output_by_key
from sfumato.engine.methods.rows import Row
from sfumato.engine.wording import singular_noun

from .words import interval_text, number

STRIP_CELLS = 21
"""Cells of the strip that draws an interval; odd, so that 1/2 is a cell."""
MOST_TARGETS, MOST_REASONS = 12, 5
"""Targets of an audit, and reasons for each, that are listed."""


@dataclass(frozen=True, slots=True)
class AuditedRecord:
    """Result of an audit by shadow releases for one target.

    record: its number, from 1; of a unit of several records that of its first
    auc: area under the curve by which releases with and without the record are distinguished
    lower, upper: limits of the area that hold for all targets at once
    feature_weights: features of the release and their weights in the classifier, the largest first; a weight is
        positive where more of the feature speaks for the record
    unit_noun: what the targets are, in the plural, where they are units of several records
    """

    record: int
    auc: float
    lower: float
    upper: float
    feature_weights: tuple[tuple[str, float], ...]
    unit_noun: str = ""

    @property
    def title(self) -> str:
        """Return who the target is: ``record 12``, or ``household of record 12``."""
        of = f"{singular_noun(self.unit_noun)} of " if self.unit_noun else ""
        return f"{of}record {self.record:,}"

    @property
    def is_given_away(self) -> bool:
        """Return whether the releases reveal the record: the lower limit of the area is above 1/2."""
        return self.lower > 0.5


def interval_strip(one: AuditedRecord) -> str:
    """Draw the interval on a line from 0 to 1: ``·`` outside it, ``│`` at 1/2, ``●`` the area."""
    places = [
        min(STRIP_CELLS - 1, max(0, round(value * (STRIP_CELLS - 1)))) for value in (one.lower, one.upper, 0.5, one.auc)
    ]
    cells = ["━" if places[0] <= k <= places[1] else "·" for k in range(STRIP_CELLS)]
    # the area last, so that it shows where it falls on 1/2
    cells[places[2]], cells[places[3]] = "│", "●"
    return "".join(cells)


def auc_text(one: AuditedRecord) -> str:
    """Return the area and its interval: ``0.91 (0.78 .. 1)``."""
    return f"{number(one.auc)} ({interval_text(one.lower, one.upper)})"


def audit_sentences(rows: Iterable[Row]) -> list[str]:
    """Return a sentence for each audit by shadow releases: how many people it recognised, or why it was not computed."""
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
            # the reason of such a row begins with the number of people that were attacked
            asked = row.reason.partition(";")[0]
            between = f"95 % interval {interval_text(row.lower, row.upper)}"
            said = f"{said.removesuffix('.')}, of {asked}; {between}."
        found.append(said)
    return found


def audited_strip_facts(targets: Sequence[AuditedRecord]) -> list[tuple[str, str]]:
    """Return the number of recognised people and a strip for each of the first targets."""
    away = sum(one.is_given_away for one in targets)
    noun = (targets[0].unit_noun if targets else "") or "people"
    facts = (
        [(noun, f"{away} of {len(targets)} {noun} asked about are recognised (interval above 0.5)")] if targets else []
    )
    facts += [(one.title, f"{interval_strip(one)} {auc_text(one)}") for one in targets[:MOST_TARGETS]]
    if len(targets) > MOST_TARGETS:
        facts.append(("", f"and {len(targets) - MOST_TARGETS} more, in Records"))
    return facts


def give_away_reasons(one: AuditedRecord) -> list[str]:
    """Return the features by which a person is recognised, each with its share of all weights, the largest first."""
    whole = sum(abs(weight) for _, weight in one.feature_weights) or 1.0
    return [
        f"{_feature_text(feature, weight)} ({abs(weight) / whole:.0%} of the weight)"
        for feature, weight in one.feature_weights[:MOST_REASONS]
    ]


def _feature_text(feature: str, weight: float) -> str:
    """Return in which direction a feature speaks for the record."""
    # distances are smaller or larger, all other features are counts
    distance = "distance" in feature
    if distance:
        return f"{'smaller' if weight < 0 else 'larger'} {feature}"
    return f"{'more' if weight > 0 else 'fewer'} {feature}"


def audited_record_facts(one: AuditedRecord, levers: Sequence[str] = ()) -> list[tuple[str, str]]:
    """Return the facts about one target: its area, by what it is recognised, and what to change."""
    said = (
        "recognised: the interval is above 0.5"
        if one.is_given_away
        else "not distinguished beyond chance: the interval contains 0.5"
    )
    facts = [("AUC", f"{interval_strip(one)} {auc_text(one)}"), ("result", said)]
    facts += [("recognised by" if not k else "", reason) for k, reason in enumerate(give_away_reasons(one))]
    return [*facts, *(("what to change" if not k else "", lever) for k, lever in enumerate(levers))]
