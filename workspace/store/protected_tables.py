"""Protected tables of a run as its tasks leave them: cells, which are hidden and why, and other tables that fit.

All of it is as confidential as the data: it has every value, and who is alone in a cell.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.engine.data.arrays import Booleans
from sfumato.engine.data.toml import read_toml
from sfumato.engine.errors import BadInput
from sfumato.engine.execution.tasks import TABLES, TABLES_AUDIT
from sfumato.engine.recipe.declared_tables import RecipeTables
from sfumato.engine.recipe.joined_tables import ReleasedTables
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.recipe.steps import complete_stored_table
from sfumato.engine.tables.audit import TableAudit
from sfumato.engine.tables.contributors import ContributorFinding
from sfumato.engine.tables.system import Contributions, PrintedTable, TableSystem

from ..errors import DamagedTable
from ..table_files.printed_tables import CellStatuses
from .tables import TableStore
from .workspace import Workspace, schema_from_json

EARLIER_TABLES = "tables/earlier"
"""Artefact with the tables that earlier releases printed of the same people, as they were when the run was entered."""
EARLIER_STRUCTURE = "earlier"
"""Array that says of which runs they are, as JSON."""
STRUCTURE = "structure"
"""Array with the names of tables, labels and cells, and what was not looked at, as JSON."""
_FINDINGS = "contributor_findings"
_AUDITED = (
    "published", "primary", "levels", "exact_outside", "exact_zeros_shown", "exact_contributor", "short_of_level",
    "undecided", "rise", "fall", "certificate", "tables",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class StoredTables:
    """Protected tables.

    system: atoms and cells of all tables, those of earlier releases among them
    audit: which cells are printed, and what a reader finds out
    frozen: cells that are printed whatever follows: an earlier release printed them, or the recipe says so, (cells,)
    unprotected: unsafe cells that follow from frozen ones, or are frozen, (cells,)
    unprotected_changes: pairs of cells of two releases whose difference follows whatever is hidden
    are_zeros_hidden: whether cells without records are hidden
    are_contributors_examined: whether contributors, who know their own part of each cell, were looked at
    warnings: what was not looked at, or cannot be protected
    release: name of the release that the tables are printed in, beside earlier ones
    """

    system: TableSystem
    audit: TableAudit
    frozen: Booleans
    unprotected: Booleans
    unprotected_changes: tuple[tuple[int, int], ...]
    are_zeros_hidden: bool
    are_contributors_examined: bool
    warnings: tuple[str, ...]
    release: str = ""

    @classmethod
    def from_protected(cls, tables: RecipeTables, release: str = "") -> StoredTables:
        """Build from the protected tables of a recipe."""
        protected = tables.protected
        return cls(
            tables.system,
            protected.audit,
            tables.frozen,
            protected.unprotected,
            protected.unprotected_changes,
            tables.are_zeros_hidden,
            tables.are_contributors_examined,
            tuple(dict.fromkeys((*protected.warnings, *protected.audit.warnings))),
            release,
        )

    @property
    def printed(self) -> tuple[PrintedTable, ...]:
        """Return the tables of this release, in the order of the recipe."""
        return tuple(one for one in self.system.tables if one.release == self.release)

    @cached_property
    def statuses(self) -> CellStatuses:
        """Return what becomes of each cell, and why."""
        audit = self.audit
        return CellStatuses(
            self.system.values,
            self.system.cell_is_whole,
            audit.published,
            audit.primary & ~audit.published,
            self.system.unit_counts,
            audit.by_rule,
            audit.levels,
            audit.rise,
            audit.fall,
            audit.failing | self.unprotected,
            self.are_zeros_hidden,
        )

    @property
    def counts(self) -> dict[str, float]:
        """Return the numbers that a run reports; NaN for what was not examined."""
        counts = {**self.audit.counts, "unprotected": int(self.unprotected.sum())}
        return counts if self.are_contributors_examined else {**counts, "exact_contributor": float("nan")}


def write_protected_tables(tables: TableStore, stored: StoredTables) -> str:
    """Store protected tables, and return the hash of the table."""
    return tables.write_arrays(_arrays_of_tables(stored))


def _arrays_of_tables(stored: StoredTables) -> dict[str, NDArray[Any]]:
    """Return everything as arrays by name; the same tables give the same bytes."""
    system, audit, own = stored.system, stored.audit, stored.system.contributions
    structure = {
        "measures": list(system.measures),
        "whole": [bool(one) for one in system.whole],
        "complete": system.complete,
        "implied": system.implied,
        "cell_names": list(system.cell_names),
        "tables": [
            {"name": one.name, "release": one.release, "variables": list(one.variables), "options": one.options}
            for one in system.tables
        ],
        "rules": list(audit.by_rule),
        _FINDINGS: [
            [[int(cell) for cell in one.known], int(one.cell), one.undecided, int(one.unit), one.is_short]
            for one in audit.contributor_findings
        ],
        "people_affected": int(audit.people_affected),
        "audit_warnings": list(audit.warnings),
        "unprotected_changes": [[int(cell) for cell in pair] for pair in stored.unprotected_changes],
        "are_zeros_hidden": stored.are_zeros_hidden,
        "are_contributors_examined": stored.are_contributors_examined,
        "warnings": list(stored.warnings),
        "release": stored.release,
    }
    return {
        STRUCTURE: np.frombuffer(json.dumps(structure).encode(), dtype=np.uint8),
        "indptr": np.asarray(system.columns.indptr, dtype=np.int64),
        "indices": np.asarray(system.columns.indices, dtype=np.int64),
        "atom_values": system.atom_values,
        **({} if system.doubtful is None else {"doubtful": system.doubtful}),
        "atom_measures": system.atom_measures,
        "cell_measures": system.cell_measures,
        **{f"cells/{at}": one.cells for at, one in enumerate(system.tables)},
        **{f"contributions/{one.name}": getattr(own, one.name) for one in fields(Contributions)},
        **{f"rule/{at}": cells for at, cells in enumerate(audit.by_rule.values())},
        **{name: np.asarray(getattr(audit, name)) for name in _AUDITED},
        "frozen": stored.frozen,
        "unprotected": stored.unprotected,
    }


def read_protected_tables(tables: TableStore, sha256: str) -> StoredTables:
    """Read the protected tables that ``write_protected_tables`` stored. Raises DamagedTable."""
    arrays = tables.read_arrays(sha256)
    try:
        return _tables_from_arrays(arrays)
    except (KeyError, ValueError, TypeError) as error:
        raise DamagedTable(f"the table {sha256[:8]} holds no protected tables ({type(error).__name__})") from None


def _tables_from_arrays(arrays: Mapping[str, NDArray[Any]]) -> StoredTables:
    from scipy import sparse

    structure = json.loads(arrays[STRUCTURE].tobytes())
    indices, indptr = arrays["indices"], arrays["indptr"]
    columns = sparse.csc_matrix(
        (np.ones(len(indices), dtype=np.int64), indices, indptr), (len(arrays["atom_values"]), len(indptr) - 1)
    )
    printed = tuple(
        PrintedTable(
            one["name"],
            one["release"],
            tuple(one["variables"]),
            tuple(tuple((grouping, label) for grouping, label in axis) for axis in one["options"]),
            arrays[f"cells/{at}"],
        )
        for at, one in enumerate(structure["tables"])
    )
    system = TableSystem(
        columns,
        arrays["atom_values"],
        arrays["atom_measures"],
        arrays["cell_measures"],
        tuple(structure["measures"]),
        tuple(structure["whole"]),
        printed,
        tuple(structure["cell_names"]),
        Contributions(**{one.name: arrays[f"contributions/{one.name}"] for one in fields(Contributions)}),
        structure["complete"],
        structure.get("implied", 0),
        arrays.get("doubtful"),
    )
    audit = TableAudit(
        **{name: arrays[name] for name in _AUDITED},
        by_rule={rule: arrays[f"rule/{at}"] for at, rule in enumerate(structure["rules"])},
        contributor_findings=tuple(
            ContributorFinding(tuple(known), *others) for known, *others in structure.get(_FINDINGS, [])
        ),
        people_affected=structure["people_affected"],
        warnings=tuple(structure["audit_warnings"]),
        implied=system.implied,
    )
    return StoredTables(
        system,
        audit,
        arrays["frozen"],
        arrays["unprotected"],
        tuple((first, second) for first, second in structure["unprotected_changes"]),
        structure["are_zeros_hidden"],
        # Earlier versions looked at those alone who are alone in a cell.
        structure["are_contributors_examined"] and _FINDINGS in structure,
        tuple(structure["warnings"]),
        structure["release"],
    )


def read_run_protected_tables(workspace: Workspace, run_id: int) -> StoredTables | None:
    """Read the protected tables of a run as they were audited last; None where it has none. Raises DamagedTable."""
    sha256 = printed_tables_hash(workspace, run_id)
    return read_protected_tables(workspace.tables, sha256) if sha256 else None


def printed_tables_hash(workspace: Workspace, run_id: int) -> str:
    """Return the hash of the protected tables of a run as they were audited last; empty where it has none."""
    rows = workspace.connection.execute(
        "SELECT name, sha256 FROM artefact WHERE run_id = ? AND name IN (?, ?)", (run_id, TABLES, TABLES_AUDIT)
    )
    found = {str(row["name"]): str(row["sha256"]) for row in rows}
    return found.get(TABLES_AUDIT) or found.get(TABLES, "")


def read_earlier_tables(tables: TableStore, sha256: str) -> list[ReleasedTables]:
    """Read the tables that earlier releases printed. Raises DamagedTable, also where their records are gone."""
    arrays = tables.read_arrays(sha256)
    try:
        lines = json.loads(arrays[EARLIER_STRUCTURE].tobytes())
        found = list[ReleasedTables]()
        for at, line in enumerate(lines):
            recipe = Recipe.from_table(complete_stored_table(read_toml(line["recipe"])))
            data = tables.read_microdata(line["table"], schema_from_json(line["schema"]), "confidential")
            shown = tuple(arrays[f"shown/{at}/{number}"] for number in range(line["tables"]))
            people = data.with_units(recipe.schema.unit_declaration)
            found.append(ReleasedTables(line["release"], people, recipe.tables, tuple(line["names"]), shown))
        return found
    except (KeyError, ValueError, TypeError, BadInput) as error:
        raise DamagedTable(f"the table {sha256[:8]} holds no earlier tables ({type(error).__name__})") from None
