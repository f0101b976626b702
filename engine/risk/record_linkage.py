"""Record linkage: which released record is most likely a person's, and how often this is right.

The intruder has a file with the confidential values of the ``keys`` of every person, knows that each was released, and
links each to the released record with the largest match weight (``sfumato.engine.matching.linkage``). Only pairs that
agree on ``blocks`` are compared, by default the keys that are released unchanged. Keys are compared exactly or, with a
``radius``, in levels of nearness.

    linked_share            mean over the records of [own record among the best links] / number of best links
    linked_share_informed   the same with weights learned from the true pairs
    largest_linked_share    the largest share over subsets of the compared keys and the informed intruder
    uniquely_linked         share of the records whose only best link is their own
    precision, recall       of links with a calibrated probability (``_link_calibration``) of ``probabilities`` or more

Judge a release by the larger of the first two: weights learned from pairs alone fail where a single variable is near
the truth, since nothing agrees with it. The baseline is a random released record of the block.

Released record i is assumed to be that of confidential record i. Above ``pairs`` pairs, only a sample of the records is
linked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from statistics import NormalDist
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import pdtrc

from ..data.intervals import SHARE
from ..data.microdata import Microdata
from ..data.schema import Role, Schema
from ..errors import BadInput
from ..matching.blocks import ComparisonBlocks, order_by_values, take_evenly
from ..matching.comparisons import VariableComparison, compare_variables
from ..matching.intruder import check_log_scale, check_radii, require_equal_values, require_own_records
from ..matching.linkage import RecordLinks, count_compared_pairs, find_best_links
from ..matching.match_weights import MAX_TRAINING_PAIRS, LevelWeights, PatternCounts, learn_weights, true_pair_weights
from ..matching.radius import Radii
from ..matching.strategies import Subset, make_strategy
from ..methods.intruder import Known
from ..methods.levers import IDENTITY
from ..methods.outputs import Label, Output, RecordArray, RiskOutput
from ..methods.registry import measure_method
from ..methods.results import Estimate, Measure
from ..methods.run import Run
from ..methods.spec import Param, Spec, Variant
from ._best_strategy import subsets_to_try
from ._link_calibration import calibrate_links

NORMAL_FROM_LINKS = 1e6
"""Number of chance links, in units of their dispersion, above which the normal interval is accurate."""
_BASELINE = "its baseline is a released record of the block picked at random"


def check_data(data: Microdata, target: str, spec: RecordLinkageSpec, place: str) -> None:
    """Raise BadInput if confidential values do not suit a radius on the log scale."""
    check_log_scale(data, spec.radius, place)


def _weights_by_keys(
    comparisons: Sequence[VariableComparison], blocks: ComparisonBlocks, counts: PatternCounts
) -> dict[Subset, LevelWeights]:
    """Return the learned weights for each subset of keys, the full set first; keys left out have weight 0."""
    found: dict[Subset, LevelWeights] = {}
    for used in subsets_to_try([[one.name for one in comparisons]]):
        at = [k for k, one in enumerate(comparisons) if one.name in used]
        learned = iter(learn_weights([comparisons[k] for k in at], blocks, counts.select_variables(at)) if at else ())
        found[used] = tuple(next(learned) if one.name in used else np.zeros(one.level_count) for one in comparisons)
    return found


def _largest_share_estimate(
    best: RecordLinks, informed: RecordLinks, remark: str, choices: int, sample: float, *, interval: bool
) -> Estimate:
    """Return the largest share linked, by the best of ``choices`` strategies or by the informed intruder."""
    share = _share_estimate(best, remark, sample=sample, interval=interval, choices=choices)
    value = max(share.value or 0.0, _mean_in_any_order(informed.link_chance))
    # The interval is that of the best strategy, simultaneous for all; the informed intruder may lie above it.
    upper = None if share.upper is None else max(share.upper, value)
    lower = (
        None
        if share.lower is None
        else min(share.lower, max((share.value or 0.0) - _chance_excess(best, choices), 0.0))
    )
    return replace(share, measure="largest_linked_share", value=value, lower=lower, upper=upper)


def _chance_excess(links: RecordLinks, choices: int) -> float:
    """Return the excess over the mean that shuffled records reach with probability .025 / ``choices``.

    Returns 0 if chance links are numerous enough for the normal interval.
    """
    mean, variance = float(links.random_link_chance.sum()), links.variance
    if mean <= 0 or mean**2 > NORMAL_FROM_LINKS * variance:
        return 0.0
    # Chance links are few and skewed: a multiple of a Poisson count has the same mean and variance.
    scale = variance / mean
    rare = mean / scale
    number = np.arange(int(rare + 10 * np.sqrt(rare)) + 50)
    most = int(number[pdtrc(number, rare) <= 0.025 / choices][0])  # more than so many are as improbable as that
    return (scale * most - mean) / len(links.link_chance)


def _mean_in_any_order(values: NDArray[Any]) -> float:
    """Return the mean of the values, independent of their order."""
    # Rounding of a sum depends on the order.
    return float(np.mean(np.sort(values)))


def _share_estimate(links: RecordLinks, remark: str, *, sample: float, interval: bool, choices: int = 1) -> Estimate:
    """Return the share linked with a 95 % interval, simultaneous for ``choices`` strategies.

    The interval is 1.96 exact standard deviations of shuffled records (Hoeffding 1951) about the value, cut to [0, 1].
    An interval that contains the baseline is compatible with a release that links records by chance only.
    """
    value, n = _mean_in_any_order(links.link_chance), len(links.link_chance)
    # The second term is the sampling error of the targets, 0 if all records are linked.
    spread = links.variance / n**2 + (1 - sample) * value * (1 - value) / n
    quantile = 1.96 if choices == 1 else NormalDist().inv_cdf(1 - 0.025 / choices)
    half = quantile * float(np.sqrt(max(spread, 0.0)))
    lower, upper = (max(value - half, 0.0), min(value + half, 1.0)) if interval else (None, None)
    return Estimate(
        "linked_share", value, "", lower, upper, _mean_in_any_order(links.random_link_chance), reason=remark
    )


def _precision_and_recall(links: RecordLinks, probabilities: tuple[float, ...], remark: str) -> Iterator[Estimate]:
    """Yield precision and recall of the links at each probability threshold."""
    probability = calibrate_links(links)
    for least in probabilities:
        # A probability that equals the threshold must not be lost by rounding.
        made = probability >= least - 1e-9
        told: dict[str, Any] = {"probability": least}
        if made.any():
            value = _mean_in_any_order(links.link_chance[made])
            yield Estimate(
                "precision",
                value,
                baseline=_mean_in_any_order(links.random_link_chance[made]),
                reason=remark,
                params=told,
            )
        else:
            yield Estimate.not_computed("precision", f"no link has a probability of {least:g} or more", **told)
        yield Estimate("recall", _mean_in_any_order(np.where(made, links.link_chance, 0.0)), reason=remark, params=told)


def _linkage_remarks(confidential: Microdata, released: Microdata, targets: int) -> Iterator[str]:
    """Yield remarks on sampled targets and on releases without unchanged variables."""
    if targets < len(confidential):
        yield f"{targets:,} of {len(confidential):,} records are targets"
    if not any(released.frame[name].equals(confidential.frame[name]) for name in confidential.schema.names):
        yield "no variable is kept, so that no released record is a person's: the one in the same place is taken for it"


@dataclass(frozen=True, kw_only=True, slots=True)
class RecordLinkageSpec(Spec):
    """Settings: keys of the intruder's file, blocks, and how keys are compared."""

    keys: Annotated[
        Known, Variant("variables of the intruder's file; default: the quasi-identifiers and the synthesised variables")
    ] = ()
    blocks: Annotated[
        tuple[str, ...],
        Param(
            "keys that a pair has to agree on to be compared; left out, those released unchanged that have no radius",
            names="variables",
            reported=True,
        ),
    ] = ()
    radius: Radii = field(default_factory=dict)
    near: Annotated[float, Param("how many radii away a value is near still", gt=1, le=100)] = 3.0
    probabilities: Annotated[
        tuple[float, ...],
        Param(
            "least probability of a link that counts, for precision and recall",
            gt=0,
            le=1,
            filters_rows=True,
            unique=True,
        ),
    ] = (0.5, 0.9)
    pairs: Annotated[
        int, Param("pairs that are compared at most; with more, fewer records are targets", ge=1_000, le=1_000_000_000)
    ] = 25_000_000

    def for_release(self, schema: Schema, released: tuple[str, ...]) -> Self:
        """Return these settings with default keys and blocks filled in."""
        keys = self.keys or tuple(
            name for name in schema.names if schema[name].role is Role.QUASI_IDENTIFIER or name in released
        )
        kept = tuple(name for name in keys if name not in released and name not in self.radius)
        return replace(self, keys=keys, blocks=self.blocks or kept)

    def check_release(self, schema: Schema, released: tuple[str, ...], place: str) -> None:
        """Raise BadInput if there is no key, a block is not a key, or a radius is missing or unused."""
        full = self.for_release(schema, released)
        if not full.keys:
            raise BadInput(
                f"{place}.keys",
                'the intruder\'s file has no variable; name some, or give them the role "quasi_identifier"',
            )
        for name in full.blocks:
            if name not in full.keys:
                raise BadInput(f"{place}.blocks", f'"{name}" is not among the keys')
            if name in full.radius:
                raise BadInput(
                    f"{place}.blocks",
                    f'"{name}" has a radius: pairs agree on a block exactly, so leave one of them out',
                )
        check_radii(schema, released, full.keys, self.radius, place)


@measure_method(
    "Record linkage",
    spec=RecordLinkageSpec,
    source="Fellegi & Sunter (1969); Winkler (1988); Domingo-Ferrer & Torra (2001); Belin & Rubin (1995)",
    outputs=(
        Output(
            "linked_share",
            f"share of the records whose most likely released record, one of several at random, is their own; {_BASELINE}",
            "low",
            "share",
            range=SHARE,
            short="linked",
            estimated=True,
            risk=RiskOutput(questions=("linkability",), gate_reference="chance"),
            label=Label(
                "Linked to their own record",
                "A linkage by all known values links {value} to their own released record.",
                "Good is no more than picking a record at random.",
                "Linkage finds the own record of too many people.",
                IDENTITY,
                baseline="picking a record of the block at random",
            ),
        ),
        Output(
            "linked_share_informed",
            f"the same for an intruder who knows how often true pairs agree, a little high where nothing leaks; {_BASELINE}",
            "low",
            "share",
            range=SHARE,
            estimated=True,
            risk=RiskOutput(questions=("linkability",), gate_reference="chance"),
            label=Label(
                "Linked to their own record, informed intruder",
                "An intruder who knows how often true pairs agree links {value} to their own released record.",
                "Good is no more than picking a record at random.",
                "Informed linkage finds the own record of too many people.",
                IDENTITY,
                baseline="picking a record of the block at random",
            ),
        ),
        Output(
            "largest_linked_share",
            f"largest share of the records linked to their own, over the keys that the intruder may compare; {_BASELINE}",
            "low",
            "share",
            range=SHARE,
            short="largest linked",
            estimated=True,
            risk=RiskOutput(questions=("linkability",), gate_reference="chance", never_falls_with_knowledge=True),
            label=Label(
                "Linked to their own record, best variables",
                "An intruder who compares what tells most links {value} to their own released record.",
                "Good is no more than picking a record at random.",
                "The best choice of keys finds the own record of too many people.",
                IDENTITY,
                baseline="picking a record of the block at random",
            ),
        ),
        Output(
            "uniquely_linked",
            "share of the records whose single most likely released record is their own",
            "low",
            "share",
            range=SHARE,
            estimated=True,
            risk=RiskOutput(questions=("singling out", "linkability")),
            label=Label(
                "Linked to their own record alone",
                "For {value}, the one most likely released record is their own.",
                "Lower is better; at 0 no link is unique and right.",
                "Linkage points at the right record, and no other, for too many people.",
                IDENTITY,
            ),
        ),
        Output(
            "precision",
            "share of the links with at least this calibrated probability that are right",
            "low",
            "share",
            range=SHARE,
            estimated=True,
            risk=RiskOutput(questions=("linkability",)),
            label=Label(
                "Right among probable links",
                "Of the links with at least this probability, {value} are right.",
                "Lower is better: an intruder cannot trust probable links.",
                "An intruder can trust probable links too much.",
                IDENTITY,
            ),
        ),
        Output(
            "recall",
            "share of the records that are linked rightly with at least this calibrated probability",
            "low",
            "share",
            range=SHARE,
            estimated=True,
            risk=RiskOutput(questions=("linkability",)),
            label=Label(
                "Linked rightly with a probable link",
                "For {value}, a link with at least this probability is right.",
                "Lower is better; at 0 no probable link is right.",
                "Too many people are linked rightly by a probable link.",
                IDENTITY,
            ),
        ),
        Output(
            "blocked_away",
            "share of the records whose own released record is not in their block, so that it is never compared",
            "none",
            "share",
            range=SHARE,
            label=Label(
                "Own record never compared",
                "For {value}, the own released record is in another block and never compared.",
            ),
        ),
    ),
    confidential=True,
    check=check_data,
    per_record=(
        RecordArray(
            "best_links",
            "released records that are most likely the record's, for an intruder who knows how often true pairs agree",
            "records",
            "low",
            "candidates",
        ),
        RecordArray("linked", "that one of these, picked at random, is the record's own", "", "high", "probability"),
    ),
)
def record_linkage(confidential: Microdata, released: Microdata, spec: RecordLinkageSpec, run: Run) -> Measure:
    """Link every confidential record to its most likely released record.

    ``per_record``: ``best_links`` and ``linked``, (n,) each, NaN for records that are not linked. Raises NotComputable
    if the release is not linked to the data, or a key has no equal values.
    """
    require_own_records(released)
    for name in spec.keys:
        released.column(name)
        if name not in spec.radius:
            require_equal_values(confidential, released, name)
    both = (len(confidential), len(released))
    blocks = ComparisonBlocks.from_keys(compare_variables(confidential, released, spec.blocks, {}, spec.near), both)
    # In the order of their names: the records that are tried and the rounding of sums follow the order of the keys.
    names = sorted(name for name in spec.keys if name not in spec.blocks)
    comparisons = compare_variables(confidential, released, names, spec.radius, spec.near)
    ordered = order_by_values(blocks, comparisons)
    n = len(ordered)
    targets = take_evenly(ordered, max(n * spec.pairs // max(count_compared_pairs(comparisons, blocks), 1), 1))
    among = take_evenly(
        ordered, max(n * MAX_TRAINING_PAIRS // max(int(blocks.released_counts[blocks.confidential_blocks].sum()), 1), 1)
    )
    counts = PatternCounts.from_records(comparisons, blocks, among)
    # Learned from the pairs they are tried on, so slightly above the baseline where nothing leaks.
    informed_weights = true_pair_weights(comparisons, blocks, ordered, counts)
    choices = _weights_by_keys(comparisons, blocks, counts)
    tried = find_best_links(comparisons, blocks, take_evenly(targets, len(among)), list(choices.values()))
    best = max(
        choices, key=dict(zip(choices, (_mean_in_any_order(one.link_chance) for one in tried), strict=True)).__getitem__
    )
    weights = choices[frozenset(names)], informed_weights, choices[best]
    learned, informed, chosen = find_best_links(comparisons, blocks, targets, weights)
    away = float(np.mean(blocks.confidential_blocks != blocks.released_blocks))
    remark = "; ".join(_linkage_remarks(confidential, released, len(targets)))
    itself = released.origin == "confidential"
    words = make_strategy(spec.keys, {*spec.blocks, *best}).description
    estimates = [
        _share_estimate(learned, remark, sample=len(targets) / n, interval=not itself),
        Estimate(
            "linked_share_informed",
            _mean_in_any_order(informed.link_chance),
            baseline=_mean_in_any_order(informed.random_link_chance),
            reason=remark,
        ),
        _largest_share_estimate(
            chosen,
            informed,
            "; ".join(filter(None, (words, remark))),
            len(choices),
            len(targets) / n,
            interval=not itself,
        ),
        Estimate("uniquely_linked", _mean_in_any_order(learned.hit & (learned.ties == 1)), reason=remark),
        *_precision_and_recall(learned, spec.probabilities, remark),
        Estimate("blocked_away", away, reason=remark),
    ]
    ties, linked = np.full(n, np.nan), np.full(n, np.nan)
    # Single records are judged by the informed weights, the most that weights of this form find.
    ties[targets], linked[targets] = informed.ties, informed.link_chance
    return Measure(tuple(estimates), {"best_links": ties, "linked": linked})
