"""Three releases for an officer to read: python tests/benchmarks/three_releases.py FOLDER.

    honest        a survey in classes, whose every column is drawn by models that the strongest intruder can be tried against; 60 people
                  without a region are left out
    leaky         the same survey, sex, age, education and marital status unchanged, the gate's block waived
    households    a census whose people are each like many others, while whole households are like no other; waived

Each is written to FOLDER/NAME/public and FOLDER/NAME/internal. Whoever reads page 1 of ``internal/risk-assessment.html`` should sign
the first and refuse the others, for the reasons above. All three take about a minute.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[1] / "prepared"))

import numpy as np
import pandas as pd
from households import draw_households

PEOPLE, HOUSEHOLDS = 4_000, 1_500
COMMON = """
title = "{title}"
description = "{description}"

[data]
file = "{file}"
holdout = 0.25
{data}

[variables]
{variables}

[release]
m = 5
seed = {seed}
audience = "{audience}"
{release}
"""
ATTACKS = """
[[measure]]
method = "utility.propensity"

[[measure]]
method = "risk.attribute_inference"
records = 600
{radius}

[[measure]]
method = "risk.membership_inference"
records = 1000

[[measure]]
method = "risk.linkability"
records = 1000

[[measure]]
method = "risk.singling_out"
"""
SURVEY_DATA = """missing = "keep"
complete_cases = ["region"]"""
SURVEY_VARIABLES = """region = {{ kind = "categorical", role = "quasi_identifier" }}
sex = {{ kind = "binary", role = "quasi_identifier" }}
age = {{ {age}, role = "quasi_identifier" }}
education = {{ kind = "categorical", role = "quasi_identifier" }}
marital = {{ kind = "categorical", role = "quasi_identifier", title = "marital status" }}
visits = {{ {visits}, role = "sensitive", title = "visits to a doctor in the year" }}
income = {{ {income}, role = "sensitive", title = "monthly income" }}"""
IDENTIFICATION = """
[[measure]]
method = "risk.identification"

[[study]]
method = "studies.intruder_knowledge"

[[threshold]]
value = "risk.identification.largest_true_match_rate"
max = 0.02
"""
STRONGEST_INTRUDER = """
[[measure]]
method = "risk.bayesian_posterior"
records = 100
refits = 2
blocks = 2
"""
DISTRIBUTIONS = """
[[measure]]
method = "utility.ecdf"

[[threshold]]
value = "utility.ecdf.max_abs_difference"
max = {most}
"""
CENSUS_VARIABLES = """household = { kind = "count", role = "unit" }
region = { kind = "categorical", role = "quasi_identifier", level = "unit" }
relation = { kind = "categorical", role = "quasi_identifier", title = "relation to the head" }
sex = { kind = "binary", role = "quasi_identifier" }
age = { kind = "count", role = "quasi_identifier", bounds = [0, 110] }
income = { kind = "count", role = "sensitive", title = "monthly income" }"""
CENSUS_RELEASE = """order = "original"

[release.recode]
age = 20"""
SURVEY_NAMES = ("region", "sex", "age", "education", "marital", "visits", "income")
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


def in_classes(survey: pd.DataFrame) -> pd.DataFrame:
    """Return the survey with age, visits and income in classes, and words for refusals."""
    age, visits, income = (survey[name].to_numpy() for name in ("age", "visits", "income"))
    decades = np.array(["18 to 29", "30 to 39", "40 to 49", "50 to 59", "60 to 69", "70 and more"])
    times = np.array(["none", "1 or 2", "3 to 5", "6 and more"])
    classes = np.array(["under 1000", "1000 to 1499", "1500 to 1999", "2000 and more"])
    known = classes[np.searchsorted([1000, 1500, 2000], income, side="right")]
    return survey.assign(
        age=decades[np.searchsorted([30, 40, 50, 60, 70], age, side="right")],
        visits=times[np.searchsorted([1, 3, 6], visits, side="right")],
        income=np.where(income == -8, "refused", np.where(income == -9, "unknown", known)),
    )


def synthesis_steps(names: Sequence[str], drawn: Sequence[str], settings: str) -> str:
    """Return a step for each drawn variable, given those that are kept and those that are drawn before it."""
    known, text = [name for name in names if name not in drawn], ""
    for target in drawn:
        smoothing = "smoothing = true\n" if "cart" in settings and target in ("income", "visits") else ""
        predictors = ", ".join(f'"{name}"' for name in known)
        text += f'\n[[synthesis]]\ntarget = "{target}"\npredictors = [{predictors}]\n{settings}\n{smoothing}'
        known.append(target)
    return text


def write_inputs(folder: Path) -> dict[str, Path]:
    """Write the tables and the three recipes; return the recipes by name."""
    rng = np.random.default_rng(48)
    files = {name: folder / f"{name}.csv" for name in ("survey", "classes", "census")}
    survey = draw_survey(rng, PEOPLE)
    survey.to_csv(files["survey"], index=False)
    in_classes(survey).to_csv(files["classes"], index=False)
    people = draw_households(rng, HOUSEHOLDS, first=1)
    people[["household", "region", "relation", "sex", "age", "income"]].to_csv(files["census"], index=False)
    number = 'kind = "count"'
    recipes = {
        "honest": COMMON.format(
            title="Social survey",
            description="A survey of 4,000 people, in classes. Every column is drawn.",
            file=files["classes"],
            data=SURVEY_DATA,
            variables=SURVEY_VARIABLES.format(
                age='kind = "categorical"',
                visits='kind = "categorical"',
                income='kind = "categorical", missing = ["refused", "unknown"]',
            ),
            seed=11,
            audience="public",
            release="",
        )
        + synthesis_steps(SURVEY_NAMES, SURVEY_NAMES, 'method = "multinomial_logistic"')
        + ATTACKS.format(radius="")
        + IDENTIFICATION
        + STRONGEST_INTRUDER,
        "leaky": COMMON.format(
            title="Social survey, extract",
            description="A survey of 4,000 people. Income and visits are drawn.",
            file=files["survey"],
            data=SURVEY_DATA,
            variables=SURVEY_VARIABLES.format(
                age=f"{number}, bounds = [18, 95]", visits=number, income=f'{number}, missing = ["-8", "-9"]'
            ),
            seed=11,
            audience="public",
            release="",
        )
        + synthesis_steps(SURVEY_NAMES, SURVEY_NAMES[-2:], 'method = "cart"\nminbucket = 250')
        + ATTACKS.format(radius="radius = { income = 200, visits = 1 }")
        + IDENTIFICATION
        + DISTRIBUTIONS.format(most=0.06),
        "households": COMMON.format(
            title="Households of a town",
            description="A census of 1,500 households. Income is drawn; who lives together stays.",
            file=files["census"],
            data="",
            variables=CENSUS_VARIABLES,
            seed=12,
            audience="contract",
            release=CENSUS_RELEASE,
        )
        + synthesis_steps(
            ("region", "relation", "sex", "age", "income"), ("income",), 'method = "cart"\nminbucket = 100'
        )
        + ATTACKS.format(radius="radius = { income = 200 }")
        + DISTRIBUTIONS.format(most=0.1),
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
