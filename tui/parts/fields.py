"""Fields of a form: the text for a parameter's value, and the value that a typed text denotes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sfumato.engine.data.toml import read_toml
from sfumato.engine.errors import BadInput

from .offers import OfferedValue

FieldKind = Literal["text", "value", "list", "table"]
NUMBER = re.compile(r"[-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?")
QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')


@dataclass(frozen=True)
class FormField:
    """Field of a form.

    name: name of the parameter
    help: explanation shown while the field has the focus
    kind: how a typed text is read
    value: value in the recipe; None if it has none and ``default`` applies
    choices: values of a field that offers a few
    words: completions of the typed text, in a list of its last item
    completes_paths: whether file names are completed
    offers: entries to choose from a list; by default ``words``
    join_sign: sign that may join two chosen entries
    has_remark_line: whether a line below the field is kept for remarks
    shown_when: another field and its values with which this field is shown; always by default
    """

    name: str
    help: str
    kind: FieldKind = "text"
    value: Any = None
    default: Any = None
    choices: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    completes_paths: bool = False
    offers: tuple[OfferedValue, ...] = ()
    join_sign: str = ""
    has_remark_line: bool = False
    shown_when: tuple[str, tuple[str, ...]] | None = None

    @property
    def list_offers(self) -> tuple[OfferedValue, ...]:
        """Return the entries that the field's list offers."""
        return self.offers or tuple(OfferedValue(word) for word in self.words)

    def chosen_values(self, text: str) -> tuple[str, ...]:
        """Return the entries that a typed text chooses, as the list names them; none if it cannot be read."""
        try:
            value = parse_value(text, self.kind, self.name)
        except BadInput:
            return ()
        if self.kind == "table":
            offered = {offer.value for offer in self.offers}
            pairs = {key: f"{_key_text(key)} = {_item_text(item)}" for key, item in value.items()}
            return tuple(pair if pair in offered else key for key, pair in pairs.items())
        return tuple(map(value_text, value)) if self.kind == "list" else tuple(filter(None, (text.strip(),)))

    def text_for_chosen(self, text: str, chosen: Sequence[str]) -> str:
        """Return the text for the entries chosen from the list.

        In a table, names keep the values that they have in ``text``; for other names the value is left to be typed.
        """
        if self.kind == "table":
            return ", ".join(self._pair_text(text, value) for value in chosen)
        if self.kind == "list":
            return value_text([_parse_toml(value) for value in chosen])
        return chosen[0] if chosen else ""

    def _pair_text(self, text: str, chosen: str) -> str:
        """Return a chosen name of a table with its value."""
        had = parse_value(text, "table", self.name) if self.chosen_values(text) else {}
        if chosen in had:
            return f"{_key_text(chosen)} = {_item_text(had[chosen])}"
        return (
            chosen
            if chosen in {offer.value for offer in self.offers if "=" in offer.value}
            else f"{_key_text(chosen)} = "
        )


def value_text(value: object) -> str:
    """Return a value as a user types it: ``5``, ``price``, ``a, log(b)``, ``price = 5, days = 10%``."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return ", ".join(f"{_key_text(str(key))} = {_item_text(item)}" for key, item in value.items())
    if isinstance(value, (list, tuple)):
        items = ", ".join(map(_item_text, value))
        # Without the outer brackets a list of one list would be read back as the inner list.
        return f"[{items}]" if len(value) == 1 and items.startswith("[") else items
    return str(value)


def _key_text(key: str) -> str:
    """Return a key of a table as text, in quotes if it has signs of the syntax."""
    plain = key and key == key.strip() and not any(sign in key for sign in ",=\"'[]{}")
    return key if plain else _quote(key)


def _item_text(value: object) -> str:
    """Return an item of a list or table as text that is read back as the same value."""
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_toml_text, value))}]"
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{_quote(str(key))} = {_toml_text(item)}' for key, item in value.items())} }}"
    text = value_text(value)
    return _quote(text) if isinstance(value, str) and _needs_quotes(text) else text


def inline_text(value: object) -> object:
    """Return a list or table as text that is read back as one value; other values unchanged."""
    return _item_text(value) if isinstance(value, (list, tuple, Mapping)) else value


def _toml_text(value: object) -> str:
    """Return a value as TOML."""
    return _quote(value) if isinstance(value, str) else _item_text(value)


def _needs_quotes(text: str) -> bool:
    """Return whether a text without quotes would be read back as another value."""
    return not text or text != text.strip() or any(sign in text for sign in ',="\\[]{}') or _parse_toml(text) != text


def _quote(text: str) -> str:
    """Return a text in double quotes, with TOML's escapes."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def parse_value(text: str, kind: FieldKind, name: str) -> Any:
    """Return the value that a typed text denotes. Raises BadInput at ``name``."""
    text = text.strip()
    if kind == "text":
        return text
    if kind == "value":
        return _parse_toml(text)
    if kind == "list":
        # ``[1], [2]`` begins and ends with brackets too, but these are not of one list.
        inner = text[1:-1] if text.startswith("[") and text.endswith("]") and _is_wholly_bracketed(text) else text
        return [_parse_toml(item) for item in _split_at_commas(inner)]
    inner = text[1:-1] if text.startswith("{") and text.endswith("}") else text
    return dict(_parse_pair(item, name) for item in _join_continued_numbers(_split_at_commas(inner)))


def _join_continued_numbers(items: Sequence[str]) -> list[str]:
    """Join each number without a name to the pair before it, as in ``pay = at 1000, 3000``."""
    pairs: list[str] = []
    for item in items:
        if pairs and NUMBER.fullmatch(item) and "=" in pairs[-1] and not pairs[-1].endswith(('"', "]", "}")):
            pairs[-1] += f", {item}"
        else:
            pairs.append(item)
    return pairs


def _is_wholly_bracketed(text: str) -> bool:
    """Return whether the bracket that opens a text is closed by its last character."""
    depth = 0
    for at, sign in enumerate(text):
        depth += (sign == "[") - (sign == "]")
        if depth == 0:
            return at == len(text) - 1
    return False


def _parse_pair(item: str, name: str) -> tuple[str, Any]:
    """Return the name and the value of a pair. Raises BadInput."""
    quoted = QUOTED.match(item)
    key, equals, value = item[quoted.end() :].partition("=") if quoted else item.partition("=")
    if quoted:
        key, equals = _parse_toml(quoted.group()), equals if not key.strip() else ""
    if not equals or not key:
        raise BadInput(name, f"write name = value, such as price = 5; several with commas between them, not {item!r}")
    return key if quoted else key.strip(), _parse_toml(value.strip())


def _split_at_commas(text: str) -> list[str]:
    """Split a text at commas outside brackets and quotes."""
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


def _parse_toml(text: str) -> Any:
    """Return the number, truth value, text or list that a text denotes; otherwise the text itself."""
    try:
        value = read_toml(f"value = {text}")
    except BadInput:
        return text
    # ``1 \nx = 2`` would define a second key; dates have a type of their own in TOML and stay texts.
    found = value["value"]
    plain = isinstance(found, (str, int, float, bool, list, dict))
    return found if plain and list(value) == ["value"] else text


def read_fields(fields: Sequence[FormField], texts: Mapping[str, str]) -> dict[str, Any]:
    """Return the table that the typed ``texts`` denote.

    Empty fields and choices left at their default are left out.
    """
    table: dict[str, Any] = {}
    for field in fields:
        text = texts[field.name].strip()
        if not text:
            continue
        # A choice always has a text; left at the default it is not part of the recipe.
        if field.choices and field.value is None and text == value_text(field.default):
            continue
        table[field.name] = parse_value(text, field.kind, field.name)
    return table
