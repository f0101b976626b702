"""The synthesisers that a study compares: methods with their settings, and the recipe's own synthesis step.

A synthesiser is written as in a step, its method and what differs from the defaults: ``perturbed_gibbs reset=true block=10``.
``step`` is the recipe's own step with all its settings, of which nothing but epsilon is changed, or what is written after it:
``step reset=false``. Epsilon is that of one drawn record. A method without a privacy account has none, and makes the same at every epsilon.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Self

import numpy as np

from ..data.microdata import Microdata, as_column
from ..data.schema import Schema
from ..design.binning import Binning
from ..errors import BadInput
from ..methods.privacy import NoAccount, PrivacyAccount
from ..methods.registry import Method, find
from ..methods.results import Fit
from ..methods.run import Run
from ..methods.spec import Made, Spec

_WRITTEN = re.compile(r"\s*([A-Za-z_][\w.]*)((?:\s+\w+=\S+)*)\s*")
STEP = "step"
"""How a recipe writes its own synthesis step."""
Bins = tuple[tuple[str, Binning], ...]
"""How a study cuts numbers, by variable."""


@dataclass(frozen=True, slots=True)
class Synthesiser:
    """A synthesis method by its key and the settings that differ from its defaults.

    Of the recipe's own step ``settings`` are what is changed of it, ``step`` is its table as JSON with these, and ``targets`` what it
    makes, in its order; the last two are empty for another.
    """

    key: str
    settings: tuple[tuple[str, Any], ...] = ()
    step: str = ""
    targets: tuple[str, ...] = ()

    @classmethod
    def parse(cls, value: object) -> Self:
        """From ``perturbed_gibbs reset=true block=10``, or ``step``. Raises ValueError."""
        found = _WRITTEN.fullmatch(value) if isinstance(value, str) else None
        if found is None:
            raise ValueError(
                f'{value!r} is no synthesiser: write "perturbed_gibbs", "perturbed_gibbs reset=true block=10" or "{STEP}"'
            )
        settings = [part.partition("=") for part in found[2].split()]
        try:
            read = tuple((name, tomllib.loads(f"value = {text}")["value"]) for name, _, text in settings)
        except tomllib.TOMLDecodeError:
            raise ValueError(
                f'{value!r}: a setting is written as in a recipe, such as block=10 or order="recipe"'
            ) from None
        key = found[1] if "." in found[1] or found[1] == STEP else f"synthesis.{found[1]}"
        return cls(key, read)

    @property
    def own(self) -> bool:
        """Whether it is the recipe's own step."""
        return self.key == STEP or bool(self.step)

    @property
    def written(self) -> str:
        """As a recipe writes it."""
        head = STEP if self.own else self.key.removeprefix("synthesis.")
        return " ".join([head, *(f"{name}={_toml(value)}" for name, value in self.settings)])

    @property
    def name(self) -> str:
        """What rows and pictures call it: ``step: perturbed_gibbs`` for the recipe's own."""
        return f"{self.written}: {self.key.removeprefix('synthesis.')}" if self.step else self.written

    @property
    def table(self) -> dict[str, Any]:
        """Its settings as a step's table has them."""
        return dict(json.loads(self.step)) if self.step else dict(self.settings)

    def resolved(self, steps: Sequence[Made]) -> Synthesiser:
        """The recipe's own step in place of ``step``, where there is one step and no more; else itself."""
        if not self.own:
            return self
        if len(steps) != 1:
            return Synthesiser(STEP, self.settings)
        ((key, targets, spec),) = steps
        return Synthesiser(key, self.settings, json.dumps({**spec.to_table(), **dict(self.settings)}), targets)

    def method(self, place: str) -> Method:
        """The method, which must make several variables at once. Raises BadInput."""
        if self.key == STEP:
            raise BadInput(
                place, f'"{STEP}" is the recipe\'s own synthesis step, and the recipe does not have exactly one'
            )
        found = find(self.key, place, ("synthesis",))
        if not found.joint:
            raise BadInput(place, f"{self.key} makes one variable at a time; name a method that makes whole records")
        return found

    def has_epsilon(self, place: str) -> bool:
        """Whether its method keeps a privacy account. Raises BadInput."""
        return self.method(place).account is not None

    def spec(self, epsilon: float, variables: Sequence[str], bins: Bins, place: str) -> Spec:
        """Its settings at an epsilon, with the study's bins where it says none of its own. Raises BadInput."""
        kind = self.method(place).spec
        known = {info.name for info in kind.params()}
        cut = {name: rule.written for name, rule in bins if name in variables}
        table: dict[str, Any] = {"bins": cut} if cut and "bins" in known else {}
        table |= self.table
        if self.has_epsilon(place):
            table["epsilon"] = epsilon
        return kind.from_table(table, place)

    def priced(self, data: Microdata, epsilon: float, records: int, bins: Bins, place: str) -> Spec:
        """The settings with which a record costs ``epsilon``: what a dataset costs is in proportion to the setting. Raises BadInput."""
        names = self.targets or data.schema.names
        account = self.method(place).account
        unit = self.spec(1.0, names, bins, place)
        if account is None:
            return unit
        cost = account(data, names, unit, records, 1)
        if isinstance(cost, NoAccount):
            raise BadInput(place, cost.reason)
        return self.spec(epsilon * records / cost.noise, names, bins, place)

    def check(self, schema: Schema, variables: Sequence[str], bins: Bins, place: str) -> None:
        """BadInput where its settings are wrong, or it is a step that does not make just these variables."""
        spec = self.spec(1.0, variables, bins, place)
        spec.check(schema, place)
        if self.own and set(self.targets) != set(variables):
            raise BadInput(
                place, f"the recipe's step makes {', '.join(self.targets)}: name the same under variables of the study"
            )
        for _, column, any_order in spec.columns_named(schema, place):
            if any_order:
                continue
            raise BadInput(place, f'it keeps "{column}"; the study compares methods that make every variable anew')

    def drawn(
        self, data: Microdata, fit: Fit, spec: Spec, index: int, rng: np.random.Generator, records: int
    ) -> Microdata:
        """A dataset of so many records, which are nobody's."""
        names = self.targets or data.schema.names
        values = self.method("").drawn(fit, spec, names, data, data, index, rng, records)
        columns = {n: as_column(values[n], data, data.schema[n], self.key) for n in data.schema.names}
        return replace(data.with_columns(columns, "synthetic"), linked=False)

    def cost(self, data: Microdata, spec: Spec, records: int) -> PrivacyAccount | NoAccount:
        """What a dataset of so many records costs with these settings."""
        account = self.method("").account
        if account is None:
            return NoAccount("the method has no epsilon: it is the same at each")
        return account(data, self.targets or data.schema.names, spec, records, 1)


def _toml(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else f'"{value}"' if isinstance(value, str) else str(value)


def narrowed(data: Microdata, names: tuple[str, ...]) -> Microdata:
    """The data with these variables alone, in this order."""
    schema = Schema(tuple(data.schema[name] for name in names))
    return Microdata(schema, data.frame[list(names)])


@lru_cache(maxsize=8)
def learned(
    confidential: Microdata, one: Synthesiser, variables: tuple[str, ...], bins: Bins, seed: int
) -> tuple[Microdata, Fit]:
    """The data of the variables, and what a synthesiser learns of them, whatever the epsilon.

    The last are kept: an epsilon later it is the same.
    """
    data = narrowed(confidential, variables)
    names = one.targets or variables
    fit = one.method("").fit(data, names, one.spec(1.0, names, bins, one.key), Run(np.random.default_rng(seed)), 1)
    return data, fit


def bins_key(bins: Mapping[str, Binning], variables: Sequence[str]) -> Bins:
    """The rules of these variables as a value that can be looked up."""
    return tuple((name, rule) for name, rule in bins.items() if name in variables)
