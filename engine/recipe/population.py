"""Recipe section ``[population]``: the people whom a recipe's data are about.

A privacy budget belongs to people, not to a file: whatever is released of one population is charged to one ledger. The
name decides which ledger that is. Case, blanks and punctuation do not make another name.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from ..data.declaration import Param, Section
from ..data.schema import Schema, check_variable_names
from ..errors import BadInput

MAX_NAME_LENGTH = 80


_SHOW_NOTHING = "\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef"
"""Letters and marks to Unicode that show nothing (Default_Ignorable_Code_Point, DerivedCoreProperties.txt)."""
_ANY_THAT_SHOWS_NOTHING = re.compile(f"[{_SHOW_NOTHING}]")


def fold_population_name(name: str) -> str:
    """Return the form in which names of populations are compared: letters and digits alone, without case."""
    # Two names that look the same must not have two budgets.
    name = _ANY_THAT_SHOWS_NOTHING.sub("", name)
    # Twice, since case folding can leave a text that is not normalised.
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    # Marks stay: in some scripts they are vowels.
    return "".join(c for c in folded if unicodedata.category(c)[0] in "LNM")


def check_population_name(name: object, place: str) -> str:
    """Return the name of a population without blanks around it. Raises BadInput for one that nobody could read."""
    try:
        return _parse_population_name(name)
    except ValueError as error:
        raise BadInput(place, str(error)) from None


def _parse_population_name(value: object) -> str:
    """Return the name. Raises ValueError where it is no line of plain text with a letter or a digit."""
    if not isinstance(value, str) or not value.strip().isprintable() or not fold_population_name(value):
        raise ValueError("must be the name of the people in one line of plain text, such as residents of the town")
    if len(name := value.strip()) > MAX_NAME_LENGTH:
        raise ValueError(f"has {len(name)} characters; {MAX_NAME_LENGTH} are the most")
    return name


@dataclass(frozen=True, slots=True)
class PopulationStatement(Section):
    """Statement of a recipe about whose data it releases."""

    example = '{ name = "residents of the town" }'

    name: Annotated[
        str,
        Param("the people; everything that is released of them is charged to one ledger", parse=_parse_population_name),
    ]
    identifier: Annotated[str | None, Param("the variable that says who a person is", names="variables")] = None
    size: Annotated[int | None, Param("the number of people in the population, where it is known", ge=1)] = None

    @classmethod
    def from_table(cls, table: Mapping[str, Any], schema: Schema) -> PopulationStatement | None:
        """Create the section of a recipe's table; None without one. Raises BadInput."""
        if not table:
            return None
        found = cls.read_section(table, "population")
        check_variable_names(found, schema, "population")
        return found
