"""The plug-in bandwidth: each stage against its definition, the whole against the truth."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from sklearn_attention.bandwidth import _plug_in, plug_in_bandwidth
from sklearn_attention.kernels import (
    Boxcar,
    Epanechnikov,
    Gaussian,
    Logistic,
    Matern32,
    Silverman,
    SmoothingKernel,
)
from sklearn_attention.kernels._base import KERNELS

OF_SECOND_ORDER = [
    cls()
    for cls in KERNELS.values()
    if issubclass(cls, SmoothingKernel) and cls.second_moment > 0
]


def make_data(n=300, noise=0.3, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=n)
    return x, np.sin(2 * np.pi * x) + noise * rng.normal(size=n)


def make_places(n=240, seed=0, ties=False):
    """Places on [0, 1] with a standardised target; and the rows that lie there."""
    x, y = make_data(n, seed=seed)
    x = np.round(x * 40) if ties else x
    x, y = (x - x.min()) / np.ptp(x), (y - y.mean()) / y.std()
    order = np.argsort(x, kind="stable")
    return _plug_in._places(x, y, np.ones(n)), x[order], y[order]


def slow_local_fit(x, y, at, width, degree):
    """Coefficients of a local polynomial, and the operator that gives them."""
    root = np.sqrt(norm.pdf((x - at) / width))
    design = np.vander(x - at, degree + 1, increasing=True)
    operator = np.linalg.pinv(root[:, None] * design) * root
    return operator @ y, operator


class TestStages:
    def test_equal_rows_become_places(self):
        places, x, y = make_places(ties=True)
        np.testing.assert_array_equal(places.x, np.unique(x))
        for place in range(len(places.x)):
            there = y[x == places.x[place]]
            assert places.weight[place] == len(there)
            assert places.y[place] == pytest.approx(there.mean())
            assert places.scatter[place] == pytest.approx(((there - there.mean()) ** 2).sum())

    def test_trimming_drops_one_per_cent_of_the_rows_at_each_end(self):
        places, *_ = make_places(200)
        trimmed = _plug_in._trimmed(places)
        for field, whole in zip(trimmed, places, strict=True):
            np.testing.assert_allclose(field, whole[2:-2], rtol=1e-12)
        places, *_ = make_places(150)
        trimmed = _plug_in._trimmed(places)
        np.testing.assert_allclose(trimmed.weight[[0, 1, -2, -1]], [0.5, 1, 1, 0.5])
        np.testing.assert_array_equal(trimmed.x, places.x[1:-1])

    def test_blocks_hold_equal_weight(self):
        weight = np.array([1.0, 1.0, 4.0, 1.0, 2.0])
        place, block, piece = _plug_in._pieces(weight, 3)
        np.testing.assert_array_equal(place, [0, 1, 2, 2, 3, 4])
        np.testing.assert_array_equal(block, [0, 0, 0, 1, 2, 2])
        np.testing.assert_allclose(piece, [1, 1, 1, 3, 1, 2])

    @pytest.mark.parametrize("noise", [0.05, 0.3, 3.0])
    def test_quartics_with_the_number_of_blocks_by_mallows(self, noise):
        x, y = make_data(240, noise)
        x = np.sort(x)
        y = (y - y.mean()) / y.std()
        n, most, q = 240, 5, 5
        squares, theta24 = [], []
        for n_blocks in range(1, most + 1):
            rss = products = 0.0
            for rows in np.split(np.arange(n), n_blocks):
                u = x[rows] - x[rows].mean()
                c = np.polyfit(u, y[rows], 4)
                rss += ((y[rows] - np.polyval(c, u)) ** 2).sum()
                products += (
                    np.polyval(np.polyder(c, 2), u) * np.polyval(np.polyder(c, 4), u)
                ).sum()
            squares.append(rss)
            theta24.append(products / n)
        criterion = [
            (n - q * most) * rss / squares[-1] + 2 * q * n_blocks - n
            for n_blocks, rss in enumerate(squares, 1)
        ]
        best = int(np.argmin(criterion))
        found = _plug_in._quartic_pilot(_plug_in._places(x, y, np.ones(n)))
        expected = squares[best] / (n - q * (best + 1)), theta24[best]
        np.testing.assert_allclose(found, expected, rtol=1e-8)

    def test_few_rows_or_places_make_few_blocks(self):
        assert _number_of_quartics(np.arange(59.0)) == 1 + 2
        assert _number_of_quartics(np.arange(500.0)) == 1 + 2 + 3 + 4 + 5
        # 12 places suffice for two quartics, not for three.
        assert _number_of_quartics(np.repeat(np.arange(12.0), 20)) == 1 + 2

    def test_width_of_the_cubic_fit(self):
        for theta24, constant in ((-2e4, 3 / 8), (2e4, 15 / 16)):
            expected = (constant / math.sqrt(math.pi) * 0.3 / (2e4 * 500)) ** (1 / 7)
            found = _plug_in._width_for_curvature(0.3, theta24, 500)
            assert found == pytest.approx(expected, rel=1e-12)
        assert _plug_in._width_for_curvature(0.3, 0.0, 500) == 1
        assert _plug_in._width_for_curvature(0.3, 1e-9, 500) == 1

    def test_width_of_the_linear_fit(self):
        # The Gaussian convolved with itself has variance 2.
        roughness, _ = quad(
            lambda u: (norm.pdf(u, 0, math.sqrt(2)) - 2 * norm.pdf(u)) ** 2, -30, 30
        )
        expected = (4 * roughness * 0.3**2 / (800.0 * 500) ** 2) ** (1 / 9)
        assert _plug_in._width_for_variance(0.3, 800.0, 500) == pytest.approx(expected)
        assert _plug_in._width_for_variance(0.3, 0.0, 500) == 1

    @pytest.mark.parametrize("ties", [False, True])
    def test_curvature(self, ties):
        places, x, y = make_places(200, ties=ties)
        second = [2 * slow_local_fit(x, y, at, 0.12, 3)[0][2] for at in x]
        inner = (x >= 0.05) & (x <= 0.95)
        expected = (np.square(second) * inner).mean()
        assert _plug_in._curvature(places, 0.12) == pytest.approx(expected, rel=1e-9)

    @pytest.mark.parametrize("ties", [False, True])
    def test_variance_and_its_degrees_of_freedom(self, ties):
        places, x, y = make_places(200, ties=ties)
        S = np.array([slow_local_fit(x, y, at, 0.06, 1)[1][0] for at in x])
        expected = ((y - S @ y) ** 2).sum() / (len(x) - 2 * np.trace(S) + np.trace(S @ S.T))
        assert _plug_in._variance(places, 0.06) == pytest.approx(expected, rel=1e-10)

    def test_blocks_of_places_change_nothing(self, monkeypatch):
        places, *_ = make_places(200)
        expected = _plug_in._curvature(places, 0.1), _plug_in._variance(places, 0.1)
        monkeypatch.setattr(_plug_in, "_BLOCK_PAIRS", 700)
        found = _plug_in._curvature(places, 0.1), _plug_in._variance(places, 0.1)
        np.testing.assert_allclose(found, expected, rtol=1e-12)

    def test_windows_hold_enough_places(self):
        x = np.sort(np.random.default_rng(0).lognormal(size=50))
        expected = np.sort(abs(x[:, None] - x), axis=1)[:, 7]
        places = _plug_in._places(x, x, np.ones(50))
        ((_, widths, _),) = _plug_in._local_fits(places, 1e-9, degree=3, order=0)
        np.testing.assert_allclose(2 * widths, expected)

    def test_fractions_of_rows_leave_the_variance_to_the_pilot(self):
        x = np.linspace(0, 1, 1000)
        places = _plug_in._places(x, np.sin(40 * x), np.full(1000, 0.012))
        assert _plug_in._variance(places, 1e-3) is None
        assert plug_in_bandwidth(x, np.sin(40 * x), Gaussian(), np.full(1000, 0.012)) > 0

    def test_the_bandwidth_puts_them_together(self):
        x, y = make_data()
        places, unit = _plug_in._standardised(
            _plug_in._trimmed(_plug_in._places(x, y, np.ones(len(x))))
        )
        n = places.weight.sum()
        pilot, theta24 = _plug_in._quartic_pilot(places)
        theta22 = _plug_in._curvature(places, _plug_in._width_for_curvature(pilot, theta24, n))
        variance = _plug_in._variance(places, _plug_in._width_for_variance(pilot, theta22, n))
        for kernel in (Gaussian(), Epanechnikov()):
            ratio = kernel.roughness * variance / (kernel.second_moment**2 * theta22 * n)
            expected = ratio**0.2 * unit
            assert plug_in_bandwidth(x, y, kernel) == pytest.approx(expected, rel=1e-10)


def _number_of_quartics(x):
    calls = []
    polynomial = _plug_in._polynomial
    places = _plug_in._places(x, np.cos(x), np.ones(len(x)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            _plug_in, "_polynomial", lambda *args: calls.append(args) or polynomial(*args)
        )
        _plug_in._quartic_pilot(places)
    return len(calls)


@pytest.mark.parametrize(
    ("kernel", "design"), [(Gaussian(), "beta"), (Epanechnikov(), "uniform")], ids=repr
)
@pytest.mark.slow
def test_near_the_best_bandwidth_of_the_truth(kernel, design):
    rng = np.random.default_rng(1)
    n, sigma = 2000, 0.3
    x = rng.uniform(size=n) if design == "uniform" else rng.beta(2, 2, size=n)
    y = np.sin(2 * np.pi * x) + sigma * rng.normal(size=n)
    density = (lambda t: 1.0) if design == "uniform" else (lambda t: 6 * t * (1 - t))
    theta22, _ = quad(lambda t: (4 * np.pi**2 * np.sin(2 * np.pi * t)) ** 2 * density(t), 0, 1)
    best = (kernel.roughness * sigma**2 / (kernel.second_moment**2 * theta22 * n)) ** 0.2
    assert plug_in_bandwidth(x, y, kernel) == pytest.approx(best, rel=0.15)


def test_many_rows_are_pooled(monkeypatch):
    x, y = make_data(1601)
    exact = {}
    for most in (200, 1000, 10_000):
        monkeypatch.setattr(_plug_in, "_MAX_PLACES", most)
        exact[most] = plug_in_bandwidth(x, y, Gaussian())
    assert exact[1000] == pytest.approx(exact[10_000], rel=1e-3)
    assert exact[200] == pytest.approx(exact[10_000], rel=0.02)


def test_fifty_thousand_rows():
    x, y = make_data(50_000)
    theta22 = (2 * np.pi) ** 4 / 2
    best = Gaussian().canonical_bandwidth * (0.09 / (theta22 * 50_000)) ** 0.2
    assert plug_in_bandwidth(x, y, Gaussian()) == pytest.approx(best, rel=0.1)


@pytest.mark.parametrize(
    ("n", "scale", "shift"),
    [
        (60, 1e-9, 0.0), (60, 1e9, 3e9), (60, -3.0, 1e3), (301, -1.0, 0.0), (301, 0.5, -100.0),
        (1200, 1e-9, 0.0), (1200, -3.0, 1e3),
    ],
)  # fmt: skip
def test_follows_the_units_of_x(n, scale, shift, monkeypatch):
    monkeypatch.setattr(_plug_in, "_MAX_PLACES", 1000)  # more are pooled
    x, y = make_data(n)
    expected = abs(scale) * plug_in_bandwidth(x, y, Gaussian())
    found = plug_in_bandwidth(scale * x + shift, y, Gaussian())
    assert found == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize(("scale", "shift"), [(1e-9, 0.0), (-1e9, 1e9), (1.0, 1e4)])
def test_the_units_of_y_do_not_matter(scale, shift):
    x, y = make_data()
    expected = plug_in_bandwidth(x, y, Gaussian())
    found = plug_in_bandwidth(x, scale * y + shift, Gaussian())
    assert found == pytest.approx(expected, rel=1e-8)


def test_the_units_of_y_do_not_matter_where_rows_have_the_same_place():
    """Places have a variance of their own then, in the same units."""
    x, y = make_data()
    x = np.round(x, 2)
    expected = plug_in_bandwidth(x, y, Gaussian())
    for scale in (1e-3, 50.0):
        found = plug_in_bandwidth(x, scale * y, Gaussian())
        assert found == pytest.approx(expected, rel=1e-9)


def test_the_order_of_rows_does_not_matter():
    x, y = make_data()
    x = np.round(x, 2)
    order = np.random.default_rng(1).permutation(len(x))
    expected = plug_in_bandwidth(x, y, Gaussian())
    assert plug_in_bandwidth(x[order], y[order], Gaussian()) == pytest.approx(
        expected, rel=1e-9
    )


def test_columns_of_one_are_vectors():
    x, y = make_data()
    found = plug_in_bandwidth(x[:, None], y[:, None].tolist(), Gaussian())
    assert found == plug_in_bandwidth(x, y, Gaussian())
    assert isinstance(found, float)


@pytest.mark.parametrize("kernel", OF_SECOND_ORDER, ids=repr)
def test_kernels_differ_by_their_canonical_bandwidths(kernel):
    x, y = make_data()
    ratio = kernel.canonical_bandwidth / Gaussian().canonical_bandwidth
    expected = ratio * plug_in_bandwidth(x, y, Gaussian())
    assert plug_in_bandwidth(x, y, kernel) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("n", [80, 400, 900])
def test_weights_count_rows(n):
    x, y = make_data(n)
    weight = np.random.default_rng(1).integers(0, 4, n)
    repeated = np.repeat(np.arange(n), weight)
    found = plug_in_bandwidth(x, y, Gaussian(), sample_weight=weight)
    expected = plug_in_bandwidth(x[repeated], y[repeated], Gaussian())
    assert found == pytest.approx(expected, rel=1e-8)
    assert found != pytest.approx(plug_in_bandwidth(x, y, Gaussian()), rel=1e-3)


class TestDegenerate:
    @pytest.mark.parametrize("offset", [0.0, 1e6])
    @pytest.mark.parametrize("slope", [0.0, 2.0, -1e-3])
    def test_a_straight_line_takes_the_extent(self, slope, offset):
        x = np.linspace(3, 8, 101)
        y = slope * x + offset
        assert plug_in_bandwidth(x, y, Gaussian()) == pytest.approx(5.0, rel=1e-12)
        ratio = Boxcar().canonical_bandwidth / Gaussian().canonical_bandwidth
        assert plug_in_bandwidth(x, y, Boxcar()) == pytest.approx(5 * ratio, rel=1e-12)

    def test_never_more_than_the_extent(self):
        # Hardly curved at all, under so much noise.
        rng = np.random.default_rng(0)
        x = np.arange(10.0)
        for _ in range(20):
            assert plug_in_bandwidth(x, x + rng.normal(size=10), Logistic()) <= 9.0

    @pytest.mark.parametrize("power", [2, 4])
    def test_without_noise_half_a_gap_is_left(self, power):
        x = np.linspace(0, 1, 201)
        bandwidth = plug_in_bandwidth(x, x**power, Gaussian())
        assert 0.0025 <= bandwidth <= 0.01

    def test_few_places_with_many_rows(self):
        rng = np.random.default_rng(0)
        x = rng.integers(0, 12, 5000).astype(float)
        y = np.sin(x) + 0.1 * rng.normal(size=5000)
        assert 0.5 <= plug_in_bandwidth(x, y, Gaussian()) < 2.0

    def test_a_gap_and_an_outlier(self):
        rng = np.random.default_rng(0)
        x = np.concatenate([rng.uniform(0, 1, 200), rng.uniform(9, 10, 200), [1e4]])
        y = np.sin(6 * x) + 0.1 * rng.normal(size=401)
        assert 0.01 < plug_in_bandwidth(x, y, Gaussian()) < 0.2

    def test_heavy_tails(self):
        rng = np.random.default_rng(0)
        x = rng.standard_cauchy(2000)
        y = np.sin(x) + 0.3 * rng.normal(size=2000)
        assert 0 < plug_in_bandwidth(x, y, Gaussian()) < np.ptp(x)


class TestBadInput:
    @pytest.mark.parametrize("kernel", [Silverman(), Matern32(), "gaussian"], ids=repr)
    def test_kernels_without_a_second_moment(self, kernel):
        message = r"bandwidth='plug-in' needs a smoothing kernel.*bandwidth='loo'"
        with pytest.raises(ValueError, match=message):
            plug_in_bandwidth(*make_data(), kernel)

    @pytest.mark.parametrize(
        ("x", "found"),
        [
            (np.ones(50), "got 49 and 1 "),
            (np.arange(9.0), "got 8.82 and 9 "),
            (np.repeat(np.arange(5.0), 10), "got 49 and 5 "),
            (np.arange(0.0), "got 0 and 0 "),
        ],
    )
    def test_too_few_places(self, x, found):
        message = f"needs at least 10 rows and as many distinct values of X, {found}"
        with pytest.raises(ValueError, match=message):
            plug_in_bandwidth(x, x, Gaussian())

    def test_weights_that_sum_to_one(self):
        x, y = make_data()
        with pytest.raises(ValueError, match=r"got 0\.98 and 294 .*weights count rows"):
            plug_in_bandwidth(x, y, Gaussian(), np.full(300, 1 / 300))

    def test_several_features_or_targets(self):
        x, y = make_data()
        with pytest.raises(ValueError, match=r"one feature .* X has shape \(150, 2\): pass"):
            plug_in_bandwidth(x.reshape(-1, 2), y[:150], Gaussian())
        with pytest.raises(ValueError, match=r"one target, but y has shape \(150, 2\): pass"):
            plug_in_bandwidth(x[:150], y.reshape(-1, 2), Gaussian())

    def test_values_that_are_not_numbers(self):
        x, y = make_data()
        for bad in (np.nan, np.inf):
            with pytest.raises(ValueError, match="X contains NaN or infinity"):
                plug_in_bandwidth(np.append(x, bad), np.append(y, 0), Gaussian())
            with pytest.raises(ValueError, match="y contains NaN or infinity"):
                plug_in_bandwidth(np.append(x, 0), np.append(y, bad), Gaussian())
            with pytest.raises(ValueError, match="sample_weight is not valid: pass finite"):
                plug_in_bandwidth(x, y, Gaussian(), np.full(300, bad))

    def test_lengths_that_differ(self):
        x, y = make_data()
        with pytest.raises(ValueError, match="one entry for each row, got 300, 299"):
            plug_in_bandwidth(x, y[:-1], Gaussian())
        with pytest.raises(ValueError, match=r"shape \(299,\)"):
            plug_in_bandwidth(x, y, Gaussian(), np.ones(299))
        with pytest.raises(ValueError, match="sample_weight is not valid"):
            plug_in_bandwidth(x, y, Gaussian(), np.full(300, -1.0))
