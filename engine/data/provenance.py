"""How a release came about: what intervals, references and audits must know of it beside its tables.

A ``ReleaseProvenance`` is derived once from a recipe, the sizes of the data and the declarations of the methods
(``sfumato.engine.recipe.provenance``). Whoever computes an interval about the population, or bounds what a reader can
know, takes it as a required argument: a rule without it would have to guess.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

Parameters = Literal["drawn", "estimated", "unknown"]
"""How the datasets get the parameters of a model: drawn anew for each, one estimate for all, or not declared."""


@dataclass(frozen=True, slots=True)
class FitUncertainty:
    """Uncertainty of the fit of a synthesis step, and the part of it that its datasets show.

    parameters: whether each dataset has parameters drawn from their posterior, or all share one estimate
    shared_error: an error that all datasets share, so that no difference between them shows it, in words as "noise was
        added to the tables once"; empty without one
    noisy_domain: variables whose levels or range noise found, so that values beyond them are left out
    """

    parameters: Parameters
    shared_error: str = ""
    noisy_domain: tuple[str, ...] = ()


UNDECLARED_FIT = FitUncertainty("unknown")
"""The fit of a method that declares nothing."""


@dataclass(frozen=True, slots=True)
class StepProvenance:
    """Variables that a synthesis step made, and how uncertain its fit is.

    variables: names of the variables
    fit: uncertainty of the fit
    """

    variables: tuple[str, ...]
    fit: FitUncertainty


@dataclass(frozen=True, slots=True)
class ReleaseProvenance:
    """Description of how a release came about.

    origin: whether its values were synthesised or anonymised
    records: confidential records that it was made from, n
    rows: rows of each of the m datasets, (m,)
    steps: its synthesis steps; empty where another program made it
    kept: released variables that keep their confidential values
    has_survey_design: whether records represent a population by a survey weight or a design
    has_record_weights: whether some records had less influence on the fits
    published: what is published beside the datasets, of "protected tables" and "figures of utility"
    """

    origin: Literal["synthetic", "anonymised"]
    records: int
    rows: tuple[int, ...]
    steps: tuple[StepProvenance, ...]
    kept: tuple[str, ...]
    has_survey_design: bool = False
    has_record_weights: bool = False
    published: tuple[str, ...] = ()

    @property
    def size_ratios(self) -> tuple[float, ...]:
        """Return n_syn / n of each dataset, (m,)."""
        return tuple(rows / max(self.records, 1) for rows in self.rows)

    @property
    def is_full_synthesis(self) -> bool:
        """Return whether synthesis steps made every released variable."""
        return bool(self.steps) and not self.kept

    @property
    def parameters(self) -> Parameters:
        """Return how the steps get their parameters; "unknown" where they differ or where there are none."""
        kinds = {step.fit.parameters for step in self.steps}
        return kinds.pop() if len(kinds) == 1 else "unknown"

    @property
    def shared_errors(self) -> tuple[str, ...]:
        """Return the distinct errors that all datasets share."""
        return tuple(dict.fromkeys(step.fit.shared_error for step in self.steps if step.fit.shared_error))

    @property
    def noisy_domain(self) -> tuple[str, ...]:
        """Return the variables whose levels or range noise found."""
        return tuple(name for step in self.steps for name in step.fit.noisy_domain)

    def select_datasets(self, draws: Sequence[int]) -> ReleaseProvenance:
        """Return the description of some of the datasets, numbered from 1."""
        return replace(self, rows=tuple(self.rows[draw - 1] for draw in draws))
