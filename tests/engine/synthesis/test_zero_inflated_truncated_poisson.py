from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from prepared_tables import schema_of

from sfumato.engine.data import blocks
from sfumato.engine.data.microdata import Microdata
from sfumato.engine.data.schema import Kind, Variable
from sfumato.engine.design.design_matrix import Design
from sfumato.engine.methods.results import Fit
from sfumato.engine.methods.run import Run
from sfumato.engine.posterior.zero_inflated_poisson import ZeroInflatedPoisson
from sfumato.engine.synthesis import zero_inflated_truncated_poisson as module
from sfumato.engine.synthesis.zero_inflated_truncated_poisson import (
    ZeroInflatedSpec,
    draw,
    zero_inflated_truncated_poisson,
)

SCHEMA = schema_of("town: categorical", "age: count", Variable("visits", Kind.COUNT, bounds=(0.0, 12.0)))


def table(n: int = 250) -> Microdata:
    rng = np.random.default_rng(1)
    town, age = rng.integers(0, 3, n), rng.integers(20, 30, n)
    visits = np.where(rng.random(n) < 0.4, 0, np.minimum(rng.poisson(1 + town), 12))
    codes = pd.Categorical.from_codes(town, ["a", "b", "c"])
    return Microdata(SCHEMA, pd.DataFrame({"town": codes, "age": age, "visits": visits}))


@pytest.mark.parametrize("effect", ["new", "record"])
def test_records_in_many_blocks_have_the_same_draws(effect: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data = table()
    spec = ZeroInflatedSpec.from_table({"predictors": ["town", "log(age)"], "random_effect": effect}, "")
    fit = Fit({"theta": np.array([[0.1, 0.5, 1.0, 0.2, -1.0, 0.3, -0.2, 0.1, -0.9]])})
    drawn = draw(fit, spec, "visits", data, data, 0, np.random.default_rng(4))
    monkeypatch.setattr(blocks, "CELLS_PER_BLOCK", 90)
    found = draw(fit, spec, "visits", data, data, 0, np.random.default_rng(4))
    assert np.mean(found == drawn) > 0.99  # a rate moved by its last digit may give another count
    assert len(np.unique(drawn)) > 3


def test_the_model_is_that_of_the_whole_design_to_the_last_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of the design are made once for each combination of values: no row of it is made for each record."""
    data = table()
    spec = ZeroInflatedSpec(predictors=("town", "age"))
    seen: list[ZeroInflatedPoisson] = []

    def stop(model: ZeroInflatedPoisson, *others: object) -> None:
        seen.append(model)
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "_sample_posterior", stop)
    with pytest.raises(KeyboardInterrupt):
        zero_inflated_truncated_poisson(data, "visits", spec, Run(np.random.default_rng(3)), 2)
    x = Design.from_texts(spec.predictors, data).build_matrix(data)
    whole = ZeroInflatedPoisson.from_design(data.numbers("visits"), x, 12, columns=seen[0].columns)
    assert len(whole.rows) <= 30 < len(data)
    for name in ("rows", "row", "y", "weight"):
        assert getattr(seen[0], name).tobytes() == getattr(whole, name).tobytes()
