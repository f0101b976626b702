"""Process-wide settings of where runs are computed: on which cluster, in how much memory. Workers inherit them.

They never come from a recipe or a workspace: those may come from strangers, and whoever computes reads the confidential
table.
"""

from __future__ import annotations

import os
import re

from sfumato.engine.errors import BadInput

MEMORY_VARIABLE = "SFUMATO_MEMORY"
"""Environment variable with the memory that tasks may have together: ``8 GB``, or ``none`` for no limit."""
DASK_VARIABLE = "SFUMATO_DASK"
"""The environment variable with the address of the Dask scheduler that computes."""
NO_LIMIT = "none"
DEFAULT_JOBS = min(2, os.cpu_count() or 1)
"""Tasks at a time by default."""
MIN_MEMORY = 256_000_000
"""Bytes that are too few for any process."""
ADDRESS_SCHEMES = ("tcp", "tls", "ws", "wss", "ucx")
ENCRYPTED_SCHEMES = ("tls://", "wss://")
OPEN_CLUSTER_WARNING = (
    "the connection to {address} is open: whoever reaches that network can read what the tasks find and have them run anything; "
    "use tls://HOST:PORT with Dask's own settings (distributed.comm.tls), or a network of your own"
)
_SIZE = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*(?:([kmgt])(i?)b?|b)?\s*", re.IGNORECASE)
_ADDRESS = re.compile(
    rf"(?:(?:{'|'.join(ADDRESS_SCHEMES)})://)?[^\s/:]+(?:\[[0-9a-fA-F:]+\])?:[0-9]+|[a-z]+://\[[0-9a-fA-F:]+\]:[0-9]+"
)


def dask_address() -> str:
    """Return the address of the Dask scheduler; empty where this machine computes."""
    return os.environ.get(DASK_VARIABLE, "").strip()


def memory_setting() -> str:
    """Return the memory limit as the user wrote it; empty where none is set."""
    return os.environ.get(MEMORY_VARIABLE, "").strip()


def set_computing(dask: str | None = None, memory: str | None = None) -> None:
    """Set where this process and its workers compute tasks, and in how much memory.

    None leaves a setting unchanged, an empty text removes it. Raises BadInput; then nothing is changed.
    """
    dask, memory = (None if text is None else text.strip() for text in (dask, memory))
    if memory:
        parse_memory(memory)
    if dask:
        check_dask_address(dask)
    for name, text in ((MEMORY_VARIABLE, memory), (DASK_VARIABLE, dask)):
        if text:
            # The environment is how a worker, a process of its own, inherits them.
            os.environ[name] = text
        elif text is not None:
            os.environ.pop(name, None)


def parse_memory(text: str, place: str = "--memory") -> int | None:
    """Parse a size such as ``8 GB``, ``500MB`` or ``1.5 GiB`` into bytes; None for ``none``. Raises BadInput."""
    if text.strip().lower() == NO_LIMIT:
        return None
    found = _SIZE.fullmatch(text)
    if found is None:
        raise BadInput(place, f'"{text}" is no size; write one such as "8 GB", or "{NO_LIMIT}" for no limit')
    power = "kmgt".index(found[2].lower()) + 1 if found[2] else 0
    size = int(float(found[1]) * (1024 if found[3] else 1000) ** power)
    if size < MIN_MEMORY:
        raise BadInput(place, f'"{text}" is too little for any task; write a size such as "8 GB"')
    return size


def check_dask_address(text: str, place: str = "--dask") -> None:
    """Raise BadInput where a text is no address of a Dask scheduler."""
    if _ADDRESS.fullmatch(text) is None:
        raise BadInput(place, f'"{text}" is no address of a Dask scheduler; write one such as "tls://HOST:8786"')
