"""Every estimator within scikit-learn's pipelines, searches and other meta-estimators."""

import copy

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import sklearn
from every_estimator import EVERY, answer, data_for
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.ensemble import (
    AdaBoostRegressor,
    BaggingClassifier,
    BaggingRegressor,
    StackingClassifier,
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.feature_selection import SequentialFeatureSelector
from sklearn.inspection import partial_dependence, permutation_importance
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    StratifiedKFold,
    TimeSeriesSplit,
    cross_val_predict,
    cross_validate,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputRegressor, RegressorChain
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.semi_supervised import SelfTrainingClassifier

SERIES = {name: each for name, each in EVERY.items() if "Forecaster" in type(each).__name__}
TEXTS = {name: EVERY[name] for name in ("language model", "translator")}
ROWS = {name: each for name, each in EVERY.items() if name not in {*SERIES, *TEXTS}}
REGRESSORS = {name: each for name, each in ROWS.items() if is_regressor(each)}
CLASSIFIERS = {name: each for name, each in ROWS.items() if is_classifier(each)}
WEIGHTED = {name: each for name, each in ROWS.items() if hasattr(each, "score")}
TRANSFORMERS = {name: each for name, each in ROWS.items() if hasattr(each, "transform")}
# A parameter of each, and two values of it.
CANDIDATES = {
    "average": ("bandwidth", [0.1, 1.0]),
    "votes": ("bandwidth", [0.1, 1.0]),
    "lines": ("degree", [0, 1]),
    "best average": ("kernels", [["gaussian"], ["epanechnikov"]]),
    "best line": ("kernels", [["gaussian"], ["epanechnikov"]]),
    "density": ("bandwidth", [0.1, 1.0]),
    "conditional density": ("bandwidth", [0.1, 1.0]),
    "kernel attention": ("max_steps", [1, 2]),
    "kernel attention and trees": ("max_steps", [1, 2]),
    "classes by kernel attention": ("max_steps", [1, 2]),
    "regressor": ("training__weight_decay", [0.0, 0.1]),
    "regressor without dropout": ("d_model", [4, 8]),
    "classifier": ("d_model", [4, 8]),
    "waves": ("bandwidth", [0.1, 1.0]),
    "positive features": ("n_components", [5, 10]),
    "language model": ("d_model", [4, 8]),
    "translator": ("d_model", [4, 8]),
    "forecaster's transformer": ("d_model", [4, 8]),
    "forecaster": ("candidates", [["classical"], ["ridge"]]),
    "analogs": ("bandwidth", [0.1, 1.0]),
}

pytestmark = [
    pytest.mark.filterwarnings("ignore:The validation loss was still falling"),
    # Folds of a few rows, of which searches of bandwidths warn.
    pytest.mark.filterwarnings("ignore:bandwidth="),
    pytest.mark.usefixtures("few_convolutions", "few_rates", "few_trees"),
]


# Each has a way of its own to be composed: the smallest of each kind of model. Slow tests ask
# the others.
OWN = {
    "average", "votes", "density", "best average", "kernel attention", "classifier", "waves",
    "language model", "forecaster", "analogs",
}  # fmt: skip


def each(estimators, quick=OWN):
    return pytest.mark.parametrize(
        "estimator",
        [
            pytest.param(each, id=name, marks=[] if name in quick else [pytest.mark.slow])
            for name, each in estimators.items()
        ],
    )


def folds(estimator):
    if estimator in SERIES.values():
        return TimeSeriesSplit(2, test_size=3)
    return StratifiedKFold(2) if is_classifier(estimator) else KFold(2)


@each(EVERY)
def test_searches_find_what_fits_find(estimator):
    name = next(name for name in EVERY if EVERY[name] is estimator)
    parameter, values = CANDIDATES[name]
    data = data_for(estimator)
    scoring = None if hasattr(estimator, "score") else _length
    search = GridSearchCV(
        clone(estimator), {parameter: values}, cv=folds(estimator), scoring=scoring
    )
    search.fit(*data)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    best = clone(estimator).set_params(**search.best_params_).fit(*data)
    np.testing.assert_array_equal(answer(search.best_estimator_, data), answer(best, data))


def _length(model, X, y=None):
    """A score of features, which have none."""
    return -np.abs(np.linalg.norm(model.transform(X), axis=1) - 1).mean()


@each(WEIGHTED)
def test_weights_are_routed(estimator):
    X, y = data_for(estimator)
    weights = np.linspace(0.1, 3, len(X))
    cv = folds(estimator)
    with sklearn.config_context(enable_metadata_routing=True):
        model = clone(estimator).set_fit_request(sample_weight=True)
        if "sample_weight" in model.get_metadata_routing().score.requests:
            model.set_score_request(sample_weight=True)
        found = cross_validate(
            model, X, y, cv=cv, params={"sample_weight": weights}, return_estimator=True
        )
    for (train, _), fold in zip(cv.split(X, y), found["estimator"], strict=True):
        direct = clone(estimator).fit(X[train], y[train], sample_weight=weights[train])
        np.testing.assert_array_equal(answer(fold, (X, y)), answer(direct, (X, y)))
        plain = clone(estimator).fit(X[train], y[train])
        assert (answer(plain, (X, y)) != answer(direct, (X, y))).any()


@each(TRANSFORMERS)
def test_features_stand_beside_others(estimator):
    X, y = data_for(estimator)
    frame = pd.DataFrame(X, columns=["width", "height"])
    alone = clone(estimator).fit(frame, y).transform(frame)
    union = make_union(clone(estimator), FunctionTransformer(feature_names_out="one-to-one"))
    np.testing.assert_array_equal(
        union.fit(frame, y).transform(frame), np.column_stack([alone, X])
    )
    assert len(union.get_feature_names_out()) == alone.shape[1] + 2
    columns = make_column_transformer((clone(estimator), ["width", "height"]))
    np.testing.assert_array_equal(columns.fit(frame, y).transform(frame), alone)


@each(SERIES)
def test_sparse_series_are_refused(estimator):
    (series,) = data_for(estimator)
    sparse = scipy.sparse.csr_array(series[:, None])
    for passed in ([sparse], [sparse, series], [None, sparse]):
        with pytest.raises(TypeError, match=r"[Xy] is sparse.* pass [Xy]\.toarray\(\)"):
            clone(estimator).fit(*passed)


@each(ROWS)
def test_pipelines_are_the_sum_of_their_steps(estimator):
    X, y = data_for(estimator)
    scaled = StandardScaler().fit_transform(X)
    direct = clone(estimator).fit(scaled, y)
    pipeline = make_pipeline(StandardScaler(), clone(estimator)).fit(X, y)
    if hasattr(pipeline, "predict"):
        found, expected = pipeline.predict(X), direct.predict(scaled)
    elif hasattr(pipeline, "score_samples"):
        found, expected = pipeline.score_samples(X), direct.score_samples(scaled)
    else:
        found, expected = pipeline.transform(X), direct.transform(scaled)
    np.testing.assert_array_equal(found, expected)


_METHODS_OF_REGRESSORS = {
    "adaptive boosting": lambda each: AdaBoostRegressor(each, n_estimators=2, random_state=0),
    "bagging": lambda each: BaggingRegressor(each, n_estimators=2, random_state=0),
    "chain": lambda each: RegressorChain(each),
    "outputs": lambda each: MultiOutputRegressor(each),
    "stacking": lambda each: StackingRegressor([("ours", each)], cv=2),
    "target": lambda each: TransformedTargetRegressor(each, func=np.exp, inverse_func=np.log),
    "voting": lambda each: VotingRegressor([("ours", each), ("line", LinearRegression())]),
}
_METHODS_OF_CLASSIFIERS = {
    "bagging": lambda each: BaggingClassifier(each, n_estimators=2, random_state=0),
    "calibration": lambda each: CalibratedClassifierCV(each, cv=2),
    "one against the rest": lambda each: OneVsRestClassifier(each),
    "self-training": lambda each: SelfTrainingClassifier(each, max_iter=1),
    "stacking": lambda each: StackingClassifier([("ours", each)], cv=2),
    "voting": lambda each: VotingClassifier(
        [("ours", each), ("line", LogisticRegression())], voting="soft"
    ),
}
# One network, and of those that fit others none.
_META = {
    name: each
    for name, each in (REGRESSORS | CLASSIFIERS).items()
    if name != "regressor" and not name.startswith("best")
}


@each({name: _META[name] for name in REGRESSORS if name in _META}, {"average"})
@pytest.mark.parametrize("method", _METHODS_OF_REGRESSORS)
def test_meta_estimators_of_regressors(estimator, method):
    X, y = data_for(estimator)
    y = y[:, None] if method in ("chain", "outputs") else y
    model = _METHODS_OF_REGRESSORS[method](clone(estimator)).fit(X, y)
    found = model.predict(X)
    assert found.shape == y.shape
    assert np.isfinite(found).all()
    assert np.ptp(found) > 0


@each(CLASSIFIERS, {"votes"})
@pytest.mark.parametrize("method", _METHODS_OF_CLASSIFIERS)
def test_meta_estimators_of_classifiers(estimator, method):
    X, y = data_for(estimator)
    if method == "self-training":
        y = np.where(np.arange(60) % 3 == 0, -1, (y == "b").astype(int))
    model = _METHODS_OF_CLASSIFIERS[method](clone(estimator)).fit(X, y)
    shares = model.predict_proba(X)
    np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-5)
    assert set(model.predict(X)) <= set(y)


@each(_META)
def test_tools_of_inspection_and_selection(estimator):
    X, y = data_for(estimator)
    model = clone(estimator).fit(X, y)
    found = permutation_importance(model, X, y, n_repeats=2, random_state=0)
    assert found.importances.shape == (2, 2)
    curve = partial_dependence(model, X, [0], grid_resolution=5)
    assert curve["average"].shape == (1, 5)
    left_out = cross_val_predict(clone(estimator), X, y, cv=folds(estimator))
    assert left_out.shape == y.shape
    selector = SequentialFeatureSelector(
        copy.deepcopy(estimator), n_features_to_select=1, cv=folds(estimator)
    )
    assert selector.fit(X, y).get_support().sum() == 1
