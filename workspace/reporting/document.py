"""Documents as values, written as one HTML page or as Markdown.

A document consists of chapters, paragraphs, definitions, tables, figures and signature lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ..plots.figure import Figure, describe_figure
from ..plots.markup import Markup, MarkupChild, element, join_markup
from ..plots.svg import figure_svg
from ..visible_text import replace_hidden
from .tables import DisplayTable, full_cell_text, table_html

STYLE = Markup(
    """
body { font: 15px/1.45 system-ui, "DejaVu Sans", sans-serif; color: #222; background: #fff; margin: 0 auto; max-width: 72rem; padding: 1.5rem; }
h1 { font-size: 1.7rem; margin-bottom: .2rem; } h2 { margin-top: 2.2rem; border-bottom: 1px solid #999; } h3 { margin-bottom: .3rem; }
nav ul { display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; list-style: none; padding: 0; }
table { border-collapse: collapse; margin: .8rem 0; font-size: .88rem; } caption { text-align: left; font-weight: bold; padding: .3rem 0; }
th, td { text-align: left; vertical-align: top; padding: .2rem .7rem .2rem 0; border-bottom: 1px solid #ddd; overflow-wrap: break-word; }
thead th { border-bottom: 1px solid #555; } tbody th { font-weight: normal; } .number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.wide { overflow-x: auto; } .marking { font-weight: bold; border: 2px solid #222; padding: .4rem .8rem; } .open { background: #fff3c4; border-bottom: 1px dashed #7a5b00; padding: 0 .25rem; }
table.signatures { width: 100%; } .signatures td { height: 2.6rem; min-width: 8rem; border-bottom: 1px solid #222; vertical-align: bottom; }
dl { display: grid; grid-template-columns: minmax(8rem, max-content) 1fr; gap: .15rem 1.2rem; font-size: .92rem; } dt { color: #555; } dd { margin: 0; overflow-wrap: anywhere; }
dd ul { margin: 0; padding-left: 1.1rem; } figure { margin: 1.5rem 0; } figcaption { font-size: .88rem; color: #444; } svg { width: 100%; height: auto; max-width: 60rem; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; font-size: .8rem; background: #f5f5f5; padding: 1rem; } code { font-size: .85em; }
@media print { body { max-width: none; padding: 0; font-size: 10pt; } nav { display: none; } figure, tr { break-inside: avoid; } h2, h3 { break-after: avoid; } table { font-size: 7.5pt; } .wide { overflow-x: visible; } }
"""
)
# nothing is loaded and no script runs, even if a text of an untrusted file should become markup
CONTENT_SECURITY_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
OPEN_LABEL = "To be completed"
TextOrQuestion: TypeAlias = "str | OpenQuestion"
DocumentPart: TypeAlias = "Paragraph | DefinitionList | BulletList | DisplayTable | SignatureLines | CaptionedFigure | PreformattedText | Chapter"
SIGNATURE_HEADS = ("role", "name", "date", "signature")
_ACTIVE = re.compile(r"([\\`*\[\]<>#|~&$@{}]|(?<![^\W_])_|_(?![^\W_]))")
"""Characters that have a meaning in Markdown; not an underscore within a word, nor ``!``, whose ``[`` is escaped."""
_FIRST = re.compile(r"^(?:(?=[-+=](?![\w.]))|(\d+)(?=[.)](?:\s|$)))")
"""Beginnings of a line that start a list or underline the line above; not a number such as -0.5."""
_LINKS = re.compile(r"(?i)(https?|ftp|mailto|www)(?=[:.])")


@dataclass(frozen=True, slots=True)
class OpenQuestion:
    """Question that only a person can answer.

    question: text of the question
    answer_place: where the answer can be written, so that later documents contain it
    """

    question: str
    answer_place: str = ""

    @property
    def full_text(self) -> str:
        """Return the question with the place for its answer."""
        return f"{self.question} ({self.answer_place})" if self.answer_place else self.question


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Paragraph of text, in bold where ``is_strong``."""

    content: TextOrQuestion
    is_strong: bool = False


@dataclass(frozen=True, slots=True)
class BulletList:
    """List of items with bullets."""

    items: Sequence[TextOrQuestion]


@dataclass(frozen=True, slots=True)
class DefinitionList:
    """Terms with their descriptions; terms whose description is empty are left out."""

    pairs: Sequence[tuple[str, TextOrQuestion | BulletList]]


@dataclass(frozen=True, slots=True)
class PreformattedText:
    """Text that is shown unchanged, such as a recipe."""

    text: str


@dataclass(frozen=True, slots=True)
class SignatureLines:
    """Lines to sign on, for pairs of a role and a name, which may be empty."""

    signers: Sequence[tuple[str, str]]


@dataclass(frozen=True, eq=False, slots=True)
class CaptionedFigure:
    """Figure with a caption; Markdown describes it in words.

    figure: the figure
    caption: text below it
    ident: id that no other figure of the page has
    """

    figure: Figure
    caption: str
    ident: str


def number_figure(figure: Figure, number: int) -> CaptionedFigure:
    """Return a figure with its number and title in the caption."""
    return CaptionedFigure(figure, f"Figure {number}. {figure.title}. {figure.caption}", f"figure-{number}")


@dataclass(frozen=True, slots=True)
class Chapter:
    """Heading with the parts below it; a chapter within a chapter has a heading one level lower."""

    title: str
    parts: Sequence[DocumentPart]

    @property
    def anchor(self) -> str:
        """Return the id by which the list of contents links to the chapter."""
        return re.sub("[^a-z0-9]+", "-", self.title.lower()).strip("-") or "chapter"


@dataclass(frozen=True)
class Document:
    """A document: title, marking and parts.

    title: its title
    marking: its classification, such as ``INTERNAL``
    parts: chapters, paragraphs, tables and figures
    summary: a sentence below the marking
    kind: kind of the document, beside the title of its page
    has_contents: whether a list of its chapters comes first
    """

    title: str
    marking: str
    parts: Sequence[DocumentPart]
    summary: str = ""
    kind: str = ""
    has_contents: bool = False

    def to_html(self) -> str:
        """Return the document as one HTML page, which loads nothing."""
        marking = element("p", self.marking, class_="marking") if self.marking else ""
        head = (
            element("h1", self.title),
            marking,
            element("p", self.summary) if self.summary else "",
            self._contents_html(),
        )
        body = element("main", *head, [_part_html(part, 2, linked=self.has_contents) for part in self.parts])
        return html_page(f"{self.title}: {self.kind}" if self.kind else self.title, body)

    def _contents_html(self) -> MarkupChild:
        """Return the list of contents; empty where the document has none."""
        if not self.has_contents:
            return ""
        chapters = [part for part in self.parts if isinstance(part, Chapter)]
        links = [element("li", element("a", one.title, href=f"#{one.anchor}")) for one in chapters]
        return element("nav", element("ul", links), aria_label="Contents")

    def to_markdown(self) -> str:
        """Return the document in Markdown (CommonMark with GitHub's tables)."""
        head = [
            f"# {escape_markdown(self.title)}",
            f"**{escape_markdown(self.marking)}**" if self.marking else "",
            escape_markdown(self.summary),
        ]
        blocks = [*head, *(block for part in self.parts for block in _part_markdown(part, 2))]
        return "\n\n".join(block for block in blocks if block) + "\n"


def html_page(title: str, body: Markup) -> str:
    """Return a whole HTML page with a title and a body; it runs no script and loads nothing."""
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=CONTENT_SECURITY_POLICY),
        element("meta", name="viewport", content="width=device-width"),
        element("title", title),
        element("style", STYLE),
    )
    return f"<!DOCTYPE html>\n{element('html', head, element('body', body), lang='en')}\n"


def definition_list_html(pairs: Iterable[tuple[str, MarkupChild]]) -> Markup:
    """Return terms and descriptions as HTML; terms whose description is empty are left out."""
    return element(
        "dl", [join_markup([element("dt", term), element("dd", content)]) for term, content in pairs if content != ""]
    )


def signature_table_html(signers: Iterable[tuple[str, str]]) -> Markup:
    """Return lines to sign on as HTML, from pairs of a role and a name."""
    head = element("tr", [element("th", word, scope="col") for word in SIGNATURE_HEADS])
    lines = [
        element("tr", element("th", role, scope="row"), element("td", name), element("td"), element("td"))
        for role, name in signers
    ]
    return element("table", element("thead", head), element("tbody", lines), class_="signatures")


def text_html(words: TextOrQuestion) -> MarkupChild:
    """Return text for HTML; an open question is highlighted."""
    return words if isinstance(words, str) else element("span", f"{OPEN_LABEL}: {words.full_text}", class_="open")


def _part_html(part: DocumentPart, level: int, *, linked: bool = False) -> Markup:
    """Return a part of a document as HTML; headings of chapters have the given level."""
    match part:
        case Paragraph(words, strong):
            content = text_html(words)
            return element("p", element("strong", content) if strong else content)
        case DefinitionList(pairs):
            return definition_list_html(
                (term, _part_html(said, level) if isinstance(said, BulletList) else text_html(said))
                for term, said in pairs
            )
        case BulletList(items):
            return element("ul", [element("li", text_html(one)) for one in items])
        case SignatureLines(signers):
            return signature_table_html(signers)
        case CaptionedFigure(figure, caption, ident):
            return element("figure", figure_svg(figure, ident), element("figcaption", caption))
        case PreformattedText(text):
            return element("pre", text)
        case Chapter(title, parts):
            # HTML has six levels of headings
            heading = element(f"h{min(level, 6)}", title)
            inner = [_part_html(one, level + 1) for one in parts]
            return element("section", heading, inner, id=part.anchor if linked else None)
        case DisplayTable():
            return element("div", table_html(part), class_="wide")


def escape_markdown(text: str) -> str:
    """Escape text so that Markdown shows it unchanged, in one line."""
    # hidden characters could reverse or hide what a reader sees
    line = " ".join(replace_hidden(text).split())
    escaped = _ACTIVE.sub(r"\\\1", line)
    # GitHub links bare addresses; a character reference within the scheme prevents it
    unlinked = _LINKS.sub(lambda found: found[0][:-1] + "&#" + str(ord(found[0][-1])) + ";", escaped)
    return _FIRST.sub(r"\1\\", unlinked)


def text_markdown(words: TextOrQuestion) -> str:
    """Return text for Markdown; an open question is highlighted."""
    return escape_markdown(words) if isinstance(words, str) else f"**{OPEN_LABEL}:** {escape_markdown(words.full_text)}"


def _part_markdown(part: DocumentPart, level: int) -> Iterator[str]:
    """Yield the blocks of a part of a document in Markdown."""
    match part:
        case Paragraph(words, strong):
            content = text_markdown(words)
            yield f"**{content}**" if strong and isinstance(words, str) and content else content
        case DefinitionList(pairs):
            found = [
                (term, said.items if isinstance(said, BulletList) else (said,)) for term, said in pairs if said != ""
            ]
            yield "\n".join(
                f"- {escape_markdown(term)}: {'; '.join(map(text_markdown, words))}" for term, words in found
            )
        case BulletList(items):
            yield "\n".join(f"- {text_markdown(one)}" for one in items)
        case SignatureLines(signers):
            yield _markdown_table(SIGNATURE_HEADS, [(role, name, "", "") for role, name in signers])
        case CaptionedFigure():
            yield escape_markdown(f"{part.caption} {describe_figure(part.figure)}")
        case PreformattedText(text):
            # longer than any run of backticks in the text, which would end the block
            fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
            yield f"{fence}\n{replace_hidden(text)}\n{fence}"
        case Chapter(title, parts):
            yield f"{'#' * min(level, 6)} {escape_markdown(title)}"
            for one in parts:
                yield from _part_markdown(one, level + 1)
        case DisplayTable():
            kept = part.without_empty_columns
            titles = [column.full_title or column.title for column in kept.columns]
            heading = part.full_title or part.title
            if heading:
                yield f"**{escape_markdown(heading)}**"
            yield _markdown_table(titles, [[full_cell_text(cell) for cell in row] for row in kept.rows])


def _markdown_table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in GitHub's Markdown."""
    return "\n".join([_markdown_row(titles), f"|{' --- |' * len(titles)}", *map(_markdown_row, rows)])


def _markdown_row(cells: Iterable[str]) -> str:
    """Return a row of a table in GitHub's Markdown."""
    return f"| {' | '.join(map(escape_markdown, cells))} |"
