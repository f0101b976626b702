"""Markup: whatever the text, a parser reads back what was put in."""

from __future__ import annotations

import unicodedata
from html.parser import HTMLParser
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.workspace.plots.markup import Markup, element, escape_text, join_markup

HOSTILE = "</title><script>alert('x')</script>\"onload=\"&amp;<!--]]>"


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.text += data


def parsed(page: str) -> Tags:
    reader = Tags()
    reader.feed(page)
    reader.close()
    return reader


UNDONE = {
    "\u00ad",
    "\u034f",
    *"\u180b\u180c\u180d\u180f\u200c\u200d",
    *map(chr, range(0xFE00, 0xFE10)),
    *map(chr, range(0xE0100, 0xE01F0)),
}
"""What a text reads the same without."""


def shown(character: str) -> str:
    """A sign in place of what no document may hold, and of what hides a text or turns it around."""
    if character in UNDONE:
        return ""
    hidden = unicodedata.category(character) in ("Cc", "Cf", "Zl", "Zp") or character in "\u115f\u1160\u3164\uffa0"
    return "\ufffd" if hidden else character


@given(
    st.text(alphabet=st.characters(codec="utf-8", exclude_categories=["Cc", "Cn"]) | st.sampled_from("<>&\"'\x1b\x00"))
)
def test_text_and_attributes_come_back_as_they_were(words: str) -> None:
    made = element("p", words, title=words, data_x=words)
    clean = "".join(map(shown, words))
    read = parsed(made)
    assert read.tags == ["p"]
    assert read.text == clean
    assert read.attributes == [("title", clean), ("data-x", clean)]
    tree = ET.fromstring(made)
    assert (tree.text or "", tree.get("title")) == (clean, clean)


def test_text_that_is_not_escaped_would_be_found_out() -> None:
    """The negative control: the parser that the test above trusts sees an element that gets in."""
    assert parsed(element("p", Markup(HOSTILE))).tags == ["p", "script"]
    assert parsed(element("p", HOSTILE)).tags == ["p"]


def test_children_may_be_text_markup_and_lists_of_them() -> None:
    assert element("ul", [element("li", word) for word in ("a", "<b>")], "") == "<ul><li>a</li><li>&lt;b&gt;</li></ul>"
    assert join_markup(["<", Markup("<br>"), ["&"]]) == "&lt;<br>&amp;"
    assert escape_text(escape_text("<")) == "&lt;"


def test_attributes_are_written_shortly_and_left_out_when_there_are_none() -> None:
    assert (
        element("rect", x=1.0, y=-0.001, width=2.3456, class_="a", fill=None)
        == '<rect x="1" y="0" width="2.35" class="a"></rect>'
    )
    assert element("meta", charset="utf-8") == '<meta charset="utf-8">'


@pytest.mark.parametrize("character", ["\x00", "\x08", "\x1b", "\ud800", "\uffff"])
def test_characters_that_no_document_may_hold_are_replaced(character: str) -> None:
    assert escape_text(f"a{character}b") == "a\ufffdb"
