"""The manual: its pages, and the sections of each.

A page is a Markdown file of this folder, named by its topic. Its first paragraph says what it is about. Blocks between
``<!-- generated: NAME -->`` and ``<!-- end of generated -->`` are written by ``python -m sfumato.tui.cli.manual_blocks --write``.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sfumato.engine.errors import BadInput, near_miss_hint

TOPICS = (
    "tutorial", "recipe", "methods", "commands", "app", "plain", "release", "running", "operations", "studies", "python", "speed",
)  # fmt: skip
"""Every page for users, in the order in which a new reader meets them."""
DEVELOPER_TOPICS = (
    "developers_methods", "developers_packages", "developers_tests", "developers_versions", "developers_scale", "developers_words",
)  # fmt: skip
"""Pages for those who change Sfumato: opened by their names, in no list for users and in no search."""
PAGES = (*TOPICS, *DEVELOPER_TOPICS)

_HEADING = re.compile(r"(#{1,4}) (.+)")
_MARKS = re.compile(r"[`*\[\]]")
_TERM = re.compile(r"^ *- ((?:`[^`]+`(?:, | and )?)+)", re.MULTILINE)


@dataclass(frozen=True)
class Section:
    """A heading of a page and the Markdown below it, up to the next heading. ``place`` counts the page's sections from 0."""

    page: str
    place: int
    level: int
    heading: str
    body: str

    @property
    def name(self) -> str:
        """What a reader types to open it: the key before the colon, as in ``threshold: limits``, else the heading in small letters."""
        key = self.heading.partition(":")[0] if self.heading[0].islower() else self.heading
        return _plain(key).removeprefix("the ")

    @property
    def title(self) -> str:
        return _MARKS.sub("", self.heading)

    @property
    def terms(self) -> frozenset[str]:
        """The names that its lists define: ``- `known`: variables that the intruder knows``."""
        return frozenset(_plain(term) for found in _TERM.findall(self.body) for term in re.findall(r"`([^`]+)`", found))

    @property
    def path(self) -> str:
        """The words after ``sfumato help`` that open it and nothing else."""
        return f"{self.page} {self.name}" if self.level > 1 else self.page

    def item(self, term: str) -> str:
        """The list item that defines a term."""
        items = re.split(r"(?m)^(?= *- )|\n\n", self.body)
        return next(one for one in items if (found := _TERM.match(one)) and f"`{term}`" in found[1].lower()).rstrip()


@dataclass(frozen=True)
class Entry:
    """A page, or a section of it with the sections below, or one ``term`` of a list in it.

    ``also`` has the paths of other sections of that name.
    """

    page: str
    section: Section | None = None
    term: str = ""
    also: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        if self.section is None:
            return page_text(self.page)
        if self.term:
            return f"## {self.section.title}\n\n{self.section.item(self.term)}"
        return "\n\n".join(f"{'#' * one.level} {one.heading}\n\n{one.body}".rstrip() for one in _below(self.section))


def _plain(text: str) -> str:
    return " ".join(_MARKS.sub("", text).lower().split())


@functools.cache
def page_text(topic: str) -> str:
    return (Path(__file__).parent / f"{topic}.md").read_text("utf-8")


@functools.cache
def sections(topic: str) -> tuple[Section, ...]:
    """The sections of a page, the first with its title."""
    found: list[tuple[int, str, list[str]]] = []
    fenced = False
    for line in page_text(topic).splitlines():
        fenced ^= line.startswith("```")
        if not fenced and (heading := _HEADING.fullmatch(line)):
            found.append((len(heading[1]), heading[2], []))
        elif found and not line.startswith("<!--"):
            found[-1][2].append(line)
    return tuple(
        Section(topic, place, level, heading, "\n".join(lines).strip())
        for place, (level, heading, lines) in enumerate(found)
    )


def all_sections() -> Iterator[Section]:
    for topic in TOPICS:
        yield from sections(topic)


def summary(topic: str) -> str:
    """The first paragraph of a page in one line: what the page is about."""
    return " ".join(sections(topic)[0].body.partition("\n\n")[0].split())


def _below(section: Section) -> Iterator[Section]:
    yield section
    for other in sections(section.page)[section.place + 1 :]:
        if other.level <= section.level:
            return
        yield other


def look_up(topic: str) -> Entry:
    """The page, section or term that a reader names, in this order. Raises BadInput with the nearest name.

    A topic is a page, a command, the key of a method or of its output or parameter, a heading, or a term of a list. A page
    before it narrows the search: ``app runs``, ``recipe holdout``.
    """
    wanted = _plain(topic).removeprefix("the ")
    page, _, rest = wanted.partition(" ")
    rest = rest.removeprefix("the ")
    if page in PAGES:
        found = _entries(rest, sections(page)) if rest else [Entry(page), *_entries(wanted, tuple(all_sections()))]
    else:
        found = []
    found = found or _entries(wanted, tuple(all_sections()))
    if not found:
        raise BadInput("topic", f'the manual has no "{topic}"{_near(wanted)}; sfumato help --find WORDS searches it')
    first = found[0]
    also = dict.fromkeys(
        one.section.path
        for one in found[1:]
        if one.section and one.section.level > 1 and one.section != first.section and not one.term
    )
    return replace(first, also=tuple(also))


def _near(wanted: str) -> str:
    named = [one for page in TOPICS for section in sections(page) for one in (section.name, *sorted(section.terms))]
    return near_miss_hint(wanted, [*PAGES, *named]) or near_miss_hint(
        wanted, [name.rpartition(".")[2] for name in named]
    )


def _entries(name: str, among: Sequence[Section]) -> list[Entry]:
    """The sections that are called ``name``, commands first, then those that have it as a term."""
    called = [one for one in among if one.name == f"sfumato {name}"] + [one for one in among if one.name == name]
    if not called and len(short := [one for one in among if one.name.partition(".")[2] == name]) == 1:
        called = short
    outer, _, last = name.rpartition(".")
    owner = [one for one in among if outer and outer in (one.name, one.name.partition(".")[2])]
    terms = [Entry(one.page, one, last) for one in owner if last in one.terms]
    terms += [Entry(one.page, one, name) for one in among if name in one.terms]
    return [*(Entry(one.page, one) for one in called), *terms]
