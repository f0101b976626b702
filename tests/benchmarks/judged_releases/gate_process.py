"""The gate of a checkout in a process of its own, which judges cases that another process built.

``Judge`` starts it with the checkout's package; run as a module it is that process. Cases come as pickles of plain values and frames, verdicts go back
as lines of JSON.
"""

from __future__ import annotations

import json
import os
import pickle
import struct
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

BENCHMARKS = Path(__file__).parents[1]
HERE = Path(__file__).parents[3]
UNMEASURED = {"thresholds_set", "risk_measured", "utility_measured", "questions_open"}
"""Findings of a recipe that measures nothing; they count where it has the measures of a draft."""


class Judge:
    """A process that judges cases by the package of a checkout."""

    def __init__(self, checkout: Path) -> None:
        package = checkout / ".ci" / "names"
        if not (package / "sfumato" / "workspace").exists():
            raise SystemExit(f"--judge {checkout}: no checkout of the project; it has no .ci/names/sfumato")
        environment = {**os.environ, "PYTHONPATH": f"{package}{os.pathsep}{BENCHMARKS}"}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "judged_releases.gate_process", str(checkout.resolve())],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment,
        )  # fmt: skip

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.communicate()

    def judge(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the verdict on what a case gives: title, roles, members, controls, frame, has_drafted_measures."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        sent = pickle.dumps(dict(given))
        self.process.stdin.write(struct.pack("<Q", len(sent)) + sent)
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("the judging process ended; its last words are above")
        verdict: dict[str, Any] = json.loads(line)
        return verdict


def name_checkout(checkout: Path) -> str:
    """Return the last commit of a checkout that changed engine or workspace, with a + where they differ from it now."""
    git, package = ["git", "-C", str(checkout)], ["--", "engine", "workspace"]
    commit = subprocess.run(
        [*git, "log", "-1", "--format=%h", "--abbrev=8", *package], capture_output=True, text=True, check=True
    )
    changed = subprocess.run([*git, "status", "--porcelain", *package], capture_output=True, text=True, check=True)
    return commit.stdout.strip() + ("+" if changed.stdout.strip() else "")


def judge_given(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the gate of the imported package says of a case, and the seconds it took."""
    from sfumato.workspace.store.workspace import Workspace

    from .assessments import draft_assessment
    from .entering import KEY, Case, enter_and_examine, recipe_of

    title, roles, people, is_drafted = given["title"], given["roles"], given["members"], given["has_drafted_measures"]
    assessment = draft_assessment(title, roles, people, given["controls"], given["frame"]) if is_drafted else {}
    case = Case([given["frame"]], assessment=assessment)
    recipe = recipe_of(title, roles, case)
    without = set() if is_drafted else UNMEASURED
    with tempfile.TemporaryDirectory() as directory:
        os.environ["XDG_STATE_HOME"] = directory
        with Workspace.create(Path(directory) / "workspace", KEY) as workspace:
            verdict = enter_and_examine(workspace, recipe, people, given["controls"], case.frames)
    findings = verdict.findings(without)
    blocking, warning = verdict.named("block", without), verdict.named("warn", without)
    return {
        "blocking": blocking,
        "warning": warning,
        # As the gate's answer: a finding that blocks is no, one to be judged is for a person.
        "answer": "no" if blocking else "to be judged" if warning else "yes",
        "said": [f"{one.check}: {one.message}" for one in findings if one.status == "block"],
        "run_seconds": round(verdict.run_seconds, 3),
        "gate_seconds": round(verdict.gate_seconds, 3),
    }


def serve(checkout: Path, cases: IO[bytes], verdicts: IO[str]) -> None:
    """Judge cases until there are no more."""
    import sfumato.workspace

    own = Path(next(iter(sfumato.workspace.__path__))).resolve()
    assert own == (checkout / "workspace").resolve(), f"{own} is imported, not the checkout's"
    while head := cases.read(8):
        given = pickle.loads(cases.read(struct.unpack("<Q", head)[0]))
        try:
            verdict = judge_given(given)
        except Exception as error:  # noqa: BLE001 a case that a version refuses is a result
            verdict = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(verdict), file=verdicts, flush=True)


if __name__ == "__main__":
    # Whatever the package prints must not stand among the verdicts.
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as verdicts:
        os.dup2(2, 1)
        serve(Path(sys.argv[1]), sys.stdin.buffer, verdicts)
