"""Tasks on the cluster of a Dask scheduler. Needs the extra ``sfumato[dask]``, and opens network connections: nothing else does.

Every machine of the cluster must have this version of Sfumato, and see the workspace's tables under the same path, on a
disk that all share. The database stays with this process: SQLite's locks do not work over a network. So a task on the
cluster reports no progress, and one that is cancelled is computed to its end, for nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Future
from typing import Any

from ..errors import WorkspaceError
from .pool import Pool

__all__ = ["DaskPool"]

PATIENCE_SECONDS = 10


class DaskPool(Pool):
    """Computes on a cluster, one task at a time in each of its workers."""

    local = False

    def __init__(self, address: str) -> None:
        """Connect. Raises WorkspaceError when there is no such scheduler, or its workers have several threads."""
        try:
            from distributed import Client
        except ImportError:
            raise WorkspaceError("--dask needs the package distributed; install sfumato[dask]") from None
        try:
            self._client = Client(address, timeout=PATIENCE_SECONDS, set_as_default=False)
        except (OSError, ValueError) as error:
            raise WorkspaceError(f"no Dask scheduler answers at {address} ({type(error).__name__})") from None
        threads = self._client.nthreads()
        if not threads or max(threads.values()) > 1:
            self.close()
            raise WorkspaceError(
                f"the Dask cluster at {address} must have workers of one thread each (--nthreads 1), "
                "so that a task's answer does not depend on what is computed beside it"
            )
        self.size = len(threads)
        self._remote: dict[Future[Any], Any] = {}

    def submit(self, func: Callable[..., Any], *args: Any) -> Future[Any]:
        """A future of what ``func`` returns or raises; BrokenExecutor when its Dask worker was killed."""
        future: Future[Any] = Future()
        remote = self._client.submit(func, *args, pure=False, retries=0)
        self._remote[future] = remote
        remote.add_done_callback(lambda done: self._pass_on(done, future))
        return future

    def _pass_on(self, remote: Any, future: Future[Any]) -> None:
        self._remote.pop(future, None)
        if remote.status == "finished":
            future.set_result(remote.result())
        elif remote.status == "error" and type(remote.exception()).__name__ != "KilledWorker":
            future.set_exception(remote.exception())
        else:
            future.set_exception(BrokenExecutor(remote.status))

    def stop(self, future: Future[Any]) -> None:
        """Cancel a task: one that has begun is left alone, and nobody listens to its answer."""
        remote = self._remote.pop(future, None)
        if remote is not None:
            remote.cancel(force=True)

    def close(self) -> None:
        """Leave the cluster, which forgets what it was given."""
        self._client.close()
