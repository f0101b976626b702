"""Files that this program released, told by the manifest that lies beside them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..errors import StrangeFile
from ..plain_files import read_plain
from ..store.release_folders import MANIFEST

MOST_BYTES = 16 << 20


def order_written(files: Sequence[str]) -> str:
    """The order that the manifests beside these files say their rows are in; empty unless all say the same.

    A manifest speaks for a file only if it has the hash of its bytes.
    """
    said = {_order(Path(file).expanduser()) for file in files}
    return said.pop() if len(said) == 1 else ""


def _order(file: Path) -> str:
    try:
        manifest: Any = json.loads(read_plain(file.parent / MANIFEST, MOST_BYTES))
        lines = {line["name"]: line["sha256"] for line in manifest["files"]}
        if file.name not in lines:
            return ""
        found = hashlib.sha256(read_plain(file, follow=True)).hexdigest()
        return str(manifest["order"]) if lines[file.name] == found else ""
    except (OSError, StrangeFile, ValueError, KeyError, TypeError, RecursionError):
        return ""
