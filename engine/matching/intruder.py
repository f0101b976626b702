"""Intruder's knowledge about each confidential record, as keys and windows of the matching.

Noise models describe uncertain knowledge (Guo & Hu §4.3). Each takes confidential values R (n,), a level S of at least
0 and a random generator, and returns the intruder's beliefs R*. At S = 0 these are R, bit for bit. A missing value
stays missing. Each model draws the same numbers at every level, so that one generator gives comparable beliefs at all
levels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..data.arrays import Booleans, Floats
from ..data.microdata import Microdata
from ..data.schema import Kind, Role, Schema
from ..errors import BadInput, NotComputable
from ..statistics.score_interval import Z_95
from ..wording import agreeing_word, count_noun, format_number
from .matching import ExactKey, WindowKey
from .radius import Radius

NoiseModel = Literal["log_normal", "log_relative", "log_normal_constant", "relative", "misclassification", "unknown"]
NoiseOnNumbers = Callable[[Floats, float, np.random.Generator, bool], Floats]

_LARGEST_EXPONENT = 700.0
LARGEST_FLOAT = np.finfo(np.float64).max
BELIEF_WINDOWS = (0.5, 1.0, 2.0, 3.0)
"""Half widths of windows around a belief, in standard deviations; the belief alone is the papers' exact match."""


def log_normal_noise(values: Floats, level: float, rng: np.random.Generator, whole: bool) -> Floats:
    """Draw beliefs by eq. 11 to the letter: log R* ~ Normal(log R, S R), and R* = 0 if R = 0.

    ``whole`` rounds to integers, as counts need. Raises ValueError for a negative value.
    """
    # The standard deviation is S times R itself, not log R: at S = 0.01, 100 reviews are known to a factor of e.
    return _noise_on_log_scale(values, level, values, rng, whole)


def constant_log_normal_noise(values: Floats, level: float, rng: np.random.Generator, whole: bool) -> Floats:
    """Draw beliefs log R* ~ Normal(log R, S), with equal factors for all values; otherwise as ``log_normal_noise``."""
    return _noise_on_log_scale(values, level, np.ones_like(values), rng, whole)


def log_relative_noise(values: Floats, level: float, rng: np.random.Generator, whole: bool = False) -> Floats:
    """Draw beliefs log(1 + R*) ~ Normal(log(1 + R), S log(1 + R)), R* at least 0.

    Raises ValueError for a negative value.
    """
    noise = rng.standard_normal(len(values))
    _refuse_negative(values)
    if level == 0:
        return values.copy()
    logs = np.log1p(values)
    # This reading of eq. 11 reproduces the published Table 6. A belief is a point on the log scale and so is never
    # rounded.
    return np.expm1(np.clip(logs * (1 + level * noise), 0.0, _LARGEST_EXPONENT))


def relative_noise(values: Floats, level: float, rng: np.random.Generator, whole: bool) -> Floats:
    """Draw beliefs R* ~ Normal(R, S |R|), truncated at 0."""
    noise = rng.standard_normal(len(values))
    if level == 0:
        return values.copy()
    # The intruder knows the sign.
    believed = values * np.maximum(1 + level * noise, 0.0)
    return np.round(believed) if whole else believed


def misclassify(values: NDArray[Any] | pd.Series, level: float, rng: np.random.Generator) -> NDArray[Any]:
    """Replace each value with probability S, at most 1, by another occurring value, all equally likely."""
    _refuse_above_one(level)
    wrong = rng.random(len(values)) < level
    # Drawn for every value, so that the stream does not depend on the level.
    shift = rng.random(len(values))
    codes, distinct = pd.factorize(np.asarray(values), sort=False)
    others = len(distinct) - 1
    if others < 1 or level == 0:
        return np.array(values)
    moved = (codes + 1 + (shift * others).astype(np.int64)) % (others + 1)
    return np.where(wrong & (codes >= 0), distinct[moved], np.asarray(values))


def draw_unknown(values: NDArray[Any] | pd.Series, level: float, rng: np.random.Generator) -> Booleans:
    """Draw a mask (n,) of the records whose value is unknown, each with probability S of at most 1."""
    _refuse_above_one(level)
    return rng.random(len(values)) < level


NOISE_ON_NUMBERS: Mapping[str, NoiseOnNumbers] = MappingProxyType(
    {
        "log_normal": log_normal_noise,
        "log_relative": log_relative_noise,
        "log_normal_constant": constant_log_normal_noise,
        "relative": relative_noise,
    }
)


def example_of_noise(model: str, level: float) -> str:
    """Return what 95 % of the beliefs about some true values are at a level S of a noise model, in words.

    Empty for a level of 0 and for models whose level is a probability.
    """
    if level == 0 or model not in NOISE_ON_NUMBERS:
        return ""
    values = np.array([1.0, 10.0] if model == "log_normal" else [10.0])
    # Counts are rounded besides, which an example need not show.
    ends = np.round(_window_ends(values, model, level, Z_95), 2).T.tolist()
    said = ", and of ".join(
        f"{value:g} between {format_number(low)} and {format_number(high)}"
        for value, (low, high) in zip(values, ends, strict=True)
    )
    return f"he mostly (95 %) believes of a true {said}"


def _noise_on_log_scale(values: Floats, level: float, scale: Floats, rng: np.random.Generator, whole: bool) -> Floats:
    """Multiply positive values by exp(Normal(0, level * scale)); leave zeros and missing values unchanged."""
    # Drawn before anything can return, so that every level uses the same numbers.
    noise = rng.standard_normal(len(values))
    _refuse_negative(values)
    if level == 0:
        return values.copy()
    positive = values > 0
    if positive.all():
        believed = _multiply_by_noise(values, level * scale, noise)
    else:
        believed = values.copy()
        believed[positive] = _multiply_by_noise(values[positive], level * scale[positive], noise[positive])
    return np.round(believed, out=believed) if whole else believed


def _multiply_by_noise(values: Floats, spread: Floats, noise: Floats) -> Floats:
    """Multiply positive values by exp(spread * noise), (k,) each; ``noise`` is overwritten."""
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


class MatchTolerance(Protocol):
    """Distance within which a released value matches a confidential one: a radius, or common bins."""

    @property
    def written(self) -> int | float | str:
        """Return the form that a recipe contains."""
        ...

    def window(self, centre: Floats, /) -> tuple[Floats, Floats]:
        """Return the ends of closed windows around confidential values (n,), (n,) each; NaN if missing."""
        ...


def known_by_default(schema: Schema, released: Sequence[str]) -> tuple[str, ...]:
    """Return the quasi-identifiers that are not synthesised."""
    return tuple(name for name in schema.names_by_role(Role.QUASI_IDENTIFIER) if name not in released)


def check_radii(
    schema: Schema, released: Sequence[str], matched: Sequence[str], radius: Mapping[str, Radius], place: str
) -> None:
    """Raise BadInput if the matched variables and their radii do not fit."""
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
        # Synthetic continuous values never agree exactly.
        if schema[name].kind is Kind.CONTINUOUS and name in released and name not in radius:
            raise BadInput(
                f"{place}.radius", f'"{name}" is continuous and synthesised; say how near is a match: {name} = "5%"'
            )


def check_log_scale(data: Microdata, radius: Mapping[str, Radius], place: str) -> None:
    """Raise BadInput if a variable with a radius on the log scale has negative values."""
    for name, given in radius.items():
        if given.kind == "log_relative" and (below := int((data.numbers(name) < 0).sum())):
            raise BadInput(
                f"{place}.radius.{name}",
                f"{count_noun(below, 'record')} {agreeing_word(below, 'is', 'are')} negative; log(1 + value) needs values of at least 0",
            )


@dataclass(frozen=True, eq=False)
class IntruderKnowledge:
    """Confidential values that the intruder knows, to be matched with any number of datasets.

    A missing value matches a missing value only.

    confidential: confidential table of n records
    names: known variables
    windows: ends of the windows of variables with a radius, (n,) each
    """

    confidential: Microdata
    names: tuple[str, ...]
    windows: Mapping[str, tuple[Floats, Floats]]

    @classmethod
    def from_variables(
        cls, confidential: Microdata, names: Iterable[str], radius: Mapping[str, MatchTolerance]
    ) -> IntruderKnowledge:
        """Create the knowledge of these variables, each within its radius or bin, or exactly without one."""
        chosen = tuple(names)
        windows = {name: _finite_window(radius[name], confidential.numbers(name)) for name in chosen if name in radius}
        return cls(confidential, chosen, windows)

    def keys_and_windows(self, released: Microdata) -> tuple[list[ExactKey], list[WindowKey]]:
        """Return the exact keys and windows against a release whose row i belongs to record i.

        Raises NotComputable if records are not linked or were suppressed, and like ``unlinked_keys_and_windows``.
        """
        require_own_records(released)
        return self.unlinked_keys_and_windows(released)

    def keys_by_variable(self, released: Microdata) -> dict[str, ExactKey | WindowKey]:
        """Return the key or window of each variable by name. Raises NotComputable like ``keys_and_windows``."""
        exact, windows = self.keys_and_windows(released)
        left, within = iter(exact), dict(zip(self.windows, windows, strict=True))
        return {name: within[name] if name in within else next(left) for name in self.names}

    def unlinked_keys_and_windows(self, released: Microdata) -> tuple[list[ExactKey], list[WindowKey]]:
        """Return the exact keys and windows against any release.

        Raises NotComputable like ``require_equal_values`` for variables without a window.
        """
        exact = [name for name in self.names if name not in self.windows]
        for name in exact:
            require_equal_values(self.confidential, released, name)
        return [ExactKey(self.confidential.column(name), released.column(name)) for name in exact], [
            WindowKey.from_windows(*ends, self.confidential.missing_mask(name), released.numbers(name))
            for name, ends in self.windows.items()
        ]


def require_own_records(released: Microdata) -> None:
    """Raise NotComputable if released row i is not that of confidential record i."""
    released.require_linked()
    if suppressed := 0 if released.classes is None else int((released.classes < 0).sum()):
        raise NotComputable(
            f"{count_noun(suppressed, 'record')} {agreeing_word(suppressed, 'is', 'are')} suppressed, so records cannot be matched one to one"
        )


def require_equal_values(confidential: Microdata, released: Microdata, name: str) -> None:
    """Raise NotComputable if a variable was released so that no value equals a confidential one.

    These are class means of counts or binary variables, and dates without their times of day.
    """
    if released.origin == "anonymised" and confidential.schema[name].kind is not released.schema[name].kind:
        reason = f'"{name}" is released as class means, which equal no value: give it a radius or bins, or measure risk.anonymity'
        raise NotComputable(reason)
    if _lost_times_of_day(confidential, released, name):
        reason = f'"{name}" is released without its time of day, so that it equals no value: give it a radius or bins in days'
        raise NotComputable(reason)


def _lost_times_of_day(confidential: Microdata, released: Microdata, name: str) -> bool:
    """Return whether a date has times of day in the confidential data and none in the release."""
    if confidential.schema[name].kind is not Kind.DATE:
        return False
    ours, theirs = (data.column(name).dropna() for data in (confidential, released))
    return bool((ours != ours.dt.normalize()).any() and (theirs == theirs.dt.normalize()).all())


def _finite_window(radius: MatchTolerance, centre: Floats) -> tuple[Floats, Floats]:
    """Return the ends of the window around each value, (n,) each; NaN if the value is missing."""
    lower, upper = radius.window(centre)
    # Infinity stands for missing values (``WindowKey.from_windows``), which a finite value must not match.
    return lower, np.minimum(upper, LARGEST_FLOAT)


def draw_belief_windows(
    confidential: Microdata,
    name: str,
    radius: Radius | None,
    model: NoiseModel,
    level: float,
    rng: np.random.Generator,
) -> list[Callable[[Microdata], ExactKey | WindowKey]]:
    """Draw the intruder's beliefs about one variable, and return functions that match them with a release: exactly, then
    within each of ``BELIEF_WINDOWS``.

    A window is extended by the radius. Levels, and values that are known or unknown, have no windows. A missing value is
    believed to be missing, unless the intruder does not know the value.

    Args:
        confidential: n records.
        name: variable; numeric for noise models, categorical for misclassification.
        radius: how near a released value must be to the belief; equal to it without one.
        model: noise model.
        level: S of the model; at 0 the belief is the confidential value.
        rng: random generator of the belief.
    """
    if model == "misclassification":
        return [_misclassified_key(confidential.column(name), level, rng)]
    if model == "unknown":
        return [window_with_unknown(confidential, name, radius, draw_unknown(confidential.column(name), level, rng))]
    whole = confidential.schema[name].kind is Kind.COUNT
    believed = NOISE_ON_NUMBERS[model](confidential.numbers(name), level, rng, whole)
    believed = np.minimum(believed, LARGEST_FLOAT)
    missing = confidential.missing_mask(name)

    def window_around(times: float) -> Callable[[Microdata], WindowKey]:
        """Return the function that matches within ``times`` standard deviations of the belief."""
        low, high = (believed, believed) if times == 0 else _window_ends(believed, model, level, times)
        lower, upper = low, high
        if radius:
            # An open radius has no window around 0; the end of the belief's own window then stands.
            ends = _finite_window(radius, low)[0], _finite_window(radius, high)[1]
            lower, upper = ends if times == 0 else (np.fmin(ends[0], low), np.fmax(ends[1], high))
        return lambda released: WindowKey.from_windows(lower, upper, missing, released.numbers(name))

    return [window_around(times) for times in (0.0, *(BELIEF_WINDOWS if level else ()))]


def _window_ends(believed: Floats, model: str, level: float, times: float) -> tuple[Floats, Floats]:
    """Return the ends of the windows of ``times`` standard deviations around each belief, (n,) each."""
    # The intruder does not know the true value, so the belief replaces it in the standard deviation.
    if model == "relative":
        # The intruder knows the sign, as in the model.
        ends = believed * max(1 - times * level, 0.0), believed * (1 + times * level)
        return np.maximum(np.minimum(*ends), -LARGEST_FLOAT), np.minimum(np.maximum(*ends), LARGEST_FLOAT)
    if model == "log_relative":
        logs = np.log1p(believed)
        reach = times * level * logs
        ends = np.expm1(np.clip([logs - reach, logs + reach], 0.0, _LARGEST_EXPONENT))
        return np.minimum(ends[0], believed), np.maximum(ends[1], believed)
    spread = level * (believed if model == "log_normal" else 1.0)
    factor = np.exp(np.clip(times * spread, 0.0, _LARGEST_EXPONENT))
    with np.errstate(over="ignore"):
        return believed / factor, np.minimum(believed * factor, LARGEST_FLOAT)


def _misclassified_key(
    column: pd.Series, level: float, rng: np.random.Generator
) -> Callable[[Microdata], ExactKey | WindowKey]:
    """Draw misclassified levels and return the function that matches them exactly."""
    drawn = misclassify(np.where(column.isna(), np.nan, column.cat.codes), level, rng)
    codes = np.where(np.isnan(drawn), -1, drawn).astype(np.int64)
    believed = pd.Series(pd.Categorical.from_codes(codes, column.cat.categories, column.cat.ordered), name=column.name)
    return lambda released: ExactKey(believed, released.column(str(column.name)))


def window_with_unknown(
    confidential: Microdata, name: str, radius: MatchTolerance | None, lacking: Booleans
) -> Callable[[Microdata], WindowKey]:
    """Return the function that gives each record's window against a release.

    The window is unbounded for records ``lacking`` (n,) the value.
    """

    def match_window(released: Microdata) -> WindowKey:
        """Return the window of each record against a release."""
        if radius:
            ends = _finite_window(radius, confidential.numbers(name))
            known = WindowKey.from_windows(*ends, confidential.missing_mask(name), released.numbers(name))
        else:
            codes, released_codes = ExactKey(confidential.column(name), released.column(name)).equal_codes()
            known = WindowKey(codes.astype(np.float64), codes.astype(np.float64), released_codes.astype(np.float64))
        lower, upper = np.where(lacking, -np.inf, known.lower), np.where(lacking, np.inf, known.upper)
        return WindowKey(lower, upper, known.released)

    return match_window
