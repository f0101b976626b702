"""The conditional tabular GAN: what holds without its extra, and, where it is installed, what it learns."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.schema import Kind, MissingPolicy, Schema, Variable
from sfumato.engine.errors import NotInstalled
from sfumato.engine.methods.registry import registry
from sfumato.engine.methods.results import Fit
from sfumato.engine.methods.run import Run
from sfumato.engine.recipe.checks import check_steps
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.studies.calibration import train_generator

CTGAN = registry()["synthesis.ctgan"]
VARIABLES = {
    "group": {"kind": "categorical", "role": "sensitive"},
    "work": {"kind": "categorical", "role": "quasi_identifier"},
    "hours": {"kind": "count", "role": "quasi_identifier", "bounds": [0, 60]},
}


def recipe(**step: Any) -> Recipe:
    steps = [{"target": "hours", "method": "ctgan", "predictors": ["group"], "epochs": 1, **step}]
    return Recipe.from_table({"variables": VARIABLES, "release": {"seed": 5, "m": 1}, "synthesis": steps})


def study(**changes: Any) -> Recipe:
    table = {"method": "studies.calibration", "generator": "synthesis.ctgan", "ks": [2], "generators": 1, **changes}
    return Recipe.from_table({"variables": VARIABLES, "release": {"seed": 5}, "study": [table]})


def raw(n: int) -> pd.DataFrame:
    """Hours and work go by the group."""
    rng = np.random.default_rng(8)
    group = rng.choice(["a", "b"], n, p=[0.6, 0.4])
    work = np.where(rng.random(n) < np.where(group == "a", 0.9, 0.1), "office", "farm")
    return pd.DataFrame({"group": group, "work": work, "hours": np.rint(rng.normal(np.where(group == "a", 20, 45), 3))})


@pytest.fixture(scope="module")
def data() -> Microdata:
    return conform_to_schema(raw(1000), recipe().schema)


@pytest.fixture
def without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "ctgan" else real(name))


@pytest.mark.usefixtures("without_the_extra")
def test_without_the_extra_a_step_says_how_to_install_it(data: Microdata) -> None:
    with pytest.raises(NotInstalled, match=r"^synthesis\[0\]: .*pip install 'sfumato\[gan\]'"):
        check_steps(recipe(), data)
    with pytest.raises(NotInstalled, match=r"^study\[0\]\.generator: .*pip install 'sfumato\[gan\]'"):
        check_steps(study(), data)
    check_steps(study(generator="synthesis.cart"), data)


@pytest.mark.slow
def test_nothing_of_the_extra_is_imported_before_it_is_used() -> None:
    script = (
        "import sfumato.engine.methods.registry, sys; sfumato.engine.methods.registry.registry(); print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120)
    assert not {"torch", "ctgan", "rdt"} & set(done.stdout.split())


def test_settings_of_the_generator_are_checked_as_the_recipe_is_read() -> None:
    assert study(generator_settings={"epochs": 5}).studies[0].spec.to_table()["generator_settings"] == {"epochs": 5}
    with pytest.raises(ValueError, match=r"^study\[0\]\.generator_settings\.epoch: unknown key; did you mean"):
        study(generator_settings={"epoch": 5})


def test_dates_are_drawn_in_days_from_a_fit_in_seconds() -> None:
    """What a stored fit holds are seconds, as the first version wrote them; no training is needed to draw from it."""
    schema = Schema((Variable("day", Kind.DATE),))
    data = conform_to_schema(pd.DataFrame({"day": ["1969-12-31 18:00", "2019-07-31 12:00"]}), schema)
    seconds = data.column("day").astype("int64").to_numpy(dtype=np.float64)
    fit, spec = Fit({"generated": seconds[None, :, None]}), CTGAN.spec.from_table({}, "step")
    assert CTGAN.synthesis.draw is not None
    values = CTGAN.synthesis.draw(fit, spec, "day", data, data, 0, np.random.default_rng(1))
    assert sorted(values) == [-0.25, 18108.5]


def tables(data: Microdata, epochs: int, seed: int, size: int) -> Microdata:
    pytest.importorskip("ctgan")
    make = train_generator(data, "synthesis.ctgan", (("epochs", epochs),), data.schema.names, seed)
    return make(size, np.random.default_rng(9))


def gap(table: Microdata) -> float:
    """How much more often the office is where group a works than where b does."""
    share = table.frame["work"].eq("office").groupby(table.frame["group"].astype(str)).mean()
    return float(share["a"] - share["b"])


def test_what_goes_together_in_the_data_does_in_the_tables(data: Microdata) -> None:
    assert gap(data) == pytest.approx(0.8, abs=0.05)
    made = tables(data, 300, 1, 900)
    assert len(made) == 900
    assert gap(made) > 0.4
    assert made.frame["group"].eq("a").mean() == pytest.approx(0.6, abs=0.15)
    assert made.numbers("hours").min() >= 0
    assert made.numbers("hours").max() <= 60
    assert abs(gap(tables(data, 1, 1, 900))) < 0.4, "a GAN that has learned nothing shows nothing"


def test_the_seed_alone_decides(data: Microdata) -> None:
    state = np.random.get_state()[1].copy()  # type: ignore[union-attr]  # noqa: NPY002
    first = tables(data, 2, 1, 500)
    other = tables(data, 2, 2, 500)
    with ThreadPoolExecutor(2) as pool:
        again = list(pool.map(lambda seed: tables(data, 2, seed, 500), (1, 2)))
    pd.testing.assert_frame_equal(again[0].frame, first.frame)
    pd.testing.assert_frame_equal(again[1].frame, other.frame)
    assert not first.frame.equals(other.frame)
    assert np.array_equal(state, np.random.get_state()[1])  # type: ignore[arg-type]  # noqa: NPY002


def test_it_computes_on_one_thread_and_gives_the_others_back(data: Microdata) -> None:
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        assert tables(data, 1, 3, 100) is not None
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_a_step_of_a_recipe_keeps_missing_values_and_bounds() -> None:
    pytest.importorskip("ctgan")
    frame = raw(400)
    frame.loc[::5, "hours"] = np.nan
    data = conform_to_schema(frame, recipe().schema, MissingPolicy.KEEP)
    spec = CTGAN.spec.from_table({"predictors": ["group", "work"], "epochs": 20}, "")
    fit = CTGAN.func(data, "hours", spec, Run(np.random.default_rng(2)), 2)
    assert CTGAN.synthesis.draw is not None
    released = Microdata(data.schema, data.frame, "synthetic")
    values = CTGAN.synthesis.draw(fit, spec, "hours", data, released, 1, np.random.default_rng(3))
    assert 0 < np.isnan(values).mean() < 1
    known = values[~np.isnan(values)]
    assert known.min() >= 0
    assert known.max() <= 60
    assert np.array_equal(known, np.rint(known))
