"""Every anonymisation method on random tables, against definitions written out with pandas and sets."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sfumato.engine.anonymisation.microaggregation import mdav_groups
from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.schema import Kind
from sfumato.engine.errors import BadInput
from sfumato.engine.execution.tasks import anonymise_data, execute_run
from sfumato.engine.methods.release_form import Anonymised
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.partition.hierarchies import parse_interval
from sfumato.engine.recipe.recipe import Recipe

KEYS = ["age", "city", "smokes", "size"]
LEVELS = ["small", "medium", "large"]
VARIABLES: dict[str, Any] = {
    "age": {"kind": "count", "role": "quasi_identifier"},
    "city": {"kind": "categorical", "role": "quasi_identifier", "levels": ["a", "b", "c"]},
    "smokes": {"kind": "binary", "role": "quasi_identifier", "levels": ["no", "yes"]},
    "size": {"kind": "ordinal", "role": "quasi_identifier", "levels": LEVELS},
    "illness": {"kind": "categorical", "role": "sensitive"},
    "income": {"kind": "count", "role": "sensitive"},
}
TREE = {"city": [["a", "ab", "*"], ["b", "ab", "*"], ["c", "c", "*"]]}


@st.composite
def raw(draw: st.DrawFn) -> pd.DataFrame:
    n = draw(st.integers(4, 24))
    columns = {
        "age": st.integers(0, draw(st.sampled_from([1, 60]))), "city": st.sampled_from("abc"),
        "smokes": st.sampled_from(["no", "yes"]), "size": st.sampled_from(LEVELS),
        "illness": st.sampled_from(["flu", "cold", "gout"]), "income": st.integers(0, 3),
    }  # fmt: skip
    return pd.DataFrame({name: draw(st.lists(values, min_size=n, max_size=n)) for name, values in columns.items()})


def recipe(*steps: dict[str, Any]) -> Recipe:
    return Recipe.from_table({"variables": VARIABLES, "anonymisation": list(steps)})


def anonymise_table(rows: pd.DataFrame, *steps: dict[str, Any]) -> tuple[Microdata, Anonymised]:
    """Nothing is tried further where the table is too small or too uniform for the step, which must say so."""
    plan = recipe(*steps)
    data = conform_to_schema(rows, plan.schema)
    try:
        return data, anonymise_data(plan, data, key=PUBLIC)
    except BadInput as refused:
        assume(
            not any(word in refused.message for word in ("cannot make", "diverse", "fewer than p", "may be left out"))
        )
        raise


def classes_of(found: Anonymised, rows: pd.DataFrame) -> list[pd.DataFrame]:
    """The original records in each group of equal released quasi-identifiers, as an intruder sees them."""
    shown = found.data.frame[KEYS].astype(str)
    kept = rows[~found.suppressed].reset_index(drop=True)
    return [kept.loc[members] for members in shown.groupby(KEYS).groups.values()]


def entropy_of(values: pd.Series) -> float:
    return -sum(p * math.log(p) for p in values.value_counts(normalize=True))


def farthest(group: pd.DataFrame, rows: pd.DataFrame, name: str, ordered: bool) -> float:
    every = sorted(rows[name].unique())
    p, q = (table[name].value_counts(normalize=True).reindex(every, fill_value=0.0) for table in (group, rows))
    if ordered:
        return float((p - q).cumsum().abs().sum() / max(len(every) - 1, 1))
    return float((p - q).abs().sum() / 2)


def is_close(group: pd.DataFrame, rows: pd.DataFrame) -> bool:
    return farthest(group, rows, "illness", False) <= 0.4 + 1e-9 and farthest(group, rows, "income", True) <= 0.4 + 1e-9


def is_diverse(group: pd.DataFrame, rows: pd.DataFrame) -> bool:
    return all(group[name].nunique() >= 2 for name in ("illness", "income"))


def is_even(group: pd.DataFrame, rows: pd.DataFrame) -> bool:
    return all(entropy_of(group[name]) >= math.log(1.7) - 1e-9 for name in ("illness", "income"))


def is_recursive(group: pd.DataFrame, rows: pd.DataFrame) -> bool:
    counts = (sorted(group[name].value_counts(), reverse=True) for name in ("illness", "income"))
    return all(r[0] < 2 * sum(r[1:]) for r in counts)


Holds = Callable[[pd.DataFrame, pd.DataFrame], bool]
MODELS: dict[str, tuple[dict[str, Any], Holds]] = {
    "l distinct": ({"method": "mondrian", "l": 2}, is_diverse),
    "l entropy": ({"method": "mondrian", "l": 1.7, "diversity": "entropy"}, is_even),
    "recursive": ({"method": "mondrian", "l": 2, "diversity": "recursive", "c": 2}, is_recursive),
    "t": ({"method": "mondrian", "t": 0.4}, is_close),
    "p": ({"method": "p_sensitive", "p": 2}, is_diverse),
}


@pytest.mark.slow
@pytest.mark.parametrize("model", list(MODELS))
@settings(max_examples=25)
@given(raw(), st.sampled_from(["strict", "relaxed"]), st.sampled_from(["micro_aggregated", "generalised"]))
def test_what_an_intruder_sees_is_as_varied_as_was_asked(
    model: str, rows: pd.DataFrame, cuts: str, output: str
) -> None:
    step, holds = MODELS[model]
    _, found = anonymise_table(rows, {**step, "k": 2, "cuts": cuts, "output": output})
    groups = classes_of(found, rows)
    assert min(map(len, groups)) >= 2
    assert all(holds(group, rows) for group in groups)


@pytest.mark.slow
@pytest.mark.parametrize("model", list(MODELS))
@settings(max_examples=10)
@given(raw(), st.integers(2, 3), st.sampled_from([0.1, 0.3, 0.6]), st.sampled_from(["micro_aggregated", "generalised"]))
def test_the_table_that_is_left_after_suppression_is_as_varied_as_was_asked(
    model: str, rows: pd.DataFrame, k: int, most: float, output: str
) -> None:
    step, holds = MODELS[model]
    _, found = anonymise_table(rows, {**step, "k": k, "max_suppressed": most, "output": output})
    left = rows[~found.suppressed]
    groups = classes_of(found, rows)
    assert min(map(len, groups)) >= k
    assert all(holds(group, left) for group in groups)


MEASURED: dict[str, Callable[[float], dict[str, Any]]] = {
    "p": lambda p: {"method": "p_sensitive", "p": int(p)},
    "l_distinct": lambda l: {"method": "mondrian", "l": l},  # noqa: E741
    "l_entropy": lambda l: {"method": "mondrian", "l": l, "diversity": "entropy"},  # noqa: E741
    "c_recursive": lambda c: {"method": "mondrian", "l": 2, "diversity": "recursive", "c": c},
    "t": lambda t: {"method": "mondrian", "t": t},
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("measure", "asked"),
    [("p", 2), ("l_distinct", 2), ("l_entropy", 1.5), ("l_entropy", 2), ("c_recursive", 1.5), ("t", 0.25), ("t", 0.5)],
)
@settings(max_examples=15)
@given(raw(), st.integers(2, 4), st.sampled_from([0.0, 0.2, 0.5]), st.integers(0, 3))
def test_the_anonymity_measured_of_the_release_is_what_was_asked(
    measure: str, asked: float, rows: pd.DataFrame, k: int, most: float, later: int
) -> None:
    """Whatever the settings, and with a later step that suppresses more: the table keeps to them, or there is none."""
    step = {**MEASURED[measure](asked), "k": k, "max_suppressed": most}
    more = [{"method": "suppression", "k": k + later}] if later else []
    try:
        plan = Recipe.from_table({**recipe(step, *more).to_table(), "measure": [{"method": "risk.anonymity"}]})
        found = execute_run(plan, conform_to_schema(rows, plan.schema), key=PUBLIC).rows
    except BadInput:
        return
    by = [(r.measure, r.value) for r in found if r.dataset == "anonymised" and r.draw is None]
    assert all(value is not None and value >= k for name, value in by if name == "k")
    values = [value for name, value in by if name == measure]
    assert values
    assert all(v is not None and (v <= asked if measure in ("t", "c_recursive") else v >= asked) for v in values)


@pytest.mark.slow
def test_t_of_the_release_is_within_what_was_asked_on_every_one_of_forty_tables() -> None:
    """Held against the shares of all records, suppressed ones too, t exceeds .3 on 4 of the 40."""
    variables = {"a": {"kind": "count", "role": "quasi_identifier"}, "b": {"kind": "count", "role": "quasi_identifier"},
                 "s": {"kind": "categorical", "role": "sensitive"}}  # fmt: skip
    step = {"method": "mondrian", "k": 3, "t": 0.3, "max_suppressed": 0.2}
    plan = Recipe.from_table({"variables": variables, "anonymisation": [step]})
    suppressed = 0
    for number in range(40):
        rng = np.random.default_rng(number)
        n = int(rng.integers(30, 120))
        rows = pd.DataFrame({"a": rng.geometric(0.1, n), "b": rng.integers(0, 5, n)})
        rows["s"] = rng.choice(list("xyz"), n, p=[0.6, 0.3, 0.1])
        found = anonymise_data(plan, conform_to_schema(rows, plan.schema), key=PUBLIC)
        left = rows[~found.suppressed].reset_index(drop=True)
        suppressed += int(found.suppressed.any())
        groups = left.groupby([found.data.frame[name] for name in ("a", "b")])
        assert max(farthest(group, left, "s", ordered=False) for _, group in groups) <= 0.3 + 1e-9
    assert suppressed > 35


@pytest.mark.parametrize("model", list(MODELS))
def test_k_alone_is_less(model: str) -> None:
    rng = np.random.default_rng(4)
    rows = pd.DataFrame({name: rng.choice(VARIABLES[name]["levels"], 60) for name in ("city", "smokes", "size")})
    rows = rows.assign(age=range(60), illness=np.repeat(["flu", "cold", "gout"], 20), income=np.repeat(range(3), 20))
    groups = classes_of(anonymise_table(rows, {"method": "mondrian", "k": 2})[1], rows)
    assert not all(MODELS[model][1](group, rows) for group in groups)


@pytest.mark.slow
@settings(max_examples=40)
@given(raw(), st.sampled_from(["strict", "relaxed"]), st.sampled_from(["mondrian", "p_sensitive"]))
def test_a_binary_variable_shows_the_mode_by_counting(rows: pd.DataFrame, cuts: str, method: str) -> None:
    _, found = anonymise_table(rows, {"method": method, "k": 3, "cuts": cuts})
    shown = found.data.frame["smokes"].astype(str)
    for group in np.unique(found.class_keys):
        own = found.class_keys == group
        yes, no = (sum(value == level for value in rows.loc[own, "smokes"]) for level in ("yes", "no"))
        assert set(shown[own]) == {"yes" if yes > no else "no"}


@pytest.mark.slow
@settings(max_examples=40)
@given(raw(), st.sampled_from(["strict", "relaxed"]))
def test_micro_aggregated_values_are_pandas_means_medians_and_modes(rows: pd.DataFrame, cuts: str) -> None:
    data, found = anonymise_table(rows, {"method": "mondrian", "k": 3, "cuts": cuts, "means": "exact"})
    numbers = rows.assign(smokes=rows["smokes"] == "yes", size=data.numbers("size"))
    by = numbers.groupby(found.class_keys)
    for name in ("age", "smokes"):
        assert found.data.numbers(name) == pytest.approx(by[name].transform("mean").to_numpy(dtype=float))
    lower_median = by["size"].transform(lambda v: sorted(v)[(len(v) - 1) // 2])
    assert found.data.numbers("size").tolist() == lower_median.tolist()
    assert found.data.frame["city"].tolist() == by["city"].transform(lambda v: v.mode()[0]).tolist()


@pytest.mark.slow
@settings(max_examples=60)
@given(st.integers(0, 4), st.lists(st.integers(-(10**6), 10**6), min_size=6, max_size=30), st.booleans())
def test_rounded_means_are_those_of_fractions_and_keep_the_classes(
    decimals: int, units: list[int], few_values: bool
) -> None:
    values = [unit % 7 / 10**decimals if few_values else unit / 10**decimals for unit in units]
    table = {"x": {"kind": "continuous", "role": "quasi_identifier"}}
    rows = pd.DataFrame({"x": values})
    found = {}
    for means in ("rounded", "exact"):
        step = {"method": "mondrian", "k": 3, "means": means}
        plan = Recipe.from_table({"variables": table, "anonymisation": [step]})
        found[means] = anonymise_data(plan, conform_to_schema(rows, plan.schema), key=PUBLIC)
    classes = found["exact"].class_keys
    assert found["rounded"].class_keys.tolist() == classes.tolist()
    most = max(-int(Decimal(repr(value)).normalize().as_tuple().exponent) for value in values)
    place = Fraction(1, 10 ** max(most, 0))
    shown = found["rounded"].data.numbers("x")
    for group in np.unique(classes):
        own = [value for value, of in zip(values, classes, strict=True) if of == group]
        mean = sum(Fraction(repr(value)) for value in own) / len(own)
        # Python rounds a fraction half to even, without error.
        assert set(shown[classes == group]) == {float(round(mean / place) * place)}
        assert min(own) <= shown[classes == group][0] <= max(own)
    assert pd.Series(shown).value_counts().min() >= 3


@pytest.mark.slow
@settings(max_examples=40)
@given(raw(), st.sampled_from(["strict", "relaxed"]))
def test_generalised_values_are_the_narrowest_over_their_class(rows: pd.DataFrame, cuts: str) -> None:
    data, found = anonymise_table(
        rows, {"method": "mondrian", "k": 3, "cuts": cuts, "output": "generalised", "hierarchies": TREE}
    )
    parents = {"a": "ab", "b": "ab", "c": "c"}
    for group in np.unique(found.class_keys):
        own = found.class_keys == group
        shown = {name: set(found.data.frame.loc[own, name]) for name in KEYS}
        assert all(len(labels) == 1 for labels in shown.values())
        for name, levels in (("age", ()), ("size", LEVELS)):
            (label,), values = shown[name], data.numbers(name)[own]
            ends = parse_interval(label, data.schema[name].kind, levels)
            written = (ends.low, ends.high) if ends else (float(levels.index(label) if levels else label),) * 2
            assert written == (values.min(), values.max())
        cities, smokes = set(rows.loc[own, "city"]), set(rows.loc[own, "smokes"])
        nodes = cities if len(cities) == 1 else {parents[city] for city in cities}
        assert shown["city"] == (nodes if len(nodes) == 1 else {"*"})
        assert shown["smokes"] == (smokes if len(smokes) == 1 else {"*"})


@pytest.mark.slow
@settings(max_examples=40)
@given(raw(), st.integers(0, 3), st.integers(0, 2), st.sampled_from([(5.0,), (10.0, 20.0)]))
def test_global_recoding_is_the_same_for_every_record(
    rows: pd.DataFrame, level: int, city: int, widths: tuple[float, ...]
) -> None:
    level = min(level, len(widths) + 1)
    assume(level or city)
    step = {
        "method": "generalisation",
        "levels": {"age": level, "city": city},
        "hierarchies": TREE,
        "widths": {"age": list(widths)},
    }
    _, found = anonymise_table(rows, step)
    shown = found.data.frame.astype(str)
    tree = {row[0]: row[city] for row in TREE["city"]}
    assert shown["city"].tolist() == [tree[value] for value in rows["city"]]
    if level == 0:
        expected = rows["age"].astype(str)
    elif level > len(widths):
        expected = pd.Series("*", index=rows.index)
    else:
        low = (rows["age"] // widths[level - 1] * widths[level - 1]).astype(int)
        expected = "[" + low.astype(str) + ", " + (low + int(widths[level - 1])).astype(str) + ")"
    assert shown["age"].tolist() == expected.tolist()
    keys = pd.DataFrame({"age": expected, "city": shown["city"], "smokes": rows["smokes"], "size": rows["size"]})
    assert found.class_keys.max() + 1 == keys.drop_duplicates().shape[0]
    assert len(keys.assign(own=found.class_keys).drop_duplicates()) == found.class_keys.max() + 1


@pytest.mark.slow
@settings(max_examples=40)
@given(raw(), st.integers(2, 4))
def test_suppression_leaves_out_the_small_groups_and_no_others(rows: pd.DataFrame, k: int) -> None:
    _, found = anonymise_table(rows, {"method": "suppression", "k": k, "quasi_identifiers": ["city", "size"]})
    sizes = rows.groupby(["city", "size"])["age"].transform("size")
    assert found.suppressed.tolist() == (sizes < k).tolist()


def by_the_book(points: np.ndarray, k: int) -> list[set[int]]:
    """MDAV as Domingo-Ferrer & Torra print it, with sets."""
    left, groups = list(range(len(points))), []

    def take(centre: int) -> None:
        near = sorted(left, key=lambda i: (i != centre, float(((points[i] - points[centre]) ** 2).sum())))[:k]
        groups.append(set(near))
        left[:] = [i for i in left if i not in groups[-1]]

    def farthest_from(centre: np.ndarray) -> int:
        return max(left, key=lambda i: float(((points[i] - centre) ** 2).sum()))

    while len(left) >= 3 * k:
        first = farthest_from(points[left].mean(axis=0))
        take(first)
        take(farthest_from(points[first]))
    if len(left) >= 2 * k:
        take(farthest_from(points[left].mean(axis=0)))
    return [*groups, set(left)]


@settings(max_examples=60)
@given(st.integers(0, 10_000), st.integers(2, 6), st.integers(0, 30), st.integers(1, 3))
def test_mdav_on_random_points_is_the_printed_algorithm(seed: int, k: int, more: int, d: int) -> None:
    points = np.random.default_rng(seed).normal(size=(k + more, d))
    found = mdav_groups(points, k)
    assert [set(np.flatnonzero(found == g)) for g in range(found.max() + 1)] == by_the_book(points, k)


def least_squares(values: np.ndarray, k: int) -> float:
    """The least sum of squares of any grouping of sorted numbers into groups of k to 2k - 1 (Hansen & Mukherjee 2003)."""
    best = [0.0] + [math.inf] * len(values)
    for end in range(k, len(values) + 1):
        for size in range(k, min(2 * k, end + 1)):
            group = values[end - size : end]
            best[end] = min(best[end], best[end - size] + float(((group - group.mean()) ** 2).sum()))
    return best[-1]


@settings(max_examples=60)
@given(st.lists(st.integers(0, 100), min_size=6, max_size=24), st.integers(2, 3))
def test_mdav_of_one_variable_is_never_better_than_the_best_grouping_and_seldom_far(values: list[int], k: int) -> None:
    numbers = np.sort(np.array(values, dtype=float))
    found = mdav_groups(numbers[:, None], k)
    sizes = np.bincount(found)
    assert k <= sizes.min() <= sizes.max() < 2 * k
    means = np.bincount(found, weights=numbers) / sizes
    error = float(((numbers - means[found]) ** 2).sum())
    assert least_squares(numbers, k) - 1e-9 <= error <= float(((numbers - numbers.mean()) ** 2).sum()) + 1e-9


def test_random_groups_are_worse_than_the_bound_allows_mdav_to_be() -> None:
    rng = np.random.default_rng(1)
    numbers = np.sort(rng.normal(size=60))
    best = least_squares(numbers, 3)
    errors = {}
    for name, groups in (("mdav", mdav_groups(numbers[:, None], 3)), ("random", rng.permutation(60) // 3)):
        means = np.bincount(groups, weights=numbers) / np.bincount(groups)
        errors[name] = float(((numbers - means[groups]) ** 2).sum())
    assert errors["mdav"] < 2.5 * best
    assert errors["random"] > 20 * best


def test_the_kinds_are_those_that_the_tests_mean() -> None:
    schema = recipe({"method": "mondrian"}).schema
    assert {variable.kind for variable in schema} == set(Kind) - {Kind.CONTINUOUS, Kind.DATE}
