"""Which streams of random numbers a run has: what a keyed one is bound to beside seed, key and the path of its task.

Two runs of a workspace share random numbers only where they agree in all that makes their datasets, so that they make the
same ones. Were seed and path enough, two runs that differ in one record, or in one setting, would have the same noise in
nearly every place: who holds both releases takes one from the other, and what is left is the record, or the model without its
noise, though nobody but the workspace could repeat either (``tests/attacks/test_differences.py`` measures it).

Public streams are bound to nothing: the seed alone decides, as in earlier versions.
"""

from __future__ import annotations

import hashlib
import json

from ..data.microdata import Microdata
from ..methods.run import Randomness
from ..recipe.recipe import Recipe, Step

NOT_MADE_OF = (
    "title", "label", "description", "companions", "data", "weights", "measure", "study", "threshold", "published",
)  # fmt: skip
"""The parts of a recipe that change no dataset: where data and weights come from, which enter themselves, and what is said of the release."""

NOT_OF_VARIABLES = ("title", "labels", "missing")
"""What a recipe says of a variable that changes no dataset; codes of missing values have been read."""


def making_streams(recipe: Recipe, confidential: Microdata, key: bytes) -> Randomness:
    """The streams that fit, draw and anonymise: bound to the data, their weights, the variables, the steps, m, and all else that makes datasets.

    What a recipe measures and how it judges does not enter: with another measure a run makes the same datasets. Weights that are all 1
    are none.
    """
    bound_to = (confidential.sha256, _making(recipe), *_weights(confidential)) if key else ()
    return Randomness(recipe.seed, key, bound_to)


def measuring_streams(recipe: Recipe, confidential: Microdata, key: bytes) -> Randomness:
    """The streams of measures and studies: bound to the data alone.

    No number of theirs enters a dataset, and candidates for one release are compared by the same ones.
    """
    return Randomness(recipe.seed, key, (confidential.sha256,) if key else ())


def _weights(confidential: Microdata) -> tuple[str, ...]:
    weights = confidential.weights
    return () if weights is None else (hashlib.sha256(weights.astype("<f8").tobytes()).hexdigest(),)


def _making(recipe: Recipe) -> str:
    table = {name: part for name, part in recipe.to_table().items() if name not in NOT_MADE_OF}
    if recipe.synthesis:
        table["synthesis"] = [_of_step(step) for step in recipe.synthesis]
    table["release"] = {said: value for said, value in table["release"].items() if said != "order"}
    table["variables"] = [
        [name, {said: value for said, value in own.items() if said not in NOT_OF_VARIABLES}]
        for name, own in table["variables"].items()
    ]
    return hashlib.sha256(json.dumps(table, sort_keys=True).encode()).hexdigest()


def _of_step(step: Step) -> dict[str, object]:
    """What a step says of its dataset: not what else it leaves."""
    beside = {info.name for info in step.spec.params() if info.param.beside}
    return {said: value for said, value in step.to_table().items() if said not in beside}
