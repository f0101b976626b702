"""Where the confidential records come from: a recipe's ``[data]``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..data.schema import MissingPolicy, Schema
from ..data.toml import known_keys, text_of
from ..errors import BadInput
from .text_format import TextFormat

HOW_TO_HOLD_OUT = (
    'add holdout = 0.2 under [data], a share of the records that no release is made of, or holdout = "column", a column of the file '
    "that says which they are"
)
"""What a recipe without control records has to say to have some."""


@dataclass(frozen=True, slots=True)
class DataSource:
    """Where the confidential records come from: file, how it is read, a filter, how many of them, the missing-value policy, and which are controls.

    ``holdout`` is the share of the records that no release is made of, or the column of the file that says which they are: its
    values are 0 and 1, no and yes, false and true, or training and control. None where there are no controls. ``format`` None: as a file of text shows it;
    ``sheet`` of an Excel file is the first where none is named.
    """

    file: str = ""
    where: str = ""
    sample: int | None = None
    missing: MissingPolicy = MissingPolicy.REFUSE
    holdout: float | str | None = None
    format: TextFormat | None = None
    sheet: str = ""

    @classmethod
    def from_table(cls, table: Mapping[str, Any]) -> DataSource:
        """The source that a recipe's ``[data]`` describes. Raises BadInput."""
        known_keys(table, ("file", "where", "sample", "missing", "holdout", "format", "sheet"), "data")
        sample = table.get("sample")
        if sample is not None and (not isinstance(sample, int) or isinstance(sample, bool) or sample < 1):
            raise BadInput(
                "data.sample", f"{sample!r} must be a whole number, at least 1; leave it out for all records"
            )
        missing = table.get("missing", "refuse")
        if missing not in list(MissingPolicy):
            raise BadInput("data.missing", f'"{missing}" is none of {", ".join(MissingPolicy)}')
        return cls(
            text_of(table, "file", "data"),
            text_of(table, "where", "data"),
            sample,
            MissingPolicy(missing),
            _held_out(table.get("holdout")),
            TextFormat.from_table(table["format"]) if "format" in table else None,
            text_of(table, "sheet", "data"),
        )

    def to_table(self) -> dict[str, Any]:
        """The ``[data]`` table, without what is left at its default."""
        missing = None if self.missing is MissingPolicy.REFUSE else self.missing.value
        table = {
            "file": self.file,
            "where": self.where,
            "sample": self.sample,
            "missing": missing,
            "holdout": self.holdout,
            "format": None if self.format is None else self.format.to_table(),
            "sheet": self.sheet,
        }
        return {key: value for key, value in table.items() if value not in ("", None)}

    @property
    def drawn(self) -> bool:
        """Whether chance has a part in which records these are, by seed and key: a sample, or a share that is held out."""
        return self.sample is not None or isinstance(self.holdout, int | float)

    def check_variables(self, schema: Schema) -> None:
        """BadInput where the column of the controls is a variable too, or one may be missing whose missing values never stay."""
        for variable in schema:
            if variable.may_be_missing and self.missing is not MissingPolicy.KEEP:
                raise BadInput(
                    f"variables.{variable.name}.may_be_missing",
                    f'no record lacks a value with missing = "{self.missing}"; write missing = "keep" under [data], or leave it out',
                )
        if isinstance(self.holdout, str) and self.holdout in schema:
            raise BadInput(
                f"variables.{self.holdout}",
                "says which records are controls, so it is neither synthesised nor measured nor released; leave it out here",
            )


def _held_out(value: object) -> float | str | None:
    share = isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1
    if value is None or share or (isinstance(value, str) and value):
        return value  # type: ignore[return-value]
    raise BadInput(
        "data.holdout",
        f"{value!r} must be a share above 0 and below 1, such as 0.2, or the column that says which records are controls; leave it out "
        "where no record is held out",
    )
