"""The language of conditions on a record: one grammar for constraints and for combinations that cannot be.

rule      := either ("->" either)?              where the left holds, the right does too
either    := both ("or" both)*
both      := one (("and" | "&") one)*
one       := "not" one | "(" rule ")" | term
term      := sum sign sum ("|" sum)* | name ("is missing" | "is present")
sign      := "=" | "!=" | "<" | "<=" | ">" | ">="     several values, parted by "|", for "=" and "!=" alone
sum       := item ((" + " | " - ") item)*
item      := name | value | number " * " name

    "married = 'yes' -> age >= 15"
    "income = wage + rent + 0.5 * other"
    "not (relationship = Husband and sex = Female)"
    "age < 15 & marital_status != Never-married"

A level stands in quotes where it holds a sign or an operator word, a column of that kind in backticks, or in quotes where it begins a term. ``+``, ``-`` and
``*`` have blanks on both sides, so that ``hours-per-week`` is a name. Text from a recipe is compared, never evaluated.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

MOST_LETTERS = 2000
MOST_NESTED = 20
FORM = (
    '"married = \'yes\' -> age >= 15", with =, !=, <, <=, >, >=, and, or, not, ->, sums such as "income = wage + rent", '
    '"is missing" or "is present"'
)
SIGNS = ("=", "!=", "<", "<=", ">", ">=")
OPPOSITE = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}
"""The sign of a comparison whose sides have changed places."""
_OPERATORS = ("and", "or", "not", "is")
_PLAIN = r"(?!->)[^\s'\"`<>=!&|()]"
_TOKEN = re.compile(
    rf"""(?P<space>\s+)|(?P<quoted>'[^']*'|"[^"]*"|`[^`]*`)|(?P<sign>->|<=|>=|!=|==|[<>=&|()])|(?P<word>{_PLAIN}(?:{_PLAIN}|\([^\s'"`<>=!&|()]*\))*)"""
)
ConstraintSource = Literal["declared", "data"]


@dataclass(frozen=True, slots=True)
class Atom:
    """A name or a value as it is written; ``quote`` is the mark that it stands in, empty for none."""

    text: str
    quote: str = ""

    @property
    def is_value(self) -> bool:
        """Whether its quotes say that it is a value."""
        return self.quote in ("'", '"') and bool(self.quote)


@dataclass(frozen=True, slots=True)
class Item:
    """A part of a sum: an atom, times a coefficient. ``scaled`` says that one is written."""

    atom: Atom
    coefficient: float = 1.0
    scaled: bool = False


Sum = tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """A sum held against one other, or against several values."""

    left: Sum
    sign: str
    right: tuple[Sum, ...]
    text: str = field(compare=False)


@dataclass(frozen=True, slots=True)
class Presence:
    column: str
    present: bool
    text: str = field(compare=False)


@dataclass(frozen=True, slots=True)
class Not:
    """What holds where the inner one does not."""

    inner: Condition


@dataclass(frozen=True, slots=True)
class All:
    """What holds where every part does."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Any:
    """What holds where some part does."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Implies:
    """What holds where the first does not, or the second does."""

    given: Condition
    then: Condition


Condition = Comparison | Presence | Not | All | Any | Implies


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    start: int
    end: int


def parse_condition(text: object) -> Condition:
    """The condition that a text writes. Raises ValueError; the message shows the form."""
    if not isinstance(text, str) or not text.strip():
        raise ValueError(f"{text!r} is no condition: write {FORM}")
    if len(text) > MOST_LETTERS:
        raise ValueError(f"a condition has at most {MOST_LETTERS:,} letters: write several")
    reader = _Reader(text)
    found = reader.rule(0)
    if reader.here is not None:
        raise reader.wrong(f'nothing is said by "{text[reader.here.start :].strip()}"')
    return found


def terms_of(condition: Condition) -> Iterator[Comparison | Presence]:
    """Every comparison and every question for a value in it, in order."""
    if isinstance(condition, Comparison | Presence):
        yield condition
    elif isinstance(condition, Not):
        yield from terms_of(condition.inner)
    elif isinstance(condition, Implies):
        yield from terms_of(condition.given)
        yield from terms_of(condition.then)
    else:
        for part in condition.parts:
            yield from terms_of(part)


class _Reader:
    """Goes once through the tokens of a text."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self.tokens = [token for token in self._tokens() if token.kind != "space"]

    def _tokens(self) -> Iterator[_Token]:
        at = 0
        while at < len(self.text):
            found = _TOKEN.match(self.text, at)
            if found is None:
                if self.text[at] in "'\"`":
                    raise self.wrong("it has a quote that is not closed")
                raise self.wrong(f'"{self.text[at]}" means nothing there')
            yield _Token(str(found.lastgroup), found[0], at, found.end())
            at = found.end()

    def wrong(self, why: str) -> ValueError:
        return ValueError(f'"{self.text.strip()}" is no condition: {why}. Write conditions such as {FORM}')

    @property
    def here(self) -> _Token | None:
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    def taken(self, *texts: str) -> str:
        """The next token's text, gone past, where it is one of these and not quoted; else nothing."""
        if self.here is not None and self.here.kind != "quoted" and self.here.text in texts:
            self.at += 1
            return self.tokens[self.at - 1].text
        return ""

    def rule(self, depth: int) -> Condition:
        if depth > MOST_NESTED:
            raise self.wrong(f"it is nested deeper than {MOST_NESTED} times")
        given = self.either(depth)
        return Implies(given, self.either(depth)) if self.taken("->") else given

    def either(self, depth: int) -> Condition:
        parts = [self.both(depth)]
        while self.taken("or"):
            parts.append(self.both(depth))
        return parts[0] if len(parts) == 1 else Any(tuple(parts))

    def both(self, depth: int) -> Condition:
        parts = [self.one(depth)]
        while self.taken("and", "&"):
            parts.append(self.one(depth))
        return parts[0] if len(parts) == 1 else All(tuple(parts))

    def one(self, depth: int) -> Condition:
        if depth > MOST_NESTED:
            raise self.wrong(f"it is nested deeper than {MOST_NESTED} times")
        if self.taken("not"):
            return Not(self.one(depth + 1))
        if self.taken("("):
            inner = self.rule(depth + 1)
            if not self.taken(")"):
                raise self.wrong("a bracket is not closed")
            return inner
        return self.term()

    def term(self) -> Comparison | Presence:
        start = self.at
        left = self.sum()
        if self.taken("is"):
            state = self.here.text if self.here is not None else ""
            if state not in ("missing", "present") or len(left) > 1 or left[0].scaled:
                raise self.wrong('after "is" stands "missing" or "present", before it one column')
            self.at += 1
            return Presence(left[0].atom.text, state == "present", self._said(start))
        sign = self.taken(*SIGNS, "==")
        if not sign:
            raise self.wrong(f'"{self._said(start)}" says nothing of a variable')
        if sign == "==":
            raise self.wrong('"=" says that both are equal')
        right = [self.sum()]
        while self.taken("|"):
            right.append(self.sum())
        if len(right) > 1 and sign not in ("=", "!="):
            raise self.wrong(f'"{self._said(start)}" compares with several values: only = and != do')
        if self.here is not None and self.here.text in (*SIGNS, "=="):
            raise self.wrong('a comparison has two sides: join several by "and"')
        return Comparison(left, sign, tuple(right), self._said(start))

    def _said(self, start: int) -> str:
        first = self.tokens[min(start, len(self.tokens) - 1)].start
        return self.text[first : self.tokens[max(self.at - 1, start)].end] if self.tokens else ""

    def sum(self) -> Sum:
        coefficient = -1.0 if self.taken("-") else 1.0
        items = [self.item(coefficient)]
        while sign := self.taken("+", "-"):
            items.append(self.item(-1.0 if sign == "-" else 1.0))
        return tuple(items)

    def item(self, coefficient: float) -> Item:
        first = self.atom()
        if not self.taken("*"):
            return Item(first, coefficient)
        try:
            return Item(self.atom(), coefficient * _number(first), scaled=True)
        except ValueError:
            raise self.wrong(f'before "*" stands a number, not "{first.text}"') from None

    def atom(self) -> Atom:
        """A quoted text, or words that follow each other."""
        token = self.here
        if token is not None and token.kind == "quoted":
            self.at += 1
            return Atom(token.text[1:-1], token.text[0])
        last = None
        while (here := self.here) is not None and here.kind == "word" and here.text not in (*_OPERATORS, "+", "-", "*"):
            self.at, last = self.at + 1, here
        if token is None or last is None:
            raise self.wrong(f'a column or a value is missing {"before" if token else "after"} "{_beside(self)}"')
        return Atom(self.text[token.start : last.end])


def _beside(reader: _Reader) -> str:
    token = reader.here or (reader.tokens[-1] if reader.tokens else None)
    return token.text if token else ""


def _number(atom: Atom) -> float:
    """The number that an atom writes. Raises ValueError."""
    if atom.quote or not re.fullmatch(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?", atom.text):
        raise ValueError(atom.text)
    return float(atom.text)


def number_of(atom: Atom) -> float | None:
    """The number that an unquoted atom writes; None where it is none."""
    try:
        return _number(atom)
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class Constraint:
    """A rule that every record keeps to, by its ``name``, as a recipe's ``[constraints]`` says it.

    ``source`` is "declared" where it is known of the subject, "data" where it was found in the confidential records: then it is a
    fact about them, which nothing public says and no proof of privacy covers.
    """

    name: str
    text: str
    rule: Condition
    source: str = "declared"

    def to_value(self) -> str | dict[str, str]:
        """What a recipe writes after its name."""
        return self.text if self.source == "declared" else {"holds": self.text, "source": self.source}
