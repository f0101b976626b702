"""What the gate says of releases that nobody tuned it to: python tests/benchmarks/judge.py --half develop|heldout [--cases N] [--seed S].

    python tests/benchmarks/judge.py --half develop --cases 100 --out develop.jsonl                      the gate of this checkout
    python tests/benchmarks/judge.py --half develop --cases 100 --out before.jsonl --judge CHECKOUT      that of another, on the same cases
    python tests/benchmarks/judge.py --report develop.jsonl before.jsonl                                  both beside each other

Cases are dealt by this checkout from families with random parameters (``judged_releases``): honest releases and leaks in turn. The tables of the two
halves are named in ``judged_releases/tables.py``: the gate is developed on one, the other is for the report. A release is blocked where any finding
blocks that is about the release or about people, measures and limits of a draft (by the version that judges) included, which one case in eight has; that a recipe without
measures measured nothing is none. No case keeps a column, so that it does not matter who receives it. ``--out`` gets a line of JSON a case,
and a second call judges only what is missing there or is dealt otherwise by now. Which checks fired is printed for the half that is developed on; for the other only with ``--checks``.
"""

from __future__ import annotations

import argparse
import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from judged_releases.dealing import DealtCase, deal_case
from judged_releases.gate_process import HERE, Judge, name_checkout
from judged_releases.summary import print_summary
from judged_releases.tables import HALVES


def give_case(case: DealtCase) -> dict[str, Any]:
    """Return what a judge is given of a case, in plain values."""
    return {
        "title": case.table, "roles": dict(case.roles), "has_drafted_measures": case.has_drafted_measures,
        "members": case.members, "controls": case.controls, "frame": case.frame,
    }  # fmt: skip


def read_lines(file: Path) -> list[dict[str, Any]]:
    """Return the results of a file, none where there is no file."""
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()] if file.exists() else []


def known_lines(file: Path, judge: str, half: str, seed: int, cases: int) -> list[dict[str, Any]]:
    """Return the results that a file has of this judge and these cases; of a case that is dealt otherwise today it has none.

    A judge whose engine or workspace has changes that are not committed has none: nothing says which changes judged.
    """
    return [
        line for line in read_lines(file)
        if (line["judge"], line["half"], line["seed"]) == (judge, half, seed) and not judge.endswith("+")
        and line["number"] < cases and line["digest"] == deal_case(half, seed, line["number"]).digest
    ]  # fmt: skip


def judge_cases(half: str, seed: int, numbers: list[int], checkout: Path, out: Path | None) -> list[dict[str, Any]]:
    """Judge cases one after another in a process of the checkout's package; each line goes to a file at once."""
    name, found = name_checkout(checkout), []
    with Judge(checkout) as judge:
        for number in numbers:
            case = deal_case(half, seed, number)
            line = {"judge": name, **case.describe(), "oracle_p": case.oracle_p(), **judge.judge(give_case(case))}
            found.append(line)
            if out is not None:
                with WRITING, out.open("a", encoding="utf-8") as lines:
                    lines.write(json.dumps(line) + "\n")
    return found


WRITING = Lock()


def parse_arguments() -> argparse.Namespace:
    """Return what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--half", choices=HALVES, help="which tables")
    parser.add_argument("--cases", type=int, default=100, help="how many cases, the first ones of the seed")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--judge", type=Path, default=HERE, metavar="CHECKOUT", help="whose gate judges; default: this one's"
    )
    parser.add_argument("--jobs", type=int, default=1, choices=(1, 2), help="processes that judge")
    parser.add_argument(
        "--out", type=Path, help="a file that gets a line a case; what stands there is not judged again"
    )
    parser.add_argument(
        "--report", type=Path, nargs="+", metavar="FILE", help="print what such files say, and judge nothing"
    )
    parser.add_argument(
        "--checks",
        action="store_true",
        help="name the checks for the held-out half too: whoever then changes them has no held-out half",
    )
    parser.add_argument("--deal", action="store_true", help="print the cases, and judge nothing")
    asked = parser.parse_args()
    if not asked.report and not asked.half:
        parser.error("say --half develop or --half heldout, or --report FILE")
    return asked


def main() -> None:
    asked = parse_arguments()
    if asked.report:
        print_summary([line for file in asked.report for line in read_lines(file)], asked.checks)
        return
    numbers = list(range(asked.cases))
    if asked.deal:
        for number in numbers:
            print(json.dumps(deal_case(asked.half, asked.seed, number).describe()))
        return
    known = (
        []
        if asked.out is None
        else known_lines(asked.out, name_checkout(asked.judge), asked.half, asked.seed, asked.cases)
    )
    judged = {line["number"] for line in known}
    left = [number for number in numbers if number not in judged]
    with ThreadPoolExecutor(asked.jobs) as pool:
        parts = [
            pool.submit(judge_cases, asked.half, asked.seed, left[at :: asked.jobs], asked.judge, asked.out)
            for at in range(asked.jobs)
        ]
        found = [line for part in parts for line in part.result()]
    print_summary([*known, *found], asked.checks)


if __name__ == "__main__":
    main()
