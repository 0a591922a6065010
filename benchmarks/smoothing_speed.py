"""Speed of bandwidth selection, against peers in the same run.

    python benchmarks/smoothing_speed.py [CASE ...]

Cases, all of them unless some are named:

* n1000-d1, n5000-d1, n500-d2: Nadaraya-Watson regression with its bandwidth by
  leave-one-out (for two features one each), against ``KernelReg`` of statsmodels with
  ``reg_type="lc"`` and ``bw="cv_ls"``. Ours is the best of five fits after a first one that
  does not count, theirs runs once. `LeaveOneOut` computes the leave-one-out error for both, to
  compare accuracy too. Some of their bandwidths are negative; the kernel is even, so the sign
  is dropped.
* density: ``ProductKernelDensity`` of 1000 rows of 1, 2 and 3 features, two groups in the
  first of them, against ``KDEMultivariate`` with ``bw="cv_ml"``, in processor seconds. The
  criterion is computed for both, by `DensityLikelihood`, which is to be high.
* n20000-d5: one bandwidth for each of five features of 20 000 rows, without a peer, whose
  time grows with the square of the rows.
* grid-search: NadarayaWatsonCV with 6 kernels and 30 bandwidths on 300 rows, against
  GridSearchCV with LeaveOneOut, which fits 54 000 times. Expected: the same winner.

The data: sin(6 x_0), plus x_1 / 2 where there is one, plus noise of deviation 0.3, at
uniform places. statsmodels is in the dependency group `bench`; where it is missing, its
columns stay empty. GridSearchCV takes some minutes.
"""

import argparse
import time
import warnings

import numpy as np
from _results import markdown, stamp
from sklearn.model_selection import GridSearchCV, LeaveOneOut

from sklearn_attention import (
    NadarayaWatsonCV,
    NadarayaWatsonRegressor,
    ProductKernelDensity,
    attention,
)
from sklearn_attention.bandwidth import DensityLikelihood
from sklearn_attention.kernels._base import as_kernel

try:
    import statsmodels
    from statsmodels.nonparametric.kernel_density import KDEMultivariate
    from statsmodels.nonparametric.kernel_regression import KernelReg
except ImportError:
    statsmodels = KernelReg = KDEMultivariate = None

FITS = 5
KERNELS = ["gaussian", "epanechnikov", "biweight", "tricube", "triangular", "laplacian"]
BANDWIDTHS = np.geomspace(0.01, 1, 30)


def make_data(n, d):
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(n, d))
    mean = np.sin(6 * X[:, 0]) + (0.5 * X[:, 1] if d > 1 else 0)
    return X, mean + 0.3 * rng.normal(size=n)


def seconds(function, rounds=1):
    """The processor's, the least of some rounds, and what the function returned."""
    best = np.inf
    for _ in range(rounds):
        start = time.process_time()
        returned = function()
        best = min(best, time.process_time() - start)
    return best, returned


def against_statsmodels(n, d):
    """One row of the table."""
    X, y = make_data(n, d)
    model = NadarayaWatsonRegressor(bandwidth="loo", per_feature=d > 1).fit(X, y)
    our_seconds, _ = seconds(lambda: model.fit(X, y), FITS)
    our_error = error_at(X, y, model.bandwidth_)
    cells = [f"{n}", f"{d}", f"{our_seconds:.3f}"]
    if KernelReg is None:
        return [*cells, "–", "–", f"{our_error:.6f}", "–", "–"]
    with warnings.catch_warnings():
        # Their search divides by zero at tiny bandwidths.
        warnings.simplefilter("ignore")
        their_seconds, theirs = seconds(
            lambda: KernelReg(y, X, var_type="c" * d, reg_type="lc", bw="cv_ls")
        )
    their_error = error_at(X, y, np.abs(theirs.bw))
    relative = our_error / their_error - 1
    return [
        *cells, f"{their_seconds:.2f}", f"{their_seconds / our_seconds:.0f}",
        f"{our_error:.6f}", f"{their_error:.6f}", f"{100 * relative:.4f} %",
    ]  # fmt: skip


def error_at(X, y, bandwidth):
    rows = attention.LeaveOneOut(X, y[:, None], as_kernel("gaussian"), bandwidth=bandwidth)
    return float(rows.scores([1.0]).left_out[0])


def densities():
    header = ["d", "ours (s)", "statsmodels (s)", "× ours", "ours", "theirs"]
    rows = [header, ["---"] * len(header)]
    for d in (1, 2, 3):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(1000, d))
        X[:, 0] += 2 * (rng.uniform(size=1000) < 0.4)
        criterion, model = DensityLikelihood(X, as_kernel("gaussian")), ProductKernelDensity()
        model.fit(X)
        our_seconds, _ = seconds(lambda: model.fit(X), FITS)  # noqa: B023
        row = [
            f"{d}",
            f"{our_seconds:.3f}",
            "–",
            "–",
            f"{criterion(model.bandwidth_):.6f}",
            "–",
        ]
        if KDEMultivariate is not None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                row[2], theirs = seconds(
                    lambda: KDEMultivariate(X, "c" * d, bw="cv_ml"),  # noqa: B023
                )
            row[2:4] = f"{row[2]:.2f}", f"{row[2] / our_seconds:.1f}"
            row[5] = f"{criterion(np.abs(theirs.bw)):.6f}"
        rows.append(row)
    table = "\n".join("| " + " | ".join(row) + " |" for row in rows)
    return f"Densities of 1000 rows, in processor seconds:\n\n{table}"


def many_rows():
    n, d = 20_000, 5
    X, y = make_data(n, d)
    model = NadarayaWatsonRegressor(bandwidth="loo", per_feature=True)
    elapsed, _ = seconds(lambda: model.fit(X, y))
    relevance = ", ".join(f"{part:.2f}" for part in model.relevance_)
    return (
        f"The search for one bandwidth for each of {d} features of {n // 1000} 000 rows takes "
        f"{elapsed:.1f} s. The relevance of the features is {relevance}."
    )


def grid_search():
    X, y = make_data(300, 1)
    ours = NadarayaWatsonCV(KERNELS, BANDWIDTHS).fit(X, y)
    our_seconds, _ = seconds(lambda: ours.fit(X, y), FITS)
    grid = {"kernel": KERNELS, "bandwidth": BANDWIDTHS}
    score = "neg_mean_squared_error"
    theirs = GridSearchCV(NadarayaWatsonRegressor(), grid, cv=LeaveOneOut(), scoring=score)
    their_seconds, _ = seconds(lambda: theirs.fit(X, y))
    same = ours.best_params_ == theirs.best_params_
    our_scores, their_scores = scores_of(ours), scores_of(theirs)
    difference = max(abs(our_scores[key] / their_scores[key] - 1) for key in their_scores)
    return (
        f"A search of {len(KERNELS)} kernels × {len(BANDWIDTHS)} bandwidths on 300 rows takes "
        f"NadarayaWatsonCV {our_seconds:.3f} s and GridSearchCV with LeaveOneOut "
        f"{their_seconds:.0f} s, {their_seconds / our_seconds:.0f} times as long. They choose "
        f"{'the same' if same else 'DIFFERENT'} parameters "
        f"({ours.best_params_['kernel']}, {ours.best_params_['bandwidth']:.3f}); "
        f"their scores differ by at most {difference:.0e}."
    )


def scores_of(search):
    """Score of every candidate, which the two list in orders of their own."""
    results = search.cv_results_
    keys = [(params["kernel"], params["bandwidth"]) for params in results["params"]]
    return dict(zip(keys, results["mean_test_score"], strict=True))


COMPARED = {"n1000-d1": (1000, 1), "n5000-d1": (5000, 1), "n500-d2": (500, 2)}
ALONE = {"density": densities, "n20000-d5": many_rows, "grid-search": grid_search}


def report(cases):
    lines = [
        "# Bandwidths by leave-one-out",
        "",
        stamp("numpy", "torch", "scikit-learn", "statsmodels"),
    ]
    rows = [against_statsmodels(*COMPARED[case]) for case in cases if case in COMPARED]
    if rows:
        header = ["n", "d", "ours (s)", "statsmodels (s)", "× ours"]
        header += ["our error", "their error", "difference"]
        lines += ["", *markdown(header, rows)]
    for case in cases:
        if case in ALONE:
            lines += ["", ALONE[case]()]
    return "\n".join(lines)


if __name__ == "__main__":
    every = [*COMPARED, *ALONE]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", help=f"some of {', '.join(every)}; default all")
    arguments = parser.parse_args()
    if unknown := set(arguments.cases) - set(every):
        parser.error(f"no cases: {', '.join(sorted(unknown))}")
    text = report(arguments.cases or every)
    print(text)
