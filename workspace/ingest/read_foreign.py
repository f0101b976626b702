"""Subprocess that reads a file: its bytes on standard input, a table or a refusal on standard output."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from sfumato.engine.errors import BadInput
from sfumato.engine.recipe.text_format import TextFormat

from ..process import forbid_core_dumps
from .file_formats import ReadRequest, format_by_name
from .foreign_files import DAMAGED_MESSAGE, REFUSAL_MARK, TABLE_MARK, table_to_bytes
from .limits import allowed_read_bytes
from .raw_tables import RawTable
from .sources import SourceFile


def read_foreign_table(
    content: bytes,
    name: str,
    sheet: str = "",
    form: Mapping[str, Any] | None = None,
    given_keys: Mapping[str, Any] | None = None,
) -> RawTable:
    """Read the table in the bytes of a file of the named format; ``form`` is a ``[data.format]``.

    Raises BadInput, in whose message ``{name}``, ``{plain}`` and ``{kind}`` stand for the file.
    """
    from .text_files import check_header

    file_format = format_by_name(name)
    if sheet and not file_format.has_sheets:
        raise BadInput("data.sheet", "{name} is {kind} file, which has no sheets; leave it out")
    try:
        # the parent replaces the placeholder, so that this process need not know the name
        own = None if form is None else TextFormat.from_table(form)
        request = ReadRequest("", form=own, sheet=sheet, given_keys=given_keys)
        found = file_format.read(SourceFile("{name}", content), request)
    except (BadInput, MemoryError):
        raise
    except Exception as error:  # noqa: BLE001  (whatever a parser raises, the file is what is wrong)
        if "memory" in str(error).lower() or "malloc" in str(error).lower():
            # parsers in C report a failed allocation as an error of their own
            raise MemoryError from None
        raise BadInput("", DAMAGED_MESSAGE) from None
    check_header(found.names, "{plain}", "")
    return found


def _limit_process(size: int) -> None:
    """Set limits on memory and files, and forbid core dumps."""
    forbid_core_dumps()
    with suppress(ImportError, ValueError, OSError):
        import resource

        # a parser that a file has taken over cannot write to a disk
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        resource.setrlimit(resource.RLIMIT_DATA, (allowed_read_bytes(size), resource.RLIM_INFINITY))


def main() -> None:
    """Read a file from standard input: the first argument names the format, the second says how it is read."""
    content = sys.stdin.buffer.read()
    with os.fdopen(os.dup(1), "wb") as answers:
        # whatever a library prints must not get between the bytes of the answer
        os.dup2(2, 1)
        _limit_process(len(content))
        try:
            answer = TABLE_MARK + table_to_bytes(read_foreign_table(content, sys.argv[1], **json.loads(sys.argv[2])))
        except BadInput as error:
            answer = REFUSAL_MARK + json.dumps({"place": error.place, "message": error.message}).encode()
        except MemoryError:
            size = f"{allowed_read_bytes(len(content)) / (1 << 30):.1f} GiB"
            said = f"{{name}} does not fit into {size} of memory once it is read; read a part of it"
            answer = REFUSAL_MARK + json.dumps({"place": "", "message": said}).encode()
        answers.write(answer)


if __name__ == "__main__":
    main()
