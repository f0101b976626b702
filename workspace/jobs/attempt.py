"""A task tried: whatever goes wrong comes back as a value, so that it crosses processes and never carries data."""

from __future__ import annotations

import sqlite3
import traceback
from dataclasses import dataclass
from pathlib import Path

from sfumato.engine.errors import Cancelled, EngineError, NotConverged
from sfumato.engine.run import silent

from ..errors import WorkspaceError
from ..store.database import is_busy
from ..store.disk import disk_trouble
from ..store.tables import Tables
from .queue import NOTHING, Outcome
from .reporter import Reporter
from .run_task import perform, to_look_at
from .task_input import Order

__all__ = ["Failure", "GivenBack", "attempt"]


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a task failed, in words for its run, and for the log where in the code; no exception's own words.

    ``left`` is what there is to look at all the same, such as chains that have not converged.
    """

    message: str
    trace: str = ""
    left: Outcome = NOTHING


@dataclass(frozen=True, slots=True)
class GivenBack:
    """The task was not carried out: its run was stopped, or the database was locked for too long."""


def attempt(directory: Path, order: Order, *, database: bool = True) -> Outcome | Failure | GivenBack:
    """``perform`` a claimed task.

    ``database`` says whether its progress can be written into the database, which must be on this machine's own disk.

    The engine's and the workspace's own errors are written for people and hold no values of the data. Those of other
    libraries may (``could not convert string to float``), so of them only the type and the lines of code are kept.
    """
    held, tables = order.held, Tables(directory / "tables")
    try:
        return perform(tables, order, Reporter(directory, held) if database else silent)
    except Cancelled:
        return GivenBack()
    except NotConverged as error:
        return Failure(str(error), left=NOTHING if error.left is None else to_look_at(tables, order, error.left))
    except (EngineError, WorkspaceError) as error:
        return Failure(str(error))
    except Exception as error:  # noqa: BLE001  (whatever a method raises ends its run, not the worker)
        if isinstance(error, sqlite3.OperationalError) and is_busy(error):
            return GivenBack()
        if trouble := disk_trouble(error):
            return Failure(f"{held.key}: {trouble}")
        trace = "".join(traceback.format_tb(error.__traceback__))
        return Failure(f"{held.key}: {type(error).__name__}; the run's log says where", trace)
