"""The terms of local polynomials, and sums of them about other centres."""

import numpy as np
import pytest

from sklearn_attention.attention._solve import solve, solve_vjp


@pytest.mark.parametrize("n_terms", [1, 2, 3, 5, 6])
def test_solves_each_system_as_least_squares_of_its_rows(n_terms):
    rng = np.random.default_rng(n_terms)
    terms = rng.normal(size=(4, 20, n_terms + 1))
    terms[:, :, 0] = 1.0
    values = rng.normal(size=(4, 20, 2))
    solution = solve(terms.swapaxes(1, 2) @ terms / 20, terms.swapaxes(1, 2) @ values / 20)
    for query in range(4):
        expected = np.linalg.lstsq(terms[query], values[query])[0]
        np.testing.assert_allclose(solution.value[query], expected[0], atol=1e-12)
        np.testing.assert_allclose(solution.coefficients[query], expected[1:], atol=1e-12)


@pytest.mark.parametrize("place", [0.0, 1.0, 40.0, "thin"])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_derivatives_of_a_solution(k, place):
    """Of values that are read at the query, on the way to it, and where the rows are thin."""
    rng = np.random.default_rng(k)
    terms = np.column_stack([np.ones(9), rng.normal(size=(9, k))])
    if place == "thin":
        terms[:, 1] *= 1e-4
    else:
        terms[:, 1] += place
    values = rng.normal(size=(9, 2))
    gram, cross = (terms.T @ terms / 9)[None], (terms.T @ values / 9)[None]
    slopes = rng.normal(size=(1, 2)), rng.normal(size=1)

    def function(gram, cross):
        found = solve(gram, cross)
        reach = np.vecdot(found.solved_mean, found.mean)
        return float((slopes[0] * found.value).sum() + slopes[1] @ reach)

    found = solve_vjp(solve(gram, cross), gram, cross, *slopes)
    assert (solve(gram, cross).ridge[0] > 0) == (place == "thin")
    assert (solve(gram, cross).shrinkage[0] < 1) == (place == 40.0)
    for k, of_table in enumerate(found):
        for i, j in np.ndindex(of_table.shape[1:]):
            # Moments of terms by terms are symmetric.
            places = [(0, i, j), (0, j, i)] if k == 0 and i != j else [(0, i, j)]
            step, ends = 1e-6 * max(1.0, abs((gram, cross)[k][0, i, j])), []
            for sign in (1, -1):
                moved = [gram.copy(), cross.copy()]
                for place in places:
                    moved[k][place] += sign * step
                ends.append(function(*moved))
            slope = (ends[0] - ends[1]) / (2 * step)
            ours = sum(of_table[place] for place in places)
            np.testing.assert_allclose(ours, slope, rtol=1e-4, atol=1e-4)
