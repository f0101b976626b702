"""Multinomial logits that are fitted to a table block by block, and drawn block by block."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from prepared_tables import schema_of

from sfumato.engine.contract.passes import CutTable
from sfumato.engine.data.block_sums import is_folded
from sfumato.engine.data.microdata import Microdata
from sfumato.engine.errors import BadInput
from sfumato.engine.methods.asked_passes import AskedState
from sfumato.engine.methods.passes import run_passes
from sfumato.engine.methods.registry import method_by_key
from sfumato.engine.methods.results import Fit
from sfumato.engine.methods.run import Run

RECORDS = 3000
METHOD = method_by_key("synthesis.multinomial_logistic")
SETTINGS: list[dict[str, Any]] = [
    {"predictors": ["g", "log1p(x)", "v:b"]},
    {"predictors": ["g", "x"], "strata": "b"},
    {"predictors": ["x"], "strata": "g", "groups": {"one": ["a", "b"]}, "parameters": "drawn"},
    {"predictors": ["x", "v"], "groups": {"low": ["h0", "h1"]}},
    {"predictors": ["g", "x"], "missing": "filled"},
    {"predictors": ["g", "x"], "missing": "filled", "penalty": 0.0},
    {"predictors": []},
]


def people() -> Microdata:
    """Return people of whom some lack x, and some the target h."""
    rng = np.random.default_rng(1)
    g, x, v = rng.integers(0, 3, RECORDS), rng.lognormal(size=RECORDS), rng.poisson(2, RECORDS)
    h = np.minimum(3, rng.poisson(0.5 + 0.4 * g + 0.2 * np.minimum(x, 4)))
    x[rng.random(RECORDS) < 0.05] = np.nan
    h[rng.random(RECORDS) < 0.05] = -1
    frame = pd.DataFrame(
        {
            "g": pd.Categorical.from_codes(g, ["a", "b", "c"]),
            "b": pd.Categorical.from_codes(rng.integers(0, 2, RECORDS), ["no", "yes"]),
            "h": pd.Categorical.from_codes(h, ["h0", "h1", "h2", "h3"]),
            "v": v,
            "x": x,
        }
    )
    return Microdata(schema_of("g: categorical", "b: binary", "h: categorical", "v: count", "x: continuous"), frame)


def fit_in_parts(data: Microdata, settings: dict[str, Any], rows: int) -> Fit:
    assert METHOD is not None
    spec = METHOD.spec.from_table(settings, "synthesis[0]")
    passes = METHOD.synthesis.fit_passes
    assert passes is not None
    table = CutTable(data, rows)
    answer = run_passes(passes.start(table.head, "h", spec, table.n_blocks), [table], passes.block, passes.merge)
    return passes.fit(answer, table.head, "h", spec, Run(np.random.default_rng(3)), 4)


@pytest.mark.parametrize("settings", SETTINGS)
def test_a_fit_in_parts_is_that_of_the_table(settings: dict[str, Any]) -> None:
    assert METHOD is not None
    data = people()
    spec = METHOD.spec.from_table(settings, "synthesis[0]")
    whole = METHOD.fit(data, ("h",), spec, Run(np.random.default_rng(3)), 4)
    first, second = (fit_in_parts(data, settings, rows) for rows in (700, 1100))
    for other, near in ((second, 1e-12), (whole, 1e-10)):
        for name, values in other.arrays.items():
            own = first.arrays[name]
            if values.dtype.kind != "f":
                np.testing.assert_array_equal(own, values)
            else:
                np.testing.assert_allclose(own, values, rtol=near, atol=near * np.abs(values).max(initial=0.0))
    said = [[(one.name, one.parameter, one.passed) for one in fit.diagnostics] for fit in (first, whole)]
    assert said[0] == said[1]
    assert set(first.arrays) - set(whole.arrays) == {f"design.{name}" for name in ("fill", "shift", "divisor", "gaps")}


@pytest.mark.parametrize("settings", SETTINGS)
def test_blocks_are_drawn_as_the_table_is(settings: dict[str, Any]) -> None:
    assert METHOD is not None
    data = people()
    spec = METHOD.spec.from_table(settings, "synthesis[0]")
    whole, fit = METHOD.fit(data, ("h",), spec, Run(np.random.default_rng(3)), 4), fit_in_parts(data, settings, 700)
    blocks = list(CutTable(data, 700).iterate_blocks())
    rng = np.random.default_rng(5)
    found = [METHOD.draw_targets(fit, spec, ("h",), block, block, 1, rng)["h"] for block in blocks]
    expected = METHOD.draw_targets(whole, spec, ("h",), data, data, 1, np.random.default_rng(5))["h"]
    np.testing.assert_array_equal(np.concatenate(found), expected)


def test_what_a_table_in_memory_is_refused_for_is_refused_in_parts() -> None:
    assert METHOD is not None
    data = people()
    alike = data.frame.assign(h=data.frame["h"].where(data.frame["b"] == "no", "h1"), twice=2 * data.frame["v"])
    schema = schema_of(*(f"{one.name}: {one.kind.value}" for one in data.schema.variables), "twice: count")
    data = Microdata(schema, alike)
    for settings in (
        {"predictors": ["v", "twice"]},
        {"predictors": ["v"], "strata": "b", "missing": "filled"},
        {"predictors": ["v"], "strata": "g", "groups": {"one": ["a", "zz"]}},
    ):
        spec = METHOD.spec.from_table(settings, "synthesis[0]")
        with pytest.raises(BadInput) as whole:
            METHOD.fit(data, ("h",), spec, Run(np.random.default_rng(3)), 4)
        with pytest.raises(BadInput) as parts:
            fit_in_parts(data, settings, 700)
        assert str(parts.value) == str(whole.value)


def test_sums_of_newtons_method_are_added_as_they_come() -> None:
    """A Hessian of each block would need more memory the longer the table is."""
    assert METHOD is not None
    spec = METHOD.spec.from_table(SETTINGS[1], "synthesis[0]")
    passes = METHOD.synthesis.fit_passes
    assert passes is not None
    table, merged = CutTable(people(), 700), list[tuple[bool, int]]()

    def merge(state: AskedState, partials: Any) -> Any:
        merged.append((is_folded(state.join), len(partials)))
        return passes.merge(state, partials)

    run_passes(passes.start(table.head, "h", spec, table.n_blocks), [table], passes.block, merge)
    assert merged[:2] == [(False, 5)] * 2
    assert len(merged) > 5
    assert set(merged[2:]) == {(True, 1)}
