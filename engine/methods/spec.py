"""Parameters of a method: declared once, as annotated fields of a frozen dataclass.

    @dataclass(frozen=True, kw_only=True, slots=True)
    class EcdfSpec(Spec):
        variables: Annotated[tuple[str, ...], Param("variables to compare", names="variables")] = ()

From the declaration come the recipe's table and its validation, the command line's help and the app's form.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Self

from ..data.schema import Kind, Schema
from ..data.terms import parse_term
from ..errors import BadInput, suggestion

if TYPE_CHECKING:
    from ..data.microdata import Microdata


@dataclass(frozen=True, slots=True)
class Param:
    """What a field is for and what it may be.

    ``names`` says that its text (or the keys of its table) names ``"variables"`` of the schema or predictor
    ``"terms"``; ``kinds`` limits the variables to some kinds. ``inherit`` names a method: left out, the field takes
    the value that the recipe's first measure of that method has.

    A result row says every field that differs from its default. ``told`` ones it says always, as completed for the release.
    ``selects`` marks a field that says which rows there are and nothing of how any of them is made: comparisons of runs
    look past it. ``beside`` marks a field of a synthesis step that changes no dataset, only what else the step leaves.

    A recipe is refused where a field of a synthesis step names a variable that this step or a later one makes: its confidential value
    could enter the release. ``any_order`` exempts a field that says how variables are used and needs no value of theirs. Drawing then
    still sees no confidential value of its own record and none of a later target (``sfumato.engine.execution.tasks``).

    ``unique`` refuses a list that holds an item twice; by default a list that names variables does.
    """

    help: str
    ge: float | None = None
    gt: float | None = None
    le: float | None = None
    lt: float | None = None
    names: Literal["variables", "terms"] | None = None
    kinds: tuple[Kind, ...] = ()
    inherit: str | None = None
    told: bool = False
    selects: bool = False
    beside: bool = False
    any_order: bool = False
    unique: bool | None = None

    @property
    def refuses_repeats(self) -> bool:
        return self.names == "variables" if self.unique is None else self.unique

    @property
    def limits(self) -> str:
        """The limits in words, such as ``at least 1 and at most 10``."""
        words = (("at least", self.ge), ("above", self.gt), ("at most", self.le), ("below", self.lt))
        return " and ".join(f"{word} {limit:g}" for word, limit in words if limit is not None)


@dataclass(frozen=True, slots=True)
class Variant:
    """What a field changes of the Param of its annotated type: ``Annotated[Known, Variant("variables of the key")]``."""

    help: str | None = None
    inherit: str | None = None
    kinds: tuple[Kind, ...] | None = None
    told: bool | None = None
    selects: bool | None = None

    def of(self, param: Param) -> Param:
        own = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return dataclasses.replace(param, **{name: value for name, value in own.items() if value is not None})


@dataclass(frozen=True, slots=True)
class ParamInfo:
    """One declared field: its name, type, Param and default (``dataclasses.MISSING`` when it must be given)."""

    name: str
    type: Any
    param: Param
    default: Any

    @property
    def required(self) -> bool:
        """Whether the recipe has to give it."""
        return self.default is dataclasses.MISSING

    @property
    def choices(self) -> tuple[str, ...]:
        """The words allowed, when the type is a Literal."""
        return tuple(typing.get_args(self.type)) if typing.get_origin(self.type) is Literal else ()


@functools.cache
def _declared(spec: type[Spec]) -> tuple[tuple[dataclasses.Field[Any], Any, Param], ...]:
    """The fields of a class with their types and Params: read once, since reading annotations takes long."""
    hints = typing.get_type_hints(spec, include_extras=True)
    return tuple((field, *_annotation(hints[field.name])) for field in dataclasses.fields(spec))  # type: ignore[arg-type]


def _annotation(hint: Any) -> tuple[Any, Param]:
    """The type of an annotated field and its Param, with the variants of the field. Raises TypeError or ValueError without a Param."""
    base, param, *variants = typing.get_args(hint)
    if not isinstance(param, Param):
        raise TypeError(f"{hint} has no Param")
    for variant in variants:
        param = variant.of(param)
    return base, param


class Named(NamedTuple):
    """A variable that a field names: the place in the recipe, the column, and whether the field is exempt from the order of synthesis."""

    place: str
    column: str
    any_order: bool


class Spec:
    """Base of every method's parameters.

    ``redrawable`` says of a synthesis method that a record can be drawn anew by the parameters of its dataset, ``implied`` of a measure that
    a recipe with constraints has it unasked.
    """

    __slots__ = ()

    redrawable: ClassVar[bool] = True
    implied: ClassVar[bool] = False

    @property
    def uses_own_record(self) -> bool:
        """Whether drawing a record uses the confidential values of its own targets: only where the recipe asks for it.

        Where it is False, drawing gets these values in another order of the records.
        """
        return False

    @classmethod
    def params(cls) -> Iterator[ParamInfo]:
        for field, base, param in _declared(cls):  # type: ignore[arg-type] # a class is hashable whatever its instances are
            default = field.default
            if field.default_factory is not dataclasses.MISSING:
                default = field.default_factory()
            yield ParamInfo(field.name, base, param, default)

    @classmethod
    def from_table(cls, table: Mapping[str, Any], place: str) -> Self:
        """The parameters that a recipe's table gives. Raises BadInput at ``place.key``."""
        infos = {info.name: info for info in cls.params()}
        for key in table:
            if key not in infos:
                known = f"; known: {', '.join(infos)}" if infos else "; this method has no parameters"
                raise BadInput(f"{place}.{key}", f"unknown key{suggestion(key, infos) or known}")
        for info in infos.values():
            if info.required and info.name not in table:
                raise BadInput(f"{place}.{info.name}", f"must be given: {info.param.help}")
        values = {
            key: convert(value, infos[key].type, infos[key].param, f"{place}.{key}") for key, value in table.items()
        }
        return cls(**values)

    def to_table(self) -> dict[str, Any]:
        """The table of the fields that differ from their defaults, as a recipe writes it."""
        return {
            info.name: written(getattr(self, info.name))
            for info in self.params()
            if info.required or getattr(self, info.name) != info.default
        }

    def to_full_table(self) -> dict[str, Any]:
        """The table of every field, defaults included."""
        return {info.name: written(getattr(self, info.name)) for info in self.params()}

    def told(self) -> dict[str, Any]:
        """The table of every field as reports say it."""
        return {info.name: told(getattr(self, info.name)) for info in self.params()}

    def settings(self, schema: Schema, released: tuple[str, ...]) -> dict[str, Any]:
        """How a number was made, as its row says it: every field that differs from its default, and those always told."""
        full = self.for_release(schema, released)
        given = self.to_table()
        return {
            info.name: told(getattr(full if info.param.told else self, info.name))
            for info in self.params()
            if info.param.told or info.name in given
        }

    def check_release(self, schema: Schema, released: tuple[str, ...], place: str) -> None:
        """BadInput when the parameters do not suit the variables that the recipe releases. Called as a recipe is read."""

    def for_release(self, schema: Schema, released: tuple[str, ...]) -> Self:
        """The parameters completed by what the recipe releases: defaults that depend on it filled in."""
        return self

    def chain_bytes(self, data: Microdata) -> int:
        """What the draws of a synthesis step's chains take at most, where it is asked to keep them (``sfumato.engine.methods.chains``)."""
        return 0

    def grid(self) -> tuple[float, ...]:
        """The points that a study is computed at, or the blocks of a measure of a whole release; empty for everything else."""
        return ()

    def check(self, schema: Schema, place: str) -> None:
        """BadInput when a field names a variable or a term that the schema does not have, or one of a wrong kind."""
        for where, text in self.predictor_terms(place):
            parse_term(text, schema, where)
        for info in self.params():
            if info.param.names != "variables":
                continue
            for where, text in _texts(getattr(self, info.name), f"{place}.{info.name}"):
                kind = schema.require(text, where).kind
                if info.param.kinds and kind not in info.param.kinds:
                    raise BadInput(where, f'"{text}" is {kind}; this needs {" or ".join(info.param.kinds)}')

    def check_repeats(self, place: str) -> None:
        """BadInput where a list that holds each item once holds one twice."""
        for info in self.params():
            items = getattr(self, info.name)
            if not info.param.refuses_repeats or not isinstance(items, tuple):
                continue
            for i, item in enumerate(items):
                if item in items[:i]:
                    text = written(item)
                    shown = f'"{text}"' if isinstance(text, str) else str(text)
                    raise BadInput(f"{place}.{info.name}[{i}]", f"{shown} is listed twice")

    def columns_named(self, schema: Schema, place: str) -> Iterator[Named]:
        """Every variable that a field names, alone or in a term, in a list, as a key or a value of a table, or in a condition."""
        yield from dict.fromkeys(self._columns_named(schema, place))

    def _columns_named(self, schema: Schema, place: str) -> Iterator[Named]:
        for where, text in self.predictor_terms(place):
            yield from (Named(where, column, False) for column in parse_term(text, schema, where).columns)
        for info in self.params():
            at, exempt = f"{place}.{info.name}", info.param.any_order
            for where, text in _columns(getattr(self, info.name), at, texts=info.param.names is not None):
                if info.param.names == "terms":
                    yield from (Named(where, column, exempt) for column in parse_term(text, schema, where).columns)
                elif text in schema:
                    yield Named(where, text, exempt)

    def predictor_terms(self, place: str) -> Iterator[tuple[str, str]]:
        """Every predictor term that the fields give, with its place in the recipe."""
        for info in self.params():
            if info.param.names == "terms":
                yield from _texts(getattr(self, info.name), f"{place}.{info.name}")


Made = tuple[str, tuple[str, ...], Spec]
"""A synthesis step of a recipe: the method's key, the variables that it makes, its parameters."""


class StudySpec(Spec):
    """Base of the parameters of studies: ``grid`` says at which points one is computed."""

    __slots__ = ()

    def of_recipe(self, steps: Sequence[Made]) -> Self:
        """The parameters with what they mean by the recipe's own synthesis ``steps``. Called as a recipe is read."""
        return self


def _texts(value: object, place: str) -> Iterator[tuple[str, str]]:
    if value is None:
        return
    if isinstance(value, str):
        yield place, value
    elif isinstance(value, Mapping):
        yield from ((f"{place}.{key}", key) for key in value)
    elif isinstance(value, tuple):
        yield from ((f"{place}[{i}]", item) for i, item in enumerate(value))


def _columns(value: object, place: str, *, texts: bool) -> Iterator[tuple[str, str]]:
    """What may name a column in a field's value, at any depth: its ``texts``, and what a type of ours says by ``columns``."""
    if hasattr(value, "columns"):
        yield from ((place, column) for column in value.columns)
    elif isinstance(value, str):
        yield from ((place, value),) if texts else ()
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _columns(key, f"{place}.{key}", texts=texts)
            yield from _columns(item, f"{place}.{key}", texts=texts)
    elif isinstance(value, tuple):
        for i, item in enumerate(value):
            yield from _columns(item, f"{place}[{i}]", texts=texts)


def written(value: object) -> Any:
    """A field's value as TOML and JSON write it; types of our own have a ``written`` property."""
    if hasattr(value, "written"):
        return value.written
    if isinstance(value, Mapping):
        return {str(key): written(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [written(item) for item in value]
    return value


def told(value: object) -> Any:
    """A field's value as the rows of results say it: as written, but for types that are long and say themselves shorter (``told``)."""
    return value.told if hasattr(value, "told") else written(value)


def convert(value: object, kind: Any, param: Param, place: str) -> Any:
    """``value`` as read from TOML, made the declared type. Raises BadInput."""
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return convert(value, next(arg for arg in args if arg is not type(None)), param, place)
    if origin is Literal:
        if value not in args:
            words = [str(arg) for arg in args]
            raise BadInput(place, f'"{value}" is none of {", ".join(words)}{suggestion(str(value), words)}')
        return value
    if origin is tuple:
        if not isinstance(value, (list, tuple)):
            raise BadInput(place, f"must be a list, such as [{_example(args[0])}]")
        return tuple(convert(item, args[0], param, f"{place}[{i}]") for i, item in enumerate(value))
    if origin is not None and issubclass(origin, Mapping):
        if not isinstance(value, Mapping):
            raise BadInput(place, f"must be a table, such as {{ price = {_example(args[1])} }}")
        return {str(key): convert(item, args[1], param, f"{place}.{key}") for key, item in value.items()}
    if hasattr(kind, "parse"):
        try:
            return kind.parse(value)
        except ValueError as error:
            raise BadInput(place, str(error)) from None
    return _scalar(value, kind, param, place)


def _example(kind: Any) -> str:
    return {str: '"price"', int: "5", float: "0.05"}.get(kind, '"5%"')


def _scalar(value: object, kind: Any, param: Param, place: str) -> Any:
    words = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if type(value) is not kind:
        raise BadInput(place, f"{value!r} must be {words[kind]}" + (f", {param.limits}" if param.limits else ""))
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
            raise BadInput(place, f"{value} must be {param.limits or 'finite'}")
    return value
