"""Source of the confidential records: a recipe's ``[data]``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from ..data.declaration import Param, Section
from ..data.schema import MissingPolicy, Schema
from ..errors import BadInput
from .text_format import TextFormat

HOW_TO_HOLD_OUT = (
    'add holdout = 0.2 under [data], a share of the records that no release is made of, or holdout = "column", a column of the file '
    "that says which they are"
)
"""What a recipe without control records has to say to have some."""


def _parse_holdout(value: object) -> float | str:
    """Return a share or a column name. Raises ValueError."""
    if (isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1) or (
        isinstance(value, str) and value
    ):
        return value
    raise ValueError(
        f"{value!r} must be a share above 0 and below 1, such as 0.2, or the column that says which records are controls; leave it out "
        "where no record is held out"
    )


@dataclass(frozen=True, slots=True)
class DataSource(Section):
    """Source of the confidential records: file and its format, filter, sample, missing-value policy, and control
    records.

    holdout: share of the records that no release is made of, or the column of the file that marks them by 0 and 1, no
        and yes, false and true, or training and control; None without controls
    format: None for the format that the file's first lines show
    sheet: of an Excel file, the first by default
    """

    file: Annotated[str, Param("the confidential file")] = ""
    where: Annotated[str, Param("which records, a DuckDB expression such as price > 0")] = ""
    sample: Annotated[
        int | None,
        Param("how many records, chosen by the seed; left out, all", ge=1, fix="leave it out for all records"),
    ] = None
    missing: Annotated[MissingPolicy, Param("how records with a missing value are handled")] = MissingPolicy.REFUSE
    holdout: Annotated[
        float | str | None,
        Param(
            "control records, of which no release is made: a share such as 0.2, or the column that says which; left out, none",
            parse=_parse_holdout,
        ),
    ] = None
    format: Annotated[TextFormat | None, Param("how a file of text is read; left out, as its first lines show")] = None
    sheet: Annotated[str, Param("the sheet of an Excel file; left out, the first")] = ""
    screen: Annotated[
        int | None,
        Param(
            "how many of the records that are not held out a search looks at first; as large a share of these is held out in place "
            "of the others, which are not read; left out, all",
            ge=10,
            fix="leave it out for all records",
        ),
    ] = None
    rows: Annotated[str, Param('what the records are, in the plural, such as "person-years"; left out, people')] = ""
    order: Annotated[
        str,
        Param(
            "the variable by which the records of a unit are ordered, such as a wave or a line of the household; left out, the order in "
            "the file",
            names="variables",
        ),
    ] = ""
    largest_unit: Annotated[
        int | None,
        Param(
            "the most records of a unit that a privacy account protects; of larger units no more are counted; left out, no account is of "
            "units",
            ge=1,
            le=1000,
            fix="leave it out where nothing bounds them",
        ),
    ] = None
    complete_cases: Annotated[
        tuple[str, ...],
        Param(
            'variables of which each record must have a value, with missing = "keep": other records are dropped',
            names="variables",
        ),
    ] = ()

    @classmethod
    def from_table(cls, table: Mapping[str, Any]) -> DataSource:
        """Create the source that a recipe's ``[data]`` describes. Raises BadInput."""
        return cls.read_section(table, "data")

    @property
    def is_random(self) -> bool:
        """Return whether seed and key decide which records these are: by a sample, a screening or a held-out share."""
        return self.sample is not None or self.screen is not None or isinstance(self.holdout, int | float)

    def check_variables(self, schema: Schema) -> None:
        """Raise BadInput where the column of the controls is a variable too, a variable may be missing although missing
        values never stay, or ``complete_cases`` names what is no variable or changes nothing.
        """
        for variable in schema:
            if variable.may_be_missing and self.missing is not MissingPolicy.KEEP:
                raise BadInput(
                    f"variables.{variable.name}.may_be_missing",
                    f'no record lacks a value with missing = "{self.missing}"; write missing = "keep" under [data], or leave it out',
                )
        if self.order:
            if schema.require_variable(self.order, "data.order").role.is_identifier:
                raise BadInput(
                    "data.order", f'"{self.order}" is an identifier, which orders no records; name another variable'
                )
            if schema.unit is None:
                raise BadInput(
                    "data.order",
                    'no variable has the role "unit"; give it to the one that numbers the units, or leave this out',
                )
        for name in self.complete_cases:
            schema.require_variable(name, "data.complete_cases")
        if self.complete_cases and self.missing is not MissingPolicy.KEEP:
            raise BadInput(
                "data.complete_cases",
                f'changes nothing with missing = "{self.missing}", which is about every variable; write missing = "keep", or leave it out',
            )
        if isinstance(self.holdout, str) and self.holdout in schema:
            raise BadInput(
                f"variables.{self.holdout}",
                "says which records are controls, so it is neither synthesised nor measured nor released; leave it out here",
            )
