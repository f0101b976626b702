"""Lines of text for the gate's answer and findings, for the places Findings and Release."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich.cells import cell_len
from textual.content import Content

from sfumato.engine.wording import count_noun
from sfumato.tui.session.gate_answers import STATE_INKS, STATE_SIGNS
from sfumato.workspace.reporting.findings import text_without_last_clause
from sfumato.workspace.reporting.words import sign_for
from sfumato.workspace.visible_text import replace_unprintable

from ..terminal.text import cut_text, fit_text
from ..widgets.facts import wrap_text

if TYPE_CHECKING:
    from sfumato.workspace.gate.answer import ReleaseAnswer
    from sfumato.workspace.gate.gate import Finding

EXAMINING = "The gate examines the tables …"
MOST_LINES = ((16, 2), (30, 7), (1 << 30, 10))
"""Greatest number of lines of the answer in a terminal of fewer lines than the first number."""
INDENT = "  "
FOUND, NOT_EXAMINED = "Found", "Not examined"
DECIDING = ("Why", FOUND)
"""Labels of the lines that decide, which have the largest weight."""
LEFT_OUT = ("May leave", "Learnt", "Change first", "How")
"""Labels of the lines that are left out where there is no room, the first first."""
SHORTENED = (("Change first", 2), ("Learnt", 1), ("May leave", 1), ("Change first", 1), ("How", 1), (FOUND, 1))
"""Labels of the lines whose last clauses are left out where there is no room, the first first, each with the clauses that
stay: what to change keeps its effect, which stands behind it, as long as others can be shorter."""
LEAST_LABEL = 14
"""Cells of the column of labels below other facts."""
LEAST_TEXT = 40
"""Cells of a text beside which its label has a column."""
ALSO_SEEN = " · also seen by "
"""What begins the number of checks that see the same leak, after a title."""
INKS = {"block": "$error bold", "warn": "$warning bold", "not checked": "$text-muted bold", "pass": ""}


def most_answer_lines(height: int) -> int:
    """Return the greatest number of lines of the answer in a terminal of ``height`` lines."""
    return next(lines for below, lines in MOST_LINES if height < below)


def answer_lines(
    answer: ReleaseAnswer, width: int, most: int, *, titled: bool = True, least_label: int = 0
) -> list[Content]:
    """Return the title and the labelled lines of an answer in at most ``most`` lines of ``width`` cells.

    The title has the ink and the sign of the answer and is never cut; it is left out unless ``titled``. The labels stand
    in a column of their own, of ``least_label`` cells or more, where there is room. Cut texts end with an ellipsis. Of too
    many lines, those on what was not examined are left out first. Where not every label has a line, it is that on whether
    it may leave, which the title says, then what is learnt, what to change, and how people are found.
    """
    sign, ink = sign_for(STATE_SIGNS[answer.may_leave]), STATE_INKS[answer.may_leave]
    lines = []
    if titled:
        lines = [Content.styled(line, ink) for line in wrap_text(f"{sign} {answer.title}", width, "", INDENT)]
    room = max(1, most - len(lines))
    labelled = [(label, replace_unprintable(text)) for label, text in answer.labelled_lines]
    column = max(least_label, max((cell_len(label) for label, _ in labelled), default=0) + len(INDENT))
    # In few cells the texts need those of the labels.
    column = column if width - column >= LEAST_TEXT else 0
    whole = len(labelled)
    texts = {label: wrap_text(text, width - column, "", "") for label, text in labelled}
    for left_out in LEFT_OUT:
        if len(texts) > room:
            texts.pop(left_out, None)
    texts = dict(list(texts.items())[:room])
    if sum(map(len, texts.values())) > room > len(texts):
        # The list of findings names what was not examined: the answers to a reader's questions are whole before it is.
        unexamined = texts.pop(NOT_EXAMINED, [])
        left = room - sum(map(len, texts.values()))
        if unexamined and left > 0:
            texts[NOT_EXAMINED] = (
                unexamined if left >= len(unexamined) else [cut_text(" ".join(unexamined), width - column)]
            )
        if left < 0:
            _shorten_texts(texts, dict(labelled), width - column, room)
    given = dict.fromkeys(texts, 1)
    # Of the others, what is whole with one more line comes before the first lines of what is long.
    for label in sorted(texts, key=lambda one: (one not in DECIDING, len(texts[one]))):
        given[label] += min(len(texts[label]) - 1, max(0, room - sum(given.values())))
    for place, (label, wrapped) in enumerate(texts.items()):
        shown = cut_lines(wrapped, given[label], width - column)
        # The ellipsis shows that something has no line.
        if not place and len(texts) < whole - 1 and len(wrapped) == given[label]:
            shown = cut_lines([*shown, ""], given[label], width - column)
        heads = [fit_text(label, column), *[" " * column] * (len(shown) - 1)] if column else [""] * len(shown)
        is_decided = label not in DECIDING
        for head, line in zip(heads, shown, strict=True):
            # What decides is the heaviest: how many people, up to why they count.
            decides, colon, rest = ("", "", line) if is_decided else line.partition(":" if label == FOUND else "\n")
            is_decided |= bool(colon)
            ink = "$text-muted" if label == NOT_EXAMINED else ""
            parts: list[tuple[str, str]] = [(head, "$text-muted"), (decides, "bold"), (f"{colon}{rest}", ink)]
            lines.append(Content.assemble(*[part for part in parts if part[0]]))
    return lines


def _shorten_texts(texts: dict[str, list[str]], whole: Mapping[str, str], width: int, room: int) -> None:
    """Leave out last clauses of texts until their lines of ``width`` cells fit into ``room``: whole sentences read better
    than cut ones.

    texts: lines by label, which change
    whole: whole texts by label
    """
    left = dict(whole)
    for label, least in SHORTENED:
        text = left.get(label, "")
        while label in texts and sum(map(len, texts.values())) > room:
            shorter = text_without_last_clause(text)
            if shorter == text or _count_clauses(text) <= least:
                break
            left[label] = shorter
            text, lines = shorter, wrap_text(shorter, width, "", "")
            texts[label] = min(texts[label], lines, key=len)


def _count_clauses(text: str) -> int:
    """Return how many clauses a text has that can be left out one after another."""
    shorter = text_without_last_clause(text)
    return 1 if shorter == text else 1 + _count_clauses(shorter)


def run_answer_lines(run_id: int, answer: ReleaseAnswer, width: int, most: int, *, is_of_plan: bool) -> list[Content]:
    """Return what a run found, below a heading, in at most ``most`` lines; ``is_of_plan`` where its plan is the shown one."""
    of = "of this plan" if is_of_plan else "of another plan"
    sign, ink = sign_for(STATE_SIGNS[answer.may_leave]), STATE_INKS[answer.may_leave]
    head = Content.assemble((f"What run {run_id} {of} found  ", "bold"), (f"{sign} {answer.title}", ink))
    lines = answer_lines(answer, width, most - 1, titled=False, least_label=LEAST_LABEL)
    return [head.truncate(width), *lines][: max(0, most)]


def cut_lines(lines: Sequence[str], most: int, width: int) -> list[str]:
    """Return the first ``most`` lines, the last of them with an ellipsis if others follow."""
    if len(lines) <= most:
        return list(lines)
    if most <= 0:
        return []
    last = lines[most - 1]
    # A word that is cut reads like another word.
    while cell_len(last) > width - 2 and " " in last:
        last = last.rpartition(" ")[0]
    return [*lines[: most - 1], f"{cut_text(last, width - 2, '')} …"]


def title_with_witnesses(finding: Finding, witnesses: Sequence[Finding]) -> str:
    """Return the title with the number of checks that see the same leak: ``people alone in kept columns · also seen
    by 2 checks``.
    """
    more = f"{ALSO_SEEN}{count_noun(len(witnesses), 'check')}" if witnesses else ""
    return replace_unprintable(finding.title) + more
