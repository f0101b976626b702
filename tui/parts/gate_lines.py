"""Lines of text for the gate's answer and findings, for the places Findings and Release."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rich.cells import cell_len
from textual.content import Content

from sfumato.tui.session.gate_answers import STATE_INKS, STATE_SIGNS
from sfumato.workspace.reporting.findings import compact_finding_cells, compared_text, finding_limit_text, state_text
from sfumato.workspace.reporting.words import sign_for
from sfumato.workspace.visible_text import replace_unprintable

from ..terminal.text import cut_text, fit_text
from ..widgets.facts import wrap_text

if TYPE_CHECKING:
    from sfumato.workspace.gate.answer import ReleaseAnswer
    from sfumato.workspace.gate.gate import Finding

EXAMINING = "The gate examines the tables …"
MOST_LINES = ((16, 2), (30, 4), (1 << 30, 8))
"""Greatest number of lines of the answer in a terminal of fewer lines than the first number."""
INDENT = "  "
GAP = "  "
LEAST_TITLE = 24
MOST_NUMBER = 26
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


def finding_lines(
    findings: Sequence[Finding], witnesses: Sequence[Sequence[Finding]], waived: frozenset[str], width: int
) -> list[Content]:
    """Return a line of ``width`` cells for each finding: state, title with its number of witnesses, compared number and
    limit.

    If there is too little room, number and limit are shortened, then the number is left out, then the limit.
    """
    states = ["waived" if one.check in waived else state_text(one) for one in findings]
    titles = [title_with_witnesses(one, others) for one, others in zip(findings, witnesses, strict=True)]
    # A check that was not made has no limit here: there is nothing to compare.
    compared = [one.compared_value is not None for one in findings]
    short = [compact_finding_cells(one) for one in findings]
    whole = [_align_column(map(compared_text, findings)), _align_column(map(finding_limit_text, findings), compared)]
    brief = [
        _align_column(one["compared_value"] for one in short),
        _align_column((one["limit"] for one in short), compared),
    ]
    state = _widest_cell(states)
    wanted = max(LEAST_TITLE, min(_widest_cell(titles), width * 45 // 100))
    columns: list[list[str]] = []
    for choice in (whole, brief, brief[1:], []):
        columns = [cells for cells in choice if any(map(str.strip, cells))]
        room = width - state - len(GAP) - sum(_widest_cell(cells) + len(GAP) for cells in columns)
        if room >= wanted:
            break
    lines = []
    for place, (finding, title) in enumerate(zip(findings, titles, strict=True)):
        ink = "$text-muted" if finding.check in waived else INKS[finding.status]
        rest = GAP.join([fit_text(title, room), *(cells[place] for cells in columns)])
        lines.append(Content.assemble((fit_text(states[place], state), ink), f"{GAP}{rest}"))
    return lines


def _widest_cell(cells: Sequence[str]) -> int:
    """Return the width of the widest cell."""
    return max(map(cell_len, cells), default=0)


def _align_column(cells: Iterable[str], shown: Sequence[bool] | None = None) -> list[str]:
    """Return cells of one width, aligned right, cut if they are very long; blank where ``shown`` is False."""
    texts = [replace_unprintable(one) for one in cells]
    if shown is not None:
        texts = [text if is_shown else "" for text, is_shown in zip(texts, shown, strict=True)]
    width = min(_widest_cell(texts), MOST_NUMBER)
    return [fit_text(one, width, "right") for one in texts]


def title_with_witnesses(finding: Finding, witnesses: Sequence[Finding]) -> str:
    """Return the title with the number of findings of the same leak: ``people alone in kept columns (+2
    witnesses)``.
    """
    more = f" (+{len(witnesses)} {'witness' if len(witnesses) == 1 else 'witnesses'})" if witnesses else ""
    return replace_unprintable(finding.title) + more
