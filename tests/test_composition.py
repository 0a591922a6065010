"""Every estimator within scikit-learn's pipelines, searches and other meta-estimators."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import sklearn
from every_estimator import EVERY, answer, data_for, fitted
from sklearn.base import clone, is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.ensemble import StackingClassifier, StackingRegressor
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    StratifiedKFold,
    TimeSeriesSplit,
    cross_validate,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import RegressorChain
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import FunctionTransformer
from sklearn.semi_supervised import SelfTrainingClassifier
from slow_cases import slow_but

SERIES = [name for name in EVERY if "Forecaster" in type(EVERY[name]).__name__]
ROWS = [name for name in EVERY if name not in (*SERIES, "language model", "translator")]
# A parameter of each, and another value of it.
OTHER_VALUES = {
    "average": ("bandwidth", 1.0),
    "votes": ("bandwidth", 1.0),
    "lines": ("degree", 0),
    "sum of functions": ("structure", "joint"),
    "best average": ("kernels", ["epanechnikov"]),
    "best line": ("kernels", ["epanechnikov"]),
    "density": ("bandwidth", 1.0),
    "conditional density": ("bandwidth", 1.0),
    "kernel attention": ("max_steps", 1),
    "kernel attention and trees": ("max_steps", 1),
    "classes by kernel attention": ("readout", "average"),
    "regressor": ("d_model", 4),
    "classifier": ("d_model", 4),
    "waves": ("bandwidth", 3.0),
    "positive features": ("n_components", 5),
    "language model": ("d_model", 4),
    "translator": ("d_model", 4),
    "forecaster's transformer": ("d_model", 4),
    "forecaster": ("candidates", ["classical"]),
    "analogs": ("bandwidth", 0.1),
}

pytestmark = [
    pytest.mark.filterwarnings("ignore:The validation loss was still falling"),
    # Folds of a few rows, of which searches of bandwidths warn.
    pytest.mark.filterwarnings("ignore:bandwidth="),
    pytest.mark.usefixtures("few_convolutions", "few_rates", "few_trees"),
]


def of(names, quick=("average", "votes", "kernel attention", "classifier", "waves", "analogs")):
    """Every run asks the smallest of each kind of model, and slow tests the others."""
    return pytest.mark.parametrize("name", slow_but(quick, names))


def folds(estimator):
    if type(estimator).__name__.endswith("Forecaster"):
        return TimeSeriesSplit(2, test_size=3)
    return StratifiedKFold(2) if is_classifier(estimator) else KFold(2)


def _length(model, X, y=None):
    """A score of features, which have none."""
    return -np.abs(np.linalg.norm(model.transform(X), axis=1) - 1).mean()


@of(EVERY)
def test_searches_try_what_fits_find(name):
    estimator, data = EVERY[name], data_for(EVERY[name])
    parameter, other = OTHER_VALUES[name]
    scoring = None if hasattr(estimator, "score") else _length
    usual = estimator.get_params()[parameter]
    search = GridSearchCV(
        clone(estimator), {parameter: [usual, other]}, cv=folds(estimator), scoring=scoring,
        refit=lambda results: 0,
    ).fit(*data)  # fmt: skip
    one, two = search.cv_results_["mean_test_score"]
    assert np.isfinite([one, two]).all()
    assert one != two
    np.testing.assert_array_equal(
        answer(search.best_estimator_, data), answer(fitted(name), data)
    )


@of([name for name in ROWS if hasattr(EVERY[name], "score")])
def test_weights_are_routed(name):
    estimator, (X, y) = EVERY[name], data_for(EVERY[name])
    weights, cv = np.linspace(0.1, 3, len(X)), folds(estimator)
    with sklearn.config_context(enable_metadata_routing=True):
        model = clone(estimator).set_fit_request(sample_weight=True)
        if "sample_weight" in model.get_metadata_routing().score.requests:
            model.set_score_request(sample_weight=True)
        found = cross_validate(
            model, X, y, cv=cv, params={"sample_weight": weights}, return_estimator=True
        )
    train, _ = next(cv.split(X, y))
    direct = clone(estimator).fit(X[train], y[train], sample_weight=weights[train])
    expected = answer(direct, (X, y))
    np.testing.assert_array_equal(answer(found["estimator"][0], (X, y)), expected)
    plain = clone(estimator).fit(X[train], y[train])
    assert (answer(plain, (X, y)) != expected).any()


@of([name for name in ROWS if hasattr(EVERY[name], "transform")])
def test_features_stand_beside_others(name):
    estimator, (X, y) = EVERY[name], data_for(EVERY[name])
    alone = fitted(name).transform(X)
    frame = pd.DataFrame(X, columns=["width", "height"])
    union = make_union(clone(estimator), FunctionTransformer(feature_names_out="one-to-one"))
    both = union.fit(frame, y).transform(frame)
    np.testing.assert_array_equal(both, np.column_stack([alone, X]))
    assert len(union.get_feature_names_out()) == alone.shape[1] + 2
    columns = make_column_transformer((clone(estimator), ["width", "height"]))
    np.testing.assert_array_equal(columns.fit(frame, y).transform(frame), alone)


@of(SERIES, ["analogs", "forecaster"])
def test_sparse_series_are_refused(name):
    (series,) = data_for(EVERY[name])
    sparse = scipy.sparse.csr_array(series[:, None])
    for passed in ([sparse], [sparse, series], [None, sparse]):
        with pytest.raises(TypeError, match=r"[Xy] is sparse.* pass [Xy]\.toarray\(\)"):
            clone(EVERY[name]).fit(*passed)


@of(ROWS)
def test_pipelines_are_the_sum_of_their_steps(name):
    X, y = data_for(EVERY[name])
    turned = FunctionTransformer(lambda X: X[:, ::-1])
    pipeline = make_pipeline(turned, clone(EVERY[name])).fit(X[:, ::-1], y)
    methods = "predict", "score_samples", "transform"
    method = next(each for each in methods if hasattr(pipeline, each))
    if name != "conditional density" or method == "predict":
        found = getattr(pipeline, method)(X[:, ::-1])
        np.testing.assert_array_equal(found, getattr(fitted(name), method)(X))


_METHODS_OF_REGRESSORS = {
    "chain": lambda each: RegressorChain(each),
    "stacking": lambda each: StackingRegressor([("ours", each)], cv=2),
    "target": lambda each: TransformedTargetRegressor(each, func=np.exp, inverse_func=np.log),
}
_METHODS_OF_CLASSIFIERS = {
    "calibration": lambda each: CalibratedClassifierCV(each, cv=2),
    "one against the rest": lambda each: OneVsRestClassifier(each),
    "self-training": lambda each: SelfTrainingClassifier(each, max_iter=1),
    "stacking": lambda each: StackingClassifier([("ours", each)], cv=2),
}


@of(["average", "lines", "conditional density", "kernel attention"])
@pytest.mark.parametrize("method", _METHODS_OF_REGRESSORS)
def test_meta_estimators_of_regressors(name, method):
    X, y = data_for(EVERY[name])
    y = y[:, None] if method == "chain" else y
    found = _METHODS_OF_REGRESSORS[method](clone(EVERY[name])).fit(X, y).predict(X)
    assert found.shape == y.shape
    assert np.isfinite(found).all()
    assert np.ptp(found) > 0


@of([name for name in ROWS if is_classifier(EVERY[name])], ["votes"])
@pytest.mark.parametrize("method", _METHODS_OF_CLASSIFIERS)
def test_meta_estimators_of_classifiers(name, method):
    X, y = data_for(EVERY[name])
    if method == "self-training":
        y = np.where(np.arange(60) % 3 == 0, -1, (y == "b").astype(int))
    model = _METHODS_OF_CLASSIFIERS[method](clone(EVERY[name])).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1, rtol=1e-5)
    assert set(model.predict(X)) <= set(y)
