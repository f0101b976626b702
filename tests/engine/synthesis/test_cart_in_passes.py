"""Trees that are grown on a table block by block, and drawn block by block."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from prepared_tables import schema_of

from sfumato.engine.contract.passes import CutTable
from sfumato.engine.data.arrays import Floats
from sfumato.engine.data.block_sums import TableInMemory
from sfumato.engine.data.microdata import Microdata
from sfumato.engine.methods.passes import run_passes
from sfumato.engine.methods.registry import method_by_key
from sfumato.engine.methods.results import Fit
from sfumato.engine.methods.run import Run
from sfumato.engine.synthesis import _counted_cart
from sfumato.engine.trees import counted_trees
from sfumato.engine.trees.trees import TreeArrays

RECORDS = 3000
METHOD = method_by_key("synthesis.cart")
LEVELS: list[tuple[str, dict[str, Any]]] = [
    ("h", {"predictors": ["g", "b", "o", "v"]}),
    ("h", {"predictors": ["g", "v", "d"], "prune": False, "minbucket": 20}),
    ("b", {"predictors": ["g", "o", "v", "d"], "minbucket": 10, "cp": 0.0}),
    ("o", {"predictors": ["h", "v"]}),
]
NUMBERS: list[tuple[str, dict[str, Any]]] = [
    ("x", {"predictors": ["g", "b", "o", "v", "d"], "minbucket": 20}),
    ("x", {"predictors": ["g", "b", "o", "v", "d"], "minbucket": 7, "cp": 1e-3}),
    ("r", {"predictors": ["h", "d"], "minbucket": 10, "smoothing": True}),
    ("x", {"predictors": [], "smoothing": True}),
]


def as_levels(codes: Any, levels: str) -> pd.Categorical:
    return pd.Categorical.from_codes(codes, list(levels))


def people(missing: bool) -> Microdata:
    rng = np.random.default_rng(1)
    g, b, o = rng.integers(0, 6, RECORDS), rng.integers(0, 2, RECORDS), rng.integers(0, 4, RECORDS)
    v, d = rng.poisson(6, RECORDS).astype(float), rng.integers(0, 300, RECORDS).astype(float)
    h = np.minimum(4, rng.poisson(0.3 + 0.3 * g + 0.2 * (v > 5) + 0.5 * b))
    x = np.exp(1 + 0.2 * g + 0.1 * v + rng.normal(0, 0.3, RECORDS))
    r = np.round(x * 3)
    if missing:
        for column, code in ((g, -1), (v, np.nan), (h, -1), (x, np.nan)):
            column[rng.random(RECORDS) < 0.04] = code
    frame = pd.DataFrame(
        {
            "g": as_levels(g, "abcdefz"),  # nobody is of group z
            "b": as_levels(b, "ny"),
            "o": as_levels(o, "lmnp"),
            "h": as_levels(h, "ABCDE"),
            "v": v,
            "d": d,
            "x": x,
            "r": r,
        }
    )
    kinds = ("g: categorical", "b: binary", "o: categorical", "h: categorical", "v: count", "d: count")
    return Microdata(schema_of(*kinds, "x: continuous", "r: count"), frame)


def spec_of(settings: dict[str, Any]) -> Any:
    assert METHOD is not None
    return METHOD.spec.from_table(settings, "synthesis[0]")


def fit_whole(data: Microdata, target: str, settings: dict[str, Any]) -> Fit:
    assert METHOD is not None
    return METHOD.fit(data, (target,), spec_of(settings), Run(np.random.default_rng(3)), 2)


def fit_in_parts(data: Microdata, target: str, settings: dict[str, Any], rows: int) -> Fit:
    assert METHOD is not None
    passes: Any = METHOD.synthesis.fit_passes
    table, spec = CutTable(data, rows), spec_of(settings)
    answer = run_passes(passes.start(table.head, target, spec, table.n_blocks), [table], passes.block, passes.merge)
    found: Fit = passes.fit(answer, table.head, target, spec, Run(np.random.default_rng(3)), 2)
    return found


def draw(fit: Fit, target: str, settings: dict[str, Any], data: Microdata, rng: np.random.Generator) -> Floats:
    assert METHOD is not None
    released = Microdata(data.schema, data.frame, "synthetic")
    return np.asarray(METHOD.draw_targets(fit, spec_of(settings), (target,), data, released, 0, rng)[target])


def nodes_in_depth_first_order(fit: Fit) -> list[tuple[Any, ...]]:
    """Return each node's split and donors, the left branch before the right one."""
    arrays = fit.arrays
    found, waiting = [], [int(arrays["root"][0])]
    while waiting:
        node = waiting.pop()
        start, count = int(arrays["start"][node]), int(arrays["count"][node])
        if count:
            found.append(tuple(np.unique(arrays["donors"][start : start + count]).tolist()))
            continue
        chosen = int(arrays["chosen"][node])
        levels = () if chosen < 0 else tuple(arrays["sets"][chosen].tolist())
        found.append((int(arrays["feature"][node]), float(arrays["threshold"][node]), levels))
        waiting += [int(arrays["right"][node]), int(arrays["left"][node])]
    return found


@pytest.mark.parametrize(("target", "settings"), [*LEVELS, *NUMBERS])
@pytest.mark.parametrize("missing", [False, True])
def test_a_tree_in_parts_is_that_of_the_table_leaf_for_leaf(
    monkeypatch: pytest.MonkeyPatch, target: str, settings: dict[str, Any], missing: bool
) -> None:
    monkeypatch.setattr(_counted_cart, "MOST_DONORS", 10**6)
    data = people(missing)
    whole = fit_whole(data, target, settings)
    found = fit_in_parts(data, target, settings, 700)
    assert len(whole.arrays["left"]) > 20 or not settings["predictors"]
    assert repr(nodes_in_depth_first_order(found)) == repr(nodes_in_depth_first_order(whole))
    for name in whole.arrays:
        if name.startswith("order of "):
            np.testing.assert_array_equal(found.arrays[name], whole.arrays[name])
    assert found.diagnostics == whole.diagnostics


@pytest.mark.parametrize(("target", "settings"), [*LEVELS, *NUMBERS])
def test_a_tree_is_the_same_for_any_blocks_and_any_number_of_nodes_a_pass(
    monkeypatch: pytest.MonkeyPatch, target: str, settings: dict[str, Any]
) -> None:
    data = people(missing=True)
    fits = [fit_in_parts(data, target, settings, rows) for rows in (700, 1100)]
    monkeypatch.setattr(counted_trees, "MOST_CELLS", 2000)
    monkeypatch.setattr(_counted_cart, "BUCKET_ROWS", 100)
    fits.append(fit_in_parts(data, target, settings, 999))
    for fit in fits[1:]:
        assert list(fit.arrays) == list(fits[0].arrays)
        for name, values in fits[0].arrays.items():
            np.testing.assert_array_equal(fit.arrays[name], values)
        assert fit.diagnostics == fits[0].diagnostics


def test_sums_of_rounded_numbers_in_another_order_may_be_others() -> None:
    """Control: that sums of numbers as they are would depend on blocks."""
    x = people(missing=False).numbers("x")
    cut = [float(np.sum([x[i : i + rows].sum() for i in range(0, RECORDS, rows)])) for rows in (7, 700, 1100)]
    assert len(set(cut)) > 1


@pytest.mark.parametrize(("target", "settings"), [*LEVELS, *NUMBERS])
def test_blocks_are_drawn_from_the_fit_alone(target: str, settings: dict[str, Any]) -> None:
    data = people(missing=True)
    fit = fit_in_parts(data, target, settings, 700)
    block = next(iter(CutTable(data, 700).iterate_blocks()))
    rest = Microdata(data.schema, data.frame.iloc[2000:2700])
    first = draw(fit, target, settings, block, np.random.default_rng(5))
    assert METHOD is not None
    released = Microdata(data.schema, block.frame, "synthetic")
    other = METHOD.draw_targets(fit, spec_of(settings), (target,), rest, released, 0, np.random.default_rng(5))[target]
    np.testing.assert_array_equal(first, other)


@pytest.mark.parametrize(("target", "settings"), [*LEVELS, *NUMBERS])
def test_what_is_drawn_in_parts_has_the_distribution_of_the_table(target: str, settings: dict[str, Any]) -> None:
    data = people(missing=True)
    fits = fit_whole(data, target, settings), fit_in_parts(data, target, settings, 700)
    rngs = [np.random.default_rng(7) for _ in fits]
    whole, parts = (
        np.concatenate([draw(fit, target, settings, data, rng) for _ in range(20)])
        for fit, rng in zip(fits, rngs, strict=True)
    )
    assert np.isnan(whole).mean() == pytest.approx(np.isnan(parts).mean(), abs=0.005)
    for share in (0.1, 0.3, 0.5, 0.7, 0.9):
        one = np.nanquantile(whole, share)
        assert np.nanmean(whole <= one) == pytest.approx(np.nanmean(parts <= one), abs=0.012)
    if settings.get("smoothing"):
        own = np.isin(parts, data.present_numbers(target)).mean()
        assert own == pytest.approx(np.isin(whole, data.present_numbers(target)).mean(), abs=0.01)


def test_a_leaf_of_many_numbers_keeps_some_at_even_distances(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_counted_cart, "MOST_DONORS", 100)
    data = people(missing=True)
    fit = fit_in_parts(data, "x", {"predictors": []}, 700)
    donors, weight = fit.arrays["donors"], fit.arrays["weight"]
    assert weight.sum() == RECORDS
    missing = int(np.isnan(data.numbers("x")).sum())
    assert abs(weight[np.isnan(donors)].sum() - missing) <= 30
    numbers = np.sort(data.present_numbers("x"))
    assert set(donors[~np.isnan(donors)]) < set(numbers)
    for share in (0.1, 0.5, 0.9):
        below = weight[donors <= np.quantile(numbers, share)].sum()
        assert abs(below - share * len(numbers)) <= 31


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("target", ["h", "r"])
def test_a_predictor_of_many_numbers_is_split_between_groups(
    monkeypatch: pytest.MonkeyPatch, target: str, missing: bool
) -> None:
    monkeypatch.setattr(_counted_cart, "MOST_VALUES", 400)
    monkeypatch.setattr(_counted_cart, "GROUPS", 30)
    monkeypatch.setattr(_counted_cart, "MOST_DONORS", 10**6)
    data = people(missing)
    settings = {"predictors": ["g", "x", "d"], "minbucket": 15}
    found, other = (fit_in_parts(data, target, settings, rows) for rows in (700, 1100))
    for name, values in found.arrays.items():
        np.testing.assert_array_equal(other.arrays[name], values)
    said = {(one.name, one.parameter): one.value for one in found.diagnostics}
    assert said["groups_of_values", "x"] == 30 + missing
    assert ("groups_of_values", "d") not in said
    # The same tree as of numbers that are the ends of their groups.
    feature, inner = found.arrays["feature"], found.arrays["left"] != np.arange(len(found.arrays["left"]))
    cuts = np.unique(found.arrays["threshold"][inner & (feature == 1)])
    x = data.numbers("x")
    assert len(cuts) > 5
    joined = np.where(np.isnan(x), np.nan, np.searchsorted(group_ends_of(data), x))
    whole = fit_whole(Microdata(data.schema, data.frame.assign(x=joined)), target, settings)
    donors = [
        [one for one in nodes_in_depth_first_order(fit) if not isinstance(one[-1], tuple)] for fit in (found, whole)
    ]
    assert repr(donors[0]) == repr(donors[1])


def group_ends_of(data: Microdata) -> Floats:
    """Return the ends of the groups of x."""
    return np.asarray(_counted_cart.group_ends("x", 30, TableInMemory(data)))


@pytest.mark.parametrize(
    ("settings", "suits"),
    [
        ({"predictors": ["g", "v"]}, True),
        ({"predictors": ["g", "x"]}, True),
        ({"predictors": ["g"], "proper": True}, False),
        ({"predictors": ["v"], "strata": "g"}, False),
        ({"predictors": ["v"], "unit_effect": True}, False),
    ],
)
def test_some_trees_need_the_table(settings: dict[str, Any], suits: bool) -> None:
    assert METHOD is not None
    passes: Any = METHOD.synthesis.fit_passes
    assert passes.suits(spec_of(settings), people(missing=False).schema) is suits


def test_only_tables_and_donors_are_merged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_counted_cart, "MOST_DONORS", 10)
    assert METHOD is not None
    passes: Any = METHOD.synthesis.fit_passes
    table, merged = CutTable(people(missing=True), 700), list[int]()

    def merge(state: Any, partials: Any) -> Any:
        merged.append(len(partials) if hasattr(state, "grown") and state.grown is None else 1)
        return passes.merge(state, partials)

    spec = spec_of({"predictors": ["g", "v"], "minbucket": 100})
    answer = run_passes(passes.start(table.head, "x", spec, table.n_blocks), [table], passes.block, merge)
    assert set(merged) == {1}
    tree: TreeArrays = answer.tree
    assert len(tree.donors) <= 10 * int((tree.count > 0).sum())
