"""The workspace: projects, tables, runs, the queue and its worker, on a local disk.

Its functions are Sfumato from Python: ``from sfumato import workspace; workspace.synthesise(frame, recipe, directory)``. They are
defined in ``library`` and are loaded when they are accessed.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .library import chains, datasets, results, score, synthesise

__all__ = ["chains", "datasets", "results", "score", "synthesise"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(".library", __name__), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
