"""The conversation: lines out, questions with a default, answers that are checked and confirmed."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import BinaryIO, TextIO, TypeVar

from sfumato.engine.errors import BadInput, near_miss_hint
from sfumato.workspace.reporting.words import outcome_text
from sfumato.workspace.visible_text import replace_unprintable

Answer = TypeVar("Answer")
MOST_BYTES = 1 << 16
"""A longer line of input is no answer."""
MOST_LETTERS = 2000
"""A longer line of output is cut; it says so."""
FURTHER = "back, help or quit"
SIGNS = {
    "×": "times", "·": ",", "–": "-", "—": "-", "‑": "-", "−": "-", "…": "...", "≥": "at least", "≤": "at most", "±": "plus or minus",
    "→": "to", "§": "section ", "›": ">", "≈": "about", "“": '"', "”": '"', "‘": "'", "’": "'", "²": "^2", "\N{NO-BREAK SPACE}": " ",
}  # fmt: skip
"""Signs of our own texts, as they are read aloud. They are ASCII, so that every locale shows the same."""
DRAWN = re.compile("[\u2190-\u21ff\u2300-\u23ff\u2500-\u27bf\u2800-\u28ff\u2900-\u297f\u2b00-\u2bff]")
"""Arrows, boxes, blocks, dots and dingbats."""
STATES = ("met", "not met", "undecided", "not computed", "pass", "warn", "block", "not checked")


class Back(Exception):
    """Somebody wants to leave a question or a place."""


class Ended(Exception):
    """The conversation is over; ``status`` is how the command ends."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class NotPossible(Exception):
    """An act has nothing to act on, or is refused; the text says what to do first."""


def spoken(text: str) -> str:
    """``text`` in one line as it is read aloud: no control characters, no sign of a state beside its word, no drawing."""
    line = replace_unprintable(text)
    for state in STATES:
        if line.startswith(signed := outcome_text(state)):
            line = f"{state}{line[len(signed) :]}"
    line = DRAWN.sub("?", "".join(SIGNS.get(sign, sign) for sign in line.replace(" · ", ", ")))
    if len(line) > MOST_LETTERS:
        line = f"{line[:MOST_LETTERS]} (cut: {len(line) - MOST_LETTERS:,} more characters)"
    return line.rstrip()


class Talk:
    """One conversation. In a ``script`` (input that is not a terminal) the first wrong answer and the first failed act end it."""

    def __init__(self, answers: BinaryIO, out: TextIO, *, script: bool) -> None:
        self._answers, self._out, self._script = answers, out, script
        self._line = 0

    def say(self, text: str) -> None:
        """One line."""
        self._out.write(f"{spoken(text)}\n")
        self._out.flush()

    def say_all(self, lines: Sequence[str]) -> None:
        for line in lines:
            self.say(line)

    def list(self, lines: Sequence[str]) -> None:
        """The lines, numbered from 1."""
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
        """The answer to a question, checked: ``check`` raises BadInput for one that is not ``possible``. ``explain`` is what help says.

        Raises Back, and Ended at ``quit``, at the end of the input, and in a script after a wrong answer.
        """
        while True:
            self.say(f"{question} Answer {possible}, {FURTHER}; default: {default or 'none'}.")
            answer = self._read()
            if answer is None:
                continue
            match answer.lower():
                case "back":
                    raise Back
                case "quit":
                    self.say("Sfumato ends.")
                    raise Ended(0)
                case "help":
                    if explain is None:
                        self.say(
                            f"Answer {possible}. back leaves this question, quit ends; an empty line takes the default."
                        )
                    else:
                        explain()
                    continue
            if not (answer or default):
                self._wrong(f"This question has no default: answer {possible}, {FURTHER}.")
                continue
            try:
                return check(answer or default)
            except BadInput as error:
                self._wrong(f"{error.message} Possible: {possible}, {FURTHER}.")

    def choose(
        self,
        question: str,
        names: Sequence[str],
        default: str = "",
        explain: Callable[[], None] | None = None,
        what: str = "Chosen",
    ) -> int:
        """Which of ``names``, by number from 1 or by name, confirmed by a line. Returns its place from 0.

        A name is taken before a number, so that a variable called 2 can be named. No part of a name will do: "age" must not mean "wage".
        """
        shown = [spoken(name) for name in names]

        def check(answer: str) -> int:
            for known, wanted in ((names, answer), ([name.casefold() for name in shown], spoken(answer).casefold())):
                if known.count(wanted) == 1:
                    return known.index(wanted)
            if re.fullmatch("[0-9]{1,9}", answer) and 1 <= int(answer) <= len(names):
                return int(answer) - 1
            raise BadInput("", f'"{answer}" is not possible{near_miss_hint(answer, shown) or "."}')

        possible = "1" if len(names) == 1 else f"a number from 1 to {len(names)}"
        at = self.ask(question, f"{possible} or a name", check, default, explain or (lambda: self.list(names)))
        self.say(f"{what}: {at + 1}, {names[at]}.")
        return at

    def confirm(self, question: str, *, default: bool) -> bool:
        """Yes or no; confirmed by a line."""

        def check(answer: str) -> bool:
            word = answer.lower()
            if word not in ("yes", "y", "no", "n"):
                raise BadInput("", f'"{answer}" is neither yes nor no.')
            return word[0] == "y"

        yes = self.ask(question, "yes or no", check, "yes" if default else "no")
        self.say("Answer: yes." if yes else "Answer: no.")
        return yes

    def failed(self, text: str) -> None:
        """Say that an act did not succeed. Raises Ended in a script: its next line was written for an act that did."""
        self.say(f"Not done: {text}")
        self._stop_script()

    def _wrong(self, text: str) -> None:
        self.say(f"Wrong answer: {text}")
        self._stop_script()

    def _stop_script(self) -> None:
        if self._script:
            self.say(
                f"Stopped at line {self._line} of the input: the lines after it were written for another question. "
                "Correct that line and start again."
            )
            raise Ended(1)

    def _read(self) -> str | None:
        """The next line of the input without blanks around it; None for one that is no text. Raises Ended at the end."""
        line = self._answers.readline(MOST_BYTES)
        if not line:
            self.say("The input has ended; Sfumato ends. An act that waited for an answer was not done.")
            raise Ended(0)
        self._line += 1
        if len(line) == MOST_BYTES and not line.endswith(b"\n"):
            while (rest := self._answers.readline(MOST_BYTES)) and not rest.endswith(b"\n"):
                pass
            self._wrong(f"The line is longer than {MOST_BYTES:,} bytes.")
            return None
        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError:
            self._wrong("The line is not text in UTF-8.")
            return None
        text = text.strip()
        if not text.isprintable():
            self._wrong("The line has control characters.")
            return None
        return text
