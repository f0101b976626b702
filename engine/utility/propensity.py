"""Propensity score: how well a classifier distinguishes released records from confidential ones.

Stack both tables, let a classifier predict "is released" from all variables, and take ``pmse`` = sum_i (p_i - c)^2 / N,
c the share of released records among all N (Woo et al. 2009; Guo & Hu §3.1). ``null_pmse`` is its expectation for a
release drawn from a model fitted to this confidential sample, and ``s_pmse`` = pmse / null_pmse (Snoke et al. 2018).

    logit               logistic regression on main effects; null d c (1 - c)^2 / N for d coefficients beside the
intercept (§3.1)
    logit_interactions  with the products of every two variables' main effects; null alike
    cart                classification tree; null by permutation of the labels, since a tree fits noise too (§3.2),
times 1 - c

``s_pmse`` is 1 on average where the model follows the sample as closely as the classifier looks. It is 1 / (1 - c), 2
for tables of equal size, for a fresh sample of the population, and for a model whose parameters are drawn from their
posterior: the variance 1/n of the parameters adds to that of the draws. A correct model that is coarser than the
classifier lies between.

Trees are grown by Gini impurity and pruned by errors as in rpart. A missing level is a level of its own; a missing
number stands at the pooled mean, beside an indicator of who is missing.

With ``of = "units"`` a unit of several records is classified in place of a record, by its size, the means of its numbers,
the shares of its levels and its first record: records may look alike one by one while households do not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, combinations, islice, product
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..data.arrays import Booleans, Floats, Integers
from ..data.block_sums import BlockWork, Summands, SummedTable, add_sums
from ..data.blocks import row_blocks
from ..data.intervals import NON_NEGATIVE, Range
from ..data.microdata import Microdata
from ..data.record_hashes import hash_records
from ..data.record_keys import KeyNumbers
from ..data.schema import Kind, Schema, Variable
from ..data.table_blocks import OneBlock
from ..design.binning import comparable_categories
from ..design.logistic import BlockedLogistic, logistic_regression
from ..design.sparse_design import (
    AskedDesign,
    IndicatorTerm,
    InterceptTerm,
    ProductTerm,
    SparseDesign,
    SparseTerm,
    StandardisedTerm,
    SummedDesign,
    independent_basis,
)
from ..errors import NotComputable
from ..methods.asked_passes import SummedPasses
from ..methods.drafting import OURS, Case, Offer, OfferedLimit, drafts
from ..methods.levers import FIDELITY
from ..methods.outputs import Label, Output
from ..methods.passes import NextPass, measure_blocks
from ..methods.registry import measure_method
from ..methods.results import Estimate, Measure
from ..methods.rows import average_with_intervals
from ..methods.run import Run
from ..methods.spec import Param, Spec
from ..statistics.columns import column_scales, fill_with_mean, independent_columns, missing_as_level
from ..statistics.combining import monte_carlo_mean
from ..statistics.number_facts import NumberFacts
from ..trees.class_trees import grow_class_trees
from ..wording import join_names

ComputePmse = Callable[[Sequence[Floats]], list[float]]
"""The pMSE of a classifier of each of some labels y (N,), 0 or 1."""
RECORDS_AT_ONCE = 150_000
"""Of permuted tables that are classified together: of small ones several, since each step of a tree takes a while however small."""
MOST_COEFFICIENTS = 1000
REPEATED_RATIO = 0.5
"""Below this s_pmse a release is nearer to the confidential records than one drawn from a model fitted to them usually is."""
MENTIONED_CHANCE = 0.005
NOTHING_VARIES = "no variable varies, so no classifier can distinguish the tables"
PMSE_RANGE: Range = (0.0, 0.25)
"""c (1 - c) is at most 1/4."""


def mean_squared_distance(scores: Floats, y: Floats) -> float:
    """Compute the pMSE, mean (p_i - c)^2, of scores (N,), with c the share of ones in y (N,) (Woo et al. 2009)."""
    return float(np.mean((scores - y.mean()) ** 2))


def logit_pmse(design: SummedDesign, y: Floats, repeated: Booleans, sizes: tuple[int, int]) -> tuple[float, float, int]:
    """Compute the pMSE of a logistic regression of y (N,) on a design (N, K), its expectation for a correct model, and the
    coefficients that can differ.

    y: empty where the blocks of the design have it
    repeated: whether each column is the same in both tables, as the intercept is, (K,)
    sizes: numbers of zeros and ones in y
    """
    records, c = sum(sizes), sizes[1] / sum(sizes)
    # A design of one block is formed whole, a longer one block by block: the same to 1e-9.
    if isinstance(design, SparseDesign) and len(list(row_blocks(records, design.width))) == 1:
        columns = design.matrix()[:, np.argsort(~repeated, kind="stable")]
        independent = independent_columns(columns)
        pmse = mean_squared_distance(logistic_regression(columns[:, independent], y).probabilities, y)
        d = int(independent[repeated.sum() :].sum())
    else:
        basis = independent_basis(design)
        d = len(basis) - len(independent_basis(design, among=repeated))
        pmse = BlockedLogistic(basis, y).squared_distances(c) / records
    # Snoke et al. (2018), §3.1. Given the repeated columns the others differ in d directions only (exact where their
    # regression on these is linear).
    return pmse, d * c * (1 - c) ** 2 / records, d


def tree_pmse(x: Integers, labels: Sequence[Floats], levels: Sequence[int], minbucket: int, cp: float) -> list[float]:
    """Compute the pMSE of a classification tree for each of the ``labels`` y (N,) by codes x (N, P).

    levels: number of levels of a predictor without an order, 0 for an ordered one, (P,)
    minbucket: fewest records of a leaf
    cp: share of the root's misclassified records that each split must save
    """
    c = labels[0].mean()
    # Both tables weigh the same: else the larger one would have the majority in every leaf, and the tree no errors to
    # save.
    weights = 0.5 / np.array([1 - c, c])
    classes = [y.astype(np.int64) for y in labels]
    trees = grow_class_trees(x, classes, levels=levels, minbucket=minbucket, cp=cp, weights=weights.tolist())
    shares = [(tree.counts[:, 1] / tree.counts.sum(axis=1))[tree.leaf] for tree in trees]
    return [mean_squared_distance(scores, y) for scores, y in zip(shares, labels, strict=True)]


def permutation_null(pmse: ComputePmse, y: Floats, permutations: int, run: Run) -> tuple[float, list[float]]:
    """Compute the pMSE of the labels y (N,), zeros first, and its null distribution by permutations of them.

    pmse: function that computes the pMSE for several labels

    Returns the pMSE, and that of each permutation times 1 - c, with c the share of ones.
    """
    # With as many ones as zeros labels are exchanged between record i of both tables alone. For independent tables that
    # is as good as any permutation; for a partly synthetic one it is the only right one, because what such a pair has
    # in common stays in both.
    work = partial(_permute_labels, y, 2 * np.sum(y) == len(y))
    labels = chain([y], run.over(work, range(permutations), "permutations"))
    found: list[float] = []
    while at_once := list(islice(labels, max(1, RECORDS_AT_ONCE // len(y)))):
        found += pmse(at_once)
    # A permutation lets both tables vary, with variance 1/n + 1/m. A release drawn from a fitted model varies alone, by
    # 1/m: the share 1 - c (Snoke et al. 2018, §3.2; synthpop halves too).
    return found[0], [float(value * (1 - y.mean())) for value in found[1:]]


def _permute_labels(y: Floats, paired: bool, item: Any, rng: np.random.Generator) -> Floats:
    """Return labels permuted, or exchanged within pairs of record i of both tables."""
    if not paired:
        return rng.permutation(y)
    exchanged = rng.random(len(y) // 2) < 0.5
    return np.where(np.tile(exchanged, 2), 1 - y, y)


def _stack_variable(confidential: Microdata, released: Microdata, name: str) -> Floats:
    """Return a variable of both tables, (N,): codes with a level for missing, or numbers that may be NaN."""
    values = np.concatenate([confidential.numbers(name), released.numbers(name)])
    return missing_as_level(values) if released.schema[name].kind.has_levels else values


def _ratio_measure(pmse: float, null: Estimate, why_zero: str, degrees: int = 0) -> Measure:
    """Return the estimates of the pMSE, its null and their ratio.

    why_zero: reason of a missing ratio where the null is 0
    degrees: coefficients of a logistic regression that can differ; 0 for a tree
    """
    if not null.value:
        ratio = Estimate.not_computed("s_pmse", why_zero)
    else:
        value = pmse / null.value
        lower, upper = ratio_limits(pmse, null)
        ratio = Estimate(
            "s_pmse", value, lower=lower, upper=upper, baseline=1.0, reason=_repetition_remark(value, degrees)
        )
    return Measure((Estimate("pmse", pmse, baseline=null.value), null, ratio))


def ratio_limits(pmse: float, null: Estimate) -> Range:
    """Return the limits of pmse / null from those of the null; None where the null may be 0."""
    if null.value is None or null.lower is None or null.upper is None or null.lower <= 0:
        return None, None
    value = pmse / null.value
    return min(value, pmse / null.upper), max(value, pmse / null.lower)


def _repetition_remark(ratio: float, degrees: int) -> str:
    """Return a remark for a ratio that is too low, with how often a correct model has one as low; empty for others."""
    from scipy.stats import chi2

    if ratio >= REPEATED_RATIO:
        return ""
    words = f"below {REPEATED_RATIO:g}: the release repeats the confidential records more closely than a model fitted to them does"
    # d times the ratio is chi-squared with d degrees of freedom (Snoke et al. 2018).
    chance = float(chi2.cdf(degrees * ratio, degrees)) if degrees else 0.0
    return f"{words}; chance alone gives this in {chance:.0%} of its releases" if chance >= MENTIONED_CHANCE else words


def _varying_variables(confidential: Microdata, released: Microdata, names: Sequence[str]) -> dict[str, Floats]:
    """Return the variables of both tables that vary, (N,) each. Raises NotComputable where none does."""
    stacked = {name: _stack_variable(confidential, released, name) for name in names}
    # Missing values are all alike.
    varying = {name: values for name, values in stacked.items() if len(pd.unique(values)) > 1}
    if not varying:
        raise NotComputable(NOTHING_VARIES)
    return varying


def _logit_design(
    effects: Sequence[Sequence[SparseTerm]], same: Sequence[bool], model: str, records: int
) -> tuple[SparseDesign, Booleans]:
    """Return the design of the variables' terms, and whether each column is repeated. Raises NotComputable."""
    terms = [(term, own) for of, own in zip(effects, same, strict=True) for term in of]
    if model == "logit_interactions":
        terms += _effect_products(effects, same)
    # Not a ``Design`` of predictor terms: levels are those that occur in either table, and a missing value is one of them.
    design = SparseDesign([InterceptTerm(), *(term for term, _ in terms)], records)
    return design, np.repeat([True, *(own for _, own in terms)], [1, *(term.width for term, _ in terms)])


def _logit_measure(pmse: float, null: float, degrees: int) -> Measure:
    """Return the estimates of a logistic regression."""
    rounding = "released columns differ from combinations of the others by rounding only"
    return _ratio_measure(pmse, Estimate("null_pmse", null, lower=null, upper=null), rounding, degrees)


def _main_effects(values: Floats, has_levels: bool) -> list[SparseTerm]:
    """Return the design terms of a variable: indicators of all levels but the first, or standardised numbers and who is
    missing.
    """
    if has_levels:
        return [IndicatorTerm.from_codes(values)]
    numbers = [(column, float(column_scales(column))) for column in fill_with_mean(values)]
    return [StandardisedTerm.from_values(column, scale) for column, scale in numbers if np.ptp(column / scale) > 0]


def _effect_products(effects: Sequence[Sequence[SparseTerm]], same: Sequence[bool]) -> list[tuple[SparseTerm, bool]]:
    """Return the products of every two variables' terms, each with whether both variables are repeated."""
    pairs = [
        (ProductTerm(one, other), same[i] and same[j])
        for i, j in combinations(range(len(effects)), 2)
        for one, other in product(effects[i], effects[j])
    ]
    count = 1 + sum(term.width for of in effects for term in of) + sum(term.width for term, _ in pairs)
    if pairs and count > MOST_COEFFICIENTS:
        raise NotComputable(
            f"{count:,} main effects and products are more than {MOST_COEFFICIENTS:,}; name fewer variables"
        )
    return list(pairs)


def _tree_columns(columns: Sequence[Floats], unordered: Sequence[bool]) -> tuple[Integers, list[int]]:
    """Return codes or ranks of the variables for a tree, (N, P), and the number of levels of those without an order,
    (P,).
    """
    blocks: list[Integers] = []
    levels: list[int] = []
    for values, plain in zip(columns, unordered, strict=True):
        filled, missing = fill_with_mean(values)
        distinct, codes = np.unique(filled, return_inverse=True)
        blocks.append(codes)
        levels.append(len(distinct) if plain else 0)
        if missing.any():
            blocks.append(missing.astype(np.int64))
            levels.append(0)
    return np.column_stack(blocks), levels


def _table_of_units(data: Microdata, names: Sequence[str], levels_of: Mapping[str, Sequence[str]]) -> Microdata:
    """Return a table with a record a unit: size, the first record, means of numbers, and shares of levels.

    A variable that is equal in all records of a unit has its first record's value alone. Missing values do not count in
    means and shares. Raises NotComputable where nothing says which records are of one unit.
    """
    units = data.require_units()
    variables, columns = [Variable("size", Kind.COUNT)], {"size": pd.Series(units.sizes)}
    first = data.frame.iloc[units.first_records].reset_index(drop=True)

    def add(name: str, values: Floats) -> None:
        """Add the mean of values (n,), NaN where missing, over the records of each unit."""
        present = ~np.isnan(values)
        count = units.sum_by_unit(present.astype(np.float64))
        total = units.sum_by_unit(np.where(present, values, 0.0))
        mean = np.divide(total, count, out=np.full(len(count), np.nan), where=count > 0)
        variables.append(Variable(name, Kind.CONTINUOUS))
        columns[name] = pd.Series(mean)

    for name in names:
        variable, values = data.schema[name], data.numbers(name)
        variables.append(replace(variable, name=f"first {name}"))
        columns[f"first {name}"] = first[name]
        if variable.level == "unit":
            continue
        if name not in levels_of:
            add(f"mean {name}", values)
            continue
        codes = {str(level): code for code, level in enumerate(data.column(name).cat.categories)}
        # the share of one level follows from the others
        for level in levels_of[name][1:]:
            add(f"share {name} {level}", np.where(np.isnan(values), np.nan, values == codes.get(level, -1)))
    schema = Schema(tuple(variables))
    return Microdata(schema, pd.DataFrame(columns), data.origin, linked=data.linked)


@dataclass(frozen=True, kw_only=True, slots=True)
class PropensitySpec(Spec):
    """Classifier and the variables that it uses."""

    model: Annotated[
        Literal["logit", "logit_interactions", "cart"],
        Param("classifier: logistic regression on main effects, on these and their products, or a classification tree"),
    ] = "logit"
    variables: Annotated[
        tuple[str, ...], Param("variables of the classifier; all but identifiers if empty", names="variables")
    ] = ()
    minbucket: Annotated[int, Param("fewest records in a leaf of the tree", ge=1)] = 20
    cp: Annotated[
        float, Param("share of the root's misclassified records that each split of the tree must save", ge=0, lt=1)
    ] = 1e-8
    permutations: Annotated[int, Param("permutations of the labels that give the tree's null", ge=2)] = 5
    of: Annotated[
        Literal["records", "units"],
        Param(
            "what is classified: records, or units of several records by their size, means, shares of levels and first record"
        ),
    ] = "records"


@dataclass(frozen=True)
class _VariableTerms:
    """Design terms of a variable of long tables.

    column: column of each code from -1, for a variable with levels; None for numbers
    width: number of the columns of its levels
    numbers: facts of its numbers
    """

    column: NDArray[np.int32] | None = None
    width: int = 0
    numbers: NumberFacts | None = None

    @property
    def varies(self) -> bool:
        """Return whether the values are neither all equal nor all missing."""
        if self.numbers is None:
            return self.width > 0
        return self.numbers.high > self.numbers.low or (self.numbers.present > 0 and self.numbers.missing > 0)

    def terms_of(self, values: Floats) -> list[SparseTerm]:
        """Return the terms of a block's values (n,), as ``_main_effects`` does of a whole variable."""
        if self.column is not None:
            return [IndicatorTerm(self.column[values.astype(np.int32) + 1], self.width)]
        assert self.numbers is not None
        facts, found = self.numbers, list[SparseTerm]()
        there = np.isnan(values)
        records = facts.present + facts.missing
        if facts.high > facts.low:
            filled = np.where(there, facts.mean, values)
            deviation = math.sqrt(facts.squares / records)
            found.append(StandardisedTerm(filled, facts.scale, facts.scaled_mean, deviation))
        if facts.present and facts.missing:
            share = facts.missing / records
            found.append(StandardisedTerm(there.astype(np.float64), 1.0, share, math.sqrt(share * (1 - share))))
        return found


DesignOfBlock = Callable[[Microdata, Microdata], tuple[SparseDesign, Booleans]]


def _design_of_block(
    terms: Mapping[str, _VariableTerms], same: Sequence[bool], model: str, confidential: Microdata, released: Microdata
) -> tuple[SparseDesign, Booleans]:
    """Return the design of a block of both tables, and whether each column is repeated. Raises NotComputable."""
    effects = [own.terms_of(_stack_variable(confidential, released, name)) for name, own in terms.items()]
    return _logit_design(effects, same, model, len(confidential) + len(released))


def _sum_block(design_of: DesignOfBlock, work: BlockWork, confidential: Microdata, released: Microdata) -> Summands:
    """Return what a work computes from the entries of the design of a block of both tables."""
    y = np.repeat([0.0, 1.0], [len(confidential), len(released)])
    return design_of(confidential, released)[0].sum_blocks(work, y)


class PropensityPasses(SummedPasses):
    """A pass that finds levels, means and deviations, and one for each sum over the records that the logistic regression
    asks for: X'X, then value, score and information of each Newton step, then the distances.
    """

    def suits(self, spec: PropensitySpec, schema: Schema) -> bool:
        """Return whether a logistic regression classifies records."""
        return spec.model != "cart" and spec.of == "records"

    def start(self, confidential: Microdata, released: Microdata, spec: PropensitySpec, n_blocks: int) -> NextPass:
        names, heads = spec.variables or confidential.schema.non_identifiers, (confidential, released)
        levels = {
            name: max(len(data.column(name).cat.categories) for data in heads)
            for name in names
            if released.schema[name].kind.has_levels
        }
        compute = partial(_measure_by_sums, spec.model, names, levels, heads)
        return self.first_pass(compute, confidential, n_blocks, names, "logistic regression")


def _measure_by_sums(
    model: str,
    names: Sequence[str],
    levels: Mapping[str, int],
    heads: tuple[Microdata, Microdata],
    both: SummedTable,
) -> Measure:
    """Return the measure of two tables that are asked for sums together. Raises NotComputable."""
    sizes, found = both.ask_sums(partial(_facts_of_variables, names, levels), partial(_join_facts, levels))
    n, m = sizes.tolist()
    varying = {name: one for name, one in found.items() if one.terms.varies}
    if not varying:
        raise NotComputable(NOTHING_VARIES)
    same = find_repeated(varying, both)
    # Where a release repeats all, nothing says which were synthesised.
    same = [False] * len(same) if all(same) else same
    if both.n_blocks == 1:
        ours, theirs = both.ask_sums(lambda *tables: tables)
        effects = [_main_effects(_stack_variable(ours, theirs, name), name in levels) for name in varying]
        design, repeated = _logit_design(effects, same, model, n + m)
        return _logit_measure(*logit_pmse(design, np.repeat([0.0, 1.0], sizes), repeated, (n, m)))
    design_of = partial(_design_of_block, {name: one.terms for name, one in varying.items()}, same, model)
    layout, repeated = design_of(*heads)
    asked = AskedDesign(layout.width, both, partial(_sum_block, design_of))
    return _logit_measure(*logit_pmse(asked, np.empty(0), repeated, (n, m)))


class _VariableFacts(NamedTuple):
    """Whether both tables have equal values of a variable in the same order, and in any; and its terms."""

    aligned: bool
    alike: bool
    terms: _VariableTerms


def _facts_of_variables(
    names: Sequence[str], levels: Mapping[str, int], confidential: Microdata, released: Microdata
) -> Summands:
    """Return the records of a block, and what it tells of each variable."""
    found = {}
    for name in names:
        values = _stack_variable(confidential, released, name)
        ours, theirs = values[: len(confidential)], values[len(confidential) :]
        facts: NDArray[Any] = (
            np.bincount(values.astype(np.int64) + 1, minlength=levels[name] + 1)
            if name in levels
            else NumberFacts.from_values(values).as_array
        )
        aligned = np.array_equal(ours, theirs, equal_nan=True)
        found[name] = aligned, _hash_sums([values], len(confidential)), facts
    return np.array([len(confidential), len(released)]), found


def _join_facts(levels: Mapping[str, int], parts: Sequence[Summands]) -> Summands:
    """Join what blocks tell of each variable."""
    found = {}
    for name in parts[0][1]:
        aligned, sums, facts = zip(*(of[name] for _, of in parts), strict=True)
        if name in levels:
            terms = _VariableTerms(*IndicatorTerm.number_columns(np.sum(facts, axis=0) > 0))
        else:
            terms = _VariableTerms(numbers=NumberFacts.from_blocks(facts))
        ours, theirs = np.array(sums, dtype=np.uint64).sum(axis=0)
        found[name] = _VariableFacts(all(aligned), bool(ours == theirs), terms)
    return np.sum([sizes for sizes, _ in parts], axis=0), found


def _hash_sums(stacked: Sequence[Floats], ours: int) -> NDArray[np.uint64]:
    """Return the sums of the records' hashes in both tables, modulo 2^64, the first ``ours`` of (n,) confidential.

    Of the same records equally often, in whatever order, they are equal; a difference is missed once in 2^64.
    """
    tables = ([values[rows] for values in stacked] for rows in (slice(ours), slice(ours, None)))
    sums = (sum(int(hash_records(own, rows).sum()) for rows in row_blocks(len(own[0]))) % 2**64 for own in tables)
    return np.array(list(sums), dtype=np.uint64)


def _hash_records(names: Sequence[str], confidential: Microdata, released: Microdata) -> Summands:
    return (_hash_sums([_stack_variable(confidential, released, name) for name in names], len(confidential)),)


def find_repeated(found: Mapping[str, _VariableFacts], both: SummedTable) -> list[bool]:
    """Return which variables a release repeats.

    One after another, a variable is repeated where it makes, with the repeated ones before it, the same records in both
    tables.
    """
    before, same, in_order = tuple[str, ...](), list[bool](), True
    for name, one in found.items():
        # Most are decided by themselves: in tables of the same order directly, in others by the sums of hashes.
        together, in_place = (*before, name), in_order and one.aligned
        is_same = in_place or (one.alike and not before)
        if one.alike and before and not in_place:
            ((ours, theirs),) = both.ask_sums(partial(_hash_records, together), add_sums, together)
            is_same = bool(ours == theirs)
        same.append(is_same)
        if is_same:
            in_order, before = in_place, together
    return same


def _draft_offer(case: Case) -> Offer | None:
    """Offer the measure for a synthesis; None for an anonymisation."""
    if case.want == "anonymisation":
        return None
    why = "whether the release as a whole looks like the data: 1 where it follows them"
    settings = {}
    if case.recoded:
        # Utility is measured against the exact values: any classifier sees a value that only the rule makes.
        settings["variables"] = [name for name in case.compared_variables if name not in case.recoded]
        why += f"; without {join_names(case.recoded)}, of which the release shows coarser values"
    return Offer(
        why, settings, limits=(OfferedLimit("s_pmse", "max", 10, f"ten times what a right model would give; {OURS}"),)
    )


@measure_method(
    "Propensity score",
    spec=PropensitySpec,
    source="Woo et al. (2009); Snoke et al. (2018) §3; Guo & Hu §3.1",
    outputs=(
        Output(
            "pmse",
            "mean squared distance of the propensity scores from the share c of released records; 0 when a classifier "
            "cannot distinguish the tables, at most c (1 - c), 1/4 for tables of equal size",
            "low",
            range=PMSE_RANGE,
            statbarn="StatisticalHypothesisTests",
            label=Label(
                "Difference that a model finds (pMSE)",
                "A classifier tells released from confidential records. Between 0 (not at all) and 0.25 (always, with tables of one size) it reaches {value}.",
                "Lower is better; as low as chance alone makes it is as good as a fitting model can be.",
                "A classifier distinguishes the release from the data too well.",
                FIDELITY,
                baseline="what chance alone would make",
            ),
        ),
        Output(
            "null_pmse",
            "what pmse is expected to be for a release drawn from a model fitted to this confidential sample; columns that "
            "are not synthesised do not count where both tables have as many records",
            "none",
            range=PMSE_RANGE,
            estimated=True,
            statbarn="StatisticalHypothesisTests",
            label=Label(
                "Difference found by chance alone (pMSE)",
                "By chance alone a classifier that tells released from confidential records reaches a difference (pMSE) of {value}, between 0 (none) and 0.25 (all recognised).",
                "Neither good nor bad: it is the yardstick for the difference that a model finds (pMSE).",
            ),
        ),
        Output(
            "s_pmse",
            "pmse as a multiple of null_pmse: 1 on average for a release drawn from a model that follows the confidential "
            "sample, 2 for a fresh sample of the same population and size and for a model whose parameters are drawn from "
            "their posterior; above, the release differs; below 0.5, it repeats the confidential records more closely than a "
            "fitted model does, and a copy has 0",
            "one",
            range=NON_NEGATIVE,
            estimated=True,
            statbarn="StatisticalHypothesisTests",
            label=Label(
                "Difference as a multiple of chance (S-pMSE)",
                "The difference that a classifier finds between released and confidential records is {value} times what chance alone would make.",
                "Good is near 1, as a fitting model has; other people would have 2; above, the release differs; far below 1, it repeats the data.",
                "The release differs from the data, or repeats it, more than a fitted model does.",
                FIDELITY,
                baseline="a model that fits, by chance",
            ),
        ),
    ),
    combine=average_with_intervals,
    measure_passes=PropensityPasses(),
)
@drafts(_draft_offer)
def propensity(confidential: Microdata, released: Microdata, spec: PropensitySpec, run: Run) -> Measure:
    """Measure ``pmse``, its null expectation, and their ratio; for a tree with the interval of the mean over
    permutations.

    Raises NotComputable when no column varies over the two tables, there are too many products, or the units that are
    to be classified are not known.
    """
    names = spec.variables or confidential.schema.non_identifiers
    if spec.of == "units":
        if confidential.units is None:
            raise NotComputable(
                'every record is a unit of its own; leave out of = "units", or give a variable the role "unit"'
            )
        for name in names:
            comparable_categories(confidential, released, name, None)
        levels_of = KeyNumbers.from_tables(names, [confidential, released]).levels
        confidential, released = (_table_of_units(data, names, levels_of) for data in (confidential, released))
        spec = replace(spec, of="records", variables=confidential.schema.names)
    if spec.model != "cart":
        return measure_blocks(PropensityPasses(), OneBlock(confidential), OneBlock(released), spec)
    varying = _varying_variables(confidential, released, spec.variables or names)
    y = np.repeat([0.0, 1.0], [len(confidential), len(released)])
    unordered = [released.schema[name].kind in (Kind.CATEGORICAL, Kind.BINARY) for name in varying]
    x, levels = _tree_columns(list(varying.values()), unordered)
    pmse = partial(tree_pmse, x, levels=levels, minbucket=spec.minbucket, cp=spec.cp)
    own, permuted = permutation_null(pmse, y, spec.permutations, run)
    null, lower, upper = monte_carlo_mean(permuted, within=PMSE_RANGE)
    no_split = "the tree does not split when labels are permuted, so its null is 0"
    return _ratio_measure(own, Estimate("null_pmse", null, lower=lower, upper=upper), no_split)
