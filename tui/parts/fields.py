"""Fields of a form: how a parameter's value is shown as text, and what a typed text means."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sfumato.engine.errors import BadInput

from .offers import Offer

FieldKind = Literal["text", "value", "list", "table"]
NUMBER = re.compile(r"[-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?")
QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')


@dataclass(frozen=True)
class Field:
    """One line of a form. ``value`` is what the recipe has, None where it has nothing and ``default`` holds.

    ``choices`` make it a choice; ``words`` complete what is typed, the last of a list; ``paths`` has it completed to a file.
    ``offers`` are listed to be chosen from, the words where there are none; ``joined`` is the sign that two of them may be joined with.
    ``beside`` gives it a line of its own below, for what is said of its value. ``when`` names another field and the values of that
    one with which this one has a meaning; with others it is not shown.
    """

    name: str
    help: str
    kind: FieldKind = "text"
    value: Any = None
    default: Any = None
    choices: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    paths: bool = False
    offers: tuple[Offer, ...] = ()
    joined: str = ""
    beside: bool = False
    when: tuple[str, tuple[str, ...]] | None = None

    @property
    def listed(self) -> tuple[Offer, ...]:
        return self.offers or tuple(Offer(word) for word in self.words)

    def chosen_in(self, text: str) -> tuple[str, ...]:
        """What a typed text has chosen, as the list names it; nothing of what cannot be read."""
        try:
            value = typed_value(text, self.kind, self.name)
        except BadInput:
            return ()
        if self.kind == "table":
            offered = {offer.value for offer in self.offers}
            pairs = {key: f"{_key(key)} = {_item(item)}" for key, item in value.items()}
            return tuple(pair if pair in offered else key for key, pair in pairs.items())
        return tuple(map(shown_value, value)) if self.kind == "list" else tuple(filter(None, (text.strip(),)))

    def with_chosen(self, text: str, chosen: Sequence[str]) -> str:
        """The text that says what was chosen from the list: of a table, what it said of these, or names whose value is to be typed."""
        if self.kind == "table":
            return ", ".join(self._pair_of(text, value) for value in chosen)
        if self.kind == "list":
            return shown_value([_as_toml(value) for value in chosen])
        return chosen[0] if chosen else ""

    def _pair_of(self, text: str, chosen: str) -> str:
        had = typed_value(text, "table", self.name) if self.chosen_in(text) else {}
        if chosen in had:
            return f"{_key(chosen)} = {_item(had[chosen])}"
        return (
            chosen if chosen in {offer.value for offer in self.offers if "=" in offer.value} else f"{_key(chosen)} = "
        )


def shown_value(value: object) -> str:
    """A value as it is typed: ``5``, ``price``, ``a, log(b)``, ``price = 5, days = 10%``."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return ", ".join(f"{_key(str(key))} = {_item(item)}" for key, item in value.items())
    if isinstance(value, (list, tuple)):
        items = ", ".join(map(_item, value))
        return f"[{items}]" if len(value) == 1 and items.startswith("[") else items
    return str(value)


def _key(key: str) -> str:
    plain = key and key == key.strip() and not any(sign in key for sign in ",=\"'[]{}")
    return key if plain else _quoted(key)


def _item(value: object) -> str:
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{_quoted(str(key))} = {_toml(item)}' for key, item in value.items())} }}"
    text = shown_value(value)
    return _quoted(text) if isinstance(value, str) and _needs_quotes(text) else text


def inline(value: object) -> object:
    """A list or table as the text of one value, which is read back as it; all else as it is."""
    return _item(value) if isinstance(value, (list, tuple, Mapping)) else value


def _toml(value: object) -> str:
    return _quoted(value) if isinstance(value, str) else _item(value)


def _needs_quotes(text: str) -> bool:
    return not text or text != text.strip() or any(sign in text for sign in ',="\\[]{}') or _as_toml(text) != text


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def typed_value(text: str, kind: FieldKind, name: str) -> Any:
    """What a typed text means. Raises BadInput at ``name``."""
    text = text.strip()
    if kind == "text":
        return text
    if kind == "value":
        return _as_toml(text)
    if kind == "list":
        inner = text[1:-1] if text.startswith("[") and text.endswith("]") and _closes_last(text) else text
        return [_as_toml(item) for item in _split(inner)]
    inner = text[1:-1] if text.startswith("{") and text.endswith("}") else text
    return dict(_pair(item, name) for item in _with_their_numbers(_split(inner)))


def _with_their_numbers(items: Sequence[str]) -> list[str]:
    """The pairs of a table: a number that has no name goes on with the pair before it, as in ``pay = at 1000, 3000``."""
    pairs: list[str] = []
    for item in items:
        if pairs and NUMBER.fullmatch(item) and "=" in pairs[-1] and not pairs[-1].endswith(('"', "]", "}")):
            pairs[-1] += f", {item}"
        else:
            pairs.append(item)
    return pairs


def _closes_last(text: str) -> bool:
    """Whether the bracket that opens a text is the one that ends it."""
    depth = 0
    for at, sign in enumerate(text):
        depth += (sign == "[") - (sign == "]")
        if depth == 0:
            return at == len(text) - 1
    return False


def _pair(item: str, name: str) -> tuple[str, Any]:
    quoted = QUOTED.match(item)
    key, equals, value = item[quoted.end() :].partition("=") if quoted else item.partition("=")
    if quoted:
        key, equals = _as_toml(quoted.group()), equals if not key.strip() else ""
    if not equals or not key:
        raise BadInput(name, f"write name = value, such as price = 5; several with commas between them, not {item!r}")
    return key if quoted else key.strip(), _as_toml(value.strip())


def _split(text: str) -> list[str]:
    """The parts of a text between commas that stand in no bracket and no quotation."""
    parts, depth, at = [""], 0, 0
    while at < len(text):
        quoted = QUOTED.match(text, at)
        piece = quoted.group() if quoted else text[at]
        depth += (piece in "[{") - (piece in "]}")
        if piece == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += piece
        at += len(piece)
    return [part.strip() for part in parts if part.strip()]


def _as_toml(text: str) -> Any:
    """The number, truth value, quoted text or list that a text writes; else the text itself."""
    try:
        value = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return text
    found = value["value"]
    plain = isinstance(found, (str, int, float, bool, list, dict))
    return found if plain and list(value) == ["value"] else text


def read_fields(fields: Sequence[Field], texts: Mapping[str, str]) -> dict[str, Any]:
    """The table that the typed ``texts`` mean; what is empty, or a choice left at its default, is left out."""
    table: dict[str, Any] = {}
    for field in fields:
        text = texts[field.name].strip()
        if not text:
            continue
        if field.choices and field.value is None and text == shown_value(field.default):
            continue
        table[field.name] = typed_value(text, field.kind, field.name)
    return table
