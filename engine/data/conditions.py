"""Language of conditions on a record: one grammar for constraints and for structural zeros (impossible combinations).

    rule      := either ("->" either)?              where the left holds, the right does too
    either    := both ("or" both)*
    both      := one (("and" | "&") one)*
    one       := "not" one | "(" rule ")" | term
    term      := sum sign sum ("|" sum)* | name ("is missing" | "is present")
    sign      := "=" | "!=" | "<" | "<=" | ">" | ">="     alternatives with "|" for "=" and "!=" alone
    sum       := item ((" + " | " - ") item)*
    item      := name | value | number " * " name

Examples are "married = 'yes' -> age >= 15", "income = wage + rent + 0.5 * other" and "not (relationship = Husband and
sex = Female)". A level is in quotes where it contains a sign or an operator word, a column of that kind in backticks,
or in quotes where it begins a term. Text from a recipe is compared, never evaluated.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

LONGEST_CONDITION = 2000
DEEPEST_NESTING = 20
CONDITION_FORM = (
    '"married = \'yes\' -> age >= 15", with =, !=, <, <=, >, >=, and, or, not, ->, sums such as "income = wage + rent", '
    '"is missing" or "is present"'
)
SIGNS = ("=", "!=", "<", "<=", ">", ">=")
MIRRORED_SIGN = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}
"""The sign of a comparison whose sides have changed places."""
_OPERATORS = ("and", "or", "not", "is")
_PLAIN = r"(?!->)[^\s'\"`<>=!&|()]"
_TOKEN = re.compile(
    rf"""(?P<space>\s+)|(?P<quoted>'[^']*'|"[^"]*"|`[^`]*`)|(?P<sign>->|<=|>=|!=|==|[<>=&|()])|(?P<word>{_PLAIN}(?:{_PLAIN}|\([^\s'"`<>=!&|()]*\))*)"""
)
ConstraintSource = Literal["declared", "data"]


@dataclass(frozen=True, slots=True)
class NameOrValue:
    """A name or a value, as written.

    text: the text without its quotes
    quote: the quotation mark around it, empty without one
    """

    text: str
    quote: str = ""

    @property
    def is_value(self) -> bool:
        """Return whether its quotes mark it as a value."""
        return self.quote in ("'", '"') and bool(self.quote)


@dataclass(frozen=True, slots=True)
class SumItem:
    """A part of a sum: a name or a value, times a coefficient.

    atom: the name or the value
    coefficient: its factor
    has_coefficient: whether a factor is written
    """

    atom: NameOrValue
    coefficient: float = 1.0
    has_coefficient: bool = False


SumItems = tuple[SumItem, ...]


@dataclass(frozen=True, slots=True)
class SumComparison:
    """A sum compared with another one, or with several values.

    left: the sum
    sign: sign of the comparison
    right: the other sum, or several values
    text: the comparison, as written
    """

    left: SumItems
    sign: str
    right: tuple[SumItems, ...]
    text: str = field(compare=False)


@dataclass(frozen=True, slots=True)
class PresenceTest:
    """A test of whether a column has a value.

    column: name of the column
    is_present: whether a value must be present, or must be missing
    text: the test, as written
    """

    column: str
    is_present: bool
    text: str = field(compare=False)


@dataclass(frozen=True, slots=True)
class NegatedCondition:
    """A condition that holds where the inner one does not."""

    inner: Condition


@dataclass(frozen=True, slots=True)
class ConditionConjunction:
    """A condition that holds where every part does."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class ConditionDisjunction:
    """A condition that holds where some part does."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class ConditionImplication:
    """A condition that holds where the premise does not, or the conclusion does.

    premise: the condition before the arrow
    conclusion: the condition after it
    """

    premise: Condition
    conclusion: Condition


Condition = (
    SumComparison | PresenceTest | NegatedCondition | ConditionConjunction | ConditionDisjunction | ConditionImplication
)


@dataclass(frozen=True, slots=True)
class _ConditionToken:
    """One token of a condition's text.

    kind: name of its group in the pattern
    text: the token, as written
    start, end: its place in the text
    """

    kind: str
    text: str
    start: int
    end: int


def parse_condition(text: object) -> Condition:
    """Return the parsed condition of a text. Raises ValueError; the message shows the form."""
    if not isinstance(text, str) or not text.strip():
        raise ValueError(f"{text!r} is no condition: write {CONDITION_FORM}")
    if len(text) > LONGEST_CONDITION:
        raise ValueError(f"a condition has at most {LONGEST_CONDITION:,} letters: write several")
    reader = _ConditionParser(text)
    found = reader.parse_rule(0)
    if reader.next_token is not None:
        raise reader.make_error(f'nothing is said by "{text[reader.next_token.start :].strip()}"')
    return found


def list_terms(condition: Condition) -> Iterator[SumComparison | PresenceTest]:
    """Yield every comparison and every presence test of a condition, in order."""
    if isinstance(condition, SumComparison | PresenceTest):
        yield condition
    elif isinstance(condition, NegatedCondition):
        yield from list_terms(condition.inner)
    elif isinstance(condition, ConditionImplication):
        yield from list_terms(condition.premise)
        yield from list_terms(condition.conclusion)
    else:
        for part in condition.parts:
            yield from list_terms(part)


class _ConditionParser:
    """Recursive-descent parser of the tokens of a text, in one pass."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self.tokens = [token for token in self._split_tokens() if token.kind != "space"]

    def _split_tokens(self) -> Iterator[_ConditionToken]:
        """Yield the tokens of the text. Raises ValueError where a character begins none."""
        at = 0
        while at < len(self.text):
            found = _TOKEN.match(self.text, at)
            if found is None:
                if self.text[at] in "'\"`":
                    raise self.make_error("it has a quote that is not closed")
                raise self.make_error(f'"{self.text[at]}" means nothing there')
            yield _ConditionToken(str(found.lastgroup), found[0], at, found.end())
            at = found.end()

    def make_error(self, why: str) -> ValueError:
        return ValueError(f'"{self.text.strip()}" is no condition: {why}. Write conditions such as {CONDITION_FORM}')

    @property
    def next_token(self) -> _ConditionToken | None:
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    def take_token(self, *texts: str) -> str:
        """Consume the next token if it is one of these texts and unquoted; return its text, else an empty one."""
        if self.next_token is not None and self.next_token.kind != "quoted" and self.next_token.text in texts:
            self.at += 1
            return self.tokens[self.at - 1].text
        return ""

    def parse_rule(self, depth: int) -> Condition:
        """Parse an implication, or a condition without an arrow."""
        if depth > DEEPEST_NESTING:
            raise self.make_error(f"it is nested deeper than {DEEPEST_NESTING} times")
        given = self.parse_disjunction(depth)
        return ConditionImplication(given, self.parse_disjunction(depth)) if self.take_token("->") else given

    def parse_disjunction(self, depth: int) -> Condition:
        """Parse conditions joined by "or"."""
        parts = [self.parse_conjunction(depth)]
        while self.take_token("or"):
            parts.append(self.parse_conjunction(depth))
        return parts[0] if len(parts) == 1 else ConditionDisjunction(tuple(parts))

    def parse_conjunction(self, depth: int) -> Condition:
        """Parse conditions joined by "and" or "&"."""
        parts = [self.parse_negation(depth)]
        while self.take_token("and", "&"):
            parts.append(self.parse_negation(depth))
        return parts[0] if len(parts) == 1 else ConditionConjunction(tuple(parts))

    def parse_negation(self, depth: int) -> Condition:
        # Checked here too: a chain of "not" nests without any rule.
        """Parse a negation, a rule in brackets, or a comparison."""
        if depth > DEEPEST_NESTING:
            raise self.make_error(f"it is nested deeper than {DEEPEST_NESTING} times")
        if self.take_token("not"):
            return NegatedCondition(self.parse_negation(depth + 1))
        if self.take_token("("):
            inner = self.parse_rule(depth + 1)
            if not self.take_token(")"):
                raise self.make_error("a bracket is not closed")
            return inner
        return self.parse_comparison()

    def parse_comparison(self) -> SumComparison | PresenceTest:
        """Parse a comparison or a presence test."""
        start = self.at
        left = self.parse_sum()
        if self.take_token("is"):
            state = self.next_token.text if self.next_token is not None else ""
            if state not in ("missing", "present") or len(left) > 1 or left[0].has_coefficient:
                raise self.make_error('after "is" stands "missing" or "present", before it one column')
            self.at += 1
            return PresenceTest(left[0].atom.text, state == "present", self._source_text(start))
        sign = self.take_token(*SIGNS, "==")
        if not sign:
            raise self.make_error(f'"{self._source_text(start)}" says nothing of a variable')
        # Tokenised only for this message.
        if sign == "==":
            raise self.make_error('"=" says that both are equal')
        right = [self.parse_sum()]
        while self.take_token("|"):
            right.append(self.parse_sum())
        if len(right) > 1 and sign not in ("=", "!="):
            raise self.make_error(f'"{self._source_text(start)}" compares with several values: only = and != do')
        if self.next_token is not None and self.next_token.text in (*SIGNS, "=="):
            raise self.make_error('a comparison has two sides: join several by "and"')
        return SumComparison(left, sign, tuple(right), self._source_text(start))

    def _source_text(self, start: int) -> str:
        first = self.tokens[min(start, len(self.tokens) - 1)].start
        return self.text[first : self.tokens[max(self.at - 1, start)].end] if self.tokens else ""

    def parse_sum(self) -> SumItems:
        """Parse items joined by "+" and "-"."""
        coefficient = -1.0 if self.take_token("-") else 1.0
        items = [self.parse_item(coefficient)]
        while sign := self.take_token("+", "-"):
            items.append(self.parse_item(-1.0 if sign == "-" else 1.0))
        return tuple(items)

    def parse_item(self, coefficient: float) -> SumItem:
        """Parse a name or a value, with a factor where it has one."""
        first = self.parse_atom()
        if not self.take_token("*"):
            return SumItem(first, coefficient)
        try:
            return SumItem(self.parse_atom(), coefficient * _parse_number(first), has_coefficient=True)
        except ValueError:
            raise self.make_error(f'before "*" stands a number, not "{first.text}"') from None

    def parse_atom(self) -> NameOrValue:
        """Parse a quoted text, or consecutive words."""
        token = self.next_token
        if token is not None and token.kind == "quoted":
            self.at += 1
            return NameOrValue(token.text[1:-1], token.text[0])
        last = None
        while (
            (here := self.next_token) is not None
            and here.kind == "word"
            and here.text not in (*_OPERATORS, "+", "-", "*")
        ):
            self.at, last = self.at + 1, here
        if token is None or last is None:
            raise self.make_error(
                f'a column or a value is missing {"before" if token else "after"} "{_neighbouring_text(self)}"'
            )
        # Names and levels may contain blanks, so consecutive words are one name as written.
        return NameOrValue(self.text[token.start : last.end])


def _neighbouring_text(reader: _ConditionParser) -> str:
    token = reader.next_token or (reader.tokens[-1] if reader.tokens else None)
    return token.text if token else ""


def _parse_number(atom: NameOrValue) -> float:
    """Return the number that an unquoted atom denotes. Raises ValueError."""
    if atom.quote or not re.fullmatch(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?", atom.text):
        raise ValueError(atom.text)
    return float(atom.text)


def number_or_none(atom: NameOrValue) -> float | None:
    """Return the number that an unquoted atom denotes; None if it is not a number."""
    try:
        return _parse_number(atom)
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class RecordConstraint:
    """Rule that every record satisfies, as a recipe's ``[constraints]`` states it.

    name: name of the rule
    text: the rule, as written
    rule: the parsed condition
    unit_terms: what it says of all records of a unit, such as count(relation = "head"); empty for a rule of records
    source: "declared" where it is known from the subject, "data" where it was found in the confidential records: it is
        then a fact about them, which nothing public states and no privacy proof covers
    """

    name: str
    text: str
    rule: Condition
    source: str = "declared"
    unit_terms: tuple[str, ...] = ()

    def to_value(self) -> str | dict[str, str]:
        """Return the value of the rule in a recipe's table."""
        return self.text if self.source == "declared" else {"holds": self.text, "source": self.source}
