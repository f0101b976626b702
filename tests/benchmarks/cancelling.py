"""How long a cancelled run's task lives on, and what processes of their own cost. Prints a table; run it from anywhere:

python tests/benchmarks/cancelling.py
"""

from __future__ import annotations

import contextlib
import statistics
import time
from concurrent.futures import BrokenExecutor

import numpy as np

from sfumato.workspace.jobs.pool import ProcessPool
from sfumato.workspace.store.process_identity import process_start

TIMES = 10


def endless_python() -> None:
    sum(range(10**12))


def endless_numpy() -> None:
    rng = np.random.default_rng(1)
    np.sort(rng.random(10**8))


def computing(executor_pids: set[int]) -> bool:
    return any(process_start(pid) for pid in executor_pids)


def seconds_to_kill(func: object) -> float:
    pool = ProcessPool(1)
    try:
        pool.submit_task(abs, -1).result()
        future = pool.submit_task(func)  # type: ignore[arg-type]
        pids = set(pool._busy[future]._executor._processes)  # type: ignore[union-attr]
        time.sleep(0.5)
        asked = time.perf_counter()
        pool.stop_task(future)
        while computing(pids):
            time.sleep(0.001)
        return time.perf_counter() - asked
    finally:
        with contextlib.suppress(BrokenExecutor):
            pool.close()


def main() -> None:
    for name, func in (
        ("sum of a range, holding Python's lock", endless_python),
        ("numpy.sort of 1e8 numbers", endless_numpy),
    ):
        found = [seconds_to_kill(func) for _ in range(TIMES)]
        print(f"{name:40} killed in {1000 * statistics.median(found):6.1f} ms, at most {1000 * max(found):6.1f} ms")
    started = time.perf_counter()
    pool = ProcessPool(1)
    pool.submit_task(abs, -1).result()
    print(f"{'first answer of a new process':40} after {time.perf_counter() - started:6.2f} s")
    started = time.perf_counter()
    for _ in range(1000):
        pool.submit_task(abs, -1).result()
    print(f"{'answer of a process that is there':40} after {time.perf_counter() - started:6.2f} ms")
    pool.close()


if __name__ == "__main__":
    main()
