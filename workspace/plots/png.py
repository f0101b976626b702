"""A drawing as a PNG picture, by cairosvg, where the extra ``png`` is installed."""

from __future__ import annotations


def png(drawing: str, scale: float = 1.0) -> bytes | None:
    """The picture of an SVG document on white, ``scale`` pixels a unit; None where cairosvg is not installed."""
    try:
        from cairosvg import svg2png
    except (ImportError, OSError):
        return None
    return bytes(svg2png(bytestring=drawing.encode(), scale=scale, background_color="white"))
