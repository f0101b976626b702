"""Meters of a run: its numbers against the limits of its plan, each with a gauge, and the time that it took."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from textual.content import Content

from sfumato.engine.methods.labels import is_of_units, measure_name, quantity_of
from sfumato.engine.recipe.outcomes import WORST_FIRST
from sfumato.engine.recipe.thresholds import Verdict
from sfumato.engine.wording import RecordCount, count_noun
from sfumato.tui.parts.gauges import GAUGE, LEAST_GAUGE, STYLES, draw_gauge
from sfumato.tui.terminal.text import cut_text, fit_text
from sfumato.tui.widgets.facts import wrap_text
from sfumato.workspace.reporting.words import (
    CONFIDENTIAL_VALUE,
    RAW_DATA,
    brief_limit_text,
    limit_text,
    observed_text,
    sign_for,
)
from sfumato.workspace.visible_text import replace_unprintable

FEW_METERS, MOST_METERS, ROOM_FOR_MOST = 3, 8, 20
"""Meters in few lines, and most meters where there are as many lines as the last number."""
MOST_OF_RISK = 2
"""Meters of risk that come before the first of utility."""
TITLES = (36, 30, 26, 23)
LEAST_TITLE = 20
GAUGES = (GAUGE, 14, 10, LEAST_GAUGE, 0)
"""Widths of titles and gauges in cells, the widest that fit are taken; 0 for no gauge."""
WIDE_GAUGES = 3
"""Number of the gauges beside which all titles are whole, if there is room for that."""
GAP = "  "


@dataclass(frozen=True)
class MeterContext:
    """What meters need beside the verdicts.

    records: confidential records of the run
    units: its units, such as people who have several records each; None where nobody has counted them
    may_leave: whether the gate lets the release leave, without which nothing is green
    time_text: how long the run took; empty for none
    place_key: key of the place that has every limit
    """

    records: int | None = None
    units: RecordCount | None = None
    may_leave: bool = False
    time_text: str = ""
    place_key: str = ""


def sort_verdicts(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Return verdicts with the worst first, and of one outcome and number those that count units before records."""
    places = {(one.key, one.target): at for at, one in reversed(list(enumerate(verdicts)))}
    return sorted(verdicts, key=lambda one: (_outcome_rank(one), places[one.key, one.target], _counts_records(one)))


def choose_metered(verdicts: Sequence[Verdict], most: int) -> list[Verdict]:
    """Return at most ``most`` verdicts for meters: one for each measure, its worst; what is not met comes first.

    Among equals are units before records, and what is nearest its limit. Two measures of risk come before the first of
    utility.
    """
    by_measure: dict[str, list[Verdict]] = {}
    for one in verdicts:
        if _has_gauge(one):
            by_measure.setdefault(one.key, []).append(one)
    worst = sorted((min(group, key=_badness) for group in by_measure.values()), key=_outcome_rank)
    risks, others = ([one for one in worst if _is_of_utility(one) is chosen] for chosen in (False, True))
    balanced = [*risks[:MOST_OF_RISK], *others[:1], *risks[MOST_OF_RISK:], *others[1:]]
    chosen = sorted(balanced, key=_outcome_rank)[:most]
    return sorted(chosen, key=lambda one: (_outcome_rank(one), _is_of_utility(one)))


def other_metered(verdicts: Sequence[Verdict], metered: Sequence[Verdict], most: int) -> list[Verdict]:
    """Return at most ``most`` other verdicts for meters, the worst first: one for each measure and variable."""
    shown = {(one.key, one.target) for one in metered}
    others: dict[tuple[str, str], Verdict] = {}
    for one in sort_verdicts(verdicts):
        if _has_gauge(one) and (one.key, one.target) not in shown:
            others.setdefault((one.key, one.target), one)
    return list(others.values())[: max(0, most)]


def _has_gauge(verdict: Verdict) -> bool:
    """Return whether a verdict has a number and a limit to draw."""
    return verdict.observed is not None and verdict.limit > 0


def _outcome_rank(verdict: Verdict) -> int:
    """Return the place of a verdict's outcome, the worst first."""
    return WORST_FIRST.index(verdict.outcome)


def _is_of_utility(verdict: Verdict) -> bool:
    """Return whether a verdict is on a measure of utility."""
    return verdict.key.startswith("utility.")


def _counts_records(verdict: Verdict) -> bool:
    """Return whether a verdict counts records and not their units, which come before them."""
    return not is_of_units(verdict.params or {})


def _badness(verdict: Verdict) -> tuple[int, bool, float]:
    """Return the order of verdicts on one measure: the worst outcome, units, then the nearest to its limit."""
    observed = verdict.observed or 0.0
    nearness = observed / verdict.limit if verdict.bound != "min" else -observed / verdict.limit
    return _outcome_rank(verdict), _counts_records(verdict), -nearness


def limits_tally(verdicts: Sequence[Verdict], noun: str = "limit") -> str:
    """Return how many limits are met or not: ``12 of 12 limits met``, ``1 of 3 limits not met, 1 undecided``.

    An empty ``noun`` is for a place that says what is counted: ``12 of 12 met``.
    """
    counts, n = Counter(one.outcome for one in verdicts), len(verdicts)
    total = count_noun(n, noun) if noun else f"{n}"
    said = [f"{counts[one]} {{}}{one}" for one in WORST_FIRST[:-1] if counts[one]]
    if not said:
        return f"{counts['met']} of {total} met"
    return ", ".join([said[0].format(f"of {total} "), *(one.format("") for one in said[1:])])


def meter_found_text(verdict: Verdict, context: MeterContext) -> str:
    """Return the number of a verdict in few cells: ``19 of 4,162 (0.46 %)`` where people are counted, else ``2.84 %``, of
    a ratio to the confidential data ``2.98 % of raw data``.
    """
    if verdict.bound == "max_ratio":
        number, _, reference = observed_text(verdict).partition(" of ")
        return f"{number} of {RAW_DATA}" if reference == CONFIDENTIAL_VALUE else number
    params = dict(verdict.params or {})
    if (
        context.units
        and not _counts_records(verdict)
        and verdict.observed is not None
        and verdict.bound in ("max", "min")
    ):
        # Without these the number counts all units, whose number is known here.
        of_all = {name: value for name, value in params.items() if name not in ("by", "of")}
        text = quantity_of(verdict.key, verdict.observed, context.units, of_all, beside=verdict.limit)
        if " of " in text:
            return text.replace(f" {context.units.noun} (", " (")
    return observed_text(verdict, context.records)


def meter_lines(verdicts: Sequence[Verdict], context: MeterContext, width: int) -> list[Content]:
    """Return a line for each verdict: sign, number, gauge, value and limit, in columns of ``width`` cells, and below it
    the rest of a long name.
    """
    names = [f"{measure_name(one.key)}{_target_text(one)}" for one in verdicts]
    found = [replace_unprintable(meter_found_text(one, context)) for one in verdicts]
    # Of what a ratio is stands beside the number that it limits.
    limits = [
        replace_unprintable(limit_text(one.bound, one.limit, one.value)).removesuffix(f" of {CONFIDENTIAL_VALUE}")
        if one.bound == "max_ratio" and one.observed is not None
        else replace_unprintable(limit_text(one.bound, one.limit, one.value))
        for one in verdicts
    ]
    value = max(map(cell_len, found), default=0)
    last = max((cell_len(brief_limit_text(text)) for text in limits), default=0)
    longest = max(map(cell_len, names), default=0)
    # A name that is whole says more than a longer gauge.
    wanted = (longest, *(title for title in TITLES if title < longest))
    title, gauge = next(
        (
            (title, gauge)
            for titles, gauges in ((wanted[:1], GAUGES[:WIDE_GAUGES]), (wanted, GAUGES))
            for gauge in gauges
            for title in titles
            if 2 + title + 2 + (gauge + 2 if gauge else 0) + value + 2 + last <= width
        ),
        (min(LEAST_TITLE, longest), 0),
    )
    lines = []
    for one, name, text, limit in zip(verdicts, names, found, limits, strict=True):
        ink = "$success bold" if context.may_leave and one.outcome == "met" else STYLES[one.outcome]
        used = 2 + title + 2 + (gauge + 2 if gauge else 0) + value + 2
        said = limit if used + cell_len(limit) <= width else brief_limit_text(limit)
        drawn: list[Content | str] = [draw_gauge(one, ink, gauge), GAP] if gauge else []
        # A long name goes on below: it is never cut beside cells that are empty.
        first, *rest = wrap_text(name, title) or [""]
        parts: list[Content | str | tuple[str, str]] = [
            (f"{sign_for(one.outcome)} ", "" if one.outcome == "met" else ink),
            fit_text(first, title),
            GAP,
            *drawn,
            (fit_text(text, min(value, max(1, width - (used - value - 2)))), ink),
            GAP,
            (cut_text(said, width - used), "$text-muted"),
        ]
        lines.append(Content.assemble(*parts))
        lines += [Content(f"  {line}") for line in rest]
    return lines


def _target_text(verdict: Verdict) -> str:
    """Return the variable of a verdict in brackets; empty without one."""
    return f" ({verdict.target})" if verdict.target else ""
