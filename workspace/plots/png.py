"""Conversion of an SVG drawing to a PNG picture with cairosvg, the extra ``svg_to_png``."""

from __future__ import annotations

import struct
import zlib

# 8 bytes of signature and 25 of the chunk IHDR, which must come first
HEAD_BYTES = 33
"""Bytes of a picture before which no other chunk may stand."""


def svg_to_png(drawing: str, scale: float = 1.0, note: str = "") -> bytes | None:
    """Return the PNG picture of an SVG document on white, with ``scale`` pixels a unit; None without cairosvg.

    ``note`` is stored as its description.
    """
    try:
        from cairosvg import svg2png
    except (ImportError, OSError):
        return None
    picture = bytes(svg2png(bytestring=drawing.encode(), scale=scale, background_color="white"))
    return picture[:HEAD_BYTES] + _text_chunk("Description", note) + picture[HEAD_BYTES:] if note else picture


def _text_chunk(keyword: str, words: str) -> bytes:
    """Return an uncompressed chunk of text in UTF-8 (iTXt, PNG specification 11.3.4.5)."""
    data = b"iTXt" + keyword.encode("latin-1") + b"\0\0\0\0\0" + words.encode()
    return struct.pack(">I", len(data) - 4) + data + struct.pack(">I", zlib.crc32(data))
