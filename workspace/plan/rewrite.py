"""Plan as a document that is edited in its parts: comments, order and layout of the others stay.

The text is parsed into blocks, one for each ``[table]`` or ``[[step]]`` with the comment above it, so that a comment
moves and goes with its step. An edit names its key, and for steps where each was before. Inside a block tomlkit changes
the values that differ. Where tomlkit cannot read a layout, the plan is written afresh.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time
from itertools import pairwise
from typing import Any

import tomlkit
from tomlkit.container import OutOfOrderTableProxy
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import AoT, Array, InlineTable, Table

from sfumato.engine.data.toml import read_toml
from sfumato.engine.errors import BadInput

from .drafts import SECTION_ORDER, inline_toml, write_plan

TABLE_HEADER = re.compile(r"""\s*(\[{1,2})\s*("[^"]*"|'[^']*'|[\w-]+)\s*(\.|\])""")
BLOCK_TAIL = re.compile(r"\n?(\n[ \t]*(#[^\n]*)?)*\Z|\n\Z")
TOML_TOKEN = re.compile(
    r'''"""(?:\\.|(?!""").)*"{3,5}|\'{3}(?:(?!\'{3}).)*\'{3,5}|"(?:\\.|[^"\\\n])*"|'[^'\n]*'|#[^\n]*|[\[\]{},\n]''',
    re.DOTALL,
)
"""Tokens of TOML that matter for its structure: strings and comments as wholes, brackets, commas, line ends."""
DEPTH_CHANGES = {"[": 1, "{": 1, "]": -1, "}": -1}
BLANKS_AND_COMMENTS = re.compile(r"(?:\s|#[^\n]*)*")
LINE_COMMENT = re.compile(r"[ \t]*#[^\n]*")
TomlValues = Mapping[str, Any]
_STEP_SECTIONS = frozenset({"synthesis", "anonymisation", "measure", "study", "threshold", "published", "table"})


@dataclass(frozen=True)
class PlanBlock:
    """Top-level table with its sub-tables, or what stands before the first.

    root: name of the table, empty before the first
    text: its text
    tail: line ends, and comments with a blank line before them
    """

    root: str
    text: str
    tail: str


class PlanDocument:
    """Plan that is edited: ``table`` is its content, ``to_text()`` the text with the layout that it had."""

    def __init__(self, toml: str) -> None:
        """Parse ``toml``, which must be valid."""
        self.table: dict[str, Any] = read_toml(toml)
        self._blocks: list[PlanBlock] | None = _split_blocks(toml)

    def set_section(self, key: str, value: Any) -> None:
        """Set a top-level value or table, or a list of steps; steps that stay keep their comments."""
        old = self.table.get(key)
        if key not in self.table or not _equal_toml_values(old, value):
            self._change_key(
                key,
                value,
                _match_old_tables(_tables_of_section(old), _tables_of_section(value))
                if _is_table_or_steps(value)
                else (),
            )

    def set_steps(self, section: str, steps: Sequence[TomlValues], origins: Sequence[int | None]) -> None:
        """Set a list of steps; ``origins`` has the index that each had before, None for a new one."""
        self._change_key(section, list(steps), origins)

    def remove_key(self, key: str) -> None:
        if key in self.table:
            self._change_key(key, None, ())

    def to_text(self) -> str:
        """Return the text of the plan, with the layout that it had where the edited text can be read."""
        text = "" if self._blocks is None else _join_blocks(self._blocks)
        # An edit of the text is trusted only where it parses to the content that is wanted; else comments are lost,
        # never values.
        return text if self._blocks is not None and _parses_to(text, self.table) else write_plan(self.table)

    def _change_key(self, key: str, value: Any, origins: Sequence[int | None]) -> None:
        """Change one top-level key in the content and in the blocks; None as ``value`` removes it."""
        old = self.table.pop(key, None)
        if value is not None:
            self.table[key] = value
        try:
            self._blocks = self._blocks and _change_blocks(self._blocks, key, old, value, origins)
        except TOMLKitError:
            # tomlkit cannot read this layout: the plan will be written afresh.
            self._blocks = None


def rewrite_plan(toml: str, table: TomlValues) -> str:
    """Rewrite the valid text ``toml`` with the content ``table``, edited key by key."""
    document = PlanDocument(toml)
    for key in [*document.table, *(key for key in table if key not in document.table)]:
        if key in table:
            document.set_section(key, table[key])
        else:
            document.remove_key(key)
    return document.to_text()


def _join_blocks(blocks: Sequence[PlanBlock]) -> str:
    return "".join(f"{block.text}{block.tail}" for block in blocks)


def _parses_to(text: str, table: TomlValues) -> bool:
    """Return whether a text is TOML with this content."""
    try:
        return _equal_toml_values(read_toml(text), table)
    except BadInput:
        return False


def _iterate_tokens(toml: str) -> Iterator[tuple[re.Match[str], int]]:
    """Yield the tokens of a text, each with the number of brackets that are open after it."""
    depth = 0
    for token in TOML_TOKEN.finditer(toml):
        depth += DEPTH_CHANGES.get(token[0], 0)
        yield token, depth


def _logical_lines(toml: str) -> list[str]:
    """Return the lines of a text with their ends; all lines of one value are one."""
    ends = [token.end() for token, depth in _iterate_tokens(toml) if token[0] == "\n" and not depth]
    return [toml[start:end] for start, end in pairwise([0, *ends, len(toml)]) if start < end]


def _split_blocks(toml: str) -> list[PlanBlock]:
    """Split the text of a plan into its blocks."""
    lines = _logical_lines(toml)
    starts, roots = [0], [""]
    for number, line in enumerate(lines):
        header = TABLE_HEADER.match(line)
        root = header.group(2).strip("\"'") if header else ""
        # ``[data.format]`` belongs to the block of ``[data]``, but every ``[[step]]`` begins one.
        if header and (root != roots[-1] or (header.group(1) == "[[" and header.group(3) == "]")):
            starts.append(_comment_start(lines, number, starts[-1]))
            roots.append(root)
    texts = ["".join(lines[start:end]) for start, end in zip(starts, [*starts[1:], len(lines)], strict=True)]
    return [_split_tail(root, text) for root, text in zip(roots, texts, strict=True) if text]


def _split_tail(root: str, text: str) -> PlanBlock:
    """Return a block whose tail is what stands behind the first blank line after the values."""
    # A comment behind a blank line, such as the title of the next part, belongs to the place and must not move with the
    # block.
    kept = BLOCK_TAIL.sub("", text)
    return PlanBlock(root, kept, text[len(kept) :])


def _comment_start(lines: Sequence[str], header: int, least: int) -> int:
    """Return the number of the line where the comments directly above a header begin, not before ``least``."""
    first = header
    while first > least and lines[first - 1].lstrip().startswith("#"):
        first -= 1
    return first


def _change_blocks(
    blocks: list[PlanBlock], key: str, old: Any, new: Any, origins: Sequence[int | None]
) -> list[PlanBlock]:
    """Return the blocks with one top-level key changed; None as ``new`` removes it."""
    count = sum(block.root == key for block in blocks)
    if count > 1 and isinstance(old, Mapping) and isinstance(new, Mapping):
        return _change_scattered_table(blocks, key, old, new)
    if count and (new is None or not _is_table_or_steps(new)):
        blocks = _change_tables(blocks, key, [], ())
        return blocks if new is None else _change_single_value(blocks, key, {key: new})
    if count or (old is None and _is_table_or_steps(new)):
        one_kind = isinstance(old, list) == isinstance(new, list)  # else a table becomes steps, or steps a table
        return _change_tables(
            blocks, key, _tables_of_section(new), origins if one_kind else [None] * len(_tables_of_section(new))
        )
    return _change_single_value(blocks, key, {} if new is None else {key: new})


def _change_scattered_table(blocks: list[PlanBlock], root: str, old: TomlValues, new: TomlValues) -> list[PlanBlock]:
    """Return the blocks with a table changed that stands in several places; each place keeps its own keys.

    New keys go below ``[root]``.
    """
    result: list[PlanBlock] = []
    rest, added = dict(new), [key for key in new if key not in old]
    for block in blocks:
        if block.root != root:
            result.append(block)
            continue
        document = tomlkit.parse(f"{block.text}\n")
        held: Any = document[root]
        own = {key: rest.pop(key) for key in list(held) if key in rest}
        if any(header[3] == "]" for header in map(TABLE_HEADER.match, block.text.splitlines()) if header):
            own |= {key: rest.pop(key) for key in added}
        if own:
            _merge_values(held, own)
            result.append(replace(block, text=tomlkit.dumps(document).rstrip("\n")))
        else:
            result = _remove_block(result, block)
    return _insert_block(result, PlanBlock(root, write_plan({root: rest}).rstrip("\n"), "\n")) if rest else result


def _is_table_or_steps(value: object) -> bool:
    """Return whether the value is a table or a non-empty list of steps."""
    return isinstance(value, Mapping) or (
        isinstance(value, list) and bool(value) and all(isinstance(item, Mapping) for item in value)
    )


def _tables_of_section(value: Any) -> list[TomlValues]:
    """Return the tables of a section: one, several steps, or none where the value is no table."""
    return list(value) if isinstance(value, list) else [value] if isinstance(value, Mapping) else []


def _change_single_value(blocks: list[PlanBlock], key: str, new: TomlValues) -> list[PlanBlock]:
    """Return the blocks with one value before the first table changed, added or removed."""
    headed = bool(blocks) and not blocks[0].root
    first = blocks[0] if headed else PlanBlock("", "", "\n\n" if blocks else "\n")
    document = tomlkit.parse(f"{first.text}\n" if first.text else "")
    _set_key(document, key, new)
    text = tomlkit.dumps(document).rstrip("\n")
    return [replace(first, text=text, tail=first.tail or "\n"), *blocks[headed:]]


def _change_tables(
    blocks: list[PlanBlock], root: str, new: Sequence[TomlValues], origins: Sequence[int | None]
) -> list[PlanBlock]:
    """Return the blocks of one table or list of steps in their new order, changed where they differ."""
    slots = [number for number, block in enumerate(blocks) if block.root == root]
    texts = [blocks[slot].text for slot in slots]
    after = [_block_text(root, table, texts, origin) for table, origin in zip(new, origins, strict=True)]
    at = {slot: replace(blocks[slot], text=text) for slot, text in zip(slots, after, strict=False)}
    gone = slots[len(after) :]
    result: list[PlanBlock] = []
    for number, block in enumerate(blocks):
        result = _remove_block(result, block) if number in gone else [*result, at.get(number, block)]
    for text in after[len(slots) :]:
        result = _insert_block(result, PlanBlock(root, text, "\n"))
    return result


def _remove_block(before: Sequence[PlanBlock], gone: PlanBlock) -> list[PlanBlock]:
    """Return the blocks ``before`` a removed one; comments behind it stay."""
    if not before:
        return []
    if "#" not in before[-1].tail and before[-1].root == gone.root:
        return [*before[:-1], replace(before[-1], tail=gone.tail)]
    if "#" not in gone.tail:
        return [*before]
    return [*before[:-1], replace(before[-1], tail=before[-1].tail + gone.tail.lstrip("\n"))]


def _match_old_tables(old: Sequence[Any], new: Sequence[Any]) -> list[int | None]:
    """Return the position that each new table had: of the equal old one, else of the next that remains.

    None for an added one.
    """
    rest_of_old = dict(enumerate(old))
    found: list[int | None] = []
    for table in new:
        same = next((place for place, other in rest_of_old.items() if _equal_toml_values(other, table)), None)
        found.append(same)
        if same is not None:
            del rest_of_old[same]
    # What has no equal was edited: taking the old ones in order keeps the comments of steps that were changed in place.
    rest = iter(sorted(rest_of_old))
    return [next(rest, None) if place is None else place for place in found]


def _block_text(root: str, table: TomlValues, texts: Sequence[str], origin: int | None) -> str:
    """Return the text of a table's block: the one it comes from brought up to date, or a new one."""
    if origin is None:
        return write_plan({root: [table] if root in _STEP_SECTIONS else table}).rstrip("\n")
    document = tomlkit.parse(texts[origin] + "\n")
    held = document[root]
    _merge_values(held[0] if isinstance(held, AoT) else held, table)
    return tomlkit.dumps(document).rstrip("\n")


def _merge_values(held: Any, new: TomlValues) -> None:
    """Set the keys and values of ``held`` to those of ``new``; equal ones keep their text."""
    for key in [*held, *(key for key in new if key not in held)]:
        _set_key(held, key, new)


def _set_key(held: Any, key: str, new: TomlValues) -> None:
    """Set one key of ``held`` to its value in ``new``, or delete it where ``new`` lacks it."""
    if key not in new:
        _assign_text(held, key, None)
    elif key not in held:
        _assign_text(held, key, inline_toml(new[key]))
    elif _equal_toml_values(_unwrap_item(held[key]), new[key]):
        return
    elif isinstance(new[key], Mapping) and (_has_line_per_key(held[key]) or _is_multiline(held[key], InlineTable)):
        _merge_values(held[key], new[key])
    elif (
        isinstance(new[key], list)
        and _is_multiline(held[key], Array)
        and (text := _rewrite_array(held[key].as_string(), held[key].unwrap(), new[key]))
    ):
        _assign_text(held, key, text)
    else:
        _assign_text(held, key, inline_toml(_keep_key_order(held[key], new[key])))


def _unwrap_item(value: Any) -> Any:
    """Return the plain value of a tomlkit item."""
    # tomlkit returns booleans as they are, without an item around them.
    return value if isinstance(value, bool) else value.unwrap()


def _assign_text(held: Any, key: str, text: str | None) -> None:
    """Set a key to the value that ``text`` writes, or delete it. Raises TOMLKitError."""
    try:
        if text is None:
            del held[key]
        else:
            held[key] = tomlkit.value(text)
    except IndexError as error:  # a fault of tomlkit where a table stands in several places
        raise TOMLKitError(key) from error


@dataclass(frozen=True)
class ArrayEntry:
    """Value in an array over several lines.

    lead: comments above it
    value: its text
    remark: comment behind it on its line
    """

    lead: str
    value: str
    remark: str


@dataclass(frozen=True)
class MultilineArray:
    """Array over several lines, split into its parts.

    head: comment behind its bracket
    entries: its entries
    gaps: blanks before the entries, which belong to the places
    comma: comma behind the last entry, if there is one
    end: text before its closing bracket
    """

    head: str
    entries: list[ArrayEntry]
    gaps: list[str]
    comma: str
    end: str

    @classmethod
    def from_array_text(cls, text: str) -> MultilineArray | None:
        """Parse the entries of ``[...]``; return None where a comment stands between a value and its comma."""
        inner = text[1:-1]
        commas = [token.span() for token, depth in _iterate_tokens(inner) if token[0] == "," and not depth]
        ends, starts = [start for start, _ in commas], [end for _, end in commas]
        parts = [inner[a:b] for a, b in zip([0, *starts], [*ends, len(inner)], strict=True)]
        remarks = [_leading_comment(part) for part in parts]
        parts = [part.removeprefix(remark) for part, remark in zip(parts, remarks, strict=True)]
        comma, end = (",", parts.pop()) if not BLANKS_AND_COMMENTS.sub("", parts[-1], count=1) and commas else ("", "")
        found = [_split_entry(part) for part in parts if BLANKS_AND_COMMENTS.sub("", part, count=1)]
        if not found:
            return cls(remarks[0], [], [], "", parts[0])
        after = [behind for *_, behind in found]
        if any("#" in behind for behind in after[: None if comma else -1]):
            return None
        if not comma:
            remarks.append(_leading_comment(after[-1]))
            end = after[-1].removeprefix(remarks[-1])
        entries = [
            ArrayEntry(lead, value, remark) for (_, lead, value, _), remark in zip(found, remarks[1:], strict=True)
        ]
        return cls(remarks[0], entries, [gap for gap, *_ in found], comma, end)

    def to_array_text(self) -> str:
        """Return the text of the array, however many entries it has now."""
        gaps = [*self.gaps, *([self._default_gap] * len(self.entries))][: len(self.entries)]
        text, remark = f"[{self.head}", self.head
        for place, (gap, entry) in enumerate(zip(gaps, self.entries, strict=True), start=1):
            comma = "," if place < len(self.entries) else self.comma
            text += f"{_line_end_if_needed(remark, gap)}{gap}{entry.lead}{entry.value}{comma}{entry.remark}"
            remark = entry.remark
        return f"{text}{_line_end_if_needed(remark, self.end)}{self.end}]"

    @property
    def _default_gap(self) -> str:
        return self.gaps[-1] if self.gaps and "\n" in self.gaps[-1] else "\n  "


def _split_entry(part: str) -> tuple[str, str, str, str]:
    """Split the text between two commas into blanks, comments above the value, the value, and what is behind it."""
    lead = BLANKS_AND_COMMENTS.match(part)
    assert lead is not None
    body, gap = part[lead.end() :], lead[0][: len(lead[0]) - len(lead[0].lstrip())]
    comment = next(
        (token.start() for token, depth in _iterate_tokens(body) if token[0][0] == "#" and not depth), len(body)
    )
    value = body[:comment].rstrip()
    return gap, lead[0].removeprefix(gap), value, body[len(value) :]


def _leading_comment(text: str) -> str:
    """Return the comment at the beginning of a text's first line; empty without one."""
    found = LINE_COMMENT.match(text)
    return found[0] if found else ""


def _line_end_if_needed(remark: str, after: str) -> str:
    """Return a line end where a comment would run on into what comes after, else an empty text."""
    return "\n" if remark and "\n" not in after.partition("#")[0] else ""


def _rewrite_array(text: str, old: Sequence[Any], new: Sequence[Any]) -> str:
    """Return the text of an array with the items ``new``; comments move with their items.

    Empty where it cannot be parsed.
    """
    array = MultilineArray.from_array_text(text)
    if array is None or len(array.entries) != len(old):
        return ""
    entries = []
    for value, came in zip(new, _match_old_tables(old, new), strict=True):
        entry = ArrayEntry("", inline_toml(value), "") if came is None else array.entries[came]
        if came is not None and not _equal_toml_values(old[came], value):
            held: Any = tomlkit.parse(f"value = {entry.value}\n")
            _set_key(held, "value", {"value": value})
            entry = replace(entry, value=held["value"].as_string())
        entries.append(entry)
    return replace(array, entries=entries).to_array_text()


def _has_line_per_key(held: Any) -> bool:
    """Return whether each key of a table has a line of its own, also as a dotted key."""
    return isinstance(held, (Table, OutOfOrderTableProxy))


def _is_multiline(held: Any, kind: type[Array | InlineTable]) -> bool:
    return isinstance(held, kind) and "\n" in held.as_string()


def _keep_key_order(old: Any, new: Any) -> Any:
    """Return ``new`` with its keys in the order that ``old`` had."""
    if not isinstance(old, Mapping) or not isinstance(new, Mapping):
        return new
    return {key: new[key] for key in [*old, *(key for key in new if key not in old)] if key in new}


def _equal_toml_values(one: object, other: object) -> bool:
    """Return whether two values are equal in TOML, whatever the order of keys."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_equal_toml_values(value, other[key]) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_equal_toml_values, one, other))
    # In TOML 1 is neither 1.0 nor true, which Python takes for equal; a NaN is equal to itself here.
    return _toml_type(one) is _toml_type(other) and (one == other or (one != one and other != other))  # noqa: PLR0124


def _toml_type(value: object) -> type:
    """Return the Python class of a value as TOML tells types apart; tomlkit's items have those of plain values."""
    return next(
        (kind for kind in (bool, int, float, str, datetime, date, time) if isinstance(value, kind)), type(value)
    )


def _insert_block(blocks: list[PlanBlock], block: PlanBlock) -> list[PlanBlock]:
    """Insert a block behind those that come before it in the order of a recipe."""

    def rank(root: str) -> int:
        return SECTION_ORDER.index(root) if root in SECTION_ORDER else -1 if not root else len(SECTION_ORDER)

    at = max(
        (number for number, other in enumerate(blocks, start=1) if rank(other.root) <= rank(block.root)), default=0
    )
    if not at:
        return [replace(block, tail="\n\n" if blocks else "\n"), *blocks]
    above = blocks[at - 1]
    return [*blocks[: at - 1], replace(above, tail="\n\n"), replace(block, tail=above.tail), *blocks[at:]]
