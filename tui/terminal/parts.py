"""Parts of the app that rely on private names of Textual, and whether each is on.

Each part declares the names that it needs. It is off under a version of Textual that it was not checked with, if a name
is missing or has other parameters, or with ``SFUMATO_PLAIN_TEXTUAL=1``. The app then behaves as Textual does, only
slower.
"""

from __future__ import annotations

import importlib
import inspect
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version

PLAIN = "SFUMATO_PLAIN_TEXTUAL"
CHECKED = frozenset({"8.2.8"})
"""Versions of Textual with which every part was tested."""


@dataclass(frozen=True)
class TextualPart:
    """Part of the app that uses private names of Textual.

    key: name of the part
    effect: what it does
    needs: names, as ``module:name.name``, with their parameters; None if the name is not called
    """

    key: str
    effect: str
    needs: Mapping[str, str | None]


DIFF_OUTPUT = TextualPart(
    "diff output",
    "only cells that changed are sent",
    {
        "textual.app:App._display": "self screen renderable",
        "textual._compositor:CompositorUpdate.render_segments": "self console",
        "textual._compositor:LayoutUpdate": "strips region",
        "textual._compositor:ChopsUpdate": "chops spans chop_ends",
    },
)
SINGLE_PAINT = TextualPart(
    "single paint",
    "a screen that opens is laid out and painted once",
    {
        "textual.screen:Screen._on_screen_resume": "self event",
        "textual.screen:Screen._on_screen_suspend": "self",
        "textual.screen:Screen._screen_resized": "self size",
        "textual.screen:Screen._compositor_refresh": "self",
        "textual.app:App.batch_update": "self",
        "textual._compositor:Compositor": "",
        "textual.events:ScreenResume": "refresh_styles",
    },
)
RAW_LINES = TextualPart(
    "raw lines",
    "tables draw their lines without borders and padding",
    {
        "textual._styles_cache:StylesCache.__init__": "self",
        "textual._styles_cache:StylesCache.render_line": "self styles y size content_size padding base_background background "
        "render_content_line border_title border_subtitle opacity ansi_theme native_ansi",
    },
)
PAINT_PERIOD = TextualPart(
    "paint period", "two pictures a key without waiting between them", {"textual.screen:UPDATE_PERIOD": None}
)
SHARED_STYLES = TextualPart(
    "shared styles",
    "what widgets that are gone have drawn is let go",
    {"textual._styles_cache:StylesCache.get_inner_outer": "cls base_background background"},
)
PARTS = (DIFF_OUTPUT, SINGLE_PAINT, RAW_LINES, PAINT_PERIOD, SHARED_STYLES)


def is_on(part: TextualPart) -> bool:
    """Return whether a part is on."""
    return not _reason_off(part)


def part_states() -> Sequence[tuple[TextualPart, str]]:
    """Return each part with why it is off; empty if it is on."""
    return [(part, _reason_off(part)) for part in PARTS]


@cache
def textual_version() -> str:
    """Return the installed version of Textual."""
    try:
        return version("textual")
    except PackageNotFoundError:
        return "of an unknown version"


def _reason_off(part: TextualPart) -> str:
    """Return why a part is off; empty if it is on."""
    if os.environ.get(PLAIN, "0") not in ("", "0"):
        return f"{PLAIN} is set"
    return _unmet_need(part.key, textual_version())


@cache
def _unmet_need(key: str, installed: str) -> str:
    """Return what a part lacks under a version of Textual; empty if nothing."""
    # A private name may keep its parameters and change its meaning, so untested versions are left alone.
    if installed not in CHECKED:
        return f"not checked with Textual {installed}"
    part = next(part for part in PARTS if part.key == key)
    missing = [name for name, parameters in part.needs.items() if not _has_name(name, parameters)]
    return f"Textual {installed} has no such {', '.join(missing)}" if missing else ""


def _has_name(name: str, parameters: str | None) -> bool:
    """Return whether a name exists, with these parameters if they are given."""
    module, _, path = name.partition(":")
    try:
        found = importlib.import_module(module)
        for step in path.split("."):
            found = getattr(found, step)
        return parameters is None or list(inspect.signature(found).parameters) == parameters.split()  # type: ignore[arg-type]
    except (ImportError, AttributeError, TypeError, ValueError):
        return False
