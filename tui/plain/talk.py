"""Conversation of plain mode: lines out, questions with a default, answers that are checked and confirmed."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import BinaryIO, TextIO, TypeVar

from sfumato.engine.errors import BadInput, near_miss_hint
from sfumato.workspace.reporting.words import outcome_text
from sfumato.workspace.visible_text import replace_unprintable

Answer = TypeVar("Answer")
MOST_LINE_BYTES = 1 << 16
"""A longer line of input is no answer."""
MOST_PRINTED_LETTERS = 2000
"""A longer line of output is cut; it says so."""
COMMON_ANSWERS = "back, help or quit"
SPOKEN_SIGNS = {
    "×": "times", "·": ",", "–": "-", "—": "-", "‑": "-", "−": "-", "…": "...", "≥": "at least", "≤": "at most", "±": "plus or minus",
    "→": "to", "§": "section ", "›": ">", "≈": "about", "“": '"', "”": '"', "‘": "'", "’": "'", "²": "^2", "\N{NO-BREAK SPACE}": " ",
}  # fmt: skip
"""Signs of our own texts, in the words for reading aloud. They are ASCII, so that every locale shows the same."""
DRAWING_CHARACTERS = re.compile("[\u2190-\u21ff\u2300-\u23ff\u2500-\u27bf\u2800-\u28ff\u2900-\u297f\u2b00-\u2bff]")
"""Arrows, boxes, blocks, dots and dingbats."""
STATE_WORDS = ("met", "not met", "undecided", "not computed", "pass", "warn", "block", "not checked")


class GoBack(Exception):
    """Request to leave a question or a place."""


class ConversationEnded(Exception):
    """End of the conversation; ``status`` is the exit status of the command."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class ActNotPossible(Exception):
    """Act that has nothing to act on, or is refused; the text says what to do first."""


def text_for_speech(text: str) -> str:
    """Return a text on one line for reading aloud: without control characters, signs of states, and drawings."""
    line = replace_unprintable(text)
    for state in STATE_WORDS:
        # A reader would hear the sign and then the word for the same state.
        if line.startswith(signed := outcome_text(state)):
            line = f"{state}{line[len(signed) :]}"
    line = DRAWING_CHARACTERS.sub("?", "".join(SPOKEN_SIGNS.get(sign, sign) for sign in line.replace(" · ", ", ")))
    if len(line) > MOST_PRINTED_LETTERS:
        line = f"{line[:MOST_PRINTED_LETTERS]} (cut: {len(line) - MOST_PRINTED_LETTERS:,} more characters)"
    return line.rstrip()


class Conversation:
    """Conversation of plain mode.

    In a ``script`` (input that is not a terminal) the first wrong answer and the first failed act end it.
    """

    def __init__(self, answers: BinaryIO, out: TextIO, *, script: bool) -> None:
        self._answers, self._out, self._script = answers, out, script
        self._line = 0

    def say(self, text: str) -> None:
        """Print one line."""
        self._out.write(f"{text_for_speech(text)}\n")
        self._out.flush()

    def print_lines(self, lines: Sequence[str]) -> None:
        for line in lines:
            self.say(line)

    def print_numbered(self, lines: Sequence[str]) -> None:
        """Print the lines, numbered from 1."""
        for number, line in enumerate(lines, 1):
            self.say(f"{number}. {line}")

    def ask(
        self,
        question: str,
        possible: str,
        check: Callable[[str], Answer],
        default: str = "",
        explain: Callable[[], None] | None = None,
    ) -> Answer:
        """Ask a question until it is answered, and return the checked answer.

        ``check`` raises BadInput for an answer that is not ``possible``; ``explain`` is called at ``help``.
        Raises GoBack, and ConversationEnded at ``quit``, at the end of the input, and in a script after a wrong answer.
        """
        while True:
            self.say(f"{question} Answer {possible}, {COMMON_ANSWERS}; default: {default or 'none'}.")
            answer = self._read_answer()
            if answer is None:
                continue
            match answer.lower():
                case "back":
                    raise GoBack
                case "quit":
                    self.say("Sfumato ends.")
                    raise ConversationEnded(0)
                case "help":
                    if explain is None:
                        self.say(
                            f"Answer {possible}. back leaves this question, quit ends; an empty line takes the default."
                        )
                    else:
                        explain()
                    continue
            if not (answer or default):
                self._report_wrong_answer(f"This question has no default: answer {possible}, {COMMON_ANSWERS}.")
                continue
            try:
                return check(answer or default)
            except BadInput as error:
                self._report_wrong_answer(f"{error.message} Possible: {possible}, {COMMON_ANSWERS}.")

    def choose(
        self,
        question: str,
        names: Sequence[str],
        default: str = "",
        explain: Callable[[], None] | None = None,
        what: str = "Chosen",
    ) -> int:
        """Ask for one of ``names``, by number from 1 or by name, confirm it, and return its position from 0."""
        shown = [text_for_speech(name) for name in names]

        def check(answer: str) -> int:
            """Return the position of the name or number that was answered. Raises BadInput."""
            # A name is taken before a number, so that a variable called 2 can be named. No part of a name will do:
            # "age" must not mean "wage".
            for known, wanted in (
                (names, answer),
                ([name.casefold() for name in shown], text_for_speech(answer).casefold()),
            ):
                if known.count(wanted) == 1:
                    return known.index(wanted)
            if re.fullmatch("[0-9]{1,9}", answer) and 1 <= int(answer) <= len(names):
                return int(answer) - 1
            raise BadInput("", f'"{answer}" is not possible{near_miss_hint(answer, shown) or "."}')

        possible = "1" if len(names) == 1 else f"a number from 1 to {len(names)}"
        at = self.ask(
            question, f"{possible} or a name", check, default, explain or (lambda: self.print_numbered(names))
        )
        self.say(f"{what}: {at + 1}, {names[at]}.")
        return at

    def confirm(self, question: str, *, default: bool) -> bool:
        """Ask a question with the answers yes and no, and confirm the answer by a line."""

        def check(answer: str) -> bool:
            """Return whether the answer is yes. Raises BadInput."""
            word = answer.lower()
            if word not in ("yes", "y", "no", "n"):
                raise BadInput("", f'"{answer}" is neither yes nor no.')
            return word[0] == "y"

        yes = self.ask(question, "yes or no", check, "yes" if default else "no")
        self.say("Answer: yes." if yes else "Answer: no.")
        return yes

    def report_failure(self, text: str) -> None:
        """Print that an act did not succeed. Raises ConversationEnded in a script."""
        self.say(f"Not done: {text}")
        self._stop_script()

    def _report_wrong_answer(self, text: str) -> None:
        self.say(f"Wrong answer: {text}")
        self._stop_script()

    def _stop_script(self) -> None:
        """Raise ConversationEnded in a script, after a line that names where it stopped."""
        # The next line of a script was written for another question: it could answer yes to the wrong one.
        if self._script:
            self.say(
                f"Stopped at line {self._line} of the input: the lines after it were written for another question. "
                "Correct that line and start again."
            )
            raise ConversationEnded(1)

    def _read_answer(self) -> str | None:
        """Return the next line of the input without blanks around it; None where it is no text.

        Raises ConversationEnded at the end of the input.
        """
        line = self._answers.readline(MOST_LINE_BYTES)
        if not line:
            self.say("The input has ended; Sfumato ends. An act that waited for an answer was not done.")
            raise ConversationEnded(0)
        self._line += 1
        if len(line) == MOST_LINE_BYTES and not line.endswith(b"\n"):
            # The rest of the line must not be read as the next answer.
            while (rest := self._answers.readline(MOST_LINE_BYTES)) and not rest.endswith(b"\n"):
                pass
            self._report_wrong_answer(f"The line is longer than {MOST_LINE_BYTES:,} bytes.")
            return None
        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError:
            self._report_wrong_answer("The line is not text in UTF-8.")
            return None
        text = text.strip()
        if not text.isprintable():
            self._report_wrong_answer("The line has control characters.")
            return None
        return text
