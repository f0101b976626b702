"""``sfumato help`` prints pages, sections and answers, quickly, and loads no numerical library."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Callable

import pytest

from sfumato.tui.cli.manual import manual_contents_text, search_hits_text
from sfumato.workspace.manual import TOPICS

MOST_OF_PANDAS = 0.5
Sfumato = Callable[..., int]


def test_without_a_topic_it_lists_the_pages(sfumato: Sfumato, capsys: pytest.CaptureFixture[str]) -> None:
    assert sfumato("help") == 0
    printed = capsys.readouterr().out
    assert all(f"\n{topic} " in printed for topic in TOPICS)
    assert "sfumato help --find WORDS" in printed
    assert max(map(len, printed.splitlines())) <= 100


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("running",), "Running\n=======\n"),
        (("risk.identification",), "risk.identification: Identification risk\n---"),
        (("risk.identification.known",), "- known: variables the intruder knows"),
        (("delete",), "sfumato delete\n-----"),
        (("sfumato", "release"), "sfumato release\n-----"),
        (("release",), "See also: sfumato help commands sfumato release"),
        (("app", "runs"), "See also: sfumato help app"),
        (("--find", "waive", "a", "finding"), "release: Waive a finding\n    "),
        (("--find", "public key"), "To read the first: sfumato help operations public key"),
    ],
)
def test_a_topic_is_printed(
    sfumato: Sfumato, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], said: str
) -> None:
    assert sfumato("help", *words) == 0
    printed = capsys.readouterr().out
    assert said in printed
    assert "\x1b" not in printed


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("tutoriel",), 'the manual has no "tutoriel"; did you mean "tutorial"?'),
        (("--find", "zzyzx"), '"zzyzx" is on no page'),
        (("--find",), "needs a word to look for"),
    ],
)
def test_what_is_not_there_is_one_message(
    sfumato: Sfumato, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], said: str
) -> None:
    assert sfumato("help", *words) == 2
    printed = capsys.readouterr()
    assert said in printed.err
    assert printed.err.count("\n") == 1
    assert printed.out == ""


def test_the_first_answer_can_be_opened_by_the_words_that_are_named(
    sfumato: Sfumato, capsys: pytest.CaptureFixture[str]
) -> None:
    named = search_hits_text("survey weights", 80).rpartition("sfumato help ")[2]
    assert sfumato("help", *named.split()) == 0
    assert capsys.readouterr().out.startswith("Survey weights\n---")


def test_a_method_of_another_package_is_shown_by_its_declaration(
    sfumato: Sfumato, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sfumato.engine.methods.protocols.method_keys", lambda: ("risk.of_another_package",))
    monkeypatch.setattr("sfumato.tui.cli.catalogue.method_page", lambda key: f"{key}: declared elsewhere")
    assert sfumato("help", "risk.of_another_package") == 0
    assert capsys.readouterr().out == "risk.of_another_package: declared elsewhere\n"
    assert sfumato("help", "risk.of_no_package") == 2


def test_lines_fit_a_narrow_terminal() -> None:
    assert max(map(len, manual_contents_text(60).splitlines()[:-2])) <= 60


@pytest.mark.slow
@pytest.mark.parametrize("words", [["recipe"], ["--find", "survey", "weights"], ["risk.identification"]])
def test_it_is_quick_and_loads_no_numerical_library(words: list[str]) -> None:
    script = (
        "import sys\nfrom sfumato.tui.cli.main import main\n"
        f"try:\n    main(['help', *{words!r}])\nexcept SystemExit:\n    pass\n"
        "heavy = {'textual', 'numpy', 'pandas', 'scipy', 'duckdb', 'pyarrow'} & set(sys.modules)\n"
        "sys.exit(f'imported {heavy}' if heavy else 0)"
    )

    def seconds(program: str) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert done.returncode == 0, done.stderr
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    quickest = {program: min(seconds(program) for _ in range(5)) for program in (script, "import pandas")}
    assert quickest[script] < MOST_OF_PANDAS * quickest["import pandas"]


def test_a_long_page_goes_to_the_pager_of_a_terminal_and_a_short_one_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    from sfumato.tui.cli import speech

    paged: list[str] = []
    monkeypatch.setattr(speech.click, "echo_via_pager", paged.append)
    monkeypatch.setattr(speech.sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(speech.sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("LINES", "24")
    speech.print_paged("one line")
    assert paged == []
    speech.print_paged("line\n" * 60)
    assert len(paged) == 1
