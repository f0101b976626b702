"""The manual's blocks say what the declarations say, and nothing that is declared lacks an entry."""

from __future__ import annotations

import re

import pytest

from sfumato.tui.cli import manual_blocks
from sfumato.tui.cli.manual_blocks import (
    BLOCK,
    SECTIONS_WITH_KEYS,
    commands_by_words,
    own_method_keys,
    recipe_keys,
    update_blocks,
)
from sfumato.tui.keys.acts import BY_NAME
from sfumato.tui.manual.manual_text import page_lines, strip_markdown
from sfumato.workspace.manual import TOPICS, page_sections, page_text

HOW = "python -m sfumato.tui.cli.manual_blocks --write brings the manual up to date"


def named(topic: str) -> set[str]:
    return {one.name for one in page_sections(topic)}


@pytest.mark.slow
@pytest.mark.parametrize("topic", TOPICS)
def test_the_blocks_of_a_page_are_up_to_date(topic: str) -> None:
    text = page_text(topic)
    assert update_blocks(text) == text, HOW


def test_a_stale_block_is_found_and_written_again() -> None:
    text = page_text("recipe")
    stale = text.replace("Keys of `weights`: `run`", "Keys of `weights`: `walk`")
    assert stale != text
    assert update_blocks(stale) == text


def test_a_block_of_nothing_that_is_declared_is_refused() -> None:
    with pytest.raises(LookupError):
        update_blocks("<!-- generated: recipe nonsense -->\n<!-- end of generated -->\n")
    with pytest.raises(LookupError):
        update_blocks("<!-- generated: nonsense -->\n<!-- end of generated -->\n")


def test_every_method_has_a_section() -> None:
    keys = own_method_keys()
    assert len(keys) >= 49
    assert set(keys) - named("methods") == set(), "add <!-- generated: method KEY --> to methods.md"
    blocks = re.findall(r"<!-- generated: method (\S+) -->", page_text("methods"))
    assert sorted(blocks) == sorted(keys)


def test_every_command_has_a_section() -> None:
    assert len(commands_by_words()) >= 38
    assert set(commands_by_words()) - named("commands") == set(), HOW


def test_every_key_of_the_app_has_a_line() -> None:
    lines = set(re.findall(r"\| `([\w.]+)` \|$", page_text("app"), flags=re.MULTILINE))
    assert set(BY_NAME) == lines, HOW


@pytest.mark.parametrize("section", SECTIONS_WITH_KEYS)
def test_every_key_of_a_recipe_is_explained_in_its_section(section: str) -> None:
    found = next(one for one in page_sections("recipe") if one.name == section)
    keys = recipe_keys(section)
    assert len(keys) >= 3
    assert set(keys) - found.terms == set()


def test_no_line_of_a_paragraph_becomes_an_item_of_a_list() -> None:
    assert [line for topic in TOPICS for line in page_text(topic).splitlines() if re.match(r" +- ", line)] == []
    words = manual_blocks._wrap_paragraph(f"{'x' * 110} (1 - control) - more", "  ").splitlines()
    assert len(words) == 2
    assert not words[1].lstrip().startswith("- ")


def test_every_block_has_a_kind_that_is_known() -> None:
    kinds = {name.partition(" ")[0] for topic in TOPICS for _, name, _, _ in BLOCK.findall(page_text(topic))}
    assert kinds == set(manual_blocks.BLOCKS)


def test_the_command_names_stale_pages_and_writes_none(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        manual_blocks, "update_blocks", lambda text: f"{text}more\n" if text.startswith("# Speed") else text
    )
    before = page_text("speed")
    assert manual_blocks.main([]) == 1
    assert capsys.readouterr().out == "speed.md: stale; run it with --write\n"
    page_text.cache_clear()
    assert page_text("speed") == before


def test_a_page_is_laid_out_in_lines_that_fit() -> None:
    for topic in ("release", "tutorial"):
        lines = page_lines(page_text(topic), 60)
        assert [
            line.text for line in lines if len(line.text) > 60 and line.kind == "text" and "  " not in line.text
        ] == []
        assert not any("<!--" in line.text or "](" in line.text for line in lines)


def test_marks_become_words_and_code_stays_as_it_is() -> None:
    assert (
        strip_markdown("**Bold** `code` [page](recipe.md), [other](../../README.md)")
        == "Bold code page (sfumato help recipe), other"
    )
    lines = page_lines(
        "# Title\n\nSome `words`.\n\n- one\n  more\n- two\n\n```sh\nrun  `this`\n```\n\n| a | b |\n|---|---|\n| 1 | x |",
        40,
    )
    assert [(line.kind, line.text) for line in lines if line.text] == [
        ("title", "Title"),
        ("text", "Some words."),
        ("text", "- one more"),
        ("text", "- two"),
        ("code", "    run  `this`"),
        ("text", "a  b"),
        ("text", "-  -"),
        ("text", "1  x"),
    ]
