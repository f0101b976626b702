"""Processor seconds of the class and regression trees of Adult and ACS, beside rpart's. Run as a script; prints a table.

    python tests/benchmarks/class_trees.py

Each variable given those before it, the median of three fits. rpart fits the same in one run of R, without competing and
surrogate splits and without cross-validation, where Rscript with rpart is there.
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
import time

from public_data import PUBLIC_DATA
from trees_of_table import recipe_of_trees

from sfumato.engine.execution.tasks import fit_model
from sfumato.engine.methods.run import PUBLIC

RUNS = 3
RPART = """
library(rpart)
d <- read.csv(commandArgs(TRUE)[1], strip.white = TRUE, stringsAsFactors = TRUE)
few <- function(x) is.numeric(x) && length(unique(x)) <= 8
for (j in seq_along(d)) if (few(d[[j]])) d[[j]] <- factor(d[[j]])
seconds <- function(k) {
  f <- reformulate(names(d)[1:(k - 1)], names(d)[k])
  method <- if (is.numeric(d[[k]])) "anova" else "class"
  once <- function() system.time(rpart(f, d, method = method, minbucket = 5, cp = 1e-8, xval = 0, maxsurrogate = 0,
                                       maxcompete = 0, usesurrogate = 0))[["user.self"]]
  median(replicate(3, once()))
}
cat(sum(sapply(2:ncol(d), seconds)))
"""


def seconds(table: str) -> float:
    recipe, data = recipe_of_trees(table)
    fit_model(recipe, 1, data, key=PUBLIC)  # so that importing scikit-learn is not timed
    found = []
    for step in range(len(recipe.synthesis)):
        took = []
        for _ in range(RUNS):
            start = time.process_time()
            fit_model(recipe, step, data, key=PUBLIC)
            took.append(time.process_time() - start)
        found.append(statistics.median(took))
    return sum(found)


def seconds_of_rpart(table: str) -> float | None:
    program = shutil.which("Rscript")
    if program is None:
        return None
    file = str(PUBLIC_DATA / f"{table}.csv")
    done = subprocess.run([program, "-e", RPART, file], capture_output=True, text=True, check=False)
    return float(done.stdout) if done.returncode == 0 else None


def main() -> None:
    print(f"{'':8}{'trees':>8}{'rpart':>8}{'times':>8}")
    for table in ("adult", "acs"):
        ours, theirs = seconds(table), seconds_of_rpart(table)
        beside = f"{'':>16}" if theirs is None else f"{theirs:>7.2f}s{ours / theirs:>8.2f}"
        print(f"{table:8}{ours:>7.2f}s{beside}", flush=True)


if __name__ == "__main__":
    main()
