"""Dirichlet process mixture of products of multinomials: categorical records drawn from latent classes.

Hu, Reiter & Wang (2014); Si & Reiter (2013). Every record is in a latent class, and inside its class the variables are
independent, so that many classes describe how variables are related without a model of it (Dunson & Xing 2009). The
model and its sampler are those of ``sfumato.engine.posterior.multinomial_mixture``; each dataset is drawn by the
parameters of a sweep of its own. Numbers are cut into bins, whose order is not used.

Without ``predictors`` a record's class is drawn by pi, then each variable by its class. With ``predictors``, variables
that are kept, the mixture is of these and the targets together, and a record's class is drawn given its own kept values
alone. A missing value is a level of its own, or with ``missing = "filled"`` is integrated over in the sampler.
Impossible combinations, the conditions of ``impossible``, have no probability (Manrique-Vallier & Reiter 2014). A level
that no record has can be drawn, with the ``concentration`` as its virtual records in each class. There is no epsilon.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from ..data.arrays import Integers
from ..data.microdata import Microdata
from ..data.provenance import FitUncertainty
from ..data.schema import Kind, Schema
from ..design.categories import BinsByVariable, InsideBin, VariableCategories, categories_of_variable, check_bins
from ..design.structural_zeros import StructuralZero
from ..errors import BadInput, NotComputable, NotConverged
from ..methods.chains import KEEP_CHAINS, chain_storage_bytes, require_room_for_chains
from ..methods.drafting import ALTERNATIVE, Case, Offer, drafts, suggest_bins
from ..methods.registry import synthesis_method
from ..methods.results import Diagnostic, Fit
from ..methods.run import Run
from ..methods.spec import Param, Spec
from ..posterior.continued import doubling_lengths
from ..posterior.distinct_rows import DistinctRows, draw_levels_given_classes
from ..posterior.multinomial_mixture import (
    ALPHA,
    LOG_LIKELIHOOD,
    OCCUPIED,
    ChainDraws,
    MixturePrior,
    sample_mixture,
)
from ..posterior.structural_zeros import MixtureSupport, SupportTruncation, TooManySlices, fulfilled_conditions
from ..wording import count_noun

LARGEST_R_HAT = 1.05
SMALLEST_SIZE = 100.0
FEWEST_SWEEPS = 20
MOST_NUMBERS = 20_000_000
"""Probabilities of levels in all classes, of one draw of the parameters."""
REQUIRED_STATISTICS = ("r_hat", "effective_sample_size")
"""What chains that may be used have to pass; what else is said is a warning."""


def check_data(data: Microdata, targets: tuple[str, ...], spec: DpmpmSpec, place: str) -> None:
    """Raise BadInput where data and settings do not suit the mixture.

    That is where a number has no bins, a variable has no value, the mixture is too large, burn-in leaves too few
    sweeps, or records fulfil a condition of ``impossible``.
    """
    check_bins(data, (*targets, *spec.predictors), spec.bins, place)
    if (spec.sweeps - spec.burn_in) // spec.thin < FEWEST_SWEEPS:
        raise BadInput(
            f"{place}.sweeps",
            f"burn_in and thin leave fewer than {FEWEST_SWEEPS} of a chain's {spec.sweeps:,} sweeps; ask for more",
        )
    require_room_for_chains(spec.chain_bytes(data), place)
    sizes = {
        name: _count_mixture_levels(one, spec)
        for name, one in _categories_by_name(data, (*targets, *spec.predictors), spec).items()
    }
    for name, size in sizes.items():
        if not size:
            raise BadInput(f"{place}.missing", f'"{name}" has no value at all; leave it out')
    if spec.classes * sum(sizes.values()) > MOST_NUMBERS:
        raise BadInput(
            f"{place}.classes",
            f"{count_noun(spec.classes, 'class')} of {sum(sizes.values()):,} levels are more than {MOST_NUMBERS:,} probabilities; "
            "use fewer classes, or cut the variables coarser",
        )
    if spec.impossible:
        if spec.split_every:
            raise BadInput(
                f"{place}.split_every", "classes are not split or merged where something is impossible; leave it out"
            )
        _require_possible(data, (*targets, *spec.predictors), spec, place)


def _categories_by_name(data: Microdata, names: tuple[str, ...], spec: DpmpmSpec) -> dict[str, VariableCategories]:
    return {name: categories_of_variable(data, name, spec.bins.get(name)) for name in names}


def _count_mixture_levels(categories: VariableCategories, spec: DpmpmSpec) -> int:
    """Return the number of levels of a variable in the mixture; the next code is a value that is integrated over."""
    return categories.value_count if spec.missing == "filled" else categories.size


def _mixture_support(data: Microdata, names: tuple[str, ...], spec: DpmpmSpec, place: str) -> MixtureSupport:
    """Return the possible combinations of these variables. Raises BadInput if there are none."""
    sizes = {name: _count_mixture_levels(one, spec) for name, one in _categories_by_name(data, names, spec).items()}
    conditions = _condition_levels(data, names, spec, place)
    try:
        support = MixtureSupport.from_conditions(conditions, list(sizes.values()))
    except TooManySlices:
        raise BadInput(f"{place}.impossible", "the conditions overlap in too many ways; write fewer") from None
    if not len(support.possible):
        raise BadInput(f"{place}.impossible", "the conditions leave no combination at all")
    return support


def _condition_levels(data: Microdata, names: tuple[str, ...], spec: DpmpmSpec, place: str) -> NDArray[np.bool_]:
    """Return, for each condition, the levels of all variables that may occur in a record which fulfils it: (conditions,
    D).
    """
    categories = _categories_by_name(data, names, spec)
    sizes = {name: _count_mixture_levels(one, spec) for name, one in categories.items()}
    return np.array(
        [
            one.possible_levels(categories, sizes, data, f"{place}.impossible[{i}]")
            for i, one in enumerate(spec.impossible)
        ]
    )


def _require_possible(data: Microdata, names: tuple[str, ...], spec: DpmpmSpec, place: str) -> None:
    """Raise BadInput if records of the data fulfil a condition, or one is invalid."""
    support, conditions = _mixture_support(data, names, spec, place), _condition_levels(data, names, spec, place)
    categories = _categories_by_name(data, names, spec)
    found = fulfilled_conditions(conditions, support.starts, [one.category_codes(data) for one in categories.values()])
    for i, fulfilled in enumerate(np.any(found, axis=1).tolist()):
        if fulfilled:
            raise BadInput(
                f"{place}.impossible[{i}]",
                f"records of the data are like that ({spec.impossible[i].written}); correct them, or leave the condition out",
            )


def _distinct_rows(
    categories: Mapping[str, VariableCategories], data: Microdata, spec: DpmpmSpec, records: int
) -> DistinctRows:
    codes = [one.category_codes(data) for one in categories.values()]
    return DistinctRows.from_codes(codes, [_count_mixture_levels(one, spec) for one in categories.values()], records)


def _rows_and_truncation(
    categories: Mapping[str, VariableCategories], data: Microdata, spec: DpmpmSpec, support: MixtureSupport
) -> tuple[DistinctRows, SupportTruncation]:
    """Return the distinct rows of the records whose conditions can be decided, and the treatment of the others.

    The others lack a value that a condition is about, which each sweep draws.
    """
    codes, sizes = (
        [one.category_codes(data) for one in categories.values()],
        [_count_mixture_levels(one, spec) for one in categories.values()],
    )
    lacks = (
        np.any([codes[j] >= sizes[j] for j in support.condition_variables], axis=0)
        if support.condition_variables
        else np.zeros(len(data), bool)
    )
    whole, lacking = [own[~lacks] for own in codes], tuple(own[lacks] for own in codes)
    rows = DistinctRows.from_codes(whole, sizes, len(data) - int(lacks.sum()))
    return rows, SupportTruncation(
        support, len(data), DistinctRows.from_codes(lacking, sizes, int(lacks.sum())), lacking
    )


def joint_draw(
    fit: Fit,
    spec: DpmpmSpec,
    targets: tuple[str, ...],
    confidential: Microdata,
    released: Microdata,
    index: int,
    records: int,
    rng: np.random.Generator,
) -> Mapping[str, NDArray[np.generic]]:
    """Draw a class for each record given its predictors, and a level of every target given the class.

    The parameters are those of posterior draw ``index``.
    """
    own, given = (
        _categories_by_name(confidential, targets, spec),
        _categories_by_name(confidential, spec.predictors, spec),
    )
    log_weights, log_levels = np.asarray(fit.arrays["log_weights"][index]), np.asarray(fit.arrays["log_levels"][index])
    if spec.impossible:
        support = _mixture_support(confidential, (*targets, *spec.predictors), spec, targets[0])
        known = [np.full(records, _count_mixture_levels(one, spec)) for one in own.values()]
        known += [one.category_codes(released) for one in given.values()]
        lacking = DistinctRows.from_codes(
            known, [_count_mixture_levels(one, spec) for one in (*own.values(), *given.values())], records
        )
        try:
            _, drawn = support.complete_records(lacking, known, log_weights, log_levels, rng)
        except NotComputable as error:
            raise BadInput(f"{targets[0]}.impossible", error.reason) from None
        return {
            name: categories.draw_values(values, confidential, spec.inside, rng)
            for (name, categories), values in zip(own.items(), drawn, strict=False)
        }
    starts = np.concatenate([[0], np.cumsum([_count_mixture_levels(one, spec) for one in own.values()])])
    rows = _distinct_rows(given, released, spec, records)
    # Of the confidential record nothing else enters: its values of the targets do not choose the class.
    classes = rows.draw_classes(log_weights, log_levels[:, starts[-1] :], rng)
    found: dict[str, NDArray[np.generic]] = {}
    for (name, categories), first, last in zip(own.items(), starts[:-1], starts[1:], strict=True):
        codes: Integers = draw_levels_given_classes(classes, log_levels[:, first:last], rng)
        found[name] = categories.draw_values(codes, confidential, spec.inside, rng)
    return found


OFFERED_SWEEPS, OFFERED_LIMIT = 1000, 8000
"""Of an offered mixture: sweeps of a chain, and up to how many it continues. A search tries many plans."""


def _worst_failure(said: Iterable[Diagnostic]) -> Diagnostic | None:
    """Return the failed diagnostic that speaks most against the chains, R-hats first; None if they may be used."""
    held = sorted((one for one in said if one.name in REQUIRED_STATISTICS), key=lambda one: one.name != "r_hat")
    return next((one for one in held if one.passed is False), None)


def _convergence_diagnostics(sampled: ChainDraws, spec: DpmpmSpec, draws: int) -> Iterator[Diagnostic]:
    """Yield R-hats and effective sample sizes of quantities without labels of classes, and the occupied classes."""
    from ..posterior.ensemble import bulk_effective_sample_size, rank_normalised_split_r_hat

    settled = np.concatenate([sampled.quantities, sampled.log_likelihood[..., None]], axis=2)[sampled.burn_in :]
    smallest = np.inf
    for i, name in enumerate((OCCUPIED, ALPHA, LOG_LIKELIHOOD)):
        chains = np.ascontiguousarray(settled[:, :, i].T)
        if np.ptp(chains) == 0:  # one number in every sweep of every chain
            continue
        r_hat, size = rank_normalised_split_r_hat(chains), bulk_effective_sample_size(chains)
        smallest = min(smallest, size)
        yield Diagnostic("r_hat", name, r_hat, f"at most {LARGEST_R_HAT}", r_hat <= LARGEST_R_HAT)
        yield Diagnostic("effective_sample_size", name, size, f"at least {SMALLEST_SIZE:.0f}", size >= SMALLEST_SIZE)
    occupied = settled[:, :, 0]
    for number, chain in enumerate(occupied.T, start=1):
        yield Diagnostic("mean_of_chain", f"{OCCUPIED}, chain {number}", float(chain.mean()))
    most = float(occupied.max())
    # Where all classes are occupied, the truncation of the mixture may bind.
    yield Diagnostic("largest", OCCUPIED, most, f"fewer than {spec.classes}", most < spec.classes)
    yield Diagnostic("sweeps_used", "each chain", float(len(sampled.lost)))
    usable = settled.shape[1] * (settled.shape[0] // spec.thin)
    apart, needed = spec.thin * usable / draws, settled.shape[0] * settled.shape[1] / smallest
    yield Diagnostic("sweeps_between_datasets", "table", apart, f"at least {needed:.1f}", apart >= needed)


@dataclass(frozen=True, kw_only=True, slots=True)
class DpmpmSpec(Spec):
    """Settings of the mixture, its prior and sampler, and of how numbers and missing values become categories."""

    slow: ClassVar[bool] = True

    classes: Annotated[
        int,
        Param(
            "latent classes K, more than records ever occupy: where all are occupied a warning says so", ge=2, le=1000
        ),
    ] = 40
    sweeps: Annotated[int, Param("Gibbs sweeps of each chain, those of burn_in among them", ge=40, le=1_000_000)] = 2000
    burn_in: Annotated[int, Param("sweeps at the start of each chain that count for nothing", ge=1)] = 1000
    max_sweeps: Annotated[
        int, Param("limit of a chain that continues until it converges (sweeps)", ge=40, le=1_000_000)
    ] = 64_000
    thin: Annotated[int, Param("every which sweep after burn_in may make a dataset", ge=1)] = 1
    chains: Annotated[int, Param("chains from different starts, which have to agree", ge=1, le=16)] = 2
    starts: Annotated[
        int, Param("starts of each chain, of which the most probable continues after an eighth of burn_in", ge=1, le=16)
    ] = 1
    split_every: Annotated[
        int,
        Param(
            "every how many sweeps a class is proposed to be split or two to be merged, chains starting small; 0 never",
            ge=0,
        ),
    ] = 0
    alpha_shape: Annotated[float, Param("of the gamma prior of alpha, which says how many classes there are", gt=0)] = (
        0.25
    )
    alpha_rate: Annotated[float, Param("of the gamma prior of alpha; its mean is shape / rate", gt=0)] = 0.25
    concentration: Annotated[float, Param("virtual records of every level of a variable in each class", gt=0)] = 1.0
    predictors: Annotated[
        tuple[str, ...],
        Param(
            "variables that are kept: they enter the mixture, and a record is drawn given its own values",
            names="variables",
        ),
    ] = ()
    missing: Annotated[
        Literal["level", "filled"],
        Param(
            "a missing value is a level of its own, or is integrated over, and released records have values throughout"
        ),
    ] = "level"
    impossible: Annotated[
        tuple[StructuralZero, ...],
        # any order: a condition says which combinations can be, of no record which it has
        Param(
            'combinations that cannot be, such as "age < 15 & marital_status != Never-married": no record is drawn with one',
            any_order=True,
        ),
    ] = ()
    bins: BinsByVariable = field(default_factory=dict)
    inside: InsideBin = "uniform"
    accept_unconverged: Annotated[
        bool, Param("release although the chains do not agree; they do not continue then")
    ] = False
    keep_chains: Annotated[bool, Param(KEEP_CHAINS, changes_no_data=True)] = False

    def chain_bytes(self, data: Microdata) -> int:
        """Return the bytes that the kept quantities of every sweep take; 0 if chains are not kept."""
        return chain_storage_bytes(self.chains, self.most_sweeps, 2) if self.keep_chains else 0

    @property
    def most_sweeps(self) -> int:
        """Return the largest number of sweeps of each chain."""
        # Chains that are accepted in any case do not continue.
        return self.sweeps if self.accept_unconverged else max(doubling_lengths(self.sweeps, self.max_sweeps))

    @property
    def usable_sweeps(self) -> int:
        """Return the number of sweeps, of all chains, from which a dataset may be drawn."""
        return self.chains * ((self.sweeps - self.burn_in) // self.thin)


def _draft_offer(case: Case) -> Offer | None:
    """Offer all released variables together, given those that are kept; numbers in bins."""
    if case.want != "synthesis" or case.target is not None or not case.released:
        return None
    bins = suggest_bins(case, case.compared_variables)
    settings = {"predictors": list(case.kept_variables), "sweeps": OFFERED_SWEEPS, "burn_in": OFFERED_SWEEPS // 2}
    settings |= {"max_sweeps": OFFERED_LIMIT, **({"bins": bins} if bins else {})}
    why = "latent classes say how all variables go together, and no leaf holds few people; numbers lose what lies inside a bin"
    return Offer(why, settings, ALTERNATIVE)


def fit_uncertainty(spec: DpmpmSpec, targets: tuple[str, ...], schema: Schema) -> FitUncertainty:
    """Return that each dataset has the parameters of a sweep of its own."""
    return FitUncertainty("drawn")


@synthesis_method(
    "Dirichlet process mixture of products of multinomials",
    spec=DpmpmSpec,
    source="Hu, Reiter & Wang (2014); Manrique-Vallier & Reiter (2014); Si & Reiter (2013); Dunson & Xing (2009); Ishwaran & James (2001) §5.2; Jain & Neal (2004)",
    joint_draw=joint_draw,
    targets=tuple(Kind),
    check=check_data,
    fit_uncertainty=fit_uncertainty,
)
@drafts(_draft_offer)
def dpmpm(data: Microdata, targets: tuple[str, ...], spec: DpmpmSpec, run: Run, draws: int) -> Fit:
    """Draw the parameters, from a sweep for each dataset.

    Arrays: ``log_weights`` (draws, K), ``log_levels`` (draws, K, D) of the levels of the targets and then the
    predictors side by side, and the ``sweep`` and ``chain`` (draws,) of each.

    Raises:
        BadInput: what ``check_data`` refuses, and fewer sweeps than datasets.
        NotConverged: the chains do not agree, unless ``accept_unconverged``.
    """
    check_data(data, targets, spec, targets[0])
    if draws > spec.usable_sweeps:
        raise BadInput(
            f"{targets[0]}.sweeps",
            f"{spec.usable_sweeps:,} sweeps are left for {count_noun(draws, 'dataset')}; ask for more sweeps or chains",
        )
    categories = _categories_by_name(data, (*targets, *spec.predictors), spec)
    rows, truncation = _distinct_rows(categories, data, spec, len(data)), None
    distinct = len(rows.counts)
    if spec.impossible:
        support = _mixture_support(data, (*targets, *spec.predictors), spec, targets[0])
        rows, truncation = _rows_and_truncation(categories, data, spec, support)
    prior = MixturePrior(
        classes=spec.classes, concentration=spec.concentration, shape=spec.alpha_shape, rate=spec.alpha_rate
    )
    sampled = sample_mixture(
        rows,
        prior,
        draws,
        run.rng,
        run.report,
        sweeps=spec.sweeps,
        burn_in=spec.burn_in,
        thin=spec.thin,
        chains=spec.chains,
        split_every=spec.split_every,
        starts=spec.starts,
        truncation=truncation,
        max_sweeps=spec.most_sweeps,
        converged=lambda so_far: _worst_failure(_convergence_diagnostics(so_far, spec, draws)) is None,
    )
    said = (*_convergence_diagnostics(sampled, spec, draws), Diagnostic("distinct_rows", "table", float(distinct)))
    if truncation is not None:
        lost = sampled.lost[sampled.burn_in :]
        said += (Diagnostic("share_impossible", "mixture", float((lost / (lost + len(data))).mean())),)
    chains = sampled.quantity_chains if spec.keep_chains else None
    if not spec.accept_unconverged and (one := _worst_failure(said)) is not None and one.value is not None:
        left = Fit({}, said, sampled.quantity_trace, chains)
        rule = (
            f"must be {one.rule} after {len(sampled.lost):,} sweeps of each chain; raise max_sweeps "
            f"({spec.max_sweeps:,}), or use fewer variables"
        )
        raise NotConverged(one.parameter, one.name, one.value, rule, left)
    arrays = {
        "log_weights": np.stack([kept.log_weights for kept in sampled.kept]),
        "log_levels": np.stack([kept.log_levels for kept in sampled.kept]),
        "sweep": sampled.sweep,
        "chain": sampled.chain,
    }
    return Fit(arrays, said, sampled.quantity_trace, chains)
