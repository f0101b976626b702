"""Adult: the true keys and occupation of the 2 % rarest people among records of other people, asked of random and of vulnerable people."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sfumato.engine.adversary.targets import score_vulnerability
from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.schema import Kind, MissingPolicy, Role, Schema, Variable
from sfumato.engine.methods.results import Estimate
from sfumato.engine.methods.run import Run
from sfumato.engine.risk.attribute_inference import AttributeInferenceSpec, attribute_inference

NUMBERS = ("age", "capital_gain", "capital_loss", "hours_per_week")
KEYS = ["age", "education", "marital_status", "race", "sex"]
PEOPLE, CONTROLS, LEAKED = 10_000, 2_500, 200


@pytest.mark.study
@pytest.mark.parametrize("rarest", ["by their keys", "by vulnerability"])
def test_the_keys_and_occupation_of_the_rarest_are_found(public_data: Callable[[str], Path], rarest: str) -> None:
    adult = pd.read_csv(public_data("adult.csv")).drop(columns=["fnlwgt", "education_num"]).dropna()
    adult = adult[(adult != "?").all(axis=1)].reset_index(drop=True)
    kinds = {name: Kind.COUNT if name in NUMBERS else Kind.CATEGORICAL for name in adult}
    schema = Schema(
        tuple(
            Variable(
                str(name),
                kind,
                Role.QUASI_IDENTIFIER if name in KEYS else Role.SENSITIVE if name == "occupation" else Role.OTHER,
                levels=() if name in NUMBERS else tuple(sorted(adult[name].unique())),
            )
            for name, kind in kinds.items()
        )
    )
    order = np.random.default_rng(0).permutation(len(adult))
    own, others, fresh = (
        adult.iloc[order[a:b]].reset_index(drop=True)
        for a, b in ((0, PEOPLE), (PEOPLE, PEOPLE + CONTROLS), (PEOPLE + CONTROLS, 2 * PEOPLE + CONTROLS))
    )

    def table(frame: pd.DataFrame) -> Microdata:
        return conform_to_schema(frame, schema, MissingPolicy.KEEP)

    data = table(own).with_controls(table(others))
    if rarest == "by their keys":
        shares = sum(np.log(own[k].map(own[k].value_counts()).to_numpy(dtype=float)) for k in KEYS)
        rows = np.argsort(shares, kind="stable")[:LEAKED]
    else:
        rows = np.argsort(-score_vulnerability(data, table(others)).people, kind="stable")[:LEAKED]
    leaky = fresh.copy()
    some = [*KEYS, "occupation"]
    leaky.loc[leaky.index[:LEAKED], some] = own.loc[rows, some].to_numpy()

    def excess(released: pd.DataFrame) -> dict[str, Estimate]:
        spec = AttributeInferenceSpec(radius={}).for_release(schema, ())
        found = attribute_inference(data, table(released.astype(fresh.dtypes)), spec, Run(np.random.default_rng(0)))
        return {
            str(e.params.get("people", "random")): e
            for e in found.estimates
            if e.measure == "excess_risk" and "guesses" not in e.params
        }

    honest, leaked = excess(fresh), excess(leaky)
    for kind in ("random", "vulnerable"):
        said = [f"{e[kind].value:.3f} [{e[kind].lower:.3f}, {e[kind].upper:.3f}]" for e in (honest, leaked)]
        print(f"{LEAKED} rarest {rarest}, {kind} targets: excess {said[0]} of other people, {said[1]} with the leak")
    assert leaked["random"].value - honest["random"].value < 0.05  # type: ignore[operator]
    assert honest["vulnerable"].lower <= 0 <= honest["vulnerable"].upper  # type: ignore[operator]
    assert leaked["vulnerable"].lower > 0  # type: ignore[operator]
    assert leaked["vulnerable"].value > 0.1  # type: ignore[operator]
