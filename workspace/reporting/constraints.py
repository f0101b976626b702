"""Constraints on records and how records comply with them, as tables and sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from sfumato.engine.wording import agreeing_word, count_noun

from ..visible_text import replace_unprintable
from .tables import DisplayCell, DisplayTable, table_from_titles

if TYPE_CHECKING:
    from sfumato.engine.constraints.redraw_counts import RedrawCounts

LONGEST_RULE = 120
RedrawsByDataset = Mapping[int, "Sequence[RedrawCounts]"]
"""Counts of redrawn records of each dataset, by its number."""
REDRAWS_EXPLANATION = (
    "Records of a dataset that broke a rule when a step had drawn them and were redrawn by the same model, on average over the datasets and at most; how often "
    "that was done in all datasets; records of a dataset that break it in the end. What is accepted has the model's distribution given the rules: where many "
    "records are redrawn, the model did not know the rule."
)


@dataclass(frozen=True, slots=True)
class RuleLine:
    """Constraint on records, with how many records comply with it.

    name, text: its name and the rule, as written
    source: where the recipe says that it comes from
    broken: number of records that break it
    unknown: number of records for which it cannot be decided
    records: number of all records
    support: number of records that support it; None for a rule that was not found in the data
    """

    name: str
    text: str
    source: str
    broken: int
    unknown: int
    records: int
    support: int | None = None

    def to_recipe_value(self) -> str | dict[str, str]:
        """Return the value that a recipe has for the constraint."""
        return self.text if self.source == "declared" else {"holds": self.text, "source": self.source}


@dataclass(frozen=True, slots=True)
class RulesView:
    """Constraints of a table.

    records: number of records
    said: constraints that the recipe declares, in their order
    found: other rules that all records comply with, the best supported first
    """

    records: int
    said: tuple[RuleLine, ...]
    found: tuple[RuleLine, ...] = ()


def _rule_cell(rule: str) -> DisplayCell:
    """Return a rule as a cell, cut in lines of text and in full on a page."""
    said = replace_unprintable(rule)
    return DisplayCell(said if len(said) <= LONGEST_RULE else f"{said[: LONGEST_RULE - 1]}…", full_text=said)


def declared_rules_table(lines: Sequence[RuleLine]) -> DisplayTable:
    """Return the declared constraints with the number of records that break each."""
    rows: list[list[DisplayCell | str]] = [
        [
            DisplayCell("broken", "fail") if line.broken else DisplayCell("kept", "pass"),
            replace_unprintable(line.name),
            _rule_cell(line.text),
            f"{line.broken:,}",
            f"{line.unknown:,}",
            line.source,
        ]
        for line in lines
    ]
    return table_from_titles(("", "constraint", "rule", "records", "unknown", "source"), rows, right=(3, 4), spare=(5,))


def suggested_rules_table(lines: Sequence[RuleLine]) -> DisplayTable:
    """Return the rules that all records comply with, and the number of records that support each."""
    rows: list[list[DisplayCell | str]] = [
        [replace_unprintable(line.name), _rule_cell(line.text), f"{line.support or 0:,}"] for line in lines
    ]
    return table_from_titles(("name", "rule that every record keeps to", "records"), rows, right=(2,))


def compliance_text(view: RulesView) -> str:
    """Return in a sentence how many rules are broken, and by how many records."""
    broken = [line for line in view.said if line.broken]
    rules = count_noun(len(view.said), "rule")
    if not view.said:
        return f"{count_noun(view.records, 'record')}; the recipe declares no constraints"
    if not broken:
        return f"{count_noun(view.records, 'record')}; none breaks one of {rules}"
    said = ", ".join(f"{replace_unprintable(line.name)}: {line.broken:,}" for line in broken)
    return f"{count_noun(view.records, 'record')}; {len(broken)} of {rules} broken ({said})"


def redraws_sentence(redraws: RedrawsByDataset) -> str:
    """Return in a sentence how many records were redrawn to keep rules; empty where no step had constraints.

    One dataset: ``214 of 10,000 records redrawn (adult_spouse 200, order 14)``; several: the average and the largest
    number.
    """
    # the line without a step counts records over all steps, each once
    whole = [one for found in redraws.values() for one in found if not one.step]
    if not whole:
        return ""
    own = _redraws_by_rule(redraws)
    named = [f"{replace_unprintable(name)} {_mean_text(counts)}" for name, counts in own.items() if any(counts)]
    rules = f" ({', '.join(named)})" if named else ""
    records = [one.records for one in whole]
    left = max(one.left for one in whole)
    stays = (
        f"; {count_noun(left, 'record')} of a dataset left that {agreeing_word(left, 'breaks', 'break')} a rule"
        if left
        else ""
    )
    if len(whole) == 1:
        return f"{records[0]:,} of {count_noun(whole[0].of, 'record')} redrawn{rules}{stays}"
    most = f", at most {max(records):,}" if any(records) else ""
    return f"{_mean_text(records)} of {count_noun(whole[0].of, 'record')} of a dataset redrawn on average{most}{rules}{stays}"


def _redraws_by_rule(redraws: RedrawsByDataset) -> dict[str, list[int]]:
    """Count the redrawn records of each dataset by rule; where several steps had the same rule, add them up."""
    found: dict[str, list[int]] = {}
    for place, lines in enumerate(redraws.values()):
        for one in (line for line in lines if line.constraint):
            counts = found.setdefault(one.constraint, [0] * len(redraws))
            counts[place] += one.records
    return found


def _mean_text(counts: Sequence[int]) -> str:
    """Return the mean of counts, without decimals where it is whole."""
    mean = sum(counts) / len(counts)
    return f"{mean:,.0f}" if mean == round(mean) or mean >= 100 else f"{mean:,.1f}"


def redraws_table(redraws: RedrawsByDataset) -> DisplayTable | None:
    """Return the redrawn records by step and rule; None where no record was redrawn."""
    groups: dict[tuple[str, str, str], list[RedrawCounts]] = {}
    for lines in redraws.values():
        for one in lines:
            groups.setdefault((one.step, one.target, one.constraint), []).append(one)
    if not groups:
        return None
    rows: list[list[DisplayCell | str]] = [
        [
            step or "any step",
            replace_unprintable(target),
            replace_unprintable(name) if name else "any",
            f"{own[0].of:,}",
            _mean_text([one.records for one in own]),
            f"{max(one.records for one in own):,}",
            f"{sum(one.redraws for one in own):,}",
            f"{max(one.left for one in own):,}",
        ]
        for (step, target, name), own in groups.items()
    ]
    heads = ("step", "variables", "constraint", "records", "redrawn", "at most", "redraws", "left")
    return table_from_titles(heads, rows, right=(3, 4, 5, 6, 7), spare=(6, 3))


def redraws_objects(redraws: RedrawsByDataset) -> list[dict[str, Any]]:
    """Return the objects that ``--json`` writes about redraws, one for each dataset, step and rule."""
    return [{"draw": draw, **asdict(one)} for draw, lines in redraws.items() for one in lines]


def constraints_section(lines: Sequence[RuleLine]) -> dict[str, Any]:
    """Return the ``[constraints]`` section of a recipe that has these rules."""
    return {line.name: line.to_recipe_value() for line in lines}
