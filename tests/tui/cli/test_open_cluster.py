"""A cluster that is reached without encryption is said to be open, before anything is sent to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import sfumato.workspace.jobs.worker_main as workers
from sfumato.workspace.store.workspace import Workspace


@pytest.mark.parametrize(
    ("address", "said"), [("tcp://host:8786", True), ("host:8786", True), ("tls://host:8786", False)]
)
def test_an_open_connection_is_said(
    address: str,
    said: bool,
    workspace: Workspace,
    sfumato: Callable[..., int],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    served: list[Any] = []
    monkeypatch.setattr(workers, "run_worker_process", lambda *given: served.append(given))
    assert sfumato("worker", "--workspace", str(workspace.directory), "--dask", address) == 0
    assert ("is open" in capsys.readouterr().err) is said
    assert served[0][-1] == address
