"""Searches from roles alone: seconds, plans, limits met, the gate, and utility beside the shipped recipe and beside random plans. Prints a table.

    python tests/benchmarks/search.py [--tables ce,generated,acs,adult,airbnb] [--random 20] [--looks 40] [--minutes 10] [--jobs 2] [--keep DIRECTORY]

Needs the public files in ../shared/data or where SFUMATO_DATA says. Each table is drafted from its roles as ``sfumato draft`` does and searched; the
shipped recipe and ``--random`` plans of the search's own space are carried out on all records. The best random plan is that of the
best s_pMSE among those that meet the drafted limits and that the gate does not block. First each is measured by s_pMSE alone; then, the best first, each
is made again with all measures and judged, until one passes. Seconds are printed by the clock and of the processor, for this process and its workers:
other programs may run at the same time.

Utility: s_pMSE as the run says it (1 is best); ``overlap`` is the mean overlap of 95 % intervals of means and shares (Karr et al. 2006, unweighted);
``pairs`` is the mean total variation distance of all pairs of variables, numbers in ten bins of the confidential quantiles. Both are of released
datasets against all confidential records, averaged over the datasets, of the variables that all plans of a table release or change: the others are equal.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import combinations
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pandas as pd
from judged_releases.tables import generated
from public_data import PUBLIC_DATA

from sfumato.engine.data.toml import read_toml
from sfumato.engine.errors import BadInput
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.search.space import apply_choice, canonical_choice, describe_choice
from sfumato.workspace.ingest.files import find_source
from sfumato.workspace.jobs.pool import TaskPool, open_pool
from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.library import datasets
from sfumato.workspace.plan.alternatives import build_levers, offered_steps
from sfumato.workspace.plan.drafting import DraftRequest
from sfumato.workspace.recipes import find_recipe
from sfumato.workspace.service.draft_data import RoleAssignment, draft_file
from sfumato.workspace.service.prepare import prepare_on_source
from sfumato.workspace.service.searching import (
    advance_search,
    begin_search,
    blocking_checks_of_run,
    search_objective,
    search_outcome,
)
from sfumato.workspace.store.runs import RunState, find_run
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.results import read_result_rows, read_verdicts

KEY = sha256(b"a key of the benchmark").digest()
"""A secret one, since the gate blocks what a public key makes."""


@dataclass(frozen=True)
class Table:
    """A file, the roles of its variables, those that take no part, and the recipe that ships for it."""

    file: str
    known: tuple[str, ...]
    sensitive: tuple[str, ...]
    left_out: tuple[str, ...] = ()
    shipped: str = ""


TABLES = {
    "ce": Table("ce.csv", ("UrbanRural", "Race"), ("Expenditure",), shipped="ce"),
    "generated": Table("", ("region", "sex", "family", "age"), ("illness", "income"), ("debt", "visits")),
    "acs": Table("acs.csv", ("SEX", "RACE", "MAR"), ("LANX", "WAOB", "DIS", "HICOV"), shipped="acs"),
    "adult": Table(
        "adult.csv",
        ("age", "education", "marital_status", "race", "sex"),
        ("occupation", "hours_per_week", "income"),
        ("fnlwgt",),
        "adult",
    ),
    "airbnb": Table(
        "AB_NYC_2019.csv",
        ("room_type", "neighbourhood_group", "number_of_reviews"),
        ("availability_365", "price"),
        ("neighbourhood", "last_review", "reviews_per_month"),
        "airbnb",
    ),
}


@dataclass(frozen=True)
class Found:
    """A release: its plan, limits met of all, checks of the gate that block, and utility."""

    plan: str
    run: int
    met: int
    limits: int
    blocks: tuple[str, ...]
    s_pmse: float | None
    overlap: float
    pairs: float

    @property
    def passes(self) -> bool:
        return not self.blocks and self.met == self.limits


def processor_seconds() -> float:
    """Of this process, of its children that have ended, and of the processes that compute tasks (Linux)."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    total = sum(one.ru_utime + one.ru_stime for one in used)
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        if int(fields[1]) == os.getpid():
            total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return total


def drafted(table: Table, folder: Path) -> dict[str, Any]:
    """The plan that a draft makes of the roles."""
    path = PUBLIC_DATA / table.file
    if not table.file:
        path = folder / "generated.csv"
        generated().to_csv(path, index=False)
    roles = RoleAssignment(table.known, table.sensitive, table.left_out)
    return read_toml(draft_file(str(path), {}, DraftRequest(), roles).toml)


def searched(plan: Mapping[str, Any], workspace: Workspace, opened: TaskPool, asked: argparse.Namespace) -> int:
    """Carry a search out to its end; its number."""
    number = begin_search(workspace, plan, looks=asked.looks, minutes=asked.minutes)
    while advance_search(workspace, number):
        run_worker(workspace.directory, idle=0, opened=opened)
    return number


def carried_out(table: Mapping[str, Any], workspace: Workspace, opened: TaskPool) -> int | None:
    """The run of a plan on all records; None where it cannot be carried out."""
    recipe = Recipe.from_table(table)
    try:
        run_id = prepare_on_source(recipe, find_source(recipe.data.file), key=workspace.read_workspace_key()).enter(
            workspace, "plans"
        )
    except BadInput:
        return None
    run_worker(workspace.directory, idle=0, opened=opened)
    return run_id if find_run(workspace, run_id).state is RunState.DONE else None


def random_plans(plan: Mapping[str, Any], count: int, key: bytes) -> Iterator[tuple[str, dict[str, Any]]]:
    """Different plans of the search's space, each option as probable as another."""
    recipe = Recipe.from_table(plan)
    data = prepare_on_source(recipe, find_source(recipe.data.file), key=key).data
    levers = build_levers(recipe, offered_steps(recipe, data))
    rng, seen = np.random.default_rng(28), set()
    for _ in range(20 * count):
        choice = canonical_choice(plan, levers, tuple(int(rng.integers(len(one.options))) for one in levers))
        if choice not in seen and len(seen) < count:
            seen.add(choice)
            yield describe_choice(levers, choice), apply_choice(plan, levers, choice)


def utility_of(own: pd.DataFrame, released: Sequence[pd.DataFrame], names: Sequence[str]) -> tuple[float, float]:
    """The mean overlap of intervals, and the mean distance of pairs, over the datasets."""
    ours = {name: own[name] for name in names}
    overlaps, distances = [], []
    for frame in released:
        codes = {name: _coded(ours[name], frame[name]) for name in names}
        overlaps.append(np.mean([_overlap(ours[name], frame[name]) for name in names]))
        distances.append(np.mean([_distance(codes[one], codes[other]) for one, other in combinations(names, 2)]))
    return float(np.mean(overlaps)), float(np.mean(distances))


Codes = tuple[np.ndarray, np.ndarray]


def _coded(own: pd.Series, other: pd.Series) -> Codes:
    """Both columns in the same cells: levels, or ten bins of the confidential quantiles."""
    if _numeric(own):
        cuts = np.unique(np.nanquantile(own.astype(float), np.linspace(0.1, 0.9, 9)))
        return tuple(np.searchsorted(cuts, one.astype(float), side="right") for one in (own, other))  # type: ignore[return-value]
    levels = sorted({*_texts(own), *_texts(other)})
    place = {level: at for at, level in enumerate(levels)}
    return tuple(_texts(one).map(place).to_numpy() for one in (own, other))  # type: ignore[return-value]


def _texts(column: pd.Series) -> pd.Series:
    """Levels as text, a missing one as a level; whole numbers are written as such."""
    if pd.api.types.is_numeric_dtype(column):
        return column.map(lambda value: f"{value:g}")
    return column.astype("object").fillna("").astype(str)


def _numeric(column: pd.Series) -> bool:
    return pd.api.types.is_numeric_dtype(column) and column.nunique() > 10


def _distance(one: Codes, other: Codes) -> float:
    """The total variation distance of a pair of variables."""
    width = max(int(codes.max()) for codes in other) + 1
    cells = [first * width + second for first, second in zip(one, other, strict=True)]
    size = max(int(cell.max()) for cell in cells) + 1
    ours, theirs = (np.bincount(cell, minlength=size) / len(cell) for cell in cells)
    return float(np.abs(ours - theirs).sum() / 2)


def _overlap(own: pd.Series, other: pd.Series) -> float:
    """The mean overlap of the intervals of a number's mean, or of the share of each level that both have: a plan may drop incomplete records."""
    if _numeric(own):
        return _of_intervals(own.astype(float).dropna().to_numpy(), other.astype(float).dropna().to_numpy())
    ours, theirs = _texts(own).to_numpy(), _texts(other).to_numpy()
    return float(np.mean([_of_intervals(ours == level, theirs == level) for level in np.intersect1d(ours, theirs)]))


def _of_intervals(own: np.ndarray, other: np.ndarray) -> float:
    """Karr et al. (2006): the mean share of each 95 % interval that the two have in common; below 0 where they are apart."""
    ends = []
    for values in (own.astype(float), other.astype(float)):
        half = 1.96 * max(float(values.std()), 1e-12) / np.sqrt(len(values))
        ends.append((values.mean() - half, values.mean() + half))
    (low, high), (lower, upper) = ends
    common = min(high, upper) - max(low, lower)
    return float(common / (high - low) + common / (upper - lower)) / 2


def s_pmse_of(run_id: int, workspace: Workspace) -> float | None:
    """The utility of a run's release as the run says it; None where it was not computed."""
    run = find_run(workspace, run_id)
    objective = search_objective(run.recipe) if run.recipe.measures else ""
    averages = (one for one in read_result_rows(workspace, run_id) if one.key == objective and one.draw is None)
    return next((one.value for one in averages if one.dataset != "confidential"), None)


def judged(plan: str, run_id: int, workspace: Workspace, names: Sequence[str], own: pd.DataFrame) -> Found:
    """The release of a run by the plan's own limits, the gate and the utility."""
    run = find_run(workspace, run_id)
    verdicts = read_verdicts(workspace, run_id)
    shared = [name for name in names if name in run.recipe.schema]
    overlap, pairs = utility_of(own, datasets(workspace.directory, run_id), shared)
    met = sum(one.outcome == "met" for one in verdicts)
    return Found(
        plan,
        run_id,
        met,
        len(verdicts),
        blocking_checks_of_run(workspace, run_id),
        s_pmse_of(run_id, workspace),
        overlap,
        pairs,
    )


def line(name: str, found: Found) -> str:
    utility = "-" if found.s_pmse is None else f"{found.s_pmse:.3f}"
    gate = "passes" if not found.blocks else f"{len(found.blocks)} block"
    plan = found.plan if len(found.plan) < 60 else f"{found.plan[:57]}..."
    return f"{name:<22}{found.run:>5}{f'{found.met} of {found.limits}':>9}{gate:>9}{utility:>9}{found.overlap:>9.3f}{found.pairs:>9.4f}  {plan}"


def measure(name: str, folder: Path, asked: argparse.Namespace) -> None:
    """Print the lines of one table."""
    table = TABLES[name]
    plan = drafted(table, folder)
    recipe = Recipe.from_table(plan)
    own = prepare_on_source(recipe, find_source(recipe.data.file), key=KEY).data
    whole = pd.concat([own.frame, *([] if own.controls is None else [own.controls.frame])])
    names = list(recipe.schema.names)
    with Workspace.create(folder / "search", KEY) as workspace:
        begun, used = time.time(), processor_seconds()
        with open_pool(asked.jobs) as opened:
            number = searched(plan, workspace, opened, asked)
            clock, used = time.time() - begun, processor_seconds() - used
        found = search_outcome(workspace, number)
        print(
            f"\n{name}: {len(whole):,} records, {found.n_tried} plans in {clock:.0f} s of the clock, {used:.0f} s of processor",
            flush=True,
        )
        print(f"{'':<22}{'run':>5}{'limits':>9}{'gate':>9}{'s_pMSE':>9}{'overlap':>9}{'pairs':>9}  plan")
        for one in found.finalists:
            kind = "search" if one is found.winner else "finalist"
            print(line(kind, judged(one.label, one.run_id, workspace, names, whole)), flush=True)
    # each in a workspace of its own: the gate minds what another run of the same data calls sensitive
    with Workspace.create(folder / "shipped", KEY) as workspace, open_pool(asked.jobs) as opened:
        if table.shipped and asked.shipped:
            file = find_recipe(table.shipped)
            shipped = {
                **file.table,
                "data": {**file.table["data"], "file": str(PUBLIC_DATA / table.file)},
                "companions": [],
                "study": [],
                "published": [],
            }
            run_id = carried_out(shipped, workspace, opened)
            if run_id is not None:
                print(line("shipped recipe", judged(table.shipped, run_id, workspace, names, whole)), flush=True)
    with Workspace.create(folder / "others", KEY) as workspace, open_pool(asked.jobs) as opened:
        run_id = carried_out(plan, workspace, opened)
        if run_id is not None:
            print(line("draft", judged("unchanged", run_id, workspace, names, whole)), flush=True)
        compare_random(plan, workspace, opened, asked.random, names, whole)


def compare_random(
    plan: Mapping[str, Any], workspace: Workspace, opened: TaskPool, count: int, names: Sequence[str], own: pd.DataFrame
) -> None:
    """Print the most useful of random plans that pass, and the most useful of all."""
    objective = search_objective(Recipe.from_table(plan)).rpartition(".")[0]
    costs: list[tuple[float, str, dict[str, Any]]] = []
    for label, one in random_plans(plan, count, workspace.read_workspace_key()):
        measures = [measure for measure in one["measure"] if measure["method"] == objective]
        run_id = carried_out({**one, "measure": measures, "threshold": []}, workspace, opened)
        if run_id is not None and (value := s_pmse_of(run_id, workspace)) is not None:
            costs.append((abs(float(np.log(max(value, 1e-9)))), label, one))
    for asked, (_, label, one) in enumerate(sorted(costs, key=lambda each: each[0]), start=1):
        run_id = carried_out(one, workspace, opened)
        assert run_id is not None
        found = judged(label, run_id, workspace, names, own)
        if asked == 1 and not found.passes:
            print(line("most useful random", found), flush=True)
        if found.passes:
            print(f"of {len(costs)} random plans the {asked} most useful were judged, and one passes")
            print(line("best random plan", found), flush=True)
            return
    if costs:
        print(f"none of {len(costs)} random plans passes")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--tables", default="ce,generated,acs,adult,airbnb")
    parser.add_argument("--random", type=int, default=20)
    parser.add_argument("--looks", type=int, default=40)
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--keep", type=Path, help="where workspaces stay; left out, they are deleted")
    parser.add_argument("--no-shipped", dest="shipped", action="store_false")
    asked = parser.parse_args()
    root = asked.keep or Path(tempfile.mkdtemp())
    try:
        for name in asked.tables.split(","):
            folder = root / name
            folder.mkdir(parents=True)
            measure(name, folder, asked)
    finally:
        if asked.keep is None:
            shutil.rmtree(root)


if __name__ == "__main__":
    main()
