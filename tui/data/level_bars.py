"""How often each level of a variable is, as bars to the right of their names or below them."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from textual.content import Content
from textual.widgets import Static

from sfumato.engine.data.schema import Variable
from sfumato.engine.wording import count_noun, format_percent
from sfumato.tui.terminal.text import cut_words, fit_text
from sfumato.workspace.ingest.profiles import DistributionProfile
from sfumato.workspace.visible_text import replace_unprintable

BAR = "█"
SHARE = 8
"""Cells of a share, with the gap before it."""
MOST_BESIDE = 12
"""Cells of the longest name beside which bars stand; they stand below longer ones."""
HEAD = "share of records"


class LevelBars(Static, can_focus=True):
    """Bars of the levels of the variable under the cursor."""

    DEFAULT_CSS = "LevelBars { display: none; }"

    def __init__(self) -> None:
        """Create it without a variable."""
        super().__init__("", id="data-levels", markup=False)


def level_bar_lines(variable: Variable, profile: DistributionProfile, width: int, room: int) -> list[Content]:
    """Return a head and the levels with a bar and their share, in at most ``room`` lines of ``width`` cells.

    They stand in their own order, with blank lines between them and bars of two lines if there is room; of more levels
    than that the most frequent ones. A level of one or two records is withheld, and has neither name nor bar.
    """
    levels = [
        (variable.labels.get(name, name), n) for name, n in zip(profile.levels, profile.counts, strict=False) if n
    ]
    named = [(replace_unprintable(str(name)), count) for name, count in levels]
    longest = max((cell_len(name) for name, _ in named), default=0)
    is_beside = longest <= MOST_BESIDE
    each = 1 if is_beside else 2
    is_withheld = len(named) < len(profile.levels)
    if len(named) * each + 1 + is_withheld > room:
        kept = sorted(range(len(named)), key=lambda at: -named[at][1])[: max(1, (room - 2) // each)]
        named = [named[at] for at in kept]
    left = len(profile.levels) - len(named)
    blank = [Content("")] if (each + 1) * len(named) + 1 <= room else []
    is_thick = (each + 2) * len(named) + 1 <= room
    lines = [Content.styled(HEAD.rjust(width), "$text-muted")]
    largest = max((count for _, count in named), default=1)
    for place, (name, count) in enumerate(named):
        lines += blank if place else []
        own = _level_lines(name, count, largest, profile.records, width, longest if is_beside else 0)
        lines += [*own, _bar_alone(own[-1])] if is_thick else own
    more = [Content.styled(f"and {count_noun(left, 'other level')}", "$text-muted")] if left > 0 else []
    return [*lines, *more][:room]


def _level_lines(name: str, count: int, most: int, records: int, width: int, beside: int) -> Sequence[Content]:
    """Return the line of a level whose names have ``beside`` cells left of the bars, or the two where they have none."""
    lead = fit_text(name, beside) + " " if beside else ""
    bar = max(1, width - cell_len(lead) - SHARE)
    # A level that is there has a bar.
    drawn = BAR * max(1, round(bar * count / most))
    share = fit_text(format_percent(count / records), SHARE, "right")
    line = Content.assemble(lead, (drawn, "$primary"), " " * (bar - len(drawn)), share)
    return [line] if beside else [Content(cut_words(name, width)), line]


def _bar_alone(line: Content) -> Content:
    """Return the bar of a line without its texts, for a second line of it."""
    cells = "".join(sign if sign == BAR else " " for sign in line.plain)
    return Content.styled(cells, "$primary")
