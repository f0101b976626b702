"""Terms of the earlier records of a unit, by which a synthesis step predicts the next record.

    term := ("first" | "least" | "largest" | "mean") "(" column ")"
          | "previous(" column ["," lag] ")"
          | "count(" condition ")"
          | "size - place"

``first(age)`` is the value of the unit's first record, ``previous(age, 2)`` that of the record before the last one;
``least``, ``largest`` and ``mean`` are over all earlier records, and ``count(relation = "child")`` is the number of
those that satisfy a condition. In a rule they are over all records of the unit, and ``least(age, relation = "head")`` is
over those that satisfy a condition. ``size`` is the number of records of the unit, ``place`` that of the record within it, and
``size - place`` the number of records that follow.

Where a unit has no such record, a variable with levels has a level of its own. A number lies just below all others: a
tree can split it off, and in a regression the levels of ``place`` take up the difference. A count is 0.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ..data.conditions import Condition, parse_condition
from ..data.schema import Kind, Role, Schema, Variable
from ..errors import BadInput
from ..wording import count_noun
from .binding import bound_terms, columns_of_term

SIZE, PLACE = "size", "place"
OF_NUMBERS = ("least", "largest", "mean")
FUNCTIONS = ("first", "previous", *OF_NUMBERS, "count")
FOLLOWING = "size - place"
MOST_PLACES_BACK = 50
_CALL = re.compile(rf"(?<![\w`])(?P<function>{'|'.join(FUNCTIONS)})\(")
_SIZE = re.compile(rf"(?<![\w`'\"]){SIZE}(?![\w`'\"])")
_LAGGED = re.compile(r"(?P<column>.+?)\s*,\s*(?P<lag>\d+)")


@dataclass(frozen=True, slots=True)
class UnitTerm:
    """Term of the earlier records of a unit.

    text: the term as written, which is the name of its column
    function: one of ``FUNCTIONS``, or ``FOLLOWING``
    column: the variable; empty for a count and for the records that follow
    lag: number of records before, of ``previous``
    condition: what the records satisfy that it is over; None for all
    """

    text: str
    function: str
    column: str = ""
    lag: int = 1
    condition: Condition | None = None

    def columns(self, schema: Schema) -> list[str]:
        """Return the columns of the table that it reads."""
        found = [self.column] if self.column else []
        if self.condition is not None:
            for bound in bound_terms(self.condition, schema, self.text):
                found += columns_of_term(bound)
        return found

    def declare(self, schema: Schema) -> Variable:
        """Return the declaration of its column, in a table of this schema."""
        if not self.column:
            return Variable(self.text, Kind.COUNT)
        kind = schema[self.column].kind
        if kind.has_levels:
            return Variable(self.text, Kind.ORDINAL if kind is Kind.ORDINAL else Kind.CATEGORICAL)
        return Variable(self.text, kind if kind is Kind.DATE else Kind.CONTINUOUS)


def quote_unit_terms(text: object, schema: Schema, place: str) -> tuple[object, tuple[str, ...]]:
    """Return the text of a rule with what it says of whole units as quoted columns, and these.

    Raises BadInput at ``place``.
    """
    if not isinstance(text, str):
        return text, ()
    found = [] if schema.unit is None else [call for call in dict.fromkeys(_calls(text)) if call not in schema]
    for call in found:
        if _parse_unit_term(call, schema, place, in_rule=True).function == "previous":
            raise BadInput(
                place, f"{call}: a rule of a unit is of all its records; use first, least, largest, mean or count"
            )
        text = text.replace(call, f"`{call}`")
    sizes = [SIZE] if schema.unit is not None and SIZE not in schema and _SIZE.search(text) else []
    return text, (*found, *sizes)


def declare_for_rule(terms: Sequence[str], schema: Schema, place: str) -> Schema:
    """Return the schema with a variable for each of the ``unit_terms`` of a constraint."""
    found = []
    for text in terms:
        if text == SIZE:
            found.append(implied_variables()[0])
            continue
        term = _parse_unit_term(text, schema, place, in_rule=True)
        declared = term.declare(schema)
        if term.function in ("first", "least", "largest"):
            declared = replace(schema[term.column], name=text, role=Role.OTHER, level="")
        found.append(declared)
    return replace(schema, variables=(*schema.variables, *found)) if found else schema


def parse_rule_terms(terms: Sequence[str], schema: Schema) -> list[UnitTerm]:
    """Return the parsed ``unit_terms`` of a constraint, without ``size``."""
    return [_parse_unit_term(text, schema, text, in_rule=True) for text in terms if text != SIZE]


def find_unit_terms(value: object, schema: Schema, place: str) -> Iterator[UnitTerm]:
    """Yield the distinct terms that the texts of a step's table contain, at any depth. Raises BadInput at ``place``."""
    found = [text for text in _texts(value) if text not in schema]
    if any(FOLLOWING in text for text in found) and FOLLOWING not in schema:
        yield UnitTerm(FOLLOWING, FOLLOWING)
    texts = dict.fromkeys(call for text in found for call in _calls(text))
    for text in texts:
        if text not in schema:
            yield _parse_unit_term(text, schema, place)


def _texts(value: object) -> Iterator[str]:
    """Yield every text of a table of a recipe, keys included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from (*_texts(key), *_texts(item))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)


def _calls(text: str) -> Iterator[str]:
    """Yield the outermost calls of a unit function in a text, each up to its closing bracket."""
    end = 0
    for found in _CALL.finditer(text):
        if found.start() < end:
            continue
        depth, quote = 0, ""
        for at in range(found.end() - 1, len(text)):
            letter = text[at]
            if quote:
                quote = "" if letter == quote else quote
            elif letter in "'\"`":
                quote = letter
            else:
                depth += (letter == "(") - (letter == ")")
            if not depth:
                end = at + 1
                yield text[found.start() : end]
                break


def _parse_unit_term(text: str, schema: Schema, place: str, *, in_rule: bool = False) -> UnitTerm:
    """Return the parsed term, of a rule of whole units or of a predictor. Raises BadInput at ``place``."""
    call = _CALL.match(text)
    assert call is not None
    function, inside = call["function"], text[call.end() : -1].strip()
    if function == "count":
        return UnitTerm(text, function, condition=_parse_over(text, inside, schema, place))
    condition = None
    column, comma, over = inside.partition(",")
    if in_rule and comma and function != "previous" and inside not in schema:
        inside, condition = column.strip(), _parse_over(text, over.strip(), schema, place)
    lagged = _LAGGED.fullmatch(inside) if function == "previous" and inside not in schema else None
    column, lag = (lagged["column"], int(lagged["lag"])) if lagged else (inside, 1)
    variable = schema.require_variable(column, place)
    _require_of_records(text, column, schema, place)
    if not 1 <= lag <= MOST_PLACES_BACK:
        raise BadInput(
            place, f"{text} looks {count_noun(lag, 'record')} back; write a number from 1 to {MOST_PLACES_BACK}"
        )
    if (
        function in OF_NUMBERS
        and variable.kind.has_levels
        and (variable.kind is not Kind.ORDINAL or function == "mean")
    ):
        raise BadInput(
            place, f'{text}: "{column}" has levels, not numbers; use count({column} = "..."), first or previous'
        )
    return UnitTerm(text, function, column, lag, condition)


def _parse_over(text: str, inside: str, schema: Schema, place: str) -> Condition:
    """Return the condition of the records that a term is over. Raises BadInput at ``place``."""
    try:
        condition = parse_condition(inside)
    except ValueError as error:
        raise BadInput(place, str(error)) from None
    for bound in bound_terms(condition, schema, place):
        for column in columns_of_term(bound):
            _require_of_records(text, column, schema, place)
    return condition


def _require_of_records(text: str, column: str, schema: Schema, place: str) -> None:
    """Raise BadInput where a term reads a variable that names a record, or that all records of a unit share."""
    if schema[column].role.is_identifier:
        raise BadInput(place, f'{text}: "{column}" is an identifier, which predicts nothing; use another variable')
    if schema[column].level == "unit":
        raise BadInput(place, f'{text}: all records of a unit have the same "{column}"; use the variable itself')


def drop_out_variable(name: str) -> Variable:
    """Return the declaration of the yes/no variable of drop-out (``sfumato.engine.constraints.earlier_records``)."""
    return Variable(name, Kind.BINARY, levels=("no", "yes"), title="last record of a unit that drops out")


def implied_variables() -> tuple[Variable, Variable]:
    """Return the declarations of the number of records of a unit, and of a record's place among them."""
    return (
        Variable(SIZE, Kind.COUNT, bounds=(1.0, None), title="records of the unit"),
        Variable(PLACE, Kind.ORDINAL, title="place of the record within its unit"),
    )
