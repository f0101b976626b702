"""Column names that Sfumato uses itself in stored tables, and that no variable may have."""

from __future__ import annotations

from collections.abc import Iterable

from sfumato.engine.errors import BadInput

KIND_COLUMN_PREFIX = "kind of missing: "
"""Prefix of the column with the code of each missing value of a variable."""


def check_reserved_names(names: Iterable[str]) -> None:
    """Raise BadInput where a variable has a name that Sfumato uses itself."""
    # A stored table would give the values of such a column to another variable, as kinds of its missing values.
    for name in names:
        if name.startswith(KIND_COLUMN_PREFIX):
            raise BadInput(
                f"variables.{name}",
                f'Sfumato uses names that begin with "{KIND_COLUMN_PREFIX}" itself; rename the column, or leave it out',
            )
