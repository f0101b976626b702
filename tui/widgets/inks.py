"""Rich styles for the inks of a picture, for the colours that the terminal has."""

from __future__ import annotations

from collections.abc import Sequence

from rich.color import Color, ColorSystem, blend_rgb
from rich.console import COLOR_SYSTEMS
from rich.style import Style

from .chart import PALETTE

LIGHT_PALETTE = ("#0072b2", "#d55e00", "#007f5c", "#b0528c", "#a06f00", "#1f78a4", "#000000")
"""Okabe and Ito's colours, the pale ones darkened to stand out from white."""
ANSI_PALETTE = tuple(f"bright_{name}" for name in ("cyan", "yellow", "green", "magenta", "red", "blue", "white"))
DARK_ANSI_PALETTE = ("blue", "red", "green", "magenta", "cyan", "yellow", "black")
HEAT_DARK = ((17, 18, 20, 26, 32, 38, 44, 80, 159), (17, 19, 27, 75), (52, 94, 166, 214))
HEAT_LIGHT = ((195, 153, 117, 75, 33, 26, 20, 18, 17), (153, 75, 27, 18), (223, 215, 166, 88))
STRENGTH = 0.3
"""Share of a series' own colour in the tint of its band."""


def choose_palette(dark: bool, sixteen: bool) -> Sequence[str]:
    """Return the colours for a dark or light background; ANSI's own colours if the terminal has only sixteen."""
    if sixteen:
        return ANSI_PALETTE if dark else DARK_ANSI_PALETTE
    return PALETTE if dark else LIGHT_PALETTE


def colour_system(name: str | None) -> ColorSystem:
    """Return Rich's colour system by its name; Textual takes an unknown one for truecolor."""
    return COLOR_SYSTEMS.get(name or "truecolor", ColorSystem.TRUECOLOR)


def has_sixteen_colours(system: ColorSystem, native_ansi: bool) -> bool:
    """Return whether only the terminal's own sixteen colours are sure to differ."""
    return native_ansi or system == ColorSystem.STANDARD


def band_tint(style: Style, background: Color | None) -> Color | None:
    """Return the background of a band; None if either colour is the terminal's own and cannot be mixed."""
    if style.color is None or background is None or background.is_default or style.color.is_default:
        return None
    mixed = blend_rgb(background.get_truecolor(foreground=False), style.color.get_truecolor(), STRENGTH)
    return Color.from_triplet(mixed)


def tints_stand_out(styles: Sequence[Style], background: Color | None, system: ColorSystem) -> bool:
    """Return whether every band differs from ``background`` after the terminal has rounded its colours."""
    if background is None or background.is_default or system == ColorSystem.STANDARD:
        return False
    tints = [band_tint(style, background) for style in styles]
    plain = background.downgrade(system)
    return all(one is not None and one.downgrade(system) != plain for one in tints)


class InkStyles:
    """Styles of every ink and fill, each created once. ``plain`` are the styles of TEXT to CURSOR."""

    def __init__(self, plain: Sequence[Style], series: Sequence[Style]) -> None:
        """Create the styles from those of the plain inks and of the series."""
        text = plain[0]
        self._background = text.bgcolor
        self._series = series
        self._inks = [text.background_style, *plain, *(text + style for style in series)]
        self._made: dict[tuple[int, int], Style] = {}

    def style_of(self, ink: int, fill: int) -> Style:
        """Return the style of text in ``ink`` on ``fill``."""
        if (ink, fill) not in self._made:
            shade = band_tint(self._series[fill - 1], self._background) if fill else None
            self._made[ink, fill] = self._inks[ink] + Style(bgcolor=shade)
        return self._made[ink, fill]


def heat_shades(*, dark: bool) -> Sequence[str]:
    """Return the colours of nine shades from few to many, of four negative and of four positive differences."""
    # All are of the 256 colours that terminals agree on, so that none is rounded to its neighbour.
    many, fewer, more = HEAT_DARK if dark else HEAT_LIGHT
    return [f"color({number})" for number in (*many, *fewer, *more)]
