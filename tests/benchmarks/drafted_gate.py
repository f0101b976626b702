"""Processor seconds of a drafted plan and of the gate: python tests/benchmarks/drafted_gate.py [RECIPE [DATA]] [--set KEY=VALUE ...].

Without RECIPE it is what ``sfumato draft --full`` writes for Adult whole: five datasets of 39,073 people, every variable drawn, attacks
against 9,769 hold-out records. Every task is computed in this process, one after another, as a worker computes it, then the gate examines
the release. On two cores attacks take half of their seconds, since each task is a dataset of one measure; the gate takes one core.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from functools import partial
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from public_data import PUBLIC_DATA

from sfumato.engine.methods.run import PUBLIC
from sfumato.workspace.gate.checks import ExaminedRelease
from sfumato.workspace.gate.contents import plan_release
from sfumato.workspace.gate.gate import CHECKS, make_finding
from sfumato.workspace.jobs.queue import TaskResult, claim_task, finish_task
from sfumato.workspace.jobs.run_task import read_task_input, run_task
from sfumato.workspace.jobs.settings import MEMORY_VARIABLE, NO_LIMIT
from sfumato.workspace.policy.policy import Policy
from sfumato.workspace.recipes import find_recipe
from sfumato.workspace.service.prepare import prepare_run
from sfumato.workspace.store.workspace import Workspace

KNOWN = "age,education,marital_status,race,sex"
SENSITIVE = "occupation,hours_per_week,income"


def drafted(folder: Path) -> str:
    """The drafted recipe of Adult."""
    path, data = folder / "adult.toml", str(PUBLIC_DATA / "adult.csv")
    arguments = ["draft", data, "--full", "--known", KNOWN, "--sensitive", SENSITIVE, "-o", str(path)]
    sfumato = Path(sys.executable).with_name("sfumato")
    subprocess.run([sfumato, *arguments], check=True, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    return str(path)


def main() -> None:
    """Print processor seconds by task and by check, and the peak of memory."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("recipe", nargs="?")
    parser.add_argument("data", nargs="?")
    parser.add_argument("--set", action="append", default=[])
    chosen = parser.parse_args()
    os.environ[MEMORY_VARIABLE] = NO_LIMIT
    with tempfile.TemporaryDirectory() as scratch, Workspace.create(Path(scratch) / "workspace", PUBLIC) as workspace:
        name = chosen.recipe or drafted(Path(scratch))
        prepared = prepare_run(find_recipe(name), chosen.data, None, chosen.set, key=PUBLIC)
        run_id = prepared.enter(workspace)
        recipe, taken = prepared.recipe, defaultdict[str, float](float)
        while (held := claim_task(workspace, "me")) is not None:
            needed = read_task_input(workspace, held)
            before = time.process_time()
            done = run_task(workspace.directory, needed, database=False)
            steps = {"fit": recipe.synthesis, "measure": recipe.measures, "study": recipe.studies}.get(held.kind, ())
            what = steps[held.item].method.key if held.kind in ("measure", "study") else held.kind
            taken[what] += time.process_time() - before
            assert isinstance(done, TaskResult), done
            finish_task(workspace, held, done)
        for what, seconds in taken.items():
            print(f"{what:32}{seconds:8.1f} s", flush=True)
        risks = sum(seconds for what, seconds in taken.items() if what.startswith("risk."))
        case, gate = ExaminedRelease(workspace, plan_release(workspace, run_id), Policy()), 0.0
        for check in CHECKS:
            before = time.process_time()
            found = make_finding(check, case.policy, partial(check.evaluate, case))
            spent = time.process_time() - before
            gate += spent
            if spent > 0.2 or found.status in ("block", "warn"):
                said = f": {found.message}" if found.status == "block" else ""
                print(f"gate {check.key:27}{spent:8.1f} s  {found.status}{said}", flush=True)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(f"attacks {risks:.1f} s, gate {gate:.1f} s of processor; {peak:.1f} GB at most")


if __name__ == "__main__":
    main()
