"""Facts about the variable under the cursor, in words: what the plan does to it, who could know it, how it is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.cells import cell_len
from textual.content import Content

from sfumato.engine.data.schema import Kind, Role
from sfumato.engine.wording import count_noun, format_percent
from sfumato.tui.parts.fields import value_text
from sfumato.tui.terminal.text import cut_words, fit_text
from sfumato.tui.widgets.facts import NAME, fact_lines
from sfumato.workspace.ingest.profiles import DistributionProfile
from sfumato.workspace.reporting.words import role_text
from sfumato.workspace.views.data_view import ProfiledColumn, VariableLine
from sfumato.workspace.visible_text import replace_unprintable

from .sheet import bounds_text, column_problem
from .small_pictures import small_pictures

KIND_MEANINGS = {
    Kind.CATEGORICAL: "levels without an order",
    Kind.ORDINAL: "levels in an order",
    Kind.BINARY: "two levels",
    Kind.COUNT: "whole numbers",
    Kind.CONTINUOUS: "numbers",
    Kind.DATE: "dates",
}
"""What the values of each kind are."""
READ_AS = "read as"
"""Name of the fact on a variable's kind."""
MOST_LEVELS = 8
LEVEL_WIDTH, SHARE_WIDTH, MOST_LEVEL = 18, 7, 0.5
"""Cells of a level's name and of its share beside its bar, and the share of a line that longer names take."""
BAR = "█"
MOST_FACTS = 12
"""Lines that the facts about most variables take, with blank ones."""


def variable_content(
    line: VariableLine,
    found: ProfiledColumn | None,
    plan: Sequence[tuple[str, str]],
    release: Sequence[tuple[str, str]],
    width: int,
    most: int,
    *,
    has_bars: bool = True,
    counts: Mapping[str, Sequence[int]] | None = None,
) -> Content:
    """Return the facts about a variable in at most ``most`` lines of ``width`` cells; then bars of its levels, what is
    released of all variables, and small pictures of their values in the last lines, if they fit.

    plan: facts of the plan about the variable
    release: variables of the plan by what is released of them
    has_bars: whether there are bars, which no picture beside them repeats
    counts: number of records in each bar of the small pictures, by variable
    """
    variable, profile = line.variable, found.profile if found else None
    title = f"{variable.name}: {variable.title}" if variable.title else variable.name
    facts = _facts(line, found, plan)
    column = max(NAME, *(len(name) + 1 for name, _ in (*facts, *release)))
    lines = fact_lines(facts, width, least_of_name=column)
    if len(lines) >= most:
        # Its kind may have no line below it then, and has no column above where titles need the room.
        title = title.replace(variable.name, f"{variable.name} ({variable.kind.value})", 1)
        facts = [fact for fact in facts if fact[0] != READ_AS]
        lines = fact_lines(_whole_facts(facts, width, most - 1, column), width, least_of_name=column)
    lines.insert(0, Content.styled(cut_words(replace_unprintable(title), width), "bold"))
    bars = [] if profile is None or not has_bars else _level_bars(line, profile, width)
    released = fact_lines(release, width, least_of_name=column)
    whole = [Content.styled("What the plan releases", "bold"), *released] if release else []
    for part in (bars, whole):
        if part and len(lines) + len(part) + 1 <= most:
            lines += [Content(""), *part]
    # They have the same lines whatever the facts say, so that they stand still while the cursor moves.
    small = small_pictures(counts or {}, variable.name, width, most - MOST_FACTS - len(whole))
    if small and len(lines) + len(small) + 1 <= most:
        lines += [Content("")] * (most - len(lines) - len(small)) + small
    return Content("\n").join(lines[: max(0, most)])


def _whole_facts(facts: Sequence[tuple[str, str]], width: int, most: int, column: int) -> list[tuple[str, str]]:
    """Return the facts that stand whole in ``most`` lines, the first first: one that is cut says less than a later one."""
    kept: list[tuple[str, str]] = []
    for fact in facts:
        if len(fact_lines([*kept, fact], width, least_of_name=column)) <= most:
            kept.append(fact)
    return kept


def _facts(line: VariableLine, found: ProfiledColumn | None, plan: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return what the plan does to a variable, its role, and how its values are read."""
    variable = line.variable
    if not line.is_planned:
        reason = f": {line.left_out_reason}" if line.left_out_reason else ""
        plan = [("in the release", f"left out of the plan{reason}")]
    missing = line.missing if found is None or found.missing is None else found.missing
    parts = [
        "" if missing is None else f"{format_percent(missing)} of the records" if missing else "none",
        f"codes {codes}" if (codes := value_text(variable.missing)) else "",
    ]
    bounds = bounds_text(variable)
    facts = [
        *plan,
        ("role", _role_fact(variable.role) if line.is_planned else ""),
        (READ_AS, f"{variable.kind.value}: {KIND_MEANINGS[variable.kind]}{f', {bounds}' if bounds else ''}"),
        ("missing", ", ".join(filter(None, parts))),
        ("problem", column_problem(line, found)),
    ]
    return [(name, text) for name, text in facts if text]


def _role_fact(role: Role) -> str:
    """Return a role with what it means, where its name does not say it."""
    name = role_text(role.value)
    return f"{name}: known to others, and with others like it finds a person" if role is Role.QUASI_IDENTIFIER else name


def _level_bars(line: VariableLine, profile: DistributionProfile, width: int) -> list[Content]:
    """Return the most frequent levels that are not withheld, each with a bar and its share; none of numbers."""
    counts = sorted(
        ((count, level) for level, count in zip(profile.levels, profile.counts, strict=False) if count),
        key=lambda one: -one[0],
    )
    labels = {level: replace_unprintable(str(line.variable.labels.get(level, level))) for _, level in counts}
    longest_label = max((cell_len(labels[level]) for _, level in counts[:MOST_LEVELS]), default=0)
    label_width = max(LEVEL_WIDTH, min(longest_label, round(width * MOST_LEVEL)))
    room = width - label_width - SHARE_WIDTH - 2
    if not counts or room < SHARE_WIDTH:
        return []
    longest = counts[0][0]
    bars = [
        Content.assemble(
            fit_text(labels[level], label_width),
            f"{format_percent(count / profile.records):>{SHARE_WIDTH}} ",
            (BAR * max(1, round(room * count / longest)), "$primary"),
        )
        for count, level in counts[:MOST_LEVELS]
    ]
    left = len(profile.levels) - len(bars)
    return [*bars, *([Content.styled(f"and {count_noun(left, 'other level')}", "$text-muted")] if left > 0 else [])]
