"""Errors of a smoother's model, against those of models that are fitted again."""

import numpy as np
import pytest
from sklearn.base import clone
from smoothing_cases import wave

from sklearn_attention.smoothing._model_error import row_distances


def slow_biases(model, queries):
    """Squared errors of the model in units of the noise, from models in wider windows."""
    X, y = model.keys_, model.values_
    h, n = model.bandwidth_[0], len(y)
    weights = getattr(model, "robustness_weights_", np.ones(n))
    places = X[:, 0] / h

    def reach(effects, at):
        sizes = np.abs(effects)
        return np.sqrt(sizes @ (places - at) ** 2 / sizes.sum()), sizes.sum()

    usual = []
    for i in range(n):
        effects = model.smoother_matrix(X[[i]])[0]
        effects[i] = 0
        usual.append(reach(effects, places[i])[0])
    usual = np.median(usual)
    factors, growth = [1.0], [0.0]
    base = np.average(model.loo_residuals_**2, weights=weights)
    quarters = np.array_split(np.argsort(places), 2)
    quarters = [part for half in quarters for part in np.array_split(half, 2)]
    while factors[-1] * np.sqrt(2) * usual < 2 * np.ptp(places):
        factors.append(factors[-1] * np.sqrt(2))
        wider = clone(model).set_params(bandwidth=h * factors[-1], robust=False)
        wider.fit(X, y, weights)
        rise = (wider.loo_residuals_**2 - model.loo_residuals_**2) / base
        most = max(np.average(rise[part], weights=weights[part]) for part in quarters)
        growth.append(max(growth[-1], (np.average(rise, weights=weights) + most) / 2))
    variance = np.var(places)
    for query, effects in zip(queries[:, 0], model.smoother_matrix(queries), strict=True):
        distance, total = reach(effects, query / h)
        grown = np.interp(np.log2(max(distance / usual, 1)), np.log2(factors), growth)
        least = max(distance - usual, 0) ** 2 / (3 * variance)
        moment = effects @ places - query / h
        yield total**2 * max(grown, least) + growth[-1] / variance * moment**2


@pytest.mark.parametrize(("degree", "robust"), [(0, False), (2, False), (1, True)])
def test_errors_of_the_model_are_those_of_windows_that_reach_as_far(degree, robust):
    model = wave(degree=degree, robust=robust)
    queries = np.array([[-0.6], [-0.1], [0.3], [1.02], [1.4]])
    *_, found = parts_at(model, queries)
    np.testing.assert_allclose(found[:, 0] - 1, list(slow_biases(model, queries)), rtol=1e-6)
    assert found[2] < 1.2 < found[[0, 4]].min()


def parts_at(model, queries):
    smoother = model.smoother_
    return smoother.errors.variance_terms(queries, smoother.local_rows(queries).effects)


def test_errors_of_an_average_grow_with_those_of_its_line_beyond_the_rows():
    model = wave(degree="auto")
    smoother, X = model.smoother_, model.keys_
    assert len(smoother.members) > 1
    line = wave(degree=1).smoother_
    queries = np.array([[-0.4], [1.3]])
    edge = queries.clip(X.min(), X.max())
    *_, at_edge = parts_at(model, edge)
    model_error = line.errors.model_error
    there, here = (model_error.sizes(x, line.local_rows(x).effects) for x in (queries, edge))
    assert (there > here).all()
    expected = np.sqrt(at_edge - 1) + there - here
    np.testing.assert_allclose(parts_at(model, queries)[2], 1 + expected**2, rtol=1e-9)


def test_distances_of_rows_are_those_of_their_definition():
    rng = np.random.default_rng(0)
    queries, rows, hat_weights = (rng.normal(size=shape) for shape in ((4, 2), (9, 2), (4, 9)))
    rms, total_weight, offset = row_distances(queries + 1e6, rows + 1e6, hat_weights)
    for m, (query, weights) in enumerate(zip(queries, hat_weights, strict=True)):
        squares = ((rows - query) ** 2).sum(axis=1)
        assert total_weight[m] == pytest.approx(np.abs(weights).sum())
        mean_square = np.average(squares, weights=np.abs(weights))
        assert rms[m] == pytest.approx(np.sqrt(mean_square), rel=1e-8)
        assert offset[m] == pytest.approx(np.linalg.norm(weights @ (rows - query)), rel=1e-8)
