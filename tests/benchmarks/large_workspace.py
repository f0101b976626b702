"""A workspace as large as the terminal app must bear, written by the workspace's own code.

Project "Large": 1,000,000 records of twelve variables, and a run that has left 100,000 rows. Project "Survey": a run with
records, sweep and map; project "Census": one with quality, calibration and minimisation. Both by a real worker.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.schema import Kind, Schema, Variable
from sfumato.engine.execution.tasks import TaskKind
from sfumato.engine.methods.results import Diagnostic
from sfumato.engine.methods.rows import Row
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.recipe.thresholds import judge_thresholds
from sfumato.workspace.ingest.files import SourceFile
from sfumato.workspace.jobs.queue import TaskResult, claim_task, finish_task
from sfumato.workspace.jobs.runs import enter_run
from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.store.artefacts import write_record_values
from sfumato.workspace.store.workspace import Workspace

RECORDS, ROWS = 1_000_000, 100_000
TARGETS = [f"{name}_{i}" for i in range(4) for name in ("level", "count", "value")]
LEVELS = [round(0.01 * i, 2) for i in range(16)]
LARGE: dict[str, Any] = {
    "title": "Large",
    "variables": {
        **{f"level_{i}": {"kind": "categorical", "role": "quasi_identifier"} for i in range(4)},
        **{f"count_{i}": {"kind": "count", "role": "quasi_identifier"} for i in range(4)},
        **{f"value_{i}": {"kind": "continuous", "role": "sensitive"} for i in range(4)},
    },
    "release": {"m": 2, "seed": 7},
    "synthesis": [
        {
            "target": f"value_{i}",
            "method": "linear_regression",
            "transform": "log",
            "predictors": ["count_0", "level_0"],
        }
        for i in range(4)
    ],
    "measure": [
        {"method": "utility.ecdf"},
        {
            "method": "risk.identification",
            "known": ["level_0", "count_0"],
            "radius": {f"value_{i}": "5%" for i in range(4)},
        },
    ],
    "study": [
        {"method": "studies.intruder_uncertainty", "variable": "count_0", "model": "log_normal", "levels": LEVELS}
    ],
    "threshold": [
        {"value": "risk.identification.true_match_rate", "max": 0.02},
        {"value": "risk.identification.expected_match_risk", "max": 0.01},
    ],
}
SURVEY: dict[str, Any] = {
    "title": "Survey",
    "variables": {
        "region": {"kind": "categorical", "role": "quasi_identifier"},
        "visits": {"kind": "count", "role": "quasi_identifier"},
        "income": {"kind": "continuous", "role": "sensitive", "bounds": [0, 100_000]},
    },
    "release": {"m": 3, "seed": 7},
    "synthesis": [
        {"target": "income", "method": "linear_regression", "transform": "log", "predictors": ["region", "visits"]}
    ],
    "measure": [{"method": "utility.ecdf"}, {"method": "risk.identification", "radius": {"income": "5%"}}],
    "study": [
        {
            "method": "studies.intruder_uncertainty",
            "variable": "visits",
            "model": "log_normal",
            "levels": [0.0, 0.1, 0.2],
        }
    ],
    "threshold": [{"value": "risk.identification.true_match_rate", "max": 0.9}],
}
CENSUS: dict[str, Any] = {
    "title": "Census",
    "variables": {
        "age": {"kind": "count", "role": "quasi_identifier"},
        "hours": {"kind": "count", "role": "quasi_identifier"},
        "town": {"kind": "categorical", "role": "quasi_identifier"},
        "status": {"kind": "categorical", "role": "sensitive"},
    },
    "release": {"seed": 7},
    "anonymisation": [{"method": "mondrian", "k": 2}],
    "measure": [{"method": "quality.pearson"}, {"method": "quality.rilm"}, {"method": "quality.non_suppressed"}],
    "study": [
        {"method": "studies.minimisation", "k": 2, "step": 0.25, "subsamples": 2, "nmi": 0.3},
        {"method": "studies.calibration", "generators": 3, "ks": [2, 40, 150], "subsets": 4, "smallest_group": 10},
    ],
}


def build(directory: Path, records: int = RECORDS, rows: int = ROWS) -> None:
    """Make the workspace."""
    workspace = Workspace.create(directory)
    _add_large(workspace, records, rows)
    rng = np.random.default_rng(3)
    visits = rng.poisson(4, 300)
    income = np.exp(rng.normal(7 + 0.05 * visits, 0.4, 300))
    survey = {"region": rng.choice(["n", "s"], 300), "visits": visits, "income": income}
    for m in (3, 4):
        _add_small(workspace, {**SURVEY, "release": {"m": m, "seed": 7}}, survey)
    age = rng.integers(18, 80, 300)
    people = {"age": age, "hours": rng.poisson(30, 300), "town": rng.choice(["x", "y"], 300)}
    _add_small(workspace, CENSUS, {**people, "status": rng.choice(["a", "b"], 300)})
    run_worker(workspace.directory, idle=0)
    workspace.close()


def large_data(records: int) -> Microdata:
    """Four categorical variables, four counts and four continuous ones."""
    rng = np.random.default_rng(1)
    columns: dict[str, pd.Series] = {}
    variables = []
    for i in range(4):
        columns[f"level_{i}"] = pd.Series(pd.Categorical.from_codes(rng.integers(0, 9, records), list("abcdefghi")))
        columns[f"count_{i}"] = pd.Series(rng.poisson(20, records))
        columns[f"value_{i}"] = pd.Series(rng.lognormal(size=records))
        kinds = (("level", Kind.CATEGORICAL), ("count", Kind.COUNT), ("value", Kind.CONTINUOUS))
        variables += [Variable(f"{name}_{i}", kind) for name, kind in kinds]
    return Microdata(Schema(tuple(variables)), pd.DataFrame(columns))


def _add_small(workspace: Workspace, table: dict[str, Any], columns: dict[str, Any]) -> None:
    recipe = Recipe.from_table(table)
    enter_run(
        workspace,
        recipe,
        SourceFile(f"{recipe.title}.csv", b"simulated"),
        conform_to_schema(pd.DataFrame(columns), recipe.schema),
    )


def _add_large(workspace: Workspace, records: int, rows: int) -> None:
    recipe = Recipe.from_table(LARGE)
    data = large_data(records)
    released = Microdata(recipe.released_schema, data.frame[list(recipe.released_schema.names)], "synthetic")
    enter_run(workspace, recipe, SourceFile("large.csv", b"simulated"), data)
    rng = np.random.default_rng(2)
    while (held := claim_task(workspace, "benchmark")) is not None:
        outcome = TaskResult(seconds=1.0)
        if held.kind == TaskKind.FIT:
            outcome = TaskResult(target=f"value_{held.item}", diagnostics=list(_diagnostics(rng)), seconds=1.0)
        elif held.kind == TaskKind.MEASURE and held.item == 1:
            candidates = rng.integers(1, 900, records)
            risks = {"candidates": candidates, "hit": rng.random(records) < 0.3}
            name = f"records/1/{held.draw or 'confidential'}"
            outcome = TaskResult(artefacts={name: write_record_values(workspace.tables, risks)}, seconds=1.0)
        elif held.kind == TaskKind.DRAW:
            outcome = TaskResult(artefacts={held.key: workspace.tables.write_microdata(released)}, seconds=1.0)
        elif held.kind == TaskKind.COMBINE:
            found = list(_rows(rows, rng))
            outcome = TaskResult(rows=found, verdicts=judge_thresholds(recipe.thresholds, found), seconds=1.0)
        finish_task(workspace, held, outcome)


def _diagnostics(rng: np.random.Generator) -> Iterator[Diagnostic]:
    for i in range(40):
        yield Diagnostic("R-hat", f"beta[{i}]", 1 + 0.005 * float(rng.random()), "at most 1.01", passed=True)
        yield Diagnostic("bulk ESS", f"beta[{i}]", 400 + 900 * float(rng.random()), "at least 400", passed=True)


def _rows(count: int, rng: np.random.Generator) -> Iterator[Row]:
    """Two risks and their sweeps, and for the rest the distance of distributions by variable, setting and dataset."""
    made = 0
    for measure, share in (("expected_match_risk", 0.021), ("true_match_rate", 0.011)):
        for dataset, value in (("confidential", 0.09), ("synthetic", share)):
            yield Row("risk", "identification", measure, "", dataset, None, None, value, 0.9 * value, 1.1 * value)
            made += 1
    for measure in ("expected_match_risk", "true_match_rate"):
        params = {"variable": "count_0", "model": "log_normal", "radius": {"value_0": "5%"}}
        for level in LEVELS:
            for dataset, share in (("confidential", 0.09), ("synthetic", 0.04)):
                value = share * float(np.exp(-9 * level))
                band = (value * 0.9, value * 1.1)
                yield Row(
                    "studies", "intruder_uncertainty", measure, "", dataset, None, level, value, *band, params=params
                )
                made += 1
    while made < count:
        target, setting = TARGETS[made // 5 % len(TARGETS)], made // 60
        draw = made % 5 or None
        value = float(rng.gamma(2, 0.01))
        yield Row(
            "utility", "ecdf", "max_abs_difference", target, "synthetic", draw, None, value, 0.9 * value, 1.1 * value, 0.0,
            "", params={"setting": setting},
        )  # fmt: skip
        made += 1


if __name__ == "__main__":
    import sys

    started = time.perf_counter()
    build(Path(sys.argv[1]))
    print(f"{time.perf_counter() - started:.0f} s")
