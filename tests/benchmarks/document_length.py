"""Words and printed pages of the risk assessment before its annex: python tests/benchmarks/document_length.py [FOLDER].

Runs the shipped recipes that need no file and the three releases of ``three_releases.py``, and prints a line each. FOLDER keeps the packages.
Pages are of 50 lines of 66 characters (``page_length``); where WeasyPrint is installed, those that it prints stand beside them.
"""

from __future__ import annotations

import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "prepared"))

from page_length import count_pages, count_words, pages_before_annex
from three_releases import make_releases, run_command

RECIPES = ("anes96", "households", "panel", "randhie")
"""Shipped recipes whose data ship with Sfumato or with statsmodels, and that run in about a minute."""
MOST_WORDS, MOST_PAGES = 1_000, 4


def make_packages(folder: Path) -> list[Path]:
    """Make the releases and return the pages with their assessments."""
    make_releases(folder)
    for name in RECIPES:
        workspace = ["-w", str(folder / f"workspace-of-{name}")]
        run_command(["run", name, *workspace], (0, 1))
        run_command(
            [
                "release",
                "1",
                "-o",
                str(folder / f"recipe-{name}"),
                "--reason",
                "The length of its documents is measured",
                *workspace,
            ]
        )
    return sorted(folder.glob("*/internal/risk-assessment.html"))


def printed_pages(page: str) -> str:
    """Return the number of pages that WeasyPrint prints; a dash where it is not installed."""
    if find_spec("weasyprint") is None:
        return "-"
    import weasyprint

    return str(len(weasyprint.HTML(string=page).render().pages))


def main(folder: Path) -> int:
    """Print words and pages of each release; return 1 where one is too long."""
    is_too_long = False
    print(
        f"{'release':18} {'words':>6} {'pages':>6} {'printed':>8}   before the annex; at most {MOST_WORDS:,} and {MOST_PAGES}"
    )
    for path in make_packages(folder):
        before = pages_before_annex(path.read_text("utf-8"))
        words, pages = count_words(before), count_pages(before)
        is_too_long |= words > MOST_WORDS or pages > MOST_PAGES
        print(f"{path.parts[-3]:18} {words:6,} {pages:6} {printed_pages(before):>8}")
    return int(is_too_long)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        raise SystemExit(main(Path(sys.argv[1])))
    with tempfile.TemporaryDirectory() as made:
        raise SystemExit(main(Path(made)))
