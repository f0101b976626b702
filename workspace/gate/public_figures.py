"""The figures of utility that a release writes for the public.

A measured figure is exact: whoever knows all other people solves it for the one who is left. So no measured figure is
released. ``[release] public_figures`` decides. "internal": nothing. "rounded": figures computed again from the released
files and from protected counts of the confidential table. "paid": the same from exact counts, with noise that the
privacy account has.

Only outputs that declare how they follow from counts of one variable (``Output.public``) can be released either way.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace

import numpy as np

from sfumato.engine.data.arrays import Floats
from sfumato.engine.data.microdata import Microdata
from sfumato.engine.data.schema import MissingPolicy
from sfumato.engine.design.survey import SurveyDesign
from sfumato.engine.methods.outputs import FigureOfCounts
from sfumato.engine.methods.registry import OWN, method_by_key
from sfumato.engine.methods.rows import Row
from sfumato.engine.methods.run import PUBLIC, Randomness
from sfumato.engine.recipe.recipe import Recipe

from ..policy.disclosure import INFORMATION_LOSS, DisclosureRules, PublicFigure, noisy_share
from ..store.keys import run_key
from ..views.approved import read_approved_tables
from .checks import ExaminedRelease
from .contents import ReleasePlan
from .package_accounts import trusted_packages_of_run

ReadDataset = Callable[[int, str], Microdata]
"""Reads one variable of a released dataset, by its place from 0."""


def public_figures(
    plan: ReleasePlan,
    rules: DisclosureRules,
    rows: Sequence[Row],
    confidential: Microdata,
    released: ReadDataset,
    published: Collection[str],
    key: bytes,
    packages: Collection[str] = (),
) -> tuple[PublicFigure, ...]:
    """Return the figures that are released, in the order of the run's results.

    published: variables of counts that are released as tables
    key: key of the run
    packages: packages of other authors that the policy names, whose outputs may be public too
    """
    form = plan.run.recipe.form
    if form.public_figures == "internal":
        return ()
    candidates = list(_publishable_outputs(plan, rows, packages))
    if form.public_figures == "rounded":
        # Counts of the same variable that were rounded in another way would narrow a published table down.
        chosen = [(row, figure) for row, figure in candidates if row.target not in published]
        found = (_rounded_figure(row, figure, plan, rules, confidential, released) for row, figure in chosen)
        return tuple(figure for figure in found if figure is not None)
    payable = [(row, figure) for row, figure in candidates if figure.sensitivity is not None]
    if key == PUBLIC or form.public_figures_epsilon is None or not payable:
        return ()  # noise that anybody can draw again is none
    return _paid_figures(payable, plan, rules, confidential, released, key, form.public_figures_epsilon)


def _publishable_outputs(
    plan: ReleasePlan, rows: Sequence[Row], packages: Collection[str] = ()
) -> Iterator[tuple[Row, FigureOfCounts]]:
    """Yield each measured output that follows from counts of a replaced variable, once."""
    recipe = plan.run.recipe
    if SurveyDesign.from_schema(recipe.schema) is not None:
        return  # a share of the population is no function of counts of records
    seen = set[tuple[str, str, str]]()
    for row in rows:
        method = method_by_key(row.method_key)
        # Another package may claim a figure that depends on no count, or a sensitivity of nearly nothing.
        is_ours = method is not None and method.package in (OWN, *packages)
        outputs = method.outputs if method is not None and is_ours and row.family in INFORMATION_LOSS else ()
        figure = next((output.public for output in outputs if output.name == row.measure), None)
        # Recipe and release alone decide: a choice by measured values would reveal something of them.
        averaged = row.dataset != "confidential" and row.draw is None and row.level is None
        name = (row.method_key, row.measure, row.target)
        if (
            figure is not None
            and averaged
            and name not in seen
            and _is_replaced_in_kind(recipe, plan.replaced, row.target)
        ):
            seen.add(name)
            yield row, figure


def _is_replaced_in_kind(recipe: Recipe, replaced: Collection[str], name: str) -> bool:
    """Return whether a variable is replaced by values of the same kind, neither generalised nor recoded."""
    if name not in replaced or name in recipe.generalised or name in recipe.form.recode:
        return False
    return recipe.released_schema[name].kind is recipe.schema[name].kind


def count_cells_of_both(
    confidential: Microdata, released: Microdata, name: str, *, may_lack: bool
) -> tuple[Floats, Floats]:
    """Count both tables in cells that the released values cut: below each value, and at each value, (k,) each.

    The last cells are what lies above all of them and, where a value ``may_lack``, the records without one.
    """
    ours, theirs = _columns_as_numbers(confidential, released, name)
    # Cut by released values alone, so that the confidential table enters by counts alone.
    cuts, at = np.unique(theirs[~np.isnan(theirs)], return_counts=True)
    present = np.sort(ours[~np.isnan(ours)])
    below, upto = (np.searchsorted(present, cuts, side) for side in ("left", "right"))
    ends = np.column_stack([below, upto]).ravel()
    here = np.diff(ends, prepend=0, append=len(present)).astype(np.float64)
    there = np.zeros(len(here))
    there[1::2] = at
    lacking = [len(ours) - len(present)], [len(theirs) - int(at.sum())]
    if not may_lack:
        assert lacking[0] == [0], "a record without a value that the recipe does not allow"
        return here, there
    return np.append(here, lacking[0]), np.append(there, lacking[1])


def _columns_as_numbers(confidential: Microdata, released: Microdata, name: str) -> tuple[Floats, Floats]:
    """Return both columns as numbers, NaN where missing.

    Levels are numbered as in the confidential data; those that only the release has come after them.
    """
    ours, theirs = confidential.numbers(name), released.numbers(name)
    if not confidential.schema[name].kind.has_levels:
        return ours, theirs
    levels, others = (list(data.column(name).cat.categories) for data in (confidential, released))
    if levels == others:
        return ours, theirs
    known = {level: place for place, level in enumerate(levels)}
    places = np.array([*(known.setdefault(level, len(known)) for level in others), np.nan])
    return ours, places[np.where(np.isnan(theirs), len(others), theirs).astype(np.int64)]


def _cell_counts_by_dataset(
    row: Row, plan: ReleasePlan, confidential: Microdata, released: ReadDataset
) -> Iterator[tuple[Floats, Floats]]:
    """Yield the confidential and the released counts of the cells of each dataset."""
    recipe, name = plan.run.recipe, row.target
    may_lack = recipe.data.missing is MissingPolicy.KEEP or recipe.schema[name].may_be_missing
    for place in range(plan.datasets):
        yield count_cells_of_both(confidential, released(place, name), name, may_lack=may_lack)


def _rounded_figure(
    row: Row,
    figure: FigureOfCounts,
    plan: ReleasePlan,
    rules: DisclosureRules,
    confidential: Microdata,
    released: ReadDataset,
) -> PublicFigure | None:
    """Return a figure computed from protected counts; None where there are too few records to protect."""
    protected, theirs = list[Floats](), list[Floats]()
    for ours, own in _cell_counts_by_dataset(row, plan, confidential, released):
        counts = rules.protect_counts(ours)
        if counts is None:
            return None
        protected.append(counts)
        theirs.append(own)
    value = rules.round_number(float(np.mean([figure.compute(*pair) for pair in zip(protected, theirs, strict=True)])))
    return PublicFigure(_row_with_value_alone(row, value), tuple(protected), tuple(theirs))


def _paid_figures(
    payable: Sequence[tuple[Row, FigureOfCounts]],
    plan: ReleasePlan,
    rules: DisclosureRules,
    confidential: Microdata,
    released: ReadDataset,
    key: bytes,
    epsilon: float,
) -> tuple[PublicFigure, ...]:
    """Return the figures with discrete Laplace noise.

    Each is a gap in records divided by the number of all records, which has noise too. The epsilon is divided evenly
    among the gaps and the number of records.
    """
    each = epsilon / (len(payable) + 1)
    named = tuple(f"{row.method_key}.{row.measure} {row.target}" for row, _ in payable)
    # What decides the noise is all that decides a figure: two releases share noise only where they are equal. Small
    # datasets can be equal by chance where the data differ in one person, whom the difference of figures would show.
    streams = Randomness(plan.run.recipe.seed, key, (confidential.sha256, *plan.tables, repr(epsilon), *named))
    people = len(confidential)
    records = people + draw_discrete_laplace(1 / each, streams.generator("public figures", "records"))
    found: list[PublicFigure] = []
    for place, (row, figure) in enumerate(payable):
        assert figure.sensitivity is not None
        gaps = [people * figure.compute(*pair) for pair in _cell_counts_by_dataset(row, plan, confidential, released)]
        noise = draw_discrete_laplace(figure.sensitivity / each, streams.generator("public figures", place))
        # Rounding to whole records does not raise a sensitivity that is a whole number, if all halves are rounded alike:
        # a mean gap of 25.5 must not become 25 by the last digit of a sum where one of 26.5 becomes 27.
        noisy = (math.floor(round(float(np.mean(gaps)), 6) + 0.5) + noise, records)
        written = _row_with_value_alone(row, rules.round_number(noisy_share(noisy)))
        # The first figure carries the cost of the noisy number of records.
        found.append(PublicFigure(written, noisy=noisy, epsilon=each if found else 2 * each))
    return tuple(found)


def draw_discrete_laplace(scale: float, rng: np.random.Generator) -> int:
    """Draw a whole number k with probability proportional to exp(-abs(k) / scale) (Ghosh, Roughgarden & Sundararajan 2012)."""
    # The difference of two geometric variables. 1 - exp(-1 / scale) loses its digits for a large scale.
    stop = -math.expm1(-1 / scale)
    first, second = rng.geometric(stop, 2)
    return int(first) - int(second)


def _row_with_value_alone(row: Row, value: float) -> Row:
    """Return the row with this value, without anything else that was computed from confidential records."""
    return replace(row, value=value, lower=None, upper=None, baseline=None, reason="")


def public_figures_of_release(case: ExaminedRelease) -> tuple[PublicFigure, ...]:
    """Return the public figures that a release of the examined run would write."""
    run = case.plan.run
    if run.recipe.form.public_figures == "internal":
        return ()
    packages = trusted_packages_of_run(case.workspace, run, case.policy.packages).versions
    published = {name for one in read_approved_tables(case.workspace, run, packages) for name in one.variables}
    key = run_key(case.workspace.directory, run.key_fingerprint)
    return public_figures(
        case.plan,
        case.policy.disclosure_rules,
        case.measured_rows,
        case.confidential,
        lambda place, name: case.read_dataset(case.release, place, name),
        published,
        key,
        packages,
    )


def follows_from_rounded_counts(figure: PublicFigure, rules: DisclosureRules) -> bool:
    """Return whether a figure follows from its released cells and protected counts, without interval and baseline."""
    method = method_by_key(figure.row.method_key)
    outputs = () if method is None else method.outputs
    declared = next((output.public for output in outputs if output.name == figure.row.measure), None)
    if declared is None or not figure.counts or not all(map(rules.is_protected, figure.counts)):
        return False
    values = [declared.compute(*pair) for pair in zip(figure.counts, figure.released, strict=True)]
    return _has_value_alone(figure) and figure.row.value == rules.round_number(float(np.mean(values)))


def has_paid_noise(figure: PublicFigure, rules: DisclosureRules) -> bool:
    """Return whether a figure is a share of whole numbers with noise, and names the epsilon for it."""
    if figure.noisy is None or not figure.epsilon > 0:
        return False
    return _has_value_alone(figure) and figure.row.value == rules.round_number(noisy_share(figure.noisy))


def _has_value_alone(figure: PublicFigure) -> bool:
    """Return whether a figure has neither interval, baseline nor reason."""
    row = figure.row
    return row.lower is None and row.upper is None and row.baseline is None and not row.reason
