"""A document as a value: headings, paragraphs, terms, tables and lines to fill in, written as one HTML page or as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ..plots.figure import Figure, description
from ..plots.markup import Child, Markup, element, joined
from ..plots.svg import svg
from ..visible_text import replace_hidden
from .tables import Table, html, whole

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
POLICY = "default-src 'none'; style-src 'unsafe-inline'"
OPEN = "To be completed"
Words: TypeAlias = "str | Open"
Part: TypeAlias = "Paragraph | Terms | Items | Table | Signatures | Drawing | Verbatim | Chapter"
SIGNED = ("role", "name", "date", "signature")
_ACTIVE = re.compile(r"([\\`*\[\]<>#|~&$@{}]|(?<![^\W_])_|_(?![^\W_]))")
"""Signs that a parser acts upon; an underscore between letters or digits does nothing, nor does ``!`` where ``[`` is escaped."""
_FIRST = re.compile(r"^(?:(?=[-+=](?![\w.]))|(\d+)(?=[.)](?:\s|$)))")
"""What begins a list, or underlines the line above; a number such as -0.5 does neither."""
_LINKS = re.compile(r"(?i)(https?|ftp|mailto|www)(?=[:.])")


@dataclass(frozen=True, slots=True)
class Open:
    """What only a person can say: what is asked, and where the answer can be written so that it stands here next time."""

    asked: str
    where: str = ""

    @property
    def words(self) -> str:
        return f"{self.asked} ({self.where})" if self.where else self.asked


@dataclass(frozen=True, slots=True)
class Paragraph:
    words: Words
    strong: bool = False


@dataclass(frozen=True, slots=True)
class Items:
    items: Sequence[Words]


@dataclass(frozen=True, slots=True)
class Terms:
    """Terms and what there is to say of them, in words or several items; those without anything are left out."""

    pairs: Sequence[tuple[str, Words | Items]]


@dataclass(frozen=True, slots=True)
class Verbatim:
    """Text that is shown as it is written, such as a recipe."""

    text: str


@dataclass(frozen=True, slots=True)
class Signatures:
    """Lines to sign on: in which role, and by whom where that is known."""

    signers: Sequence[tuple[str, str]]


@dataclass(frozen=True, eq=False, slots=True)
class Drawing:
    """A figure, what stands below it, and the name that no other figure of the page has; in Markdown its words."""

    figure: Figure
    caption: str
    ident: str


def numbered(figure: Figure, number: int) -> Drawing:
    """A figure with its number, title and caption below it."""
    return Drawing(figure, f"Figure {number}. {figure.title}. {figure.caption}", f"figure-{number}")


@dataclass(frozen=True, slots=True)
class Chapter:
    """Parts under a heading; chapters in a chapter stand one level lower."""

    title: str
    parts: Sequence[Part]

    @property
    def ident(self) -> str:
        """What a list of contents links to."""
        return re.sub("[^a-z0-9]+", "-", self.title.lower()).strip("-") or "chapter"


@dataclass(frozen=True)
class Document:
    """A title, what marks the whole (``INTERNAL``), and the parts; with ``contents`` a list of its chapters.

    ``about`` is a sentence below the marking, ``kind`` what the document is, beside the title of its page.
    """

    title: str
    marking: str
    parts: Sequence[Part]
    about: str = ""
    kind: str = ""
    contents: bool = False

    def html(self) -> str:
        """One HTML page, which loads nothing."""
        marking = element("p", self.marking, class_="marking") if self.marking else ""
        head = (element("h1", self.title), marking, element("p", self.about) if self.about else "", self._contents())
        body = element("main", *head, [_html(part, 2, linked=self.contents) for part in self.parts])
        return html_page(f"{self.title}: {self.kind}" if self.kind else self.title, body)

    def _contents(self) -> Child:
        if not self.contents:
            return ""
        chapters = [part for part in self.parts if isinstance(part, Chapter)]
        links = [element("li", element("a", one.title, href=f"#{one.ident}")) for one in chapters]
        return element("nav", element("ul", links), aria_label="Contents")

    def markdown(self) -> str:
        """The same in Markdown (CommonMark, with the tables of GitHub's)."""
        head = [f"# {plain(self.title)}", f"**{plain(self.marking)}**" if self.marking else "", plain(self.about)]
        blocks = [*head, *(block for part in self.parts for block in _markdown(part, 2))]
        return "\n\n".join(block for block in blocks if block) + "\n"


def html_page(title: str, body: Markup) -> str:
    """A whole page of a body under a title: it runs no script and loads nothing."""
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=POLICY),
        element("meta", name="viewport", content="width=device-width"),
        element("title", title),
        element("style", STYLE),
    )
    return f"<!DOCTYPE html>\n{element('html', head, element('body', body), lang='en')}\n"


def definitions(pairs: Iterable[tuple[str, Child]]) -> Markup:
    """Terms and what there is to say of them; those without anything are left out."""
    return element(
        "dl", [joined([element("dt", term), element("dd", content)]) for term, content in pairs if content != ""]
    )


def signature_lines(signers: Iterable[tuple[str, str]]) -> Markup:
    """Lines to sign on, of pairs of a role and a name."""
    head = element("tr", [element("th", word, scope="col") for word in SIGNED])
    lines = [
        element("tr", element("th", role, scope="row"), element("td", name), element("td"), element("td"))
        for role, name in signers
    ]
    return element("table", element("thead", head), element("tbody", lines), class_="signatures")


def in_html(words: Words) -> Child:
    """Words on a page; what is open stands out."""
    return words if isinstance(words, str) else element("span", f"{OPEN}: {words.words}", class_="open")


def _html(part: Part, level: int, *, linked: bool = False) -> Markup:
    match part:
        case Paragraph(words, strong):
            content = in_html(words)
            return element("p", element("strong", content) if strong else content)
        case Terms(pairs):
            return definitions(
                (term, _html(said, level) if isinstance(said, Items) else in_html(said)) for term, said in pairs
            )
        case Items(items):
            return element("ul", [element("li", in_html(one)) for one in items])
        case Signatures(signers):
            return signature_lines(signers)
        case Drawing(figure, caption, ident):
            return element("figure", svg(figure, ident), element("figcaption", caption))
        case Verbatim(text):
            return element("pre", text)
        case Chapter(title, parts):
            heading = element(f"h{min(level, 6)}", title)
            inner = [_html(one, level + 1) for one in parts]
            return element("section", heading, inner, id=part.ident if linked else None)
        case Table():
            return element("div", html(part), class_="wide")


def plain(text: str) -> str:
    """Text as Markdown shows it as it is, in one line: no markup, no link, no character that hides or turns it."""
    line = " ".join(replace_hidden(text).split())
    escaped = _ACTIVE.sub(r"\\\1", line)
    unlinked = _LINKS.sub(lambda found: found[0][:-1] + "&#" + str(ord(found[0][-1])) + ";", escaped)
    return _FIRST.sub(r"\1\\", unlinked)


def in_markdown(words: Words) -> str:
    """Words in Markdown; what is open stands out."""
    return plain(words) if isinstance(words, str) else f"**{OPEN}:** {plain(words.words)}"


def _markdown(part: Part, level: int) -> Iterator[str]:
    match part:
        case Paragraph(words, strong):
            content = in_markdown(words)
            yield f"**{content}**" if strong and isinstance(words, str) and content else content
        case Terms(pairs):
            found = [(term, said.items if isinstance(said, Items) else (said,)) for term, said in pairs if said != ""]
            yield "\n".join(f"- {plain(term)}: {'; '.join(map(in_markdown, words))}" for term, words in found)
        case Items(items):
            yield "\n".join(f"- {in_markdown(one)}" for one in items)
        case Signatures(signers):
            yield _grid(SIGNED, [(role, name, "", "") for role, name in signers])
        case Drawing():
            yield plain(f"{part.caption} {description(part.figure)}")
        case Verbatim(text):
            fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
            yield f"{fence}\n{replace_hidden(text)}\n{fence}"
        case Chapter(title, parts):
            yield f"{'#' * min(level, 6)} {plain(title)}"
            for one in parts:
                yield from _markdown(one, level + 1)
        case Table():
            kept = part.filled
            titles = [column.full or column.title for column in kept.columns]
            heading = part.full or part.title
            if heading:
                yield f"**{plain(heading)}**"
            yield _grid(titles, [[whole(cell) for cell in row] for row in kept.rows])


def _grid(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join([_line(titles), f"|{' --- |' * len(titles)}", *map(_line, rows)])


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(map(plain, cells))} |"
