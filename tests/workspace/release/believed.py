"""A survey whose release an intruder looks at who knows all records but one."""

import numpy as np
import pandas as pd
from prepared_tables import variables_of
from prepared_workspaces import run_recipe

from sfumato.engine.data.microdata import conform_to_schema
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace.store.workspace import Workspace

INTRUDER = "risk.bayesian_posterior"
RECIPE = {
    "title": "Household survey",
    "variables": variables_of(
        "region: categorical quasi_identifier", "status: categorical sensitive", "tenure: categorical sensitive"
    ),
    "release": {"m": 3, "seed": 7},
    "synthesis": [
        {
            "target": ["status", "tenure"],
            "method": "dirichlet_multinomial",
            "predictors": ["region"],
            "concentration": 0.01,
        }
    ],
    "measure": [
        {"method": INTRUDER, "blocks": 2, "records": 40, "by": "region"},
        {"method": INTRUDER, "blocks": 2, "prior": "uniform"},
        {"method": "risk.identification"},
    ],
    "threshold": [
        {"value": f"{INTRUDER}.posterior_risk", "params": {"prior": "uniform"}, "max": 0.99},
        {"value": f"{INTRUDER}.posterior_of_truth", "params": {"prior": "uniform"}, "max_ratio": 1.2},
    ],
}


def survey(records=90):
    """Records of few kinds, the last of a kind of its own."""
    rng = np.random.default_rng(20)
    frame = pd.DataFrame(
        {
            "region": rng.choice(["north", "south"], records),
            "status": rng.choice(["single", "married", "widowed"], records, p=[0.5, 0.4, 0.1]),
            "tenure": rng.choice(["owner", "tenant"], records),
        }
    )
    frame.loc[records - 1] = ["south", "zqxdivorced", "lodger"]
    recipe = Recipe.from_table(RECIPE)
    return recipe, conform_to_schema(frame, recipe.schema)


def believed_workspace(directory):
    """A workspace with the run done."""
    with Workspace.create(directory, PUBLIC) as workspace:
        recipe, data = survey()
        run_recipe(workspace, recipe, data, "survey.csv")
    return directory
