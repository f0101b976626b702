"""What a key costs: numbers of a keyed stream beside a public one's, the start of a stream, the hash of the data, and whole steps.

Prints a table: milliseconds by the public key, by a secret one, and their ratio.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pandas as pd

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.execution.tasks import draw_dataset, fit_model
from sfumato.engine.methods.run import PUBLIC, Randomness
from sfumato.engine.recipe.recipe import Recipe

KEY = bytes(range(32))
MILLION = 1_000_000
VARIABLES = {
    "group": {"kind": "categorical", "role": "quasi_identifier"},
    "age": {"kind": "count", "role": "quasi_identifier"},
    "income": {"kind": "continuous", "role": "sensitive"},
}


def milliseconds(work: Callable[[], object], times: int = 7) -> float:
    """Of processor time, the least of so many runs."""
    found = []
    for _ in range(times):
        start = time.process_time()
        work()
        found.append(time.process_time() - start)
    return 1000 * min(found)


def numbers(key: bytes, what: str) -> Callable[[], object]:
    """A million numbers of a kind."""
    rng, sizes = Randomness(1, key).generator("draw", 1, 0), np.full(MILLION, 20)
    kinds: dict[str, Callable[[], object]] = {
        "uniform": lambda: rng.random(MILLION),
        "normal": lambda: rng.standard_normal(MILLION),
        "place of a donor": lambda: rng.integers(sizes),
        "permutation": lambda: rng.permutation(MILLION),
    }
    return kinds[what]


def table(n: int) -> pd.DataFrame:
    """Simulated records."""
    rng = np.random.default_rng(1)
    group, age = rng.choice(list("abcdef"), n), rng.integers(18, 90, n)
    return pd.DataFrame({"group": group, "age": age, "income": np.exp(rng.normal(9 + age / 90, 0.5))})


def step(method: str, frame: pd.DataFrame, key: bytes) -> Callable[[], object]:
    """A fit and five datasets, from data that nothing has hashed yet."""
    making = {"target": "income", "method": method, "predictors": ["group", "age"]}
    recipe = Recipe.from_table({"variables": VARIABLES, "release": {"m": 5, "seed": 1}, "synthesis": [making]})
    conformed = conform_to_schema(frame, recipe.schema)

    def fit_and_draw() -> None:
        data = Microdata(conformed.schema, conformed.frame)
        fits = [fit_model(recipe, 0, data, key=key)]
        for draw in range(1, 6):
            draw_dataset(recipe, draw, data, fits, key=key)

    return fit_and_draw


def main() -> None:
    """The table."""
    print(f"{'':44}{'public':>10}{'secret':>10}{'ratio':>8}   ms")
    rows = [
        (f"a million: {what}", lambda key, what=what: numbers(key, what))
        for what in ("uniform", "normal", "place of a donor", "permutation")
    ]
    rows.append(
        ("the start of a stream", lambda key: lambda: Randomness(1, key, ("data", "making")).generator("draw", 1, 0))
    )
    for n in (10_000, 300_000):
        frame = table(n)
        rows += [
            (f"{method}, {n:,} records, m = 5", lambda key, method=method, frame=frame: step(method, frame, key))
            for method in ("linear_regression", "cart")
        ]
    for name, work in rows:
        public, secret = (milliseconds(work(key), 7 if "records" not in name else 3) for key in (PUBLIC, KEY))
        print(f"{name:44}{public:10.3f}{secret:10.3f}{secret / public:8.2f}")
    frame = table(MILLION)
    recipe = Recipe.from_table(
        {"variables": VARIABLES, "release": {"m": 1}, "synthesis": [{"target": "income", "method": "cart"}]}
    )
    data = conform_to_schema(frame, recipe.schema)
    hashing = milliseconds(lambda: Microdata(data.schema, data.frame).sha256, 3)
    print(f"{'hash of a million records, 3 variables':44}{0:10.3f}{hashing:10.3f}{'':8}   once a table and process")


if __name__ == "__main__":
    main()
