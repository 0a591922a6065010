"""The ways behind one average agree, and are taken where they are accurate."""

import numpy as np
import pytest
import torch

from sklearn_attention import attend
from sklearn_attention.attention import _threads
from sklearn_attention.attention._algorithms import _all_pairs, _fused, _tiles
from sklearn_attention.attention._read import read


def make_task(kernel="gaussian", bandwidth=1.0, *, leave_one_out=False, dtype=np.float64, d=3):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, d)).astype(dtype), rng.normal(size=(300, 2)).astype(dtype)
    task, _ = read(
        X, X, y, kernel, bandwidth=bandwidth, sample_weight=rng.uniform(0.5, 2, 300),
        leave_one_out=leave_one_out,
    )  # fmt: skip
    return task.tensors()


def finished(sums):
    return sums.sums[0, 1:] / sums.sums[0, 0], sums.log_total


@pytest.mark.parametrize("kernel", ["gaussian", "scaled_dot_product"])
@pytest.mark.parametrize("leave_one_out", [False, True])
@pytest.mark.parametrize("bandwidth", [0.05, 0.5, 5.0])
def test_fused_equals_tiles(kernel, leave_one_out, bandwidth):
    task = make_task(kernel, bandwidth, leave_one_out=leave_one_out)
    fused, tiles = finished(_fused.fused_sums(task)), finished(_tiles.tile_sums(task))
    torch.testing.assert_close(fused[0], tiles[0], rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(fused[1], tiles[1], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_private_operator_equals_public_functions(dtype):
    rng = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(200, 16, dtype=dtype, generator=rng) for _ in range(3))
    bias = torch.randn(200, dtype=dtype, generator=rng)
    private = _fused.cpu_flash_attention(q, k, v, bias)
    public = _fused.public_attention(q, k, v, bias)
    for ours, theirs in zip(private, public, strict=True):
        torch.testing.assert_close(ours, theirs)


def test_fallback_where_the_private_operator_is_gone(monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100, 3)), rng.normal(size=100)
    expected = attend(X, X, y, leave_one_out=True)

    class NoOperators:
        def __getattr__(self, name):
            raise AttributeError(name)

    monkeypatch.setattr(torch.ops, "aten", NoOperators())
    for ours, theirs in zip(attend(X, X, y, leave_one_out=True), expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-11)


@pytest.mark.parametrize(
    ("dtype", "bandwidth", "expected"),
    [
        (np.float32, 1.0, [("fused_sums", torch.float32)]),
        (np.float32, 0.01, [("fused_sums", torch.float64)]),
        (np.float32, 1e-7, [("tile_sums", torch.float64)]),
        (np.float64, 1.0, [("fused_sums", torch.float64)]),
        (np.float64, 1e-3, [("tile_sums", torch.float64)]),
    ],
)
def test_the_fastest_accurate_way_is_taken(monkeypatch, dtype, bandwidth, expected):
    taken = []

    def spy(function):
        def record(task):
            taken.append((function.__name__, task.keys.dtype))
            return function(task)

        return record

    for name in ("fused_sums", "tile_sums"):
        monkeypatch.setattr(_all_pairs, name, spy(getattr(_all_pairs, name)))
    _all_pairs.all_pairs(make_task(bandwidth=bandwidth, dtype=dtype))
    assert taken == expected


def test_tiles_are_cut_without_a_trace(monkeypatch):
    task = make_task("matern32", 0.3, leave_one_out=True)
    whole = finished(_tiles.tile_sums(task))
    monkeypatch.setattr(_tiles, "_TILE_PAIRS", 70)
    monkeypatch.setattr(_tiles, "_TILE_KEYS", 7)
    for cut, expected in zip(finished(_tiles.tile_sums(task)), whole, strict=True):
        torch.testing.assert_close(cut, expected, rtol=1e-12, atol=1e-12)


def test_threads_give_the_same_and_leave_torch_as_it_was():
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(3)
        results = _threads.map_blocks(
            lambda rows: (rows.start, torch.get_num_threads()),
            [slice(i, i + 1) for i in range(20)],
        )
        assert [start for start, _ in results] == list(range(20))
        assert {inside for _, inside in results} == {1}
        assert torch.get_num_threads() == 3
        with pytest.raises(ZeroDivisionError):
            _threads.map_blocks(lambda rows: 1 / 0, [slice(0, 1), slice(1, 2)])
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)


def test_threads_of_a_pool_keep_their_number():
    from concurrent.futures import ThreadPoolExecutor

    X = np.linspace(0, 1, 1500)[:, None]
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        with ThreadPoolExecutor(3) as pool:
            jobs = [
                pool.submit(attend, X, X, X[:, 0], "epanechnikov", bandwidth=0.1)
                for _ in range(9)
            ]
            results = [job.result()[0] for job in jobs]
            counts = list(pool.map(lambda _: torch.get_num_threads(), range(6)))
        assert torch.get_num_threads() == 2
        assert set(counts) == {2}
        for result in results:
            np.testing.assert_array_equal(result, results[0])
    finally:
        torch.set_num_threads(before)
