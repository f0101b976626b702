"""Audit of single records by shadow releases of the run's own recipe: what a release reveals about a person.

Shadow releases are made with and without the records of the most vulnerable people and of random people
(``adversary.shadows``). Each is reduced to the features an intruder sees of the person (``adversary.shadow_features``),
and a cross-fitted classifier separates the two kinds (``adversary.cross_fitted``).

    auc, largest_auc   mean over the targets, and the largest, with a simultaneous interval for all targets
    given_away         number of targets whose simultaneous interval lies above 1/2
    tpr, advantage     true positive rate at ``false_positives``; true less false positive rate at the classifier's own
                       threshold
    reconstruction     share of sensitive values guessed right with the target's record in the data; the baseline is
                       without it
    memorisation       the difference between these two
    epsilon_lower      largest privacy loss that the attack proves (``adversary.audit_bounds``); mu_lower for Gaussian
                       privacy
    epsilon_guesses    privacy loss proved by all guesses at canaries together (Steinke, Nasr & Jagielski 2023)

Where units have several records the targets are units: each shadow has all records of a household or none, and the
features are of the whole household. Whoever leaves out one record of a household leaves the others in, and takes a leak
for none.

A low result is only a lower bound of the risk: other features may attack better, and few shadows or targets can miss a
leak (``detectable_auc``). The result contains record numbers and is as confidential as the data.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from ..adversary import audit_bounds
from ..adversary.cells import cell_keys, row_keys, unit_keys
from ..adversary.cross_fitted import (
    FEWEST_RELEASES,
    PERMUTATIONS,
    TargetEvaluations,
    cross_fitted_smoother,
    draw_folds,
    evaluate_targets,
    ridge_coefficients,
    ridge_score_matrix,
)
from ..adversary.shadow_features import TargetFeatures
from ..adversary.shadows import Background, Question, ShadowDesign, ShadowSample, draw_replacement_pools
from ..adversary.targets import BOTH_TARGET_KINDS, TargetKinds, VulnerabilityScores, draw_rows, score_vulnerability
from ..data.arrays import Booleans, Floats, Integers
from ..data.intervals import NON_NEGATIVE, SHARE
from ..data.microdata import Microdata
from ..data.schema import Role, Schema
from ..data.units import Units
from ..errors import BadInput, NotComputable
from ..methods.drafting import Case, DeclinedOffer, Offer, drafts
from ..methods.intruder import Known
from ..methods.levers import MEMBERSHIP
from ..methods.outputs import Label, Output, RecordArray, RiskOutput
from ..methods.privacy import NoiseGuarantee
from ..methods.refits import ShadowRelease, ShadowReleases
from ..methods.registry import measure_method
from ..methods.release_models import IntruderGuesses, total_plausibility
from ..methods.results import Estimate, Measure, WholeReleaseMeasure
from ..methods.run import Progress, Run
from ..methods.spec import Param, Spec, Variant
from ..statistics.score_interval import Z_95, score_interval
from ..wording import count_noun, count_of_noun
from ._by_unit import BY_RECORD, BY_UNIT

_DEFAULT_TARGETS = 20
SHADOWS_TOGETHER, AT_ONCE = 50, 100_000
"""Largest number of shadows, and of their records in all, that are made together."""
NO_LEAK = 0.5
COUNTS_FEATURE = "counts of the published tables"
AUDIT_LEVERS = (
    *MEMBERSHIP[:2],
    "group rare values of the variables that give the person away",
    "give the person's record less weight ([weights])",
    MEMBERSHIP[2],
)
ROW_DEFAULTS = (("people", "random"), *BY_RECORD)


@dataclass(frozen=True, eq=False)
class _AuditSetup:
    """Targets of the audit and the design of the shadows.

    data: records sorted by their values, or units by those of their records
    order: row of each in the file, (n,)
    targets: rows of the T targets in ``data``, or numbers of their units
    kinds: mask of the targets of each kind, (T,) each
    design: design of the shadows
    features: computes the features of a target that the intruder sees in a shadow
    is_exact: whether exact likelihood ratios replace the classifier
    publishes_tables: whether the release publishes tables of counts
    n_datasets: number of datasets of a shadow
    """

    data: Microdata
    order: Integers
    targets: Integers
    kinds: Mapping[str, Booleans]
    design: ShadowDesign
    features: TargetFeatures
    is_exact: bool
    publishes_tables: bool
    n_datasets: int

    @classmethod
    def from_data(
        cls,
        confidential: Microdata,
        datasets: int,
        refits: ShadowReleases,
        spec: RecordAuditSpec,
        rng: np.random.Generator,
    ) -> _AuditSetup:
        """Draw the targets and design the shadows. Raises NotComputable if there are too few records."""
        # Draws then depend on the values alone and not on the order of the file.
        order = _order_by_values(confidential)
        data = replace(
            confidential,
            frame=confidential.frame.iloc[order].reset_index(drop=True),
            weights=None if confidential.weights is None else confidential.weights[order],
            kinds=None,
        )
        units, n = data.units, data.n_units
        noun = _unit_noun(data)
        if n < 4:
            raise NotComputable(
                f"{count_of_noun(n, noun)} cannot be divided into shadows with and without {'a person' if units is None else 'one of them'}"
            )
        groups: dict[str, Integers] = {
            kind: _draw_targets(data, kind, min(spec.targets, n // 4), rng) for kind in spec.people
        }
        targets = np.unique(np.concatenate([*groups.values()]))
        # Values that are kept unchanged show who is in the data, so such a release is asked about values only.
        question = spec.question or ("values" if refits.kept_variables else "record")
        # By Neyman & Pearson (1933) no test is more powerful than the likelihood ratio.
        exact = (
            spec.exact
            and units is None
            and spec.background == "all"
            and refits.has_models
            and (question == "values" or not refits.kept_variables)
        )
        sizes = None if units is None else units.sizes
        pools = draw_replacement_pools(n, targets, rng, sizes) if spec.background != "half" else ()
        removable = refits.removable and not exact
        design = ShadowDesign(
            n, tuple(targets.tolist()), spec.shadows, spec.background, question, removable, pools, units
        )
        if not design.has_enough_records():
            raise NotComputable(
                f"{count_of_noun(n, noun)} are too few for shadows of {design.shadow_size:,} with {count_noun(len(targets), 'target')}; ask about fewer targets"
            )
        names = [name for name in sorted(spec.known) if name in data.schema]
        sensitive = [name for name in names if data.schema[name].role is Role.SENSITIVE]
        known = [name for name in names if data.schema[name].role is Role.QUASI_IDENTIFIER]
        rows, members = targets, None
        if units is not None:
            rows = units.records_of(targets)
            members = Units.from_codes(np.repeat(np.arange(len(targets)), units.sizes[targets]))
        looked = TargetFeatures.from_targets(
            data, rows, names, known, sensitive if known else [], refits.hierarchies, rng, members
        )
        kinds: dict[str, Booleans] = {kind: np.isin(targets, drawn) for kind, drawn in groups.items()}
        return cls(
            data, order, targets, kinds, design, looked, exact, refits.publishes_tables, spec.datasets or datasets
        )

    def shadow_rows(
        self, shadow: ShadowSample, shown: ShadowRelease, refits: ShadowReleases
    ) -> Iterator[tuple[int, int, Floats, float]]:
        """Yield the number, presence, features (F,) and log likelihood ratio (NaN if none) of each target."""
        asked = np.flatnonzero(shadow.target_present >= 0)
        looked = self.features if len(asked) > 1 else self.features.select_target(int(asked[0]))
        features = looked.extract_features(shown.datasets)
        counts = shown.summed_counts(len(self.target_rows))
        counts = (counts if self.features.members is None else self.features.members.sum_by_unit(counts))[asked]
        if self.publishes_tables:
            features = np.column_stack([features, counts])
        known = shown.has_only_noisy_tables and self.design.background != "half"
        for place, target in enumerate(asked):
            odds = (
                self.log_likelihood_ratio(int(target), shown.datasets, refits)
                if self.is_exact
                else counts[place]
                if known
                else np.nan
            )
            yield int(target), int(shadow.target_present[target]), features[place], odds

    @property
    def target_rows(self) -> Integers:
        """Return the rows of all records of the targets, unit by unit, (R,)."""
        return self.targets if self.design.units is None else self.design.units.records_of(self.targets)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Return the names of the features."""
        return (*self.features.feature_names, *((COUNTS_FEATURE,) if self.publishes_tables else ()))

    def log_likelihood_ratio(self, target: int, releases: Sequence[Microdata], refits: ShadowReleases) -> float:
        """Return log p(Z | target's record) - log p(Z | a record of its replacement pool), averaged over the pool."""
        models = refits.fit_models(self.data, releases)
        row, pool = int(self.targets[target]), list(self.design.pools[target])
        names = [name for model in models for name in model.targets]
        values = {name: self.data.numbers(name)[[row, *pool]][None] for name in names}
        found = total_plausibility(models, IntruderGuesses(np.array([row]), values)).likelihood[0].sum(axis=1)
        return float(found[0] - logsumexp(found[1:]) + np.log(len(pool)))


def _draw_targets(data: Microdata, kind: str, number: int, rng: np.random.Generator) -> Integers:
    """Draw the rows of the targets of one kind, or their units; a unit is as vulnerable as its most vulnerable record."""
    if kind != "vulnerable":
        return np.sort(rng.choice(data.n_units, number, replace=False))
    scores = score_vulnerability(data, data.select_rows([]))
    if data.units is None:
        return draw_rows(scores.select_most_vulnerable(number)[0], data, number, rng)
    # a record that was not scored is no reason to look at its unit
    people = data.units.largest_by_unit(np.nan_to_num(scores.people, nan=-1.0))
    some = VulnerabilityScores(people, scores.controls).select_most_vulnerable(number)[0]
    return np.sort(some if len(some) <= number else rng.choice(some, number, replace=False))


def _order_by_values(data: Microdata) -> Integers:
    """Return the records in an order that depends on values, or on the compositions of units, and not on the file."""
    names = sorted(name for name in data.schema.names if name != data.schema.unit)
    if data.units is None:
        return np.lexsort([data.numbers(name) for name in names])
    # Within a unit the order stays: a synthesis of units may use it.
    keys = unit_keys(row_keys(cell_keys(data, names), names, len(data)), data.units)
    return data.units.records_of(np.argsort(keys, kind="stable"))


def _unit_noun(data: Microdata) -> str:
    """Return the noun of those whom the audit leaves out."""
    return "records" if data.units is None else data.schema.unit_noun


@dataclass(frozen=True, eq=False)
class AuditBlock:
    """Results of one block of shadows: r pairs of a shadow and one of the T targets, with F features each.

    shadow: number of the shadow, (r,)
    target: number of the target, (r,)
    is_present: whether the target's record is in the shadow, (r,)
    features: features of the target that the intruder sees in the shadow, (r, F)
    log_likelihood_ratios: log likelihood ratio of the target's record against a replacement, NaN if none, (r,)
    records: record numbers of the targets, (T,)
    kinds: mask of the targets of each kind, (T,) each
    feature_names: names of the features, (F,)
    guess_features: columns of the features that tell whether sensitive values are guessed right
    is_exact: whether likelihood ratios are available
    claim: privacy loss claimed by the synthesis steps; None without a claim
    seed: seed of the random numbers of the joint evaluation of all blocks
    remark: description of the shadows in words
    output_prefix: prefix of the names of the AUC outputs
    members: record numbers of the records of the targets, unit by unit, (R,); None where a target is a record
    sizes: numbers of records of the targets, (T,); None where a target is a record
    """

    shadow: Integers
    target: Integers
    is_present: Booleans
    features: NDArray[np.float32]
    log_likelihood_ratios: Floats
    records: Integers
    kinds: Mapping[str, Booleans]
    feature_names: tuple[str, ...]
    guess_features: slice
    is_exact: bool
    claim: NoiseGuarantee | None
    seed: int
    remark: str
    output_prefix: str
    members: Integers | None = None
    sizes: Integers | None = None

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return all fields as arrays by the keys under which they are stored."""
        of_units = {} if self.members is None or self.sizes is None else {"members": self.members, "sizes": self.sizes}
        return {
            **of_units,
            "shadow": self.shadow,
            "target": self.target,
            "present": self.is_present.astype(np.int64),
            "features": self.features,
            "odds": self.log_likelihood_ratios,
            "records": self.records,
            **{f"is {kind}": is_of_kind for kind, is_of_kind in self.kinds.items()},
            "names": np.asarray(self.feature_names),
            "guessed": np.array([self.guess_features.start, self.guess_features.stop]),
            "exact": np.asarray(self.is_exact),
            "claimed": np.array(self.claim or NoiseGuarantee(np.nan)),
            "seed": np.asarray(self.seed),
            "words": np.asarray(self.remark),
            "prefix": np.asarray(self.output_prefix),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Create the block from stored arrays."""
        claim = NoiseGuarantee(*map(float, arrays["claimed"]))
        return cls(
            shadow=arrays["shadow"],
            target=arrays["target"],
            is_present=arrays["present"] == 1,
            features=arrays["features"],
            log_likelihood_ratios=arrays["odds"],
            records=arrays["records"],
            kinds={key[3:]: array.astype(np.bool_) for key, array in arrays.items() if key.startswith("is ")},
            feature_names=tuple(map(str, arrays["names"])),
            guess_features=slice(*map(int, arrays["guessed"])),
            is_exact=bool(arrays["exact"]),
            claim=None if np.isnan(claim.epsilon) else claim,
            seed=int(arrays["seed"]),
            remark=str(arrays["words"]),
            output_prefix=str(arrays["prefix"]),
            members=arrays.get("members"),
            sizes=arrays.get("sizes"),
        )


def gather_blocks(
    confidential: Microdata,
    releases: Sequence[Microdata],
    spec: RecordAuditSpec,
    blocks: Sequence[AuditBlock],
) -> WholeReleaseMeasure:
    """Evaluate the attack on the shadows of all blocks together.

    ``per_record`` of the whole holds the risk, AUC and simultaneous limits of each target, (n,), NaN for other records.
    ``guesses`` holds the ``record`` number of each target, (T,), the classifier's ``weight`` of each feature, (T, F),
    and the ``feature`` names, (F,). Where targets are units ``record`` is that of their first records, all records of a
    unit have its numbers, ``members`` (R,) and ``sizes`` (T,) say which these are, and ``noun`` what units are.
    """
    found = _ScoredShadows.from_blocks(blocks, spec)
    first = blocks[0]
    estimates: list[Estimate] = []
    for kind in spec.people:
        estimates.extend(found.estimates(kind, spec))
    arrays = {}
    low, high = found.evaluation.area_limits(simultaneous=True)
    named = {
        # The lower limit, since the largest of many estimated AUCs is large by chance.
        "audited_risk": np.maximum(2 * low - 1, 0.0), "audited_auc": found.evaluation.areas[0], "audited_lower": low, "audited_upper": high,
    }  # fmt: skip
    for name, values in named.items():
        array = np.full(len(confidential), np.nan)
        if first.members is None or first.sizes is None:
            array[found.records] = values
        else:
            array[first.members] = np.repeat(values, first.sizes)
        arrays[name] = array
    guesses = {"record": found.records, "weight": found.feature_weights, "feature": np.asarray(found.feature_names)}
    if first.members is not None and first.sizes is not None:
        noun = np.asarray([confidential.schema.unit_noun])
        guesses |= {"members": first.members, "sizes": first.sizes, "noun": noun}
    return WholeReleaseMeasure(Measure(tuple(estimates), arrays), (), guesses)


@dataclass(frozen=True, eq=False)
class _ScoredShadows:
    """Attack on all shadows of T targets, K_t of each.

    features: features of each shadow, (K_t, F) for each target
    present: whether the target is in it, (K_t,) for each target
    log_likelihood_ratios: log likelihood ratios, (K_t,) for each target
    evaluation: evaluation of the attack on all targets
    records: record numbers of the targets, (T,)
    kinds: mask of the targets of each kind, (T,) each
    feature_names: names of the features, (F,)
    guess_features: columns of the features that tell whether sensitive values are guessed right
    claim: privacy loss claimed by the synthesis steps; None without a claim
    remark: description of the shadows in words
    output_prefix: prefix of the names of the AUC outputs
    is_by_unit: whether the targets are units of several records
    """

    features: Sequence[Floats]
    present: Sequence[Booleans]
    log_likelihood_ratios: Sequence[Floats]
    evaluation: TargetEvaluations
    records: Integers
    kinds: Mapping[str, Booleans]
    feature_names: tuple[str, ...]
    guess_features: slice
    claim: NoiseGuarantee | None
    remark: str
    output_prefix: str
    is_by_unit: bool

    @classmethod
    def from_blocks(cls, blocks: Sequence[AuditBlock], spec: RecordAuditSpec) -> _ScoredShadows:
        """Join the shadows of all blocks and evaluate the attack.

        Raises NotComputable if a target has too few shadows of one kind.
        """
        first = blocks[0]
        target = np.concatenate([block.target for block in blocks])
        is_present = np.concatenate([block.is_present for block in blocks])
        features = np.concatenate([block.features for block in blocks])
        log_ratios = np.concatenate([block.log_likelihood_ratios for block in blocks])
        rng = np.random.default_rng(first.seed)
        # Folds and permutations go by position, so the shadows must not depend on how they were divided into blocks.
        order = np.argsort(np.concatenate([block.shadow for block in blocks]), kind="stable")
        which = [order[target[order] == t] for t in range(len(first.records))]
        held = [features[rows].astype(np.float64) for rows in which]
        labels = [is_present[rows] for rows in which]
        ratios = [log_ratios[rows] for rows in which]
        few = min(min(int(y.sum()), int((~y).sum())) for y in labels)
        if few < FEWEST_RELEASES // 2:
            raise NotComputable(f"a target has {count_noun(few, 'shadow')} of one kind; ask for more shadows")
        part, permuted = (
            draw_folds(len(labels[0]), rng),
            np.stack([rng.permutation(len(labels[0])) for _ in range(PERMUTATIONS)]),
        )
        smooth = ratios if first.is_exact else [cross_fitted_smoother(x, part) for x in held]
        parts_of = [np.zeros(len(part), dtype=np.int64) if first.is_exact else part] * len(held)
        found = evaluate_targets(smooth, labels, parts_of, spec.false_positives, [permuted] * len(held))
        return cls(
            held, labels, ratios, found, first.records, first.kinds, first.feature_names, first.guess_features, first.claim,
            first.remark, first.output_prefix, first.members is not None,
        )  # fmt: skip

    @property
    def is_exact(self) -> bool:
        """Return whether all shadows have a likelihood ratio."""
        return not bool(np.isnan(self.log_likelihood_ratios[0]).any())

    @property
    def claimed_epsilon(self) -> float | None:
        return None if self.claim is None else self.claim.epsilon

    @property
    def claimed_delta(self) -> float:
        return 0.0 if self.claim is None else self.claim.delta

    @property
    def feature_weights(self) -> Floats:
        """Return the ridge coefficients of the standardised features, fitted to all shadows of each target, (T, F)."""
        return np.stack(
            [ridge_coefficients(x, np.where(y, 1.0, -1.0)) for x, y in zip(self.features, self.present, strict=True)]
        )

    def estimates(self, kind: str, spec: RecordAuditSpec) -> Iterator[Estimate]:
        """Yield all estimates for the targets of one kind."""
        some, found = self.kinds[kind], self.evaluation
        params = {**({} if kind == "random" else {"people": kind}), **(BY_UNIT if self.is_by_unit else {})}
        number = int(some.sum())
        words = f"{count_noun(number, 'target')}; {self.remark}"

        def estimate(
            name: str, value: float, low: float | None = None, high: float | None = None, base: float | None = None
        ) -> Estimate:
            return Estimate(name, value, "", low, high, base, reason=words, params=params)

        yield estimate(f"{self.output_prefix}auc", *found.mean_area(some), NO_LEAK)
        low, high = found.area_limits(simultaneous=True)
        rows = np.flatnonzero(some)
        # The lower limit decides; the AUC itself breaks ties.
        most = int(rows[np.argmax(low[rows] + 1e-9 * found.areas[0, rows])])
        yield estimate(
            f"{self.output_prefix}largest_auc",
            float(found.areas[0, most]),
            float(low[most]),
            float(high[most]),
            NO_LEAK,
        )
        away = int((low[rows] > NO_LEAK).sum())
        shares = score_interval(away / number, number)
        yield Estimate(
            "given_away",
            away,
            "",
            shares[0] * number,
            shares[1] * number,
            0.0,
            unit="units" if self.is_by_unit else "records",
            reason=words,
            params=params,
        )
        tpr = float(found.true_positive_rates[rows].mean())
        cases = float(found.n_with_target[rows].mean())
        yield estimate("tpr", tpr, *score_interval(tpr, cases), float(found.allowed_false_positive_rates[rows].mean()))
        yield estimate("advantage", *found.mean_advantage(some), 0.0)
        yield from self._reconstruction_estimates(rows, estimate, params)
        # Bonferroni: the largest of the bounds is reported.
        bounds = [self._privacy_bound(int(t), audit_bounds.BOUND_LEVEL / number) for t in rows]
        epsilon, mu = max(one.epsilon for one in bounds), max(one.mu for one in bounds)
        base = None if self.claim is None or np.isnan(self.claim.mu) else self.claim.mu
        if base is not None:
            epsilon = max(epsilon, audit_bounds.epsilon_from_mu(mu, self.claimed_delta))
        yield estimate("epsilon_lower", epsilon, epsilon, None, self.claimed_epsilon)
        yield estimate("mu_lower", mu, mu, None, base)
        yield from self._guess_bound_estimates(rows, spec, estimate, params)
        yield estimate("p_value", found.p_value(some))
        yield estimate("detectable_auc", found.detectable_area(some))

    def _reconstruction_estimates(self, rows: Integers, said: Any, params: Mapping[str, Any]) -> Iterator[Estimate]:
        """Yield the share of sensitive values guessed right, and its excess over the share without the target."""
        if self.guess_features.start == self.guess_features.stop:
            reason = "no sensitive variable, or no quasi-identifier, is among those the intruder looks at"
            for name in ("reconstruction", "memorisation"):
                yield Estimate.not_computed(name, reason, **params)
            return
        inside, outside, variance = [], [], []
        for t in rows:
            right, there = self.features[t][:, self.guess_features].mean(axis=1), self.present[t]
            inside.append(right[there].mean())
            outside.append(right[~there].mean())
            variance.append(right[there].var(ddof=1) / there.sum() + right[~there].var(ddof=1) / (~there).sum())
        value, base = float(np.mean(inside)), float(np.mean(outside))
        half = Z_95 * float(np.sqrt(np.sum(variance))) / len(rows)
        yield said("reconstruction", value, max(0.0, value - half), min(1.0, value + half), base)
        more = value - base
        yield said("memorisation", more, max(-1.0, more - half), min(1.0, more + half), 0.0)

    def _guess_bound_estimates(
        self, rows: Integers, spec: RecordAuditSpec, said: Any, params: Mapping[str, Any]
    ) -> Iterator[Estimate]:
        """Yield the lower bound of epsilon from the guesses at all canaries together.

        Steinke, Nasr & Jagielski (2023).
        """
        if spec.background != "canaries":
            yield Estimate.not_computed("epsilon_guesses", 'needs background = "canaries"', **params)
            return
        if self.claimed_delta:
            yield Estimate.not_computed(
                "epsilon_guesses",
                "the claim holds but for a chance of delta, which the bound by guesses does not know",
                **params,
            )
            return
        # Choosing the classifier and the threshold on the shadows that are counted would invalidate the bound.
        first, second = [], []
        for t in rows:
            x, y = self.features[t], np.where(self.present[t], 1.0, -1.0)
            half = len(y) // 2
            own = cross_fitted_smoother(x[:half], np.arange(half) % 5) @ y[:half]
            scale = own.std() or 1.0
            first.append(own / scale * y[:half])
            second.append(ridge_score_matrix(x[:half], x[half:]) @ y[:half] / scale * y[half:])
        chosen, counted_on = np.concatenate(first), np.concatenate(second)
        limits = np.quantile(np.abs(chosen), (0.0, 0.5, 0.75, 0.9, 0.97))
        found = [
            audit_bounds.epsilon_bound_from_guesses(int((own > 0).sum()), len(own))
            for own in (chosen[np.abs(chosen) >= a] for a in limits)
        ]
        guessed = counted_on[np.abs(counted_on) >= limits[int(np.argmax(found))]]
        value = audit_bounds.epsilon_bound_from_guesses(int((guessed > 0).sum()), len(guessed))
        yield said("epsilon_guesses", value, value, None, self.claimed_epsilon)

    def _privacy_bound(self, target: int, level: float) -> audit_bounds.PrivacyLossBound:
        """Return the lower bound of the privacy loss from the attack on one target."""
        present = self.present[target]
        # Classifier and threshold are chosen on the first half and counted on the second: otherwise the bound is too
        # high.
        half = len(present) // 2
        first, second = slice(0, half), slice(half, None)
        if self.is_exact:
            chosen_by, counted_on = (
                self.log_likelihood_ratios[target][first],
                self.log_likelihood_ratios[target][second],
            )
        else:
            x, y = self.features[target], np.where(present, 1.0, -1.0)
            chosen_by = cross_fitted_smoother(x[first], np.arange(half) % 5) @ y[first]
            counted_on = ridge_score_matrix(x[first], x[second]) @ y[first]
        chosen = audit_bounds.best_bound_thresholds(chosen_by, present[first], level, self.claimed_delta)
        return audit_bounds.bounds_at_thresholds(counted_on, present[second], chosen, level, self.claimed_delta)


@dataclass(frozen=True, kw_only=True, slots=True)
class RecordAuditSpec(Spec):
    """Settings of the audit: targets, number of shadows, and the intruder's knowledge."""

    known: Annotated[Known, Variant("variables the intruder looks at; default: all but identifiers")] = ()
    targets: Annotated[int, Param("targets of each kind", ge=1, le=1000, reported=True)] = _DEFAULT_TARGETS
    people: TargetKinds = BOTH_TARGET_KINDS
    shadows: Annotated[
        int, Param("shadow releases of a target, about half of them with its record", ge=40, le=100_000)
    ] = 500
    background: Annotated[
        Background,
        Param(
            "the other records of a shadow: a random half, so that all targets share the shadows; all; or all but the targets, "
            "which coins decide (canaries): an audit of private steps in few shadows"
        ),
    ] = "half"
    question: Annotated[
        Question | None,
        Param(
            "without a person: another record in its place, or other values; default: values where variables are kept"
        ),
    ] = None
    datasets: Annotated[int | None, Param("datasets of a shadow; default: as many as the release has", ge=1)] = None
    false_positives: Annotated[
        float, Param("share of the shadows without the person that may be taken for one with it", gt=0, lt=1)
    ] = 0.01
    exact: Annotated[bool, Param("use exact likelihood ratios where all models give them; needs background all")] = True
    blocks: Annotated[int, Param("tasks that the shadows are divided among", ge=1, le=1000, filters_rows=True)] = 8

    def grid(self) -> tuple[float, ...]:
        return tuple(map(float, range(self.blocks)))

    def shadows_a_task(self) -> float:
        """Return the number of shadow releases that one block makes."""
        own = self.targets * len(self.people) if self.background == "all" else 1
        return self.shadows * own / self.blocks

    def for_release(self, schema: Schema, released: tuple[str, ...]) -> Self:
        """Return these settings with ``known`` set to all variables but identifiers if none is named."""
        return replace(self, known=self.known or schema.non_identifiers)

    def check_release(self, schema: Schema, released: tuple[str, ...], place: str) -> None:
        """Raise BadInput if the intruder knows no variable of a person, or none that the release changes."""
        known = self.for_release(schema, released).known
        if not known:
            raise BadInput(f"{place}.known", "all variables are identifiers; name what the intruder has of a person")
        if released and not set(known) & set(released):
            raise BadInput(f"{place}.known", "the release changes none of these variables; name one that it changes")


AREA_OUTPUTS = (
    Output(
        "auc",
        "chance that a shadow release with the record of a target looks more like it than one without; mean over the targets",
        "low",
        "share",
        range=SHARE,
        short="AUC",
        estimated=True,
        detectable="detectable_auc",
        row_defaults=ROW_DEFAULTS,
        risk=RiskOutput(questions=("membership",)),
        statbarn="StatisticalHypothesisTests",
        label=Label(
            "Audit: shadows distinguished (mean AUC)",
            "Releases with a person are distinguished from releases without in {value} of pairs on average; 50 % is chance.",
            "Good is 50 %: a release looks the same with a person and without.",
            "Releases show whether single people are in the data.",
            AUDIT_LEVERS,
            counts="share",
        ),
    ),
    Output(
        "largest_auc",
        "the AUC of the target that stands out most, with an interval that holds for all targets at once",
        "low",
        "share",
        range=SHARE,
        short="largest AUC",
        estimated=True,
        detectable="detectable_auc",
        row_defaults=ROW_DEFAULTS,
        risk=RiskOutput(gate_reference="chance", questions=("membership",), gate_lower=True),
        statbarn="StatisticalHypothesisTests",
        label=Label(
            "Audit: most exposed person (AUC)",
            "Of the person who stands out most, releases with and without are distinguished in {value} of pairs; 50 % is chance.",
            "Good is an interval that contains 50 %.",
            "At least one person can be recognised in the release.",
            AUDIT_LEVERS,
            counts="share",
        ),
    ),
)


VALUE_AREA_OUTPUTS = tuple(
    replace(
        output,
        name=f"values_{output.name}",
        meaning=f"{output.meaning}; without means that the record has another's values",
        short=f"{output.short} of values",
        risk=replace(output.risk, questions=("inference",)),
        label=replace(output.label, name=name, says=says, good=good, fails=fails),
    )
    for output, name, says, good, fails in (
        (
            AREA_OUTPUTS[0],
            "Audit: values distinguished (mean AUC)",
            "Releases made of a person's own values are distinguished from others in {value} of pairs on average; 50 % is chance.",
            "Good is 50 %: a release looks the same whatever a person's values are.",
            "Releases show values of single people.",
        ),
        (
            AREA_OUTPUTS[1],
            "Audit: most exposed values (AUC)",
            "Of the person who stands out most, releases made of the own values are distinguished in {value} of pairs; 50 % is chance.",
            "Good is an interval that contains 50 %.",
            "Values of at least one person can be recognised in the release.",
        ),
    )
)


"""AUC outputs for the question about values."""


OUTPUTS = (
    *AREA_OUTPUTS,
    *VALUE_AREA_OUTPUTS,
    Output(
        "given_away",
        "targets of whom a release shows beyond chance whether they are in the data",
        "low",
        "records",
        range=NON_NEGATIVE,
        short="recognised",
        estimated=True,
        row_defaults=ROW_DEFAULTS,
        label=Label(
            "Audit: people recognised",
            "The audit recognises {value} in the releases beyond chance.",
            "Good is 0.",
            "Some people can be recognised in the release.",
            AUDIT_LEVERS,
            counts="people",
        ),
    ),
    Output(
        "tpr",
        "share of the shadows with the record that are found at the false positives asked for; mean over the targets",
        "low",
        "share",
        range=SHARE,
        short="found",
        estimated=True,
        label=Label(
            "Audit: shadows found at few false alarms",
            "At the allowed rate of false alarms, {value} of the releases with the person are found.",
            "Good is no more than the rate of false alarms.",
            "Releases with a person are found too often.",
            AUDIT_LEVERS,
        ),
    ),
    Output(
        "advantage",
        "true positives less false positives of the classifier, at a limit that other shadows of the target choose; mean over the targets",
        "low",
        range=(-1.0, 1.0),
        short="advantage",
        estimated=True,
        label=Label(
            "Audit: advantage of the attack",
            "The attack is right by {value} more often than chance.",
            "Good is 0 %.",
            "The attack knows too often whether a person is in the data.",
            AUDIT_LEVERS,
            counts="share",
        ),
    ),
    Output(
        "reconstruction",
        "share of a target's sensitive values guessed right from the nearest released records where its record is in the data",
        "low",
        "share",
        range=SHARE,
        short="reconstruction",
        estimated=True,
        label=Label(
            "Audit: sensitive values guessed right",
            "From the nearest released records, {value} of the targets' sensitive values are guessed right.",
            "Good is no more than without the person in the data.",
            "Sensitive values of the targets are guessed too often.",
            AUDIT_LEVERS,
            baseline="without the person in the data",
        ),
    ),
    Output(
        "memorisation",
        "how much more often sensitive values are guessed right because the record is in the data",
        "low",
        range=(-1.0, 1.0),
        short="memorisation",
        estimated=True,
        label=Label(
            "Audit: memorisation",
            "Being in the data raises the share of sensitive values guessed right by {value}.",
            "Good is 0 %: values are guessed as well of people outside the data.",
            "The release repeats values of single people.",
            AUDIT_LEVERS,
            counts="share",
        ),
    ),
    Output(
        "epsilon_lower",
        "the largest privacy loss epsilon that the attack proves, of all targets together, with 95 % confidence",
        "low",
        range=NON_NEGATIVE,
        short="epsilon at least",
        estimated=True,
        statbarn="none",
        risk=RiskOutput(evidence="audit by shadow releases"),
        label=Label(
            "Audit: privacy loss, lower bound (epsilon)",
            "The attack proves a privacy loss of at least {value}.",
            "Good is a bound below the epsilon that is claimed.",
            "The release loses more privacy than is claimed.",
            AUDIT_LEVERS,
            baseline="claimed epsilon",
        ),
    ),
    Output(
        "epsilon_guesses",
        "the privacy loss epsilon that all guesses at all targets prove together, with 95 % confidence",
        "low",
        range=NON_NEGATIVE,
        short="epsilon by guesses",
        estimated=True,
        statbarn="none",
        label=Label(
            "Audit: privacy loss by all guesses (epsilon)",
            "All guesses together prove a privacy loss of at least {value}.",
            "Good is a bound below the epsilon that is claimed.",
            "The release loses more privacy than is claimed.",
            AUDIT_LEVERS,
            baseline="claimed epsilon",
        ),
    ),
    Output(
        "mu_lower",
        "the same bound for Gaussian differential privacy: mu",
        "none",
        range=NON_NEGATIVE,
        short="mu at least",
        estimated=True,
        statbarn="none",
        label=Label(
            "Audit: Gaussian privacy loss, at least (mu)",
            "The attack proves a Gaussian privacy loss mu of at least {value}.",
            baseline="claimed mu",
        ),
    ),
    Output(
        "p_value",
        "chance of such a largest AUC where the release reveals nothing, by permuted labels",
        "none",
        range=SHARE,
        short="p",
        estimated=True,
        label=Label(
            "Audit: chance of such a finding",
            "If the releases revealed nothing, some person would stand out as much with probability {value}.",
            counts="share",
        ),
    ),
    Output(
        "detectable_auc",
        "smallest AUC of one target that would have stood out with 80 % power",
        "none",
        "share",
        range=SHARE,
        short="detectable AUC",
        estimated=True,
        label=Label(
            "Audit: smallest AUC that stands out",
            "With a power of 80 %, the audit recognises a person with an AUC of {value} or more.",
            counts="share",
        ),
    ),
)


def _draft_offer(case: Case) -> Offer | DeclinedOffer | None:
    """Offer the audit only on request."""
    # The audit takes as long as hundreds of runs.
    if not case.audit or case.want == "evaluation":
        return None
    most = (case.table.records - (case.controls or 0)) // 8  # of two kinds: a quarter of the records at most
    if most < 1:
        return DeclinedOffer("too few records to make releases with and without one of them")
    settings = {"datasets": 1} if case.want == "synthesis" and case.m > 1 else {}
    few = {"targets": most} if most < _DEFAULT_TARGETS else {}
    return Offer(
        "what the release reveals about single people, by releases that the plan makes with them and without", {**few, **settings}
    )  # fmt: skip


@measure_method(
    "Audit of single records",
    spec=RecordAuditSpec,
    source="Stadler, Oprisanu & Troncoso (2022); Meeus et al. (2023), Achilles' heels; Carlini et al. (2022); Jagielski, Ullman & Oprea (2020)",
    outputs=OUTPUTS,
    gather=gather_blocks,
    block_result=AuditBlock,
    refits=True,
    per_record=(
        RecordArray(
            "audited_risk",
            "that releases with the record are distinguished from releases without it: at least so much beyond chance, 2 AUC - 1 at the lower limit",
            "share",
            "high",
            "probability",
        ),
        RecordArray(
            "audited_auc",
            "AUC with which releases with the record are distinguished from releases without",
            "share",
            "high",
        ),
        RecordArray("audited_lower", "lower limit of the AUC that holds for all targets at once", "share", "high"),
        RecordArray("audited_upper", "upper limit of the AUC that holds for all targets at once", "share", "high"),
    ),
)
@drafts(_draft_offer)
def record_audit(
    confidential: Microdata,
    releases: Sequence[Microdata],
    refits: ShadowReleases,
    spec: RecordAuditSpec,
    block: int,
    run: Run,
) -> AuditBlock:
    """Make the shadow releases of one block and return the features and likelihood ratios of the targets."""
    audit = _AuditSetup.from_data(confidential, len(releases), refits, spec, run.rng)
    units, seed = audit.data.units, run.rng.integers(2**63)
    # One stream per shadow, so that a shadow does not depend on the number of blocks.
    streams = run.rng.spawn(audit.design.n_releases)
    mine = list(range(block, audit.design.n_releases, spec.blocks))
    shadow, target, present, features, odds = [], [], [], [], []
    people = audit.data.select_rows(list(map(int, audit.target_rows)))
    together = max(1, min(SHADOWS_TOGETHER, AT_ONCE // len(confidential)))
    for first in range(0, len(mine), together):
        numbers = mine[first : first + together]
        made = [audit.design.draw_shadow(number, streams[number]) for number in numbers]
        tables = [one.make_data(audit.data, refits.changed_variables) for one in made]
        every = refits.make_releases(numbers, tables, audit.n_datasets, people)
        for number, one, shown in zip(numbers, made, every, strict=True):
            for of, there, seen, ratio in audit.shadow_rows(one, shown, refits):
                shadow.append(number)
                target.append(of)
                present.append(there)
                features.append(seen)
                odds.append(ratio)
        run.report(Progress(first + len(numbers), len(mine), "shadows"))
    known = not np.isnan(odds).any()
    kind = "likelihood ratios of" if audit.is_exact else "noisy counts of" if known else ""
    words = f"{kind} {spec.shadows:,} shadows of {audit.design.shadow_size:,} {_unit_noun(audit.data)} and {count_noun(audit.n_datasets, 'dataset')}".strip()
    return AuditBlock(
        shadow=np.asarray(shadow, dtype=np.int64),
        target=np.asarray(target, dtype=np.int64),
        is_present=np.asarray(present, dtype=np.int64) == 1,
        features=np.asarray(features, dtype=np.float32).reshape(len(shadow), len(audit.feature_names)),
        log_likelihood_ratios=np.asarray(odds, dtype=np.float64),
        records=audit.order[audit.targets if units is None else units.first_records[audit.targets]],
        kinds=audit.kinds,
        feature_names=audit.feature_names,
        guess_features=audit.features.guess_features,
        is_exact=known,
        claim=refits.noise_guarantee(audit.design.removes_target),
        seed=int(seed),
        remark=words,
        output_prefix="values_" if audit.design.question == "values" else "",
        members=None if units is None else audit.order[audit.target_rows],
        sizes=None if units is None else units.sizes[audit.targets],
    )
