"""What whoever starts a command or the app says of where runs are computed: on which cluster, in how much memory. Workers inherit it.

It is never a recipe or a workspace that says so: those may come from strangers, and whoever computes reads the confidential table.
"""

from __future__ import annotations

import os
import re

from sfumato.engine.errors import BadInput

MEMORY = "SFUMATO_MEMORY"
"""The environment variable that says how much tasks may have together: ``8 GB``, or ``none`` for no limit."""
DASK = "SFUMATO_DASK"
"""The environment variable with the address of the Dask scheduler that computes."""
NO_LIMIT = "none"
JOBS = min(2, os.cpu_count() or 1)
"""Tasks at a time where nobody says how many."""
LEAST = 256_000_000
"""Less memory than a process has before it computes anything."""
SCHEMES = ("tcp", "tls", "ws", "wss", "ucx")
ENCRYPTED = ("tls://", "wss://")
OPEN_CLUSTER = (
    "the connection to {address} is open: whoever reaches that network can read what the tasks find and have them run anything; "
    "use tls://HOST:PORT with Dask's own settings (distributed.comm.tls), or a network of your own"
)
_SIZE = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*(?:([kmgt])(i?)b?|b)?\s*", re.IGNORECASE)
_ADDRESS = re.compile(
    rf"(?:(?:{'|'.join(SCHEMES)})://)?[^\s/:]+(?:\[[0-9a-fA-F:]+\])?:[0-9]+|[a-z]+://\[[0-9a-fA-F:]+\]:[0-9]+"
)


def dask_address() -> str:
    """The scheduler whose cluster computes; empty where this machine does."""
    return os.environ.get(DASK, "").strip()


def memory_given() -> str:
    """The limit that was given, as it was written; empty where none was."""
    return os.environ.get(MEMORY, "").strip()


def settle_computing(dask: str | None = None, memory: str | None = None) -> None:
    """Say for this process, and the workers it starts, where tasks are computed and in how much memory. None leaves it, empty takes it back.

    Raises BadInput; then nothing is changed.
    """
    dask, memory = (None if text is None else text.strip() for text in (dask, memory))
    if memory:
        parse_memory(memory)
    if dask:
        check_address(dask)
    for name, text in ((MEMORY, memory), (DASK, dask)):
        if text:
            os.environ[name] = text
        elif text is not None:
            os.environ.pop(name, None)


def parse_memory(text: str, place: str = "--memory") -> int | None:
    """Bytes of ``8 GB``, ``500MB``, ``1.5 GiB``; None of ``none``. Raises BadInput."""
    if text.strip().lower() == NO_LIMIT:
        return None
    found = _SIZE.fullmatch(text)
    if found is None:
        raise BadInput(place, f'"{text}" is no size; write one such as "8 GB", or "{NO_LIMIT}" for no limit')
    power = "kmgt".index(found[2].lower()) + 1 if found[2] else 0
    size = int(float(found[1]) * (1024 if found[3] else 1000) ** power)
    if size < LEAST:
        raise BadInput(place, f'"{text}" is too little for any task; write a size such as "8 GB"')
    return size


def check_address(text: str, place: str = "--dask") -> None:
    """Raises BadInput where a text is no address of a scheduler."""
    if _ADDRESS.fullmatch(text) is None:
        raise BadInput(place, f'"{text}" is no address of a Dask scheduler; write one such as "tls://HOST:8786"')
