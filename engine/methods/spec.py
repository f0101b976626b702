"""Parameters of a method: declared once, as annotated fields of a frozen dataclass.

    @dataclass(frozen=True, kw_only=True, slots=True)
    class EcdfSpec(Spec):
        variables: Annotated[tuple[str, ...], Param("variables to compare", names="variables")] = ()

From the declaration come the recipe's table and its validation, the command line's help and the app's form.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

from ..data.declaration import (
    Param,
    ParamInfo,
    SearchValues,
    Section,
    Variant,
    convert_value,
    declared_params,
    field_texts,
    to_plain_value,
)
from ..data.schema import Schema, check_variable_names
from ..data.terms import parse_term

if TYPE_CHECKING:
    from ..data.microdata import Microdata

__all__ = [
    "ColumnReference",
    "Param",
    "ParamInfo",
    "SearchValues",
    "Spec",
    "StudySpec",
    "SynthesisStepSettings",
    "Variant",
    "convert_value",
    "reported_value",
    "to_plain_value",
]


class ColumnReference(NamedTuple):
    """Variable that a field of a step names.

    place: place in the recipe
    column: its name
    any_order: whether the field is exempt from the order of synthesis
    """

    place: str
    column: str
    any_order: bool


class Spec(Section):
    """Base of every method's parameters.

    redrawable: of a synthesis method, whether single records can be redrawn with the parameters of their dataset
    slow: whether it takes many times as long as others, such as a sampler with chains over all records; a search tries
        it only where a recipe names it
    implied: of a measure, whether a recipe with constraints computes it without naming it
    effect_on_levels: of a synthesis method with ``unit_effect``, whether members share it in levels with an order too
    """

    __slots__ = ()

    redrawable: ClassVar[bool] = True
    slow: ClassVar[bool] = False
    implied: ClassVar[bool] = False
    effect_on_levels: ClassVar[bool] = False

    @property
    def uses_own_record(self) -> bool:
        """Return whether drawing a record uses the confidential values of its own targets.

        Where it is False, the draw function gets these values in another order of the records.
        """
        return False

    def steady_seconds(self, variables: int) -> float:
        """Return the processor seconds of a fit of ``variables`` variables that do not grow with the number of records."""
        return 0.0

    @classmethod
    def params(cls) -> Iterator[ParamInfo]:
        """Yield the declared parameters."""
        return declared_params(cls)

    @classmethod
    def from_table(cls, table: Mapping[str, Any], place: str) -> Self:
        """Read the parameters from a recipe's table. Raises BadInput at ``place.key``."""
        return cls.read_section(table, place)

    def check_fields(self, place: str) -> None:
        """Do nothing: a recipe checks repeated values itself (``check_repeats``)."""

    def to_full_table(self) -> dict[str, Any]:
        """Return the table of every field, defaults included."""
        return {info.name: to_plain_value(getattr(self, info.name)) for info in self.params()}

    def to_reported_table(self) -> dict[str, Any]:
        """Return the table of every field as reports show it."""
        return {info.name: reported_value(getattr(self, info.name)) for info in self.params()}

    def settings(self, schema: Schema, released: tuple[str, ...]) -> dict[str, Any]:
        """Return the settings that a result row states: every field that differs from its default, and those always
        reported.
        """
        full = self.for_release(schema, released)
        given = self.to_table()
        return {
            info.name: reported_value(getattr(full if info.param.reported else self, info.name))
            for info in self.params()
            if info.param.reported or info.name in given
        }

    def check_release(self, schema: Schema, released: tuple[str, ...], place: str) -> None:
        """Raise BadInput where the parameters do not suit the variables that the recipe releases.

        Called when a recipe is read.
        """

    def for_release(self, schema: Schema, released: tuple[str, ...]) -> Self:
        """Return the parameters with defaults that depend on the released variables filled in."""
        return self

    def chain_bytes(self, data: Microdata) -> int:
        """Return the most bytes that the stored draws of a synthesis step's chains take
        (``sfumato.engine.methods.chains``).
        """
        return 0

    def grid(self) -> tuple[float, ...]:
        """Return the points of a study, or the blocks of a measure of a whole release; empty for everything else."""
        return ()

    def shadows_a_task(self) -> float:
        """Return the number of times that a task of a measure with ``refits`` carries out the recipe's steps.

        It is 0 for everything else.
        """
        return 0.0

    def check(self, schema: Schema, place: str) -> None:
        """Raise BadInput where a field names a variable or a term that the schema lacks, or one of a wrong kind."""
        for where, text in self.predictor_terms(place):
            parse_term(text, schema, where)
        check_variable_names(self, schema, place)

    def referenced_columns(self, schema: Schema, place: str) -> Iterator[ColumnReference]:
        """Yield every distinct variable that a field names: alone, in a term, list or table, or in a condition."""
        yield from dict.fromkeys(self._referenced_columns(schema, place))

    def _referenced_columns(self, schema: Schema, place: str) -> Iterator[ColumnReference]:
        """Yield the variables of predictor terms, then those of all fields, with repeats."""
        for where, text in self.predictor_terms(place):
            yield from (ColumnReference(where, column, False) for column in parse_term(text, schema, where).columns)
        for info in self.params():
            at, exempt = f"{place}.{info.name}", info.param.any_order
            for where, text in _possible_column_names(getattr(self, info.name), at, texts=info.param.names is not None):
                if info.param.names == "terms":
                    yield from (
                        ColumnReference(where, column, exempt) for column in parse_term(text, schema, where).columns
                    )
                elif text in schema:
                    yield ColumnReference(where, text, exempt)

    def predictor_terms(self, place: str) -> Iterator[tuple[str, str]]:
        """Yield every predictor term that the fields give, with its place in the recipe."""
        for info in self.params():
            if info.param.names == "terms":
                yield from field_texts(getattr(self, info.name), f"{place}.{info.name}")


SynthesisStepSettings = tuple[str, tuple[str, ...], Spec]
"""A synthesis step of a recipe: the method's key, the variables that it makes, its parameters."""


class StudySpec(Spec):
    """Base of the parameters of studies; ``grid`` gives the points at which one is computed."""

    __slots__ = ()

    def of_recipe(self, steps: Sequence[SynthesisStepSettings]) -> Self:
        """Return the parameters with references to the recipe's own synthesis ``steps`` resolved.

        Called when a recipe is read.
        """
        return self


def _possible_column_names(value: object, place: str, *, texts: bool) -> Iterator[tuple[str, str]]:
    """Yield the places and texts in a field's value that may name a column, at any depth.

    These are its texts where ``texts`` is set, and the ``columns`` of our own types.
    """
    if hasattr(value, "columns"):
        yield from ((place, column) for column in value.columns)
    elif isinstance(value, str):
        yield from ((place, value),) if texts else ()
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _possible_column_names(key, f"{place}.{key}", texts=texts)
            yield from _possible_column_names(item, f"{place}.{key}", texts=texts)
    elif isinstance(value, tuple):
        for i, item in enumerate(value):
            yield from _possible_column_names(item, f"{place}[{i}]", texts=texts)


def reported_value(value: object) -> Any:
    """Return a field's value as result rows show it: the short form ``told`` of types that have one, else as written."""
    return value.told if hasattr(value, "told") else to_plain_value(value)
