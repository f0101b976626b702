"""Margins: seconds, memory, and how near releases are to the confidential data.

    python tests/benchmarks/margins.py [joint|tree|large|private|gibbs|coarsened|relations|steady|others] [SEEDS]

Without a word all tables are printed. ``relations`` are kept and not kept ones of Adult and ACS beside the confidential ones. ``private``, ``gibbs`` and ``coarsened`` are of Adult as ``adult_marginals.json`` cuts it: mean total
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
from sfumato.engine.margins.domain import Clique, Domain, drop_contained, margin_of, to_shares, total_variation
from sfumato.engine.margins.joint_table import fit_joint_table
from sfumato.engine.methods.results import Fit
from sfumato.engine.methods.run import Run
from sfumato.engine.synthesis import margins, perturbed_gibbs
from sfumato.engine.synthesis.margins import MarginsSpec, MarginVariables, TargetTable, protected_margins

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


def fit_margins(data: Microdata, spec: MarginsSpec, seed: int = 1) -> Fit:
    return margins.margins(data, data.schema.names, spec, Run(np.random.default_rng(seed)), 1)


def draw_records(data: Microdata, fit: Fit, spec: MarginsSpec, records: int, seed: int = 2) -> np.ndarray:
    table = TargetTable.from_data(data, data.schema.names, spec)
    return margins.draw_codes(fit, table, records, np.random.default_rng(seed))


def apart(domain: Domain, ours: np.ndarray, theirs: np.ndarray, cliques: Sequence[Clique]) -> float:
    """Mean total variation over margins."""
    found = [
        total_variation(domain.count_records(ours, c) / len(ours), domain.count_records(theirs, c) / len(theirs))
        for c in cliques
    ]
    return float(np.mean(found))


def diagnostics_by_name(fit: Fit) -> dict[str, float]:
    return {one.name: float(one.value or 0) for one in fit.diagnostics}


def joint() -> None:
    """8 variables, 604,800 cells, 22 margins: a fit, the audit, 10^6 records."""
    sizes = (7, 6, 5, 4, 6, 8, 5, 3)
    names = tuple("abcdefgh")
    codes = simulated(100_000, sizes, 1)
    data = microdata(codes, sizes, names)
    kept_pairs = [*itertools.combinations(names[:7], 2), ("h",)]
    spec = MarginsSpec(margins=tuple(MarginVariables(one) for one in kept_pairs), audit=False)
    fit, wall, own = seconds(lambda: fit_margins(data, spec))
    records, draw_wall, draw_own = seconds(lambda: draw_records(data, fit, spec, 1_000_000))
    domain = Domain(sizes)
    kept = [tuple(names.index(v) for v in one.columns) for one in spec.margins]
    others = [p for p in domain.variable_pairs if not any(set(p) <= set(k) for k in kept)]
    print(
        f"8 variables, {domain.cell_count():,} cells, {len(kept)} margins of 100,000 records, coarsened to multiples of 10"
    )
    print(
        f"  fit {wall:.2f} s ({own:.2f} s of processor), 10^6 records {draw_wall:.2f} s ({draw_own:.2f} s), peak {peak():.2f} GiB"
    )
    farthest = max(apart(domain, codes, records, [k]) for k in kept)
    print(
        f"  total variation: kept {apart(domain, codes, records, kept):.4f} (largest {farthest:.4f}), other pairs {apart(domain, codes, records, others):.4f}"
    )
    audited, wall, own = seconds(lambda: fit_margins(data, MarginsSpec(margins=spec.margins)))
    found = diagnostics_by_name(audited)
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
    pairs, threes = apart(domain, codes, records, domain.variable_pairs), apart(domain, codes, records, triples)
    print(f"  {what:<52} {pairs:.4f} {threes:.4f}", flush=True)
    return pairs, threes


def tree() -> None:
    """Adult with 14 variables: a tree of pairs, and all pairs."""
    codes, sizes, names, triples, _ = adult()
    data, domain = microdata(codes, sizes, names), Domain(sizes)
    print(
        f"Adult, 14 variables, {domain.cell_count():.2g} cells, 48,842 records, coarsened to multiples of 10: pairs and triples"
    )
    for selection in ("mst", "pairs"):
        spec = MarginsSpec(selection=selection, audit=False)  # type: ignore[arg-type]
        fit, wall, own = seconds(lambda spec=spec: fit_margins(data, spec))
        records = draw_records(data, fit, spec, len(codes))
        line(
            f"{selection}: {wall:.1f} s ({own:.1f} s), {diagnostics_by_name(fit)['margins']:.0f} margins, {peak():.2f} GiB",
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
        fit, wall, own = seconds(lambda spec=spec: fit_margins(data, spec))
        records, draw_wall, draw_own = seconds(lambda fit=fit, spec=spec: draw_records(data, fit, spec, 1_000_000))
        print(
            f"30 variables x 10^6 records, {selection}: fit {wall:.1f} s ({own:.1f} s), 10^6 records {draw_wall:.1f} s ({draw_own:.1f} s), "
            f"{peak():.2f} GiB, pairs {apart(domain, codes, records, domain.variable_pairs):.4f}",
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
            found.append((apart(domain, codes, records, domain.variable_pairs), apart(domain, codes, records, triples)))
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
            f"{np.median(walls):.1f} s ({np.median(owns):.1f} s of processor), {diagnostics_by_name(fit)['margins']:.0f} margins, {peak():.2f} GiB; {'; '.join(theirs)}",
            flush=True,
        )


def _released(data: Microdata, spec: MarginsSpec, records: int, seed: int) -> tuple[Fit, np.ndarray]:
    fit = fit_margins(data, spec, seed)
    return fit, draw_records(data, fit, spec, records, seed + 100)


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
        fit, wall, own = seconds(lambda spec=spec: fit_margins(data, spec))
        records = draw_records(data, fit, spec, len(codes))
        line(
            f"{cells:,} cells: {diagnostics_by_name(fit)['margins']:.0f} margins, {wall:.1f} s ({own:.1f} s)",
            domain,
            codes,
            records,
            triples,
        )
    boot = codes[np.random.default_rng(1).integers(len(codes), size=len(codes))]
    line("bootstrap of the records", domain, codes, boot, triples)


def acs() -> tuple[np.ndarray, tuple[int, ...], tuple[str, ...]]:
    """The American Community Survey's 10,000 persons: categories of nine variables."""
    frame = pd.read_csv(PUBLIC_DATA / "acs.csv", dtype=str)
    columns = [pd.Categorical(frame[name]) for name in frame]
    return (
        np.column_stack([one.codes for one in columns]).astype(np.int64),
        tuple(len(one.categories) for one in columns),
        tuple(frame),
    )


def cramer(table: np.ndarray) -> float:
    """Cramer's V of a table of counts."""
    expected = table.sum(axis=1, keepdims=True) * table.sum(axis=0, keepdims=True) / table.sum()
    some = expected > 0
    chi = float(((table - expected)[some] ** 2 / expected[some]).sum())
    return float(np.sqrt(chi / table.sum() / max(min(table.shape) - 1, 1)))


def beyond_pairs(domain: Domain, codes: np.ndarray, triple: Clique) -> float:
    """What a table of three variables says beyond its pairs, in bits: 2 n of it is the likelihood ratio of the log-linear model of all pairs."""
    table = domain.count_records(codes, triple)
    own = Domain(domain.shape(triple))
    pairs = {pair: to_shares(margin_of(table, (0, 1, 2), pair)) for pair in own.variable_pairs}
    fitted_table = fit_joint_table(own, pairs).table
    observed = to_shares(table)
    some = (observed > 0) & (fitted_table > 0)
    return float((observed[some] * np.log2(observed[some] / fitted_table[some])).sum())


def logit(codes: np.ndarray, outcome: int, predictors: Sequence[tuple[int, int]]) -> np.ndarray:
    """Log odds of the last category of a variable, by whether predictors have these categories or higher ones; and standard errors."""
    import statsmodels.api as sm

    last = codes[:, outcome] == codes[:, outcome].max()
    design = sm.add_constant(np.column_stack([codes[:, at] >= cut for at, cut in predictors]).astype(float))
    found = sm.Logit(last.astype(float), design).fit(disp=0)
    return np.array([found.params[1:], found.bse[1:]])


def relations() -> None:
    """Which relations a coarsened release keeps and which it does not, beside the confidential ones: pairs, three-way, a regression."""
    codes, sizes, names, _, _ = adult()
    _relations(
        "Adult",
        codes,
        sizes,
        names,
        3_000,
        "income",
        ("sex", "education_num", "age", "hours_per_week", "marital_status"),
    )
    codes, sizes, names = acs()
    _relations("ACS", codes, sizes, names, 150, "HICOV", ("SEX", "MAR", "WAOB", "SCH", "MIG"))


def _relations(
    what: str,
    codes: np.ndarray,
    sizes: tuple[int, ...],
    names: tuple[str, ...],
    cells: int,
    outcome: str,
    predictors: tuple[str, ...],
) -> None:
    data, domain = microdata(codes, sizes, names), Domain(sizes)
    small = [t for t in itertools.combinations(range(len(names)), 3) if domain.cell_count(t) <= 400]
    found = {t: beyond_pairs(domain, codes, t) for t in small}
    strongest = sorted(small, key=lambda t: -found[t])[:60]
    chosen = [*protected_margins(fit_margins(data, MarginsSpec(cells=cells, audit=False))), *strongest[:6:2]]
    together = tuple(MarginVariables(tuple(names[at] for at in c)) for c in drop_contained(chosen))
    spec = MarginsSpec(margins=together, audit=False)
    fit = fit_margins(data, spec)
    kept = list(protected_margins(fit))
    records = draw_records(data, fit, spec, len(codes))
    print(
        f"{what}: {len(codes):,} records, {len(kept)} margins (pairs within {cells:,} cells by mutual information, and three of three variables), coarsened to multiples of 10"
    )

    def has(clique: Clique) -> bool:
        return any(set(clique) <= set(one) for one in kept)

    def shown(said: str, values: dict[Clique, tuple[float, float]], count: int = 4) -> None:
        for yes in (True, False):
            own = {c: v for c, v in values.items() if has(c) is yes}
            if own:
                mean = np.mean(list(own.values()), axis=0)
                print(
                    f"  {said}, {'kept' if yes else 'not kept':<8} {len(own):>3} mean {mean[0]:8.4f} -> {mean[1]:8.4f}"
                )
            for c in sorted(own, key=lambda c: -own[c][0])[:count]:
                print(f"      {' x '.join(names[at] for at in c):<44} {own[c][0]:8.4f} -> {own[c][1]:8.4f}")

    shown(
        "Cramer's V",
        {
            p: (cramer(domain.count_records(codes, p)), cramer(domain.count_records(records, p)))
            for p in domain.variable_pairs
        },
    )
    shown("bits beyond pairs", {t: (found[t], beyond_pairs(domain, records, t)) for t in strongest}, 3)
    at = names.index(outcome)
    cuts = [(names.index(name), int(np.median(codes[:, names.index(name)])) or 1) for name in predictors]
    ours, theirs = logit(codes, at, cuts), logit(records, at, cuts)
    print(f"  logistic regression of {outcome}: log odds (standard error)")
    for i, name in enumerate(predictors):
        said = "kept with the outcome" if has(tuple(sorted((at, cuts[i][0])))) else "not kept with it"
        print(
            f"      {name:<20} {ours[0, i]:7.3f} ({ours[1, i]:.3f}) -> {theirs[0, i]:7.3f} ({theirs[1, i]:.3f})  {said}"
        )


def steady() -> None:
    """Processor seconds of a noisy fit by the number of variables of 8 categories, and of a coarsened one."""
    for records, count in itertools.product((10_000, 100_000), (5, 10, 20)):
        data = microdata(simulated(records, [8] * count, 1), [8] * count, [f"v{at}" for at in range(count)])
        specs = [*(MarginsSpec(epsilon=epsilon) for epsilon in (0.1, 1.0, 10.0)), MarginsSpec(audit=False)]
        taken = [seconds(lambda spec=spec, data=data: fit_margins(data, spec))[2] for spec in specs]
        said = ", ".join(f"{one:.2f}" for one in taken)
        print(f"{records:>8,} records, {count:>2} variables: epsilon .1, 1, 10 and coarsened {said} s", flush=True)


def compare_untuned_tables(seeds: int) -> None:
    """Private releases of tables that nothing was tuned on: mean total variation of pairs and triples."""
    tables: dict[str, tuple[np.ndarray, tuple[int, ...], tuple[str, ...]]] = {"ACS": acs()}
    for records, number in ((10_000, 12), (100_000, 10)):
        sizes = tuple(int(n) for n in np.random.default_rng(number).integers(2, 10, number))
        tables[f"simulated {records:,} x {number}"] = (
            simulated(records, sizes, number),
            sizes,
            tuple(f"v{at}" for at in range(number)),
        )
    for what, (codes, sizes, names) in tables.items():
        data, domain = microdata(codes, sizes, names), Domain(sizes)
        triples = list(itertools.combinations(range(len(sizes)), 3))
        for epsilon in (0.1, 1.0, 10.0):
            spec = MarginsSpec(epsilon=epsilon, delta=DELTA)
            found = []
            for seed in range(seeds):
                _, records = _released(data, spec, len(codes), seed)
                found.append(
                    (apart(domain, codes, records, domain.variable_pairs), apart(domain, codes, records, triples))
                )
            mean = np.mean(found, axis=0)
            print(f"{what:<24} epsilon {epsilon:<5g} {mean[0]:.4f} / {mean[1]:.4f}", flush=True)


def main() -> None:
    """Print the tables."""
    words = sys.argv[1:]
    seeds = int(words.pop()) if words and words[-1].isdigit() else 10
    tables: dict[str, Callable[[], None]] = {
        "joint": joint, "tree": tree, "large": large, "private": lambda: private(seeds), "gibbs": gibbs, "coarsened": coarsened,
        "relations": relations, "steady": steady, "others": lambda: compare_untuned_tables(seeds),
    }  # fmt: skip
    for name in words or tables:
        tables[name]()


if __name__ == "__main__":
    main()
