"""mypy checks the functions of a method where its decorator stands."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]

HEAD = """
from dataclasses import dataclass
from typing import Any
from collections.abc import Mapping, Sequence
import numpy as np
from numpy.typing import NDArray
from sfumato.engine.methods.release_form import AnonymisationSpec, Anonymised
from sfumato.engine.methods.registry import (
    PrivacyDeclaration, anonymisation_method, measure_method, study_method, synthesis_method
)
from sfumato.engine.methods.privacy import PrivacyAccount
from sfumato.engine.methods.outputs import Output
from sfumato.engine.data.microdata import Microdata
from sfumato.engine.methods.release_models import Models
from sfumato.engine.methods.results import Fit, Measure, StudyPoint, WholeReleaseMeasure
from sfumato.engine.methods.run import Run
from sfumato.engine.methods.spec import Spec, StudySpec

@dataclass(frozen=True)
class MySpec(Spec):
    k: int = 1

@dataclass(frozen=True)
class OtherSpec(Spec):
    k: int = 1

@dataclass(frozen=True)
class MyStudy(StudySpec):
    k: int = 1

@dataclass(frozen=True)
class MyRelease(AnonymisationSpec):
    k: int = 1

OUTPUTS = (Output("a", "b", "low"),)

def draw(fit: Fit, spec: MySpec, target: str, confidential: Microdata, released: Microdata, index: int,
         rng: np.random.Generator) -> NDArray[np.float64]:
    return rng.random(len(confidential))

def check(data: Microdata, target: str, spec: MySpec, place: str) -> None: ...

def draw_all(fit: Fit, spec: MySpec, targets: tuple[str, ...], confidential: Microdata, released: Microdata, index: int,
             records: int, rng: np.random.Generator) -> Mapping[str, NDArray[np.float64]]:
    return {name: rng.random(records) for name in targets}

def account(data: Microdata, targets: tuple[str, ...], spec: MySpec, records: int, datasets: int) -> PrivacyAccount: ...  # type: ignore[empty-body]

@dataclass(frozen=True)
class MyBlock:
    counts: NDArray[np.int64]

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        return {"counts": self.counts}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> "MyBlock":
        return cls(arrays["counts"])

def gather(confidential: Microdata, releases: Sequence[Microdata], spec: MySpec, blocks: Sequence[MyBlock]) -> WholeReleaseMeasure: ...  # type: ignore[empty-body]

def account_of_other(data: Microdata, targets: tuple[str, ...], spec: OtherSpec, records: int, datasets: int) -> PrivacyAccount: ...  # type: ignore[empty-body]
"""
RIGHT = """
@measure_method("m", spec=MySpec, source="s", outputs=OUTPUTS, check=check)
def measure(confidential: Microdata, released: Microdata, spec: MySpec, run: Run) -> Measure: ...  # type: ignore[empty-body]

@study_method("m", spec=MyStudy, source="s", outputs=OUTPUTS)
def study(confidential: Microdata, releases: Sequence[Microdata], point: float, spec: MyStudy, run: Run) -> StudyPoint: ...  # type: ignore[empty-body]

@anonymisation_method("m", spec=MyRelease, source="s")
def release(data: Microdata, spec: MyRelease, run: Run) -> Anonymised: ...  # type: ignore[empty-body]

@synthesis_method("m", spec=MySpec, source="s", draw=draw)
def fit(data: Microdata, target: str, spec: MySpec, run: Run, draws: int) -> Fit: ...  # type: ignore[empty-body]

@measure_method("m", spec=MySpec, source="s", outputs=OUTPUTS, gather=gather, block_result=MyBlock)
def by_block(confidential: Microdata, releases: Sequence[Microdata], models: Models, spec: MySpec, block: int, run: Run) -> MyBlock: ...  # type: ignore[empty-body]

@synthesis_method("m", spec=MySpec, source="s", joint_draw=draw_all, privacy=PrivacyDeclaration(account))
def joint(data: Microdata, targets: tuple[str, ...], spec: MySpec, run: Run, draws: int) -> Fit: ...  # type: ignore[empty-body]
"""
WRONG = {
    "takes no release": RIGHT.replace("released: Microdata, spec: MySpec, run: Run) -> Measure", "spec: MySpec, run: Run) -> Measure"),
    "gives another value": RIGHT.replace("-> Measure", "-> Fit"),
    "takes another's parameters": RIGHT.replace("spec: MySpec, run: Run) -> Measure", "spec: OtherSpec, run: Run) -> Measure"),
    "is a study without a point": RIGHT.replace("point: float, ", ""),
    "anonymises nothing": RIGHT.replace("-> Anonymised", "-> Microdata"),
    "fits without a number of draws": RIGHT.replace(", draws: int", ""),
    "draws for another": RIGHT.replace("spec=MySpec, source=\"s\", draw", "spec=OtherSpec, source=\"s\", draw"),
    "computes blocks without a class": RIGHT.replace("-> MyBlock", "-> dict[str, NDArray[Any]]"),
    "gathers what it does not compute": RIGHT.replace("block_result=MyBlock", "block_result=Fit"),
    "accounts for nothing": RIGHT.replace("PrivacyDeclaration(account)", "PrivacyDeclaration(draw)"),
    "keeps another's account": RIGHT.replace("PrivacyDeclaration(account)", "PrivacyDeclaration(account_of_other)"),
    "checks for another": RIGHT.replace("spec=MySpec, source=\"s\", outputs", "spec=OtherSpec, source=\"s\", outputs"),
}  # fmt: skip


@pytest.mark.slow
def test_mypy_accepts_right_methods_and_no_wrong_one(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    files = {"right": RIGHT, **WRONG}
    for place, text in enumerate(files.values()):
        (tmp_path / f"method_{place}.py").write_text(HEAD + text)
    script = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--follow-imports=silent",
        "--cache-dir",
        str(ROOT / ".mypy_cache"),
    ]
    done = subprocess.run(
        [*script, "--config-file", str(ROOT / "pyproject.toml"), *map(str, sorted(tmp_path.glob("*.py")))],
        cwd=ROOT,
        env={**os.environ, "MYPYPATH": str(ROOT / ".ci" / "names")},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    told = [
        [line for line in done.stdout.splitlines() if f"method_{place}.py" in line and ": error:" in line]
        for place in range(len(files))
    ]
    assert told[0] == []
    assert [name for name, lines in zip(files, told, strict=True) if not lines] == ["right"]
