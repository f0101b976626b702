"""Recipe section ``[search]``: settings of a search for a plan that may be released, and whether a search found the
plan.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from ..data.declaration import Param, Section

FEWEST_LOOKS, USUAL_LOOKS, MOST_LOOKS = 10, 40, 400


def _parse_values(value: object) -> tuple[Any, ...]:
    """Return the values of a list. Raises ValueError."""
    if isinstance(value, list) and all(isinstance(item, int | float | str) for item in value):
        return tuple(value)
    raise ValueError(
        f"{value!r} must be a list of values, such as [10, 20, 40]; an empty list leaves the setting alone"
    )


@dataclass(frozen=True, slots=True)
class SearchTable(Section):
    """Settings of a search: number of plans, time limit, objective, and the settings that may change."""

    looks: Annotated[int, Param("how many plans it looks at", ge=FEWEST_LOOKS, le=MOST_LOOKS)] = USUAL_LOOKS
    minutes: Annotated[
        float | None, Param("minutes that it may take: half of them for trying plans; left out, no limit", gt=0)
    ] = None
    objective: Annotated[
        str, Param("the utility measure by which the best is chosen; left out, the first that the recipe measures")
    ] = ""
    levers: Annotated[
        Mapping[str, Any],
        Param(
            "the values to try, by setting, such as m or cart.minbucket; left out, all that a search knows",
            parse=_parse_values,
        ),
    ] = field(default_factory=dict)
    looked_at: Annotated[
        int, Param("how many plans a search looked at before it found this one; written by the search", ge=0)
    ] = 0

    @classmethod
    def from_table(cls, table: Mapping[str, Any]) -> SearchTable | None:
        """Create the section of a recipe's table; None without one. Raises BadInput."""
        return cls.read_section(table, "search") if table else None
