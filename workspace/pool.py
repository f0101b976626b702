"""Where a worker's tasks are computed: in the worker itself, or in joblib's processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future
from contextlib import contextmanager
from typing import Any

__all__ = ["Pool", "pool"]


class Pool:
    """Computes in this process, at once: what one job needs."""

    def submit(self, func: Callable[..., Any], *args: Any) -> Future[Any]:
        """A future that is done: of what ``func`` returns or raises."""
        future: Future[Any] = Future()
        try:
            future.set_result(func(*args))
        except Exception as error:  # noqa: BLE001  (the future carries it)
            future.set_exception(error)
        return future

    def close(self) -> None:
        """Nothing to end."""


class ProcessPool(Pool):
    """Computes in processes that are started again when one of them was killed."""

    def __init__(self, jobs: int) -> None:
        self.jobs = jobs

    def _executor(self) -> Executor:
        from joblib.externals.loky import get_reusable_executor

        executor: Executor = get_reusable_executor(max_workers=self.jobs, timeout=60)
        return executor

    def submit(self, func: Callable[..., Any], *args: Any) -> Future[Any]:
        """A future of what ``func`` returns or raises; BrokenExecutor when its process was killed."""
        try:
            return self._executor().submit(func, *args)
        except BrokenExecutor:
            return self._executor().submit(func, *args)

    def close(self) -> None:
        """End the processes, whatever they are doing."""
        from joblib.externals.loky import get_reusable_executor

        get_reusable_executor(max_workers=self.jobs, timeout=60).shutdown(wait=False, kill_workers=True)


@contextmanager
def pool(jobs: int) -> Iterator[Pool]:
    """A pool for so many tasks at a time, ended with the block."""
    opened = Pool() if jobs == 1 else ProcessPool(jobs)
    try:
        yield opened
    finally:
        opened.close()
