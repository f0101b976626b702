"""What an audit of single records finds of Adult under several recipes, and what its shadows take. Run as a script; prints tables.

    python tests/benchmarks/record_audit.py [--what found|fresh|whole|refits|exact|private] [--records 1000] [--shadows 200] [--background half|all] [--jobs 2]

``found``: mean and largest AUC by recipe. ``whole``: seconds of an audit of 40 targets in a workspace, by two processes, for each of the records and shadows. ``refits``: processor seconds of a shadow by records, beside scikit-learn's trees fitted and sampled
in the same order. ``exact``: likelihood ratios beside the classifier. ``private``: lower bounds of epsilon beside the claim.
"""

from __future__ import annotations

import argparse
import itertools
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from public_data import PUBLIC_DATA
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from sfumato.engine.adversary.shadows import ShadowDesign
from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.execution.refitting import RecipeShadows
from sfumato.engine.execution.tasks import execute_run
from sfumato.engine.methods.run import Randomness
from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace.ingest.files import SourceFile
from sfumato.workspace.jobs.runs import enter_run
from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.results import read_result_rows

KEY = b"audit benchmark, public key here"
KINDS = {
    "sex": "binary", "age": "count", "race": "categorical", "education": "categorical", "marital_status": "categorical",
    "relationship": "categorical", "workclass": "categorical", "occupation": "categorical", "hours_per_week": "count",
    "capital_gain": "count", "income": "binary",
}  # fmt: skip
NAMES = list(KINDS)
SENSITIVE = ("occupation", "income", "hours_per_week", "capital_gain")
KNOWN = [name for name in NAMES if name not in SENSITIVE]
BINS = {"age": "8 equal count", "hours_per_week": "5 equal count", "capital_gain": "at 1, 5000"}


def cart(leaf: int) -> list[dict[str, Any]]:
    first = {"method": "marginal_bootstrap", "target": NAMES[0]}
    rest = [
        {"method": "cart", "target": name, "predictors": NAMES[:i], "minbucket": leaf}
        for i, name in enumerate(NAMES)
        if i
    ]
    return [first, *rest]


RECIPES: Mapping[str, Mapping[str, Any]] = {
    "trees, leaves of 5": {"synthesis": cart(5)},
    "trees, leaves of 50": {"synthesis": cart(50)},
    "independent margins": {"synthesis": [{"method": "marginal_bootstrap", "target": name} for name in NAMES]},
    "table of counts (a copy, nearly)": {
        "synthesis": [{"method": "dirichlet_multinomial", "target": NAMES, "bins": {"age": "width 1", "hours_per_week": "width 1", "capital_gain": "at 1, 5000"}, "concentration": 1e-12}]
    },
    "linear regression of hours": {
        "synthesis": [{"method": "linear_regression", "target": "hours_per_week", "predictors": ["age", "sex"]}]
    },
    "DPMPM": {
        "synthesis": [{"method": "dpmpm", "target": NAMES, "bins": BINS, "classes": 20, "sweeps": 200, "burn_in": 100, "accept_unconverged": True}]
    },
    "Mondrian, k = 5": {"anonymisation": [{"method": "mondrian", "quasi_identifiers": KNOWN, "k": 5, "output": "generalised"}]},
    "Mondrian, k = 50": {"anonymisation": [{"method": "mondrian", "quasi_identifiers": KNOWN, "k": 50, "output": "generalised"}]},
}  # fmt: skip


def recipe_of(steps: Mapping[str, Any], audit: Mapping[str, Any] | None = None, names: Sequence[str] = NAMES) -> Recipe:
    variables = {
        name: {"kind": KINDS[name], "role": "sensitive" if name in SENSITIVE else "quasi_identifier"} for name in names
    }
    measure = [] if audit is None else [{"method": "risk.record_audit", **audit}]
    release = {} if "anonymisation" in steps else {"m": 1, "seed": 1}
    return Recipe.from_table(
        {"title": "audited", "variables": variables, "release": release, **steps, "measure": measure}
    )


def people(records: int, recipe: Recipe, seed: int = 1) -> Microdata:
    raw = pd.read_csv(PUBLIC_DATA / "adult.csv")[list(recipe.schema.names)].dropna()
    return conform_to_schema(raw.sample(records, random_state=seed).reset_index(drop=True), recipe.schema)


def print_audit(records: int, shadows: int, names: Sequence[str]) -> None:
    print(f"{records:,} records of Adult, {shadows:,} shadows of {records // 2:,}, 20 vulnerable and 20 random targets")
    print(
        f"{'recipe':34} {'people':10} {'mean AUC':>24} {'largest AUC':>24} {'away':>5} {'TPR at 1 %':>10} {'memorised':>10} {'s':>6}"
    )
    for name in names or RECIPES:
        started = time.process_time()
        recipe = recipe_of(RECIPES[name], {"shadows": shadows, "blocks": 1})
        rows = execute_run(recipe, people(records, recipe), key=KEY).rows
        took = time.process_time() - started
        for kind in ("vulnerable", "random"):
            own = {r.measure: r for r in rows if r.params.get("people", "random") == kind}
            own |= {m.removeprefix("values_"): r for m, r in own.items() if m.startswith("values_")}
            if own["auc"].value is None:
                print(f"{name:34} {kind:10} {own['auc'].reason}")
                continue
            said = [f"{own[m].value:.3f} ({own[m].lower:.3f} to {own[m].upper:.3f})" for m in ("auc", "largest_auc")]
            memorised = own["memorisation"].value
            print(
                f"{name:34} {kind:10} {said[0]:>24} {said[1]:>24} {own['given_away'].value:5.0f} {own['tpr'].value:10.3f} {np.nan if memorised is None else memorised:10.3f} {took:6.1f}",
                flush=True,
            )


def fresh(records: int, shadows: int) -> None:
    """People who are in no shadow: labels say nothing of them."""
    from sfumato.engine.adversary.cross_fitted import cross_fitted_smoother, draw_folds, evaluate_targets
    from sfumato.engine.adversary.shadow_features import TargetFeatures

    recipe = recipe_of(RECIPES["trees, leaves of 5"])
    whole = people(records + 40, recipe)
    data = whole.select_rows(slice(0, records))
    rng = np.random.default_rng(1)
    looked = TargetFeatures.from_targets(
        whole, np.arange(records, records + 40), sorted(NAMES), KNOWN, SENSITIVE, {}, rng
    )
    refits = RecipeShadows(recipe, data, None, Randomness(1, KEY))  # type: ignore[arg-type]
    design = ShadowDesign(records, (0,), shadows, "half", "record")
    made = [design.draw_shadow(k, rng) for k in range(shadows)]
    seen = np.stack(
        [
            looked.extract_features(one.datasets)
            for one in refits.make_releases(range(shadows), [s.make_data(data, recipe.released) for s in made], 1, data)
        ]
    )
    labels = [rng.random(shadows) < 0.5 for _ in range(40)]
    part, permuted = draw_folds(shadows, rng), np.stack([rng.permutation(shadows) for _ in range(499)])
    result = evaluate_targets(
        [cross_fitted_smoother(seen[:, t], part) for t in range(40)], labels, [part] * 40, 0.01, [permuted] * 40
    )
    value, low, high = result.mean_area(np.ones(40, dtype=np.bool_))
    print(
        f"fresh people, trees with leaves of 5: mean AUC {value:.3f} ({low:.3f} to {high:.3f}), largest p {result.p_value(np.ones(40, dtype=np.bool_)):.2f}"
    )


def refits(sizes: Sequence[int], shadows: int) -> None:
    print(
        "processor seconds of one shadow (trees, leaves of 5, 11 variables): made together, one by one, scikit-learn, ratio"
    )
    recipe = recipe_of(RECIPES["trees, leaves of 5"])
    for records in sizes:
        data = people(records, recipe)
        own = RecipeShadows(recipe, data, None, Randomness(1, KEY))  # type: ignore[arg-type]
        design, rng = ShadowDesign(records, (0,), shadows, "half", "record"), np.random.default_rng(1)
        tables = [design.draw_shadow(k, rng).make_data(data, recipe.released) for k in range(shadows)]
        own.make_releases([0], tables[:1], 1, data)
        times = []
        started = time.process_time()
        own.make_releases(range(shadows), tables, 1, data)
        times.append((time.process_time() - started) / shadows)
        started = time.process_time()
        for k in range(min(10, shadows)):
            own.make_releases([k], tables[k : k + 1], 1, data)
        times.append((time.process_time() - started) / min(10, shadows))
        started = time.process_time()
        for k in range(min(10, shadows)):
            by_scikit_learn(tables[k], rng)
        times.append((time.process_time() - started) / min(10, shadows))
        print(
            f"{records // 2:8,} {times[0]:8.3f} {times[1]:8.3f} {times[2]:8.3f} {times[0] / times[2]:8.2f}", flush=True
        )


def by_scikit_learn(data: Microdata, rng: np.random.Generator) -> np.ndarray:
    """The same chain of trees on codes as numbers: donors drawn in the leaf."""
    x = np.column_stack([data.numbers(name) for name in NAMES])
    made = np.empty_like(x)
    made[:, 0] = rng.choice(x[:, 0], len(x))
    for i, name in enumerate(NAMES[1:], start=1):
        kind = DecisionTreeRegressor if KINDS[name] == "count" else DecisionTreeClassifier
        tree = kind(min_samples_leaf=5, random_state=0).fit(x[:, :i], x[:, i])
        leaf, wanted = tree.apply(x[:, :i]), tree.apply(made[:, :i])
        order = np.argsort(leaf, kind="stable")
        start, end = (np.searchsorted(leaf[order], wanted, side) for side in ("left", "right"))
        made[:, i] = x[order[start + (rng.random(len(x)) * (end - start)).astype(int)], i]
    return made


def whole(sizes: Sequence[int], shadows: Sequence[int], background: str, jobs: int) -> None:
    """Seconds of a whole run in a workspace: fits and datasets of the release, shadows, classifiers. Processor seconds are those of this process."""
    name = "trees, leaves of 5"
    print(
        f"{name}, 20 vulnerable and 20 random targets, background {background}, {jobs or 1} at a time: records, shadows of a target, wall"
    )
    for records, number in itertools.product(sizes, shadows):
        recipe = recipe_of(RECIPES[name], {"shadows": number, "background": background, "blocks": 8})
        with tempfile.TemporaryDirectory() as folder, Workspace.create(Path(folder) / "audited", KEY) as workspace:
            enter_run(workspace, recipe, SourceFile("adult.csv", b"public"), people(records, recipe))
            started, used = time.perf_counter(), time.process_time()
            run_worker(workspace.directory, jobs, idle=0)
            wall, processor = time.perf_counter() - started, time.process_time() - used
            areas = [row for row in read_result_rows(workspace, 1) if row.measure == "auc"]
            assert all(row.value is not None for row in areas), areas[0].reason
        made = number * (40 if background == "all" else 1)
        alone = "" if jobs else f"{processor:8.1f} of processor, {1000 * processor / made:.0f} ms a shadow"
        print(f"{records:8,} {number:8,} {wall:8.1f} {alone}", flush=True)


EXACT = {
    "linear regression": ({"synthesis": [{"method": "linear_regression", "target": "hours_per_week", "predictors": ["age", "sex"]}]}, ("sex", "age", "hours_per_week")),
    "counts": ({"synthesis": [{"method": "dirichlet_multinomial", "target": ["sex", "race", "income"], "concentration": 0.1}]}, ("sex", "race", "income")),
}  # fmt: skip


def exact(records: int, shadows: int) -> None:
    print(
        f"{records:,} records, {shadows:,} shadows of each of 20 vulnerable targets whose intruder knows all others: likelihood ratios, classifier"
    )
    for name, (steps, names) in EXACT.items():
        areas = []
        for own in (True, False):
            audit = {"background": "all", "people": ["vulnerable"], "shadows": shadows, "exact": own, "blocks": 1}
            recipe = recipe_of(steps, audit, names)
            rows = execute_run(recipe, people(records, recipe), key=KEY).rows
            row = next(r for r in rows if r.measure.removeprefix("values_") == "auc" and r.value is not None)
            areas.append(f"{row.value:.3f} ({row.lower:.3f} to {row.upper:.3f})")
        print(f"{name:20} {areas[0]:>24} {areas[1]:>24}", flush=True)


def private(records: int, shadows: int, epsilons: Sequence[float] = (1.0, 10.0)) -> None:
    print("perturbed Gibbs: claimed epsilon of a release, lower bound of the audit, of mu")
    names = ("sex", "race", "income")
    for epsilon in epsilons:
        step = {"method": "perturbed_gibbs", "target": list(names), "epsilon": epsilon / 50, "keys": {}}
        audit = {"background": "all", "people": ["vulnerable"], "targets": 5, "shadows": shadows, "blocks": 1}
        recipe = recipe_of({"synthesis": [step], "release": {"m": 1, "seed": 1, "records": 50}}, audit, names)
        rows = execute_run(recipe, people(records, recipe), key=KEY).rows
        row, mu = (next(r for r in rows if r.measure == m) for m in ("epsilon_lower", "mu_lower"))
        print(f"{row.baseline} {row.value} {mu.value} {row.reason}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    choices = ("found", "fresh", "whole", "refits", "exact", "private")
    parser.add_argument("--what", choices=choices, default="found")
    parser.add_argument("--records", type=int, nargs="+", default=[1000])
    parser.add_argument("--shadows", type=int, nargs="+", default=[200])
    parser.add_argument(
        "--jobs", type=int, default=2, help="processes; 0 for this one alone, whose processor seconds are told"
    )
    parser.add_argument("--background", choices=("half", "all"), default="half")
    parser.add_argument("--recipe", action="append", default=[])
    given = parser.parse_args()
    records, shadows = given.records[0], given.shadows[0]
    if given.what == "found":
        print_audit(records, shadows, given.recipe)
    elif given.what == "fresh":
        fresh(records, shadows)
    elif given.what == "whole":
        whole(given.records, given.shadows, given.background, given.jobs)
    elif given.what == "refits":
        refits((500, 2000, 8000), 25)
    elif given.what == "exact":
        exact(records, shadows)
    else:
        private(records, shadows)


if __name__ == "__main__":
    main()
