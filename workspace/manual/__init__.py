"""Pages of the manual, and the sections of each."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sfumato.engine.errors import BadInput, near_miss_hint

TOPICS = (
    "tutorial", "units", "tables", "recipe", "methods", "commands", "app", "plain", "release", "running", "operations", "studies", "python", "speed",
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
class ManualSection:
    """Heading of a page and the Markdown below it, up to the next heading.

    ``position`` counts the page's sections from 0.
    """

    page: str
    position: int
    level: int
    heading: str
    body: str

    @property
    def name(self) -> str:
        """Return the name by which a reader opens the section, in small letters.

        It is the key before a colon, as in ``threshold: limits``, else the heading.
        """
        key = self.heading.partition(":")[0] if self.heading[0].islower() else self.heading
        return _plain_words(key).removeprefix("the ")

    @property
    def title(self) -> str:
        """Return the heading without Markdown."""
        return _MARKS.sub("", self.heading)

    @property
    def terms(self) -> frozenset[str]:
        """Return the terms that its lists define: ``- `known`: variables that the intruder knows``."""
        return frozenset(
            _plain_words(term) for found in _TERM.findall(self.body) for term in re.findall(r"`([^`]+)`", found)
        )

    @property
    def help_path(self) -> str:
        """Return the words after ``sfumato help`` that open this section and no other."""
        return f"{self.page} {self.name}" if self.level > 1 else self.page

    def term_item(self, term: str) -> str:
        """Return the list item that defines a term."""
        items = re.split(r"(?m)^(?= *- )|\n\n", self.body)
        return next(one for one in items if (found := _TERM.match(one)) and f"`{term}`" in found[1].lower()).rstrip()


@dataclass(frozen=True)
class ManualEntry:
    """Page, or section of it with its subsections, or one ``term`` of a list in it.

    ``other_paths`` are the paths of other sections with that name.
    """

    page: str
    section: ManualSection | None = None
    term: str = ""
    other_paths: tuple[str, ...] = ()

    @property
    def markdown(self) -> str:
        """Return the text of the entry."""
        if self.section is None:
            return page_text(self.page)
        if self.term:
            return f"## {self.section.title}\n\n{self.section.term_item(self.term)}"
        return "\n\n".join(
            f"{'#' * one.level} {one.heading}\n\n{one.body}".rstrip() for one in _section_with_subsections(self.section)
        )


def _plain_words(text: str) -> str:
    """Return a text in small letters, without Markdown and repeated blanks."""
    return " ".join(_MARKS.sub("", text).lower().split())


@functools.cache
def page_text(topic: str) -> str:
    return (Path(__file__).parent / f"{topic}.md").read_text("utf-8")


@functools.cache
def page_sections(topic: str) -> tuple[ManualSection, ...]:
    """Return the sections of a page, the first with its title."""
    found: list[tuple[int, str, list[str]]] = []
    fenced = False
    for line in page_text(topic).splitlines():
        # In a block of code, a line that begins with # is no heading.
        fenced ^= line.startswith("```")
        if not fenced and (heading := _HEADING.fullmatch(line)):
            found.append((len(heading[1]), heading[2], []))
        elif found and not line.startswith("<!--"):
            found[-1][2].append(line)
    return tuple(
        ManualSection(topic, place, level, heading, "\n".join(lines).strip())
        for place, (level, heading, lines) in enumerate(found)
    )


def all_sections() -> Iterator[ManualSection]:
    for topic in TOPICS:
        yield from page_sections(topic)


def page_summary(topic: str) -> str:
    """Return the first paragraph of a page on one line."""
    return " ".join(page_sections(topic)[0].body.partition("\n\n")[0].split())


def _section_with_subsections(section: ManualSection) -> Iterator[ManualSection]:
    """Yield a section and the sections below it."""
    yield section
    for other in page_sections(section.page)[section.position + 1 :]:
        if other.level <= section.level:
            return
        yield other


def find_entry(topic: str) -> ManualEntry:
    """Return the page, section or term that a reader names, in this order. Raises BadInput with the nearest name.

    A topic is a page, a command, the key of a method or of its output or parameter, a heading, or a term of a list. A
    page before it narrows the search: ``app runs``, ``recipe holdout``.
    """
    wanted = _plain_words(topic).removeprefix("the ")
    page, _, rest = wanted.partition(" ")
    rest = rest.removeprefix("the ")
    if page in PAGES:
        found = (
            _matching_entries(rest, page_sections(page))
            if rest
            else [ManualEntry(page), *_matching_entries(wanted, tuple(all_sections()))]
        )
    else:
        found = []
    found = found or _matching_entries(wanted, tuple(all_sections()))
    if not found:
        raise BadInput(
            "topic", f'the manual has no "{topic}"{_nearest_name_hint(wanted)}; sfumato help --find WORDS searches it'
        )
    first = found[0]
    also = dict.fromkeys(
        one.section.help_path
        for one in found[1:]
        if one.section and one.section.level > 1 and one.section != first.section and not one.term
    )
    return replace(first, other_paths=tuple(also))


def _nearest_name_hint(wanted: str) -> str:
    """Return a hint to the nearest name in the manual; empty where none is near."""
    named = [
        one for page in TOPICS for section in page_sections(page) for one in (section.name, *sorted(section.terms))
    ]
    # Methods are typed without their family too.
    return near_miss_hint(wanted, [*PAGES, *named]) or near_miss_hint(
        wanted, [name.rpartition(".")[2] for name in named]
    )


def _matching_entries(name: str, among: Sequence[ManualSection]) -> list[ManualEntry]:
    """Return the sections of this name, commands first, then those that define it as a term."""
    called = [one for one in among if one.name == f"sfumato {name}"] + [one for one in among if one.name == name]
    # A method may be named without its family, where only one method has the name.
    if not called and len(short := [one for one in among if one.name.partition(".")[2] == name]) == 1:
        called = short
    outer, _, last = name.rpartition(".")
    owner = [one for one in among if outer and outer in (one.name, one.name.partition(".")[2])]
    terms = [ManualEntry(one.page, one, last) for one in owner if last in one.terms]
    terms += [ManualEntry(one.page, one, name) for one in among if name in one.terms]
    return [*(ManualEntry(one.page, one) for one in called), *terms]
