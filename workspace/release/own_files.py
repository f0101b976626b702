"""Files that this program released, recognised by the manifest that lies next to them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..errors import StrangeFile
from ..plain_files import read_plain
from ..store.release_folders import MANIFEST_FILE

MOST_BYTES = 16 << 20


def order_in_manifests(files: Sequence[str]) -> str:
    """Return the order of rows that the manifests of these files state; empty unless all state the same."""
    said = {_order_in_manifest(Path(file).expanduser()) for file in files}
    return said.pop() if len(said) == 1 else ""


def _order_in_manifest(file: Path) -> str:
    """Return the order of rows that the manifest next to a file states; empty where it does not list that file."""
    try:
        manifest: Any = json.loads(read_plain(file.parent / MANIFEST_FILE, MOST_BYTES))
        lines = {line["name"]: line["sha256"] for line in manifest["files"]}
        if file.name not in lines:
            return ""
        found = hashlib.sha256(read_plain(file, follow=True)).hexdigest()
        # A manifest speaks for a file only if it has the hash of its bytes.
        return str(manifest["order"]) if lines[file.name] == found else ""
    except (OSError, StrangeFile, ValueError, KeyError, TypeError, RecursionError):
        return ""
