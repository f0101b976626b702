"""The intruder's dial: variables that he knows or not, how surely, and whom he then finds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from rich.cells import cell_len
from textual import events
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from sfumato.tui.keys.acts import bind_act
from sfumato.tui.keys.own_keys import current_key
from sfumato.tui.parts.gate_lines import cut_lines
from sfumato.tui.parts.gauges import GAUGE, draw_range, draw_share
from sfumato.tui.terminal.painting import Backdrop
from sfumato.tui.terminal.text import cut_text, fit_text
from sfumato.tui.widgets.facts import wrap_text
from sfumato.workspace.reporting.words import brief_limit_text, sign_for
from sfumato.workspace.store.runs import RunState, RunSummary
from sfumato.workspace.visible_text import replace_unprintable

from ..parts.page import CallInProcess, WorkspaceReader

if TYPE_CHECKING:
    from sfumato.engine.studies._knowledge_counts import KnowledgeCounts
    from sfumato.workspace.gate.answer import ReleaseAnswer
    from sfumato.workspace.reporting.intruder_dial import DialLine, DialNumbers, DialVariable, IntruderDial, Reaches

HEAD, LOW_HEAD, TRIAL_HEAD = "What the intruder knows", "Intruder knows", " TRIAL "
TRIAL_INK = "$primary bold reverse"
"""Ink of the word that tells a trial from the answer above it."""
THEN = "then "
"""What precedes the numbers in a low terminal, where no line says that they are of what is ticked."""
NOT_SAVED = " Nothing is saved: the answer above stays.", " Nothing is saved.", ""
"""What follows the effect of a change, where it takes no line more."""
GAP = "  "
LUCK = "luck: guesses that happen to be right"
"""Why more people are found on average than for certain."""
DRAWN_MARK = "*"
"""What stands behind a variable of which the release has artificial values only."""
COUNTING = "Counting whom the intruder can find …"
KEY_TAKEN = "Your key is done then."
LOW, LEAST = 30, 18
"""Lines of a terminal below which the dial has three lines, and below which it has none."""
MOST_CHIP_LINES = 3
LOW_CHIP_LINES, LEAST_OF_TWO = 2, 24
"""Lines of variables in a low terminal while the keys are elsewhere, and lines of a terminal below which it is one."""
MOST_REASON_LINES = 2
MOST_SENTENCE_LINES = 3
TITLE = 29
"""Cells of the titles of the numbers."""
BRIEF_TITLE = 27
"""The same without their glosses, as wide as small groups need."""
LOW_GAUGE = 10
"""Cells of a gauge in a narrow terminal."""
LOW_NUMBERS = ("certain", "expected")
"""Numbers that a low terminal shows beside the one that decides."""
LIMIT_FORMS = 6
"""Forms of a limit: a sentence, without what it compares with, with whose it is, without, without a noun, with a sign."""
CellChoice = tuple[Callable[["DialLine"], str], int, Callable[["DialLine"], str], Callable[["DialLine"], str]]
"""Title of a number, cells of its gauge, the number and its limit."""
TURN = "dial-unsure"


class Place(Vertical, Backdrop):
    """Place for other widgets of a page; it takes no space without one."""

    DEFAULT_CSS = "Place { height: auto; }"


class DialPane(Static, WorkspaceReader, can_focus=True):
    """Dial of one run. ``space`` turns the variable at the cursor, ``+`` and ``-`` change how surely it is known.

    It says so while numbers are counted. It is green only where the gate lets the release leave.
    """

    DEFAULT_CSS = "DialPane { height: auto; padding: 0 1; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        bind_act("mark", "turn", "Known or not", show=True),
        bind_act("zoom_in", "reach(1)", "Less sure", show=True),
        bind_act("zoom_out", "reach(-1)", "Surer", show=True),
        bind_act("left", "move(-1)", "Variable to the left"),
        bind_act("right", "move(1)", "Variable to the right"),
        bind_act("first", "move(-99)", "First variable"),
        bind_act("last", "move(99)", "Last variable"),
        bind_act("open", "studies", "Studies", show=True),
        bind_act("down", "leave", "To the findings"),
        bind_act("back", "leave", "To the findings"),
    ]

    class StudiesRequested(Message):
        """Message that the user wants the studies behind the dial."""

    class DialChanged(Message):
        """Message that the dial shows other numbers, or has the cursor at another variable."""

    class DialCounted(Message):
        """Message that the numbers are counted."""

    class DialFocused(Message):
        """Message that the keys are the dial's now, or no longer."""

    class DialLeft(Message):
        """Message that the user is done with the dial."""

    def __init__(self, *, leads_to_studies: bool = True) -> None:
        """Create the dial, without a run."""
        super().__init__("", markup=False)
        self._leads_to_studies = leads_to_studies
        self._run_id: int | None = None
        self._dial: IntruderDial | None = None
        self._at = 0
        self._kept_act: Callable[[], None] | None = None
        self._why_none = ""
        self._may_leave = ""
        self._advised_columns: frozenset[str] = frozenset()
        self._is_effect_known = False
        self.display = False

    @property
    def dial(self) -> IntruderDial | None:
        """Return the dial as it is turned; None as long as it is not counted."""
        return self._dial

    @property
    def is_counting(self) -> bool:
        """Return whether the numbers are being counted."""
        return self._run_id is not None and self._dial is None and not self._why_none

    def show_run(self, line: RunSummary | None) -> None:
        """Show the dial of a run; none while the run is not done."""
        run_id = line.run.id if line is not None and line.run.state is RunState.DONE else None
        if run_id == self._run_id:
            return
        self._run_id, self._dial, self._at, self._why_none = run_id, None, 0, ""
        self._may_leave, self._advised_columns, self._is_effect_known = "", frozenset(), False
        self._kept_act = None
        self._paint()
        if run_id is not None:
            self.compute_in_processes(
                partial(self._count, run_id), partial(self._show_numbers, run_id), group="dial", refuse=self._refuse
            )

    def show_gate(self, answer: ReleaseAnswer | None) -> None:
        """Show what the gate answers; None as long as it has not answered."""
        said = ("", frozenset[str](), False)
        if answer is not None:
            said = (answer.may_leave, answer.advised_columns, answer.change_has_effect)
        if said != (self._may_leave, self._advised_columns, self._is_effect_known):
            self._may_leave, self._advised_columns, self._is_effect_known = said
            self._paint()

    def _count(self, run_id: int, call: CallInProcess) -> DialNumbers:
        """Count the numbers of a run, or take the known ones."""
        return self.sfumato.dial_memory.count(self.sfumato.directory, run_id, call)

    def _refuse(self, text: str) -> Message:
        """Return an error as the answer, so that it stands in the dial's place."""
        return self.AnswerReceived(partial(self._show_problem, self._run_id), text)

    def _show_problem(self, run_id: int | None, text: str) -> None:
        """Show why there are no numbers."""
        if run_id == self._run_id:
            self._why_none = text.rstrip(".")
            self._paint()

    def _show_numbers(self, run_id: int, numbers: DialNumbers) -> None:
        """Show the numbers of a run, as the plan states the knowledge."""
        from sfumato.workspace.reporting.intruder_dial import IntruderDial

        if run_id != self._run_id:
            return
        if numbers.counts is None:
            self._why_none = numbers.reason
        else:
            self._dial = dial = replace(IntruderDial.from_numbers(numbers), unsure=self._known_unsure())
            # Every key of the dial works on the first variable that is under the cursor.
            ranged = [one.is_numeric and one.name in dial.known for one in numbers.variables]
            self._at = ranged.index(True) if any(ranged) else 0
            if (act := self._kept_act) is not None:
                self._kept_act = None
                act()
        self._paint()
        self.post_message(self.DialCounted())
        self.refresh_bindings()
        if self.has_focus:
            self._count_ahead()

    def _known_unsure(self) -> dict[Reaches, KnowledgeCounts]:
        """Return the numbers within half widths that are counted."""
        known = self.sfumato.dial_memory.unsure
        return dict(known.get((self.sfumato.directory, self._run_id or 0), {}))

    def watch_has_focus(self, has_focus: bool) -> None:
        """Show the cursor as long as the keys are the dial's, and count ahead what the next of them may ask for."""
        # Textual posts the event of a new focus before the widget has it.
        super().watch_has_focus(has_focus)
        self._paint()
        self.post_message(self.DialFocused())
        if has_focus:
            self._count_ahead()

    def on_resize(self, _: events.Resize) -> None:
        self._paint()

    def _count_ahead(self) -> None:
        """Count what is missing: the present half widths first, then those of each known variable alone."""
        dial, run_id, variable = self._dial, self._run_id, self.variable
        if dial is None or run_id is None or variable is None:
            return
        names = [variable.name, *(one.name for one in dial.numbers.variables if one.name in dial.known)]
        alone = (dial.missing_reaches(name) for name in dict.fromkeys(names))
        now = [] if dial.counts is not None or dial.uncounted_reason else [dial.wanted_reaches]
        self._count_missing(run_id, now or next(filter(None, alone), []))

    def _count_missing(self, run_id: int, wanted: Sequence[Reaches]) -> None:
        """Count numbers within half widths in another process, and go on with the next ones."""
        if not wanted:
            return
        memory, directory = self.sfumato.dial_memory, self.sfumato.directory

        def count(call: CallInProcess) -> int:
            """Count what is missing."""
            memory.count_unsure(directory, run_id, wanted, call)
            return run_id

        self.compute_in_processes(count, self._take_unsure, group=TURN, refuse=self._refuse)

    def _take_unsure(self, run_id: int) -> None:
        """Show what was counted within half widths."""
        if run_id == self._run_id and self._dial is not None:
            self._dial = replace(self._dial, unsure=self._known_unsure())
            self._paint()
            self._count_ahead()

    @property
    def variable(self) -> DialVariable | None:
        """Return the variable at the cursor; None as long as nothing is counted."""
        return None if self._dial is None else self._dial.numbers.variables[self._at]

    def keep_act(self, action: str) -> None:
        """Show that a key was taken while the numbers are counted, and do what it does once they are."""
        steps = {"reach(1)": 1, "reach(-1)": -1}
        self._kept_act = partial(self.action_reach, steps[action]) if action in steps else self.action_turn
        self._paint()

    def action_turn(self) -> None:
        """Turn the variable at the cursor on or off."""
        if self._dial is not None and self.variable is not None:
            self._change(self._dial.toggle_variable(self.variable.name))

    def action_reach(self, step: int) -> None:
        """Make the intruder less sure of the variable at the cursor, or surer."""
        dial, variable = self._dial, self.variable
        if dial is None or variable is None:
            return
        if not variable.is_numeric:
            self.sfumato.say(f"{variable.name} is known or not: the release has no numbers of it")
            return
        changed = dial.shift_reach(variable.name, step)
        if changed.reaches == dial.reaches:
            said = "is the widest range" if step > 0 else "is known as surely as can be"
            self.sfumato.say(f"{dial.variable_text(variable)} {said}")
        self._change(changed)

    def _change(self, dial: IntruderDial) -> None:
        """Show a changed dial, and count what is missing for it."""
        self._dial = dial
        self._paint()
        if dial.counts is None:
            self._count_ahead()

    def action_move(self, step: int) -> None:
        """Move the cursor to another variable."""
        if self._dial is not None:
            self._at = max(0, min(self._at + step, len(self._dial.numbers.variables) - 1))
            self._paint()

    def action_studies(self) -> None:
        self.post_message(self.StudiesRequested())

    def action_leave(self) -> None:
        self.post_message(self.DialLeft())

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Enable turning where there is something to turn."""
        if action in ("studies", "leave"):
            return self._leads_to_studies
        return action not in ("turn", "reach", "move") or self._dial is not None

    def _paint(self) -> None:
        """Show the dial in the lines that the terminal has for it."""
        height = self.app.size.height
        self.display = self._run_id is not None and height >= LEAST
        width = self.size.width
        if self.display and width > 0:
            self.update(Content("\n").join(self._text_lines(width, is_low=height < LOW)))
        self.post_message(self.DialChanged())

    def _text_lines(self, width: int, *, is_low: bool) -> list[Content]:
        """Return the lines of the dial in cells of ``width``."""
        dial = self._dial
        if dial is None:
            why = f"{HEAD} cannot be tried: {self._why_none}" if self._why_none else f"{HEAD}{GAP}{COUNTING}"
            # The key is answered at once, though what it does has to wait.
            why += f" {KEY_TAKEN}" if self._kept_act is not None and not self._why_none else ""
            reason = wrap_text(replace_unprintable(why), width, "", GAP)[:MOST_REASON_LINES]
            return [Content.styled(line, "bold" if self._kept_act is not None else "$text-muted") for line in reason]
        lines, main = dial.lines(), dial.main_line
        if main is None:
            text = f"Not counted: {dial.uncounted_reason}" if dial.uncounted_reason else COUNTING
            line = Content.styled(
                cut_text(replace_unprintable(text), width), "$text-muted" if dial.uncounted_reason else "bold"
            )
            numbers = [line, *([Content("")] * (0 if is_low else 2))]
        else:
            # That which decides stands first, as the answer above says it.
            shown = sorted(lines, key=lambda one: one != main)
            if is_low and not self.has_focus:
                has_both = self.app.size.height >= LEAST_OF_TWO
                # Two lines: the list of findings keeps a third of the terminal.
                others = [one for one in shown if one != main and one.name in LOW_NUMBERS]
                shown = [main, *others[:has_both]]
            lead = THEN if is_low else ""
            numbers = [self._number_line(one, width, is_main=one == main, beside=shown, lead=lead) for one in shown]
        says_more = dial.is_turned or self.has_focus or self._tells_effect(dial)
        sentence = [Content(line) for line in self._sentence_lines(dial, width)] if says_more else []
        if is_low:
            # The knowledge is the beginning of the sentence that the number ends.
            head = TRIAL_HEAD if dial.is_turned else LOW_HEAD
            at_rest = LOW_CHIP_LINES if self.app.size.height >= LEAST_OF_TWO else 1
            chips = self._chip_lines(dial, width, MOST_CHIP_LINES if self.has_focus else at_rest, head)
            return [*chips, *numbers, *(sentence if self.has_focus else [])]
        chips = self._chip_lines(dial, width, MOST_CHIP_LINES)
        word = Content.assemble((TRIAL_HEAD, TRIAL_INK), " ") if dial.is_turned else Content("")
        text = cut_text(replace_unprintable(dial.counted_text), width - word.cell_length)
        counted = Content.assemble(word, text)
        counted = Content.assemble(counted, *_legend_parts(dial, width - counted.cell_length))
        return [self._head_line(width), *chips, counted, *numbers, *sentence]

    def _sentence_lines(self, dial: IntruderDial, width: int) -> list[str]:
        """Return what a change does and that nothing is saved, and below it what to coarsen, in lines of ``width`` cells."""
        changed = dial.change_text()
        if changed:
            n_lines = len(wrap_text(changed, width, "", ""))
            changed += next(one for one in NOT_SAVED if len(wrap_text(f"{changed}{one}", width, "", "")) == n_lines)
        advice = dial.coarsen_text()
        if self.has_focus and self.variable is not None:
            advice = f"{advice} {dial.window_text(self.variable)}".strip()
        lines = [
            line for text in (changed, advice) if text for line in wrap_text(replace_unprintable(text), width, "", "")
        ]
        return cut_lines(lines, MOST_SENTENCE_LINES, width)

    def _tells_effect(self, dial: IntruderDial) -> bool:
        """Return whether the sentence on what to coarsen says more than the gate's answer: what its change does."""
        found = dial.coarsen_first
        return found is not None and not self._is_effect_known and found[0] in self._advised_columns

    def _head_line(self, width: int) -> Content:
        """Return the heading, with the keys that change what he knows where they fit."""
        return Content.assemble((HEAD, "bold"), *self._hint_parts(width - cell_len(HEAD)))

    def _hint_parts(self, room: int) -> list[tuple[str, str]]:
        """Return the keys that change what he knows at the right end of a line with so much room; none without it."""
        fitting = next((hint for hint in self._hints() if cell_len(hint) + len(GAP) <= room), "")
        return [(" " * (room - cell_len(fitting)), ""), (fitting, "$text-muted")] if fitting else []

    def _hints(self) -> tuple[str, str]:
        """Return the keys that change what he knows with what they do, in full and in brief."""
        mark, wider, surer = (current_key(self.app, act) for act in ("mark", "zoom_in", "zoom_out"))
        return (
            (f"{mark} known or not · {wider} {surer} change how sure he is", f"{wider} {surer} how sure")
            if self.has_focus
            else (f"{mark} changes what he knows", f"{mark} changes it")
        )

    def _chip_lines(self, dial: IntruderDial, width: int, most: int, head: str = "") -> list[Content]:
        """Return the variables with their boxes in at most so many lines, those with the cursor among them.

        What does not fit is counted, with the key that leads there.
        """
        ink = TRIAL_INK if dial.is_turned else "bold"
        chips = [self._chip_text(dial, one, width) for one in dial.numbers.variables]
        room = width - cell_len(head)
        rows = _chip_rows(chips, room, room)
        if len(rows) > most:
            after = room - cell_len(self._more_text(len(chips), "right", "and ")) - len(GAP)
            rows = _chip_rows(chips, after, after - cell_len(self._more_text(len(chips), "left")) - len(GAP))
        at_row = next((at for at, row in enumerate(rows) if self._at in row), 0)
        first = max(0, min(at_row, len(rows) - most))
        shown = rows[first : first + most]
        lines: list[list[tuple[str, str]]] = [
            [(head if not at else " " * len(head), ink if not at else "")] for at in range(len(shown))
        ]
        if first:
            lines[0] += [(GAP, ""), (self._more_text(shown[0][0], "left"), "$text-muted")]
        for line, row in zip(lines, shown, strict=True):
            for place in row:
                is_at = self.has_focus and place == self._at
                line += [(GAP, ""), (chips[place], "reverse" if is_at else _chip_ink(dial, place))]
        if left := len(chips) - 1 - shown[-1][-1]:
            lines[-1] += [(GAP, ""), (self._more_text(left, "right", "and "), "$text-muted")]
        elif dial.numbers.others:
            used = sum(cell_len(text) for text, _ in lines[-1])
            also = cut_text(replace_unprintable(f"and {', '.join(dial.numbers.others)}"), max(8, width - used - 2))
            lines[-1] += [(GAP, ""), (also, "$text-muted")]
        if head:
            # The key that turns the dial comes before what the mark says.
            hint = cell_len(self._hints()[-1]) + len(GAP)
            lines[-1] += _legend_parts(dial, width - hint - sum(cell_len(text) for text, _ in lines[-1]))
            lines[-1] += self._hint_parts(width - sum(cell_len(text) for text, _ in lines[-1]))
        return [Content.assemble(*line).truncate(width, ellipsis=True) for line in lines]

    def _more_text(self, number: int, key: str, before: str = "") -> str:
        """Return how many variables are not in sight, and the key that leads to them."""
        return f"{before}{number} more ({current_key(self.app, key)})"

    def _chip_text(self, dial: IntruderDial, variable: DialVariable, width: int) -> str:
        """Return a variable with its box."""
        is_known = variable.name in dial.known
        # How surely he knows it says nothing of what he does not know, and a mark that the release has no true values.
        name = variable.name + (DRAWN_MARK if variable.is_drawn else "")
        name += dial.variable_text(variable).removeprefix(variable.name) if is_known else ""
        return cut_text(replace_unprintable(f"{'[x]' if is_known else '[ ]'} {name}"), max(8, width - 4))

    def _number_line(
        self, line: DialLine, width: int, *, is_main: bool, beside: Sequence[DialLine] = (), lead: str = ""
    ) -> Content:
        """Return a number with its gauge and its limit, in columns with the numbers ``beside`` it.

        ``lead`` precedes what is counted.
        """
        ink, ink_of_title = self._ink_of(line), "" if is_main else "$text-muted"
        group = list(beside) or [line]
        title, gauge, number, limit = self._choose_cells(group, width, lead)
        titles, numbers = ([cells(one) for one in group] for cells in (title, number))
        room, count = max(map(cell_len, titles)), max(map(cell_len, numbers))
        parts: list[Content | str | tuple[str, str]] = [GAP, (fit_text(title(line), room), ink_of_title)]
        if gauge:
            parts += [GAP, self._gauge_of(line, ink, gauge)]
        used = 2 * len(GAP) + room + (gauge + len(GAP) if gauge else 0)
        parts += [GAP, (cut_text(number(line), width - used), ink)]
        left, gap = width - used - count - len(GAP), " " * (count - cell_len(number(line))) + GAP
        if left >= cell_len(limit(line)):
            parts += [gap, (limit(line), "" if line.limit_text else "$text-muted")]
        return Content.assemble(*parts)

    def _choose_cells(self, group: Sequence[DialLine], width: int, lead: str) -> CellChoice:
        """Return the title, the cells of the gauge, the number and the limit of lines in the longest forms that fit.

        Title and gauge yield, and number and limit have their short forms, before anything is cut.
        """

        def title(one: DialLine) -> str:
            return fit_text(f"{lead}{one.title}", TITLE)

        def brief_title(one: DialLine) -> str:
            return f"{lead}{one.brief_title}"

        def whole_count(one: DialLine) -> str:
            return f"{_before_text(one)}{one.count_text}"

        def brief_count(one: DialLine) -> str:
            return f"{_before_text(one)}{one.brief_count_text}"

        def bare_count(one: DialLine) -> str:
            """Return the number before and after a change without the share of people, which needs the gauge's cells."""
            return brief_count(one).partition(" (")[0] if one.before_text else brief_count(one)

        limits = [partial(_limit_form, place=place) for place in range(LIMIT_FORMS)]
        choices: list[CellChoice] = [
            # The gloss stays: nobody takes those found on average for those found for certain.
            *((name, GAUGE, whole_count, limit) for name in (title, brief_title) for limit in limits[:-1]),
            *(
                (brief_title, LOW_GAUGE, count, limit)
                for count in (whole_count, brief_count, bare_count)
                for limit in limits
            ),
            *((brief_title, 0, count, limit) for count in (whole_count, brief_count) for limit in limits),
        ]

        def needed(choice: CellChoice) -> int:
            """Return the cells of the widest line."""
            name, gauge, number, limit = choice
            widths = (max(cell_len(cells(one)) for one in group) for cells in (name, number, limit))
            return 4 * len(GAP) + (gauge + len(GAP) if gauge else 0) - len(GAP) + sum(widths)

        return next((one for one in choices if needed(one) <= width), choices[-1])

    def _gauge_of(self, line: DialLine, ink: str, width: int) -> Content:
        """Return the gauge of a number: around its limit, or of all people where no limit gives it a range."""
        if line.limit:
            return draw_range(line.value, line.limit, ink, width=width)
        number = 0 if self._dial is None else self._dial.numbers.number
        return draw_share(line.value, number, line.limit, ink, width)

    def _ink_of(self, line: DialLine) -> str:
        """Return the ink of a number: red above its limit, green only where the gate lets the release leave."""
        if line.is_above:
            return "$error bold"
        return "$success bold" if line.limit is not None and self._may_leave == "yes" else "bold"


def _limit_form(line: DialLine, place: int) -> str:
    """Return the limit of a number in one of its forms, the longest first, the last one with a sign."""
    forms = (*line.limit_texts, brief_limit_text(line.brief_limit_text))
    return forms[max(place - LIMIT_FORMS, -len(forms))]


def _before_text(line: DialLine) -> str:
    """Return the number before somebody's change, with an arrow to the one after it; empty without a change."""
    return f"{line.before_text} {sign_for('becomes')} " if line.before_text else ""


def _legend_parts(dial: IntruderDial, room: int) -> list[tuple[str, str]]:
    """Return what the mark of variables says of which the release has artificial values only, where it fits."""
    from sfumato.workspace.reporting.intruder_dial import ARTIFICIAL  # loads what starting the app does not need

    has_drawn = any(one.is_drawn for one in dial.numbers.variables)
    marks = f"{DRAWN_MARK} {ARTIFICIAL}" if has_drawn else ""
    forms = ("; ".join(filter(None, (marks, LUCK))), marks)
    told = next((f"{GAP}({one})" for one in forms if one and cell_len(one) + len(GAP) + 2 <= room), "")
    return [(told, "$text-muted")] if told else []


def _chip_ink(dial: IntruderDial, place: int) -> str:
    """Return the ink of a variable: bright if he knows it, dim if not, and another colour where the plan differs."""
    variable = dial.numbers.variables[place]
    if dial.is_changed(variable):
        return "$primary bold" if variable.name in dial.known else "$primary"
    return "bold" if variable.name in dial.known else "$text-muted"


def _chip_rows(chips: Sequence[str], room_of_first: int, room: int) -> list[list[int]]:
    """Return the places of the chips in each line of at most ``room`` cells; each line has one chip or more."""
    rows: list[list[int]] = [[]]
    used = 0
    for place, text in enumerate(chips):
        needed = len(GAP) + cell_len(text)
        if rows[-1] and used + needed > (room if len(rows) > 1 else room_of_first):
            rows.append([])
            used = 0
        rows[-1].append(place)
        used += needed
    return rows
