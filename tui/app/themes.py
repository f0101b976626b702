"""Themes of the app: dark, light, high contrast, and the terminal's own colours."""

from __future__ import annotations

from collections.abc import Mapping

from textual.theme import BUILTIN_THEMES, Theme

# Textual's own muted text is a share of what contrasts with the background, which styled text takes for the strongest of all.
_DARK = Theme(
    name="dark", primary="#56b4e9", secondary="#3a7ca5", accent="#e69f00", warning="#e69f00", error="#ff7a6b",
    success="#3ecf7a", foreground="#e4e4e4", background="#14171a", surface="#1a1e22", panel="#262c32",
    variables={"text-muted": "#9aa3ab"},
)  # fmt: skip
_LIGHT = Theme(
    name="light", primary="#0060a0", secondary="#3a7ca5", accent="#8a5a00", warning="#8a5a00", error="#b3261e",
    success="#006828", foreground="#1a1a1a", background="#fafafa", surface="#f1f1f1", panel="#dfe3e6", dark=False,
    variables={"text-muted": "#565c62"},
)  # fmt: skip
_HIGH_CONTRAST = Theme(
    name="high-contrast", primary="#00ffff", secondary="#ffffff", accent="#ffff00", warning="#ffff00", error="#ff8080",
    success="#00ff80", foreground="#ffffff", background="#000000", surface="#000000", panel="#303030",
    text_alpha=1.0,
    variables={"text-muted": "#ffffff", "footer-key-foreground": "#ffff00", "footer-description-foreground": "#ffffff"},
)  # fmt: skip
WITHOUT_COLOUR = "ansi-dark"
THEMES: Mapping[str, Theme] = {
    theme.name: theme
    for theme in (_DARK, _LIGHT, _HIGH_CONTRAST, BUILTIN_THEMES["ansi-dark"], BUILTIN_THEMES["ansi-light"])
}


def initial_theme(saved: str, *, no_color: bool) -> str:
    """Return the name of the theme to start with."""
    # Textual's filter that removes the colours of other themes cannot draw every widget.
    if no_color:
        return WITHOUT_COLOUR
    return saved if saved in THEMES else "dark"
