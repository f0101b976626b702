"""Texts in Markdown: a CommonMark parser reads back what was put in, and numbers are numbers to whoever reads the file itself."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from sfumato.workspace.reporting.document import (
    BulletList,
    Chapter,
    DefinitionList,
    Document,
    Paragraph,
    PreformattedText,
    escape_markdown,
)
from sfumato.workspace.reporting.tables import table_from_titles

WORDS = st.text(st.sampled_from("-+=.)( 019ax*_#>|&;:~`\\<[]!{}@$"), max_size=8)


def read(markdown: str) -> tuple[list[str], str]:
    """The blocks that a parser finds, and their text."""
    tokens = MarkdownIt("commonmark").enable("table").parse(markdown)
    inline = [child for token in tokens for child in token.children or ()]
    kinds = [token.type for token in tokens] + [child.type for child in inline if not child.type.startswith("text")]
    return kinds, "".join(child.content for child in inline)


@pytest.mark.parametrize("number", ["0.6378", "-0.5", "+3", "12", "1,234.5", "-1.6 .. 0.89", "1e-7", "0.63 share"])
def test_a_number_is_written_as_it_is(number: str) -> None:
    assert escape_markdown(number) == number
    page = Document("Assessment", "", (table_from_titles(("measure", "release"), [["risk", number]]),)).to_markdown()
    assert f"| risk | {number} |" in page


@given(WORDS)
def test_a_parser_reads_a_text_as_one_paragraph_of_it(words: str) -> None:
    line = " ".join(words.split())
    kinds, found = read(escape_markdown(words))
    assert kinds == (["paragraph_open", "inline", "paragraph_close"] if line else [])
    assert found == line


@given(WORDS)
def test_no_text_underlines_or_continues_the_block_above(words: str) -> None:
    page = Document("Title", "", (Paragraph("above"), Chapter("Chapter", (Paragraph(words),)))).to_markdown()
    assert [kind for kind in read(page)[0] if kind.endswith("_open")][:3] == [
        "heading_open",
        "paragraph_open",
        "heading_open",
    ]
    kinds, _ = read(f"above\n{escape_markdown(words)}")
    assert set(kinds) <= {"paragraph_open", "inline", "paragraph_close", "softbreak"}


@pytest.mark.parametrize("words", ["1. x", "- x", "+ x", "2) x", "---"])
def test_what_would_be_a_list_or_a_line_without_the_escape(words: str) -> None:
    """The control: the parser sees a block where nothing is escaped."""
    assert set(read(f"above\n\n{words}")[0]) - {"paragraph_open", "inline", "paragraph_close"}
    assert set(read(escape_markdown(words))[0]) == {"paragraph_open", "inline", "paragraph_close"}


@given(st.lists(st.text(st.sampled_from("`~ #ab"), max_size=8), max_size=4).map("\n".join))
def test_a_text_shown_as_it_is_written_stays_within_its_fence(text: str) -> None:
    tokens = MarkdownIt("commonmark").parse(
        Document("T", "", (PreformattedText(text), Paragraph("after"))).to_markdown()
    )
    kinds = [token.type for token in tokens]
    assert kinds[-4:] == ["fence", "paragraph_open", "inline", "paragraph_close"]
    assert tokens[-4].content == f"{text}\n"


def test_several_items_of_a_term_stand_in_one_line() -> None:
    document = Document("T", "", (DefinitionList([("Settings", BulletList(["a = 1", "b = 2"])), ("Source", "")]),))
    assert "- Settings: a = 1; b = 2" in document.to_markdown()
    assert "Source" not in document.to_markdown()
    assert "<dd><ul><li>a = 1</li><li>b = 2</li></ul></dd>" in document.to_html()
