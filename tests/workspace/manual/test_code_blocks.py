"""Each code block of the manual can be pasted: it is closed, has its line breaks, and its language reads it."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import click
import pytest

from sfumato.engine.data.toml import read_toml
from sfumato.tui.cli.main import sfumato as cli

ROOT = Path(__file__).parents[3]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "workspace" / "manual").glob("*.md"))]
FENCE = re.compile(r"(?m)^[ ]*```([a-z]*)$")
LANGUAGES = ("sh", "toml", "python", "json", "")


def code_blocks(text: str) -> list[tuple[str, str]]:
    """Return the language and the text of each block. Raises ValueError for a fence that is none."""
    if text.count("```") != len(fences := list(FENCE.finditer(text))):
        stray = next(line for line in text.splitlines() if "```" in line and not FENCE.fullmatch(line))
        raise ValueError(f"a fence must have a line of its own: {stray[:80]}")
    if len(fences) % 2:
        raise ValueError("a block is not closed")
    if any(end[1] for end in fences[1::2]):
        raise ValueError("a block begins inside another one")
    return [
        (begin[1], text[begin.end() + 1 : end.start()]) for begin, end in zip(fences[::2], fences[1::2], strict=True)
    ]


def problem_of_block(language: str, text: str) -> str:
    """Explain why a block cannot be pasted; empty where it can."""
    try:
        if language == "toml":
            read_toml(text)
        elif language == "python":
            compile(text, "block", "exec")
        elif language == "json":
            json.loads(text)
        elif language == "sh":
            done = subprocess.run(["bash", "-n"], input=text, capture_output=True, text=True, check=False)
            return done.stderr or next(filter(None, map(problem_of_command, commands_in(text))), "")
    except (ValueError, SyntaxError) as error:
        return str(error)
    return "" if language in LANGUAGES else f"no such language: {language}"


def commands_in(text: str) -> list[list[str]]:
    """Return the words of each call of sfumato in a shell block."""
    lines = text.replace("\\\n", " ").splitlines()
    calls = [re.split(r"\s#|[|&;<>]", line)[0].split() for line in lines]
    return [call[call.index("sfumato") :] for call in calls if "sfumato" in call[:2]]


def problem_of_command(words: list[str]) -> str:
    """Explain what sfumato does not know of a call; empty where it knows all."""
    command: click.Command = cli
    for word in words[1:]:
        if not isinstance(command, click.Group) or word not in command.commands:
            break
        command = command.commands[word]
    if command is cli and len(words) > 1 and not words[1].startswith("-"):
        return f"no command {words[1]}"
    known = {name for one in command.params for name in (*one.opts, *one.secondary_opts)} | {"--help", "--version"}
    unknown = [word for word in words if word.startswith("--") and word.partition("=")[0] not in known]
    return f"{' '.join(words)}: no option {unknown[0]}" if unknown else ""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_code_block_can_be_pasted(page: Path) -> None:
    wrong = [
        f"{text[:60]!r}: {why}"
        for language, text in code_blocks(page.read_text("utf-8"))
        if (why := problem_of_block(language, text))
    ]
    assert wrong == []


def test_the_cluster_of_the_manual_is_a_block_of_a_command_a_line() -> None:
    text = (ROOT / "workspace" / "manual" / "running.md").read_text("utf-8")
    (block,) = [text for language, text in code_blocks(text) if language == "sh" and "dask scheduler" in text]
    assert block.splitlines()[:3] == ["umask 077", "mkdir cluster", "cd cluster"]
    assert len(block.splitlines()) > 12


@pytest.mark.parametrize(
    "text",
    [
        "```sh umask 077; mkdir cluster\nsfumato runs ```\n",
        "```sh\nfor role in A; do\n```\n",
        "```sh\nsfumato rums\n```\n",
        "```sh\nsfumato runs --no-such-option\n```\n",
        "```toml\na = 1 b = 2\n```\n",
        "```python\nimport a import b\n```\n",
        "```json\n{a}\n```\n",
        "```sh\nsfumato runs\n",
    ],
)
def test_a_block_that_cannot_be_pasted_is_found(text: str) -> None:
    """The control, with the block as it stood."""
    try:
        blocks = code_blocks(text)
    except ValueError:
        return
    assert [why for language, block in blocks if (why := problem_of_block(language, block))]
