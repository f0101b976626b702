"""What an intruder believes about a variable when the knowledge is uncertain (Guo & Hu §4.3).

Every model takes confidential values R (n,), a level S of at least 0 and a generator, and returns what the intruder
believes, R*. At S = 0 that is R itself, bit for bit. A missing value stays missing. Each draws the same numbers
whatever the level, so that the same generator gives comparable answers at every level.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

__all__ = [
    "NOISE_ON_NUMBERS",
    "NoiseModel",
    "log_normal",
    "log_normal_constant",
    "log_relative",
    "misclassification",
    "relative",
    "unknown",
]

NoiseModel = Literal["log_normal", "log_relative", "log_normal_constant", "relative", "misclassification", "unknown"]
Floats = NDArray[np.float64]
NoiseOnNumbers = Callable[[Floats, float, np.random.Generator, bool], Floats]

_LARGEST_EXPONENT = 700.0


def log_normal(values: Floats, level: float, rng: np.random.Generator, whole: bool) -> Floats:
    """Eq. 11 to the letter: log R* ~ Normal(log R, S R), R* = 0 where R = 0.

    The standard deviation is S times R itself, not log R: 100 reviews at S = 0.01 are known to a factor of e.
    ``whole`` rounds to whole numbers, as counts need. Raises ValueError for a negative value.
    """
    return _on_log_scale(values, level, values, rng, whole)


def log_normal_constant(values: Floats, level: float, rng: np.random.Generator, whole: bool) -> Floats:
    """Log R* ~ Normal(log R, S): the same spread of factors for all values; otherwise as ``log_normal``."""
    return _on_log_scale(values, level, np.ones_like(values), rng, whole)


def log_relative(values: Floats, level: float, rng: np.random.Generator, whole: bool = False) -> Floats:
    """Log(1 + R*) ~ Normal(log(1 + R), S log(1 + R)), R* at least 0, to be matched within a radius on the log scale.

    The reading of eq. 11 that reproduces the published Table 6. The belief is a place on the scale, not a value of
    the variable, so it is never rounded. Raises ValueError for a negative value.
    """
    noise = rng.standard_normal(len(values))
    _refuse_negative(values)
    if level == 0:
        return values.copy()
    logs = np.log1p(values)
    return np.expm1(np.clip(logs * (1 + level * noise), 0.0, _LARGEST_EXPONENT))


def relative(values: Floats, level: float, rng: np.random.Generator, whole: bool) -> Floats:
    """R* ~ Normal(R, S |R|). A draw beyond 0 is 0: the intruder knows the sign."""
    noise = rng.standard_normal(len(values))
    if level == 0:
        return values.copy()
    believed = values * np.maximum(1 + level * noise, 0.0)
    return np.round(believed) if whole else believed


def misclassification(values: NDArray[Any] | pd.Series, level: float, rng: np.random.Generator) -> NDArray[Any]:
    """With probability S another of the values that occur, each equally likely. S is at most 1."""
    _refuse_above_one(level)
    wrong = rng.random(len(values)) < level
    shift = rng.random(len(values))
    codes, distinct = pd.factorize(np.asarray(values), sort=False)
    others = len(distinct) - 1
    if others < 1 or level == 0:
        return np.array(values)
    moved = (codes + 1 + (shift * others).astype(np.int64)) % (others + 1)
    return np.where(wrong & (codes >= 0), distinct[moved], np.asarray(values))


def unknown(values: NDArray[Any] | pd.Series, level: float, rng: np.random.Generator) -> NDArray[np.bool_]:
    """True for the records, each with probability S, whose value the intruder does not know at all. S is at most 1."""
    _refuse_above_one(level)
    return rng.random(len(values)) < level


NOISE_ON_NUMBERS: Mapping[str, NoiseOnNumbers] = MappingProxyType(
    {
        "log_normal": log_normal,
        "log_relative": log_relative,
        "log_normal_constant": log_normal_constant,
        "relative": relative,
    }
)


def _on_log_scale(values: Floats, level: float, scale: Floats, rng: np.random.Generator, whole: bool) -> Floats:
    """Positive values times the exponential of Normal(0, level scale); the others as they are."""
    noise = rng.standard_normal(len(values))
    _refuse_negative(values)
    believed = values.copy()
    if level == 0:
        return believed
    positive = values > 0
    logs = np.log(values[positive]) + level * scale[positive] * noise[positive]
    believed[positive] = np.exp(np.clip(logs, -_LARGEST_EXPONENT, _LARGEST_EXPONENT))
    return np.round(believed) if whole else believed


def _refuse_negative(values: Floats) -> None:
    if np.any(values < 0):
        raise ValueError("noise on the log scale needs values of at least 0")


def _refuse_above_one(level: float) -> None:
    if level > 1:
        raise ValueError(f"the level of this model is a probability, at most 1, not {level:g}")
