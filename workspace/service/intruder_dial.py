"""Numbers of the intruder's dial: who is found in a run's release by who knows these variables, and how surely.

They are counted from the stored tables, for every set of the variables that the intruder may know.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.engine.adversary.kept_column_limits import KeptColumnLimits
from sfumato.engine.data.microdata import Microdata
from sfumato.engine.data.schema import Kind, Role
from sfumato.engine.errors import NotComputable
from sfumato.engine.matching.radius import Radius
from sfumato.engine.methods.labels import method_and_output
from sfumato.engine.methods.rows import Row
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.recipe.thresholds import Threshold
from sfumato.engine.risk.identification import IdentificationSpec
from sfumato.engine.studies._knowledge_counts import (
    KnowledgeCounts,
    KnownVariables,
    Windows,
    best_window_counts,
    combine_windows,
    count_found_people,
    count_in_windows,
    mean_counts,
)

from ..gate.kept_columns import columns_known_to_audience
from ..policy.policy import Policy, read_policy_of_workspace
from ..reporting.intruder_dial import (
    MOST_WINDOWS,
    DialLimits,
    DialNumbers,
    DialVariable,
    Reaches,
    increase_limit_text,
    ratio_limit_text,
    too_many_windows_text,
)
from ..store.artefacts import read_released_dataset
from ..store.runs import StoredRun, find_run, read_run_records
from ..store.workspace import Workspace
from ..views.results import read_result_rows

LEVELS = (0.5, 1.0, 2.0, 3.0)
"""Half widths within which the intruder may know a number, in steps of the variable."""
WINDOW_LEVELS, FEW_WINDOW_LEVELS = (*LEVELS, 5.0, 8.0), (1.0, 3.0)
"""Half widths of windows in which he may look for a drawn number, in steps of the variable; the few of larger runs."""
MOST_WINDOW_MATCHES = 120_000_000
"""Records times sets of variables times datasets times windows that are matched for the best windows."""
MOST_VARIABLES = 12
"""Variables that the dial turns; of more those that are stated as known come first, and the rest stays known."""
MOST_MATCHES, FEW_MATCHES = 60_000_000, 4_000_000
"""Records times sets of variables times datasets that are matched for the stated variables, and for more of them; of
larger runs fewer variables are turned.
"""
LEAST_VARIABLES = 4
NOT_LINKED = "no released row says whose it is"
"""Why nobody can be looked for in a release that does not say which record is whose."""
STEPS_IN_SPREAD = 8.0
"""A step is a round number of about this part of the standard deviation."""
NUMBERS = (Kind.COUNT, Kind.CONTINUOUS, Kind.DATE)
CERTAIN, EXPECTED = (
    ("largest_true_match_rate", "true_match_rate"),
    ("largest_expected_match_risk", "expected_match_risk"),
)
"""Outputs of identification whose limits are limits of the dial."""


def count_for_dial(directory: Path, run_id: int) -> DialNumbers:
    """Count who is found by who knows each set of variables. Raises NotFound and what reading the tables raises."""
    with Workspace.open(directory, read_only=True) as workspace:
        return _DialTables(workspace, run_id).count_all()


def count_unsure(directory: Path, run_id: int, wanted: tuple[Reaches, ...]) -> tuple[KnowledgeCounts, ...]:
    """Count who is found where variables are known within half widths, for each of the ``wanted``.

    Raises as ``count_for_dial``.
    """
    with Workspace.open(directory, read_only=True) as workspace:
        tables = _DialTables(workspace, run_id)
        return tuple(tables.count_within(dict(reaches)) for reaches in wanted)


class _DialTables:
    """Tables of a run, and what an intruder may know of them."""

    def __init__(self, workspace: Workspace, run_id: int) -> None:
        """Read the recipe and the confidential records."""
        self.workspace, self.run = workspace, find_run(workspace, run_id)
        self.recipe = self.run.recipe
        self.policy = read_policy_of_workspace(workspace.directory)
        self.confidential = self.recipe.recode_data(read_run_records(workspace, self.run))
        self.by_unit = self.confidential.units is not None
        self.datasets = _count_datasets(workspace, self.run)
        self.spec = _stated_knowledge(self.recipe)
        self.audience = self.policy.effective_audience(self.recipe.form.audience)
        self.names, self.others = self._split_variables()
        self._counted_windows: dict[tuple[Any, ...], dict[Windows, KnowledgeCounts]] = {}

    def _split_variables(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the variables that the dial turns, and those that the intruder knows in any case."""
        stated = self.spec.matched_variables
        quasi = self.recipe.schema.names_by_role(Role.QUASI_IDENTIFIER)
        first = [*(name for name in stated if name in quasi), *(name for name in stated if name not in quasi)]
        more = [name for name in self._other_variables() if name not in stated]
        turned = frozenset(first[: self._affordable_variables(MOST_MATCHES)])
        turned |= set(more[: max(0, self._affordable_variables(FEW_MATCHES) - len(turned))])
        # The order of the plan, which people know.
        ordered = [*(name for name in stated if name in turned), *(name for name in more if name in turned)]
        return tuple(ordered), tuple(name for name in stated if name not in turned)

    def _affordable_variables(self, matches: int) -> int:
        """Return how many variables have sets that take at most so many matches."""
        sets = matches / max(1, len(self.confidential) * self.datasets)
        return min(MOST_VARIABLES, max(LEAST_VARIABLES, int(math.log2(max(1.0, sets)))))

    def _other_variables(self) -> Iterator[str]:
        """Yield variables that somebody may know though the plan does not say so, those that are kept first."""
        recipe = self.recipe
        yield from columns_known_to_audience(recipe, self.audience)
        for variable in recipe.schema:
            # A drawn amount equals no true one, and the plan does not say how near is a match.
            if (
                variable.name in recipe.released
                and not variable.role.is_identifier
                and variable.kind is not Kind.CONTINUOUS
            ):
                yield variable.name

    @property
    def known_variables(self) -> KnownVariables:
        """Return what the intruder may know."""
        kept = columns_known_to_audience(self.recipe, self.audience) if self.recipe.origin == "synthetic" else ()
        return KnownVariables(self.names, self.others, self.spec.radius, kept, self._kept_limits)

    @property
    def _kept_limits(self) -> KeptColumnLimits | None:
        """Return the policy's limits on kept columns; None without, and for units, whose groups the gate counts."""
        limits = self.policy.audience_limits(self.audience).limits
        return None if self.by_unit or limits == KeptColumnLimits() else limits

    @property
    def _matches(self) -> int:
        """Return how many matches the sets of the variables take in all datasets."""
        return max(1, len(self.confidential) * self.datasets) << len(self.names)

    @property
    def _window_levels(self) -> tuple[float, ...]:
        """Return the half widths of windows in steps of a variable: fewer in a larger run, where each takes long."""
        return WINDOW_LEVELS if self._matches <= FEW_MATCHES else FEW_WINDOW_LEVELS

    @property
    def most_windows(self) -> int:
        """Return how many combinations of windows are counted at most."""
        return min(MOST_WINDOWS, MOST_WINDOW_MATCHES // self._matches)

    def count_all(self) -> DialNumbers:
        """Count who is found by who knows each set of variables surely."""
        units = self.confidential.units
        number = len(self.confidential) if units is None else len(units)
        noun = (self.recipe.data.rows or "people") if units is None else self.recipe.schema.unit_noun
        counts, reason = None, ""
        if not self.names:
            reason = "the plan names no variable that an intruder may know"
        else:
            try:
                counts = self.count_within({})
            except NotComputable as error:
                is_linked = all(one.linked for one in self._read_datasets())
                reason = error.reason if is_linked else NOT_LINKED
        variables = tuple(map(self._describe_variable, self.names))
        limits = self._find_limits(number, counts)
        most = self.most_windows
        return DialNumbers(self.run.id, variables, self.others, number, noun, limits, counts, reason, most)

    def count_within(self, within: dict[str, float]) -> KnowledgeCounts:
        """Count who is found where variables are known within some half widths. Raises NotComputable."""
        drawn = {name: reach for name, reach in within.items() if name in self.recipe.released}
        if drawn:
            return self._count_in_best_windows(drawn, {k: v for k, v in within.items() if k not in drawn})
        found = [
            count_found_people(self.confidential, released, self.known_variables, within, by_unit=self.by_unit)
            for released in self._read_datasets()
        ]
        if not found:
            raise NotComputable("the run has no released dataset")
        return mean_counts(found)

    def _count_in_best_windows(self, drawn: dict[str, float], within: dict[str, float]) -> KnowledgeCounts:
        """Count who is found in the best windows of ``drawn`` variables, others known within half widths."""
        choices = [(name, self._windows_from(name, reach)) for name, reach in drawn.items()]
        windows = combine_windows(*choices)
        if len(windows) > self.most_windows:
            raise NotComputable(too_many_windows_text(drawn))
        counted = [
            self._count_windows(draw, released, within, windows)
            for draw, released in enumerate(self._read_datasets(), 1)
        ]
        if not counted:
            raise NotComputable("the run has no released dataset")
        return best_window_counts(counted, windows)

    def _count_windows(
        self, draw: int, released: Microdata, within: dict[str, float], windows: Sequence[Windows]
    ) -> list[KnowledgeCounts]:
        """Count in each of some windows of one dataset; those that were counted before are known."""
        known = self._counted_windows.setdefault((draw, *within.items()), {})
        missing = [one for one in windows if one not in known]
        counts = count_in_windows(
            self.confidential, released, self.known_variables, within, missing, by_unit=self.by_unit
        )
        known.update(zip(missing, counts, strict=True))
        return [known[one] for one in windows]

    def _windows_from(self, name: str, reach: float) -> list[Radius]:
        """Return the windows of who knows a drawn variable within a half width, narrow ones first: none is narrower."""
        step = self._step_of(name)
        widths = sorted({reach, *(level * step for level in self._window_levels if level * step > reach)})
        found, own = [Radius(width) for width in widths], self.spec.radius.get(name)
        if own is None or own in found:
            return found
        if own.kind != "absolute":
            # A share of the value is no half width: only who knows the value itself may look in it.
            return found if reach else [found[0], own, *found[1:]]
        return sorted([*found, own], key=lambda one: one.amount) if own.amount >= reach else found

    def _read_datasets(self) -> Iterator[Microdata]:
        """Yield the released datasets."""
        for draw in range(1, self.datasets + 1):
            released = read_released_dataset(self.workspace, self.run.id, self.recipe, draw)
            if released is not None:
                yield released

    def _describe_variable(self, name: str) -> DialVariable:
        """Return a variable as the dial shows it."""
        radius, kind = self.spec.radius.get(name), self.recipe.schema[name].kind
        within = "" if radius is None else str(radius.written)
        reaches, is_drawn = self._reaches_of(name), name in self.recipe.released
        windows = len(self._windows_from(name, 0.0)) if is_drawn and len(reaches) > 1 else 0
        is_stated = name in self.spec.matched_variables
        return DialVariable(name, is_stated, reaches, within, kind is Kind.DATE, windows, is_drawn)

    def _step_of(self, name: str) -> float:
        """Return the round number in which half widths of a numeric variable grow."""
        return round_step(self.confidential.numbers(name), whole=self.recipe.schema[name].kind is not Kind.CONTINUOUS)

    def _reaches_of(self, name: str) -> tuple[float, ...]:
        """Return the half widths within which a number may be known; 0 alone for other variables.

        A kept number is known at least as the plan says. A drawn value misses the true one by chance, so that the plan's
        radius says how near is a match, and nothing of how surely the number is known.
        """
        if name in self.recipe.generalised or self.recipe.schema[name].kind not in NUMBERS:
            return (0.0,)
        radius, step = self.spec.radius.get(name), self._step_of(name)
        if name in self.recipe.released:
            return (0.0, *(level * step for level in LEVELS if level in self._window_levels and step))
        least = radius.amount if radius is not None and radius.kind == "absolute" else 0.0
        return (0.0, *(level * step for level in LEVELS if level * step > least))

    def _find_limits(self, number: int, counts: KnowledgeCounts | None) -> DialLimits:
        """Return the limits of the plan and the policy in people."""
        smallest, few = None, None
        if counts is not None and counts.few and self._kept_limits is not None:
            smallest, few = self._kept_limits.smallest_class, _allowed_unprotected(self.policy) * number
        expected, certain = self._plan_limit(EXPECTED, 1), self._plan_limit(CERTAIN, number)
        texts = {"expected": expected[1], "certain": certain[1]}
        return DialLimits(expected[0], certain[0], few, smallest, {k: text for k, text in texts.items() if text})

    def _plan_limit(self, outputs: Sequence[str], people: int) -> tuple[float | None, str]:
        """Return the least of the largest values that the plan allows of some outputs, in people; None without a limit.

        ``people`` is how many people one unit of the outputs stands for. The text is empty where the plan writes the limit
        itself; of one that compares with the confidential data it says with what.
        """
        limits: list[tuple[float, str]] = []
        for one in self.recipe.thresholds:
            method, output = method_and_output(one.value)
            if one.bound == "min" or not method or method.spec is not IdentificationSpec or output.name not in outputs:
                continue
            if one.bound == "max":
                limits.append((one.limit * people, ""))
            elif (value := self._confidential_value(one)) is not None:
                found = value * people
                limits.append(
                    (found * one.limit, ratio_limit_text(one.limit))
                    if one.bound == "max_ratio"
                    else (found + one.limit * people, increase_limit_text(one.limit * people))
                )
        return min(limits, key=lambda limit: limit[0], default=(None, ""))

    def _confidential_value(self, limit: Threshold) -> float | None:
        """Return the number of the confidential data with which a limit compares; None where there is none to compare.

        A ratio to 0 is not judged.
        """
        for row in self._result_rows:
            of_unit = row.params.get("by") == "unit"
            is_own = row.dataset == "confidential" and of_unit == self.by_unit
            if is_own and row.value and limit.applies_to(replace(row, dataset="synthetic")):
                return row.value
        return None

    @cached_property
    def _result_rows(self) -> list[Row]:
        """Return the numbers of the run."""
        return read_result_rows(self.workspace, self.run.id)


def round_step(numbers: np.ndarray, *, whole: bool) -> float:
    """Return a round number of about an eighth of the standard deviation, at least 2 for whole numbers; 0 if all are equal."""
    told = numbers[np.isfinite(numbers)]
    spread = float(np.std(told)) if len(told) else 0.0
    if spread == 0:
        return 0.0
    wanted = spread / STEPS_IN_SPREAD
    size = 10.0 ** math.floor(math.log10(wanted))
    step = min((size, 2 * size, 5 * size, 10 * size), key=lambda one: abs(math.log(one / wanted)))
    # Half a step is a level too.
    return max(2.0, step) if whole else step


def _count_datasets(workspace: Workspace, run: StoredRun) -> int:
    """Return the number of released datasets of a run."""
    query = "SELECT count(*) FROM artefact WHERE run_id = ? AND name LIKE 'draw/%'"
    return int(workspace.connection.execute(query, (run.id,)).fetchone()[0])


def _stated_knowledge(recipe: Recipe) -> IdentificationSpec:
    """Return what the plan says that the intruder knows, by its first measure of identification, else by the roles."""
    specs = [step.spec for step in recipe.measures if isinstance(step.spec, IdentificationSpec)]
    given = next((one for one in specs if not (one.has_file or one.among or one.targets)), None)
    if given is not None:
        return given.for_release(recipe.schema, recipe.released)
    quasi = recipe.schema.names_by_role(Role.QUASI_IDENTIFIER)
    drawn = [name for name in quasi if name in recipe.released and recipe.schema[name].kind is not Kind.CONTINUOUS]
    return IdentificationSpec(
        known=tuple(name for name in quasi if name not in recipe.released), synthesised=tuple(drawn)
    )


def _allowed_unprotected(policy: Policy) -> float:
    """Return the share of people that the policy allows to be unprotected in kept columns."""
    from ..gate.checks import KEPT_KEYS

    given = policy.findings.get(KEPT_KEYS)
    return 0.0 if given is None or given.block is None else given.block
