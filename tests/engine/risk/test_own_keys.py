"""The risk of a drawn row is its person's where the row has the person's own keys; otherwise it is nobody's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.schema import Kind, MissingPolicy, Role, Schema, Variable
from sfumato.engine.methods.run import Run
from sfumato.engine.risk.population_uniqueness import PopulationUniquenessSpec, population_uniqueness
from sfumato.engine.risk.special_uniques import SpecialUniquesSpec, special_uniques

KEYS = ("place", "years")
SCHEMA = Schema(
    (Variable("place", Kind.CATEGORICAL, Role.QUASI_IDENTIFIER), Variable("years", Kind.COUNT, Role.QUASI_IDENTIFIER))
)


def table(frame: pd.DataFrame) -> Microdata:
    return conform_to_schema(frame, SCHEMA, MissingPolicy.REFUSE)


def by_special_uniques(data: Microdata, released: Microdata) -> np.ndarray:
    run = Run(np.random.default_rng(0))
    return special_uniques(data, released, SpecialUniquesSpec(keys=KEYS), run).per_record["dis"]


def by_population_uniqueness(data: Microdata, released: Microdata) -> np.ndarray:
    run = Run(np.random.default_rng(0))
    spec = PopulationUniquenessSpec(keys=KEYS, fraction=0.98)
    return population_uniqueness(data, released, spec, run).per_record["right_match"]


@pytest.mark.parametrize("measured", [by_special_uniques, by_population_uniqueness])
def test_a_drawn_row_with_other_keys_leads_to_nobody(measured: Callable[[Microdata, Microdata], np.ndarray]) -> None:
    """The first half of the rows are their people's, the others were drawn with other years. Changed rows, the control, stay their people's."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"place": rng.choice(list("abcdefghijkl"), 200), "years": rng.integers(0, 12, 200)})
    data = table(frame)
    other = table(frame.assign(years=np.where(np.arange(200) < 100, frame["years"], frame["years"] + 1)))
    drawn = measured(data, replace(other, origin="synthetic"))
    changed = measured(data, replace(other, origin="anonymised"))
    assert changed[:100].max() > 0.9
    assert changed[100:].max() > 0.9
    np.testing.assert_array_equal(drawn[:100], changed[:100])
    assert drawn[100:].max() == 0
    np.testing.assert_array_equal(measured(data, replace(data, origin="synthetic")), measured(data, data))
