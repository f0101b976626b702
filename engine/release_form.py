"""What a recipe's ``[release]`` says of the form of released tables, beside which variables they replace.

    [release]
    order = "original"                    # rows stay in the order of the confidential records
    link = "person"                       # an identifier that says whose row a released one is
    generalised = ["age", "postcode"]     # values are labels: intervals, groups of categories, nodes of a tree, *
    micro_aggregated = ["smokes"]         # values are class means: numbers, not counts or levels

All but the first are for tables that another tool made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from .anonymisation._base import as_generalised, as_micro_aggregated
from .errors import BadInput
from .schema import Role, Schema

__all__ = ["KEYS", "Order", "ReleaseForm"]

Order = Literal["original", "shuffled"]
KEYS = ("order", "link", "generalised", "micro_aggregated")


@dataclass(frozen=True, slots=True)
class ReleaseForm:
    """``order`` of the rows; ``link``, the identifier that pairs records, empty without one; what the values are."""

    order: Order = "shuffled"
    link: str = ""
    generalised: tuple[str, ...] = ()
    micro_aggregated: tuple[str, ...] = ()

    @classmethod
    def from_table(cls, release: Mapping[str, Any], schema: Schema, *, made: bool) -> ReleaseForm:
        """The form that ``[release]`` asks for. Raises BadInput.

        A release that the recipe itself has ``made`` is shuffled unless it says otherwise, and its steps say what becomes
        of values; one that is only scored has the original's order.
        """
        default: Order = "shuffled" if made else "original"
        order = release.get("order", default)
        if order not in get_args(Order):
            raise BadInput("release.order", f'"{order}" is none of {", ".join(get_args(Order))}')
        labels, means = (_variables(release, key, schema) for key in ("generalised", "micro_aggregated"))
        for key, names in (("generalised", labels), ("micro_aggregated", means)):
            if names and made:
                raise BadInput(f"release.{key}", "the recipe's steps say what becomes of values; leave it out")
        for i, name in enumerate(means):
            if name in labels:
                raise BadInput(f"release.micro_aggregated[{i}]", f'"{name}" is generalised too; leave it out of one')
        return cls(order, _link(release, schema), labels, means)

    def to_table(self, *, made: bool) -> dict[str, Any]:
        """The keys of ``[release]`` that are not at their default."""
        table: dict[str, Any] = {} if self.order == ("shuffled" if made else "original") else {"order": self.order}
        lists = {"generalised": list(self.generalised), "micro_aggregated": list(self.micro_aggregated)}
        return {**table, **{key: value for key, value in {"link": self.link, **lists}.items() if value}}

    @property
    def changed(self) -> tuple[str, ...]:
        """The variables that it says are labels or class means."""
        return (*self.generalised, *self.micro_aggregated)

    def released_schema(self, schema: Schema) -> Schema:
        """The schema of tables of this form."""
        changes = {name: as_generalised(schema[name]) for name in self.generalised}
        changes |= {name: as_micro_aggregated(schema[name]) for name in self.micro_aggregated}
        return Schema(tuple(changes.get(variable.name, variable) for variable in schema))


def _variables(release: Mapping[str, Any], key: str, schema: Schema) -> tuple[str, ...]:
    names: Sequence[Any] = release.get(key, [])
    if not isinstance(names, list):
        raise BadInput(f"release.{key}", 'must be a list of columns, such as ["age"]')
    for i, name in enumerate(names):
        schema.require(str(name), f"release.{key}[{i}]")
        if name in names[:i]:
            raise BadInput(f"release.{key}[{i}]", f'"{name}" is listed twice')
    return tuple(map(str, names))


def _link(release: Mapping[str, Any], schema: Schema) -> str:
    name = str(release.get("link", ""))
    if name and schema.require(name, "release.link").role is not Role.IDENTIFIER:
        raise BadInput("release.link", f'"{name}" links records, so it must have the role "identifier"')
    return name
