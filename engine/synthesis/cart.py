"""Classification and regression trees: a record's value is that of another record in its leaf.

Reiter (2005); Guo & Hu Supp 4. A tree for the target is grown on the confidential records. A record then falls in a
leaf by its predictors, those synthesised earlier with their synthetic values, and takes the target's value of one of
the leaf's confidential records at random. Donated values occur: an intruder sees true numbers of others.

``smoothing`` draws a number near the donor's instead, from a kernel over the leaf's donors
(``sfumato.engine.statistics.smoothing``), so that no value is a person's own. ``proper`` fits each of the m trees to a
bootstrap sample of the records, so that the datasets vary as much as the tree is uncertain. Where records have weights,
all counts are sums of weights. A record of weight 0 donates nothing and moves no split; any other may still donate its
value, if more rarely.

``unit_effect`` makes members of a unit alike beyond what predictors tell: their numbers lie at like places among the
donors of their leaves. The place is that of sqrt(share) u + sqrt(1 - share) e among standard normal numbers, with one u a
unit and one e a record. The share is the intraclass correlation of the normal scores of the confidential values within
their leaves, so that each leaf keeps its distribution.

``strata`` names a variable with levels, each of which has a tree of its own. A split looks at means alone, so that one
tree may leave groups together that have one mean and differ in what goes with it: spouses, who are about as old as the
head, and lodgers, who are of any age.

A table in parts is counted level by level (``_counted_cart``), which gives the same tree where equally good splits are of
one predictor; one with more than 4,096 different numbers is split between 1,024 groups of about as many records. A leaf with more than 1,000 different numbers then keeps those of as many records as donors.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Annotated, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..constraints.unit_terms import PLACE
from ..data.arrays import Floats, Integers
from ..data.microdata import SECONDS_OF_DAY, Microdata
from ..data.provenance import FitUncertainty
from ..data.schema import Kind, Schema
from ..methods.asked_passes import AskedState, SummedPasses
from ..methods.drafting import GENERAL, OURS, Case, Offer, drafts
from ..methods.passes import Finished, NextPass, Partial
from ..methods.registry import BulkFittingDeclaration, synthesis_method
from ..methods.results import Diagnostic, Fit, NoTrace
from ..methods.run import Run
from ..methods.spec import Param, SearchValues, Spec
from ..methods.table_profile import VariableProfile
from ..statistics.smoothing import common_step, reflect_at_bounds, smooth_donor_values
from ..statistics.unit_effects import effect_of_unit, normal_scores, shared_variance
from ..trees.trees import (
    TreeArrays,
    concatenate_trees,
    fit_classification_tree,
    fit_classification_trees,
    fit_regression_tree,
    join_trees,
    order_levels,
)
from ..wording import count_noun
from ._counted_cart import (
    CountedTreePasses,
    GrownTree,
    SmoothingFacts,
    TreePlan,
    TreeTable,
    count_levels,
    describe_table,
    has_no_order,
    missing_as_last_level,
)

PEOPLE_OF_COMMON_VALUE = 10
"""Number of records from which on a shared value belongs to no single person."""
GROWN = "a tree is grown once, not sampled"
FEWEST_IN_LEAF = 5
"""What a drafted tree has in a leaf at least."""
LEAVES = ((100, 20), (250, 160))
"""The most leaves of a drafted tree, up to leaves of how many records: a hundredth of few records, a 250th of many.
Searches for releases that may leave found that large tables need larger leaves, and lose little by them.
"""
LEAVES_OF_KEYS = (30, 160)
"""The most leaves, up to leaves of how many records, where quasi-identifiers are drawn too: several trees then follow
the same person, and what each of them shows adds up. Of 3,000 patients, leaves of 20 gave members away (AUC .59),
leaves of 100 did not (.51 to .55).
"""


def draw(
    fit: Fit,
    spec: CartSpec,
    target: str,
    confidential: Microdata,
    released: Microdata,
    index: int,
    rng: np.random.Generator,
) -> Floats:
    """Draw synthetic values, (n,): for each record a donor from its leaf.

    Levels are codes, dates are days since 1970; missing is NaN.
    """
    from scipy.special import ndtr  # most recipes, which read this module, have no units

    arrays = {**_arrays_of_first_version(fit), **fit.arrays}
    trees = TreeArrays(**{field.name: arrays[field.name] for field in fields(TreeArrays) if field.name in arrays})
    confidential = confidential.with_positive_weight
    tree = index if spec.proper else 0
    orders = {name: fit.arrays[_order_key(name)][tree] for name in _unordered_predictors(released, spec)}
    lowest = {name: float(fit.arrays[key][0]) for name in spec.predictors if (key := _lowest_key(name)) in fit.arrays}
    x = _tree_features(released, confidential, spec, orders, lowest)
    if spec.unit_effect:
        effect, own = effect_of_unit(released, float(fit.arrays["unit_share"][tree]))
        place = ndtr(effect + own * rng.standard_normal(len(x)))
        values = trees.draw_donors_at(trees.find_leaves(tree, x), place, rng)
    else:
        values = trees.draw_donors(tree, x, rng)
    if confidential.schema[target].kind is Kind.DATE and "sets" not in fit.arrays:
        return values / SECONDS_OF_DAY
    if not confidential.schema[target].kind.has_levels:
        return (
            _smooth_donated(values, trees, trees.find_leaves(tree, x), confidential, target, rng, _facts_of_fit(fit))
            if spec.smoothing
            else values
        )
    return np.where(values < count_levels(confidential, target), values, np.nan)


def _facts_of_fit(fit: Fit) -> SmoothingFacts | None:
    """Return what smoothing needs to know of all numbers of a table in parts; None of another one."""
    if "common" not in fit.arrays:
        return None
    least, step = fit.arrays["numbers"].tolist()
    return SmoothingFacts(np.asarray(fit.arrays["common"], dtype=np.float64), least, step)


def _facts_of_numbers(confidential: Microdata, target: str) -> SmoothingFacts:
    """Return what smoothing needs to know of all numbers of a table in memory."""
    every, present = confidential.numbers(target), confidential.present_numbers(target)
    numbers, which = np.unique(present, return_inverse=True)
    # Values that ten people have belong to no single one; zeros and round numbers are donated unchanged.
    common = numbers[_weight_of_people(which, ~np.isnan(every), confidential) >= PEOPLE_OF_COMMON_VALUE]
    return SmoothingFacts(common, float(present.min(initial=np.inf)), common_step(present))


def _smooth_donated(
    values: Floats,
    trees: TreeArrays,
    leaf: Integers,
    confidential: Microdata,
    target: str,
    rng: np.random.Generator,
    facts: SmoothingFacts | None = None,
) -> Floats:
    """Return donated values (n,) of the leaves (n,), with rare values replaced by draws from their leaf's kernel."""
    facts = facts or _facts_of_numbers(confidential, target)
    of_leaf = trees.leaf_of_donor
    own, moved = (~np.isin(some, facts.common) & ~np.isnan(some) for some in (trees.donors, values))
    if not moved.any():
        return values
    variable = confidential.schema[target]
    # Smoothed numbers must not fall below 0 where no confidential value does, such as for incomes.
    low = 0.0 if variable.lower is None and variable.kind is not Kind.DATE and facts.least >= 0 else variable.lower
    weight = None if trees.weight is None else trees.weight[own]
    near = smooth_donor_values(values[moved], leaf[moved], trees.donors[own], of_leaf[own], rng.standard_normal, weight)
    values[moved] = reflect_at_bounds(near, low, variable.upper, facts.step)
    return values


def _weight_of_people(which: Integers, present: NDArray[np.bool_], confidential: Microdata) -> Floats:
    """Return how many people have each value, by weight: of the records of a unit with one value the heaviest counts.

    ``which`` is the value of each record that has one, (k,), and ``present`` marks these records, (n,).
    """
    weights = confidential.effective_weights[present]
    units = confidential.units
    if units is None:
        return np.asarray(np.bincount(which, weights), dtype=np.float64)
    # A value that one person has in ten years is that person's all the same.
    by_value = np.lexsort((-weights, units.unit_of[present], which))
    value, unit = which[by_value], units.unit_of[present][by_value]
    heaviest = np.append(True, (value[1:] != value[:-1]) | (unit[1:] != unit[:-1]))
    counts = np.bincount(value[heaviest], weights[by_value][heaviest], minlength=int(which.max(initial=-1)) + 1)
    return np.asarray(counts, dtype=np.float64)


def _arrays_of_first_version(fit: Fit) -> Mapping[str, NDArray[np.generic]]:
    """Return the arrays that fits of the first version lack."""
    # Their trees split no levels by sets, and their dates are seconds.
    return {"chosen": np.full(len(fit.arrays["left"]), -1), "sets": np.zeros((0, 0), dtype=np.bool_)}


def _describe_shape(seen: VariableProfile) -> str:
    """Describe the variable's kind and distribution in a few words."""
    kind = seen.variable.kind
    if kind.has_levels:
        return f"{kind}, {count_noun(seen.distinct, 'value')}"
    shares = [f"{seen.zeros:.0%} zeros"] if seen.zeros >= 0.05 else []
    shares += [f"{seen.commonest:.0%} have one value"] if seen.commonest >= 0.1 and seen.zeros < 0.05 else []
    skew = ["a long tail"] if seen.long_tailed else []
    return ", ".join([str(kind), *shares, *skew])


def fit_tables_together(
    tables: Sequence[Microdata], target: str, spec: CartSpec, runs: Sequence[Run], draws: int
) -> list[Fit]:
    """Fit ``cart`` to each of several tables."""
    every = list(zip(tables, runs, strict=True))
    if spec.proper or spec.strata or not tables[0].schema[target].kind.has_levels:
        return [cart(data, target, spec, run, draws) for data, run in every]
    seen = [_training_table(data, target, spec) for data in tables]
    if len({one.levels for one in seen}) > 1:
        return [cart(data, target, spec, run, draws) for data, run in every]
    x, y = [one.x for one in seen], [one.y for one in seen]
    # Trees of levels are grown together, which takes a few times the time of one.
    trees = fit_classification_trees(
        x, y, levels=seen[0].levels, minbucket=spec.minbucket, cp=spec.cp, prune=spec.prune
    )
    return [
        _fit_from_trees(data, target, spec, run, [(tree, one.orders)])
        for (data, run), tree, one in zip(every, trees, seen, strict=True)
    ]


def _fit_from_trees(
    data: Microdata, target: str, spec: CartSpec, run: Run, grown: Sequence[tuple[TreeArrays, Mapping[str, Floats]]]
) -> Fit:
    """Return the fit of grown trees with the orders of their levels."""
    trees = concatenate_trees([tree for tree, _ in grown])
    # Only with a secret: a public key hides no donor's record, and its fits keep the records' order.
    trees = trees.with_sorted_donors() if run.secret or spec.unit_effect else trees
    shares = [_unit_share(data, target, spec, *one) for one in grown] if spec.unit_effect else []
    orders = {_order_key(name): np.stack([own[name] for _, own in grown]) for name in _unordered_predictors(data, spec)}
    parts = {name: part for name, part in vars(trees).items() if part is not None}
    alike = {"unit_share": np.array(shares)} if shares else {}
    said = [Diagnostic("unit_share", target, float(np.mean(shares)))] if shares else []
    return Fit({**parts, **orders, **alike}, (*_tree_diagnostics(trees, target), *said), NoTrace(GROWN))


def _unit_share(data: Microdata, target: str, spec: CartSpec, tree: TreeArrays, orders: Mapping[str, Floats]) -> float:
    """Return the share of the variance within leaves that records of a unit have in common."""
    leaves = tree.find_leaves(0, _tree_features(data, data, spec, orders))
    return shared_variance(normal_scores(data.numbers(target), leaves), data)


class _TrainingTable(NamedTuple):
    """Data on which a tree is grown.

    x: predictors, (n, P)
    y: target, (n,)
    levels: number of levels of each predictor without an order, else 0, (P,)
    orders: order of these levels
    weights: weights of the records, (n,); None without
    """

    x: Floats
    y: Floats
    levels: tuple[int, ...]
    orders: Mapping[str, Floats]
    weights: Floats | None


def _grow_one_tree(
    data: Microdata, target: str, spec: CartSpec, item: int, rng: np.random.Generator
) -> tuple[TreeArrays, Mapping[str, Floats]]:
    """Grow a tree, and return it with the order of the levels of each predictor that has levels."""
    x, y, levels, orders, weights = _training_table(
        data, target, spec, rng.integers(len(data), size=len(data)) if spec.proper else None
    )
    # scikit-learn's seed has 32 bits, which decide between equal splits alone.
    seed = int(rng.integers(2**32))

    def grow(x: Floats, y: Floats, weights: Floats | None) -> TreeArrays:
        if not data.schema[target].kind.has_levels:
            return fit_regression_tree(x, y, minbucket=spec.minbucket, cp=spec.cp, seed=seed, weights=weights)
        return fit_classification_tree(
            x, y, levels=levels, minbucket=spec.minbucket, cp=spec.cp, weights=weights, prune=spec.prune
        )

    if not spec.strata:
        return grow(x, y, weights), orders
    level = x[:, -1].astype(np.int64)
    groups = _groups_of_levels(level, count_levels(data, spec.strata) + 1, spec.minbucket, weights)
    trees = []
    for own in groups:
        rows = own[level]
        trees.append(grow(x[rows, :-1], y[rows], None if weights is None else weights[rows]))
    return join_trees(trees, groups, x.shape[1] - 1), orders


def _groups_of_levels(level: Integers, levels: int, fewest: int, weights: Floats | None) -> NDArray[np.bool_]:
    """Return which levels each tree of the strata is for, (S, levels); all with fewer than ``fewest`` records share one."""
    count = np.bincount(level, weights, levels)
    by_count = np.argsort(-count, kind="stable")
    large = int((count >= fewest).sum())
    # Those of the small levels together may still be too few for a leaf.
    if 0 < count[by_count[large:]].sum() < fewest:
        large -= 1
    alone = max(large, 0)
    group = np.empty(levels, dtype=np.int64)
    group[by_count] = np.minimum(np.arange(levels), alone)
    if count[by_count[alone:]].sum() == 0:
        # A level without records is drawn as the most frequent one.
        group[group == alone] = 0
    return np.asarray(group == np.arange(int(group.max()) + 1)[:, None])


def _training_table(data: Microdata, target: str, spec: CartSpec, some: Integers | None = None) -> _TrainingTable:
    """Return the training data of ``some`` rows, by default of all."""
    rows: Integers | slice = slice(None) if some is None else some
    weights = None if data.weights is None else data.weights[rows]
    y, classes = _target_numbers(data, target)[rows], data.schema[target].kind.has_levels
    levels = {
        name: count_levels(data, name) + int(data.missing_mask(name).any())
        for name in _unordered_predictors(data, spec)
    }
    # Trees for classes find sets of levels at each node; trees for numbers need one order, found at the root.
    orders = {
        name: np.arange(float(count))
        if classes
        else order_levels(missing_as_last_level(data, name)[rows], count, y, weights)
        for name, count in levels.items()
    }
    x = _tree_features(data, data, spec, orders)[rows]
    return _TrainingTable(x, y, tuple(levels.get(name, 0) for name in spec.predictors), orders, weights)


def _target_numbers(data: Microdata, target: str) -> Floats:
    """Return the target as numbers, (n,); levels as codes, with missing as one more level."""
    return (
        missing_as_last_level(data, target).astype(np.float64)
        if data.schema[target].kind.has_levels
        else data.numbers(target)
    )


def _unordered_predictors(data: Microdata, spec: CartSpec) -> tuple[str, ...]:
    """Return the predictors whose levels have no order of their own."""
    return tuple(name for name in spec.predictors if has_no_order(data, name))


def _tree_features(
    data: Microdata,
    confidential: Microdata,
    spec: CartSpec,
    orders: Mapping[str, Floats],
    lowest: Mapping[str, float] | None = None,
) -> Floats:
    """Return the features of the tree, (n, P).

    They are numbers, days, codes of ordinal levels, and the positions of other levels in their order; last the code of
    the stratum. ``lowest`` are numbers for missing ones of predictors, which the confidential data tell of others.
    """
    lowest = lowest or {}
    columns = [
        orders[name][missing_as_last_level(data, name)]
        if name in orders
        else _numbers_with_missing_lowest(data, confidential, name, lowest.get(name))
        for name in spec.predictors
    ]
    if spec.strata:
        columns.append(missing_as_last_level(data, spec.strata).astype(np.float64))
    return np.column_stack([np.empty((len(data), 0)), *columns])


def _numbers_with_missing_lowest(data: Microdata, confidential: Microdata, name: str, lowest: float | None) -> Floats:
    """Return numbers, (n,), with missing ones below all confidential numbers."""
    numbers, missing = data.numbers(name), data.missing_mask(name)
    if not missing.any():
        return numbers
    # A split can then tell missing values from all others, as synthpop's indicator does. Released numbers are drawn
    # from confidential ones, so that none is lower.
    if lowest is None:
        lowest = float(np.nextafter(confidential.present_numbers(name).min(), -np.inf))
    return np.where(missing, lowest, numbers)


def _order_key(name: str) -> str:
    return f"order of {name}"


def _lowest_key(name: str) -> str:
    return f"lowest of {name}"


def _tree_diagnostics(trees: TreeArrays, target: str) -> tuple[Diagnostic, ...]:
    """Report leaves per tree, the smallest leaf, and the share of leaves in which all donors have one value."""
    leaf = trees.count > 0
    before, after = trees.donors[:-1], trees.donors[1:]
    of_leaf = trees.leaf_of_donor
    differ = (before != after) & ~(np.isnan(before) & np.isnan(after)) & (of_leaf[:-1] == of_leaf[1:])
    uniform = np.bincount(of_leaf[1:][differ], minlength=len(leaf))[leaf] == 0
    values = {
        "leaves": leaf.sum() / len(trees.root),
        "smallest_leaf": trees.leaf_weights[leaf].min(),
        # Such a leaf discloses the value of everybody in it.
        "leaves_of_one_value": np.mean(uniform),
    }
    return tuple(Diagnostic(name, target, float(value)) for name, value in values.items())


@dataclass(frozen=True, kw_only=True, slots=True)
class CartSpec(Spec):
    """Settings of the tree: its predictors, and how far it is grown."""

    predictors: Annotated[
        tuple[str, ...],
        Param("variables that the tree splits on; without any, values come from all records", names="variables"),
    ] = ()
    minbucket: Annotated[
        int,
        Param(
            "fewest records in a leaf; a split needs three times as many",
            ge=1,
            search_values=SearchValues((5, 10, 20, 40, 80, 160)),
        ),
        # synthpop's defaults (Nowok, Raab & Dibben 2016): leaves of 5 or more records, cp = 1e-8, no smoothing. Guo &
        # Hu's published risks fit leaves of 7, rpart's default, and lie 10 to 25 % below those of 5.
    ] = 5
    cp: Annotated[
        float,
        Param(
            "complexity: share of the root's squared error, for levels of its misclassified records, that a split must save",
            ge=0,
        ),
    ] = 1e-8
    # As rpart does, a branch whose every leaf has the same most frequent level is removed, and with it differences of
    # the levels' shares: of who is in a household of two and who in one of three.
    prune: Annotated[
        bool,
        Param("of a variable with levels, remove splits after which no fewer records are misclassified"),
    ] = True
    smoothing: Annotated[
        bool,
        Param(
            "draw numbers and dates near the donor's, from a kernel over its leaf, instead of the donor's own",
            search_values=SearchValues((False, True), for_numbers_only=True),
        ),
    ] = False
    proper: Annotated[bool, Param("fit the tree of each dataset to a bootstrap sample of the records")] = False
    strata: Annotated[
        str | None,
        Param(
            "variable whose levels have a tree each; those with fewer than minbucket records share one",
            names="variables",
            kinds=(Kind.CATEGORICAL, Kind.ORDINAL, Kind.BINARY),
        ),
    ] = None
    unit_effect: Annotated[
        bool,
        Param("of numbers, with [release] units: records of a unit share what predictors do not tell of their values"),
    ] = False


def _draft_offer(case: Case) -> Offer | None:
    """Offer a tree for any variable: leaves of up to 160 records, and values near a donor's where they are numbers."""
    seen = case.target
    if case.want != "synthesis" or seen is None:
        return None
    rules = (*LEAVES, LEAVES_OF_KEYS) if set(case.known) & set(case.released) else LEAVES
    each = case.table.records_of_a_unit
    leaf = max(FEWEST_IN_LEAF, *(min(largest, int(case.table.records / each) // most) for most, largest in rules))
    # as many people, where each has several records
    leaf = math.ceil(leaf * each)
    settings: dict[str, object] = {"predictors": list(case.predictors), "minbucket": leaf}
    why = [f"trees follow any shape ({_describe_shape(seen)})"]
    why.append(
        f"leaves of {leaf:,} records or more, since smaller ones give single records away and larger ones lose what goes together "
        f"(synthpop: 5; {OURS.split(';')[0]})"
    )
    if case.draws_units and seen.variable.kind.has_levels:
        settings["prune"] = False
        why.append("splits stay that change shares and no majority, since units differ by shares")
    if case.draws_units and PLACE in case.table and not seen.variable.kind.has_levels:
        settings["unit_effect"] = True
        why.append("what the records of a unit have in common beyond their predictors stays in common")
    if not seen.variable.kind.has_levels:
        settings["smoothing"] = True
        why.append("values near a donor's instead of its own, so that no number is a person's")
    if seen.missing:
        why.append("a missing value is a value of its own and is made too")
    return Offer("; ".join(why), settings, GENERAL)


def fit_uncertainty(spec: CartSpec, targets: tuple[str, ...], schema: Schema) -> FitUncertainty:
    """Return whether each dataset has a tree of its own, grown on a bootstrap sample."""
    return FitUncertainty("drawn" if spec.proper else "estimated")


class CartPasses(SummedPasses):
    """Passes that describe the variables, grow the tree level by level, and find its donors. In memory is one block."""

    needs: ClassVar[str] = "one tree for all datasets, no strata and no effect of units"
    counting = CountedTreePasses()

    def suits(self, spec: CartSpec, schema: Schema) -> bool:
        """Return whether one tree is grown to all records."""
        return not (spec.proper or spec.strata or spec.unit_effect)

    def start(self, head: Microdata, target: str, spec: CartSpec, n_blocks: int) -> NextPass:
        plan = TreePlan(target, spec.predictors, spec.minbucket, spec.cp, spec.prune, spec.smoothing)
        names = dict.fromkeys((*spec.predictors, target))
        return self.first_pass(partial(describe_table, plan), head, n_blocks, tuple(names), f"values of {target}")

    def block(self, state: AskedState | TreeTable, *tables: Microdata) -> Partial:
        if isinstance(state, AskedState):
            return super().block(state, *tables)
        return self.counting.block(state, *tables)

    def merge(self, state: AskedState | TreeTable, partials: Sequence[Partial]) -> NextPass | Finished[GrownTree]:
        if isinstance(state, TreeTable):
            return self.counting.merge(state, partials, PEOPLE_OF_COMMON_VALUE)
        found = super().merge(state, partials)
        return self.counting.next_pass(found.answer) if isinstance(found, Finished) else found

    def fit(self, answer: GrownTree, head: Microdata, target: str, spec: CartSpec, run: Run, draws: int) -> Fit:
        if answer.data is not None:
            return cart(answer.data, target, spec, run, draws)
        assert answer.tree is not None
        found = _fit_from_trees(head, target, spec, run, [(answer.tree, answer.orders)])
        known = {_lowest_key(name): np.array([lowest]) for name, lowest in answer.lowest.items()}
        if answer.smoothing is not None:
            own = answer.smoothing
            known |= {"common": own.common, "numbers": np.array([own.least, own.step])}
        said = [Diagnostic("groups_of_values", name, float(number)) for name, number in answer.groups.items()]
        return replace(found, arrays={**found.arrays, **known}, diagnostics=(*found.diagnostics, *said))


@synthesis_method(
    "Classification and regression trees",
    spec=CartSpec,
    source="Reiter (2005); synthpop: Nowok, Raab & Dibben (2016); Guo & Hu Supp 4",
    draw=draw,
    targets=tuple(Kind),
    weighted=True,
    bulk_fitting=BulkFittingDeclaration(fit_many_tables=fit_tables_together),
    fit_uncertainty=fit_uncertainty,
    fit_passes=CartPasses(),
    draws_by_block=True,
)
@drafts(_draft_offer)
def cart(data: Microdata, target: str, spec: CartSpec, run: Run, draws: int) -> Fit:
    """Fit the trees, one for each draw if ``proper``, else one for all.

    Arrays: those of ``sfumato.engine.trees.trees.TreeArrays``, and for each predictor with levels the order (trees,
    levels) in which a tree for numbers splits its levels; trees for classes find sets of levels at each node.
    """
    data = data.with_positive_weight
    data = (
        data if data.weights is None else data.with_weights(data.weights)
    )  # without weights where all that are left are 1
    grown = list(
        run.over(partial(_grow_one_tree, data, target, spec), range(draws if spec.proper else 1), f"tree of {target}")
    )
    return _fit_from_trees(data, target, spec, run, grown)
