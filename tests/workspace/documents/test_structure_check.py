"""The structure check finds what a program would trip over, and nothing in a copy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from sfumato.workspace.documents.structure_check import HEADS, structure_check, structure_lines
from sfumato.workspace.release.dossier import ReleaseDossier, StoredParts
from sfumato.workspace.reporting.tables import full_cell_text

Read = Callable[..., ReleaseDossier]
pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class CopiedParts(StoredParts):
    """Tables of which one copy was released."""

    copy: pa.Table

    def iterate_all_released(self) -> Iterator[pa.Table]:
        """Yield the copy in two pieces, the first of which is short."""
        yield self.copy.slice(0, 3)
        yield self.copy.slice(3)


def differences(dossier: ReleaseDossier) -> dict[str, str]:
    told = [dict(zip(HEADS, map(full_cell_text, line), strict=True)) for line in structure_lines(dossier)]
    return {one["variable"]: one["differs in"] for one in told}


def change_column(dossier: ReleaseDossier, name: str, change: Callable[[pa.ChunkedArray], object]) -> ReleaseDossier:
    """The dossier of a release that is a copy but for a column."""
    table = dossier.read_confidential()
    place = table.column_names.index(name)
    copy = table.set_column(place, name, change(table[name]))
    parts = dossier.stored_parts
    return replace(dossier, stored_parts=CopiedParts(parts.tables, parts.hashes, parts.confidential, copy))


def test_a_copy_differs_in_nothing_and_each_change_is_named(done_run: int, dossier_for: Read) -> None:
    dossier = dossier_for(done_run)
    assert set(differences(change_column(dossier, "age", lambda column: column)).values()) == {""}
    wide = change_column(dossier, "income", lambda column: pc.multiply(column, 2.0))
    assert differences(wide)["income"] == "range"
    holes = change_column(dossier, "income", lambda column: pc.if_else(pc.greater(column, 1000.0), column, None))
    assert differences(holes)["income"].endswith("missing values")
    lost = change_column(dossier, "region", lambda column: pa.array(["north"] * len(column)).dictionary_encode())
    assert differences(lost)["region"] == "2 levels lost"
    new = change_column(
        dossier, "region", lambda column: pa.array(["north", "far"] * (len(column) // 2)).dictionary_encode()
    )
    assert differences(new)["region"] == "1 new levels, 2 levels lost"


def test_the_page_is_internal_and_speaks_of_every_released_variable(hostile: int, dossier_for: Read) -> None:
    page = structure_check(dossier_for(hostile), ())["structure-check.html"].decode()
    assert "INTERNAL: as confidential as the data" in page
    assert "area &lt;b&gt;" in page
    assert "<b>" not in page
