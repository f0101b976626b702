"""Population uniqueness: how many of the records that are unique on a key in the sample are unique in the population.

The records are a sample: a ``fraction`` of the population, or each stands for as many people as its ``weight`` says. Of the sample uniques,
``expected_uniques`` (τ_1) are population uniques, and ``expected_matches`` (τ_2) would be matched rightly by an intruder who
picks one of the people with their key at random, by a Poisson log-linear model of the key's cells with all main effects or all
two-way interactions (Skinner & Shlomo 2008; Elamir & Skinner 2006). The model is chosen by its specification test: main
effects unless the test rejects them, else the model of the smaller statistics. Where the test rejects that too the row says so: the figure
may be off either way, and what it passes must not be read as safe. Models with few records a parameter are not fitted:
they follow single records. In a tenth of Adult, 8 records a parameter of a two-way model, it found 118 population uniques of
152 and main effects 172; with 24 in three tenths, 403 of 425.

With weights (after the same, for complex designs) the means are fitted to the sums of weights F̂_k and π_k = f_k / F̂_k; the test holds the unweighted
counts against the same margins; there is no interval. Intervals are of 95 % if the model holds.

``pitman_uniques`` and ``zayatz_uniques`` look at the sizes of the classes alone, and take the sample as drawn with equal chances.

A release is looked at as if its values were true, in the population that the confidential data were drawn from: of synthesised
values the figures say how rare the keys are that are shown, not whose they are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Annotated, Any, Literal, Self

import numpy as np
import pandas as pd

from ..arrays import Floats, Integers
from ..data.intervals import NON_NEGATIVE, bounded_interval
from ..data.microdata import Microdata
from ..data.schema import Kind, Role, Schema
from ..design.binning import BINNED, BinsOfKey, as_categories, check_binning, learned_words
from ..errors import BadInput, NotComputable
from ..methods.outputs import Output, RecordArray
from ..methods.registry import method
from ..methods.results import Estimate, Measure
from ..methods.run import Run
from ..methods.spec import Param, Spec
from ..partition.equivalence_classes import class_sizes, equivalence_classes
from ..statistics.log_linear import LogLinear, Order
from ..wording import agree, counted
from ._sample_uniques import EXPECTATIONS, MATCHES, UNIQUES, Expectation, KeyModel, expected_inverse
from ._superpopulation import pitman_fit, pitman_share, zayatz_share

MOST_CELLS = 1_000_000
REJECTED = 1.96
MAIN_EFFECTS_RECORDS = 5
"""Records that a model of main effects must have for each parameter."""
MODELS: dict[Order, str] = {1: "main effects", 2: "two-way"}
SPECIFICATION = {UNIQUES.name: "specification_uniques", MATCHES.name: "specification_matches"}


@dataclass(frozen=True, kw_only=True, slots=True)
class PopulationUniquenessSpec(Spec):
    """The key, how the sample was drawn, and the model."""

    keys: Annotated[
        tuple[str, ...],
        Param(
            "variables of the key; left out, those of role known, or else the released", names="variables", told=True
        ),
    ] = ()
    fraction: Annotated[
        float | None, Param("share of the population that the confidential records are", gt=0, le=1)
    ] = None
    weight: Annotated[
        str | None,
        Param(
            "variable that says how many people of the population each record stands for; the survey weight if neither it nor a "
            "fraction is said",
            names="variables",
            kinds=(Kind.COUNT, Kind.CONTINUOUS),
        ),
    ] = None
    model: Annotated[
        Literal["chosen", "main_effects", "two_way"],
        Param("terms of the log-linear model, or chosen by the specification test"),
    ] = "chosen"
    two_way_records: Annotated[
        int,
        Param(
            "records that a two-way model must have for each parameter; with fewer it finds too few population uniques",
            ge=5,
        ),
    ] = 20
    bins: BinsOfKey = field(default_factory=dict)

    def for_release(self, schema: Schema, released: tuple[str, ...]) -> Self:
        """With the quasi-identifiers as key, when none is named, never the weight; and with the survey weight where nothing says how the sample was drawn."""
        weight = self.weight or next(iter(schema.of_role(Role.WEIGHT) if self.fraction is None else ()), None)
        out = (weight, *schema.of_role(Role.WEIGHT))
        keys = self.keys or tuple(n for n in schema.of_role(Role.QUASI_IDENTIFIER) or released if n not in out)
        return replace(self, keys=keys, weight=weight)

    def settings(self, schema: Schema, released: tuple[str, ...]) -> dict[str, Any]:
        """Those of any measure, and the survey weight where it is what says how the sample was drawn."""
        weight = self.for_release(schema, released).weight
        return {**Spec.settings(self, schema, released), **({"weight": weight} if weight else {})}

    def check_release(self, schema: Schema, released: tuple[str, ...], place: str) -> None:
        """BadInput when there is no key, not one of fraction and weight, or a bin is of no variable of the key."""
        full = self.for_release(schema, released)
        keys, weight = full.keys, full.weight
        if not keys:
            raise BadInput(
                f"{place}.keys", 'no variable is in the key; name some, or give them the role "quasi_identifier"'
            )
        if (self.fraction is None) == (weight is None):
            raise BadInput(
                f"{place}.fraction",
                "say either which share of the population the records are (fraction = 0.1), or which variable says how "
                'many people each stands for (role = "weight")',
            )
        if weight in keys:
            raise BadInput(f"{place}.weight", f'"{weight}" is in the key')
        check_binning(self.bins, {n: schema[n].kind for n in keys if schema[n].kind in BINNED}, f"{place}.bins")

    @property
    def orders(self) -> tuple[Order, ...]:
        """The models that are fitted."""
        both: dict[str, tuple[Order, ...]] = {"main_effects": (1,), "two_way": (2,)}
        return both.get(self.model, (1, 2))


def check(data: Microdata, target: str, spec: PopulationUniquenessSpec, place: str) -> None:
    """BadInput where a record has no sampling weight, or one that no record can have."""
    spec = spec.for_release(data.schema, ())
    if spec.weight is None:
        return
    if lacking := int(data.missing(spec.weight).sum()):
        raise BadInput(
            f"{place}.weight",
            f"{counted(lacking, 'record')} {agree(lacking, 'has', 'have')} no weight; leave them out with [data] where",
        )
    if below := int((data.present(spec.weight) < 1).sum()):
        raise BadInput(
            f"{place}.weight",
            f"{counted(below, 'record')} {agree(below, 'has', 'have')} a weight below 1; a weight says how many people of the population a record stands for, "
            "itself among them; where weights are scaled to a mean of 1, say the fraction instead",
        )


@method(
    "Population uniqueness",
    spec=PopulationUniquenessSpec,
    source="Skinner & Shlomo (2008); Elamir & Skinner (2006); Pitman (1995), Hoshino (2001); Zayatz (1991)",
    outputs=(
        Output(
            UNIQUES.name,
            "records unique on the key that are expected to be unique in the population too, by a log-linear model",
            "low",
            "records",
            range=NON_NEGATIVE,
            questions=("singling out",),
            drawn="interval",
        ),
        Output(
            MATCHES.name,
            "records unique on the key that would be matched rightly by picking one of the people with their key",
            "low",
            "records",
            range=NON_NEGATIVE,
            questions=("singling out",),
            drawn="interval",
            held_beyond="nothing",
        ),
        Output(
            "specification_uniques",
            "specification test of a model for expected_uniques: above 1.96 terms are missing, below -1.96 there are too many",
            "none",
        ),
        Output(
            "specification_matches",
            "specification test of a model for expected_matches: above 1.96 terms are missing, below -1.96 there are too many",
            "none",
        ),
        Output(
            "pitman_uniques",
            "records unique on the key that are expected to be unique in the population too, by the Pitman model",
            "low",
            "records",
            range=NON_NEGATIVE,
            questions=("singling out",),
        ),
        Output(
            "zayatz_uniques",
            "records unique on the key that are expected to be unique in the population too, by Zayatz's estimate",
            "low",
            "records",
            range=NON_NEGATIVE,
            questions=("singling out",),
        ),
    ),
    per_record=(
        RecordArray("frequency", "records of the released table that have its key", "records", "low", "candidates"),
        RecordArray(
            "right_match",
            "that picking one of the people of the population with the record's key finds its own, E(1/F | f)",
            "share",
            "high",
            "probability",
        ),
        RecordArray(
            "population_unique", "that nobody else in the population has its key, P(F = 1 | f)", "share", "high"
        ),
    ),
    confidential=True,
    check=check,
)
def population_uniqueness(
    confidential: Microdata, released: Microdata, spec: PopulationUniquenessSpec, run: Run
) -> Measure:
    """Uniques of the released table that are expected to be population uniques.

    ``per_record``: ``frequency`` f, ``right_match`` E(1/F | f) and ``population_unique`` P(F = 1 | f), each (n,), NaN of records
    that are suppressed; none where nothing says whose a released record is, or the log-linear model is not computed.
    """
    remark = learned_words(spec.bins)
    columns = [
        as_categories(confidential, released, name, rule)[1] if (rule := spec.bins.get(name)) else released.frame[name]
        for name in sorted(spec.keys)
    ]
    weights, population = _sampling(confidential, released, spec)
    classes = equivalence_classes(columns, len(released))
    sizes = class_sizes(classes)
    others = [_of_sizes(name, sizes, population, remark) for name in ("pitman_uniques", "zayatz_uniques")]
    models: dict[Order, KeyModel] = {}
    why: dict[Order, str] = {}
    codes = [pd.factorize(column, use_na_sentinel=False)[0] for column in columns]
    cells = [code for code in codes if code.max() > 0]
    for order in spec.orders:
        try:
            models[order] = _fitted(cells, weights, order, MAIN_EFFECTS_RECORDS if order == 1 else spec.two_way_records)
        except NotComputable as error:
            why[order] = error.reason
    found = {order: [model.specification(of) for of in EXPECTATIONS] for order, model in models.items()}
    tests = [
        _tested(of, order, found[order][place] if order in found else None, why.get(order, ""), remark)
        for order in spec.orders
        for place, of in enumerate(EXPECTATIONS)
    ]
    if not models:
        reason = "; ".join(dict.fromkeys(why.values()))
        lacking = [Estimate.not_computed(of.name, reason) for of in EXPECTATIONS]
        return Measure((*lacking, *tests, *others))
    order = _chosen(found)
    model = models[order]
    estimates = [
        _estimate(model, of, _words(order, found[order][place]), interval=spec.weight is None)
        for place, of in enumerate(EXPECTATIONS)
    ]
    return Measure((*estimates, *tests, *others), _per_record(confidential, released, model, cells))


def _sampling(confidential: Microdata, released: Microdata, spec: PopulationUniquenessSpec) -> tuple[Floats, float]:
    """How many people each released record stands for, (n,), and how many the population has.

    They add up to what the confidential records stand for, whatever a release suppresses or adds.
    """
    if spec.weight is None:
        assert spec.fraction is not None
        population = len(confidential) / spec.fraction
        weights = np.full(len(released), population / len(released))
    else:
        population = float(confidential.numbers(spec.weight).sum())
        weights = released.numbers(spec.weight)
        if np.isnan(weights).any() or (weights <= 0).any():
            raise NotComputable(f'released records have no weight above 0 in "{spec.weight}"')
        weights = weights * (population / weights.sum())
    if (weights < 1 - 1e-9).any():
        raise NotComputable("released records stand for less than one person each")
    return np.maximum(weights, 1.0), population


def _of_sizes(name: str, sizes: Integers, population: float, remark: str) -> Estimate:
    """The Pitman model's figure, or Zayatz's."""
    uniques = int(np.sum(sizes == 1))
    try:
        if not uniques:
            share = 0.0
        elif name == "pitman_uniques":
            share = pitman_share(*pitman_fit(sizes), int(sizes.sum()), population)
        else:
            share = zayatz_share(sizes, population)
    except NotComputable as error:
        return Estimate.not_computed(name, error.reason)
    return Estimate(name, uniques * share, reason=remark)


def _fitted(codes: list[Integers], weights: Floats, order: Order, least: int) -> KeyModel:
    """The model of a key whose variables have the codes (n,) each, from at least so many records a parameter.

    Raises:
        NotComputable: where the table of the key has too many cells, or the model too many parameters.
    """
    if len(codes) <= order:
        need = "two variables" if order == 1 else "three variables"
        raise NotComputable(f"the model ({MODELS[order]}) needs {need} in the key that are not constant")
    shape = tuple(int(code.max()) + 1 for code in codes)
    if (count := math.prod(shape)) > MOST_CELLS:
        raise NotComputable(
            f"the key has {count:,} combinations of values, above the {MOST_CELLS:,} that a log-linear model is fitted to; put "
            "numbers in bins, or name fewer keys"
        )
    parameters = sum(
        math.prod(levels - 1 for levels in term) for size in range(order + 1) for term in combinations(shape, size)
    )
    if least * parameters > len(weights):
        raise NotComputable(
            f"the model ({MODELS[order]}) has {parameters:,} parameters and needs {counted(least, 'record')} for each, of {len(weights):,}; "
            "put numbers in wider bins, or name fewer keys"
        )
    cell = np.ravel_multi_index(codes, shape)
    counts = np.bincount(cell, minlength=count).astype(np.float64).reshape(shape)
    people = np.bincount(cell, weights, minlength=count).astype(np.float64).reshape(shape)
    present = np.divide(counts, people, out=np.zeros(shape), where=people > 0)
    sample = LogLinear.of(counts, order)
    if np.ptp(weights) == 0:
        return KeyModel(counts, sample, sample.fitted * weights[0], present)
    return KeyModel(counts, sample, LogLinear.of(people, order).fitted, present)


def _off(found: list[float | None]) -> float:
    return max((abs(one) for one in found if one is not None), default=0.0)


def _chosen(found: Mapping[Order, list[float | None]]) -> Order:
    """Main effects if the test does not reject them, else the model of the smaller statistics."""
    if 1 in found and _off(found[1]) <= REJECTED:
        return 1
    return min(found, key=lambda order: _off(found[order]))


def _words(order: Order, off: float | None) -> str:
    """What the test says against the model of an estimate, alone: an average shows the first reason that its datasets have."""
    if off is None or abs(off) <= REJECTED:
        return ""
    why = "terms are missing" if off > 0 else "it has too many terms"
    return f"the specification test rejects the log-linear model of {MODELS[order]}: {why}"


def _tested(of: Expectation, order: Order, value: float | None, why: str, remark: str) -> Estimate:
    reason = why or (remark if value is not None else "no residual of the model varies")
    return Estimate(SPECIFICATION[of.name], value, reason=reason, params={"fitted": MODELS[order]})


def _estimate(model: KeyModel, of: Expectation, words: str, *, interval: bool) -> Estimate:
    value, uniques = model.expected(of), float(np.sum(model.counts == 1))
    if not interval or uniques == 0:
        return Estimate(of.name, value, reason=words)
    lower, upper = bounded_interval(value, model.half_width(of), (0.0, uniques))
    return Estimate(of.name, value, lower=lower, upper=upper, reason=words)


def _per_record(
    confidential: Microdata, released: Microdata, model: KeyModel, codes: list[Integers]
) -> dict[str, Floats]:
    """What the model says of each confidential record's released version, (n,) each."""
    if not released.linked or (released.classes is None and len(released) != len(confidential)):
        return {}
    cell = np.ravel_multi_index(codes, model.counts.shape)
    counts, others = model.counts.ravel()[cell], model.others.ravel()[cell]
    values = {
        "frequency": counts,
        "right_match": expected_inverse(counts, others),
        "population_unique": np.where(counts == 1, np.exp(-others), 0.0),
    }
    found = {name: np.full(len(confidential), np.nan) for name in values}
    for name, value in values.items():
        found[name][released.records] = value
    return found
