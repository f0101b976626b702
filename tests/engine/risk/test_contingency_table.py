"""Table 1 of Reiter, Wang & Zhang among many simulated releases; ``tests/benchmarks/contingency_table.py`` prints all of it."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "contingency_table.py"


@pytest.fixture
def benchmark() -> ModuleType:
    spec = importlib.util.spec_from_file_location("contingency_table", BENCHMARK)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.study
def test_the_paper_s_release_is_one_of_many(benchmark: ModuleType) -> None:
    found = benchmark.study(60, 3)
    posterior = {name: np.array([row["posterior"] for row in rows]) for name, rows in found.items()}
    for name, (_, paper) in benchmark.MODELS.items():
        low, high = np.quantile(posterior[name], (0.02, 0.98))
        assert low - 1e-9 <= paper <= high + 1e-9, name
    protected = [np.median(posterior[name]) for name in benchmark.MODELS]
    assert protected == sorted(protected, reverse=True)
    assert np.mean(posterior["DM, a = .0001"] > 0.9) > 0.9
    # the control: one model's figure is none of another's
    assert np.mean(posterior["N2WI"] < 0.2) == 1
    assert np.mean(posterior["DM, a = 1"] > 0.2) > 0.2
    rows = found["DM, a = 1"]
    assert np.mean([abs(row["sampler"] - row["posterior"]) for row in rows]) > 0.05


@pytest.mark.slow
def test_a_cell_without_a_record_clears_its_owner(benchmark: ModuleType) -> None:
    """a = .0001: had the truth been in the data, one of 5,000 records would most likely be in its cell."""
    rng = np.random.default_rng(1)
    step, _ = benchmark.MODELS["DM, a = .0001"]
    chance = [benchmark.posterior(of, data, rng) for of, data in [(benchmark.recipe(step), table(benchmark, rng))] * 20]
    empty = [posterior[0] for posterior, counts in chance if not sum(z[0] for z in counts)]
    full = [posterior[0] for posterior, counts in chance if sum(z[0] for z in counts)]
    assert all(value < 0.01 for value in empty)
    assert min(full) > 0.5


def table(benchmark: ModuleType, rng: np.random.Generator):  # type: ignore[no-untyped-def]
    step, _ = benchmark.MODELS["DM, a = .0001"]
    of = benchmark.recipe(step)
    raw = benchmark.pd.DataFrame(benchmark.CELLS[benchmark.observed(rng)].astype(str), columns=list(benchmark.NAMES))
    return benchmark.conform_to_schema(raw, of.schema)
