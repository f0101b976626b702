"""Files of other programs: Stata, SPSS, SAS, Excel and Arrow, with what they say of their columns. Untrusted: the bytes.

They are read in a process of its own (``read_in_subprocess``) with limits of memory and time: what parses them is written in C, and a file
that makes it fall ends that process and no other. Of Excel only the values are read, nothing is computed, and no link is followed.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict
from io import BytesIO
from typing import Any

import pyarrow as pa

from sfumato.engine.errors import BadInput

from .limits import READ_SECONDS
from .raw_tables import Description, RawTable
from .sas_transport import MAGIC as TRANSPORT

PROGRAMS = {
    "spss": "an SPSS",
    "por": "an SPSS portable",
    "stata": "a Stata",
    "sas": "a SAS",
    "xpt": "a SAS transport",
    "excel": "an Excel",
    "arrow": "an Arrow",
}
READ = "CSV, TSV, Parquet, Arrow, Excel (.xlsx), SPSS, Stata and SAS files can be read"
SAS_MAGIC = bytes.fromhex("000000000000000000000000c2ea8160b31411cfbd92080009c7318c181f1011")
STATA_VERSIONS = range(0x67, 0x74)
NOT_READ = {
    b"\xd0\xcf\x11\xe0": "is an Excel file of before 2007; save it as .xlsx",
    b"FEA1": "is a Feather file of version 1; write it as version 2 (.arrow)",
}
DAMAGED = "{name} is damaged, or not {kind} file"
MADE = b"T"
REFUSED = b"E"


def program_of(content: bytes) -> str:
    """Which program's file this is, a key of PROGRAMS; empty for text, Parquet, and what is not known."""
    head = content[:600]
    if head.startswith((b"$FL2", b"$FL3")):
        return "spss"
    if b"SPSSPORT" in head.replace(b"\r", b"").replace(b"\n", b"") and b"PORT" in head[:200]:
        return "por"
    old_stata = len(head) > 4 and head[0] in STATA_VERSIONS and head[1] in (1, 2) and head[2:4] == b"\x01\x00"
    if head.startswith(b"<stata_dta>") or old_stata:
        return "stata"
    if head.startswith(SAS_MAGIC):
        return "sas"
    if head.startswith(TRANSPORT):
        return "xpt"
    if head.startswith(b"PK\x03\x04"):
        return "excel"
    return "arrow" if head.startswith((b"ARROW1", b"\xff\xff\xff\xff")) else ""


def read_in_subprocess(content: bytes, name: str, sheet: str, place: str) -> RawTable:
    """The table of a file of another program, read in a process of its own. Raises BadInput, whose message never holds a value."""
    program = program_of(content)
    command = [sys.executable, "-P", "-m", "sfumato.workspace.ingest.read_foreign", program, sheet]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    try:
        done = subprocess.run(
            command,
            input=content,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=READ_SECONDS,
            check=False,
            env=environment,
        )
    except subprocess.TimeoutExpired:
        raise BadInput(place, f'the reading of "{name}" took longer than {READ_SECONDS:g} s and was ended') from None
    kind = PROGRAMS[program]
    if done.stdout[:1] == MADE:
        return _unpacked(done.stdout[1:])
    if done.stdout[:1] == REFUSED:
        told = json.loads(done.stdout[1:])
        message = told["message"].replace("{name}", f'"{name}"').replace("{plain}", name).replace("{kind}", kind)
        raise BadInput(told["place"] or place, message)
    if done.returncode == -signal.SIGKILL:
        raise BadInput(place, f'the reading of "{name}" was ended; the machine may be short of memory')
    raise BadInput(place, DAMAGED.replace("{name}", f'"{name}"').replace("{kind}", kind))


def packed(table: RawTable) -> bytes:
    """The table in bytes that ``read_in_subprocess`` understands."""
    about = {name: asdict(found) for name, found in table.descriptions.items()}
    columns = {f"v{i}": pa.array(table.frame.iloc[:, i], from_pandas=True) for i in range(table.frame.shape[1])}
    if table.tags is not None:
        columns |= {f"t{i}": pa.array(table.tags.iloc[:, i], pa.string(), from_pandas=True) for i in range(table.tags.shape[1])}  # fmt: skip
    said = {
        "names": list(map(str, table.frame.columns)),
        "tags": [] if table.tags is None else list(map(str, table.tags.columns)),
        "descriptions": about,
        "notes": table.notes,
    }
    made = pa.table(columns).replace_schema_metadata({"said": json.dumps(said)})
    sink = BytesIO()
    with pa.ipc.new_stream(sink, made.schema) as writer:
        writer.write_table(made)
    return sink.getvalue()


def _unpacked(content: bytes) -> RawTable:
    with pa.ipc.open_stream(content) as reader:
        table = reader.read_all()
    said: dict[str, Any] = json.loads(table.schema.metadata[b"said"])
    frame = table.to_pandas()
    names, tags = said["names"], said["tags"]
    values = frame.iloc[:, : len(names)].set_axis(names, axis=1)
    kinds = frame.iloc[:, len(names) :].set_axis(tags, axis=1) if tags else None
    return RawTable(values, _descriptions(said["descriptions"]), kinds, tuple(said["notes"]))


def _descriptions(said: Mapping[str, Mapping[str, Any]]) -> dict[str, Description]:
    return {
        name: Description(one["title"], one["labels"], tuple(one["missing"]), one["measure"])
        for name, one in said.items()
    }
