"""Tables generated in the likeness of the data, by any synthesis method."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ..errors import BadInput
from ..methods import Method, find
from ..microdata import Microdata, as_column
from ..results import Fit
from ..run import Run
from ..schema import Schema
from ..spec import Spec

__all__ = ["check_generator", "check_trainable", "generator_of"]

Tables = Callable[[int, np.random.Generator], Microdata]
Settings = Sequence[tuple[str, int]]


def check_generator(
    key: str, settings: Mapping[str, int], schema: Schema, variables: Sequence[str], place: str
) -> None:
    """BadInput when there is no such synthesis method, or it cannot make one of the variables, or has no such setting."""
    method = find(key, f"{place}.generator", ("synthesis",))
    for name in variables:
        if method.targets and schema[name].kind not in method.targets:
            raise BadInput(f"{place}.generator", f'{key} cannot make "{name}", which is {schema[name].kind}')
    _spec(method, variables[:-1], tuple(settings.items()), f"{place}.generator_settings")


def check_trainable(
    data: Microdata, key: str, settings: Mapping[str, int], variables: Sequence[str], place: str
) -> None:
    """BadInput when the generator cannot learn these variables of the data here: the method's own check, for each."""
    method = find(key, f"{place}.generator", ("synthesis",))
    for before, name in enumerate(variables):
        if method.check is not None:
            spec = _spec(method, variables[:before], tuple(settings.items()), place)
            method.check(data, name, spec, f"{place}.generator")


@lru_cache(maxsize=1)
def generator_of(data: Microdata, key: str, settings: Settings, variables: tuple[str, ...], seed: int) -> Tables:
    """A function of size and generator that draws tables of the variables, from a method fitted to a bootstrap sample.

    ``seed`` alone decides what it learns, the generator it is called with what it draws. A size is at most that of the data.
    The last one is kept: originals that share a generator, computed one after another, train it once.
    """
    rng = np.random.default_rng(seed)
    schema = Schema(tuple(data.schema[name] for name in variables))
    chosen = data.frame[list(variables)].iloc[rng.integers(len(data), size=len(data))].reset_index(drop=True)
    sample, method = Microdata(schema, chosen), find(key, "", ("synthesis",))
    run = Run(rng.spawn(1)[0])
    if method.tables is not None:
        found: Tables = method.tables(sample, _spec(method, (), settings, key), run)
        return found
    return _one_after_another(sample, method, settings, run)


def _one_after_another(sample: Microdata, method: Method, settings: Settings, run: Run) -> Tables:
    """Each variable is drawn given those before it."""
    names = sample.schema.names
    specs = [_spec(method, names[:place], settings, method.key) for place in range(len(names))]
    fits: list[Fit] = [
        method.fit(sample, name, spec, Run(run.rng.spawn(1)[0]), 1) for name, spec in zip(names, specs, strict=True)
    ]
    assert method.draw is not None
    draw = method.draw

    def make(size: int, rng: np.random.Generator) -> Microdata:
        made = Microdata(sample.schema, sample.frame, "synthetic")
        for name, spec, fit in zip(names, specs, fits, strict=True):
            values = draw(fit, spec, name, sample, made, 0, rng.spawn(1)[0])
            made = made.with_columns({name: as_column(values, sample, sample.schema[name], method.key)}, "synthetic")
        kept = np.sort(rng.choice(len(made), size, replace=False))
        return Microdata(sample.schema, made.frame.iloc[kept].reset_index(drop=True), "synthetic")

    return make


def _spec(method: Method, before: Sequence[str], settings: Settings, place: str) -> Spec:
    table: dict[str, Any] = dict(settings)
    if any(info.name == "predictors" for info in method.spec.params()):
        table["predictors"] = list(before)
    return method.spec.from_table(table, place)
