"""Memory limits where tasks are computed, on this machine or on a Dask cluster, and which runs fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sfumato.engine.recipe.recipe import Recipe

from ..errors import NoCluster
from ..store.workspace import Workspace
from .memory import FREE_MEMORY_SHARE, MemoryLimit, local_memory_limit, user_memory_limit
from .pool import DaskPool, TaskPool
from .processes import call_in_process
from .settings import dask_address
from .task_costs import check_costs_fit, estimate_task_costs, measure_recent_costs

CLUSTER_ANSWER_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class ClusterState:
    """The workers of a cluster when it was asked.

    workers: number of workers
    memory: bytes of the largest of them; None where they report no limit
    """

    workers: int
    memory: int | None


def inspect_cluster(address: str) -> ClusterState:
    """Ask a Dask scheduler which workers it has. Raises NoCluster."""
    # Called in a process of its own: no other one loads the package distributed.
    pool = DaskPool(address)
    try:
        return ClusterState(pool.size, pool.largest_bytes)
    finally:
        pool.close()


def cluster_limit(state: ClusterState) -> MemoryLimit:
    """Return the memory limit of a task on a cluster: the user's, else a share of the largest worker's memory."""
    if (given := user_memory_limit()) is not None:
        return given
    if state.memory is None:
        return MemoryLimit(None)
    return MemoryLimit(
        int(FREE_MEMORY_SHARE * state.memory),
        f"{FREE_MEMORY_SHARE:.0%} of the memory of the largest worker of the Dask cluster",
    )


def pool_limit(pool: TaskPool) -> MemoryLimit:
    """Return the memory limit of tasks in a pool."""
    return local_memory_limit() if pool.is_local else cluster_limit(ClusterState(pool.size, pool.largest_bytes))


def computing_limit() -> MemoryLimit:
    """Return the memory limit where tasks are computed by the present settings. Raises NoCluster and BadInput."""
    address = dask_address()
    if not address:
        return local_memory_limit()
    seen = call_in_process(
        inspect_cluster, address, what="the question to the Dask cluster", seconds=CLUSTER_ANSWER_SECONDS
    )
    if not seen.workers:
        raise NoCluster(f"the Dask cluster at {address} has no workers")
    return cluster_limit(seen)


def check_runs_fit(workspace: Workspace, runs: Sequence[tuple[Recipe, int]]) -> None:
    """Raise NotEnoughMemory where a task of these recipes on so many records does not fit. Raises NoCluster."""
    limit = computing_limit()
    if limit.max_bytes is not None:
        for recipe, records in runs:
            check_costs_fit(estimate_task_costs(recipe, records, measure_recent_costs(workspace, records)), limit)
