"""The weighted average against double loops, in every regime that once went wrong."""

import tracemalloc

import numpy as np
import pytest
import torch
from scipy import sparse
from scipy.special import softmax
from slow_attention import LOG_KERNELS, slow_average, slow_log_weights

from sklearn_attention import attend, attention_weights
from sklearn_attention.attention import attend_local, attention_sums

KERNELS = ["gaussian", "epanechnikov", "matern32", "tricube", "laplacian", "periodic"]
SIGNED = ["silverman", "polynomial"]


def make_data(n_queries=40, n_keys=60, n_features=2, n_values=3, seed=0):
    rng = np.random.default_rng(seed)
    queries = rng.normal(size=(n_queries, n_features))
    keys = rng.normal(size=(n_keys, n_features))
    return queries, keys, rng.normal(size=(n_keys, n_values))


def some_weights(n, *, whole=False):
    rng = np.random.default_rng(1)
    return rng.integers(0, 3, n).astype(float) if whole else rng.uniform(0.5, 2.0, n)


@pytest.mark.parametrize(
    ("kernel", "n_features", "bandwidth", "offset"),
    [
        ("gaussian", 1, 1e-3, 0.0),
        ("gaussian", 3, 1e3, 1e6),
        ("gaussian", 20, 5.0, 0.0),
        ("matern32", 1, 0.05, 0.0),
        ("matern32", 3, 0.5, 1e6),
        ("epanechnikov", 2, 0.3, 0.0),
    ],
)
def test_equals_double_loop(kernel, n_features, bandwidth, offset):
    queries, keys, values = make_data(n_features=n_features)
    queries, keys = queries + offset, keys + offset
    weight = some_weights(len(keys))
    averages, log_sums = attend(
        queries, keys, values, kernel, bandwidth=bandwidth, sample_weight=weight, empty="nan"
    )
    table = slow_log_weights(queries, keys, LOG_KERNELS[kernel], bandwidth, weight)
    found = np.isfinite(table).any(axis=1)
    assert found.all() != (kernel == "epanechnikov")
    expected, expected_log_sums = slow_average(table[found], values)
    np.testing.assert_allclose(averages[found], expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(log_sums[found], expected_log_sums, rtol=1e-11, atol=1e-11)
    assert np.isnan(averages[~found]).all()
    assert (log_sums[~found] == -np.inf).all()


@pytest.mark.parametrize("kernel", [*KERNELS, *SIGNED, "scaled_dot_product"])
def test_leave_one_out_equals_leaving_out(kernel):
    _, keys, values = make_data(n_keys=50)
    weight, bandwidth = some_weights(50, whole=True), 0.3
    averages, log_sums = attend(
        keys, keys, values, kernel, bandwidth=bandwidth, sample_weight=weight,
        leave_one_out=True,
    )  # fmt: skip
    for i in range(0, 50, 3):
        others = np.arange(50) != i
        expected, expected_log_sum = attend(
            keys[[i]], keys[others], values[others], kernel, bandwidth=bandwidth,
            sample_weight=weight[others],
        )  # fmt: skip
        np.testing.assert_allclose(averages[i], expected[0], rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(log_sums[i], expected_log_sum[0], rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(("leave_one_out", "empty"), [(False, "nearest"), (True, "nan")])
@pytest.mark.parametrize("kernel", ["gaussian", "epanechnikov", "silverman", "linear"])
def test_weights_average_the_values(kernel, leave_one_out, empty):
    queries, keys, values = make_data(n_queries=60)
    queries = keys if leave_one_out else queries
    weight = some_weights(len(keys), whole=True)
    options = dict(
        bandwidth=0.2, sample_weight=weight, leave_one_out=leave_one_out, empty=empty
    )
    weights = attention_weights(queries, keys, kernel, **options)
    averages, _ = attend(queries, keys, values, kernel, **options)
    kept = ~np.isnan(weights[:, 0])
    assert kept.all() or empty == "nan"
    np.testing.assert_allclose(weights[kept].sum(axis=1), 1, rtol=1e-9)
    np.testing.assert_allclose(
        np.where(kept[:, None], weights @ values, np.nan), averages, rtol=1e-9, atol=1e-9
    )


def test_an_answer_does_not_depend_on_its_company():
    queries, keys, values = (x.astype("float32") for x in make_data())
    far = np.concatenate([queries, np.full((1, 2), 1e5, "float32")])
    alone, _ = attend(queries, keys, values, bandwidth=0.3)
    together, _ = attend(far, keys, values, bandwidth=0.3)
    np.testing.assert_array_equal(alone, together[:-1])


def test_tensors_in_tensors_out():
    queries, keys, values = make_data()
    expected, _ = attend(queries, keys, values)
    averages, log_sums = attend(*map(torch.from_numpy, (queries, keys, values)))
    assert isinstance(averages, torch.Tensor)
    assert isinstance(log_sums, torch.Tensor)
    np.testing.assert_allclose(averages.numpy(), expected, rtol=1e-12)
    half, _ = attend(*(torch.from_numpy(x).half() for x in (queries, keys, values)))
    assert half.dtype == torch.float16
    coarse, _ = attend(*(torch.from_numpy(x).bfloat16() for x in (queries, keys, values)))
    assert coarse.dtype == torch.float32  # NumPy has no such numbers
    np.testing.assert_allclose(half.float().numpy(), expected, atol=0.02)


class TestExtremes:
    @pytest.mark.parametrize(("n_features", "n_keys"), [(1, 200), (2, 3000)])
    def test_heavy_keys_count_from_afar(self, n_features, n_keys):
        rng = np.random.default_rng(1)
        keys, queries = (rng.uniform(-1, 1, (n, n_features)) for n in (n_keys, 100))
        values, bandwidth = rng.normal(size=n_keys), 0.02
        weights = np.where(np.arange(n_keys) % 50, 1.0, 1e48)
        logs = -0.5 * ((queries[:, None] - keys) ** 2).sum(axis=2) / bandwidth**2
        shares = softmax(logs + np.log(weights), axis=1)
        found, _ = attend(queries, keys, values, bandwidth=bandwidth, sample_weight=weights)
        np.testing.assert_allclose(found, shares @ values, atol=1e-9)


class TestContainers:
    @pytest.mark.parametrize(
        ("keys", "error", "message"),
        [
            (sparse.csr_array(np.eye(3)), TypeError, r"keys is sparse.*toarray\(\)"),
            (np.eye(3) * 1j, ValueError, "has complex numbers, which are not supported"),
            (np.array([["a"] * 3] * 3), ValueError, "keys has texts, such as 'a'.*encode it"),
        ],
    )
    def test_what_is_not_numbers(self, keys, error, message):
        with pytest.raises(error, match=message):
            attend(np.eye(3), keys, np.ones(3))


def test_signed_weights_that_cancel():
    keys, values = np.array([[-1.0], [1.0]]), np.array([10.0, 20.0])
    averages, _ = attend([[0.9]], keys, values, "linear")
    np.testing.assert_allclose(averages, 20.0)
    assert np.isnan(attend([[0.9]], keys, values, "linear", empty="nan")[0]).all()


class TestMerge:
    def test_parts_that_do_not_belong_together(self):
        one = attention_sums([[0.0]], [[0.0]], np.array([1.0]))
        two = attention_sums([[0.0], [1.0]], [[0.0]], np.array([1.0]))
        other = attention_sums([[0.0]], [[0.0]], np.array([1.0]), empty="nan")
        for wrong in (two, other):
            with pytest.raises(ValueError, match=r"of shapes \(1, 2, 1\) and \(1"):
                one + wrong
        far = attention_sums([[5.0]], [[0.0]], np.array([1.0]), "boxcar", empty="nan")
        with pytest.raises(ValueError, match="empty='nearest' needs sums"):
            far.average()
        with pytest.raises(ValueError, match="empty='bogus' is unknown"):
            one.average("bogus")


class TestBadInput:
    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"queries": np.ones(3)}, r"queries must have shape .*reshape"),
            ({"queries": np.ones((2, 5))}, r"queries have 5 features but keys have 2"),
            ({"keys": np.empty((0, 2)), "values": np.empty(0)}, r"keys has 0 rows"),
            ({"keys": np.full((4, 2), np.nan)}, r"keys contains NaN: impute"),
            ({"values": np.ones(3)}, r"values must have shape \(4,\)"),
            ({"kernel": "gausian"}, r"'gausian' is unknown: did you mean 'gaussian'"),
            ({"bandwidth": 0.0}, r"bandwidth=0.0 is not valid.*greater than 0"),
            ({"bandwidth": [1.0, 2.0, 3.0]}, r"shape \(3,\), but there are 2 features"),
            ({"bandwidth": 1e-320}, r"divided by bandwidth=1e-320 overflow"),
            ({"sample_weight": -np.ones(4)}, r"sample_weight has a negative value, -1"),
            ({"sample_weight": np.zeros(4)}, r"sample_weight is 0 for every key"),
            ({"leave_one_out": True}, r"leave_one_out=True needs the keys"),
            ({"empty": "zero"}, r"empty='zero' is unknown: choose from"),
        ],
    )
    def test_names_parameter_value_and_remedy(self, change, message):
        arguments = dict(queries=np.zeros((3, 2)), keys=np.ones((4, 2)), values=np.ones(4))
        with pytest.raises(ValueError, match=message):
            attend(**(arguments | change))

    def test_gradients_are_refused(self):
        queries = torch.ones((3, 2), requires_grad=True)
        with pytest.raises(TypeError, match="requires_grad=True"):
            attend(queries, torch.ones((4, 2)), torch.ones(4))

    def test_tensors_elsewhere_are_refused(self):
        keys = torch.ones((4, 2), device="meta")
        with pytest.raises(TypeError, match=r"keys is a tensor on meta.*: pass keys.cpu\(\)"):
            attend(torch.ones((3, 2)), keys, torch.ones(4))


def test_memory_does_not_grow_with_the_pairs():
    # A matrix of 3000 x 3000 pairs has 72 MB.
    X = np.linspace(0, 1, 3000)[:, None]
    for kernel in ("epanechnikov", "gaussian"):
        attend(X[:100], X, X[:, 0], kernel, bandwidth=0.1)
        tracemalloc.start()
        attend(X, X, X[:, 0], kernel, bandwidth=0.1)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 8e6


@pytest.mark.parametrize(("kernel", "n_features"), [("gaussian", 1), ("laplacian", 3)])
def test_no_queries(kernel, n_features):
    _, keys, values = make_data(n_features=n_features)
    nothing = keys[:0]
    averages, log_normalizers = attend(nothing, keys, values, kernel)
    assert averages.shape == (0, values.shape[1])
    assert log_normalizers.shape == (0,)
    assert attention_weights(nothing, keys, kernel).shape == (0, len(keys))
    fit = attend_local(nothing, keys, values, kernel, degree=2)
    assert fit.values.shape == (0, values.shape[1])
    assert fit.slopes.shape == (0, values.shape[1], n_features)
    assert attention_sums(nothing, keys, values, kernel).sums[0, 1:].T.shape == averages.shape
