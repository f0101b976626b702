"""Generalisation trees that a recipe names by file: read into the recipe, so that it holds all that a run needs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sfumato.engine.errors import BadInput
from sfumato.engine.partition.hierarchies import rows_of_csv

__all__ = ["with_trees"]

SECTIONS = ("anonymisation", "measure", "study")
MOST_BYTES = 16 << 20


def with_trees(table: Mapping[str, Any], beside: Path | None) -> dict[str, Any]:
    """A copy of a recipe's table with trees in place of files' names: ``hierarchies = { education = "education.csv" }``.

    Files have ARX's layout, a line a value: ``value;level 1;...;root``, in UTF-8, and lie beside the recipe. Raises
    BadInput at ``anonymisation[0].hierarchies.education``.
    """
    return {key: _section(value, key, beside) if key in SECTIONS else value for key, value in table.items()}


def _section(steps: Any, section: str, beside: Path | None) -> Any:
    if not isinstance(steps, list):
        return steps
    return [_step(step, f"{section}[{i}].hierarchies", beside) for i, step in enumerate(steps)]


def _step(step: Any, place: str, beside: Path | None) -> Any:
    trees = step.get("hierarchies") if isinstance(step, Mapping) else None
    if not isinstance(trees, Mapping):
        return step
    read = {
        name: _rows(tree, f"{place}.{name}", beside) if isinstance(tree, str) else tree for name, tree in trees.items()
    }
    return {**step, "hierarchies": read}


def _rows(name: str, place: str, beside: Path | None) -> list[list[str]]:
    path = (beside or Path()) / Path(name).expanduser()
    try:
        if path.stat().st_size > MOST_BYTES:
            raise BadInput(place, f'"{name}" has more than {MOST_BYTES >> 20} MiB; a tree has a line a value')
        return [list(row) for row in rows_of_csv(path.read_text("utf-8-sig"))]
    except OSError:
        raise BadInput(place, f'"{name}" cannot be read; a tree is a file beside the recipe, or rows') from None
    except UnicodeDecodeError:
        raise BadInput(place, f'"{name}" is not text in UTF-8') from None
