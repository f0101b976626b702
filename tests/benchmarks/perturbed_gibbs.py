"""The perturbed Gibbs sampler on made-up discharges: seconds to count its tables, seconds to draw, and what grows with what.

    python tests/benchmarks/perturbed_gibbs.py [RECORDS] [SAMPLES]

Prints a table over records and features: seconds and peak memory of the process, and the exponent of growth from the line before.
The naive version groups the records by key with pandas, feature by feature.
"""

from __future__ import annotations

import math
import resource
import statistics
import sys
import time
from collections.abc import Callable

import numpy as np
from discharges import BINS, ORDER, discharges

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.data.schema import Schema
from sfumato.engine.design.binning import BinningRule
from sfumato.engine.methods.run import Run
from sfumato.engine.synthesis.perturbed_gibbs import PerturbedGibbsSpec, joint_draw, make_feature_keys, perturbed_gibbs

TIMES = 3


def seconds(work: Callable[[], object], times: int = TIMES) -> float:
    """The median of several runs."""
    found = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        found.append(time.perf_counter() - start)
    return statistics.median(found)


def narrowed(data: Microdata, names: tuple[str, ...]) -> Microdata:
    """These variables alone."""
    return Microdata(Schema(tuple(data.schema[name] for name in names)), data.frame[list(names)])


def naive(data: Microdata, names: tuple[str, ...], spec: PerturbedGibbsSpec) -> None:
    """The same counts by pandas' groupby."""
    features = make_feature_keys(data, names, spec)
    codes = features.record_codes(data, names)
    frame = data.frame.iloc[:, :0].copy()
    for name in names:
        frame["key"], frame["code"] = features.keys[name].key_of_records(codes, len(data)), codes[name]
        frame.groupby(["key", "code"]).size()


def line(whole: Microdata, records: int, features: int, samples: int) -> tuple[float, str]:
    """Seconds to count the tables of so many records and features, and the rest of the line of the table."""
    names = ORDER[:features]
    data = narrowed(Microdata(whole.schema, whole.frame.iloc[:records]), names)
    bins = {name: BinningRule.parse(rule) for name, rule in BINS.items() if name in names}
    spec, block = (PerturbedGibbsSpec(epsilon=1.0, bins=bins, reset=reset, block=10) for reset in (False, True))
    run = Run(np.random.default_rng(1))
    fit = perturbed_gibbs(data, names, spec, run, 1)
    counted = seconds(lambda: perturbed_gibbs(data, names, spec, run, 1))
    ratio = seconds(lambda: naive(data, names, spec), 1) / counted

    def draw(of: PerturbedGibbsSpec) -> object:
        return joint_draw(fit, of, names, data, data, 0, samples, np.random.default_rng(2))

    one, many = seconds(lambda: draw(spec)), seconds(lambda: draw(block))
    cells = sum(len(array) for name, array in fit.arrays.items() if name.endswith(".categories"))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return counted, f"{ratio:>12.1f} {one:>10.2f} s {many:>12.2f} s {cells:>8,} {peak:>5.2f} GiB"


def main() -> None:
    """Print the table."""
    records = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    samples = int(sys.argv[2]) if len(sys.argv) > 2 else 100_000
    whole = discharges(records, exact=True)
    print(f"records features     tables  growth  naive ratio   {samples:,} by PeGS, by PeGS.rs    cells      peak")
    before: dict[int, tuple[int, float]] = {}
    for n in (records // 10, records // 3, records):
        for features in (5, 13):
            counted, rest = line(whole, n, features, samples)
            last = before.get(features)
            growth = f"{math.log(counted / last[1]) / math.log(n / last[0]):.2f}" if last else ""
            before[features] = (n, counted)
            print(f"{n:>9,} {features:>6} {counted:>8.2f} s {growth:>7} {rest}", flush=True)


if __name__ == "__main__":
    main()
