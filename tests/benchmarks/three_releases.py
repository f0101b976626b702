"""Three releases for an officer to read: python tests/benchmarks/three_releases.py FOLDER.

    honest        a survey whose every column is drawn; 60 people without a region are left out
    leaky         the same survey, sex, age, education and marital status unchanged, the gate's block waived
    households    a census whose people are each like many others, while whole households are like no other; waived

Each is written to FOLDER/NAME/public and FOLDER/NAME/internal. Whoever reads page 1 of ``internal/risk-assessment.html`` should sign
the first and refuse the others, for the reasons above. All three take about a minute.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[1] / "prepared"))

import numpy as np
import pandas as pd
from households import draw_households

PEOPLE, HOUSEHOLDS = 4_000, 1_500
SURVEY = """
title = "{title}"
description = "{description}"

[data]
file = "{file}"
holdout = 0.25
missing = "keep"
complete_cases = ["region"]

[variables]
region = {{ kind = "categorical", role = "quasi_identifier" }}
sex = {{ kind = "binary", role = "quasi_identifier" }}
age = {{ kind = "count", role = "quasi_identifier", bounds = [18, 95] }}
education = {{ kind = "categorical", role = "quasi_identifier" }}
marital = {{ kind = "categorical", role = "quasi_identifier", title = "marital status" }}
income = {{ kind = "count", role = "sensitive", missing = ["-8", "-9"], title = "monthly income" }}
visits = {{ kind = "count", role = "sensitive", title = "visits to a doctor in the year" }}

[release]
m = 5
seed = 11
audience = "{audience}"
"""
STEP = """
[[synthesis]]
target = "{target}"
method = "cart"
predictors = [{predictors}]
minbucket = {leaf}
smoothing = {smoothing}
"""
MEASURES = """
[[measure]]
method = "utility.propensity"

[[measure]]
method = "utility.ecdf"

[[measure]]
method = "risk.identification"

[[measure]]
method = "risk.attribute_inference"
radius = { income = 200, visits = 1 }
records = 600

[[measure]]
method = "risk.membership_inference"
records = 1000

[[measure]]
method = "risk.linkability"
records = 1000

[[measure]]
method = "risk.singling_out"

[[study]]
method = "studies.intruder_knowledge"

[[threshold]]
value = "risk.identification.largest_true_match_rate"
max = 0.02

[[threshold]]
value = "utility.ecdf.max_abs_difference"
max = 0.06
"""
CENSUS = """
title = "Households of a town"
description = "A census of 1,500 households. Income is drawn; who lives together stays."

[data]
file = "{file}"
holdout = 0.25

[variables]
household = {{ kind = "count", role = "unit" }}
region = {{ kind = "categorical", role = "quasi_identifier", level = "unit" }}
relation = {{ kind = "categorical", role = "quasi_identifier", title = "relation to the head" }}
sex = {{ kind = "binary", role = "quasi_identifier" }}
age = {{ kind = "count", role = "quasi_identifier", bounds = [0, 110] }}
income = {{ kind = "count", role = "sensitive", title = "monthly income" }}

[release]
m = 5
seed = 12
audience = "contract"
order = "original"

[release.recode]
age = 20
"""
CENSUS_MEASURES = """
[[measure]]
method = "utility.ecdf"

[[measure]]
method = "risk.attribute_inference"
radius = { income = 200 }
records = 600

[[measure]]
method = "risk.membership_inference"
records = 1000

[[measure]]
method = "risk.linkability"
records = 1000

[[measure]]
method = "risk.singling_out"

[[threshold]]
value = "utility.ecdf.max_abs_difference"
max = 0.1
"""
REASONS = {
    "leaky": "The ministry needs the file before the end of the month",
    "households": "No single row is rare: every person shares region, relation, sex and age group with others",
}


def draw_survey(rng: np.random.Generator, people: int) -> pd.DataFrame:
    """Return a survey whose income depends on age, education and region, with codes for refusals and gaps in region."""
    region = rng.choice(["north", "east", "south", "west", "islands"], people, p=[0.3, 0.25, 0.22, 0.18, 0.05])
    age = np.clip(rng.gamma(9, 5.3, people), 18, 95).astype(int)
    education = rng.choice(["none", "school", "vocational", "university"], people, p=[0.08, 0.4, 0.32, 0.2])
    married = rng.random(people) < np.clip((age - 20) / 45, 0, 0.75)
    marital = np.where(married, "married", np.where(age > 65, "widowed", rng.choice(["single", "divorced"], people)))
    level = 7.1 + 0.25 * (education == "university") + 0.1 * (education == "vocational") + 0.004 * (age - 40)
    income = np.rint(np.exp(level + rng.normal(0, 0.35, people)) / 100) * 100
    income = np.where(rng.random(people) < 0.06, -8, np.where(rng.random(people) < 0.02, -9, income)).astype(int)
    frame = pd.DataFrame(
        {
            "region": region,
            "sex": rng.choice(["f", "m"], people),
            "age": age,
            "education": education,
            "marital": marital,
            "income": income,
            "visits": rng.poisson(1.5 + 0.05 * (age - 18)),
        }
    )
    # Old people lack a region more often, so that whoever is dropped is no random sample.
    frame.loc[rng.random(people) < np.where(age > 70, 0.09, 0.008), "region"] = ""
    return frame


def survey_recipe(file: Path, *, title: str, description: str, audience: str, drawn: list[str], leaf: int) -> str:
    """Return the recipe of the survey that draws some of its columns with trees of large leaves."""
    names = ["region", "sex", "age", "education", "marital", "income", "visits"]
    known = [name for name in names if name not in drawn]
    text = SURVEY.format(title=title, description=description, file=file, audience=audience)
    for target in drawn:
        predictors = ", ".join(f'"{name}"' for name in known)
        smoothing = str(target in ("age", "income", "visits")).lower()
        text += STEP.format(target=target, predictors=predictors, leaf=leaf, smoothing=smoothing)
        known.append(target)
    return text + MEASURES


def write_inputs(folder: Path) -> dict[str, Path]:
    """Write the two tables and the three recipes; return the recipes by name."""
    rng = np.random.default_rng(48)
    survey, census = folder / "survey.csv", folder / "census.csv"
    draw_survey(rng, PEOPLE).to_csv(survey, index=False)
    people = draw_households(rng, HOUSEHOLDS, first=1)
    people[["household", "region", "relation", "sex", "age", "income"]].to_csv(census, index=False)
    recipes = {
        "honest": survey_recipe(
            survey,
            title="Social survey",
            description="A survey of 4,000 people. Every column is drawn.",
            audience="public",
            drawn=["region", "sex", "age", "education", "marital", "income", "visits"],
            leaf=250,
        ),
        "leaky": survey_recipe(
            survey,
            title="Social survey, extract",
            description="A survey of 4,000 people. Income and visits are drawn.",
            audience="public",
            drawn=["income", "visits"],
            leaf=250,
        ),
        "households": CENSUS.format(file=census)
        + STEP.format(target="income", predictors='"region", "relation", "sex", "age"', leaf=100, smoothing="true")
        + CENSUS_MEASURES,
    }
    paths = {name: folder / f"{name}.toml" for name in recipes}
    for name, text in recipes.items():
        paths[name].write_text(text, "utf-8")
    return paths


def make_releases(folder: Path) -> None:
    """Run the three recipes, each in a workspace of its own, and release them."""
    folder.mkdir(parents=True, exist_ok=True)
    # A key of its own would give other datasets each time.
    key = folder / "key"
    key.write_bytes(bytes(range(100, 132)))
    key.chmod(0o600)
    for name, recipe in write_inputs(folder.resolve()).items():
        workspace = ["-w", str(folder / f"workspace-{name}")]
        # Status 1 says that a threshold is not met.
        run_command(["run", str(recipe), "--key", str(key), *workspace], (0, 1))
        reason = ["--reason", REASONS[name]] if name in REASONS else []
        run_command(["release", "1", "-o", str(folder / name), *reason, *workspace])


def run_command(arguments: list[str], expected: tuple[int, ...] = (0,)) -> None:
    """Run a command of Sfumato. Raises SystemExit with what it printed where it ends with an unexpected status."""
    command = [sys.executable, "-c", "import sys; from sfumato.tui.cli.main import main; sys.exit(main())", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in expected:
        raise SystemExit(f"sfumato {' '.join(arguments)}\n{done.stdout}{done.stderr}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit("FOLDER is missing: python tests/benchmarks/three_releases.py FOLDER")
    make_releases(Path(sys.argv[1]))
