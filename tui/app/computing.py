"""Form for where runs are computed, and with how much memory, until the app ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sfumato.tui.parts.fields import FormField
from sfumato.workspace.jobs.settings import (
    ENCRYPTED_SCHEMES,
    NO_LIMIT,
    check_dask_address,
    dask_address,
    memory_setting,
    parse_memory,
    set_computing,
)

from ..parts.form import Form

FIELDS = {
    "memory": f'memory for all tasks together, such as 8 GB; empty: most of the free memory; "{NO_LIMIT}": no limit',
    "dask": "the scheduler of a Dask cluster that computes in place of this machine, such as tls://HOST:8786; empty for none. "
    "Its machines read the confidential tables",
}


def computing_form(say: Callable[[str], None]) -> tuple[Form, Callable[[dict[str, Any] | None], None]]:
    """Return the form and the function that applies and reports its answer."""
    now = {"memory": memory_setting(), "dask": dask_address()}

    def settle(answer: dict[str, Any] | None) -> None:
        """Apply the answers and report them."""
        if answer is not None:
            set_computing(str(answer.get("dask", "")), str(answer.get("memory", "")))
            say(computing_text())

    fields = [FormField(name, said, value=now[name]) for name, said in FIELDS.items()]
    return Form("Where runs are computed", fields, _check_computing, topic="running memory"), settle


def _check_computing(table: dict[str, Any]) -> None:
    """Raise BadInput unless memory and address are valid or empty."""
    if memory := str(table.get("memory", "")).strip():
        parse_memory(memory, "memory")
    if dask := str(table.get("dask", "")).strip():
        check_dask_address(dask, "dask")


def computing_text() -> str:
    """Describe where the next runs are computed, in a sentence."""
    address, given = dask_address(), memory_setting()
    memory = parse_memory(given) if given else None
    room = "without a limit of memory" if given and memory is None else f"in at most {given}" if given else ""
    if not address:
        return f"Runs are computed here{f', {room}' if room else ', in most of the memory that is left'}"
    open_line = "" if address.startswith(ENCRYPTED_SCHEMES) else "; the connection is open, see Long runs in the manual"
    return f"Runs are computed on the cluster at {address}{f', {room}' if room else ''}{open_line}"
