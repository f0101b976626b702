"""How much memory tasks have where they are computed, and which runs have room there: on this machine, or on a Dask cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sfumato.engine.recipe.recipe import Recipe

from ..errors import NoCluster
from ..store.workspace import Workspace
from .memory import SHARE, MemoryLimit, given_limit, memory_limit
from .pool import DaskPool, Pool
from .processes import call_in_process
from .settings import dask_address
from .task_costs import check_memory, earlier_runs, task_costs

ANSWER_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class ClusterSeen:
    """A cluster as it stood when it was asked: workers, and the bytes of the largest of them; None where they say no limit."""

    workers: int
    memory: int | None


def look_at_cluster(address: str) -> ClusterSeen:
    """Ask a scheduler which workers it has. Raises NoCluster. Called in a process of its own: no other loads the package distributed."""
    pool = DaskPool(address)
    try:
        return ClusterSeen(pool.size, pool.largest)
    finally:
        pool.close()


def cluster_limit(seen: ClusterSeen) -> MemoryLimit:
    """What a task may have on a cluster: what is given, else a share of its largest worker's memory."""
    if (given := given_limit()) is not None:
        return given
    if seen.memory is None:
        return MemoryLimit(None)
    return MemoryLimit(int(SHARE * seen.memory), f"{SHARE:.0%} of what the largest worker of the Dask cluster has")


def limit_in(pool: Pool) -> MemoryLimit:
    return memory_limit() if pool.local else cluster_limit(ClusterSeen(pool.size, pool.largest))


def computing_limit() -> MemoryLimit:
    """What tasks may have where they are computed. Raises NoCluster where the cluster does not answer, BadInput."""
    address = dask_address()
    if not address:
        return memory_limit()
    seen = call_in_process(look_at_cluster, address, what="the question to the Dask cluster", seconds=ANSWER_SECONDS)
    if not seen.workers:
        raise NoCluster(f"the Dask cluster at {address} has no workers")
    return cluster_limit(seen)


def check_runs(workspace: Workspace, runs: Sequence[tuple[Recipe, int]]) -> None:
    """Raises NotEnoughMemory where a task of a recipe on so many records has no room where it would be computed, and NoCluster."""
    limit = computing_limit()
    if limit.bytes is not None:
        for recipe, records in runs:
            check_memory(task_costs(recipe, records, earlier_runs(workspace, records)), limit)
