"""Command lines are quoted so that a shell reads back what was meant, and edits are told by the lines that they change."""

import shlex
import string
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from sfumato.tui.session.command_lines import THEN, change_text, command_text, reading_options
from sfumato.workspace.plan.edits import changed_lines

WORDS = st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1), min_size=1)


@given(
    words=WORDS.filter(lambda words: "&&" not in words),
    directory=st.text(string.printable.replace("\0", ""), min_size=1),
)
def test_a_shell_reads_back_the_words(words, directory):
    path = Path("/work") / directory
    assert shlex.split(command_text(path, words)) == ["sfumato", *words, "--workspace", str(path.absolute())]


def test_two_commands_are_both_told_the_workspace():
    text = command_text(Path("/my work"), ("plan", "x", *THEN, "run", "p.toml"))
    assert text == "sfumato plan x --workspace '/my work' && sfumato run p.toml --workspace '/my work'"


def test_a_hostile_name_is_one_word():
    text = command_text(Path("/w"), ("plan", "$(rm -rf ~); `x` 'y'\n&& z"))
    assert shlex.split(text)[2] == "$(rm -rf ~); `x` 'y'\n&& z"


def test_how_a_file_is_read_becomes_options():
    said = {"delimiter": ";", "header": False, "trim": True, "skip": 2, "missing": ["-9", "?"], "quote": ""}
    assert reading_options(said) == (
        "--delimiter=;", "--no-header", "--trim", "--skip=2", "--missing=-9", "--missing=?",
    )  # fmt: skip
    assert reading_options(None) == ()


def test_an_edit_is_told_by_its_line():
    before, after = "a = 1\nb = 2\nc = 3\n", "a = 1\nb = 5\nc = 3\n"
    assert changed_lines(before, after) == ["- b = 2", "+ b = 5"]
    assert change_text(changed_lines(before, after)) == "b = 5   (was b = 2)"
    assert change_text(changed_lines(before, "a = 1\nc = 3\n")) == "without b = 2"
    assert change_text(changed_lines(before, before + "d = 4\n")) == "d = 4   (new)"
    assert change_text(changed_lines(before, before + "\n[[x]]\ny = 1\n")) == "2 lines in, 0 out"
    assert change_text(changed_lines(before, before)) == ""
    assert changed_lines("", "--- x\n") == ["+ --- x"]
