"""Length-scales learned where one feature matters and others are noise."""

import numpy as np
import pytest
import torch

from sklearn_attention.kernels import as_kernel
from sklearn_attention.nn import ViewKernel, leave_one_out_errors, local_average, without_own
from sklearn_attention.training import learn_attending, learn_solving, refine_attending

NAMES = ("scale", "column", "amplitude", "noise", "ridge")
MATTERS = 2


def make_data(n=120, n_features=4, seed=0, labels=False):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_features))
    y = np.sin(1.5 * X[:, MATTERS])
    y = (y > 0).astype(float) if labels else y + 0.1 * rng.normal(size=n)
    y = np.column_stack([1 - y, y]) if labels else ((y - y.mean()) / y.std())[:, None]
    return torch.as_tensor(X).float(), torch.as_tensor(y).float()


def start_kernel(X, name="gaussian", n_heads=1, constant=1.0):
    features = [torch.arange(X.shape[1])] * n_heads
    spreads = [X.var(dim=0, unbiased=False)] * n_heads
    kernel = ViewKernel.start(
        features, spreads, X.shape[1], as_kernel(name), jitter=0.1,
        generator=torch.Generator().manual_seed(0), constant=constant,
    )  # fmt: skip
    return kernel, [X] * n_heads


def solving_error(kernel, rows, y):
    noise = torch.exp(2 * kernel.parameters["noise"]) + 1e-4
    matrix = kernel.matrix(kernel.scaled(rows)) + noise * torch.eye(len(y))
    return float(leave_one_out_errors(matrix, y).square().mean())


def attending_error(kernel, rows, y, slopes):
    scaled, own = kernel.scaled(rows), torch.arange(len(y))
    weights = torch.softmax(without_own(kernel.log_matrix(scaled, scaled), own), dim=1)
    lines = () if slopes is None else (slopes, slopes, torch.exp(kernel.parameters["ridge"]))
    return float((local_average(weights, y, *lines)[0] - y).square().mean())


def copies(kernel):
    return {name: value.clone() for name, value in kernel.parameters.items()}


def learn(way, kernel, rows, y, n_steps=80, seed=0, fixed=(), weights=None, **options):
    generator = torch.Generator().manual_seed(seed)
    weights = torch.ones(len(y)) if weights is None else weights
    options |= dict(n_steps=n_steps, generator=generator, fixed=fixed)
    if way == "solve":
        learn_solving(kernel, rows, y, weights, **dict(share=1.0, precision=0.0) | options)
    else:
        slopes = rows[0] if way == "local_linear" else None
        learn_attending(kernel, rows, y, weights, slopes=slopes, **options)


WAYS = pytest.mark.parametrize("way", ["solve", "average", "local_linear"])


@WAYS
@pytest.mark.parametrize("name", ["gaussian", "exponential"])
def test_learning_lowers_the_error_and_finds_the_feature(way, name):
    X, y = make_data()
    kernel, rows = start_kernel(X, name)

    def error():
        if way == "solve":
            return solving_error(kernel, rows, y)
        return attending_error(kernel, rows, y, X if way == "local_linear" else None)

    before = error()
    learn(way, kernel, rows, y)
    assert error() < 0.7 * before
    scale = kernel.parameters["scale"][0]
    others = np.delete(scale.numpy(), MATTERS)
    assert float(scale[MATTERS]) > others.max() + 0.7
    assert not any(value.requires_grad for value in kernel.parameters.values())


def test_learning_from_classes_finds_the_feature():
    X, y = make_data(labels=True)
    kernel, rows = start_kernel(X)
    learn("average", kernel, rows, y, loss="log")
    scale = kernel.parameters["scale"][0].numpy()
    assert scale[MATTERS] > np.delete(scale, MATTERS).max() + 0.7


def test_many_rows_are_learned_from_by_neighbourhoods():
    X, y = make_data(n=2100)
    kernel, rows = start_kernel(X)
    before = solving_error(kernel, rows, y)
    learn("solve", kernel, rows, y, n_steps=8)
    assert solving_error(kernel, rows, y) < before


@WAYS
@pytest.mark.parametrize(
    "fixed", [("scale", "column"), ("amplitude",), ("noise", "ridge"), NAMES]
)
def test_what_is_fixed_stays_bit_for_bit(way, fixed):
    X, y = make_data(n=40)
    kernel, rows = start_kernel(X, n_heads=2)
    before = copies(kernel)
    learn(way, kernel, rows, y, n_steps=3, fixed=fixed)
    unused = "ridge" if way == "solve" else "noise"
    # Averages have no ridge, and columns of features that have one deviate from nothing.
    unused = {unused, "column"} | ({"ridge"} if way == "average" else set())
    for name in NAMES:
        same = torch.equal(kernel.parameters[name], before[name])
        assert same == (name in fixed or name in unused), name


@WAYS
def test_0_steps_change_nothing(way):
    X, y = make_data(n=40)
    kernel, rows = start_kernel(X)
    before = copies(kernel)
    learn(way, kernel, rows, y, n_steps=0)
    for name in NAMES:
        assert torch.equal(kernel.parameters[name], before[name])


@WAYS
def test_the_generator_decides(way):
    found = []
    X, y = make_data(n=300)
    for seed in (0, 0, 1):
        kernel, rows = start_kernel(X)
        options = {"share": 0.5} if way == "solve" else {}
        learn(way, kernel, rows, y, n_steps=3, seed=seed, **options)
        found.append(kernel.parameters["scale"])
    assert torch.equal(found[0], found[1])
    assert not torch.equal(found[0], found[2])


def test_held_firmly_scales_move_less():
    X, y = make_data(n=60)
    moved = []
    for precision in (0.0, 500.0):
        kernel, rows = start_kernel(X)
        start = kernel.parameters["scale"].clone()
        learn("solve", kernel, rows, y, n_steps=20, precision=precision)
        moved.append(float((kernel.parameters["scale"] - start).abs().max()))
    assert moved[1] < 0.5 * moved[0]


@WAYS
def test_rows_of_little_weight_say_little(way):
    # Half of the rows follow another feature; weights say which half counts.
    X, y = make_data(n=160)
    other = torch.sin(1.5 * X[:, 0])
    y[80:, 0] = other[80:]
    weights = torch.ones(160)
    weights[80:] = 1e-3
    kernel, rows = start_kernel(X)
    learn(way, kernel, rows, y, weights=weights)
    scale = kernel.parameters["scale"][0]
    assert scale[MATTERS] > scale[0] + 0.3


@WAYS
def test_repeated_rows_are_no_trouble(way):
    X, y = (torch.cat([part[:20]] * 3) for part in make_data())
    kernel, rows = start_kernel(X)
    kernel.parameters["noise"].fill_(-20.0)
    learn(way, kernel, rows, y, n_steps=5)
    assert all(torch.isfinite(value).all() for value in kernel.parameters.values())


@pytest.mark.parametrize("n_heads", [1, 2])
@pytest.mark.parametrize("way", ["average", "local_linear"])
def test_a_compact_kernel_that_reaches_nobody_is_no_trouble(way, n_heads):
    X, y = make_data(n=40)
    kernel, rows = start_kernel(X, "tricube", n_heads)
    kernel.parameters["scale"] += 1.0
    scaled = kernel.scaled(rows)
    own = without_own(kernel.log_matrix(scaled, scaled), torch.arange(40))
    assert torch.isneginf(own).all(dim=1).any()
    learn(way, kernel, rows, y, n_steps=5)
    assert all(torch.isfinite(value).all() for value in kernel.parameters.values())


class TestRefining:
    def refine(self, kernel, rows, y, slopes=None, fixed=(), own=None):
        refine_attending(
            kernel, rows, y, torch.ones(len(y)), slopes=slopes,
            own=torch.arange(len(y)) if own is None else own,
            generator=torch.Generator().manual_seed(0), fixed=fixed,
        )  # fmt: skip

    @pytest.mark.parametrize("lines", [False, True])
    @pytest.mark.parametrize("n_heads", [1, 2])
    def test_narrows_what_looks_too_far(self, n_heads, lines):
        X, y = make_data(n=200, n_features=3)
        kernel, rows = start_kernel(X, n_heads=n_heads)
        slopes = X if lines else None
        before, error = copies(kernel), attending_error(kernel, rows, y, slopes)
        self.refine(kernel, rows, y, slopes)
        assert attending_error(kernel, rows, y, slopes) < error
        # One temperature for every head: features keep their proportions.
        moved = (kernel.parameters["scale"] - before["scale"]).numpy()
        np.testing.assert_allclose(moved, np.broadcast_to(moved[:, :1], moved.shape), atol=1e-6)
        assert (moved > 0).all()
        for name in ("column", "noise"):
            assert torch.equal(kernel.parameters[name], before[name])

    def test_what_is_fixed_stays_bit_for_bit(self):
        X, y = make_data(n=60)
        kernel, rows = start_kernel(X, n_heads=2)
        before = copies(kernel)
        self.refine(kernel, rows, y, X, fixed=("scale", "amplitude"))
        for name in ("scale", "amplitude", "column", "noise"):
            assert torch.equal(kernel.parameters[name], before[name]), name
        assert not torch.equal(kernel.parameters["ridge"], before["ridge"])


def test_double_precision_takes_over_where_single_loses_the_distances():
    # In single precision the squares of such coordinates leave no digit for the distances.
    rng = np.random.default_rng(0)
    x = torch.as_tensor(rng.normal(size=(60, 1)) + 5e4, dtype=torch.float32)
    targets = torch.as_tensor(np.sin(rng.normal(size=(60, 1))), dtype=torch.float32)
    kernel = ViewKernel.start(
        [torch.zeros(1, dtype=torch.long)], [x.var(0)], 1, as_kernel("gaussian"), jitter=0.0,
        generator=torch.Generator().manual_seed(0),
    )  # fmt: skip
    kernel.parameters["noise"].fill_(-20.0)
    matrix = kernel.matrix(kernel.scaled([x])) + 1e-5 * torch.eye(60)
    with pytest.raises(torch.linalg.LinAlgError):
        torch.linalg.cholesky(matrix)
    learn_solving(
        kernel, [x], targets, torch.ones(60), n_steps=3, share=1.0, precision=0.0,
        generator=torch.Generator().manual_seed(0),
    )  # fmt: skip
    assert all(torch.isfinite(value).all() for value in kernel.parameters.values())
