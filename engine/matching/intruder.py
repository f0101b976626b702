"""What an intruder knows of each confidential record, as keys and windows of the matching join.

Models of noise say what is believed where the knowledge is uncertain (Guo & Hu §4.3). Each takes confidential values R (n,), a level S of at least 0 and a generator, and returns what the intruder
believes, R*. At S = 0 that is R itself, bit for bit. A missing value stays missing. Each draws the same numbers
whatever the level, so that the same generator gives comparable answers at every level.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..data.arrays import Floats
from ..data.microdata import Microdata
from ..data.schema import Kind, Role, Schema
from ..errors import BadInput, NotComputable
from ..wording import agreeing_word, count_noun
from .matching import Exact, Within
from .radius import Radius

NoiseModel = Literal["log_normal", "log_relative", "log_normal_constant", "relative", "misclassification", "unknown"]
NoiseOnNumbers = Callable[[Floats, float, np.random.Generator, bool], Floats]

_LARGEST_EXPONENT = 700.0
LARGEST = np.finfo(np.float64).max
WINDOWS = (0.5, 1.0, 2.0, 3.0)
"""How many standard deviations of the uncertainty an intruder looks around a belief; 0, the belief alone, is the papers' exact match."""


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
    if level == 0:
        return values.copy()
    positive = values > 0
    if positive.all():
        believed = _moved(values, level * scale, noise)
    else:
        believed = values.copy()
        believed[positive] = _moved(values[positive], level * scale[positive], noise[positive])
    return np.round(believed, out=believed) if whole else believed


def _moved(values: Floats, spread: Floats, noise: Floats) -> Floats:
    """Positive values times the exponential of the spread's share of the noise, which is written over: all (k,)."""
    logs = np.log(values)
    noise *= spread
    logs += noise
    return np.exp(np.clip(logs, -_LARGEST_EXPONENT, _LARGEST_EXPONENT, out=logs), out=logs)


def _refuse_negative(values: Floats) -> None:
    if np.any(values < 0):
        raise ValueError("noise on the log scale needs values of at least 0")


def _refuse_above_one(level: float) -> None:
    if level > 1:
        raise ValueError(f"the level of this model is a probability, at most 1, not {level:g}")


class Nearness(Protocol):
    """How near a released value must be to a confidential one: a radius, or the bins that both must be in."""

    @property
    def written(self) -> int | float | str:
        """The form that a recipe carries."""
        ...

    def window(self, centre: Floats, /) -> tuple[Floats, Floats]:
        """The closed windows around all confidential values (n,), (n,) and (n,); NaN where one is missing."""
        ...


def known_by_default(schema: Schema, released: Sequence[str]) -> tuple[str, ...]:
    """The variables of role known whose values are not synthesised."""
    return tuple(name for name in schema.names_by_role(Role.QUASI_IDENTIFIER) if name not in released)


def check_radii(
    schema: Schema, released: Sequence[str], matched: Sequence[str], radius: Mapping[str, Radius], place: str
) -> None:
    """BadInput unless the matched variables and their radii fit each other.

    A continuous variable with synthetic values needs a radius, since they never agree exactly.
    """
    if not matched:
        raise BadInput(
            f"{place}.known", 'the intruder knows no variable; name some, or give variables the role "quasi_identifier"'
        )
    for name in radius:
        if name not in matched:
            raise BadInput(
                f"{place}.radius.{name}", f'"{name}" is not matched here; matched: {", ".join(dict.fromkeys(matched))}'
            )
        if schema[name].kind is Kind.DATE and radius[name].kind != "absolute":
            raise BadInput(f"{place}.radius.{name}", "a date has no share; give the radius in days, such as 5")
    for name in matched:
        if schema[name].kind is Kind.CONTINUOUS and name in released and name not in radius:
            raise BadInput(
                f"{place}.radius", f'"{name}" is continuous and synthesised; say how near is a match: {name} = "5%"'
            )


def check_log_scale(data: Microdata, radius: Mapping[str, Radius], place: str) -> None:
    """BadInput where a radius on the log scale meets a variable with negative values."""
    for name, given in radius.items():
        if given.kind == "log_relative" and (below := int((data.numbers(name) < 0).sum())):
            raise BadInput(
                f"{place}.radius.{name}",
                f"{count_noun(below, 'record')} {agreeing_word(below, 'is', 'are')} negative; log(1 + value) needs values of at least 0",
            )


@dataclass(frozen=True, eq=False)
class Knowledge:
    """Confidential values that the intruder knows, and the windows of those that have a radius: (n,) each.

    Prepared once, held against any number of released datasets. A missing value matches a missing value and nothing else.
    """

    confidential: Microdata
    names: tuple[str, ...]
    windows: Mapping[str, tuple[Floats, Floats]]

    @classmethod
    def of(cls, confidential: Microdata, names: Iterable[str], radius: Mapping[str, Nearness]) -> Knowledge:
        """Knowledge of these variables, each within its radius or bin, or exactly without one."""
        chosen = tuple(names)
        windows = {name: _window(radius[name], confidential.numbers(name)) for name in chosen if name in radius}
        return cls(confidential, chosen, windows)

    def against(self, released: Microdata) -> tuple[list[Exact], list[Within]]:
        """The keys that must agree and the windows that must hold for a released record to match, its own one row i.

        NotComputable where records are not linked or were suppressed, released record i then being no longer that of
        confidential record i, and like ``agreeing``.
        """
        require_own_records(released)
        return self.agreeing(released)

    def keys_against(self, released: Microdata) -> dict[str, Exact | Within]:
        """Return the key or the window of each variable by its name, as ``against`` has them. Raises NotComputable like it."""
        exact, windows = self.against(released)
        by_equality = [name for name in self.names if name not in self.windows]
        found: dict[str, Exact | Within] = dict(zip(by_equality, exact, strict=True))
        found.update(zip(self.windows, windows, strict=True))
        return {name: found[name] for name in self.names}

    def agreeing(self, released: Microdata) -> tuple[list[Exact], list[Within]]:
        """The same keys and windows, whosever the released records are.

        NotComputable where what was released agrees with no confidential value: class means of counts or binary variables,
        and dates without their times of day, unless there is a window.
        """
        exact = [Exact(self.confidential.column(n), released.column(n)) for n in self.names if n not in self.windows]
        for name in self.names:
            if name not in self.windows:
                require_equal_values(self.confidential, released, name)
        windows = [
            Within.among_missing(*ends, self.confidential.missing_mask(name), released.numbers(name))
            for name, ends in self.windows.items()
        ]
        return exact, windows


def require_own_records(released: Microdata) -> None:
    """Raises NotComputable unless released record i is that of confidential record i, as far as there is one."""
    released.require_linked()
    if suppressed := 0 if released.classes is None else int((released.classes < 0).sum()):
        raise NotComputable(
            f"{count_noun(suppressed, 'record')} {agreeing_word(suppressed, 'is', 'are')} suppressed, so records cannot be matched one to one"
        )


def require_equal_values(confidential: Microdata, released: Microdata, name: str) -> None:
    """Raises NotComputable where a variable was released so that no value equals a confidential one.

    Class means of counts or binary variables do not, nor dates without their times of day.
    """
    if released.origin == "anonymised" and confidential.schema[name].kind is not released.schema[name].kind:
        reason = f'"{name}" is released as class means, which equal no value: give it a radius or bins, or measure risk.anonymity'
        raise NotComputable(reason)
    if _lost_its_times(confidential, released, name):
        reason = f'"{name}" is released without its time of day, so that it equals no value: give it a radius or bins in days'
        raise NotComputable(reason)


def _lost_its_times(confidential: Microdata, released: Microdata, name: str) -> bool:
    """Whether a date has times of day in the confidential data and none in the release."""
    if confidential.schema[name].kind is not Kind.DATE:
        return False
    ours, theirs = (data.column(name).dropna() for data in (confidential, released))
    return bool((ours != ours.dt.normalize()).any() and (theirs == theirs.dt.normalize()).all())


def _window(radius: Nearness, centre: Floats) -> tuple[Floats, Floats]:
    """The window around each value, (n,) and (n,), of finite numbers; NaN where the value is missing."""
    lower, upper = radius.window(centre)
    return lower, np.minimum(upper, LARGEST)


def belief(
    confidential: Microdata,
    name: str,
    radius: Radius | None,
    model: NoiseModel,
    level: float,
    rng: np.random.Generator,
) -> Callable[[Microdata], Exact | Within]:
    """What the intruder believes about one variable, drawn once, to be held against any released dataset.

    A missing value is believed to be missing, unless the intruder does not know it at all.

    Args:
        confidential: n records.
        name: the variable; numbers for the models that add noise, levels for misclassification.
        radius: how near to the belief a released value has to be; exactly the belief without one.
        model: how the belief comes about.
        level: S of the model; at 0 the belief is the confidential value.
        rng: the belief's randomness.
    """
    return belief_windows(confidential, name, radius, model, level, rng)[0]


def belief_windows(
    confidential: Microdata,
    name: str,
    radius: Radius | None,
    model: NoiseModel,
    level: float,
    rng: np.random.Generator,
) -> list[Callable[[Microdata], Exact | Within]]:
    """Return the ways to match on one ``belief``: by the belief alone, then within each of ``WINDOWS`` around it, ever wider.

    A window ends at the radius around its own ends. Levels, and values that are known or unknown, have no window.
    """
    if model == "misclassification":
        return [_misclassified(confidential.column(name), level, rng)]
    if model == "unknown":
        return [partly_unknown(confidential, name, radius, unknown(confidential.column(name), level, rng))]
    whole = confidential.schema[name].kind is Kind.COUNT
    believed = NOISE_ON_NUMBERS[model](confidential.numbers(name), level, rng, whole)
    believed = np.minimum(believed, LARGEST)
    missing = confidential.missing_mask(name)

    def around(times: float) -> Callable[[Microdata], Within]:
        low, high = (believed, believed) if times == 0 else _around_belief(believed, model, level, times)
        lower, upper = low, high
        if radius:
            # An open radius has no window around 0; the end of the belief's own window then stands.
            ends = _window(radius, low)[0], _window(radius, high)[1]
            lower, upper = ends if times == 0 else (np.fmin(ends[0], low), np.fmax(ends[1], high))
        return lambda released: Within.among_missing(lower, upper, missing, released.numbers(name))

    return [around(times) for times in (0.0, *(WINDOWS if level else ()))]


def _around_belief(believed: Floats, model: NoiseModel, level: float, times: float) -> tuple[Floats, Floats]:
    """Return the ends of the windows of so many standard deviations around each belief, (n,) and (n,), on the scale of the model.

    The intruder knows the model and its level and not the true value, so the belief stands in for it in the standard deviation.
    """
    if model == "relative":
        # The intruder knows the sign, as the model has it.
        ends = believed * max(1 - times * level, 0.0), believed * (1 + times * level)
        return np.maximum(np.minimum(*ends), -LARGEST), np.minimum(np.maximum(*ends), LARGEST)
    if model == "log_relative":
        logs = np.log1p(believed)
        reach = times * level * logs
        ends = np.expm1(np.clip([logs - reach, logs + reach], 0.0, _LARGEST_EXPONENT))
        return np.minimum(ends[0], believed), np.maximum(ends[1], believed)
    spread = level * (believed if model == "log_normal" else 1.0)
    factor = np.exp(np.clip(times * spread, 0.0, _LARGEST_EXPONENT))
    with np.errstate(over="ignore"):
        return believed / factor, np.minimum(believed * factor, LARGEST)


def _misclassified(column: pd.Series, level: float, rng: np.random.Generator) -> Callable[[Microdata], Exact | Within]:
    drawn = misclassification(np.where(column.isna(), np.nan, column.cat.codes), level, rng)
    codes = np.where(np.isnan(drawn), -1, drawn).astype(np.int64)
    believed = pd.Series(pd.Categorical.from_codes(codes, column.cat.categories, column.cat.ordered), name=column.name)
    return lambda released: Exact(believed, released.column(str(column.name)))


def partly_unknown(
    confidential: Microdata, name: str, radius: Nearness | None, lacking: NDArray[np.bool_]
) -> Callable[[Microdata], Within]:
    """The window of each record against a release: any value for those ``lacking`` (n,) theirs, else as it is known."""

    def window(released: Microdata) -> Within:
        if radius:
            ends = _window(radius, confidential.numbers(name))
            known = Within.among_missing(*ends, confidential.missing_mask(name), released.numbers(name))
        else:
            codes, released_codes = Exact(confidential.column(name), released.column(name)).codes()
            known = Within(codes.astype(np.float64), codes.astype(np.float64), released_codes.astype(np.float64))
        lower, upper = np.where(lacking, -np.inf, known.lower), np.where(lacking, np.inf, known.upper)
        return Within(lower, upper, known.released)

    return window
