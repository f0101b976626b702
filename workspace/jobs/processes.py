"""Calls of functions in a process of their own.

What takes much memory or time is called beside the app and answers with a value. Arguments and answer go as JSON, never
as pickle: dataclasses, tuples, mappings, members of an enumeration, paths, numbers, text.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import json
import math
import os
import signal
import subprocess
import sys
import time
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, Union, get_args, get_origin, get_type_hints

from sfumato.engine.errors import BadInput, Cancelled, EngineError

from ..errors import WorkspaceError
from ..store.disk import disk_error_message
from .pool import follow_parent

P = ParamSpec("P")
Answer = TypeVar("Answer")
POLL_ANSWER_SECONDS = 0.1
SHORT_OF_MEMORY = "the machine may be short of memory"


def call_in_process(
    function: Callable[..., Answer],
    *arguments: object,
    what: str,
    is_unwanted: Callable[[], bool] = lambda: False,
    seconds: float | None = None,
) -> Answer:
    """Call ``function(*arguments)`` in another process and return its result.

    function: function at the top level of a module
    what: name of the call in error messages
    is_unwanted: function that returns true once the result is not wanted any more
    seconds: longest time that it may take

    Raises the function's BadInput, Cancelled once the result is not wanted, and WorkspaceError for everything else,
    without values of the data.
    """
    # -P: a file in the current directory must not stand in for a module.
    command = [sys.executable, "-P", "-m", "sfumato.workspace.jobs.processes", str(os.getpid())]
    given: str | None = json.dumps([function.__module__, function.__name__, to_json(arguments)])
    pipe = subprocess.PIPE
    deadline = math.inf if seconds is None else time.monotonic() + seconds
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            while True:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    text, _ = process.communicate(given, timeout=POLL_ANSWER_SECONDS)
                    break
                given = None
                if time.monotonic() > deadline:
                    raise WorkspaceError(f"{what} took longer than {seconds:g} s and was ended; nothing was stored")
                if is_unwanted():
                    raise Cancelled(f"{what} is not wanted any more")
        except BaseException:
            process.kill()
            raise
    return _decode_answer(function, text, process.returncode, what)


def _decode_answer(function: Callable[..., Answer], text: str, status: int, what: str) -> Answer:
    """Return the result in the answer of a process, or raise the error that it names."""
    if status < 0:
        raise WorkspaceError(f"{what} was ended by {signal.Signals(-status).name}; {SHORT_OF_MEMORY}")
    if status or not text:
        raise WorkspaceError(f"{what} ended without an answer (status {status})")
    found = json.loads(text)
    if "value" in found:
        answer: Answer = from_json(get_type_hints(function).get("return", Any), found["value"])
        return answer
    if "place" in found:
        raise BadInput(found["place"], found["message"])
    raise WorkspaceError(found["message"] if found["told"] else f"{what} failed: {found['message']}")


def to_json(value: Any) -> Any:
    """Convert a value to what JSON can hold."""
    if dataclasses.is_dataclass(value):
        return {field.name: to_json(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): to_json(inner) for key, inner in value.items()}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Path):
        return str(value)
    return [to_json(inner) for inner in value] if isinstance(value, (tuple, list)) else value


def from_json(kind: Any, value: Any) -> Any:
    """Convert a value that ``to_json`` made back to the type ``kind``."""
    origin, inner = get_origin(kind), get_args(kind)
    if value is None or kind is Any:
        return value
    if origin in (Union, types.UnionType):
        return from_json(next(one for one in inner if one is not type(None)), value)
    if origin is tuple:
        kinds: Iterator[Any] = iter(inner) if inner[-1] is not ... else iter([inner[0]] * len(value))
        return tuple(from_json(one, item) for one, item in zip(kinds, value, strict=True))
    if origin is not None and isinstance(value, dict):
        return {key: from_json(inner[1], item) for key, item in value.items()}
    if origin is not None and issubclass(origin if isinstance(origin, type) else object, Sequence):
        return [from_json(inner[0], item) for item in value]
    if dataclasses.is_dataclass(kind):
        hints = get_type_hints(kind)
        return kind(**{name: from_json(hints[name], item) for name, item in value.items()})  # type: ignore[operator]
    return kind(value) if isinstance(kind, type) and issubclass(kind, (Enum, Path)) else value


def _answer_call(module: str, name: str, arguments: Sequence[Any]) -> dict[str, Any]:
    """Call a function and return its result, or its error, as a table for JSON."""
    function = getattr(importlib.import_module(module), name)
    hints = get_type_hints(function) if hasattr(function, "__annotations__") else {}
    kinds = [kind for name, kind in hints.items() if name != "return"] or [Any] * len(arguments)
    try:
        return {"value": to_json(function(*map(from_json, kinds, arguments)))}
    except BadInput as error:
        return {"place": error.place, "message": error.message}
    except (EngineError, WorkspaceError) as error:
        return {"message": str(error), "told": True}
    except MemoryError:
        return {"message": SHORT_OF_MEMORY, "told": False}
    except Exception as error:  # noqa: BLE001  (whatever it raises is an answer)
        # The text of an error of another library may quote values of the data.
        return {"message": disk_error_message(error) or type(error).__name__, "told": False}


def main() -> None:
    """Read a call from standard input and write its answer to standard output."""
    follow_parent(int(sys.argv[1]))
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as answers:
        # What libraries print goes to standard error: standard output has the answer alone.
        os.dup2(2, 1)
        answers.write(json.dumps(_answer_call(*json.load(sys.stdin))))
    os._exit(
        0
    )  # threads of libraries that are still at work when Python ends have it abort, after the answer was given


if __name__ == "__main__":
    main()
