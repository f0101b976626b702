"""Help: every key that works where the user is, read from the live bindings."""

from __future__ import annotations

from textual.app import App, ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.keys import format_key
from textual.screen import Screen
from textual.widgets import Static

from sfumato.tui.widgets.scroll import Scroll

from ..app_protocol import host
from .page import Dialog

SECTIONS = {
    "Grid": "Table",
    "Plot": "Plot",
    "Scroll": "Text",
    "TabLine": "Tabs",
    "Input": "Text field",
    "TextArea": "Text editor",
}
EVERYWHERE = "Everywhere"
OUR_WORDS = {"Focus Next": "Next part of the screen", "Focus Previous": "Part before"}
"""For what the toolkit's own keys do."""


def keys_of(screen: Screen[object]) -> dict[str, dict[str, list[str]]]:
    """The bindings that are active on a screen: section, description, keys as the terminal names them."""
    sections: dict[str, dict[str, list[str]]] = {}
    for active in screen.active_bindings.values():
        binding, node = active.binding, active.node
        if not binding.description:
            continue
        kinds = [kind.__name__ for kind in type(node).__mro__]
        section = next((SECTIONS[kind] for kind in kinds if kind in SECTIONS), "This screen")
        title = EVERYWHERE if node is screen.app else section
        shown = screen.app.get_key_display(binding)
        description = OUR_WORDS.get(binding.description, binding.description)
        sections.setdefault(title, {}).setdefault(description, []).append(shown)
    return {title: sections[title] for title in sorted(sections, key=lambda title: title == EVERYWHERE)}


def key_for(app: App[object], name: str, default: str) -> str:
    """The key that a binding has now, as the terminal names it; ``default`` where the user has given it none."""
    given = host(app).own_keys.get(name)
    return default if given is None else format_key(given.partition(",")[0])


class Keys(Dialog[None]):
    """The keys of the screen below."""

    AUTO_FOCUS = "Scroll"

    def __init__(self, sections: dict[str, dict[str, list[str]]]) -> None:
        super().__init__()
        self._sections = sections

    def compose(self) -> ComposeResult:
        """A title and text that scrolls."""
        with Vertical(classes="dialog tall"):
            yield Static("Keys that work here   (q closes)", classes="dialog-title", markup=False)
            yield Scroll(self._text())

    def _text(self) -> Content:
        lines: list[Content] = []
        for title, actions in self._sections.items():
            lines.append(Content.styled(title, "$primary bold"))
            lines += [
                Content.assemble((f"  {', '.join(keys):<22} ", "bold"), description)
                for description, keys in actions.items()
            ]
            lines.append(Content(""))
        return Content("\n").join(lines)
