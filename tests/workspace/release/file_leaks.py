"""A search of every file below a directory for what must not leave: texts and bytes in any encoding, numbers in any spelling.

It walks the whole directory, so that a file which nobody thought of is searched too, and decodes what it finds: entities of
pages, JSON strings, columns, dictionaries and metadata of Parquet files, archives, base64 and hexadecimal digits.
"""

from __future__ import annotations

import base64
import binascii
import gzip
import html
import json
import math
import re
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

LEAST_DIGITS = 4
"""A number that leaves with so many of a secret's digits gives it away."""
GEOMETRY = re.compile(r'\s(?:d|points|[xy][12]?|c[xy]|r[xy]?|width|height|viewBox|transform|font-size)="[^"]*"')
NUMBER = re.compile(
    r"(?<![\w.,])[-+\u2212]?(?:\d{1,3}(?:[,'\u2019 \u00a0\u2009\u202f]\d{3})+(?:[.,]\d+)?|\d{1,3}(?:\.\d{3})+,\d+|\d*[.,]\d+|\d+)"
    r"(?:[eE][-+]?\d+|\s?[×x]\s?10\^?[-+\u2212]?\d+)?(?:\s?%)?"
)
BASE64 = re.compile(r"[A-Za-z0-9+/_-]{16,}={0,2}")
HEXADECIMAL = re.compile(r"(?:[0-9A-Fa-f]{2}[:\s-]?){8,}")
MARK = "as confidential as the data"
"""What every internal file says of itself that has room for it."""


@dataclass(frozen=True)
class Secrets:
    """What must not be found, each with what it is: ``texts``, ``binaries`` (keys, hashes) and ``numbers``."""

    texts: Mapping[str, str] = field(default_factory=dict)
    binaries: Mapping[str, bytes] = field(default_factory=dict)
    numbers: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Leak:
    """What was found, in which file, and how it stands there."""

    file: str
    what: str
    shown: str


def leaks(directory: Path, secrets: Secrets) -> list[Leak]:
    """Everything in the files below a directory, and in their names, that is a secret."""
    found = []
    for path in sorted(directory.rglob("*")):
        name = str(path.relative_to(directory))
        content = _but_for_sizes(path) if path.is_file() else b""
        parts = [name.encode(), *_decoded(content)]
        found += [Leak(name, what, shown) for what, shown in dict(_found(parts, secrets)).items()]
    return found


def _but_for_sizes(path: Path) -> bytes:
    """The bytes of a file; of a manifest without the true sizes of files beside it, which anybody sees who has them."""
    content = path.read_bytes()
    if path.name == "manifest.json":
        for size in {one.stat().st_size for one in path.parent.iterdir() if one.is_file()}:
            content = re.sub(rb'"bytes": %d\b' % size, b'"bytes": -', content)
    return content


def strayed(public: Path, internal: Path) -> list[str]:
    """The files below ``public`` that have the bytes of an internal one, whatever they are called and hold."""
    inside = {path.read_bytes() for path in internal.rglob("*") if path.is_file()}
    files = (path for path in sorted(public.rglob("*")) if path.is_file())
    return [str(path.relative_to(public)) for path in files if path.read_bytes() in inside]


def _decoded(content: bytes, depth: int = 0) -> Iterator[bytes]:
    """The bytes of a file, and what is in them under some encoding."""
    yield content
    if depth > 2:
        return
    if content[:4] == b"PAR1":
        yield from _of_parquet(content)
    for unpack in (_of_zip, _of_gzip, _of_png):
        for part in unpack(content):
            yield from _decoded(part, depth + 1)
    text = content.decode("utf-8", "replace")
    plain = {
        html.unescape(text),
        unquote(text),
        html.unescape(re.sub("<[^>]*>", "", text)),
        re.sub("[\u00ad\u200b-\u200f\u2060]", "", text),
    }
    plain |= set(_of_json(text))
    for one in sorted(plain - {text}):
        yield one.encode("utf-8", "replace")
    for one in (text, *sorted(plain)):
        for part in {*_of_base64(one), *_of_hexadecimal(one)}:
            yield from _decoded(part, depth + 1) if part.isascii() else [part]


def _of_base64(text: str) -> Iterator[bytes]:
    for run in set(BASE64.findall(text)):
        bare = run.rstrip("=")
        for alphabet in (b"+/", b"-_"):
            try:
                yield base64.b64decode(bare + "=" * (-len(bare) % 4), alphabet, validate=True)
            except (binascii.Error, ValueError):
                continue


def _of_hexadecimal(text: str) -> Iterator[bytes]:
    for run in set(HEXADECIMAL.findall(text)):
        digits = re.sub("[^0-9A-Fa-f]", "", run)
        yield bytes.fromhex(digits[: len(digits) // 2 * 2])


def _of_parquet(content: bytes) -> Iterator[bytes]:
    file = pq.ParquetFile(BytesIO(content))
    schema = file.schema_arrow
    texts = [
        field.name
        for field in schema
        if pa.types.is_dictionary(field.type) or pa.types.is_string(field.type) or pa.types.is_large_string(field.type)
    ]
    yield from (repr(part).encode() for part in (schema.metadata, file.metadata.metadata, file.metadata.created_by))
    yield from (repr(one.metadata).encode() for one in schema)
    for part in (file.metadata.metadata or {}).values():
        try:
            yield base64.b64decode(part, validate=True)
        except (binascii.Error, ValueError):
            yield part
    table = pq.read_table(BytesIO(content), read_dictionary=texts)
    for column in table.columns:
        whole = column.combine_chunks()
        if pa.types.is_dictionary(whole.type):
            yield "\n".join(map(str, whole.dictionary.to_pylist())).encode()
        yield "\n".join(str(value) for value in whole.to_pylist() if value is not None).encode()


def _of_zip(content: bytes) -> Iterator[bytes]:
    if content[:2] == b"PK":
        with zipfile.ZipFile(BytesIO(content)) as archive:
            for member in archive.infolist():
                yield member.filename.encode() + b" " + member.comment
                yield archive.read(member)


def _of_gzip(content: bytes) -> Iterator[bytes]:
    if content[:2] == b"\x1f\x8b":
        yield gzip.decompress(content)


def _of_png(content: bytes) -> Iterator[bytes]:
    at = 8
    while content[:4] == b"\x89PNG" and at + 8 <= len(content):
        size, kind = int.from_bytes(content[at : at + 4], "big"), content[at + 4 : at + 8]
        chunk = content[at + 8 : at + 8 + size]
        if kind in (b"zTXt", b"iTXt"):
            try:
                yield zlib.decompress(chunk.partition(b"\0")[2][1:])
            except zlib.error:
                yield chunk
        at += size + 12


def _of_json(text: str) -> Iterator[str]:
    """The strings of a JSON text without its escapes, in one text."""
    try:
        yield "\n".join(_strings(json.loads(text)))
    except ValueError:
        return


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from (str(key), *_strings(item))
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)
    else:
        yield str(value)


def _found(parts: Iterable[bytes], secrets: Secrets) -> Iterator[tuple[str, str]]:
    texts = {"the mark of internal files": MARK, **secrets.texts}
    for part in parts:
        for what, secret in secrets.binaries.items():
            if secret in part:
                yield what, "as bytes, in hexadecimal digits or in base64"
        text = part.decode("utf-8", "replace")
        folded = text.casefold()
        for what, words in texts.items():
            if words.casefold() in folded:
                yield what, words
        if secrets.numbers:
            plain = GEOMETRY.sub("", text)
            yield from _numbers(plain, secrets.numbers)
            yield from _numbers(plain.replace(",", " ; "), secrets.numbers)  # the cells of a table


def _numbers(text: str, secrets: Mapping[str, float]) -> Iterator[tuple[str, str]]:
    names, values = list(secrets), np.abs(np.array(list(secrets.values())))
    for token in set(NUMBER.findall(text)):
        for value, unit in readings(token):
            near = np.abs(values - value) <= np.maximum(unit, 1e-9 * values)
            for i in np.flatnonzero(near):
                yield names[i], token


def readings(token: str) -> Iterator[tuple[float, float]]:
    """The numbers without their sign that a token may write, each with the unit of its last place.

    Only those of so many significant digits that they could give a secret away.
    """
    percent = 0.01 if token.endswith("%") else 1.0
    plain = re.sub(r"[-+\u2212%\s\u00a0\u2009\u202f'\u2019]", "", re.split(r"[eE×x]", token)[0])
    power = re.search(r"(?:[eE]|10\^?)([-+\u2212]?\d+)\s*%?$", token) if re.search(r"[eE×x]", token) else None
    exponent = int(power.group(1).replace("\u2212", "-")) if power else 0
    if abs(exponent) > 300:
        return
    scale = 10.0**exponent
    english, continental = plain.replace(",", ""), plain.replace(".", "").replace(",", ".")
    for digits in {english, continental}:
        if digits.count(".") > 1 or len(digits.replace(".", "").lstrip("0")) < LEAST_DIGITS:
            continue
        decimals = len(digits.partition(".")[2])
        value, unit = float(digits) * scale * percent, 10.0**-decimals * scale * percent
        if math.isfinite(value):
            yield value, unit


def telling(numbers: Mapping[str, float | None]) -> dict[str, float]:
    """Those of so many digits that finding them is no accident."""
    return {
        what: float(value)
        for what, value in numbers.items()
        if value is not None
        and math.isfinite(value)
        and len(f"{abs(value):.12g}".replace(".", "").lstrip("0").partition("e")[0].rstrip("0")) >= LEAST_DIGITS
    }


def binaries(what: str, hexadecimal: str) -> dict[str, bytes]:
    """A hash as its bytes, and as the digits themselves in case a text breaks off."""
    return {what: bytes.fromhex(hexadecimal), f"{what}, its first half": bytes.fromhex(hexadecimal)[:8]}
