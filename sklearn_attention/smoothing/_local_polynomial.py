"""Local polynomial regression."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..bandwidth._neighbors import AdaptiveBandwidth
from ..kernels import Kernel
from ._additive_mixture import AdditiveMixture
from ._polynomial import local_fit
from ._regression import SmootherRegressor
from ._summary import feature_names


class LocalPolynomialRegressor(SmootherRegressor):
    r"""Regression by polynomials that are fitted around each query.

    Take it for curves and surfaces, that is for a few features, if you want confidence bands
    and slopes. Far from the training rows its predictions can leave the range of the targets,
    which those of :class:`NadarayaWatsonRegressor` cannot with a kernel without negative
    weights. For tables with many features take :class:`KernelAttentionRegressor`.

    .. math:: \hat m(x) = \hat\beta_0,\quad \hat\beta = \arg\min_\beta \sum_i w_i
              K\left(\tfrac{x - x_i}{h}\right)
              \bigl(y_i - \beta_0 - \beta_1^\top (x_i - x) - \dots\bigr)^2

    Nadaraya-Watson regression fits constants: where rows lie on one side of the query, above
    all at the edges of the data, a slope biases its average. Local lines have no such bias.

    Parameters
    ----------
    kernel : str, Kernel or callable, default="gaussian"
        Similarity of rows, as for :class:`NadarayaWatsonRegressor`; kernels that take negative
        values only average, degree 0.
    bandwidth : str, float, array-like or AdaptiveBandwidth, default="penalized-loo"
        Number, or rule for choosing it, as for :class:`NadarayaWatsonRegressor`:
        "penalized-loo", "loo", "gcv", "aicc", "scott", "silverman", "knn-loo", or an
        :class:`~sklearn_attention.AdaptiveBandwidth`.
    degree : {"auto", 0, 1, 2, 3}, default="auto"
        Degree of the polynomials; 0 is :class:`NadarayaWatsonRegressor`, 2 and 3 include the
        products of different features. Categories have no slopes. "auto" averages degrees 0
        to 3 in one feature, 0 to 2 in up to four features, and 0 and 1 in more; see Notes. The
        criterion chooses a bandwidth for each degree, unless the bandwidth is a number. With
        all other rules for the bandwidth, "auto" stands for 1.
    structure : {"auto", "joint", "additive"}, default="auto"
        Whether predictions have an additive stage, a sum of functions of single features, so
        that errors are small in several features if these hardly interact; see Notes. "joint"
        smooths in all features together. "additive" is the sum alone, without interactions: it
        is fitted in hundredths of a second, and `bandwidth`, if it is not a number, stands for
        "scott", since only averages of errors need windows. "auto" mixes the sum with joint
        smoothers if X has two columns or more that vary, one of them a number, `degree` is
        "auto", a criterion chooses the bandwidth, the kernel falls with the distance, `gap` is
        0, and the rows are in memory, with at most 33 million numbers in spline columns. Under
        the same conditions "auto" predicts with the sum alone if only one column varies, which
        has at most 16 different numbers and five rows for each of them. Otherwise it is
        "joint".
    robust : bool, default=False
        Whether outliers among the targets count less, or not at all, as for
        :class:`NadarayaWatsonRegressor`; with ``degree="auto"`` by the errors of lines.
    per_feature, categorical_features, algorithm, gap, bounds, random_state
        As for :class:`NadarayaWatsonRegressor`.
    empty : {"nearest", "nan"}, default="nearest"
        Prediction where training rows have little weight. "nearest" doubles the bandwidth of a
        query until they have enough, see Notes. "nan" changes no bandwidth, and predicts NaN
        where no training row has any weight. The bandwidth is not doubled if it is adaptive,
        for averages (degree 0), for kernels that do not fall with the distance, and for rows in
        partitions of Dask. Where no training row has weight, "nearest" then predicts the
        nearest row's target, as for :class:`NadarayaWatsonRegressor`.

    Attributes
    ----------
    members_ : list of Member
        The polynomials that are averaged: named tuples of ``degree``, ``bandwidth`` and
        ``weight``, to be passed to :class:`pandas.DataFrame`. If `degree` is a number, there is
        one. The weight of degree 1, which extrapolates beyond the rows, may be 0.
    additive_share_ : float
        Weight of the additive stage and the smoother of its residuals: 1 is "additive", and 0
        is "joint". The weight of the joint smoother, which `members_` and all that concerns
        bandwidths describe, is 1 less this number.
    components_ : DataFrame
        A row for each feature with its name, the degrees of freedom of its component in the
        additive stage, and its importance, the standard deviation of the component over the
        training rows (`importance_0`, `importance_1` and so on for several outputs); only if
        there is such a stage. :class:`~sklearn_attention.inspection.SmoothDisplay` draws
        components.
    degree_ : int
        Degree of the polynomials; of several, that with the largest weight.
    bandwidth_, n_neighbors_, criterion_value_, bandwidth_search_, relevance_
        As for :class:`NadarayaWatsonRegressor`, like all that follow. If several degrees are
        averaged, they belong to `degree_`.
    robustness_weights_
        With `robust` only.
    effective_dof_, fitted_values_, residuals_, loo_residuals_, loo_score_, aicc_
        Statistics of the fit to the training rows.
    bounds_ : ndarray of shape (2,) or (2, n_outputs), or None
        Lower and upper bound of predictions, infinite where there is none; None without any.
    kernel_, keys_, values_, key_weights_, columns_, n_features_in_, feature_names_in_
        The kernel, the training rows, and the kinds, number and names of their columns.

    See Also
    --------
    NadarayaWatsonRegressor : Local averages; never outside the range of the targets.
    LocalPolynomialCV : Chooses kernel and degree, too.
    sklearn.neighbors.KNeighborsRegressor : Averages a fixed number of neighbours.
    sklearn.kernel_ridge.KernelRidge : Solves for the values of the training rows.

    Notes
    -----
    If you pass a single number as the bandwidth, standardise features whose units do not
    compare. Rules count the standard deviation of a constant feature as 1.

    Categories are compared as by :class:`NadarayaWatsonRegressor`.

    Lines suit edges, parabolas peaks, and averages jumps; no degree suits all curves. With
    ``degree="auto"`` the prediction is the average of the predictions of each degree [3]_,

    .. math:: \hat m(x) = \sum_d w_d\, \hat m_d(x),\quad
              w_d \propto e^{-n\,\text{AIC}_c(d)},

    with the corrected Akaike criterion (see `aicc_`) at each degree's bandwidth and :math:`n`
    rows of positive weight. Effective weights, leave-one-out errors, degrees of freedom and
    slopes are averages with the same :math:`w_d`. Beyond the smallest and the largest value of
    a feature, where parabolas and cubics diverge, the prediction is the average at the edge,
    plus the change of the line from there to the query.

    No such average follows a rough curve, one with jumps or with peaks of a row or two, since
    polynomials need wider windows than that. In one feature with 50 to 2000 rows, averages
    (degree 0) with the smallest leave-one-out error therefore take the place of all degrees if
    they predict clearly better where it counts: at two neighbouring places, predictions without
    their own rows move by two residual standard deviations, or by 0.8 while three quarters of
    the rows are not predicted better. Autocorrelated noise, which narrow averages follow
    everywhere, hardly ever looks like this; see `gap`.

    Joint smoothers need many rows in several features. With ``structure="auto"`` predictions
    are a mixture of a joint smoother :math:`J` of the targets, and of two stages,

    .. math:: \hat m(x) = v\, [\hat f(x) + S(x) (y - \hat f)] + (1 - v)\, J(x)\, y,\quad
              \hat f(x) = \mu + \sum_j f_j(x_j)

    The first stage is a ridge regression. It has a line and the principal functions of a
    smoothing spline for every number, each with a penalty of its own, and an indicator for
    every level of a category; restricted maximum likelihood chooses all penalties [4]_. The
    second stage :math:`S` is a joint smoother of the residuals, with bandwidths of its own. The
    weight :math:`v` between 0 and 1 minimises the squared leave-one-out error. Rows whose error
    is above five medians do not count in this choice. If there are more than 2000 rows, 2000 of
    them are taken for it, at even steps. Errors of several outputs are in units of their
    standard deviations. Given the penalties, bandwidths and weight, predictions are linear in
    the targets; all of these are held fixed for effective weights, leave-one-out errors and
    bands. Leave-one-out errors are exact. Predictions of queries without each row, for
    intervals, are exact but in one respect: the change of the residuals when a row is left out
    is smoothed as if the row were still there. Beyond the rows every :math:`f_j` continues as a
    line.

    On five sums of functions of three to ten features, with 200 to 5000 rows, errors were 0.23
    to 0.59 times those of joint smoothing, and 0.94 to 0.96 times those of R's mgcv on average.

    In one feature the additive stage alone is a smoothing spline. It serves doses and ratings,
    because leave-one-out errors say nothing about the curve between such places. On seven
    curves at 5 to 8 places, with 30 to 2000 rows, errors at and between the places were 0.96
    times those of mgcv on average, and those of local polynomials 1.12 times.

    If the rows in a window do not determine the polynomial (there are fewer rows than
    coefficients, or a feature is constant in the window), a ridge shrinks the slopes of the
    polynomial, but not its average; :meth:`local_ridge` returns the ridge.

    In gaps between the rows and beyond them, a window may have less than the weight of a row.
    With ``empty="nearest"`` it has to hold 1.5 rows for each coefficient (3 for a line along
    one feature), or half of all rows if that is less. The unit is the weight that a row of mean
    weight has at the query. If rows repeat others in all features, the design points, that is,
    the distinct rows, must determine the polynomial at the query as well. They do if the window
    holds 1.5 of them for each coefficient, or if a row of weight 1 at the query would have a
    leverage of :math:`e_0^\top (P^\top K P)^{-1} e_0 \le 1`, with the polynomial's terms
    :math:`P` of the design points about the query, and their kernel weights :math:`K`. At a
    design point this holds. So where enough rows share a design point, such as an hour of the
    day, a dose or a rating, the fit is weighted least squares at the given bandwidth; between
    design points that are far from each other, windows are widened.

    Where a window is too narrow, the prediction is interpolated between those at the bandwidths
    :math:`2^j h` and :math:`2^{j+1} h` of which the second is wide enough. So the prediction is
    a continuous function of the query if the kernel is continuous. Rows that are equal, with
    their targets, count as one row of a larger weight. Searches for the bandwidth predict every
    row in such windows, too.

    Extrapolation is bounded (see :func:`~sklearn_attention.attention.attend_local`).
    With the weighted mean :math:`\bar y(x)` and standard deviation :math:`s(x)` of the targets
    in the window, and :math:`p` coefficients besides the constant,

    .. math:: |\hat m(x) - \bar y(x)| \le 3 \sqrt p\, s(x).

    Far from the rows windows are wide. There the prediction approaches the polynomial that is
    fitted to all rows, at a point that is :math:`3 \sqrt p` standard deviations of the rows
    from their mean. Beyond 30 ranges of the rows it is constant.

    References
    ----------
    .. [1] Fan, J. and Gijbels, I. (1996). Local Polynomial Modelling and Its Applications.
       Chapman and Hall.
    .. [2] Cleveland, W. S. and Devlin, S. J. (1988). Locally weighted regression: an approach
       to regression analysis by local fitting. Journal of the American Statistical
       Association 83, 596-610.
    .. [3] Burnham, K. P. and Anderson, D. R. (2002). Model Selection and Multimodel Inference.
       Springer, section 4.2.
    .. [4] Wood, S. N. (2011). Fast stable restricted maximum likelihood and marginal likelihood
       estimation of semiparametric generalized linear models. Journal of the Royal
       Statistical Society B 73, 3-36.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_attention import LocalPolynomialRegressor
    >>> X = np.linspace(0, 6, 60)[:, None]
    >>> y = np.sin(X[:, 0]) + 0.1 * np.random.default_rng(0).normal(size=60)
    >>> model = LocalPolynomialRegressor().fit(X, y)
    >>> model.predict([[1.5]]).round(2)
    array([0.94])
    >>> [(degree, round(weight, 2)) for degree, _, weight in model.members_]
    [(1, 0.0), (2, 0.87), (3, 0.12)]
    >>> line = LocalPolynomialRegressor("epanechnikov", bandwidth=0.5, degree=1).fit(X, y)
    >>> line.predict_gradient([[3.0]]).round(2)
    array([[-0.87]])
    >>> X = np.random.default_rng(0).uniform(size=(100, 3))
    >>> y = np.sin(6 * X[:, 0]) + X[:, 1]
    >>> model = LocalPolynomialRegressor(structure="additive").fit(X, y)
    >>> model.components_["importance"].round(2).tolist()
    [0.68, 0.27, 0.0]
    """

    def __init__(
        self,
        kernel: str | Kernel | Callable[..., Any] = "gaussian",
        *,
        bandwidth: str | ArrayLike | AdaptiveBandwidth = "penalized-loo",
        degree: str | int = "auto",
        structure: str = "auto",
        robust: bool = False,
        per_feature: bool | str = "auto",
        categorical_features: Any = "from_dtype",
        algorithm: str = "auto",
        empty: str = "nearest",
        gap: int = 0,
        bounds: Any = "auto",
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        super().__init__(
            kernel,
            bandwidth=bandwidth,
            per_feature=per_feature,
            categorical_features=categorical_features,
            algorithm=algorithm,
            empty=empty,
            gap=gap,
            random_state=random_state,
        )
        self.degree = degree
        self.structure = structure
        self.robust = robust
        self.bounds = bounds

    @property
    def members_(self):
        """Polynomials that are averaged: degree, bandwidth and weight of each."""
        return self._smoother.members

    @property
    def additive_share_(self):
        """Weight of the additive stage and the smoother of its residuals, from 0 to 1."""
        return getattr(self._smoother, "mixing_weight", 0.0)

    @property
    def components_(self):
        """Frame with the degrees of freedom and the importance of each feature's component.

        It has a row for each feature. A component is the function of one feature in the
        additive stage, and its importance is its standard deviation over the training rows.
        """
        import pandas as pd

        smoother = self._smoother
        if not isinstance(smoother, AdditiveMixture):
            raise AttributeError(
                "this LocalPolynomialRegressor has no additive stage, and so no components_: "
                "fit it with structure='additive'."
            )
        dof, stds = smoother.describe_components()
        names = ["importance"]
        if self.values_.ndim > 1:
            names = [f"importance_{k}" for k in range(stds.shape[1])]
        frame = pd.DataFrame({"name": feature_names(self), "degrees_of_freedom": dof})
        return frame.assign(**dict(zip(names, stds.T, strict=True)))

    def local_ridge(self, X) -> np.ndarray:
        """Ridge that is added where a window does not determine the heaviest polynomial.

        Parameters
        ----------
        X : array-like of shape (n_queries, n_features)
            Queries.

        Returns
        -------
        ridge : ndarray of shape (n_queries,)
            Added to the variances of the local terms, in units of the kernel's own
            variance, or of the data's where that is smaller; 0 where the rows in the window
            suffice.
        """
        X, smoother = self._read_rows(X), self._smoother
        if self.degree_ == 0:
            return np.zeros(len(X), dtype=self.keys_.dtype)
        # Passing a degree leaves the heaviest member alone.
        _, _, ridge = local_fit(smoother.replace(degree=self.degree_), X, self.values_)
        return ridge
