"""Times of measures by unit: 1,000,000 records in 400,000 households, 12 variables. Run as a script; prints a table.

    python tests/benchmarks/units.py

Three variables are drawn for 30 % of the records; the others are kept. With a radius: sex and region are known, and ages
within two years, half of which are drawn. Times are of the processor.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pandas as pd

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.data.schema import Kind, Role, Schema, Variable
from sfumato.engine.matching.intruder import IntruderKnowledge
from sfumato.engine.matching.unit_matching import UnitMatcher, find_best_unit_matches
from sfumato.engine.methods.registry import registry
from sfumato.engine.methods.run import Run

RECORDS, HOUSEHOLDS = 1_000_000, 400_000
LEVELS = (2, 5, 8, 3, 10, 4, 6, 2, 20, 7, 3, 5)
DRAWN = (8, 9, 10)
NAMES = tuple(f"v{place}" for place in range(len(LEVELS)))
SCHEMA = Schema(
    (
        Variable("household", Kind.COUNT, Role.UNIT),
        *(
            Variable(name, Kind.CATEGORICAL, Role.QUASI_IDENTIFIER, levels=tuple(map(str, range(levels))))
            for name, levels in zip(NAMES, LEVELS, strict=True)
        ),
    )
)


def tables() -> tuple[Microdata, Microdata]:
    """The confidential records and their release."""
    rng = np.random.default_rng(1)
    sizes = 1 + rng.multinomial(RECORDS - HOUSEHOLDS, np.full(HOUSEHOLDS, 1 / HOUSEHOLDS))
    codes = [rng.integers(levels, size=RECORDS) for levels in LEVELS]
    drawn = [
        np.where(rng.random(RECORDS) < 0.3, rng.integers(levels, size=RECORDS), own) if place in DRAWN else own
        for place, (own, levels) in enumerate(zip(codes, LEVELS, strict=True))
    ]

    def frame(of: list[np.ndarray]) -> pd.DataFrame:
        columns = {
            name: pd.Categorical.from_codes(own, [str(level) for level in range(levels)])
            for name, own, levels in zip(NAMES, of, LEVELS, strict=True)
        }
        return pd.DataFrame({"household": np.repeat(np.arange(HOUSEHOLDS), sizes), **columns})

    return Microdata(SCHEMA, frame(codes)), Microdata(SCHEMA, frame(drawn), "synthetic", linked=True)


def tables_with_ages() -> tuple[Microdata, Microdata]:
    """The same of two variables of levels and an age."""
    rng = np.random.default_rng(2)
    sizes = 1 + rng.multinomial(RECORDS - HOUSEHOLDS, np.full(HOUSEHOLDS, 1 / HOUSEHOLDS))
    age = rng.integers(0, 90, RECORDS)
    schema = Schema((*list(SCHEMA)[:1], SCHEMA["v0"], SCHEMA["v2"], Variable("age", Kind.COUNT)))
    frame = pd.DataFrame(
        {
            "household": np.repeat(np.arange(HOUSEHOLDS), sizes),
            "v0": pd.Categorical.from_codes(rng.integers(2, size=RECORDS), list("01")),
            "v2": pd.Categorical.from_codes(rng.integers(8, size=RECORDS), list("01234567")),
            "age": age,
        }
    )
    drawn = np.where(rng.random(RECORDS) < 0.5, rng.integers(0, 90, RECORDS), age)
    return Microdata(schema, frame), Microdata(schema, frame.assign(age=drawn), "synthetic", linked=True)


def main() -> None:
    own, released = tables()
    units, theirs = own.units, released.units
    assert units is not None
    assert theirs is not None
    everyone = np.arange(len(units))

    def timed(what: str, work: Callable[[], object]) -> object:
        start = time.process_time()
        found = work()
        print(f"{what:60} {time.process_time() - start:6.2f} s")
        return found

    keys = IntruderKnowledge.from_variables(own, NAMES, {}).keys_by_variable(released)
    own_unit = theirs.unit_of[units.first_records]
    matcher = timed(
        "identification by unit: keys of 12 variables",
        lambda: UnitMatcher(keys, units, theirs, by_place=False, own=own_unit),
    )
    assert isinstance(matcher, UnitMatcher)
    timed("identification by unit: all households matched", lambda: matcher.match(NAMES, everyone))
    timed("the same by the best choice of variables", lambda: find_best_unit_matches(matcher, everyone))
    for key, settings in (
        ("risk.identification", {"known": NAMES[:8], "synthesised": NAMES[8:]}),
        ("risk.uniqueness", {"keys": NAMES}),
        ("risk.exact_copies", {}),
        ("risk.anonymity", {"quasi_identifiers": NAMES[:8], "sensitive": NAMES[8:9]}),
        ("risk.special_uniques", {"keys": NAMES[:5]}),
        ("utility.units", {"types": NAMES[8:]}),
        ("utility.propensity", {"of": "units"}),
    ):
        method = registry()[key]
        spec = method.spec.from_table(
            {name: list(v) if isinstance(v, tuple) else v for name, v in settings.items()}, "step"
        )
        spec = spec.for_release(SCHEMA, tuple(NAMES[place] for place in DRAWN))
        run = Run(np.random.default_rng(0))
        timed(f"{key}, by record and by unit", lambda f=method.func, s=spec, r=run: f(own, released, s, r))
    own, released = tables_with_ages()
    units, theirs = own.units, released.units
    assert units is not None
    assert theirs is not None
    spec = registry()["risk.identification"].spec.from_table({"known": ["v0", "v2"], "synthesised": ["age"], "radius": {"age": 2}}, "step")  # fmt: skip
    known = IntruderKnowledge.from_variables(own, ("v0", "v2", "age"), spec.radius).keys_by_variable(released)
    by_age = UnitMatcher(known, units, theirs, by_place=False, own=theirs.unit_of[units.first_records])
    timed("with a radius: all households matched", lambda: by_age.match(by_age.names, everyone))
    timed("the same by the best choice of variables", lambda: find_best_unit_matches(by_age, everyone))


if __name__ == "__main__":
    main()
