"""The models of `tabular.py`, all at their defaults.

A model is a function of the training features and the number of jobs that returns an
estimator. It imports its library, so that a missing one affects only its own column, and the
import is not timed.
"""

from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder

OURS = "KernelAttention"


def histogram_boosting(build):
    return lambda X, jobs: build(categorical_features="from_dtype", random_state=0)


def forest(build):
    """Medians for missing numbers, and one column for each level."""
    columns = make_column_transformer(
        (SimpleImputer(strategy="median"), make_column_selector(dtype_exclude="category")),
        (
            OneHotEncoder(handle_unknown="ignore", sparse_output=False),
            make_column_selector(dtype_include="category"),
        ),
    )
    return lambda X, jobs: make_pipeline(columns, build(random_state=0, n_jobs=jobs))


def lightgbm(name):
    def model(X, jobs):
        import lightgbm

        return getattr(lightgbm, name)(random_state=0, n_jobs=jobs, verbose=-1)

    return model


def catboost(name):
    def model(X, jobs):
        import catboost

        categories = list(X.select_dtypes("category").columns)
        estimator = getattr(catboost, name)(
            cat_features=categories,
            random_state=0,
            thread_count=jobs,
            verbose=0,
            allow_writing_files=False,
        )
        levels = FunctionTransformer(string_levels, kw_args={"columns": categories})
        return make_pipeline(levels, estimator)

    return model


def string_levels(X, columns):
    """Missing categories as a level of their own, since CatBoost accepts no others."""
    strings = {name: X[name].astype(object).fillna("missing value") for name in columns}
    return X.assign(**strings)


def ours(name):
    def model(X, jobs):
        import sklearn_attention

        return getattr(sklearn_attention, name)()

    return model


MODELS = {
    "regression": {
        "HistGradientBoosting": histogram_boosting(HistGradientBoostingRegressor),
        "RandomForest": forest(RandomForestRegressor),
        "LightGBM": lightgbm("LGBMRegressor"),
        "CatBoost": catboost("CatBoostRegressor"),
        OURS: ours("KernelAttentionRegressor"),
    },
    "classification": {
        "HistGradientBoosting": histogram_boosting(HistGradientBoostingClassifier),
        "RandomForest": forest(RandomForestClassifier),
        "LightGBM": lightgbm("LGBMClassifier"),
        "CatBoost": catboost("CatBoostClassifier"),
        OURS: ours("KernelAttentionClassifier"),
    },
}
MODELS["scale"] = {name: MODELS["regression"][name] for name in ("CatBoost", OURS)}
