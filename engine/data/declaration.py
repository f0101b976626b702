"""Declarations of a recipe's tables: annotated fields of a frozen dataclass.

    @dataclass(frozen=True, slots=True)
    class Weighting(Section):
        run: Annotated[int, Param("run whose records at risk have less influence", ge=1)]

Tables are read and written by these declarations, and messages about wrong keys and values, the keys in the manual and
the fields of forms come from them. Parameters of methods (``sfumato.engine.methods.spec``) are declared in the same
way.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Any, ClassVar, Literal, Self

from ..errors import BadInput, near_miss_hint


@dataclass(frozen=True, slots=True)
class SearchValues:
    """Values of a field that a search tries (``sfumato.engine.search``).

    values: the values
    larger_protects_more: whether larger values protect more
    is_guarantee: whether the plan promises the value, so that no value that promises less is tried
    for_numbers_only: whether the field has no effect where a step makes only variables with levels
    has_order: False for values of which none protects more than another
    """

    values: tuple[Any, ...]
    larger_protects_more: bool = True
    is_guarantee: bool = False
    for_numbers_only: bool = False
    has_order: bool = True


@dataclass(frozen=True, slots=True)
class Param:
    """Declaration of a field: its purpose and its possible values.

    help: purpose of the field, in words
    ge, gt, le, lt: limits of a number
    names: whether its text (or the keys of its table) names ``"variables"`` of the schema or predictor ``"terms"``
    kinds: kinds to which its variables are limited
    inherit: key of a method, from whose first use in the recipe the field takes its value by default
    reported: whether a result row always states the field, as completed for the release; otherwise only where it
        differs from its default
    filters_rows: whether the field only selects which rows there are, not how any of them is computed; comparisons of
        runs ignore it
    changes_no_data: whether the field of a synthesis step changes no dataset, only the step's other results
    any_order: whether the field is exempt from the check of the order of synthesis, because it needs no value of the
        variables that it names
    unique: whether a list with a repeated item is refused; by default one that names variables is
    always_written: whether the field is written at its default too
    parse: converts the value of a field, or each item of a list or table, in place of the check of its type; raises
        ValueError
    fix: end of a message about a wrong value
    search_values: values that a search tries
    """

    help: str
    ge: float | None = None
    gt: float | None = None
    le: float | None = None
    lt: float | None = None
    names: Literal["variables", "terms"] | None = None
    kinds: tuple[str, ...] = ()
    inherit: str | None = None
    reported: bool = False
    filters_rows: bool = False
    changes_no_data: bool = False
    # A recipe is refused where a field of a synthesis step names a variable that this step or a later one makes, since
    # its confidential value could enter the release. With any_order, drawing still sees no confidential value of its
    # own record and none of a later target (sfumato.engine.execution.making.data_for_drawing).
    any_order: bool = False
    unique: bool | None = None
    always_written: bool = False
    parse: Callable[[object], Any] | None = None
    fix: str = ""
    search_values: SearchValues | None = None

    @property
    def refuses_repeats(self) -> bool:
        """Return whether a list with a repeated item is refused."""
        return self.names == "variables" if self.unique is None else self.unique

    @property
    def limits_text(self) -> str:
        """Return the limits in words, such as ``at least 1 and at most 10``."""
        words = (("at least", self.ge), ("above", self.gt), ("at most", self.le), ("below", self.lt))
        return " and ".join(f"{word} {_format_limit(limit)}" for word, limit in words if limit is not None)


@dataclass(frozen=True, slots=True)
class Variant:
    """Changes to the Param of a field's annotated type: ``Annotated[Known, Variant("variables of the key")]``.

    Each field replaces that of the Param; None leaves it unchanged.
    """

    help: str | None = None
    inherit: str | None = None
    kinds: tuple[str, ...] | None = None
    reported: bool | None = None
    filters_rows: bool | None = None

    def apply_to(self, param: Param) -> Param:
        """Return the Param with these changes."""
        own = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return dataclasses.replace(param, **{name: value for name, value in own.items() if value is not None})


@dataclass(frozen=True, slots=True)
class ParamInfo:
    """One declared field.

    name: name of the field
    type: its type
    param: its declaration
    default: its default; ``dataclasses.MISSING`` where it must be given
    """

    name: str
    type: Any
    param: Param
    default: Any

    @property
    def is_required(self) -> bool:
        """Return whether a recipe must give the field."""
        return self.default is dataclasses.MISSING

    @property
    def choices(self) -> tuple[str, ...]:
        """Return the allowed words where the type is a Literal or an enumeration; empty otherwise."""
        kind = _without_none(self.type)
        if isinstance(kind, type) and issubclass(kind, StrEnum):
            return tuple(kind)
        return tuple(typing.get_args(kind)) if typing.get_origin(kind) is Literal else ()


def declared_params(section: type[Section]) -> Iterator[ParamInfo]:
    """Yield the declared fields of a class, except those outside its table."""
    for field, base, param in _annotated_fields(section):  # type: ignore[arg-type] # a class is hashable whatever its instances are
        default = field.default
        if field.default_factory is not dataclasses.MISSING:
            default = field.default_factory()
        yield ParamInfo(field.name, base, param, default)


def declared_keys(section: type[Section]) -> tuple[str, ...]:
    """Return the names of the declared fields of a class."""
    return tuple(info.name for info in declared_params(section))


@functools.cache
def _annotated_fields(section: type[Section]) -> tuple[tuple[dataclasses.Field[Any], Any, Param], ...]:
    """Return the fields of a class with their types and Params."""
    # Cached, since reading annotations takes long.
    hints = typing.get_type_hints(section, include_extras=True)
    fields = (field for field in dataclasses.fields(section) if field.name not in section.unwritten)  # type: ignore[arg-type]
    return tuple((field, *_type_and_param(hints[field.name])) for field in fields)


def _type_and_param(hint: Any) -> tuple[Any, Param]:
    """Return the type of an annotated field, and its Param with variants applied.

    Raises TypeError or ValueError without a Param.
    """
    base, param, *variants = typing.get_args(hint)
    if not isinstance(param, Param):
        raise TypeError(f"{hint} has no Param")
    for variant in variants:
        param = variant.apply_to(param)
    return base, param


class Section:
    """Base of the tables of a recipe, and of the parameters of methods.

    ``unwritten`` names the fields that are not part of the table; ``example`` shows how the table is written.
    """

    __slots__ = ()

    unwritten: ClassVar[tuple[str, ...]] = ()
    example: ClassVar[str] = ""

    @classmethod
    def read_section(cls, table: object, place: str, *, others: tuple[str, ...] = (), **unwritten: Any) -> Self:
        """Create the section from a recipe's table, which may have the keys ``others``.

        Raises BadInput at ``place.key``.
        """
        if not isinstance(table, Mapping):
            raise BadInput(place, "must be a table" + (f", such as {cls.example}" if cls.example else ""))
        infos = {info.name: info for info in declared_params(cls)}
        own = {key: value for key, value in table.items() if key not in others or key in infos}
        check_known_keys(own, (*infos, *others), place)
        for info in infos.values():
            if info.is_required and info.name not in own:
                words = f"; one of {', '.join(info.choices)}" if info.choices else ""
                raise BadInput(join_place(place, info.name), f"must be given: {info.param.help}{words}")
        values = {
            key: convert_value(value, infos[key].type, infos[key].param, join_place(place, key))
            for key, value in own.items()
        }
        found = cls(**unwritten, **values)
        found.check_fields(place)
        return found

    def check_fields(self, place: str) -> None:
        """Raise BadInput where fields contradict each other; called when a table is read."""
        self.check_repeats(place)

    def to_table(self) -> dict[str, Any]:
        """Return the table of the fields that differ from their defaults, as a recipe writes it."""
        return {
            info.name: to_plain_value(getattr(self, info.name))
            for info in declared_params(type(self))
            if info.is_required or info.param.always_written or getattr(self, info.name) != info.default
        }

    def check_repeats(self, place: str) -> None:
        """Raise BadInput where a list of unique items has a repeated one."""
        for info in declared_params(type(self)):
            items = getattr(self, info.name)
            if not info.param.refuses_repeats or not isinstance(items, tuple):
                continue
            for i, item in enumerate(items):
                if item in items[:i]:
                    text = to_plain_value(item)
                    shown = f'"{text}"' if isinstance(text, str) else str(text)
                    raise BadInput(f"{join_place(place, info.name)}[{i}]", f"{shown} is listed twice")


def check_known_keys(table: Mapping[str, Any], keys: Sequence[str], place: str) -> None:
    """Raise BadInput at the first key of a table that is not among ``keys``."""
    for key in table:
        if key not in keys:
            known = f"; known: {', '.join(keys)}" if keys else "; this method has no parameters"
            raise BadInput(join_place(place, key), f"unknown key{near_miss_hint(key, keys) or known}")


def join_place(place: str, key: str) -> str:
    """Return the place of a key within a place: ``place.key``, or the key alone at the top."""
    return f"{place}.{key}" if place else key


def _format_limit(number: float) -> str:
    """Return a number as text, 100 as ``100`` and 100000000 as ``100,000,000``."""
    return f"{number:,}" if "e+" in f"{number:g}" else f"{number:g}"


def field_texts(value: object, place: str) -> Iterator[tuple[str, str]]:
    """Yield the texts of a field with their places: a single one, the keys of a table, or the items of a list."""
    if value is None:
        return
    if isinstance(value, str):
        yield place, value
    elif isinstance(value, Mapping):
        yield from ((f"{place}.{key}", key) for key in value)
    elif isinstance(value, tuple):
        yield from ((f"{place}[{i}]", item) for i, item in enumerate(value))


def to_plain_value(value: object) -> Any:
    """Return a field's value as written in TOML and JSON; types of our own have a ``written`` property."""
    if hasattr(value, "written"):
        return value.written
    if isinstance(value, Section):
        return value.to_table()
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(key): to_plain_value(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [to_plain_value(item) for item in value]
    return value


def convert_value(value: object, kind: Any, param: Param, place: str) -> Any:
    """Return a value from TOML, converted to the declared type. Raises BadInput."""
    kind = _without_none(kind)
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin is tuple:
        if not isinstance(value, (list, tuple)):
            raise BadInput(place, f"must be a list, such as [{_example_text(args[0])}]")
        return tuple(convert_value(item, args[0], param, f"{place}[{i}]") for i, item in enumerate(value))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        if not isinstance(value, Mapping):
            raise BadInput(place, f"must be a table, such as {{ price = {_example_text(args[1])} }}")
        return {str(key): convert_value(item, args[1], param, f"{place}.{key}") for key, item in value.items()}
    # After lists and tables, so that it converts each of their items.
    if parse := param.parse or getattr(kind, "parse", None):
        try:
            return parse(value)
        except ValueError as error:
            raise BadInput(place, str(error)) from None
    if origin is Literal:
        if value not in args:
            raise _unknown_word_error(value, list(map(str, args)), place)
        return value
    if kind is Any:
        return check_plain_value(value, place)
    if issubclass(kind, Section):
        return kind.read_section(value, place)
    if issubclass(kind, StrEnum):
        try:
            return kind(str(value))
        except ValueError:
            raise _unknown_word_error(value, list(kind), place) from None
    return _convert_scalar(value, kind, param, place)


def _without_none(kind: Any) -> Any:
    """Return the type of a field without the alternative None."""
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        return next(arg for arg in typing.get_args(kind) if arg is not type(None))
    return kind


def _unknown_word_error(value: object, words: list[str], place: str) -> BadInput:
    return BadInput(place, f'"{value}" is not one of {", ".join(words)}{near_miss_hint(str(value), words)}')


def check_plain_value(value: object, place: str) -> Any:
    """Return a plain value of TOML, or a list or table of them. Raises BadInput."""
    if isinstance(value, Mapping):
        return {str(key): check_plain_value(item, f"{place}.{key}") for key, item in value.items()}
    if isinstance(value, list):
        return [check_plain_value(item, f"{place}[{i}]") for i, item in enumerate(value)]
    if isinstance(value, (str, bool, int)) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise BadInput(place, f"{value!r} must be a number, text, true or false, a list or a table")


def _example_text(kind: Any) -> str:
    return {str: '"price"', int: "5", float: "0.05"}.get(kind, '"5%"')


def _convert_scalar(value: object, kind: Any, param: Param, place: str) -> Any:
    """Return a truth value, number or text of the declared type, within its limits. Raises BadInput."""
    words = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}
    fix = f"; {param.fix}" if param.fix else ""
    # bool is a subclass of int: true is no number.
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if type(value) is not kind:
        raise BadInput(place, f"{value!r} must be {', '.join(filter(None, [words[kind], param.limits_text]))}{fix}")
    if kind in (int, float):
        assert isinstance(value, (int, float))
        outside = (
            not math.isfinite(value)
            or (param.ge is not None and value < param.ge)
            or (param.gt is not None and value <= param.gt)
            or (param.le is not None and value > param.le)
            or (param.lt is not None and value >= param.lt)
        )
        if outside:
            raise BadInput(place, f"{value} must be {param.limits_text or 'a number'}{fix}")
    return value
