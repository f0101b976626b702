"""A calibration in plain text: what each measure of data quality is worth, and the errors with and without the thresholds."""

from __future__ import annotations

from collections.abc import Sequence

from sfumato.engine.published import Published, figure_beside
from sfumato.engine.rows import Row

from ..console import number, table

__all__ = ["calibration_table"]

AREAS = {"auc": "AUC", "average_precision": "AP"}
COUNTS = ("generators", "originals", "anonymisations")
ERRORS = {
    "lost": "lost (Type I)",
    "spurious": "spurious (Type II)",
    "sign_flip": "sign flipped",
    "errors": "any error",
}


def calibration_table(rows: Sequence[Row], published: Sequence[Published] = ()) -> str:
    """Areas with those of the worst and the best generator, the threshold suggested, and the share of errors.

    Published figures stand beside the numbers they belong to.
    """
    rows = [row for row in rows if row.level is None]
    scores = dict.fromkeys(row.params["score"] for row in rows if "score" in row.params)
    found = {(row.measure, row.params.get("score"), _whose(row)): row for row in rows}
    lines = [_measure_line(str(score), found, published) for score in scores]
    quoted = any(line[2] for line in lines)
    heads = ("measure", "AUC", "published", "by generator", "AP", "by generator", "good", "suggested threshold")
    kept = [place for place, head in enumerate(heads) if head != "published" or quoted]
    areas = table([heads[i] for i in kept], [[line[i] for i in kept] for line in lines], right=range(1, len(kept)))
    return "\n\n".join(filter(None, (_counts(rows), areas, _errors(rows, published))))


def _whose(row: Row) -> object:
    """Of all generators, the best or the worst; None in rows that say only the study's own setting of that name."""
    generators = row.params.get("generators")
    return generators if isinstance(generators, str) else None


def _counts(rows: Sequence[Row]) -> str:
    """``20 generators, 120 originals, 2,880 anonymisations``."""
    return ", ".join(
        f"{row.value:,.0f} {row.measure}" for row in rows if row.measure in COUNTS and row.value is not None
    )


def _measure_line(
    score: str, found: dict[tuple[str, object, object], Row], published: Sequence[Published]
) -> list[str]:
    line = [score]
    for area in AREAS:
        whole = found.get((area, score, "all"))
        ends = [found[area, score, end] for end in ("worst", "best") if (area, score, end) in found]
        line.append(_share(whole))
        if area == "auc":
            line.append(_quoted(whole, published))
        line.append(" .. ".join(map(_share, ends)))
    return [*line, *(_share(found.get((name, score, None))) for name in ("good", "suggested_threshold"))]


def _errors(rows: Sequence[Row], published: Sequence[Published]) -> str:
    counted = {(row.measure, bool(row.params["passed"])): row for row in rows if "passed" in row.params}
    tests = {passed: int(row.params["tests"]) for (_, passed), row in counted.items()}
    lines = [["tests", f"{tests.get(True, 0):,}", "", f"{tests.get(False, 0):,}", ""]]
    for measure, title in ERRORS.items():
        line = [title]
        for passed in (True, False):
            row = counted.get((measure, passed))
            line += [_percent(row.value if row else None), _quoted(row, published, percent=True)]
        lines.append(line)
    kept = [place for place in range(5) if place not in (2, 4) or any(line[place] for line in lines)]
    heads = ("share of tests in error", "tables that pass", "published", "the others", "published")
    return table([heads[i] for i in kept], [[line[i] for i in kept] for line in lines], right=range(1, len(kept)))


def _quoted(row: Row | None, published: Sequence[Published], *, percent: bool = False) -> str:
    figure = None if row is None else figure_beside(row, published)
    return "" if figure is None else _percent(figure) if percent else number(figure)


def _share(row: Row | None) -> str:
    return "-" if row is None or row.value is None else f"{row.value:.2f}"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.2%}"
