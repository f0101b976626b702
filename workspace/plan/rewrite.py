"""A plan as a document that is edited in its parts: comments, order and layout of the others stay.

The text is parsed into blocks, one a ``[table]`` or ``[[step]]`` with the comment above it, so that a comment moves
and goes with its step. An edit names its key, and for steps where each was before. Inside a block tomlkit changes the
values that differ; an array over several lines is parsed in the same way. A table in several places of the text is
edited in each. Where tomlkit cannot read a layout, the plan is written afresh.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time
from itertools import pairwise
from typing import Any

import tomlkit
from tomlkit.container import OutOfOrderTableProxy
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import AoT, Array, InlineTable, Table

from .drafts import ORDER, inline, plan_text

HEADER = re.compile(r"""\s*(\[{1,2})\s*("[^"]*"|'[^']*'|[\w-]+)\s*(\.|\])""")
TAIL = re.compile(r"\n?(\n[ \t]*(#[^\n]*)?)*\Z|\n\Z")
TOKEN = re.compile(
    r'''"""(?:\\.|(?!""").)*"{3,5}|\'{3}(?:(?!\'{3}).)*\'{3,5}|"(?:\\.|[^"\\\n])*"|'[^'\n]*'|#[^\n]*|[\[\]{},\n]''',
    re.DOTALL,
)
"""What has a meaning of its own wherever it stands: strings and comments as wholes, brackets, commas, line ends."""
DEEPER = {"[": 1, "{": 1, "]": -1, "}": -1}
BLANK = re.compile(r"(?:\s|#[^\n]*)*")
REMARK = re.compile(r"[ \t]*#[^\n]*")
Values = Mapping[str, Any]
_STEPS = frozenset({"synthesis", "anonymisation", "measure", "study", "threshold", "published"})


@dataclass(frozen=True)
class Block:
    """A top-level table with its sub-tables, or what stands before the first (``root`` is empty)."""

    root: str
    text: str
    tail: str
    """Line ends, and comments with a blank line before them: they belong to the place, not to the block."""


class PlanDocument:
    """A plan that is edited: ``table`` is its content, ``text()`` the text with the layout that it had."""

    def __init__(self, toml: str) -> None:
        """``toml`` must be valid."""
        self.table: dict[str, Any] = tomllib.loads(toml)
        self._blocks: list[Block] | None = _blocks(toml)

    def put(self, key: str, value: Any) -> None:
        """Set a top-level value or table, or a list of steps; of steps, those that stay keep their comments."""
        old = self.table.get(key)
        if key not in self.table or not _equal(old, value):
            self._change(key, value, _origins(_tables(old), _tables(value)) if _is_tables(value) else ())

    def put_steps(self, section: str, steps: Sequence[Values], origins: Sequence[int | None]) -> None:
        """Set a list of steps; ``origins`` has the index that each had, None for a new one."""
        self._change(section, list(steps), origins)

    def remove(self, key: str) -> None:
        if key in self.table:
            self._change(key, None, ())

    def text(self) -> str:
        text = "" if self._blocks is None else _joined(self._blocks)
        return text if self._blocks is not None and _reads_as(text, self.table) else plan_text(self.table)

    def _change(self, key: str, value: Any, origins: Sequence[int | None]) -> None:
        old = self.table.pop(key, None)
        if value is not None:
            self.table[key] = value
        try:
            self._blocks = self._blocks and _changed(self._blocks, key, old, value, origins)
        except TOMLKitError:
            self._blocks = None


def rewritten(toml: str, table: Values) -> str:
    """``toml`` with the content ``table``, edited key by key. ``toml`` must be valid."""
    document = PlanDocument(toml)
    for key in [*document.table, *(key for key in table if key not in document.table)]:
        if key in table:
            document.put(key, table[key])
        else:
            document.remove(key)
    return document.text()


def _joined(blocks: Sequence[Block]) -> str:
    return "".join(f"{block.text}{block.tail}" for block in blocks)


def _reads_as(text: str, table: Values) -> bool:
    try:
        return _equal(tomllib.loads(text), table)
    except tomllib.TOMLDecodeError:
        return False


def _tokens(toml: str) -> Iterator[tuple[re.Match[str], int]]:
    """The tokens of a text, each with the number of brackets that are open after it."""
    depth = 0
    for token in TOKEN.finditer(toml):
        depth += DEEPER.get(token[0], 0)
        yield token, depth


def _lines(toml: str) -> list[str]:
    """The lines of a text with their ends; all those of one value are one."""
    ends = [token.end() for token, depth in _tokens(toml) if token[0] == "\n" and not depth]
    return [toml[start:end] for start, end in pairwise([0, *ends, len(toml)]) if start < end]


def _blocks(toml: str) -> list[Block]:
    lines = _lines(toml)
    starts, roots = [0], [""]
    for number, line in enumerate(lines):
        header = HEADER.match(line)
        root = header.group(2).strip("\"'") if header else ""
        if header and (root != roots[-1] or (header.group(1) == "[[" and header.group(3) == "]")):
            starts.append(_lead(lines, number, starts[-1]))
            roots.append(root)
    texts = ["".join(lines[start:end]) for start, end in zip(starts, [*starts[1:], len(lines)], strict=True)]
    return [_block(root, text) for root, text in zip(roots, texts, strict=True) if text]


def _block(root: str, text: str) -> Block:
    """What stands behind the first blank line after the values, such as the title of the next part, stays in its place."""
    kept = TAIL.sub("", text)
    return Block(root, kept, text[len(kept) :])


def _lead(lines: Sequence[str], header: int, least: int) -> int:
    """Where the comments directly above a header begin."""
    first = header
    while first > least and lines[first - 1].lstrip().startswith("#"):
        first -= 1
    return first


def _changed(blocks: list[Block], key: str, old: Any, new: Any, origins: Sequence[int | None]) -> list[Block]:
    """The blocks with one top-level key changed; None as ``new`` removes it."""
    count = sum(block.root == key for block in blocks)
    if count > 1 and isinstance(old, Mapping) and isinstance(new, Mapping):
        return _with_parts(blocks, key, old, new)
    if count and (new is None or not _is_tables(new)):
        blocks = _with_tables(blocks, key, [], ())
        return blocks if new is None else _with_single(blocks, key, {key: new})
    if count or (old is None and _is_tables(new)):
        one_kind = isinstance(old, list) == isinstance(new, list)  # else a table becomes steps, or steps a table
        return _with_tables(blocks, key, _tables(new), origins if one_kind else [None] * len(_tables(new)))
    return _with_single(blocks, key, {} if new is None else {key: new})


def _with_parts(blocks: list[Block], root: str, old: Values, new: Values) -> list[Block]:
    """The blocks of one table in several places, each with its own keys changed; new keys go below ``[root]``."""
    result: list[Block] = []
    rest, added = dict(new), [key for key in new if key not in old]
    for block in blocks:
        if block.root != root:
            result.append(block)
            continue
        document = tomlkit.parse(f"{block.text}\n")
        held: Any = document[root]
        own = {key: rest.pop(key) for key in list(held) if key in rest}
        if any(header[3] == "]" for header in map(HEADER.match, block.text.splitlines()) if header):
            own |= {key: rest.pop(key) for key in added}
        if own:
            _merge(held, own)
            result.append(replace(block, text=tomlkit.dumps(document).rstrip("\n")))
        else:
            result = _without(result, block)
    return _inserted(result, Block(root, plan_text({root: rest}).rstrip("\n"), "\n")) if rest else result


def _is_tables(value: object) -> bool:
    """Whether the value is a table or a list of steps, not an empty one."""
    return isinstance(value, Mapping) or (
        isinstance(value, list) and bool(value) and all(isinstance(item, Mapping) for item in value)
    )


def _tables(value: Any) -> list[Values]:
    """The tables of a section: one, several steps, or none where the value is no table."""
    return list(value) if isinstance(value, list) else [value] if isinstance(value, Mapping) else []


def _with_single(blocks: list[Block], key: str, new: Values) -> list[Block]:
    """One value before the first table changed, added or taken out."""
    headed = bool(blocks) and not blocks[0].root
    first = blocks[0] if headed else Block("", "", "\n\n" if blocks else "\n")
    document = tomlkit.parse(f"{first.text}\n" if first.text else "")
    _put(document, key, new)
    text = tomlkit.dumps(document).rstrip("\n")
    return [replace(first, text=text, tail=first.tail or "\n"), *blocks[headed:]]


def _with_tables(blocks: list[Block], root: str, new: Sequence[Values], origins: Sequence[int | None]) -> list[Block]:
    """The blocks of one table or list of steps in their new order, changed where they differ."""
    slots = [number for number, block in enumerate(blocks) if block.root == root]
    texts = [blocks[slot].text for slot in slots]
    after = [_text(root, table, texts, origin) for table, origin in zip(new, origins, strict=True)]
    at = {slot: replace(blocks[slot], text=text) for slot, text in zip(slots, after, strict=False)}
    gone = slots[len(after) :]
    result: list[Block] = []
    for number, block in enumerate(blocks):
        result = _without(result, block) if number in gone else [*result, at.get(number, block)]
    for text in after[len(slots) :]:
        result = _inserted(result, Block(root, text, "\n"))
    return result


def _without(before: Sequence[Block], gone: Block) -> list[Block]:
    """The blocks ``before`` one that goes; comments in its place stay."""
    if not before:
        return []
    if "#" not in before[-1].tail and before[-1].root == gone.root:
        return [*before[:-1], replace(before[-1], tail=gone.tail)]
    if "#" not in gone.tail:
        return [*before]
    return [*before[:-1], replace(before[-1], tail=before[-1].tail + gone.tail.lstrip("\n"))]


def _origins(old: Sequence[Any], new: Sequence[Any]) -> list[int | None]:
    """Where each new table was: the equal one, else the next that remains; None for an added one."""
    rest_of_old = dict(enumerate(old))
    found: list[int | None] = []
    for table in new:
        same = next((place for place, other in rest_of_old.items() if _equal(other, table)), None)
        found.append(same)
        if same is not None:
            del rest_of_old[same]
    rest = iter(sorted(rest_of_old))
    return [next(rest, None) if place is None else place for place in found]


def _text(root: str, table: Values, texts: Sequence[str], origin: int | None) -> str:
    """A table's block: the one it comes from brought up to date, or a new one."""
    if origin is None:
        return plan_text({root: [table] if root in _STEPS else table}).rstrip("\n")
    document = tomlkit.parse(texts[origin] + "\n")
    held = document[root]
    _merge(held[0] if isinstance(held, AoT) else held, table)
    return tomlkit.dumps(document).rstrip("\n")


def _merge(held: Any, new: Values) -> None:
    """Give ``held`` the keys and values of ``new``; what is equal keeps its text."""
    for key in [*held, *(key for key in new if key not in held)]:
        _put(held, key, new)


def _put(held: Any, key: str, new: Values) -> None:
    """Set one key of ``held`` to its value in ``new``, or delete it where ``new`` lacks it."""
    if key not in new:
        _assign(held, key, None)
    elif key not in held:
        _assign(held, key, inline(new[key]))
    elif _equal(_plain(held[key]), new[key]):
        return
    elif isinstance(new[key], Mapping) and (_has_lines(held[key]) or _is_long(held[key], InlineTable)):
        _merge(held[key], new[key])
    elif (
        isinstance(new[key], list)
        and _is_long(held[key], Array)
        and (text := _listed(held[key].as_string(), held[key].unwrap(), new[key]))
    ):
        _assign(held, key, text)
    else:
        _assign(held, key, inline(_ordered(held[key], new[key])))


def _plain(value: Any) -> Any:
    """The value of an item; tomlkit gives booleans as they are."""
    return value if isinstance(value, bool) else value.unwrap()


def _assign(held: Any, key: str, text: str | None) -> None:
    """Set a key to the value that ``text`` writes, or delete it. Raises TOMLKitError."""
    try:
        if text is None:
            del held[key]
        else:
            held[key] = tomlkit.value(text)
    except IndexError as error:  # a fault of tomlkit where a table stands in several places
        raise TOMLKitError(key) from error


@dataclass(frozen=True)
class Entry:
    """A value in an array over several lines, the comments above it, and the one behind it on its line."""

    lead: str
    value: str
    remark: str


@dataclass(frozen=True)
class Entries:
    """An array taken apart. ``gaps`` stand before the entries and belong to the places, ``head`` and ``end`` at its ends."""

    head: str
    entries: list[Entry]
    gaps: list[str]
    comma: str
    """The one behind the last entry, if there is one."""
    end: str

    @classmethod
    def of(cls, text: str) -> Entries | None:
        """The entries of ``[...]``; None where a comment stands between a value and its comma."""
        inner = text[1:-1]
        commas = [token.span() for token, depth in _tokens(inner) if token[0] == "," and not depth]
        ends, starts = [start for start, _ in commas], [end for _, end in commas]
        parts = [inner[a:b] for a, b in zip([0, *starts], [*ends, len(inner)], strict=True)]
        remarks = [_remark(part) for part in parts]
        parts = [part.removeprefix(remark) for part, remark in zip(parts, remarks, strict=True)]
        comma, end = (",", parts.pop()) if not BLANK.sub("", parts[-1], count=1) and commas else ("", "")
        found = [_parted(part) for part in parts if BLANK.sub("", part, count=1)]
        if not found:
            return cls(remarks[0], [], [], "", parts[0])
        after = [behind for *_, behind in found]
        if any("#" in behind for behind in after[: None if comma else -1]):
            return None
        if not comma:
            remarks.append(_remark(after[-1]))
            end = after[-1].removeprefix(remarks[-1])
        entries = [Entry(lead, value, remark) for (_, lead, value, _), remark in zip(found, remarks[1:], strict=True)]
        return cls(remarks[0], entries, [gap for gap, *_ in found], comma, end)

    def text(self) -> str:
        """The array's text again, however many entries there are now."""
        gaps = [*self.gaps, *([self._further] * len(self.entries))][: len(self.entries)]
        text, remark = f"[{self.head}", self.head
        for place, (gap, entry) in enumerate(zip(gaps, self.entries, strict=True), start=1):
            comma = "," if place < len(self.entries) else self.comma
            text += f"{_line_end(remark, gap)}{gap}{entry.lead}{entry.value}{comma}{entry.remark}"
            remark = entry.remark
        return f"{text}{_line_end(remark, self.end)}{self.end}]"

    @property
    def _further(self) -> str:
        return self.gaps[-1] if self.gaps and "\n" in self.gaps[-1] else "\n  "


def _parted(part: str) -> tuple[str, str, str, str]:
    """Blanks, comments above, value and what is behind it, of the text between two commas."""
    lead = BLANK.match(part)
    assert lead is not None
    body, gap = part[lead.end() :], lead[0][: len(lead[0]) - len(lead[0].lstrip())]
    comment = next((token.start() for token, depth in _tokens(body) if token[0][0] == "#" and not depth), len(body))
    value = body[:comment].rstrip()
    return gap, lead[0].removeprefix(gap), value, body[len(value) :]


def _remark(text: str) -> str:
    """The comment with which the text's first line goes on or ends; empty where there is none."""
    found = REMARK.match(text)
    return found[0] if found else ""


def _line_end(remark: str, after: str) -> str:
    """A line end where a comment would run on into what comes after."""
    return "\n" if remark and "\n" not in after.partition("#")[0] else ""


def _listed(text: str, old: Sequence[Any], new: Sequence[Any]) -> str:
    """The text of an array with the items ``new``; comments move and go with theirs. Empty where it cannot be parsed."""
    array = Entries.of(text)
    if array is None or len(array.entries) != len(old):
        return ""
    entries = []
    for value, came in zip(new, _origins(old, new), strict=True):
        entry = Entry("", inline(value), "") if came is None else array.entries[came]
        if came is not None and not _equal(old[came], value):
            held: Any = tomlkit.parse(f"value = {entry.value}\n")
            _put(held, "value", {"value": value})
            entry = replace(entry, value=held["value"].as_string())
        entries.append(entry)
    return replace(array, entries=entries).text()


def _has_lines(held: Any) -> bool:
    """Whether each key of a table has a line of its own, be it a dotted one."""
    return isinstance(held, (Table, OutOfOrderTableProxy))


def _is_long(held: Any, kind: type[Array | InlineTable]) -> bool:
    return isinstance(held, kind) and "\n" in held.as_string()


def _ordered(old: Any, new: Any) -> Any:
    """``new`` with its keys in the order that they had."""
    if not isinstance(old, Mapping) or not isinstance(new, Mapping):
        return new
    return {key: new[key] for key in [*old, *(key for key in new if key not in old)] if key in new}


def _equal(one: object, other: object) -> bool:
    """Whether two values are the same in TOML: 1 is not 1.0 or true, and the order of keys does not matter."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_equal(value, other[key]) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_equal, one, other))
    return _scalar(one) is _scalar(other) and (one == other or (one != one and other != other))  # noqa: PLR0124


def _scalar(value: object) -> type:
    """The type of TOML's values that a value has; those of tomlkit have the same."""
    return next(
        (kind for kind in (bool, int, float, str, datetime, date, time) if isinstance(value, kind)), type(value)
    )


def _inserted(blocks: list[Block], block: Block) -> list[Block]:
    """A block put behind those that a recipe has before it."""

    def rank(root: str) -> int:
        return ORDER.index(root) if root in ORDER else -1 if not root else len(ORDER)

    at = max(
        (number for number, other in enumerate(blocks, start=1) if rank(other.root) <= rank(block.root)), default=0
    )
    if not at:
        return [replace(block, tail="\n\n" if blocks else "\n"), *blocks]
    above = blocks[at - 1]
    return [*blocks[: at - 1], replace(above, tail="\n\n"), replace(block, tail=above.tail), *blocks[at:]]
