"""Rules and how records keep to them, as tables and sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from sfumato.engine.wording import agreeing_word, count_noun

from ..visible_text import replace_unprintable
from .tables import Cell, Table, table

if TYPE_CHECKING:
    from sfumato.engine.constraints.redraw_counts import RedrawCounts

MOST_LETTERS = 120
Redraws = Mapping[int, "Sequence[RedrawCounts]"]
"""What each dataset drew anew, by its number."""
REDRAWS_READ = (
    "Records of a dataset that broke a rule when a step had drawn them and were drawn anew by the same model, on average over the datasets and at most; how often "
    "that was done in all datasets; records of a dataset that break it in the end. What is accepted has the model's distribution given the rules: where many "
    "records are redrawn, the model did not know the rule."
)


@dataclass(frozen=True, slots=True)
class RuleLine:
    """A rule by its name, and what ``records`` say of it: how many break it, of how many nobody can say, how many bear it out.

    ``source`` is what a recipe says of it; ``support`` is None of a rule that was not found in the data.
    """

    name: str
    text: str
    source: str
    broken: int
    unknown: int
    records: int
    support: int | None = None

    def to_value(self) -> str | dict[str, str]:
        """What a recipe writes after its name."""
        return self.text if self.source == "declared" else {"holds": self.text, "source": self.source}


@dataclass(frozen=True, slots=True)
class RulesView:
    """The rules ``said``, in their order, and those ``found`` in the data that are not said, the surest first."""

    records: int
    said: tuple[RuleLine, ...]
    found: tuple[RuleLine, ...] = ()


def _short(rule: str) -> Cell:
    """A rule in a table: its beginning where it is long, all of it on a page."""
    said = replace_unprintable(rule)
    return Cell(said if len(said) <= MOST_LETTERS else f"{said[: MOST_LETTERS - 1]}…", full=said)


def said_table(lines: Sequence[RuleLine]) -> Table:
    """The rules of a recipe, and how many records break each."""
    rows: list[list[Cell | str]] = [
        [
            Cell("broken", "fail") if line.broken else Cell("kept", "pass"),
            replace_unprintable(line.name),
            _short(line.text),
            f"{line.broken:,}",
            f"{line.unknown:,}",
            line.source,
        ]
        for line in lines
    ]
    return table(("", "constraint", "rule", "records", "unknown", "source"), rows, right=(3, 4), spare=(5,))


def found_table(lines: Sequence[RuleLine]) -> Table:
    """Rules that all records keep to, and how many bear each out."""
    rows: list[list[Cell | str]] = [
        [replace_unprintable(line.name), _short(line.text), f"{line.support or 0:,}"] for line in lines
    ]
    return table(("name", "rule that every record keeps to", "records"), rows, right=(2,))


def kept_text(view: RulesView) -> str:
    """How many records break how many rules, in a sentence."""
    broken = [line for line in view.said if line.broken]
    rules = count_noun(len(view.said), "rule")
    if not view.said:
        return f"{count_noun(view.records, 'record')}; the recipe declares no constraints"
    if not broken:
        return f"{count_noun(view.records, 'record')}; none breaks one of {rules}"
    said = ", ".join(f"{replace_unprintable(line.name)}: {line.broken:,}" for line in broken)
    return f"{count_noun(view.records, 'record')}; {len(broken)} of {rules} broken ({said})"


def redraws_text(redraws: Redraws) -> str:
    """How many records were drawn anew for how many rules, in a sentence; empty where no step was held to any.

    ``214 of 10,000 records redrawn (adult_spouse 200, order 14)``, of several datasets on average, with the most of one.
    """
    whole = [one for found in redraws.values() for one in found if not one.step]
    if not whole:
        return ""
    own = _by_rule(redraws)
    named = [f"{replace_unprintable(name)} {_mean(counts)}" for name, counts in own.items() if any(counts)]
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
    return (
        f"{_mean(records)} of {count_noun(whole[0].of, 'record')} of a dataset redrawn on average{most}{rules}{stays}"
    )


def _by_rule(redraws: Redraws) -> dict[str, list[int]]:
    """The records of each dataset that were drawn anew for each rule: where several steps were held to it, the sum over them."""
    found: dict[str, list[int]] = {}
    for place, lines in enumerate(redraws.values()):
        for one in (line for line in lines if line.constraint):
            counts = found.setdefault(one.constraint, [0] * len(redraws))
            counts[place] += one.records
    return found


def _mean(counts: Sequence[int]) -> str:
    """The mean of counts, whole where it is."""
    mean = sum(counts) / len(counts)
    return f"{mean:,.0f}" if mean == round(mean) or mean >= 100 else f"{mean:,.1f}"


def redraws_table(redraws: Redraws) -> Table | None:
    """Of each step and rule: records of a dataset drawn anew, on average and at most, how often in all, and left; None where there are none."""
    groups: dict[tuple[str, str, str], list[RedrawCounts]] = {}
    for lines in redraws.values():
        for one in lines:
            groups.setdefault((one.step, one.target, one.constraint), []).append(one)
    if not groups:
        return None
    rows: list[list[Cell | str]] = [
        [
            step or "any step",
            replace_unprintable(target),
            replace_unprintable(name) if name else "any",
            f"{own[0].of:,}",
            _mean([one.records for one in own]),
            f"{max(one.records for one in own):,}",
            f"{sum(one.redraws for one in own):,}",
            f"{max(one.left for one in own):,}",
        ]
        for (step, target, name), own in groups.items()
    ]
    heads = ("step", "variables", "constraint", "records", "redrawn", "at most", "redraws", "left")
    return table(heads, rows, right=(3, 4, 5, 6, 7), spare=(6, 3))


def redraws_objects(redraws: Redraws) -> list[dict[str, Any]]:
    """What ``--json`` writes of it: an object a dataset, step and rule."""
    return [{"draw": draw, **asdict(one)} for draw, lines in redraws.items() for one in lines]


def as_recipe(lines: Sequence[RuleLine]) -> dict[str, Any]:
    """The ``[constraints]`` of a recipe that has these rules."""
    return {line.name: line.to_value() for line in lines}
