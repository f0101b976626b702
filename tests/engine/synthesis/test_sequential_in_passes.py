"""Sequential logistic regressions that are fitted to a table block by block, and drawn block by block."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from prepared_tables import schema_of

from sfumato.engine.contract.passes import CutTable
from sfumato.engine.data.microdata import Microdata
from sfumato.engine.errors import BadInput
from sfumato.engine.methods.passes import run_passes
from sfumato.engine.methods.registry import method_by_key
from sfumato.engine.methods.results import Fit
from sfumato.engine.methods.run import Run

RECORDS = 3000
TARGETS = ("a", "b", "c")
METHOD = method_by_key("synthesis.sequential_logistic")
SETTINGS: list[dict[str, Any]] = [
    {"predictors": ["g", "log1p(x)"]},
    {"predictors": ["x", "v:g"], "order": 2},
    {"order": 2, "parameters": "mle"},
    {"concentration": 2.0},
]


def as_levels(codes: Any, levels: list[str]) -> pd.Categorical:
    return pd.Categorical.from_codes(codes, levels)


def people() -> Microdata:
    """Return people with three answers, of which nobody has the first and the last."""
    rng = np.random.default_rng(1)
    g, x, v = rng.integers(0, 3, RECORDS), rng.lognormal(size=RECORDS), rng.poisson(2, RECORDS)
    a = (rng.random(RECORDS) < 0.2 + 0.2 * g) * 1
    b = (rng.random(RECORDS) < 1 / (1 + np.exp(1 - 0.3 * x - a))) * 1
    c = (rng.random(RECORDS) < 0.3 + 0.1 * b) * 1
    codes = {name: as_levels(one, ["no", "yes"]) for name, one in zip(TARGETS, (a, b, c), strict=True)}
    frame = pd.DataFrame({"g": as_levels(g, ["l", "m", "n"]), **codes, "v": v, "x": x})
    schema = schema_of("g: categorical", *(f"{name}: binary" for name in TARGETS), "v: count", "x: continuous")
    return Microdata(schema, frame)


def fit_in_parts(data: Microdata, settings: dict[str, Any], rows: int, targets: tuple[str, ...] = TARGETS) -> Fit:
    assert METHOD is not None
    spec = METHOD.spec.from_table(settings, "synthesis[0]")
    passes: Any = METHOD.synthesis.fit_passes
    table = CutTable(data, rows)
    answer = run_passes(passes.start(table.head, targets, spec, table.n_blocks), [table], passes.block, passes.merge)
    found: Fit = passes.fit(answer, table.head, targets, spec, Run(np.random.default_rng(3)), 4)
    return found


@pytest.mark.parametrize("settings", SETTINGS)
def test_a_fit_in_parts_is_that_of_the_table(settings: dict[str, Any]) -> None:
    assert METHOD is not None
    data = people()
    spec = METHOD.spec.from_table(settings, "synthesis[0]")
    whole = METHOD.fit(data, TARGETS, spec, Run(np.random.default_rng(3)), 4)
    for rows in (700, 1100):
        found = fit_in_parts(data, settings, rows)
        assert list(found.arrays) == list(whole.arrays)
        for name, values in whole.arrays.items():
            if values.dtype.kind != "f":
                np.testing.assert_array_equal(found.arrays[name], values)
            else:
                np.testing.assert_allclose(found.arrays[name], values, rtol=1e-12, atol=1e-12 * np.abs(values).max())
        for one, other in zip(found.diagnostics, whole.diagnostics, strict=True):
            assert (one.name, one.parameter) == (other.name, other.parameter)
            assert one.value == pytest.approx(other.value, rel=1e-11)


@pytest.mark.parametrize("settings", SETTINGS)
def test_blocks_of_one_target_are_drawn_as_the_table_is(settings: dict[str, Any]) -> None:
    """Of several targets a table takes the same random numbers in another order."""
    assert METHOD is not None
    data = people()
    spec = METHOD.spec.from_table(settings, "synthesis[0]")
    whole = METHOD.fit(data, ("a",), spec, Run(np.random.default_rng(3)), 4)
    fit = fit_in_parts(data, settings, 700, ("a",))
    rng = np.random.default_rng(5)
    blocks = list(CutTable(data, 700).iterate_blocks())
    found = [METHOD.draw_targets(fit, spec, ("a",), block, block, 1, rng)["a"] for block in blocks]
    expected = METHOD.draw_targets(whole, spec, ("a",), data, data, 1, np.random.default_rng(5))["a"]
    np.testing.assert_array_equal(np.concatenate(found), expected)


def test_what_a_table_in_memory_is_refused_for_is_refused_in_parts() -> None:
    assert METHOD is not None
    data = people()
    b = data.frame["b"]
    frame = data.frame.assign(twice=2 * data.frame["v"], same=b, fixed=b.where(b == "no", "no"))
    names = [f"{one.name}: {one.kind.value}" for one in data.schema.variables]
    data = Microdata(schema_of(*names, "twice: count", "same: binary", "fixed: binary"), frame)
    cases: list[tuple[dict[str, Any], tuple[str, ...]]] = [
        ({"predictors": ["v", "twice"]}, TARGETS),
        ({}, ("b", "same")),
        ({}, ("a", "b", "same")),
        ({}, ("a", "fixed")),
    ]
    for settings, targets in cases:
        spec = METHOD.spec.from_table(settings, "synthesis[0]")
        with pytest.raises(BadInput) as whole:
            METHOD.fit(data, targets, spec, Run(np.random.default_rng(3)), 4)
        with pytest.raises(BadInput) as parts:
            fit_in_parts(data, settings, 700, targets)
        assert str(parts.value) == str(whole.value)


def test_missing_values_are_refused_in_parts() -> None:
    data = people()
    lacking = Microdata(data.schema, data.frame.assign(x=data.frame["x"].where(np.arange(RECORDS) != 1500)))
    with pytest.raises(BadInput, match='1 record has no "x"'):
        fit_in_parts(lacking, {"predictors": ["x"]}, 700)


def test_penalties_and_effects_of_units_need_the_table() -> None:
    assert METHOD is not None
    passes: Any = METHOD.synthesis.fit_passes
    for settings, suits in (({}, True), ({"prior": "jeffreys"}, False), ({"unit_effect": True}, False)):
        assert passes.suits(METHOD.spec.from_table(settings, "synthesis[0]"), people().schema) is suits
