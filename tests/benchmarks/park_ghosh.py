"""The tables and figures of Park & Ghosh on made-up discharges of the shape of its data.

    python tests/benchmarks/park_ghosh.py [RECORDS] [DRAWN] [EPSILON]...

Prints, as tables, what becomes of one record on its way (Table 3, Figures 1 and 2), of the records of a block one after another
(Figures 3 and 4), and of every measure of each synthesiser along epsilon (Table 1, Figures 5 to 9); 50,000 records, 1,000 drawn, and the
paper's seven epsilons where nothing else is said.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence

import numpy as np
from discharges import BINS, ORDER, SCHEMA, discharges

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.execution.tasks import rows_of_measure
from sfumato.engine.methods.registry import method_by_key
from sfumato.engine.methods.rows import Row
from sfumato.engine.methods.run import Run
from sfumato.engine.studies.risk_utility import RiskUtilitySpec, risk_utility, summarise_limits
from sfumato.engine.synthesis._conditional_tables import ConditionalTable
from sfumato.engine.synthesis.perturbed_gibbs import (
    PerturbedGibbsSpec,
    PerturbedSampler,
    make_feature_keys,
    perturbed_gibbs,
    uniform_draw_shares,
)
from sfumato.workspace.reporting.results import joint_curve_tables
from sfumato.workspace.reporting.tables import DisplayTable, format_table, table_from_titles
from sfumato.workspace.reporting.words import number

KEY = "studies.risk_utility"
SETTINGS = {
    "variables": list(ORDER),
    "synthesisers": [
        'perturbed_gibbs order="mutual_information"',
        'perturbed_gibbs order="mutual_information" reset=true block=10',
        "perturbed_imputation fit_records=1000",
        "marginal_bootstrap",
        "dirichlet_multinomial concentration=1e-10",
    ],
    "replicates": 3,
    "bins": dict(BINS),
    "given": ["age", "patzip"],
    "models": ["charge ~ age + sev + cat + los", "logit: charge > 25000 ~ age + sev + cat + los"],
}
ATTACKS = (
    {"sensitive": "mdc", "known": ["age", "sex", "patzip"]},
    {"sensitive": "charge", "known": ["age", "los", "patzip"], "given": [], "models": []},
)
PLACES = (1, 2, 5, 10, 20, 50)
SHOWN = ("charge", "age")
WAY_EPSILON, BLOCK_EPSILON, BLOCKS = 10.0, 100.0, 2000


def sampler_of(data: Microdata, epsilon: float) -> PerturbedSampler:
    """The perturbed tables of all variables."""
    spec = PerturbedGibbsSpec.from_table({"epsilon": epsilon, "order": "mutual_information", "bins": dict(BINS)}, "")
    features = make_feature_keys(data, ORDER, spec)
    fit = perturbed_gibbs(data, ORDER, spec, Run(np.random.default_rng(1)), 1)
    tables = {name: ConditionalTable.from_arrays(fit.arrays, name, features.categories[name].size) for name in ORDER}
    mixed = {name: uniform_draw_shares(tables[name], features.categories[name], spec, len(ORDER)) for name in ORDER}
    return PerturbedSampler(features, tables, mixed)


def way_of_one_record(sampler: PerturbedSampler, seed: Mapping[str, int], rng: np.random.Generator) -> DisplayTable:
    """The categories of a record before and after each draw, by number (Table 3)."""
    now = {name: np.array([seed[name]], dtype=np.int64) for name in ORDER}
    lines = [["seed", *(str(now[name][0]) for name in ORDER)]]
    for name in ORDER:
        one = PerturbedSampler(sampler.features, {name: sampler.tables[name]}, {name: sampler.uniform_shares[name]})
        now |= one.draw_sweep(now, 1, rng)
        lines.append([f"{name} given the others", *(str(now[other][0]) for other in ORDER)])
    return table_from_titles(
        ["sequence", *ORDER], lines, range(1, len(ORDER) + 1), title="Table 3: categories by number, draw by draw"
    )


def places_in_a_block(
    sampler: PerturbedSampler, data: Microdata, rng: np.random.Generator
) -> dict[tuple[str, str], list[float]]:
    """The marginal distance of the b-th records of many blocks with reset, and of the b-th states of as many chains without.

    By variable and sampler, one distance a place of ``PLACES``.
    """
    categories = sampler.features.categories
    start = {name: rng.integers(categories[name].size, size=BLOCKS) for name in ORDER}
    reset = sampler.blocks(start, max(PLACES), rng)
    chain, state = {}, start
    for place in range(1, max(PLACES) + 1):
        state = sampler.draw_sweep(state, BLOCKS, rng)
        chain[place] = state
    found: dict[tuple[str, str], list[float]] = {}
    for name in SHOWN:
        own = np.bincount(categories[name].category_codes(data), minlength=categories[name].size) / len(data)
        for words, drawn in (
            ("without reset", [chain[place][name] for place in PLACES]),
            ("with reset", [reset[name][place - 1] for place in PLACES]),
        ):
            shares = [np.bincount(codes, minlength=len(own)) / len(codes) for codes in drawn]
            found[name, words] = [float(((share - own) ** 2).sum()) for share in shares]
        found[name, "uniform"] = [float(((1 / len(own) - own) ** 2).sum())] * len(PLACES)
    return found


def block_table(found: Mapping[tuple[str, str], Sequence[float]]) -> DisplayTable:
    """The distances, a line a variable and sampler."""
    lines = [[name, words, *map(number, values)] for (name, words), values in found.items()]
    heads = ["variable", "sampler", *(f"record {place}" for place in PLACES)]
    title = "Figures 3 and 4: marginal distance of the records of a block, one after another"
    return table_from_titles(heads, lines, range(2, len(heads)), title=title)


def along_epsilon(data: Microdata, settings: Mapping[str, object], epsilons: Sequence[float], drawn: int) -> list[Row]:
    """The rows of the study."""
    method = method_by_key(KEY)
    assert method is not None
    spec = RiskUtilitySpec.from_table({**SETTINGS, **settings, "records": drawn}, KEY)
    rows: list[Row] = []
    for epsilon in epsilons:
        point = risk_utility(data, [], epsilon, spec, Run(np.random.default_rng(3)))
        assert point.confidential is not None
        rows += rows_of_measure(method, point.confidential, "confidential", None, epsilon, spec.settings(SCHEMA, ()))
    return [*rows, *summarise_limits(rows)]


def main() -> None:
    """Print the tables."""
    given = [float(word) for word in sys.argv[1:]]
    records, drawn = (int(given[i]) if len(given) > i else default for i, default in enumerate((50_000, 1_000)))
    epsilons = given[2:] or list(RiskUtilitySpec().epsilons)
    rng, start = np.random.default_rng(2), time.perf_counter()
    data = discharges(records)
    sampler = sampler_of(data, WAY_EPSILON)
    seed = {name: int(sampler.features.categories[name].category_codes(data)[0]) for name in ORDER}
    print(format_table(way_of_one_record(sampler, seed, rng)), end="\n\n")
    print(format_table(block_table(places_in_a_block(sampler_of(data, BLOCK_EPSILON), data, rng))), end="\n\n")
    method = method_by_key(KEY)
    assert method is not None
    for settings in ATTACKS:
        rows = along_epsilon(data, settings, epsilons, drawn)
        if settings is not ATTACKS[0]:
            rows = [row for row in rows if row.measure == "mean_absolute_error"]
        for one in joint_curve_tables(method, rows):
            print(format_table(one), end="\n\n")
    print(f"{records:,} records, {drawn:,} drawn: {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
