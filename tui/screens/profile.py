"""One variable as a picture and two lines of text."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from sfumato.engine.schema import Kind, Variable
from sfumato.workspace.plots.series import Series
from sfumato.workspace.reporting.words import mark, number

if TYPE_CHECKING:
    from sfumato.workspace.ingest.profiles import Profile
    from sfumato.workspace.views.data_view import VariableLine

__all__ = ["summary", "variable_series"]

MOST_BARS = 60
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def variable_series(variable: Variable, profile: Profile) -> tuple[Series, dict[str, Any]]:
    """A bar a bin or level, of many levels the most frequent ones; and what names the places of the axis."""
    if not profile.levels:
        centres = [start + profile.width / 2 for start in profile.starts]
        return Series("records", centres, profile.counts, marker="bars"), {}
    order = range(len(profile.levels))
    if len(profile.levels) > MOST_BARS:
        order = sorted(order, key=lambda i: -profile.counts[i])[:MOST_BARS]  # type: ignore[assignment]
    names = [variable.labels.get(profile.levels[i], profile.levels[i]) if profile.counts[i] else "" for i in order]
    return Series("records", range(len(names)), [profile.counts[i] for i in order], marker="bars"), {"x_names": names}


def summary(line: VariableLine) -> tuple[str, str]:
    """What the picture cannot say: what is wrong, or how many values; quantiles or what was withheld."""
    profile = line.profile
    if profile is None:
        return f"{mark('fail')} {line.problem}", ""
    withheld = f"{profile.withheld:,} bars of one or two records are not shown" if profile.withheld else ""
    counts = f"{line.variable.name}: {profile.records:,} records, {profile.distinct:,} different values"
    said = [f"{mark('fail')} {line.problem}"] if line.problem else [counts, withheld]
    return " · ".join(part for part in said if part), _quantiles(line.variable, profile)


def _quantiles(variable: Variable, profile: Profile) -> str:
    if not profile.quantiles:
        return ""
    dated = variable.kind is Kind.DATE
    shares = [f"{p * 100:.0f} % {_day(q) if dated else number(q)}" for p, q in profile.quantiles]
    moments = "" if dated else f" · mean {number(profile.mean)}, sd {number(profile.sd)}"
    return f"quantiles {'  '.join(shares)}{moments}"


def _day(days: float) -> str:
    return (EPOCH + timedelta(days=days)).strftime("%Y-%m-%d")
