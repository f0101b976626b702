"""Prepares and carries out the recipes of a folder, one after the other, and prints a line of JSON for each.

python -P carry_out.py FOLDER DATA SECONDS

A recipe may take so many seconds of processor time.
"""

from __future__ import annotations

import json
import signal
import sys
import time
from pathlib import Path

from sfumato.engine.errors import EngineError
from sfumato.engine.execution.tasks import execute_run
from sfumato.engine.methods.run import PUBLIC
from sfumato.workspace.errors import WorkspaceError
from sfumato.workspace.jobs.run_task import peak_memory_bytes
from sfumato.workspace.recipes import find_recipe
from sfumato.workspace.service.prepare import prepare_run

WAITS = 6
"""A busy machine makes others wait: so many times the seconds of processor time that a recipe may take by the clock."""


def late(*_: object) -> None:
    raise TimeoutError


def outcome(path: Path, data: str, seconds: int) -> dict[str, object]:
    """How it ended: refused, failed, done or wrong; with what was said."""
    how = "refused"
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.alarm(WAITS * seconds)
    try:
        prepared = prepare_run(find_recipe(str(path)), data, key=PUBLIC)
        how = "failed"
        found = execute_run(prepared.recipe, prepared.data, key=PUBLIC)
    except (EngineError, WorkspaceError) as error:
        return {"how": how, "said": str(error)}
    except Exception as error:  # noqa: BLE001
        return {"how": "wrong", "said": f"{how}: {type(error).__name__} {error}"[:300]}
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.alarm(0)
    unexplained = [row.key for row in found.rows if row.value is None and not row.reason]
    return {"how": "wrong" if unexplained else "done", "said": ", ".join(unexplained), "rows": len(found.rows)}


def main() -> None:
    folder, data, seconds = sys.argv[1:]
    signal.signal(signal.SIGALRM, late)
    signal.signal(signal.SIGPROF, late)
    for path in sorted(Path(folder).glob("*.toml")):
        started = time.process_time()
        found = outcome(path, data, int(seconds))
        print(
            json.dumps(
                {"file": path.stem, **found, "seconds": time.process_time() - started, "peak": peak_memory_bytes()}
            )
        )


if __name__ == "__main__":
    main()
