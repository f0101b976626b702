"""How a chart is drawn: with which characters, and what colour is left to say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .glyphs import BRAILLE, Glyphs

Shade = Literal["background", "dots"]


@dataclass(frozen=True)
class Look:
    """Without ``colour`` series differ in dashes, textures and marks; areas are ``shade``d by either means."""

    glyphs: Glyphs = BRAILLE
    colour: bool = True
    shade: Shade = "background"
