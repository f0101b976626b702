"""The manual: its pages, the sections of each, and a search by words.

A page is a Markdown file of this folder, named by its topic. Its first paragraph says what it is about. Blocks between
``<!-- generated: NAME -->`` and ``<!-- end of generated -->`` are written by ``python -m sfumato.tui.manual_blocks --write``.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sfumato.engine.errors import BadInput, suggestion

TOPICS = (
    "tutorial", "recipe", "methods", "commands", "app", "plain", "release", "running", "operations", "studies", "python", "speed",
)  # fmt: skip
"""Every page, in the order in which a new reader meets them."""
MOST_HITS = 8

_HEADING = re.compile(r"(#{1,4}) (.+)")
_MARKS = re.compile(r"[`*\[\]]")
_TERM = re.compile(r"^ *- ((?:`[^`]+`(?:, | and )?)+)", re.MULTILINE)
_WORD = re.compile(r"[\w.-]+")
_STOP = re.findall(
    r"\w+",
    "a about after all an and are as at be before by can do does for from get has have how i if in into is it its me my no of on or our"
    " the their them there this to was what when where which who why will with you your",
)


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


@dataclass(frozen=True)
class Hit:
    """A section that holds all the words of a search, and its lines that hold most of them."""

    section: Section
    lines: tuple[str, ...]


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
    if page in TOPICS:
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
    return suggestion(wanted, [*TOPICS, *named]) or suggestion(wanted, [name.rpartition(".")[2] for name in named])


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


def _stem(word: str) -> str:
    """The part of a word that its other forms share: ``waive``, ``waives`` and ``waived`` begin with ``waiv``."""
    for end in ("ings", "ing", "ies", "ed", "es", "s", "e", "y"):
        if word.endswith(end) and len(word) - len(end) >= 3:
            return word[: -len(end)]
    return word


def _patterns(words: str) -> list[tuple[str, re.Pattern[str]]]:
    """A pattern for each word that says something."""
    asked = re.sub(r"^what (?:does|do|is|are) (.*?)(?: mean)?\??$", r"\1", " ".join(words.lower().split()))
    typed = [word.strip(".-?") for word in _WORD.findall(asked)]
    telling = [word for word in dict.fromkeys(typed) if word and word not in _STOP] or [word for word in typed if word]
    return [(word, re.compile(rf"(?<![a-z0-9]){re.escape(_stem(word))}", re.IGNORECASE)) for word in telling]


def find(words: str) -> list[Hit]:
    """The sections that hold all the words, in any form and order, best first: words in a heading count most. Raises BadInput."""
    patterns = _patterns(words)
    if not patterns:
        raise BadInput("--find", "needs a word to look for, such as: sfumato help --find hold-out")
    scored = [(score, one) for one in all_sections() if (score := _score(one, patterns))]
    if not scored:
        nowhere = [word for word, pattern in patterns if not any(pattern.search(page_text(page)) for page in TOPICS)]
        why = f'"{nowhere[0]}" is on no page' if nowhere else "no section holds all of these words"
        raise BadInput("--find", f"{why}; try fewer or other words, or sfumato help for the pages")
    scored.sort(key=lambda found: (-found[0], TOPICS.index(found[1].page), found[1].place))
    return [Hit(one, _best_lines(one, patterns)) for _, one in scored[:MOST_HITS]]


def _score(section: Section, patterns: Sequence[tuple[str, re.Pattern[str]]]) -> float:
    """How well a section fits; 0 where it lacks a word."""
    heading, body = f"{sections(section.page)[0].title} {section.title}", section.body
    score = 0.0
    for word, pattern in patterns:
        in_heading, in_body = bool(pattern.search(section.title)), len(pattern.findall(body))
        if not in_body and not pattern.search(heading):
            return 0.0
        score += 10 * in_heading + min(in_body, 4) + 600 * in_body / (len(body) + 400)
        score += min(len(re.findall(rf"(?<![a-z0-9]){re.escape(word)}(?![a-z0-9])", body, re.IGNORECASE)), 4)
    whole = all(pattern.search(section.title) for _, pattern in patterns)
    near = any(all(pattern.search(part) for _, pattern in patterns) for part in re.split(r"\n\s*\n|\n- ", body))
    words = {word for word, _ in patterns}
    defined = any(set(re.split(r"[_. -]", term)) == words for term in section.terms)
    named = any(set(part.lower().split()) == words for part in section.title.split(":"))
    return score + 20 * whole + 25 * defined + 6 * near + 10 * named


def _best_lines(section: Section, patterns: Sequence[tuple[str, re.Pattern[str]]]) -> tuple[str, ...]:
    """The two parts of a section that hold the most words, in its order."""
    text = re.sub(r"^(?:#.*|!\[.*|\|[-| :]+\||```.*)$", "", section.body, flags=re.MULTILINE)
    parts = [" ".join(part.split()).removeprefix("- ") for part in re.split(r"\n\s*\n|\n *- |(?<=[.;])\s", f"\n{text}")]
    counted = [(sum(bool(pattern.search(part)) for _, pattern in patterns), place) for place, part in enumerate(parts)]
    best = sorted(sorted(counted, key=lambda one: (-one[0], one[1]))[:2], key=lambda one: one[1])
    return tuple(parts[place] for number, place in best if number)
