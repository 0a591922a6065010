"""The models of `tabular.py`, all at their defaults.

A model is a function of the training features and the number of jobs that returns an
estimator. It imports its library, so that a missing one affects only its own column, and the
import is not timed.
"""

from functools import cache

import numpy as np
from scipy.special import ndtri
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import (
    TransformedTargetRegressor,
    make_column_selector,
    make_column_transformer,
)
from sklearn.ensemble import (
    ExtraTreesRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.svm import SVC, SVR

LEVELS = np.arange(1, 20) / 20
OURS = ("KernelAttention", "KernelAttention light")
# Its lines were measured with the estimators before they were rebuilt; nothing runs it.
BEFORE = "KernelAttention before"
# Shown, but not ranked.
UNRANKED = (OURS[1], BEFORE)
LIGHT = {"n_folds": 1, "max_steps": 15}
# A Gaussian process stores matrices of all training rows, one for each feature.
MOST_ROWS = {"GPR-ARD": 1000}


def as_numbers(*scalers):
    """Medians for missing numbers, then `scalers`; one column for each level."""
    return make_column_transformer(
        (
            make_pipeline(SimpleImputer(strategy="median"), *scalers),
            make_column_selector(dtype_exclude="category"),
        ),
        (
            OneHotEncoder(handle_unknown="ignore", sparse_output=False),
            make_column_selector(dtype_include="category"),
        ),
    )


def numbers(build):
    return lambda X, jobs: make_pipeline(as_numbers(), build(jobs))


def scaled(build):
    return lambda X, jobs: make_pipeline(as_numbers(StandardScaler()), build(jobs))


def scaled_target(build):
    def model(X, jobs):
        return TransformedTargetRegressor(scaled(build)(X, jobs), transformer=StandardScaler())

    return model


class QuantileBoosting:
    """One boosted model for each of the levels; it has no mean."""

    def fit(self, X, y):
        self.models_ = [
            HistGradientBoostingRegressor(
                loss="quantile",
                quantile=level,
                categorical_features="from_dtype",
                random_state=0,
            ).fit(X, y)
            for level in LEVELS
        ]
        return self

    def predict_quantiles(self, X, quantiles):
        if not np.array_equal(quantiles, LEVELS):
            raise ValueError(f"quantiles are those of fit, {LEVELS}")
        # Models of different levels may cross.
        return np.sort([model.predict(X) for model in self.models_], axis=0).T


class GaussianProcess:
    """A length scale for each feature, and the quantiles of its normal distributions."""

    def fit(self, X, y):
        self.scaler_ = as_numbers(StandardScaler())
        X = self.scaler_.fit_transform(X)
        kernel = ConstantKernel() * RBF(np.ones(X.shape[1])) + WhiteKernel()
        self.process_ = GaussianProcessRegressor(kernel, normalize_y=True, random_state=0)
        self.process_.fit(X, y)
        return self

    def predict(self, X):
        return self.process_.predict(self.scaler_.transform(X))

    def predict_quantiles(self, X, quantiles):
        mean, deviation = self.process_.predict(self.scaler_.transform(X), return_std=True)
        return mean[:, None] + deviation[:, None] * ndtri(quantiles)


def lightgbm(X, jobs):
    from lightgbm import LGBMRegressor

    return LGBMRegressor(random_state=0, n_jobs=jobs, verbose=-1)


def xgboost(X, jobs):
    from xgboost import XGBRegressor

    return XGBRegressor(enable_categorical=True, random_state=0, n_jobs=jobs, verbosity=0)


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


@cache
def compiled_erbf():
    """The class, once it has compiled what a first fit would be timed for."""
    from erbf import ERBFRegressor

    X = np.random.default_rng(0).normal(size=(100, 2))
    small = ERBFRegressor(n_rbf=5, width_optim_iters=1, random_state=0)
    for order in "CF":
        small.fit(np.asarray(X, order=order), X.sum(axis=1)).predict(np.asarray(X, order=order))
    return ERBFRegressor


def ours(name, **parameters):
    def model(X, jobs):
        import sklearn_attention

        if name not in sklearn_attention.__all__:
            raise ImportError(f"sklearn_attention has no {name}")
        return getattr(sklearn_attention, name)(**parameters)

    return model


MODELS = {
    "regression": {
        "HistGradientBoosting": lambda X, jobs: HistGradientBoostingRegressor(
            categorical_features="from_dtype", random_state=0
        ),
        "RandomForest": numbers(
            lambda jobs: RandomForestRegressor(random_state=0, n_jobs=jobs)
        ),
        "ExtraTrees": numbers(lambda jobs: ExtraTreesRegressor(random_state=0, n_jobs=jobs)),
        "SVR": scaled_target(lambda jobs: SVR()),
        "MLP": scaled_target(lambda jobs: MLPRegressor(random_state=0)),
        "LightGBM": lightgbm,
        "XGBoost": xgboost,
        "CatBoost": catboost("CatBoostRegressor"),
        "ERBF": scaled_target(lambda jobs: compiled_erbf()(random_state=0)),
        "GPR-ARD": lambda X, jobs: GaussianProcess(),
        "HistGB-quantile": lambda X, jobs: QuantileBoosting(),
        "KernelAttention": ours("KernelAttentionRegressor"),
        "KernelAttention light": ours("KernelAttentionRegressor", **LIGHT),
    },
    "classification": {
        "HistGradientBoosting": lambda X, jobs: HistGradientBoostingClassifier(
            categorical_features="from_dtype", random_state=0
        ),
        "RandomForest": numbers(
            lambda jobs: RandomForestClassifier(random_state=0, n_jobs=jobs)
        ),
        "KNN": scaled(lambda jobs: KNeighborsClassifier(n_jobs=jobs)),
        "LogisticRegression": scaled(lambda jobs: LogisticRegression(max_iter=1000)),
        # scikit-learn deprecated SVC(probability=True) in favour of this.
        "SVC": scaled(lambda jobs: CalibratedClassifierCV(SVC(random_state=0), ensemble=False)),
        "CatBoost": catboost("CatBoostClassifier"),
        "KernelAttention": ours("KernelAttentionClassifier"),
        "KernelAttention light": ours("KernelAttentionClassifier", **LIGHT),
    },
}
