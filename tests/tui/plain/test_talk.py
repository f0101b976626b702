"""The conversation of plain mode: lines that a screen reader can read, questions with a default, scripts that stop at a wrong answer."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.engine.methods.registry import OWN, registry
from sfumato.tui.plain.talk import (
    DRAWING_CHARACTERS,
    MOST_LINE_BYTES,
    MOST_PRINTED_LETTERS,
    Conversation,
    ConversationEnded,
    GoBack,
    text_for_speech,
)
from sfumato.tui.session.run_progress import PROGRESS_SECONDS, ProgressLines
from sfumato.workspace.gate.gate import CHECKS
from sfumato.workspace.reporting.words import outcome_text

EVIL = "\x1b]52;c;b3duZWQ=\x07\x1b[31m\x9b5m\u202edaer\u2066\u200b\r\n\x08\u2028"


class Said:
    """A conversation with these lines as its input, and what it says."""

    def __init__(self, answers: str | bytes, *, script: bool = True) -> None:
        self.out = io.StringIO()
        self.input = io.BytesIO(answers if isinstance(answers, bytes) else answers.encode())
        self.talk = Conversation(self.input, self.out, script=script)

    @property
    def lines(self) -> list[str]:
        return self.out.getvalue().splitlines()


def status_of(act: Callable[[], object]) -> int:
    with pytest.raises(ConversationEnded) as ended:
        act()
    return ended.value.status


@given(st.text(max_size=200))
def test_any_text_is_one_line_without_commands_and_drawings(text: str) -> None:
    line = text_for_speech(text)
    assert line.isprintable()
    assert "\n" not in line
    assert not DRAWING_CHARACTERS.search(line)


@given(st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=200))
def test_plain_text_is_said_as_it_is(text: str) -> None:
    assert text_for_speech(text) == text


def test_a_title_cannot_forge_a_line_of_a_menu_or_command_the_terminal() -> None:
    said = Said("")
    said.talk.print_numbered([f"age{EVIL}\n1. Release everything: no question\n", "sex"])
    assert len(said.lines) == 2
    assert re.fullmatch(r"1\. age.*1\. Release everything: no question", said.lines[0])
    assert not set(said.out.getvalue()) & set("\x1b\r\x07\x08\x9b\u202e\u2066\u200b\u2028")


@pytest.mark.parametrize("glyphs", ["", "ascii"])
@pytest.mark.parametrize(
    "state", ["met", "not met", "undecided", "not computed", "pass", "warn", "block", "not checked"]
)
def test_a_state_is_its_word_without_a_sign(state: str, glyphs: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SFUMATO_GLYPHS", glyphs)
    assert outcome_text(state) != state
    assert text_for_speech(f"{outcome_text(state)}: 3 of 9") == f"{state}: 3 of 9"


def test_boxes_and_arrows_do_not_stay_and_signs_become_words() -> None:
    assert text_for_speech("├─■━┤ ⣿ ▇ ↑") == "????? ? ? ?"
    assert text_for_speech("at most 1.2 × 3 · risk – §4") == "at most 1.2 times 3, risk - section 4"


@pytest.mark.slow
def test_every_text_that_methods_and_checks_declare_is_ascii_when_said_but_for_the_letters_of_names() -> None:
    texts = [text for check in CHECKS for text in (check.title, check.unit, check.reason, check.advice, check.source)]
    for method in registry().values():
        if method.package == OWN:
            texts += [method.title, method.source]
            for one in method.result_outputs:
                label = one.label
                texts += [one.meaning, one.unit, label.name, label.says, label.good, label.fails, *label.levers]
    strange = {sign for text in texts for sign in text_for_speech(text) if not sign.isascii() and not sign.isalpha()}
    assert len(texts) > 500
    assert strange == set()


def test_a_very_long_line_is_cut_and_says_so() -> None:
    assert text_for_speech("x" * (MOST_PRINTED_LETTERS + 7)).endswith("(cut: 7 more characters)")
    assert text_for_speech("x" * MOST_PRINTED_LETTERS) == "x" * MOST_PRINTED_LETTERS


@pytest.mark.slow
@given(st.binary(max_size=300), st.booleans())
def test_whatever_comes_in_a_question_is_answered_left_or_ended(answers: bytes, script: bool) -> None:
    said = Said(answers, script=script)
    with contextlib.suppress(GoBack, ConversationEnded):
        while True:
            assert said.talk.choose("Which?", ["age", "sex", "2"], "1") in (0, 1, 2)
            assert said.talk.confirm("Sure?", default=False) in (True, False)
    assert all(line.isprintable() for line in said.out.getvalue().split("\n"))


def test_a_question_names_its_answers_and_its_default_and_an_empty_line_takes_it() -> None:
    said = Said("\nyes\n")
    assert said.talk.confirm("Delete run 3?", default=False) is False
    assert said.lines == ["Delete run 3? Answer yes or no, back, help or quit; default: no.", "Answer: no."]
    assert said.talk.confirm("Delete run 3?", default=False) is True


def test_a_question_without_a_default_says_so_and_takes_no_empty_line() -> None:
    said = Said("\nage\n", script=False)
    assert said.talk.choose("Which?", ["age", "sex"]) == 0
    assert said.lines[0].endswith("default: none.")
    assert said.lines[1].startswith("Wrong answer: This question has no default")


def test_a_wrong_answer_at_a_terminal_is_explained_and_asked_again() -> None:
    said = Said("agee\n3\n0\nage\n", script=False)
    assert said.talk.choose("Which?", ["age", "sex"]) == 0
    wrong = [line for line in said.lines if line.startswith("Wrong answer")]
    assert wrong[0] == (
        'Wrong answer: "agee" is not possible; did you mean "age"? Possible: a number from 1 to 2 or a name, back, help or quit.'
    )
    assert len(wrong) == 3
    assert said.lines[-1] == "Chosen: 1, age."


def test_a_wrong_answer_in_a_script_stops_it_names_the_line_and_reads_no_further() -> None:
    said = Said("age\nagee\nyes\nyes\n")
    said.talk.choose("Which?", ["age", "sex"])
    assert status_of(lambda: said.talk.choose("Which?", ["age", "sex"])) == 1
    assert "Stopped at line 2 of the input" in said.lines[-1]
    assert said.input.read() == b"yes\nyes\n"


def test_an_act_that_fails_stops_a_script_and_no_conversation_at_a_terminal() -> None:
    person, script = Said("", script=False), Said("")
    person.talk.report_failure("no.")
    assert person.lines == ["Not done: no."]
    assert status_of(lambda: script.talk.report_failure("no.")) == 1


@pytest.mark.parametrize("script", [True, False])
@pytest.mark.parametrize(
    "question",
    [
        lambda talk: talk.confirm("Sure?", default=False),
        lambda talk: talk.choose("Which?", ["age", "sex"]),
        lambda talk: talk.ask("Why?", "words", str),
    ],
)
def test_back_quit_help_and_the_end_of_the_input_work_at_every_question(
    question: Callable[[Conversation], object], script: bool
) -> None:
    with pytest.raises(GoBack):
        question(Said("back\n", script=script).talk)
    assert status_of(lambda: question(Said("QUIT\n", script=script).talk)) == 0
    said = Said("help\n", script=script)
    assert status_of(lambda: question(said.talk)) == 0
    assert len(said.lines) >= 4
    assert said.lines[-1].startswith("The input has ended")


def test_a_name_is_taken_before_a_number_and_no_part_of_a_name_will_do() -> None:
    assert Said("2\n").talk.choose("Which?", ["1", "3", "2"]) == 2
    assert Said("2\n").talk.choose("Which?", ["1", "3", "4"]) == 1
    assert Said("WAGE\n").talk.choose("Which?", ["wage", "sex"]) == 0
    assert Said("a\n").talk.choose("Which?", ["a", "A"]) == 0
    assert status_of(lambda: Said("age\n").talk.choose("Which?", ["wage", "sex"])) == 1
    assert status_of(lambda: Said("same\n").talk.choose("Which?", ["same", "same"])) == 1


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"x" * (3 * MOST_LINE_BYTES) + b"\n", "longer than"),
        (b"\xff\xfe\n", "not text in UTF-8"),
        (b"a\x1b[2Jb\n", "control characters"),
        (b"a\x00b\n", "control characters"),
    ],
)
def test_a_line_that_is_no_answer_is_wrong_and_the_next_is_read_whole(line: bytes, why: str) -> None:
    said = Said(line + b"yes\n", script=False)
    assert said.talk.confirm("Sure?", default=False) is True
    assert why in said.lines[1]
    assert status_of(lambda: Said(line + b"yes\n").talk.confirm("Sure?", default=False)) == 1


def test_progress_is_a_line_at_most_every_five_seconds() -> None:
    said, now = Said(""), [0.0]
    progress = ProgressLines(said.talk.say, lambda: now[0])
    for tenth in range(300):
        now[0] = tenth / 10
        progress(f"run 1: {tenth} of 300 steps done, about {300 - tenth} s left")
    progress("")
    assert len(said.lines) == 30 / PROGRESS_SECONDS
    assert said.lines[0] == "Run 1: 0 of 300 steps done, about 300 s left."
    for _ in range(9):
        now[0] += 100
        progress("run 1: waiting")
    assert len(said.lines) == 30 / PROGRESS_SECONDS + 1
