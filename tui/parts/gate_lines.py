"""Lines of text for the gate's answer and findings, for the places Findings and Release."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual.content import Content

from sfumato.tui.session.gate_answers import STATE_INKS, STATE_SIGNS
from sfumato.workspace.reporting.words import sign_for
from sfumato.workspace.visible_text import replace_unprintable

from ..terminal.text import cut_text
from ..widgets.facts import wrap_text

if TYPE_CHECKING:
    from sfumato.workspace.gate.answer import ReleaseAnswer
    from sfumato.workspace.gate.gate import Finding

EXAMINING = "The gate examines the tables …"
MOST_LINES = ((16, 2), (30, 4), (1 << 30, 8))
"""Greatest number of lines of the answer in a terminal of fewer lines than the first number."""
INDENT = "  "
INKS = {"block": "$error bold", "warn": "$warning bold", "not checked": "$text-muted bold", "pass": ""}


def most_answer_lines(height: int) -> int:
    """Return the greatest number of lines of the answer in a terminal of ``height`` lines."""
    return next(lines for below, lines in MOST_LINES if height < below)


def answer_lines(answer: ReleaseAnswer, width: int, most: int, *, titled: bool = True) -> list[Content]:
    """Return title, sentence, what is learnt, what to change and what is not examined in at most ``most`` lines of
    ``width`` cells.

    The title has the ink and the sign of the answer and is never cut; it is left out unless ``titled``. Cut texts end
    with an ellipsis. Of too many texts, what is learnt is left out first, then what to change.
    """
    sign, ink = sign_for(STATE_SIGNS[answer.may_leave]), STATE_INKS[answer.may_leave]
    indent = INDENT if titled else ""
    lines = []
    if titled:
        lines = [Content.styled(line, ink) for line in wrap_text(f"{sign} {answer.title}", width, "", INDENT)]
    room = max(1, most - len(lines))
    texts = {
        name: wrap_text(replace_unprintable(text), width, indent, indent)
        for name in ("sentence", "learned", "change", "not_covered")
        if (text := getattr(answer, name))
    }
    whole = list(texts)
    # Two lines of what decides say more than a second line of checks that were not made.
    for name in ("learned", "change", "not_covered"):
        if len(texts) > 1 and len(texts) + (len(texts.get("sentence", ())) > 1 and len(texts) > 2) > room:
            texts.pop(name, None)
    given = dict.fromkeys(texts, 1)
    for name, wrapped in texts.items():
        given[name] += min(len(wrapped) - 1, max(0, room - sum(given.values())))
    for name, wrapped in texts.items():
        shown = cut_lines(wrapped, given[name], width)
        # The ellipsis shows that something has no line.
        if name == whole[0] and len(texts) < len(whole) and len(wrapped) == given[name]:
            shown = cut_lines([*shown, ""], given[name], width)
        style = "bold" if name == "sentence" and not titled else "$text-muted" if name == "not_covered" else ""
        lines += [Content.styled(line, style) for line in shown]
    return lines


def cut_lines(lines: Sequence[str], most: int, width: int) -> list[str]:
    """Return the first ``most`` lines, the last of them with an ellipsis if others follow."""
    if len(lines) <= most:
        return list(lines)
    return [*lines[: most - 1], f"{cut_text(lines[most - 1], width - 2, '')} …"] if most > 0 else []


def title_with_witnesses(finding: Finding, witnesses: Sequence[Finding]) -> str:
    """Return the title with the number of findings of the same leak: ``people alone in kept columns (+2
    witnesses)``.
    """
    more = f" (+{len(witnesses)} {'witness' if len(witnesses) == 1 else 'witnesses'})" if witnesses else ""
    return replace_unprintable(finding.title) + more
