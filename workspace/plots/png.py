"""A drawing as a PNG picture, by cairosvg, where the extra ``svg_to_png`` is installed."""

from __future__ import annotations

import struct
import zlib

HEAD_BYTES = 33
"""Bytes of the signature and of the first chunk, after which others may stand."""


def svg_to_png(drawing: str, scale: float = 1.0, note: str = "") -> bytes | None:
    """Return the picture of an SVG document on white, ``scale`` pixels a unit; None where cairosvg is not installed.

    ``note`` is kept in it as its description.
    """
    try:
        from cairosvg import svg2png
    except (ImportError, OSError):
        return None
    picture = bytes(svg2png(bytestring=drawing.encode(), scale=scale, background_color="white"))
    return picture[:HEAD_BYTES] + _text_chunk("Description", note) + picture[HEAD_BYTES:] if note else picture


def _text_chunk(keyword: str, words: str) -> bytes:
    """Return a chunk of text in UTF-8, not compressed (iTXt, PNG 11.3.4.5)."""
    data = b"iTXt" + keyword.encode("latin-1") + b"\0\0\0\0\0" + words.encode()
    return struct.pack(">I", len(data) - 4) + data + struct.pack(">I", zlib.crc32(data))
