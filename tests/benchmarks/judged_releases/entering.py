"""A release with its confidential people, entered as the product enters one, and what the gate says of it.

Nothing here needs more of the package than version 1697ce64 has, so that an older checkout judges the same cases.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from importlib.util import find_spec
from typing import Any

from sfumato.engine.data.microdata import conform_to_schema
from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace.gate.contents import plan_release
from sfumato.workspace.gate.gate import Examination, Finding, examine_release
from sfumato.workspace.ingest.files import SourceFile
from sfumato.workspace.jobs.runs import enter_run
from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.policy.policy import Policy
from sfumato.workspace.store.workspace import Workspace

from .people import People
from .tables import Frame, N, Rng, Roles, X

KEY = sha256(b"a key of the benchmark").digest()
HAS_AUDIENCE = find_spec("sfumato.engine.methods.audience") is not None
"""Whether recipes of the package say who receives a release."""


@dataclass(frozen=True)
class Case:
    """A release to examine: its datasets, the people that a leak is about, and what its recipe says besides.

    ``kept`` are the columns that the recipe keeps, in the members' order; ``steps`` sections of a recipe that makes the release itself.
    ``audience`` is who receives it: a release that keeps true columns is honest towards users who may not look for people, not towards the public.
    ``assessment`` has sections of measures and limits in place of one measure of utility.
    """

    frames: Sequence[Frame] = ()
    people: int = 0
    roles: Roles | None = None
    kept: tuple[str, ...] = ()
    steps: Mapping[str, Any] = field(default_factory=dict)
    form: Mapping[str, Any] = field(default_factory=dict)
    members: Frame | None = None
    controls: Frame | None = None
    audience: str = "public"
    assessment: Mapping[str, Any] = field(default_factory=dict)


Maker = Callable[[People], Case | None]


def recipe_of(title: str, roles: Roles, case: Case) -> Recipe:
    """Return the recipe of a case; ``roles`` are those of its table where it has none of its own."""
    roles = case.roles or roles
    variables = {name: {"kind": kind, **({"role": role} if role else {})} for name, (kind, role) in roles.items()}
    table: dict[str, Any] = {
        "title": title,
        "data": {"file": "people.csv", "holdout": "held_out"},
        "variables": variables,
        "release": {"m": max(1, len(case.frames)), "seed": 1},
        "measure": [{"method": "utility.ecdf"}],
        **case.steps,
    }
    if "anonymisation" in case.steps:
        table["release"] = {"seed": 1}
        table["measure"] = [{"method": "risk.anonymity"}]
    elif not case.steps:
        released = [name for name in roles if name not in case.kept]
        order = "original" if case.kept else "shuffled"
        table["release"] |= {"released": released, "order": order, **case.form}
    if HAS_AUDIENCE:
        table["release"]["audience"] = case.audience
    released = table["release"].get("released", [step["target"] for step in case.steps.get("synthesis", [])])
    if case.form:
        table["measure"] = [{"method": "quality.non_suppressed"}]
    elif "anonymisation" not in case.steps and not any(roles[name][0] in (N, X) for name in released):
        table["measure"] = [{"method": "utility.distribution_distance"}]
    return Recipe.from_table({**table, **case.assessment})


@dataclass(frozen=True)
class GateVerdict:
    """What the gate says of a release: its findings, and the seconds of the run and of the gate."""

    examination: Examination
    run_seconds: float
    gate_seconds: float

    def named(self, status: str, without: set[str]) -> tuple[str, ...]:
        """Return the keys of the findings of a status."""
        return tuple(one.check for one in self.findings(without) if one.status == status)

    def findings(self, without: set[str]) -> list[Finding]:
        """Return the findings of all checks but some."""
        return [one for one in self.examination.findings if one.check not in without]


def enter_and_examine(
    workspace: Workspace, recipe: Recipe, members: Frame, controls: Frame, frames: Sequence[Frame]
) -> GateVerdict:
    """Enter released frames beside their members and hold-out records, compute what the recipe measures, and examine the release."""
    names = list(recipe.schema.names)
    started = time.perf_counter()
    data = conform_to_schema(members[names], recipe.schema).with_controls(
        conform_to_schema(controls[names], recipe.schema)
    )
    given = []
    for i, frame in enumerate(frames):
        made = conform_to_schema(frame[names], recipe.released_schema, origin=recipe.origin)
        made = replace(made, linked=recipe.linked, generalised=recipe.generalised)
        given.append((SourceFile(f"release-{i}.csv", f"{i}".encode()), made))
    run = enter_run(workspace, recipe, SourceFile("people.csv", recipe.title.encode()), data, external_datasets=given)
    run_worker(workspace.directory, idle=0)
    entered = time.perf_counter()
    examination = examine_release(workspace, plan_release(workspace, run), Policy())
    return GateVerdict(examination, entered - started, time.perf_counter() - entered)


def shuffle_rows(frame: Frame, rng: Rng) -> Frame:
    """Return the rows in an order that says nothing."""
    return frame.iloc[rng.permutation(len(frame))].reset_index(drop=True)
