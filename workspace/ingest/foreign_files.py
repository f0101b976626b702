"""Reading of files in a subprocess, such as those of statistical programs. Untrusted: the bytes.

The subprocess (``read_foreign``) has limits of memory and time. The parsers are written in C, and a file that crashes
one ends that process only.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict, replace
from io import BytesIO
from typing import Any

import pandas as pd
import pyarrow as pa

from sfumato.engine.errors import BadInput
from sfumato.engine.recipe.text_format import TextFormat

from .dialects import DetectedFormat, SettingReason
from .file_formats import FileFormat, ReadRequest
from .limits import READ_SECONDS
from .raw_tables import ColumnDescription, RawTable
from .sources import SourceFile

DAMAGED_MESSAGE = "{name} is damaged, or not {kind} file"
TABLE_MARK = b"T"
REFUSAL_MARK = b"E"


def read_in_subprocess(source: SourceFile, form: FileFormat, request: ReadRequest) -> RawTable:
    """Read the table of a file of this format in a subprocess. Raises BadInput, whose message never contains a value."""
    name, place = source.name, request.place
    asked = {
        "sheet": request.sheet,
        "form": None if request.form is None else request.form.to_table(),
        "given_keys": None if request.given_keys is None else dict(request.given_keys),
    }
    # -P: with -m alone a module in the current directory would be imported in place of ours
    command = [sys.executable, "-P", "-m", "sfumato.workspace.ingest.read_foreign", form.name, json.dumps(asked)]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    try:
        done = subprocess.run(
            command,
            input=source.content,
            stdout=subprocess.PIPE,
            # what a parser prints may contain values
            stderr=subprocess.DEVNULL,
            timeout=READ_SECONDS,
            check=False,
            env=environment,
        )
    except subprocess.TimeoutExpired:
        raise BadInput(place, f'the reading of "{name}" took longer than {READ_SECONDS:g} s and was ended') from None
    if done.stdout[:1] == TABLE_MARK:
        return _table_from_bytes(done.stdout[1:])
    if done.stdout[:1] == REFUSAL_MARK:
        told = json.loads(done.stdout[1:])
        message = told["message"].replace("{name}", f'"{name}"').replace("{plain}", name).replace("{kind}", form.kind)
        raise BadInput(told["place"] or place, message)
    # by the kernel, when the machine runs out of memory
    if done.returncode == -signal.SIGKILL:
        raise BadInput(place, f'the reading of "{name}" was ended; the machine may be short of memory')
    raise BadInput(place, DAMAGED_MESSAGE.replace("{name}", f'"{name}"').replace("{kind}", form.kind))


def table_to_bytes(table: RawTable) -> bytes:
    """Serialise a table as an Arrow stream that ``read_in_subprocess`` understands."""
    about = {name: asdict(found) for name, found in table.descriptions.items()}
    columns = {
        f"v{i}": pa.array(values, from_pandas=True) for i, (_, values) in enumerate(table.iterate_columns(table.names))
    }
    if table.tags is not None:
        columns |= {f"t{i}": pa.array(table.tags.iloc[:, i], pa.string(), from_pandas=True) for i in range(table.tags.shape[1])}  # fmt: skip
    written = pd.DataFrame() if table.written is None else table.written
    columns |= {f"w{i}": pa.array(written.iloc[:, i], pa.string(), from_pandas=True) for i in range(written.shape[1])}
    said = {
        "names": table.names,
        "written": list(map(str, written.columns)),
        "tags": [] if table.tags is None else list(map(str, table.tags.columns)),
        "descriptions": about,
        "notes": table.notes,
        "detection": None if table.detection is None else _detection_to_json(table.detection),
    }
    made = pa.table(columns).replace_schema_metadata({"said": json.dumps(said)})
    sink = BytesIO()
    with pa.ipc.new_stream(sink, made.schema) as writer:
        writer.write_table(made)
    return sink.getvalue()


def _table_from_bytes(content: bytes) -> RawTable:
    """Restore the table that ``table_to_bytes`` has serialised."""
    with pa.ipc.open_stream(content) as reader:
        table = reader.read_all()
    said: dict[str, Any] = json.loads(table.schema.metadata[b"said"])
    frame = table.to_pandas()
    names, tags = said["names"], said["tags"]
    values = frame.iloc[:, : len(names)].set_axis(names, axis=1)
    end = len(names) + len(tags)
    kinds = frame.iloc[:, len(names) : end].set_axis(tags, axis=1) if tags else None
    written = frame.iloc[:, end:].set_axis(said["written"], axis=1) if said["written"] else None
    made = RawTable.from_frame(values, _descriptions_from_json(said["descriptions"]), kinds, tuple(said["notes"]))
    return replace(made, detection=_detection_from_json(said["detection"]), written=written)


def _detection_to_json(found: DetectedFormat) -> dict[str, Any]:
    """Return a detected format as a JSON object."""
    return {**asdict(found), "format": found.format.to_table()}


def _detection_from_json(said: Mapping[str, Any] | None) -> DetectedFormat | None:
    """Restore a detected format from its JSON object."""
    if said is None:
        return None
    reasons = (SettingReason(**{**one, "alternatives": tuple(one["alternatives"])}) for one in said["reasons"])
    form = TextFormat.from_table(said["format"])
    return DetectedFormat(
        form, tuple(reasons), tuple(said["header"]), tuple(map(tuple, said["rows"])), said["is_default"]
    )


def _descriptions_from_json(said: Mapping[str, Mapping[str, Any]]) -> dict[str, ColumnDescription]:
    """Restore the descriptions of columns from their JSON objects."""
    return {
        name: ColumnDescription(one["title"], one["labels"], tuple(one["missing"]), one["measure"], one["format"])
        for name, one in said.items()
    }
