"""Panel with the gate's answer below the title of its frame: who is found and how, what is learnt, what to change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual.content import Content
from textual.widgets import Static

from sfumato.tui.session.gate_answers import STATE_INKS, STATE_SIGNS, short_answer_text
from sfumato.workspace.reporting.words import sign_for
from sfumato.workspace.visible_text import replace_unprintable

from ..widgets.facts import wrap_text
from ..widgets.lines import is_same_text
from .gate_lines import answer_lines, cut_lines

if TYPE_CHECKING:
    from sfumato.workspace.gate.answer import ReleaseAnswer

MOST_LINES = ((9, 1), (16, 2), (24, 4), (30, 9), (1 << 30, 12))
"""Greatest number of lines of the panel in a terminal of fewer lines than the first number."""
BRIEF_QUESTION, BRIEFEST_QUESTION = "May this leave", "Leave"
BRIEF_ANSWERS = {"no": "NO", "to be judged": "JUDGE", "yes": "YES"}
COUNTED_CLAIMS = {"can be found": "found", "exposed": "shown"}
"""Ends of a claim about people, each with the word that says the same in a narrow title."""
TITLE_NEEDS = 44
"""Cells of a terminal in which the frame's title has the answer in full; in fewer the panel repeats it."""


def most_panel_lines(height: int) -> int:
    """Return the greatest number of lines of the panel in a terminal of ``height`` lines."""
    return next(lines for below, lines in MOST_LINES if height < below)


def answer_title(answer: ReleaseAnswer) -> Content:
    """Return the question with the answer in the heaviest weight: on the ink of its state."""
    question, _, said = replace_unprintable(answer.headline).partition("? ")
    return _title_content(question, said, answer)


def shorter_answer_titles(answer: ReleaseAnswer) -> tuple[Content, ...]:
    """Return the same with a brief question, then without one, then with the number alone of who is found, with and
    without a question, and at last without what decides, which stands in the lines below it. Where nobody is said to be
    found, the question comes before what decides.
    """
    (_, _, said), (_, _, brief) = (replace_unprintable(one).partition("? ") for one in (answer.headline, answer.title))
    word = next((brief for end, brief in COUNTED_CLAIMS.items() if answer.claim.endswith(end)), "")
    counted = answer.people and word
    least = f"{BRIEF_ANSWERS[answer.may_leave]}: {f'{answer.people:,} {word}' if counted else answer.claim}"
    least = least if answer.claim and not answer.is_overruled else said
    undecided = _title_content(BRIEF_QUESTION, brief, answer)
    shorter = (
        _title_content("", said, answer),
        _title_content(BRIEFEST_QUESTION, least, answer),
        _title_content("", least, answer),
    )
    titles = (*shorter, undecided) if counted else (undecided, *shorter)
    return _title_content(BRIEF_QUESTION, said, answer), *titles


def _title_content(question: str, said: str, answer: ReleaseAnswer) -> Content:
    """Return a question with what is said of it on the ink of the answer's state."""
    sign, ink = sign_for(STATE_SIGNS[answer.may_leave]), STATE_INKS[answer.may_leave]
    asked = [(f"{question}? ", "$foreground bold")] if question else []
    return Content.assemble(*asked, (f" {sign} {said} ", f"{ink} reverse"))


def answer_of_run_title(count: str, run_id: int, answer: ReleaseAnswer) -> Content:
    """Return the ``count`` of a list of runs, left out where it is empty, and the answer for one in the heaviest weight; what
    stands before the colon says enough.
    """
    sign, ink = sign_for(STATE_SIGNS[answer.may_leave]), STATE_INKS[answer.may_leave]
    said = replace_unprintable(": ".join(filter(None, (short_answer_text(answer), answer.claim))))
    name = f"{count} · run {run_id} " if count else f"Run {run_id} "
    return Content.assemble((name, "$foreground bold"), (f" {sign} {said} ", f"{ink} reverse"))


class AnswerPanel(Static):
    """Lines of the answer, or why there is none."""

    DEFAULT_CSS = "AnswerPanel { height: auto; padding: 0 1; text-wrap: nowrap; text-overflow: clip; }"

    def __init__(self) -> None:
        """Create the empty panel, which takes no space."""
        super().__init__("", markup=False)
        self.display = False

    def show_answer(
        self, answer: ReleaseAnswer | None, text: str, width: int, most: int = MOST_LINES[-1][1], wanted: int = 0
    ) -> None:
        """Show the answer in lines of ``width`` cells, ``most`` at most, or ``text`` in its place.

        It has no more than ``wanted`` lines, unless 0, where no sentence is cut in these.
        """
        most = min(most, most_panel_lines(self.app.size.height))
        if answer is not None:
            titled = self.app.size.width < TITLE_NEEDS
            lines: Sequence[Content] = answer_lines(answer, width, most, titled=titled)
            if 0 < wanted < len(lines):
                fewer = answer_lines(answer, width, wanted, titled=titled)
                lines = lines if any("…" in line.plain for line in fewer) else fewer
            # A title in a very narrow terminal needs more lines than the list can spare.
            lines = lines[:most]
        else:
            wrapped = cut_lines(wrap_text(text, width), most, width) if text else []
            lines = [Content.styled(line, "bold") for line in wrapped]
        shown = Content("\n").join(lines)
        before = self.content
        self.display = bool(lines)
        if not is_same_text(before, shown):
            self.update(shown, layout=str(before).count("\n") != shown.plain.count("\n"))
