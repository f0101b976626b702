"""Study of the smallest sample whose anonymised version is still good enough (Lighthouse data quality §5).

Sub-samples of n, 1.05 n, ..., 2 n records are drawn, several of each size, anonymised and measured. The answer is the
smallest size whose sub-samples all meet every threshold of minimum data quality; ``smallest_size`` finds it among the
rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Self

import numpy as np

from ..data.intervals import AT_LEAST_ONE, SHARE
from ..data.microdata import Microdata
from ..data.schema import Role, Schema
from ..errors import BadInput
from ..methods.intruder import QuasiIdentifiers
from ..methods.levers import SAMPLE
from ..methods.outputs import Axis, Label, Output, StudyOutput
from ..methods.registry import study_method
from ..methods.results import Estimate, StudyPoint
from ..methods.rows import Row
from ..methods.run import Run
from ..methods.spec import Param, StudySpec
from ..partition.pairs import CATEGORIES, NUMBERS
from ..quality import nmi_v1, non_suppressed, pearson, rilm
from ..statistics.score_interval import score_interval
from ..wording import count_noun
from ._anonymising import (
    anonymise_sample,
    find_anonymiser,
    point_of_own_tables,
    quality_scores,
    require_present,
    select_schema,
)

# Measure: the data quality method, its output over all columns, the kinds of column it needs.
MEASURES = {
    "rho": ("quality.pearson", "minimum_rho", NUMBERS),
    "rilm_categorical": ("quality.rilm", "minimum_categorical", CATEGORIES),
    "nmi": ("quality.nmi_v1", "minimum_nmi", NUMBERS),
    "non_suppressed": ("quality.non_suppressed", "share", (*NUMBERS, *CATEGORIES)),
}
SHORT = {"rilm_categorical": "rilm", "non_suppressed": "non-suppressed"}
TITLES = {
    "rho": "Least correlation, by sample size",
    "rilm_categorical": "Least detail kept, by sample size",
    "nmi": "Least information kept, by sample size",
    "non_suppressed": "Fewest records kept, by sample size",
}
FAILED = "no size has sub-samples that all meet every threshold"


def check_data(data: Microdata, target: str, spec: MinimisationSpec, place: str) -> None:
    """Raise BadInput where the data have fewer than 2 n records, or n is smaller than k."""
    require_present(data, spec.quasi_identifiers, place)
    if spec.sample_size(spec.grid()[-1], len(data)) > len(data):
        raise BadInput(
            f"{place}.n", f"sizes go up to 2 n, and the data have {count_noun(len(data), 'record')}; n is at most half"
        )
    if spec.sample_size(1.0, len(data)) < spec.k:
        raise BadInput(
            f"{place}.k", f"a sub-sample of {spec.sample_size(1.0, len(data)):,} cannot make a class of {spec.k:,}"
        )


def smallest_size(rows: Sequence[Row]) -> list[Row]:
    """Return, for each use of the study among the rows, the smallest size whose sub-samples all pass, or that no size
    passes.
    """
    studies: dict[str, list[Row]] = {}
    for row in rows:
        if row.measure == "passing" and row.value is not None:
            studies.setdefault(str(_study_settings(row)), []).append(row)
    return [_smallest_size_row(sizes) for sizes in studies.values()]


def _measure_sample(data: Microdata, size: int, spec: MinimisationSpec, run: Run) -> dict[str, float | None]:
    """Return the minimum of each measure over the columns of one anonymised sub-sample."""
    rows = np.sort(run.rng.choice(len(data), size, replace=False))
    schema = select_schema(data.schema)
    sample = Microdata(schema, data.frame[list(schema.names)].iloc[rows].reset_index(drop=True))
    by = find_anonymiser(
        spec.anonymisation, schema, spec.quasi_identifiers, spec.k, spec.anonymisation_options, "study"
    )
    released = anonymise_sample(sample, by, run)
    return dict(_score_sample(sample, released, spec, run))


def _score_sample(
    sample: Microdata, released: Microdata, spec: MinimisationSpec, run: Run
) -> Iterator[tuple[str, float | None]]:
    """Yield the name and the minimum of each measure that has suitable columns; None where it cannot be computed."""
    for name, (key, output, kinds) in MEASURES.items():
        columns = [column for column in spec.quasi_identifiers if sample.schema[column].kind in kinds]
        if columns:
            table = {} if name == "non_suppressed" else {"variables": columns}
            extra = {"quasi_identifiers": list(spec.quasi_identifiers)} if name == "rilm_categorical" else {}
            yield name, quality_scores(key, sample, released, {**table, **extra}, run).get((output, ""))


def _smallest_estimate(name: str, values: Sequence[float | None], params: Mapping[str, Any]) -> Estimate:
    """Return the smallest of the sub-samples' values; not computed where one of them has none."""
    computed = [value for value in values if value is not None]
    if len(computed) < len(values):
        lacking = len(values) - len(computed)
        return Estimate.not_computed(name, f"{lacking} of {len(values)} sub-samples have no value", **params)
    return Estimate(name, min(computed), params=params)


def _study_settings(row: Row) -> dict[str, Any]:
    return {name: value for name, value in row.params.items() if name != "size"}


def _smallest_size_row(rows: Sequence[Row]) -> Row:
    """Return the row of the answer of one use of the study."""
    like = replace(rows[0], measure="smallest_size", level=None, unit="records", params=_study_settings(rows[0]))
    enough = [row.params["size"] for row in rows if row.value == 1]
    if not enough:
        return replace(like, value=None, status="not computed", reason=FAILED)
    return replace(like, value=float(min(enough)))


@dataclass(frozen=True, kw_only=True, slots=True)
class MinimisationSpec(StudySpec):
    """Sizes, number of sub-samples, their anonymisation, and the thresholds."""

    n: Annotated[
        int | None, Param("records that the analysis needs without anonymisation; left out, half of the data", ge=2)
    ] = None
    step: Annotated[float, Param("how much larger each size is, as a share of n", gt=0, le=1)] = 0.05
    subsamples: Annotated[int, Param("sub-samples of each size", ge=1, reported=True)] = 5
    k: Annotated[int, Param("fewest records in a class", ge=2, reported=True)] = 5
    quasi_identifiers: QuasiIdentifiers = ()
    anonymisation: Annotated[str, Param("anonymisation method")] = "anonymisation.mondrian"
    max_suppressed: Annotated[float, Param("share of the records that may be suppressed", ge=0, lt=1)] = 0.0
    rho: Annotated[float, Param("least correlation of a numerical column", ge=0, le=1)] = pearson.LIMIT.least
    rilm_categorical: Annotated[float, Param("least RILM of a categorical column", ge=0, le=1)] = rilm.LIMIT.least
    nmi: Annotated[float, Param("least normalized mutual information of a numerical column", ge=0, le=1)] = (
        nmi_v1.LIMIT.least
    )
    non_suppressed: Annotated[float, Param("least share of records that are not suppressed", ge=0, le=1)] = (
        non_suppressed.LIMIT.least
    )

    def grid(self) -> tuple[float, ...]:
        """Return the sizes as multiples of n, from 1 to 2."""
        return tuple(round(1 + i * self.step, 10) for i in range(int(1 / self.step + 1e-9) + 1))

    def for_release(self, schema: Schema, released: tuple[str, ...]) -> Self:
        return replace(self, quasi_identifiers=self.quasi_identifiers or schema.names_by_role(Role.QUASI_IDENTIFIER))

    def check_release(self, schema: Schema, released: tuple[str, ...], place: str) -> None:
        """Raise BadInput where quasi-identifiers and anonymisation do not suit each other."""
        names = self.for_release(schema, released).quasi_identifiers
        if not names:
            raise BadInput(
                f"{place}.quasi_identifiers", 'name some variables, or give some the role "quasi_identifier"'
            )
        find_anonymiser(self.anonymisation, select_schema(schema), names, self.k, self.anonymisation_options, place)

    @property
    def anonymisation_options(self) -> Mapping[str, float]:
        """Return the settings of the anonymisation besides k and quasi-identifiers."""
        return {"max_suppressed": self.max_suppressed} if self.max_suppressed else {}

    def sample_size(self, multiple: float, records: int) -> int:
        """Return the number of records of a sub-sample of ``multiple`` n, out of ``records``."""
        return round(multiple * (records // 2 if self.n is None else self.n))


@study_method(
    "Smallest sufficient sample",
    spec=MinimisationSpec,
    source="Measuring Data Quality for Project Lighthouse §5",
    outputs=(
        *(
            Output(
                name,
                f"least {key}.{output} of the sub-samples of the size at this level",
                "high",
                range=SHARE,
                short=SHORT.get(name, name),
                estimated=True,
                statbarn="CorrelationCoefficients" if name in ("rho", "nmi") else "",
                study=StudyOutput(limit_parameter=name),
                label=Label(
                    TITLES[name],
                    "In the worst sub-sample of this size, {value} is reached.",
                    "Higher is better; 1 loses nothing.",
                    "Some sub-sample of this size is not good enough.",
                    SAMPLE,
                ),
            )
            for name, (key, output, _) in MEASURES.items()
        ),
        Output(
            "passing",
            "sub-samples of this size that meet every threshold",
            "high",
            "share",
            range=SHARE,
            short="meet all limits",
            estimated=True,
            label=Label(
                "Sub-samples that meet all quality limits",
                "At this size, {value} of the sub-samples meet every limit of data quality.",
                "Higher is better: at 100 % every sub-sample of this size is good enough.",
                "Sub-samples of this size are too often not good enough.",
                SAMPLE,
                counts="share",
            ),
        ),
        Output(
            "smallest_size",
            "smallest size whose sub-samples all meet every threshold",
            "low",
            "records",
            range=AT_LEAST_ONE,
            estimated=True,
            study=StudyOutput(
                answer=True,
                on_axis=True,
                sentence="{value:,.0f} records are enough: every sub-sample meets minimum data quality",
                no_answer_text="No size is enough",
                criterion="passing",
            ),
            label=Label(
                "Smallest sufficient sample",
                "A sample of {value} is enough: every sub-sample of this size meets the limits of data quality.",
                "Smaller is better: fewer people's records are needed.",
                "More records are needed than the limit allows.",
                SAMPLE,
            ),
        ),
    ),
    check=check_data,
    summarise=smallest_size,
    axis=Axis(
        "records",
        "the size of the sub-samples",
        "records",
        heading="Data quality by size of the sample",
        question="How few records are enough?",
        values="the least of the sub-samples",
        point="size",
        discrete=True,
        uses=("k", "subsamples"),
    ),
)
def minimisation(
    confidential: Microdata, releases: Sequence[Microdata], point: float, spec: MinimisationSpec, run: Run
) -> StudyPoint:
    """Measure the sub-samples of one size, ``point`` times n; the releases are not used.

    A measure without a value in a sub-sample has none for the size, and its threshold counts as not met.
    """
    size = spec.sample_size(point, len(confidential))
    # All points have the same generator: spawning for the whole grid gives each size sub-samples of its own.
    children = run.rng.spawn(len(spec.grid()))[spec.grid().index(point)].spawn(spec.subsamples)
    found = list(run.map(lambda rng: _measure_sample(confidential, size, spec, replace(run, rng=rng)), children))
    params = {"size": size}
    passing = [all(v is not None and v >= getattr(spec, name) for name, v in one.items()) for one in found]
    estimates = [_smallest_estimate(name, [one[name] for one in found], params) for name in found[0]]
    share = float(np.mean(passing))
    ends = score_interval(share, spec.subsamples)
    return point_of_own_tables([*estimates, Estimate("passing", share, "", *ends, params=params)], releases)
