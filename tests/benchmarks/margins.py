"""Margins: seconds, memory, and how near releases are to the confidential data.

    python tests/benchmarks/margins.py [joint|tree|large|private|gibbs|coarsened] [SEEDS]

Without a word all tables are printed. ``private``, ``gibbs`` and ``coarsened`` are of Adult as ``adult_marginals.json`` cuts it: mean total
variation over its 91 pairs and 100 triples, with that file's figures of others beside ours.
"""

from __future__ import annotations

import itertools
import json
import resource
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from public_data import PUBLIC_DATA

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.data.schema import Kind, Schema, Variable
from sfumato.engine.margins.domain import Clique, Domain, total_variation
from sfumato.engine.methods.results import Fit
from sfumato.engine.methods.run import Run
from sfumato.engine.synthesis import margins, perturbed_gibbs
from sfumato.engine.synthesis.margins import MarginsSpec, Table, Together

DELTA = 1e-9


def seconds(work: Callable[[], Any]) -> tuple[Any, float, float]:
    """The answer, seconds by the clock, and seconds of processor time: others may use the machine."""
    start, own = time.perf_counter(), time.process_time()
    found = work()
    return found, time.perf_counter() - start, time.process_time() - own


def peak() -> float:
    """Most memory of this process so far, in GiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def microdata(codes: np.ndarray, sizes: Sequence[int], names: Sequence[str]) -> Microdata:
    """Categories (n, variables) as a table of declared levels."""
    levels = [tuple(map(str, range(size))) for size in sizes]
    schema = Schema(tuple(Variable(n, Kind.CATEGORICAL, levels=own) for n, own in zip(names, levels, strict=True)))
    frame = {n: pd.Categorical.from_codes(codes[:, at], levels[at]) for at, n in enumerate(names)}
    return Microdata(schema, pd.DataFrame(frame))


def simulated(records: int, sizes: Sequence[int], seed: int) -> np.ndarray:
    """Records of a mixture of 30 classes: variables that go together, with rare categories."""
    rng = np.random.default_rng(seed)
    classes = rng.integers(30, size=records)
    columns = []
    for size in sizes:
        shares = rng.dirichlet(np.full(size, 0.15), 30) * 0.95 + 0.05 * rng.dirichlet(np.full(size, 0.15))
        upto = np.cumsum(shares, axis=1)
        columns.append(np.minimum((rng.random(records)[:, None] > upto[classes]).sum(axis=1), size - 1))
    return np.column_stack(columns)


def fitted(data: Microdata, spec: MarginsSpec, seed: int = 1) -> Fit:
    return margins.margins(data, data.schema.names, spec, Run(np.random.default_rng(seed)), 1)


def drawn(data: Microdata, fit: Fit, spec: MarginsSpec, records: int, seed: int = 2) -> np.ndarray:
    table = Table.of(data, data.schema.names, spec)
    return margins.drawn_codes(fit, table, records, np.random.default_rng(seed))


def apart(domain: Domain, ours: np.ndarray, theirs: np.ndarray, cliques: Sequence[Clique]) -> float:
    """Mean total variation over margins."""
    found = [total_variation(domain.count(ours, c) / len(ours), domain.count(theirs, c) / len(theirs)) for c in cliques]
    return float(np.mean(found))


def said(fit: Fit) -> dict[str, float]:
    return {one.name: float(one.value or 0) for one in fit.diagnostics}


def joint() -> None:
    """8 variables, 604,800 cells, 22 margins: a fit, the audit, 10^6 records."""
    sizes = (7, 6, 5, 4, 6, 8, 5, 3)
    names = tuple("abcdefgh")
    codes = simulated(100_000, sizes, 1)
    data = microdata(codes, sizes, names)
    kept_pairs = [*itertools.combinations(names[:7], 2), ("h",)]
    spec = MarginsSpec(margins=tuple(Together(one) for one in kept_pairs), audit=False)
    fit, wall, own = seconds(lambda: fitted(data, spec))
    records, draw_wall, draw_own = seconds(lambda: drawn(data, fit, spec, 1_000_000))
    domain = Domain(sizes)
    kept = [tuple(names.index(v) for v in one.columns) for one in spec.margins]
    others = [p for p in domain.pairs if not any(set(p) <= set(k) for k in kept)]
    print(
        f"8 variables, {domain.cells():,} cells, {len(kept)} margins of 100,000 records, coarsened to multiples of 10"
    )
    print(
        f"  fit {wall:.2f} s ({own:.2f} s of processor), 10^6 records {draw_wall:.2f} s ({draw_own:.2f} s), peak {peak():.2f} GiB"
    )
    farthest = max(apart(domain, codes, records, [k]) for k in kept)
    print(
        f"  total variation: kept {apart(domain, codes, records, kept):.4f} (largest {farthest:.4f}), other pairs {apart(domain, codes, records, others):.4f}"
    )
    audited, wall, own = seconds(lambda: fitted(data, MarginsSpec(margins=spec.margins)))
    found = said(audited)
    print(
        f"  linear programs: {found['small_counts_that_follow']:.0f} of {found['small_counts_looked_at']:.0f} small counts follow; "
        f"{found['sets_of_variables_too_large_to_look_at']:.0f} sets of variables too large; fit with audit {wall:.1f} s ({own:.1f} s)"
    )


def adult() -> tuple[np.ndarray, tuple[int, ...], tuple[str, ...], list[Clique], dict[str, Any]]:
    """Adult by the public domain: categories (48,842, 14), their numbers, names, the triples, and the file itself."""
    told = json.loads((PUBLIC_DATA / "adult_marginals.json").read_text())
    frame = pd.read_csv(PUBLIC_DATA / "adult.csv", dtype=str, keep_default_na=False)
    columns, sizes = [], []
    for one in told["domain"]:
        values = frame[one["name"]].str.strip()
        if "categories" in one:
            places = {name: at for at, name in enumerate(one["categories"])} | {"": -1, "?": -1}
            codes = values.map(places).to_numpy()
            codes = np.where(codes < 0, len(one["categories"]) - 1, codes)
            sizes.append(len(one["categories"]))
        else:
            codes = np.searchsorted(np.array(one["edges"], dtype=float), values.astype(float), side="right") - 1
            sizes.append(len(one["edges"]))
        columns.append(codes)
    names = tuple(one["name"] for one in told["domain"])
    triples = [tuple(sorted(names.index(v) for v in one)) for one in told["three_way_marginals"]]
    return np.column_stack(columns), tuple(sizes), names, triples, told["reference"]


def line(
    what: str, domain: Domain, codes: np.ndarray, records: np.ndarray, triples: Sequence[Clique]
) -> tuple[float, float]:
    pairs, threes = apart(domain, codes, records, domain.pairs), apart(domain, codes, records, triples)
    print(f"  {what:<52} {pairs:.4f} {threes:.4f}", flush=True)
    return pairs, threes


def tree() -> None:
    """Adult with 14 variables: a tree of pairs, and all pairs."""
    codes, sizes, names, triples, _ = adult()
    data, domain = microdata(codes, sizes, names), Domain(sizes)
    print(
        f"Adult, 14 variables, {domain.cells():.2g} cells, 48,842 records, coarsened to multiples of 10: pairs and triples"
    )
    for selection in ("mst", "pairs"):
        spec = MarginsSpec(selection=selection, audit=False)  # type: ignore[arg-type]
        fit, wall, own = seconds(lambda spec=spec: fitted(data, spec))
        records = drawn(data, fit, spec, len(codes))
        line(
            f"{selection}: {wall:.1f} s ({own:.1f} s), {said(fit)['margins']:.0f} margins, {peak():.2f} GiB",
            domain,
            codes,
            records,
            triples,
        )


def large() -> None:
    """30 variables of 10^6 records, all 435 pairs."""
    rng = np.random.default_rng(3)
    sizes = tuple(int(n) for n in rng.integers(2, 13, 30))
    names = tuple(f"v{at}" for at in range(30))
    codes = simulated(1_000_000, sizes, 4)
    data, domain = microdata(codes, sizes, names), Domain(sizes)
    for selection in ("mst", "pairs"):
        spec = MarginsSpec(selection=selection, audit=False)  # type: ignore[arg-type]
        fit, wall, own = seconds(lambda spec=spec: fitted(data, spec))
        records, draw_wall, draw_own = seconds(lambda fit=fit, spec=spec: drawn(data, fit, spec, 1_000_000))
        print(
            f"30 variables x 10^6 records, {selection}: fit {wall:.1f} s ({own:.1f} s), 10^6 records {draw_wall:.1f} s ({draw_own:.1f} s), "
            f"{peak():.2f} GiB, pairs {apart(domain, codes, records, domain.pairs):.4f}",
            flush=True,
        )


def private(seeds: int) -> None:
    """Adult at epsilon .1, 1 and 10, selection included."""
    codes, sizes, names, triples, reference = adult()
    data, domain = microdata(codes, sizes, names), Domain(sizes)
    goals = {0.1: (0.080, 0.150), 1.0: (0.030, 0.075), 10.0: (0.015, 0.045)}
    print("Adult, private: mean total variation of pairs and triples, delta 1e-9, choice of margins included")
    for epsilon, goal in goals.items():
        found, walls, owns = [], [], []
        spec = MarginsSpec(epsilon=epsilon, delta=DELTA)
        for seed in range(seeds):
            (fit, records), wall, own = seconds(lambda seed=seed, spec=spec: _released(data, spec, len(codes), seed))
            found.append((apart(domain, codes, records, domain.pairs), apart(domain, codes, records, triples)))
            walls.append(wall)
            owns.append(own)
        mean, spread = np.mean(found, axis=0), np.std(found, axis=0)
        theirs = [
            f"{name} {one['mean_drawn_well']['two_way']:.3f} / {one['mean_drawn_well']['three_way']:.3f} in {one['seconds_median']:.0f} s"
            for name in ("mst", "aim_bounded")
            for one in reference[name]
            if one["epsilon"] == epsilon
        ]
        print(
            f"  epsilon {epsilon:<5g} {mean[0]:.4f} (sd {spread[0]:.4f}) / {mean[1]:.4f} (sd {spread[1]:.4f}), goal {goal[0]:.3f} / {goal[1]:.3f}, {seeds} seeds, "
            f"{np.median(walls):.1f} s ({np.median(owns):.1f} s of processor), {said(fit)['margins']:.0f} margins, {peak():.2f} GiB; {'; '.join(theirs)}",
            flush=True,
        )


def _released(data: Microdata, spec: MarginsSpec, records: int, seed: int) -> tuple[Fit, np.ndarray]:
    fit = fitted(data, spec, seed)
    return fit, drawn(data, fit, spec, records, seed + 100)


def gibbs() -> None:
    """Perturbed Gibbs at the same epsilon of a release of as many records: epsilon / n for each."""
    codes, sizes, names, triples, _ = adult()
    data, domain = microdata(codes, sizes, names), Domain(sizes)
    print("Adult, perturbed Gibbs with reset, blocks of 10: 1,000 records for the same epsilon of the release")
    for epsilon in (0.1, 1.0, 10.0):
        spec = perturbed_gibbs.PerturbedGibbsSpec(epsilon=epsilon / 100, reset=True, block=10)
        run = Run(np.random.default_rng(1))
        fit = perturbed_gibbs.perturbed_gibbs(data, names, spec, run, 1)
        values = perturbed_gibbs.joint_draw(fit, spec, names, data, data, 0, 1_000, run.rng)
        records = np.column_stack([np.asarray(values[name], dtype=np.int64) for name in names])
        line(f"epsilon {epsilon:g}", domain, codes, records, triples)


def coarsened() -> None:
    """Adult coarsened to multiples of 10, all pairs that fit a budget of cells."""
    codes, sizes, names, triples, _ = adult()
    data, domain = microdata(codes, sizes, names), Domain(sizes)
    print("Adult, coarsened to multiples of 10; reference: a tree of pairs .042 / .098")
    for cells in (3_000, 10_000, 30_000):
        spec = MarginsSpec(cells=cells, audit=False)
        fit, wall, own = seconds(lambda spec=spec: fitted(data, spec))
        records = drawn(data, fit, spec, len(codes))
        line(
            f"{cells:,} cells: {said(fit)['margins']:.0f} margins, {wall:.1f} s ({own:.1f} s)",
            domain,
            codes,
            records,
            triples,
        )
    boot = codes[np.random.default_rng(1).integers(len(codes), size=len(codes))]
    line("bootstrap of the records", domain, codes, boot, triples)


def main() -> None:
    """Print the tables."""
    words = sys.argv[1:]
    seeds = int(words.pop()) if words and words[-1].isdigit() else 10
    tables: dict[str, Callable[[], None]] = {
        "joint": joint, "tree": tree, "large": large, "private": lambda: private(seeds), "gibbs": gibbs, "coarsened": coarsened,
    }  # fmt: skip
    for name in words or tables:
        tables[name]()


if __name__ == "__main__":
    main()
