"""What the regressor and the classifier share: views, members, and what they learned."""

import math
import numbers

import numpy as np
from sklearn.base import TransformerMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from .._columns import MixedRows
from .._explanation import Explanation, heaviest
from .._validation import check_bandwidth, check_choice, check_key_weights, check_positive
from ..kernels import RadialKernel, as_kernel
from ._copies import join_copies
from ._landmarks import MOST_SOLVED_ROWS
from ._views import VIEWS, column_names, learn_view
from ._ways import FEW_ROWS, READOUTS, ways_of

_DTYPES = (np.float64, np.float32)
_FOLDS = 4
# Fewer rows than this are all needed to learn from.
_FEWEST_TO_SPARE = 8
_MOST_JUDGED_OF_FEW, _MOST_JUDGED = 2000, 1000
_MOST_DESCRIBED = 4096


class KernelAttention(TransformerMixin, MixedRows):
    """Base class of kernel attention: rows are remembered, their kernel is learned."""

    def __init__(
        self,
        readout="blend",
        *,
        kernel="gaussian",
        views=VIEWS,
        n_heads="auto",
        n_estimators="auto",
        max_steps=80,
        bandwidth="learned",
        ridge="learned",
        clip=6.0,
        n_landmarks="auto",
        random_state=0,
        device="auto",
    ):
        self.readout = readout
        self.kernel = kernel
        self.views = views
        self.n_heads = n_heads
        self.n_estimators = n_estimators
        self.max_steps = max_steps
        self.bandwidth = bandwidth
        self.ridge = ridge
        self.clip = clip
        self.n_landmarks = n_landmarks
        self.random_state = random_state
        self.device = device

    def transform(self, X):
        """Rows in the learned space, where near means alike for the targets.

        Parameters
        ----------
        X : array-like of shape (n_queries, n_features)
            Rows.

        Returns
        -------
        X_new : ndarray of shape (n_queries, n_columns)
            The columns of all views in learned length-scales, those of the first member:
            Euclidean distances between rows are what its kernel falls with.
        """
        check_is_fitted(self)
        X = self._check_queries(X)
        return self._memory.space(self.members_[0], X).astype(self.keys_.dtype, copy=False)

    def get_feature_names_out(self, input_features=None):
        """Names of the columns of :meth:`transform`.

        Parameters
        ----------
        input_features : array-like of str, default=None
            Names of the features; if given, those seen in `fit`.

        Returns
        -------
        names : ndarray of str
        """
        check_is_fitted(self)
        names = _check_feature_names_in(self, input_features)
        columns = [
            name + (f"_head{head}" if self.n_heads_ > 1 else "")
            for view in self.views_
            for head in range(self.n_heads_)
            for name in column_names(view, names)
        ]
        return np.array(columns, dtype=object)

    def explain(self, X, k=5):
        """Training rows that carry each prediction.

        Parameters
        ----------
        X : array-like of shape (n_queries, n_features)
            Where predictions are to be explained.
        k : int, default=5
            How many training rows; at most all of them.

        Returns
        -------
        explanation : Explanation
            Named tuple of ``indices``, ``weights`` and ``values``, the heaviest first. The
            weights are effective: a prediction is the mean of the targets and the weighted
            sum of what all targets differ from it. A classifier's are those of the scores
            of its classes, before the link, and of kernel ridge in the place of logistic
            regression. Rows of weight 0 in `fit` do not count.
        """
        check_is_fitted(self)
        k = min(check_positive("k", k, integer=True), len(self.keys_))
        X = self._check_queries(X)
        indices, weights = heaviest(
            lambda rows: self._effective_weights(X[rows]), len(X), len(self.keys_), k
        )
        return Explanation(self.key_rows_[indices], weights, self._targets(indices))

    def local_slopes(self, X):
        """Slopes of local lines through the targets, weighted by the learned kernel.

        Parameters
        ----------
        X : array-like of shape (n_queries, n_features)
            Queries.

        Returns
        -------
        slopes : ndarray of shape (n_queries, n_features) or (n_queries, n_outputs, n_features)
            In units of the target for one unit of the feature; 0 for categories, for numbers
            beyond `clip`, and beyond the 16 features that go with the targets most. The
            outputs of a classifier are the indicators of its classes.
        """
        check_is_fitted(self)
        X = self._check_queries(X)
        lines = [member for member in self.members_ if member["way"] == "local_linear"]
        members = lines or self.members_
        slopes = np.mean([self._reader(member).slopes(X) for member in members], axis=0)
        slopes = np.swapaxes(slopes * self.scale_, 1, 2)
        single = self.values_.ndim == 1
        return (slopes[:, 0] if single else slopes).astype(self.keys_.dtype, copy=False)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.input_tags.allow_nan = True
        return tags

    @property
    def _n_features_out(self):
        return sum(len(view["feature"]) for view in self.views_) * self.n_heads_

    def _check_queries(self, X):
        return self._read_rows(X, _DTYPES, ensure_all_finite="allow-nan")

    def _check_training(self, X, y, **checks):
        X, y = self._learn_rows(
            X, _DTYPES, y=y, multi_output=True, ensure_all_finite="allow-nan", **checks
        )
        self._check_parameters()
        return X, y

    def _check_parameters(self):
        check_choice("readout", self.readout, READOUTS)
        if self.n_heads != "auto":
            check_positive("n_heads", self.n_heads, integer=True)
        if self.n_estimators != "auto":
            check_positive("n_estimators", self.n_estimators, integer=True)
        if self.n_landmarks != "auto":
            check_positive("n_landmarks", self.n_landmarks, integer=True)
        whole = isinstance(self.max_steps, numbers.Integral) and self.max_steps >= 0
        if not whole or isinstance(self.max_steps, bool):
            raise ValueError(
                f"max_steps={self.max_steps!r} is not valid: pass an integer, 0 for length-"
                "scales that stay where they start."
            )
        if self.clip is not None:
            check_positive("clip", self.clip)
        if not (isinstance(self.ridge, str) and self.ridge == "learned"):
            valid = isinstance(self.ridge, numbers.Real) and not isinstance(self.ridge, bool)
            if not valid or not 0 <= self.ridge < math.inf:
                raise ValueError(
                    f"ridge={self.ridge!r} is not valid: pass 'learned', or a finite number "
                    "that is not negative."
                )
        self._view_names()
        self._check_kernel()

    def _view_names(self):
        try:
            names = (self.views,) if isinstance(self.views, str) else tuple(self.views)
        except TypeError:
            names = ()
        for name in names:
            check_choice("views", name, VIEWS)
        if not names or len(set(names)) < len(names):
            raise ValueError(
                f"views={self.views!r} is not valid: name at least one of "
                f"{sorted(VIEWS)}, each once."
            )
        if not self._bandwidth_is_learned and names != ("standard",):
            raise ValueError(
                f"bandwidth={self.bandwidth!r} is in the features' own units, which only the "
                f"standard view has, got views={self.views!r}: pass views='standard', or "
                "bandwidth='learned'."
            )
        return names

    @property
    def _bandwidth_is_learned(self):
        if isinstance(self.bandwidth, str):
            check_choice("bandwidth", self.bandwidth, ("learned",))
            return True
        return False

    def _check_kernel(self):
        kernel = as_kernel(clone(self.kernel, safe=False))
        if not isinstance(kernel, RadialKernel) or kernel.signed:
            raise ValueError(
                f"kernel={self.kernel!r} is no positive kernel of the distance alone: choose a "
                "radial one, such as 'gaussian', 'matern52' or 'rational_quadratic'."
            )
        if self.readout in ("solve", "blend") and not kernel.positive_definite:
            raise ValueError(
                f"kernel={self.kernel!r} is not positive definite, so that "
                f"readout={self.readout!r} has no solution: choose 'gaussian', 'matern52' or "
                "'rational_quadratic', or readout='average' or 'local_linear'."
            )
        return kernel

    def _remember(self, X, values, sample_weight, *, attending, loss, centered, task_data):
        """Learn the members, and judge each by rows it has not learned from.

        Returns
        -------
        left_out : ndarray of shape (n_ways, n_judged, n_outputs)
        context : CallbackContext
            To be ended when the fit is.
        """
        weights = check_key_weights(sample_weight, X)
        kept = np.arange(len(X)) if weights is None else np.flatnonzero(weights)
        weights = np.ones(len(X)) if weights is None else weights
        own, weights = join_copies(X[kept], values[kept], weights[kept])
        kept = kept[own]
        X, values, weights = X[kept], values[kept], weights / weights.mean()
        self._memo = {}
        self.key_rows_, self.keys_, self.key_weights_ = kept, X, weights
        self.kernel_ = self._check_kernel()
        self.n_heads_ = self._heads_for(len(X))
        names = self._view_names()
        kinds = self.columns_.kinds
        self.views_ = [learn_view(name, X, kinds, self.clip) for name in names]
        standard = [view for view in self.views_ if view["name"] == "standard"]
        self.line_view_ = (standard or [learn_view("standard", X, kinds, self.clip)])[0]
        self._center(values, weights, centered)
        fixed = self._fixed()
        rng = check_random_state(self.random_state)
        judged = self._judges(len(X), rng)
        ways = ways_of(
            self.readout, len(X), learns=self._bandwidth_is_learned, attending=attending
        )
        members = [
            {"way": way, "judge": judge, "seed": int(rng.randint(2**31 - 1))}
            for way in ways
            for judge in range(len(judged))
        ]
        context = self._init_callback_context(max_subtasks=len(members))
        context.call_on_fit_task_begin(estimator=self, **task_data)

        def done():
            task = context.subcontext(task_name="member")
            task.call_on_fit_task_begin(estimator=self, **task_data)
            task.call_on_fit_task_end(estimator=self, **task_data)

        steps = int(self.max_steps)
        from ._members import learn_members  # torch takes a second to load

        members, left_out = learn_members(
            self._memory, members, judged, n_steps=steps, loss=loss, fixed=fixed, done=done
        )
        self.ways_, self.members_ = ways, members
        self.judged_rows_ = np.concatenate(judged)
        self._describe()
        of_way = {way: [] for way in ways}
        for member, left in zip(members, left_out, strict=True):
            of_way[member["way"]].append(left)
        return np.stack([np.concatenate(parts) for parts in of_way.values()]), context

    def _center(self, values, weights, centered):
        """Set the targets, and what they are less, and in units of, as members see them."""
        self.values_ = values
        table = values.reshape(len(values), -1).astype(np.float64)
        self.center_, self.scale_ = np.zeros(table.shape[1]), np.ones(table.shape[1])
        if self._bandwidth_is_learned or not centered:
            self.center_ = np.average(table, axis=0, weights=weights)
        if self._bandwidth_is_learned and centered:
            with np.errstate(over="ignore"):
                squares = np.square(table - self.center_)
            spread = np.sqrt(np.average(squares, axis=0, weights=weights))
            if not np.isfinite(spread).all():
                raise ValueError(
                    f"y has values as large as {np.abs(table).max():g}, whose squares are "
                    "infinite: divide it by its largest value."
                )
            tiny = 1e-12 * np.abs(table).max(axis=0)
            self.scale_ = np.where(spread > tiny, spread, 1.0)

    def _fixed(self):
        """Parameters of the kernel that the user gave."""
        fixed = {}
        if not isinstance(self.ridge, str):
            with np.errstate(divide="ignore"):
                log_ridge = np.log(np.float64(self.ridge))
            fixed |= {"noise": 0.5 * log_ridge, "ridge": log_ridge}
        if self._bandwidth_is_learned:
            return fixed
        n_features = self.n_features_in_
        bandwidth = np.broadcast_to(check_bandwidth(self.bandwidth, n_features), n_features)
        view = self.views_[0]
        scale = -np.log(bandwidth)
        scale[view["numeric"]] += np.log(view["scale"])
        return fixed | {
            "scale": np.tile(scale, (self.n_heads_, 1)),
            "column": np.zeros(self.n_heads_ * len(view["feature"])),
            "amplitude": np.full(self.n_heads_, -0.5 * np.log(self.n_heads_)),
        }

    def _heads_for(self, n):
        if self.n_heads != "auto":
            return int(self.n_heads)
        # Few rows cannot tell two kernels of one view apart, and where rows are so many that
        # landmarks stand for them, smoother kernels do better.
        return 2 if FEW_ROWS < n <= MOST_SOLVED_ROWS and self._bandwidth_is_learned else 1

    def _judges(self, n, rng):
        """Rows that judge each member, and that it does not learn from."""
        n_estimators = self.n_estimators
        if n_estimators == "auto":
            n_estimators = _FOLDS if 2 * _FOLDS <= n <= FEW_ROWS else 1
        if n_estimators > max(1, n // 2):
            raise ValueError(
                f"n_estimators={n_estimators!r} folds need two rows each, but only {n} rows "
                "have weight: pass fewer, or more rows."
            )
        most = _MOST_JUDGED_OF_FEW if n <= FEW_ROWS else _MOST_JUDGED
        shuffled = rng.permutation(n)
        if not self._bandwidth_is_learned or n < _FEWEST_TO_SPARE:
            return [np.sort(shuffled[:most])]
        if n_estimators == 1:
            return [np.sort(shuffled[: min(n // 4, most)])]
        folds = np.array_split(shuffled, n_estimators)
        return [np.sort(fold[: max(1, most // n_estimators)]) for fold in folds]

    @property
    def _memory(self):
        if "memory" not in self._memo:
            from ._memory import Memory  # torch takes a second to load

            values = self.values_.reshape(len(self.keys_), -1)
            targets = (values - self.center_) / self.scale_
            self._memo["memory"] = Memory(
                self.keys_, targets, self._averaged(targets, values), self.key_weights_,
                views=self.views_, line_view=self.line_view_, n_heads=self.n_heads_,
                kernel=self.kernel_, device=self.device,
                n_landmarks=None if self.n_landmarks == "auto" else int(self.n_landmarks),
            )  # fmt: skip
        return self._memo["memory"]

    def _reader(self, member):
        from ._reader import Reader

        readers = self._memo.setdefault("readers", {})
        # Members are as many as they were after fit, so that they can be told by identity.
        if id(member) not in readers:
            readers[id(member)] = Reader(self._memory, member)
        return readers[id(member)]

    def _averaged(self, targets, values):
        """What averages are taken of."""
        return targets

    def _answers(self, X):
        """What each way says, the mean over its members; (n_ways, n_queries, n_outputs)."""
        answers = []
        for way in self.ways_:
            members = [member for member in self.members_ if member["way"] == way]
            answers.append(np.mean([self._reader(m)(X) for m in members], axis=0))
        return np.stack(answers)

    def _effective_weights(self, X):
        total = 0.0
        for way, share in zip(self.ways_, self._way_shares(), strict=True):
            members = [member for member in self.members_ if member["way"] == way]
            weights = [self._reader(member).weights(X) for member in members]
            total = total + share * np.mean(weights, axis=0)
        return total

    def _describe(self):
        """Set what was learned, for people to read."""
        heads = [view for view in self.views_ for _ in range(self.n_heads_)]
        n_features = self.n_features_in_
        log_scale = np.mean([member["scale"] for member in self.members_], axis=0)
        self.length_scales_ = np.full((len(heads), n_features), np.inf)
        relevance = np.zeros(n_features)
        for head, view in enumerate(heads):
            used = np.unique(view["feature"])
            self.length_scales_[head, used] = np.exp(-log_scale[head, used])
            if view["name"] == "standard":
                self.length_scales_[head, view["numeric"]] *= view["scale"]
        sample = self.keys_[:_MOST_DESCRIBED]
        columns = np.concatenate([view["feature"] for view in heads])
        for member in self.members_:
            spread = self._memory.space(member, sample).var(axis=0)
            np.add.at(relevance, columns, spread)
        total = relevance.sum()
        self.feature_relevance_ = relevance / total if total > 0 else relevance
        standard = [h for h, view in enumerate(heads) if view["name"] == "standard"]
        self.bandwidth_ = self.length_scales_[standard[0] if standard else 0].copy()
