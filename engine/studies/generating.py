"""Tables generated in the likeness of the data, by any synthesis method."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..errors import BadInput
from ..execution import as_column
from ..methods import Method, find
from ..microdata import Microdata
from ..results import Fit
from ..run import Run
from ..schema import Schema
from ..spec import Spec

__all__ = ["check_generator", "generated"]


def check_generator(key: str, schema: Schema, variables: Sequence[str], place: str) -> None:
    """BadInput when there is no such synthesis method, or it cannot make one of the variables."""
    method = find(key, f"{place}.generator", ("synthesis",))
    for name in variables:
        if method.targets and schema[name].kind not in method.targets:
            raise BadInput(f"{place}.generator", f'{key} cannot make "{name}", which is {schema[name].kind}')


def generated(
    data: Microdata,
    key: str,
    variables: Sequence[str],
    size: int,
    training: np.random.Generator,
    rng: np.random.Generator,
) -> Microdata:
    """``size`` records of the variables, each drawn given those before it, by a generator fitted to a bootstrap sample.

    ``training`` alone decides what the generator learns, ``rng`` what it draws. ``size`` is at most that of the data.
    """
    schema = Schema(tuple(data.schema[name] for name in variables))
    chosen = data.frame[list(variables)].iloc[training.integers(len(data), size=len(data))].reset_index(drop=True)
    sample = Microdata(schema, chosen)
    method = find(key, "", ("synthesis",))
    made = Microdata(schema, chosen, "synthetic")
    for place, name in enumerate(variables):
        spec = _spec(method, variables[:place], key)
        fit: Fit = method.func(sample, name, spec, Run(training.spawn(1)[0]), 1)
        assert method.draw is not None
        values = method.draw(fit, spec, name, sample, made, 0, rng.spawn(1)[0])
        made = made.with_columns({name: as_column(values, sample, schema[name], key)}, "synthetic")
    kept = np.sort(rng.choice(len(made), size, replace=False))
    return Microdata(schema, made.frame.iloc[kept].reset_index(drop=True))


def _spec(method: Method, before: Sequence[str], place: str) -> Spec:
    has_predictors = any(info.name == "predictors" for info in method.spec.params())
    return method.spec.from_table({"predictors": list(before)} if has_predictors else {}, place)
