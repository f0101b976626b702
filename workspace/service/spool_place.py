"""Where the columns of a long file lie while it is read into a workspace."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..ingest.spooled_columns import SpoolPlace


def spool_place(directory: Path) -> SpoolPlace:
    """Return where the columns of a long file lie while it is imported: on the disk of the workspace."""
    from ..ingest.spooled_columns import SpoolPlace
    from ..store import table_manifests

    directory = directory.absolute()
    folder = next((one for one in (directory, *directory.parents) if one.is_dir()), directory)
    return SpoolPlace(folder, table_manifests.PART_ROWS)
