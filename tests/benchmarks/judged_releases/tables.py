"""Tables to draw people from: public ones and generators, and the halves of the benchmark, named before any result.

The checks of the gate were developed on some of ``DEVELOP``; nothing is changed for a result on ``HELD_OUT``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from public_data import PUBLIC_DATA

Frame = pd.DataFrame
Rng = np.random.Generator
Roles = Mapping[str, tuple[str, str]]
"""Kind and role by column."""
Q, S, C, N, X = "quasi_identifier", "sensitive", "categorical", "count", "continuous"

DEVELOP = ("adult", "airbnb", "acs", "ce", "generated", "hospital", "census")
HELD_OUT = ("anes", "affairs", "custody", "dwellings", "stays", "wages", "families")
HALVES = {"develop": DEVELOP, "heldout": HELD_OUT}


@dataclass(frozen=True)
class Table:
    """A table to draw members, hold-out records and other people from.

    name: what it is called
    read: reads all people
    roles: kind and role by column
    sizes: numbers of members and hold-out records in the benchmark of named leaks
    partial: columns that a partly synthetic recipe keeps there
    targets: columns that it draws
    household: column that says who lives together, no variable of its own; empty where all live alone
    shared: columns that are equal within a household
    """

    name: str
    read: Callable[[], Frame]
    roles: Roles
    sizes: tuple[tuple[int, int], ...] = ()
    partial: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    household: str = ""
    shared: tuple[str, ...] = ()

    @property
    def keys(self) -> list[str]:
        return [name for name, (_, role) in self.roles.items() if role == Q]

    @property
    def sensitive(self) -> list[str]:
        return [name for name, (_, role) in self.roles.items() if role == S]

    @property
    def numbers(self) -> list[str]:
        return [name for name, (kind, _) in self.roles.items() if kind in (N, X)]

    @property
    def levels(self) -> list[str]:
        return [name for name in self.roles if name not in self.numbers]


def adult() -> Frame:
    return pd.read_csv(PUBLIC_DATA / "adult.csv", na_values="?").dropna()


def airbnb() -> Frame:
    return pd.read_csv(PUBLIC_DATA / "AB_NYC_2019.csv").query("price > 0")


def generated() -> Frame:
    """Twelve thousand records of six classes of people: levels of different rarity, counts, and amounts in cents."""
    rng = np.random.default_rng(77)
    n = 12_000
    kind = rng.choice(6, n, p=[0.35, 0.25, 0.2, 0.12, 0.06, 0.02])
    level = lambda k, spread: (kind * 2 + rng.geometric(spread, n)) % k  # noqa: E731
    age = np.clip(rng.normal(30 + 8 * kind, 12), 16, 99).astype(int)
    visits = rng.negative_binomial(2, 1 / (1.5 + 0.5 * kind))
    income = np.round(np.exp(rng.normal(9.5 + 0.15 * kind + 0.004 * age, 0.6)), 2)
    return pd.DataFrame(
        {
            "region": [f"r{i}" for i in level(12, 0.3)],
            "job": [f"j{i}" for i in level(25, 0.2)],
            "sex": rng.choice(["f", "m"], n),
            "origin": [f"o{i}" for i in np.minimum(rng.geometric(0.6, n), 9)],
            "family": [f"f{i}" for i in level(6, 0.4)],
            "age": age,
            "children": np.minimum(rng.poisson(0.4 + 0.3 * kind), 9),
            "illness": [f"i{i}" for i in level(15, 0.25)],
            "visits": visits,
            "income": income,
            "debt": np.where(rng.random(n) < 0.5, 0, np.round(income * rng.gamma(1.5, 0.3, n), 2)),
        }
    )


def hospital() -> Frame:
    """Twelve thousand patients, twenty diagnoses that follow age and sex a little."""
    rng = np.random.default_rng(78)
    n = 12_000
    age = np.clip(rng.normal(52, 21, n), 0, 100).astype(int)
    sex = rng.choice(["f", "m"], n)
    shift = age // 10 + (sex == "f") * 3
    return pd.DataFrame(
        {
            "age": age,
            "sex": sex,
            "zip": [f"{8000 + i}" for i in rng.geometric(0.05, n) % 60],
            "ward": [f"w{i}" for i in rng.integers(0, 8, n)],
            "diagnosis": [f"d{i}" for i in (shift + rng.geometric(0.12, n)) % 20],
            "days": rng.negative_binomial(1, 0.15, n),
        }
    )


def draw_households(
    rng: np.random.Generator, count: int, region_rate: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return sizes (count,) of households, and household and place in it of each person; regions differ in size."""
    sizes = 1 + rng.binomial(5, np.clip(rng.beta(2, 4, count) + region_rate, 0, 1))
    household = np.repeat(np.arange(count), sizes)
    place = np.arange(len(household)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return sizes, household, place


def census() -> Frame:
    """Four thousand households of a country: municipality in region, tenure and rooms of all; relation, age, sex, work and wage of each."""
    rng = np.random.default_rng(81)
    count = 4_000
    sizes, household, place = draw_households(rng, count, 0.0)
    municipality = np.minimum(rng.geometric(0.06, count), 45)
    owner = rng.random(count) < 0.25 + 0.06 * sizes
    rooms = np.clip(rng.poisson(1.2 + 0.7 * sizes + owner), 1, 12)
    head_age = np.clip(rng.gamma(9, 5.5, count), 18, 95)
    child = place >= 2
    age = np.where(
        child, head_age[household] - 26 - 3 * (place - 2) - rng.gamma(2, 2, len(place)),
        head_age[household] + (place == 1) * rng.normal(-1, 4, len(place)),
    )  # fmt: skip
    age = np.clip(age, 0, 99).astype(int)
    work = np.where(age < 16, "none", np.where(age > 65, "retired", "none"))
    busy = (age >= 16) & (age <= 65) & (rng.random(len(age)) < 0.8)
    work = np.where(busy, np.char.add("job", (rng.geometric(0.15, len(age)) % 18).astype(str)), work)
    wage = np.round(np.exp(rng.normal(7.9 + 0.008 * age, 0.5)) / 10) * 10
    return pd.DataFrame(
        {
            "household": household,
            "region": [f"region{one // 6}" for one in municipality[household]],
            "municipality": [f"m{one:02}" for one in municipality[household]],
            "tenure": np.where(owner, "owner", np.where(rng.random(count) < 0.15, "free", "tenant"))[household],
            "rooms": rooms[household],
            "relation": np.select([place == 0, place == 1, rng.random(len(place)) < 0.06], ["head", "partner", "other"], "child"),
            "age": age,
            "sex": rng.choice(["f", "m"], len(age)),
            "work": work,
            "wage": np.where(busy, wage, 0.0),
        }
    )  # fmt: skip


def anes() -> Frame:
    """The American National Election Study of 1996 (statsmodels), without the logarithm of a column."""
    return load_statsmodels("anes96").drop(columns="logpopul").astype(int)


def affairs() -> Frame:
    """Fair's survey of 6,366 married women (statsmodels)."""
    return load_statsmodels("fair").round(4)


def load_statsmodels(name: str) -> Frame:
    """Return a data set that statsmodels carries."""
    # The import takes a second, and other tables need none of it.
    import statsmodels.datasets

    data: Any = getattr(statsmodels.datasets, name).load_pandas()
    return pd.DataFrame(data.data)


def custody() -> Frame:
    """The Survey of Youth in Custody of 1987 (R's SDaA), people without a missing value."""
    whole = pd.read_csv(PUBLIC_DATA / "youth_in_custody.csv")
    return whole[list(TABLES["custody"].roles)].dropna()


def dwellings() -> Frame:
    """Persons in the households of sdcMicro's test data; amounts in thousands."""
    whole = pd.read_csv(PUBLIC_DATA / "testdata.csv")
    return whole.assign(**{name: (whole[name] / 1000).round(1) for name in ("expend", "income", "savings")})


def stays() -> Frame:
    """Eleven thousand hospital stays: a code in a chapter, a procedure that follows it, days and cost with a tail."""
    rng = np.random.default_rng(82)
    n = 11_000
    age = np.clip(np.where(rng.random(n) < 0.08, 0, rng.normal(58, 20, n)), 0, 101).astype(int)
    sex = rng.choice(["female", "male"], n, p=[0.53, 0.47])
    chapter = (rng.geometric(0.18, n) + age // 15 + (sex == "male")) % 14
    code = np.minimum(rng.geometric(0.35, n), 9)
    procedure = np.where(rng.random(n) < 0.35, 0, (chapter * 3 + np.minimum(rng.geometric(0.4, n), 5)) % 30)
    urgent = rng.random(n) < 0.35 + 0.003 * age
    days = 1 + rng.negative_binomial(1.2, 1 / (1 + 3 + 0.05 * age + 2 * urgent))
    cost = np.exp(rng.normal(7.2, 0.45, n)) * days**0.8 * (1 + (procedure > 0)) + rng.pareto(1.8, n) * 900
    return pd.DataFrame(
        {
            "age": age,
            "sex": sex,
            "canton": [f"c{one}" for one in np.minimum(rng.geometric(0.12, n), 26)],
            "month": [f"{one:02}" for one in rng.integers(1, 13, n)],
            "urgent": np.where(urgent, "yes", "no"),
            "diagnosis": [f"{chr(65 + a)}{b}" for a, b in zip(chapter, code, strict=True)],
            "procedure": [f"p{one:02}" for one in procedure],
            "days": days,
            "cost": np.round(cost, 2),
        }
    )


def wages() -> Frame:
    """Ten thousand employees of six hundred firms: a wage with a Pareto tail, a bonus that most do not have, heaped hours."""
    rng = np.random.default_rng(83)
    n, firms = 10_000, 600
    firm = rng.choice(firms, n, p=rng.dirichlet(np.full(firms, 0.4)))
    sector, premium = rng.geometric(0.15, firms) % 16, rng.normal(0, 0.2, firms)
    grade = np.minimum(rng.geometric(0.3, n), 9)
    age = np.clip(rng.normal(42, 12, n), 16, 70).astype(int)
    tenure = np.minimum(rng.gamma(1.2, 6, n), age - 16).astype(int)
    hours = np.where(rng.random(n) < 0.6, 42, np.where(rng.random(n) < 0.5, 21, rng.integers(6, 60, n)))
    wage = np.exp(rng.normal(7.6, 0.25, n) + 0.12 * grade + premium[firm] + 0.004 * age) * hours / 42
    wage *= np.where(rng.random(n) < 0.02, 1 + rng.pareto(1.3, n), 1)
    bonus = np.where(rng.random(n) < 0.2 + 0.05 * grade, wage * rng.gamma(0.8, 0.5, n), 0)
    return pd.DataFrame(
        {
            "sector": [f"s{one:02}" for one in sector[firm]],
            "size": np.digitize(np.bincount(firm, minlength=firms)[firm], [5, 20, 50, 100]).astype(str),
            "grade": [f"g{one}" for one in grade],
            "sex": rng.choice(["f", "m"], n),
            "age": age,
            "tenure": tenure,
            "hours": hours,
            "wage": np.round(wage),
            "bonus": np.round(bonus, 2),
        }
    )


def families() -> Frame:
    """Three thousand families: faith, language and district of all; age, school and illness follow parents and each other."""
    rng = np.random.default_rng(84)
    count = 3_000
    _, household, place = draw_households(rng, count, 0.12)
    district = rng.choice(24, count, p=rng.dirichlet(np.full(24, 2.0)))
    language = (district // 8 + (rng.random(count) < 0.15) * rng.integers(1, 6, count)) % 7
    income = np.round(np.exp(rng.normal(8.6, 0.6, count)) / 50) * 50
    mother = np.clip(rng.normal(41, 9, count), 19, 70)
    n = len(household)
    age = np.where(
        place < 2, mother[household] + 3 * place + rng.normal(0, 2, n), mother[household] - 18 - rng.gamma(3, 3, n)
    )
    frail = rng.random(count) < 0.15
    ill = rng.random(n) < 0.1 + 0.35 * frail[household] + 0.003 * np.maximum(age, 0)
    return pd.DataFrame(
        {
            "family": household,
            "district": [f"d{one:02}" for one in district[household]],
            "language": [f"l{one}" for one in language[household]],
            "faith": [f"f{one}" for one in ((language * 2 + rng.geometric(0.5, count)) % 6)[household]],
            "income": income[household],
            "sex": rng.choice(["f", "m"], n),
            "age": np.clip(age, 0, 90).astype(int),
            "school": np.where(age < 5, "none", np.char.add("level", np.minimum(np.maximum(age, 5) // 6, 6).astype(int).astype(str))),
            "illness": np.where(ill, np.char.add("i", (rng.geometric(0.2, n) % 12).astype(str)), "none"),
            "visits": rng.poisson(1 + 3 * ill),
        }
    )  # fmt: skip


TABLES = {
    one.name: one
    for one in (
        Table(
            "adult", adult,
            {"age": (N, Q), "workclass": (C, Q), "education": (C, Q), "marital_status": (C, Q), "relationship": (C, Q), "race": (C, Q),
             "sex": (C, Q), "native_country": (C, Q), "occupation": (C, S), "capital_gain": (N, S), "capital_loss": (N, S),
             "hours_per_week": (N, S), "income": (C, S)},
            ((1600, 400), (4000, 1000)), ("age", "sex", "race", "marital_status", "education"), ("occupation", "income"),
        ),
        Table(
            "airbnb", airbnb,
            {"neighbourhood_group": (C, Q), "neighbourhood": (C, Q), "room_type": (C, Q), "number_of_reviews": (N, Q),
             "minimum_nights": (N, Q), "calculated_host_listings_count": (N, Q), "price": (X, S), "availability_365": (N, S)},
            ((1600, 400), (4000, 1000)), ("neighbourhood_group", "room_type", "number_of_reviews"), ("price",),
        ),
        Table(
            "acs", lambda: pd.read_csv(PUBLIC_DATA / "acs.csv"),
            {"SEX": (C, Q), "RACE": (C, Q), "MAR": (C, Q), "MIG": (C, Q), "SCH": (C, Q), "LANX": (C, S), "WAOB": (C, S),
             "DIS": (C, S), "HICOV": (C, S)},
            ((1600, 400), (4000, 1000)), ("SEX", "RACE", "MAR", "MIG", "SCH"), ("LANX", "WAOB", "DIS", "HICOV"),
        ),
        Table(
            "ce", lambda: pd.read_csv(PUBLIC_DATA / "ce.csv"),
            {"UrbanRural": (C, Q), "Race": (C, Q), "Income": (X, S), "Expenditure": (X, S)},
            ((420, 150),), ("UrbanRural", "Race"), ("Income", "Expenditure"),
        ),
        Table(
            "generated", generated,
            {"region": (C, Q), "job": (C, Q), "sex": (C, Q), "origin": (C, Q), "family": (C, Q), "age": (N, Q), "children": (N, Q),
             "illness": (C, S), "visits": (N, S), "income": (X, S), "debt": (X, S)},
            ((1600, 400), (4000, 1000)), ("region", "sex", "family", "age"), ("illness", "income"),
        ),
        Table(
            "hospital", hospital,
            {"age": (N, Q), "sex": (C, Q), "zip": (C, Q), "ward": (C, Q), "diagnosis": (C, S), "days": (N, S)},
            ((1600, 400), (4000, 1000)), ("age", "sex", "ward"), ("diagnosis",),
        ),
        Table(
            "census", census,
            {"region": (C, Q), "municipality": (C, Q), "tenure": (C, Q), "rooms": (N, Q), "relation": (C, Q), "age": (N, Q), "sex": (C, Q),
             "work": (C, S), "wage": (X, S)},
            household="household", shared=("region", "municipality", "tenure", "rooms"),
        ),
        Table(
            "anes", anes,
            {"popul": (N, Q), "age": (N, Q), "educ": (C, Q), "income": (C, S), "TVnews": (N, Q), "PID": (C, S), "selfLR": (C, S),
             "ClinLR": (C, S), "DoleLR": (C, S), "vote": (C, S)},
        ),
        Table(
            "affairs", affairs,
            {"age": (X, Q), "yrs_married": (X, Q), "children": (X, Q), "religious": (C, Q), "educ": (C, Q), "occupation": (C, Q),
             "occupation_husb": (C, Q), "rate_marriage": (C, S), "affairs": (X, S)},
        ),
        Table(
            "custody", custody,
            {"age": (N, Q), "race": (C, Q), "ethnicty": (C, Q), "educ": (C, Q), "sex": (C, Q), "livewith": (C, Q), "famtime": (C, S),
             "crimtype": (C, S), "numarr": (N, S), "agefirst": (N, S), "usewepn": (C, S), "alcuse": (C, S), "everdrug": (C, S)},
        ),
        Table(
            "dwellings", dwellings,
            {"urbrur": (C, Q), "roof": (C, Q), "walls": (C, Q), "water": (C, Q), "electcon": (C, Q), "relat": (C, Q), "sex": (C, Q),
             "age": (N, Q), "expend": (X, S), "income": (X, S), "savings": (X, S)},
            household="ori_hid", shared=("urbrur", "roof", "walls", "water", "electcon"),
        ),
        Table(
            "stays", stays,
            {"age": (N, Q), "sex": (C, Q), "canton": (C, Q), "month": (C, Q), "urgent": (C, Q), "diagnosis": (C, S), "procedure": (C, S),
             "days": (N, S), "cost": (X, S)},
        ),
        Table(
            "wages", wages,
            {"sector": (C, Q), "size": (C, Q), "grade": (C, Q), "sex": (C, Q), "age": (N, Q), "tenure": (N, Q), "hours": (N, Q),
             "wage": (X, S), "bonus": (X, S)},
        ),
        Table(
            "families", families,
            {"district": (C, Q), "language": (C, Q), "faith": (C, Q), "income": (X, S), "sex": (C, Q), "age": (N, Q), "school": (C, Q),
             "illness": (C, S), "visits": (N, S)},
            household="family", shared=("district", "language", "faith", "income"),
        ),
    )
}  # fmt: skip
