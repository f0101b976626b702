"""Kinds of missing value, ``.A`` to ``.Z`` and ``._``, in the bytes of a SAS transport file.

Readers return all of them as one. A missing number has 0x2E, a letter or 0x5F in its first byte and zeros in the others
(SAS Institute, "The Record Layout of a Data Set in SAS Transport (XPORT) Format", TS-140; version 8: TS-140 revised).
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_NAMESTR = re.compile(rb"HEADER RECORD\*{7}(?:NAMESTR|NAMSTV8) HEADER RECORD!{7}(\d{10})")
_OBSERVATIONS = re.compile(rb"HEADER RECORD\*{7}(?:OBS  |OBSV8)   HEADER RECORD!{7}")
HEADER_LINE_BYTES = 80
NAMESTR_BYTES = 140
"""Bytes of the description of one variable (NAMESTR record)."""
SYSTEM_MISSING = 0x2E
"""First byte of a missing number of the ordinary kind, ``.``."""
MISSING_KINDS = {code: f".{chr(code)}" for code in (*range(0x41, 0x5B), 0x5F)}


@dataclass(frozen=True, slots=True)
class TransportLayout:
    """Positions of the numbers in a SAS transport file.

    start: byte at which the observations begin
    length: bytes of an observation
    numbers: offset and width in an observation of each numeric variable, by name
    """

    start: int
    length: int
    numbers: dict[str, tuple[int, int]]


def find_transport_layout(content: bytes) -> TransportLayout | None:
    """Return where the first table of a transport file has its numbers; None where that cannot be determined."""
    described = _NAMESTR.search(content, 0, 1 << 16)
    if described is None:
        return None
    count = int(described[1])
    first = (described.start() // HEADER_LINE_BYTES + 1) * HEADER_LINE_BYTES
    records = _OBSERVATIONS.search(content, first + NAMESTR_BYTES * count)
    if records is None or not 0 < count <= len(content) // NAMESTR_BYTES:
        return None
    numbers: dict[str, tuple[int, int]] = {}
    length = 0
    for i in range(count):
        one = content[first + i * NAMESTR_BYTES : first + (i + 1) * NAMESTR_BYTES]
        # NAMESTR of TS-140: type (1 for numbers) and length; from byte 84 the position in an observation;
        # from byte 88, in version 8 alone, the long name
        kind, _, width = struct.unpack(">hhh", one[:6])
        place = struct.unpack(">i", one[84:88])[0]
        long_name = one[88:120].rstrip(b" \0")
        name = (long_name or one[8:16].rstrip(b" \0")).decode("utf-8", "replace")
        # a layout with gaps is not understood, and writing at a wrong place would change values
        if place != length or not 0 < width <= 32767 or (kind == 1 and not 2 <= width <= 8):
            return None
        if kind == 1:
            numbers[name] = (place, width)
        length += width
    return TransportLayout(records.start() + HEADER_LINE_BYTES, length, numbers)


def read_missing_kinds(content: bytes, records: int) -> dict[str, NDArray[np.object_]]:
    """Return the kind of each missing number (records,), by variable; variables that have only ``.`` are left out.

    Elsewhere the kind is None.
    """
    found = find_transport_layout(content)
    if found is None or found.start + records * found.length > len(content):
        return {}
    table = np.frombuffer(content, dtype=np.uint8, count=records * found.length, offset=found.start)
    table = table.reshape(records, found.length)
    kinds: dict[str, NDArray[np.object_]] = {}
    for name, (place, width) in found.numbers.items():
        first = table[:, place]
        empty = ~table[:, place + 1 : place + width].any(axis=1)
        tagged = empty & (((first >= 0x41) & (first <= 0x5A)) | (first == 0x5F))
        if tagged.any():
            kinds[name] = np.array([MISSING_KINDS[code] if is_one else None for code, is_one in zip(first.tolist(), tagged.tolist(), strict=True)], dtype=object)  # fmt: skip
    return kinds


def write_missing_kinds(content: bytes, kinds: dict[str, NDArray[np.object_]], records: int) -> bytes:
    """Return the bytes of a file with kinds (records,) in place of missing numbers; None leaves ``.``.

    Raises ValueError where a number is not missing.
    """
    found = find_transport_layout(content)
    if found is None or found.start + records * found.length > len(content):
        raise ValueError("the file is not laid out as expected")
    written = bytearray(content)
    codes = {kind: code for code, kind in MISSING_KINDS.items()}
    for name, of_each in kinds.items():
        place, width = found.numbers[name]
        for i, kind in enumerate(of_each):
            if kind is not None:
                at = found.start + i * found.length + place
                if written[at] != SYSTEM_MISSING or any(written[at + 1 : at + width]):
                    raise ValueError(f"record {i + 1} has a value")
                written[at] = codes[kind]
    return bytes(written)
