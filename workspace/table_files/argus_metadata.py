"""Metadata of tau-ARGUS (.rda): the columns of a file of microdata, or of a file of a table.

    <SEPARATOR> ";"
    Region "99"
        <RECODEABLE>
        <TOTCODE> "Total"
        <HIERARCHICAL>
        <HIERCODELIST> "region2.hrc"
        <HIERLEADSTRING> "@"
    Turnover
        <NUMERIC>
        <DECIMALS> 2

A variable of microdata with fixed columns has its first place and its width, with a separator its width alone, one of a
table neither; codes of missing values follow. Source: tau-ARGUS manual 4.1, sections 4.2.1 and 4.2.2.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from sfumato.engine.errors import BadInput, near_miss_hint

Use = Literal[
    "none", "explanatory", "response", "both", "weight", "holding", "request", "record key", "shadow", "cost",
    "lower level", "upper level", "frequency", "largest", "status",
]  # fmt: skip
"""What a column is: what a table is by, what it adds up, both, and so on; "largest" is a largest contribution."""
USE_WORDS: Mapping[str, Use] = {
    "<WEIGHT>": "weight", "<HOLDING>": "holding", "<RECORDKEY>": "record key", "<FREQUENCY>": "frequency",
    "<MAXSCORE>": "largest", "<STATUS>": "status",
}  # fmt: skip
NUMBER_WORDS: Mapping[str, Use] = {
    "<SHADOW>": "shadow", "<COSTVAR>": "cost", "<COST>": "cost", "<LOWERPL>": "lower level", "<UPPERPL>": "upper level",
}  # fmt: skip
KEPT_WORDS = (
    "<CKM>",
    "<INCLUDEZEROS>",
    "<SEPARATION>",
    "<PARITY>",
    "<SCALING>",
    "<PFILE>",
    "<PFILE_CONT>",
    "<PFILE_SEP>",
)
"""Words of cell keys, which are kept as they stand."""
WORDS = (
    "<RECODEABLE>", "<RECODABLE>", "<NUMERIC>", "<REQUEST>", "<TOTCODE>", "<DISTANCE>", "<CODELIST>", "<HIERARCHICAL>", "<HIERLEVELS>",
    "<HIERLEADSTRING>", "<HIERCODELIST>", "<DECIMALS>", "<TRUNCABLE>", *USE_WORDS, *KEPT_WORDS,
)  # fmt: skip
STATUS_WORDS = {"<SAFE>": "safe", "<UNSAFE>": "unsafe", "<PROTECT>": "protected"}
TOKEN = re.compile(r'"(?P<quoted>[^"]*)"|(?P<plain>[^\s"]+)|(?P<open>")')


@dataclass(frozen=True, slots=True)
class ArgusVariable:
    """Column of a file of tau-ARGUS.

    name: name of the column
    position: first place of a fixed column, from 1; 0 elsewhere
    width: number of characters; 0 where none is said
    missing: codes of missing values
    use: what the column is
    decimals: decimals of a number
    total: code of the total; "" for the usual one
    code_list: file of labels
    is_hierarchical: whether its codes are a hierarchy
    digits: characters of the code at each level, where these are the hierarchy
    hierarchy_file, lead: file of the hierarchy, and its sign for depth
    distances: distance of codes, by level
    request_codes: codes of a request for protection
    is_truncable: whether the last digits of a code may be left out
    other: further words of its lines, as they stand
    """

    name: str
    position: int = 0
    width: int = 0
    missing: tuple[str, ...] = ()
    use: Use = "none"
    decimals: int = 0
    total: str = ""
    code_list: str = ""
    is_hierarchical: bool = False
    digits: tuple[int, ...] = ()
    hierarchy_file: str = ""
    lead: str = ""
    distances: tuple[int, ...] = ()
    request_codes: tuple[str, ...] = ()
    is_truncable: bool = False
    other: tuple[tuple[str, ...], ...] = ()

    @property
    def is_explanatory(self) -> bool:
        """Return whether a table can be by it."""
        return self.use in ("explanatory", "both")


@dataclass(frozen=True, slots=True)
class ArgusMetadata:
    """Columns of a file of tau-ARGUS, in order.

    variables: the columns
    is_table: whether the file is a table, not microdata
    separator: what stands between columns; "" for fixed columns
    statuses: sign of a safe, an unsafe and a protected cell of a table
    """

    variables: tuple[ArgusVariable, ...]
    is_table: bool = False
    separator: str = ""
    statuses: Mapping[str, str] = field(default_factory=lambda: {"safe": "S", "unsafe": "U", "protected": "P"})

    def columns_of(self, use: Use) -> tuple[int, ...]:
        """Return the places of the columns of one use."""
        return tuple(at for at, one in enumerate(self.variables) if one.use == use)

    @property
    def explanatory(self) -> tuple[int, ...]:
        """Return the places of the columns that a table is by."""
        return tuple(at for at, one in enumerate(self.variables) if one.is_explanatory)


def read_metadata(text: str, place: str, *, is_table: bool) -> ArgusMetadata:
    """Read metadata of a table, or of microdata. Raises BadInput at the line."""
    reader = _MetadataReader(place, is_table)
    for number, line in enumerate(text.splitlines(), start=1):
        reader.read_line(line, number)
    return reader.finish()


class _MetadataReader:
    """Reader of the lines of metadata, one after the other."""

    def __init__(self, place: str, is_table: bool) -> None:
        self.place, self.is_table = place, is_table
        self.separator = ";" if is_table else ""
        self.statuses = {"safe": "S", "unsafe": "U", "protected": "P"}
        self.variables = list[dict[str, object]]()
        self.line_of = dict[str, int]()

    def make_error(self, number: int, message: str) -> BadInput:
        return BadInput(f"{self.place}, line {number}", message)

    def read_line(self, line: str, number: int) -> None:
        """Read one line. Raises BadInput."""
        tokens = [found["quoted"] if found["quoted"] is not None else found[0] for found in TOKEN.finditer(line)]
        if any(found["open"] for found in TOKEN.finditer(line)):
            raise self.make_error(number, "has a quotation mark that is not closed")
        if not tokens or tokens[0].startswith("//"):
            return
        word = tokens[0].upper()
        if not word.startswith("<"):
            self._begin_variable(tokens, number)
        elif word == "<SEPARATOR>":
            (self.separator,) = self._texts(tokens, number, 1)
        elif word in STATUS_WORDS and self.is_table:
            (self.statuses[STATUS_WORDS[word]],) = self._texts(tokens, number, 1)
        elif word == "<SPSS>":
            raise self.make_error(
                number, "describes a file of SPSS, which is read without metadata; give the file itself"
            )
        elif not self.variables:
            raise self.make_error(number, f"says {word} of no variable; put it below the variable's name")
        else:
            self._read_property(word, tokens, number)

    def _begin_variable(self, tokens: list[str], number: int) -> None:
        """Begin a variable with its name, its place and its codes of missing values."""
        name = tokens[0]
        if name in self.line_of:
            raise self.make_error(
                number, f'"{name}" is in line {self.line_of[name]} too; give each column its own name'
            )
        self.line_of[name] = number
        one: dict[str, object] = {"name": name}
        wanted = () if self.is_table else ("width",) if self.separator else ("position", "width")
        for at, key in enumerate(wanted, start=1):
            if len(tokens) <= at or not tokens[at].isdecimal() or int(tokens[at]) < 1:
                needs = "its width" if self.separator else "its first place and its width"
                raise self.make_error(
                    number, f'"{name}" needs {needs}, such as {name} {"2" if self.separator else "12 2"}'
                )
            one[key] = int(tokens[at])
        one["missing"] = tuple(tokens[1 + len(wanted) :])
        self.variables.append(one)

    def _read_property(self, word: str, tokens: list[str], number: int) -> None:
        """Read a property of the last variable. Raises BadInput."""
        one = self.variables[-1]
        if word not in WORDS:
            raise self.make_error(number, f"{word} is no word of such files{near_miss_hint(word, WORDS)}")
        if word in ("<RECODEABLE>", "<RECODABLE>"):
            one["use"] = "both" if one.get("use") == "response" else "explanatory"
        elif word == "<NUMERIC>":
            one["use"] = self._use_of_number(tokens, number)
        elif word in USE_WORDS:
            one["use"] = USE_WORDS[word]
        elif word == "<REQUEST>":
            one["use"], one["request_codes"] = "request", tuple(tokens[1:])
        elif word == "<HIERARCHICAL>":
            one["is_hierarchical"] = True
        elif word == "<TRUNCABLE>":
            one["is_truncable"] = True
        elif word == "<DECIMALS>":
            (one["decimals"],) = self._numbers(tokens[:2], number)
        elif word in ("<HIERLEVELS>", "<DISTANCE>"):
            one["digits" if word == "<HIERLEVELS>" else "distances"] = self._numbers(tokens, number)
            one["is_hierarchical"] = one.get("is_hierarchical", False) or word == "<HIERLEVELS>"
        elif word in KEPT_WORDS:
            one["other"] = (*one.get("other", ()), (word, *tokens[1:]))  # type: ignore[misc]
        else:
            keys = {
                "<TOTCODE>": "total", "<CODELIST>": "code_list", "<HIERCODELIST>": "hierarchy_file", "<HIERLEADSTRING>": "lead",
            }  # fmt: skip
            (one[keys[word]],) = self._texts(tokens, number, 1)

    def _use_of_number(self, tokens: list[str], number: int) -> Use:
        """Return the use of a variable with numbers."""
        if len(tokens) == 1:
            return "both" if self.variables[-1].get("use") == "explanatory" else "response"
        word = tokens[1].upper()
        if word not in NUMBER_WORDS or not self.is_table:
            raise self.make_error(number, f"{tokens[1]} cannot follow <NUMERIC>{near_miss_hint(word, NUMBER_WORDS)}")
        return NUMBER_WORDS[word]

    def _texts(self, tokens: list[str], number: int, count: int) -> list[str]:
        """Return the texts after a word. Raises BadInput without them."""
        if len(tokens) < 1 + count:
            raise self.make_error(number, f'{tokens[0]} needs a text, such as {tokens[0]} "Total"')
        return tokens[1 : 1 + count]

    def _numbers(self, tokens: list[str], number: int) -> tuple[int, ...]:
        """Return the whole numbers after a word. Raises BadInput."""
        if len(tokens) < 2 or not all(token.isdecimal() for token in tokens[1:]):
            raise self.make_error(number, f"{tokens[0]} needs whole numbers, such as {tokens[0]} 2")
        return tuple(map(int, tokens[1:]))

    def finish(self) -> ArgusMetadata:
        """Return what was read. Raises BadInput where it describes nothing, or contradicts itself."""
        if not self.variables:
            raise BadInput(self.place, "describes no variable; a variable is a line with its name")
        variables = tuple(ArgusVariable(**one) for one in self.variables)  # type: ignore[arg-type]
        for one in variables:
            number = self.line_of[one.name]
            if one.digits and one.width and sum(one.digits) != one.width:
                raise self.make_error(
                    number, f'"{one.name}" has codes of {one.width} characters, and levels of {sum(one.digits)}'
                )
            if one.is_hierarchical and not (one.digits or one.hierarchy_file):
                raise self.make_error(number, f'"{one.name}" is hierarchical; add <HIERLEVELS> or <HIERCODELIST>')
        return ArgusMetadata(variables, self.is_table, self.separator, self.statuses)


def write_metadata(metadata: ArgusMetadata) -> str:
    """Return metadata as a file of tau-ARGUS. Raises ValueError for texts that it cannot hold."""
    lines = [f"<SEPARATOR> {_quote(metadata.separator)}"] if metadata.separator else []
    if metadata.is_table:
        lines += [f"<{word}> {_quote(metadata.statuses[key])}" for word, key in STATUS_KEYS]
    for one in metadata.variables:
        if not TOKEN.fullmatch(one.name) or one.name.startswith(("<", "//", '"')):
            raise ValueError(f"{one.name!r} cannot be the name of a column of tau-ARGUS; rename it")
        numbers = [number for number in (one.position, one.width) if number and not metadata.is_table]
        lines.append(" ".join([one.name, *map(str, numbers), *map(_quote, one.missing)]))
        lines += [f"    {line}" for line in _property_lines(one, metadata.is_table)]
    return "".join(f"{line}\n" for line in lines)


STATUS_KEYS = (("SAFE", "safe"), ("UNSAFE", "unsafe"), ("PROTECT", "protected"))


def _property_lines(one: ArgusVariable, is_table: bool) -> list[str]:
    """Return the lines of a variable below its name."""
    lines = list[str]()
    if one.is_explanatory:
        lines.append("<RECODEABLE>")
    if one.use in ("response", "both"):
        lines.append("<NUMERIC>")
    if one.use == "request":
        lines.append(" ".join(["<REQUEST>", *map(_quote, one.request_codes)]))
    lines += [word for word, use in USE_WORDS.items() if use == one.use]
    if is_table:
        found = next((word for word, use in NUMBER_WORDS.items() if use == one.use), None)
        lines += [f"<NUMERIC> {found}"] if found else []
    texts = (("TOTCODE", one.total), ("CODELIST", one.code_list))
    lines += [f"<{word}> {_quote(text)}" for word, text in texts if text]
    if one.distances:
        lines.append(" ".join(["<DISTANCE>", *map(str, one.distances)]))
    if one.is_hierarchical:
        lines.append("<HIERARCHICAL>")
    if one.digits:
        lines.append(" ".join(["<HIERLEVELS>", *map(str, one.digits)]))
    texts = (("HIERCODELIST", one.hierarchy_file), ("HIERLEADSTRING", one.lead))
    lines += [f"<{word}> {_quote(text)}" for word, text in texts if text]
    lines += ["<TRUNCABLE>"] if one.is_truncable else []
    lines += [f"<DECIMALS> {one.decimals}"] if one.decimals else []
    lines += [" ".join([other[0], *map(_quote, other[1:])]) for other in one.other]
    return lines


def _quote(text: str) -> str:
    """Return a text in quotation marks. Raises ValueError where it has one, or a line end, of its own."""
    if '"' in text or len(text.splitlines()) > 1 or text.endswith(("\n", "\r")):
        raise ValueError(f"{text!r} cannot be a text in a file of tau-ARGUS; rename it")
    return f'"{text}"'
