"""Parameters of a method: declared once, as annotated fields of a frozen dataclass.

    @dataclass(frozen=True, kw_only=True, slots=True)
    class EcdfSpec(Spec):
        variables: Annotated[tuple[str, ...], Param("variables to compare", names="variables")] = ()

From the declaration come the recipe's table and its validation, the command line's help and the app's form.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

from ..data.declaration import LeverValues, Param, ParamInfo, Section, Variant, convert, declared, texts, written
from ..data.schema import Schema, check_names
from ..data.terms import parse_term

if TYPE_CHECKING:
    from ..data.microdata import Microdata

__all__ = [
    "LeverValues",
    "Made",
    "Named",
    "Param",
    "ParamInfo",
    "Spec",
    "StudySpec",
    "Variant",
    "convert",
    "told",
    "written",
]


class Named(NamedTuple):
    """A variable that a field names: the place in the recipe, the column, and whether the field is exempt from the order of synthesis."""

    place: str
    column: str
    any_order: bool


class Spec(Section):
    """Base of every method's parameters.

    ``redrawable`` says of a synthesis method that a record can be drawn anew by the parameters of its dataset, ``slow`` that it takes many times as long as
    others, as one that samples chains of all records does: a search tries it where a recipe names it. ``implied`` says of a measure that a recipe with constraints has it unasked.
    """

    __slots__ = ()

    redrawable: ClassVar[bool] = True
    slow: ClassVar[bool] = False
    implied: ClassVar[bool] = False

    @property
    def uses_own_record(self) -> bool:
        """Whether drawing a record uses the confidential values of its own targets: only where the recipe asks for it.

        Where it is False, drawing gets these values in another order of the records.
        """
        return False

    def steady_seconds(self, variables: int) -> float:
        """Processor seconds of a fit of so many variables beside those that grow with the records: where something is fitted to tables alone."""
        return 0.0

    @property
    def units(self) -> tuple[str, ...]:
        """The variables that say whose a record is, of which a synthesis step releases nothing: records made anew lack them."""
        return ()

    @classmethod
    def params(cls) -> Iterator[ParamInfo]:
        return declared(cls)

    @classmethod
    def from_table(cls, table: Mapping[str, Any], place: str) -> Self:
        """The parameters that a recipe's table gives. Raises BadInput at ``place.key``."""
        return cls.read_section(table, place)

    def check_fields(self, place: str) -> None:
        """Nothing: a recipe checks repeats itself, since stored ones may have some (``check_repeats``)."""

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

    def shadows_a_task(self) -> float:
        """How often a task of a measure that ``refits`` carries out the steps of the recipe; 0 for everything else."""
        return 0.0

    def check(self, schema: Schema, place: str) -> None:
        """BadInput when a field names a variable or a term that the schema does not have, or one of a wrong kind."""
        for where, text in self.predictor_terms(place):
            parse_term(text, schema, where)
        check_names(self, schema, place)

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
                yield from texts(getattr(self, info.name), f"{place}.{info.name}")


Made = tuple[str, tuple[str, ...], Spec]
"""A synthesis step of a recipe: the method's key, the variables that it makes, its parameters."""


class StudySpec(Spec):
    """Base of the parameters of studies: ``grid`` says at which points one is computed."""

    __slots__ = ()

    def of_recipe(self, steps: Sequence[Made]) -> Self:
        """The parameters with what they mean by the recipe's own synthesis ``steps``. Called as a recipe is read."""
        return self


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


def told(value: object) -> Any:
    """A field's value as the rows of results say it: as written, but for types that are long and say themselves shorter (``told``)."""
    return value.told if hasattr(value, "told") else written(value)
