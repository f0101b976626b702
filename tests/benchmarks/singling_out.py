"""Predicates found and processor seconds of ``risk.singling_out``, 1,000 wanted. Run as a script; prints a table.

    python tests/benchmarks/singling_out.py

Adult of the public data in thirds: people, controls, and a third in place of a release. All variables, six of few
values, and four of which nearly every description fits several records, so that the search ends at its bound.
"""

from __future__ import annotations

import statistics
import time

import numpy as np
import pandas as pd
from public_data import PUBLIC_DATA

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.schema import Kind, MissingPolicy, Schema, Variable
from sfumato.engine.methods.results import Measure
from sfumato.engine.methods.run import Run
from sfumato.engine.risk.singling_out import SinglingOutSpec, singling_out

SIX = ["age", "education", "race", "sex", "marital_status", "occupation"]
FOUR = ["race", "sex", "relationship", "age"]
RUNS = 3


def thirds(frame: pd.DataFrame) -> list[Microdata]:
    numbers = set(frame.select_dtypes("number"))
    schema = Schema(
        tuple(
            Variable(name, Kind.COUNT)
            if name in numbers
            else Variable(name, Kind.CATEGORICAL, levels=tuple(sorted(frame[name].dropna().unique())))
            for name in frame
        )
    )
    mixed = frame.sample(frac=1, random_state=1).reset_index(drop=True)
    size = len(mixed) // 3
    return [
        conform_to_schema(mixed.iloc[part * size : (part + 1) * size], schema, MissingPolicy.KEEP) for part in range(3)
    ]


def attack(people: Microdata, controls: Microdata, shown: Microdata) -> Measure:
    spec = SinglingOutSpec().for_release(people.schema, ())
    released = Microdata(shown.schema, shown.frame, "synthetic")
    return singling_out(people.with_controls(controls), released, spec, Run(np.random.default_rng(1)))


def main() -> None:
    adult = pd.read_csv(PUBLIC_DATA / "adult.csv", skipinitialspace=True)
    print(f"{'variables':>9} {'one variable':>13} {'several':>8} {'vulnerable':>11} {'seconds':>8}")
    for names in (list(adult), SIX, FOUR):
        tables, seconds = thirds(adult[names]), []
        for _ in range(RUNS):
            start = time.process_time()
            found = attack(*tables)
            seconds.append(time.process_time() - start)
        guesses = [int(one.value or 0) for one in found.estimates if one.measure == "guesses"]
        print(f"{len(names):>9} {guesses[0]:>13} {guesses[1]:>8} {guesses[2]:>11} {statistics.median(seconds):>8.2f}")


if __name__ == "__main__":
    main()
