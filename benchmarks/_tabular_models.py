"""The models of `tabular.py`, all at their defaults.

A model is a function of the training features and the number of jobs that returns an
estimator. It imports its library, so that a missing one affects only its own column, and the
import is not timed.
"""

from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

OURS = "KernelAttention"


def histogram_boosting(build):
    return lambda X, jobs: build(categorical_features="from_dtype", random_state=0)


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
        "LightGBM": lightgbm("LGBMRegressor"),
        "CatBoost": catboost("CatBoostRegressor"),
        OURS: ours("KernelAttentionRegressor"),
    },
    "classification": {
        "HistGradientBoosting": histogram_boosting(HistGradientBoostingClassifier),
        "LightGBM": lightgbm("LGBMClassifier"),
        "CatBoost": catboost("CatBoostClassifier"),
        OURS: ours("KernelAttentionClassifier"),
    },
}
MODELS["scale"] = {name: MODELS["regression"][name] for name in ("CatBoost", OURS)}
