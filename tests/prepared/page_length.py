"""Words and printed pages of a document before its annex, counted in its HTML as a reader sees it.

A page of A4 in 10 points holds 50 lines of 66 characters. Without a renderer this is the measure; with WeasyPrint, where it is installed, the
pages are those that it prints.
"""

from __future__ import annotations

import html
import math
import re

LINES_A_PAGE, CHARACTERS_A_LINE = 50, 66
_HIDDEN = re.compile(r"<(style|head|pre|svg)\b.*?</\1>", re.DOTALL)
_BLOCK_END = re.compile(r"</(?:p|li|dd|tr|h[1-6]|caption)>|</dt>")
_TALL_ROW = re.compile(r'<table class="signatures">.*?</table>', re.DOTALL)
LINES_OF_SIGNATURE = 3
"""Lines that a row to sign on takes."""


def pages_before_annex(page: str) -> str:
    """Return the HTML of the pages before the annex; the whole page where there is none."""
    return page.partition("<h2>Annex</h2>")[0]


def visible_text(page: str) -> str:
    """Return the text of an HTML page, a block a line, without preformatted text and figures."""
    shown = _HIDDEN.sub("", page)
    blocks = _BLOCK_END.sub("\n", shown.replace("\n", " "))
    return html.unescape(re.sub(r"<[^>]+>", " ", blocks))


def count_words(page: str) -> int:
    """Return how many words a page shows."""
    return sum(bool(re.search(r"\w", word)) for word in visible_text(page).split())


def count_pages(page: str) -> int:
    """Return how many pages of 50 lines of 66 characters a page of HTML takes, with an empty line after each block."""
    lines = 0
    for block in visible_text(page).split("\n"):
        text = " ".join(block.split())
        lines += math.ceil(len(text) / CHARACTERS_A_LINE) if text else 0
    blank = len(re.findall(r"</(?:p|ul|dl|table|h[1-6])>", page))
    signed = sum(table.count("<tr>") * (LINES_OF_SIGNATURE - 1) for table in _TALL_ROW.findall(page))
    return math.ceil((lines + blank + signed) / LINES_A_PAGE)
