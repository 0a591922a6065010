"""Base of the regressor and the classifier: encodings, members, and what they learned."""

import math
import numbers

import numpy as np
from sklearn.base import TransformerMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from .._blas_threads import one_blas_thread
from .._columns import Columns, MixedRows
from .._explanation import Explanation, heaviest
from .._validation import check_bandwidth, check_choice, check_key_weights, check_positive
from ..kernels import RadialKernel, as_kernel
from ._averages import AverageMember
from ._boosting import FEWEST_ROWS
from ._copies import join_copies
from ._encodings import ENCODINGS, Encoding
from ._kernel import LearnedKernel
from ._members import LocalAverage, Options
from ._partition import Partition
from ._ridge import RidgeMember
from ._rows import TrainingRows

READOUTS = ("average", "local_linear", "solve")
_DTYPES = (np.float64, np.float32)
# Fewer rows than this are all needed to learn from.
_FEWEST_TO_SPARE = 8
# Rows that judge a member.
_MOST_JUDGED_OF_FEW, _MOST_JUDGED = 2000, 1000
_SMALL = 3000
_MOST_DESCRIBED = 4096


class KernelAttention(TransformerMixin, MixedRows):
    """Base class of kernel attention: rows are remembered, their kernel is learned."""

    _held = (Columns, Encoding, LearnedKernel, Partition, RidgeMember, AverageMember)

    def __init__(
        self,
        readout="solve",
        *,
        kernel="gaussian",
        encodings=ENCODINGS,
        n_folds="auto",
        max_steps="auto",
        bandwidth="learned",
        ridge="learned",
        clip=6.0,
        boosting=None,
        random_state=0,
    ):
        self.readout = readout
        self.kernel = kernel
        self.encodings = encodings
        self.n_folds = n_folds
        self.max_steps = max_steps
        self.bandwidth = bandwidth
        self.ridge = ridge
        self.clip = clip
        self.boosting = boosting
        self.random_state = random_state

    def transform(self, X):
        """Rows in the learned space, where near means alike for the targets.

        Parameters
        ----------
        X : array-like of shape (n_queries, n_features)
            Rows.

        Returns
        -------
        X_new : ndarray of shape (n_queries, n_columns)
            The columns of all encodings in learned length-scales, those of the first member:
            Euclidean distances between rows are what its kernel falls with.
        """
        check_is_fitted(self)
        X = self._check_queries(X)
        rows = self._training.encode(X, np.float64)
        return self.members_[0].kernel.space(rows).astype(self.keys_.dtype, copy=False)

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
            name for encoding in self.encodings_ for name in encoding.column_names(names)
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
            of its classes, before the link. Rows of weight 0 in `fit` do not count. Where
            boosted trees are stacked, they are the weights of the kernel part.
        """
        check_is_fitted(self)
        k = min(check_positive("k", k, integer=True), len(self.keys_))
        X = self._check_queries(X)
        indices, weights = heaviest(
            lambda rows: self._effective_weights(X[rows]), len(X), len(self.keys_), k
        )
        return Explanation(self.key_rows_[indices], weights, self._targets(indices))

    def local_slopes(self, X):
        """Slopes of predictions along the features.

        Parameters
        ----------
        X : array-like of shape (n_queries, n_features)
            Queries.

        Returns
        -------
        slopes : ndarray of shape (n_queries, n_features) or (n_queries, n_outputs, n_features)
            In units of the target for one unit of the feature; 0 for categories, for missing
            cells and for numbers beyond `clip`. For "solve" the gradient of the prediction,
            which takes steps at the edges of bins; for "local_linear" the slopes of the local
            lines, along the 16 features that go with the targets most; 0 for "average". The
            outputs of a classifier are its classes, before the link. Where boosted trees
            are stacked, they are the slopes of the kernel part.
        """
        check_is_fitted(self)
        X = self._check_queries(X)
        slopes = 0.0
        for kind, share in zip(self.kinds_, self._shares_of_kinds(), strict=True):
            of_kind = [member.slopes(self._training, X) for member in self._members_of(kind)]
            slopes = slopes + np.mean(of_kind, axis=0) * share[:, None]
        slopes = slopes * self.scale_[:, None]
        single = self.values_.ndim == 1
        return (slopes[:, 0] if single else slopes).astype(self.keys_.dtype, copy=False)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.input_tags.allow_nan = True
        return tags

    @property
    def _n_features_out(self):
        return sum(map(len, self.encodings_))

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
        if self.n_folds != "auto":
            check_positive("n_folds", self.n_folds, integer=True)
        if not (isinstance(self.max_steps, str) and self.max_steps == "auto"):
            whole = isinstance(self.max_steps, numbers.Integral) and self.max_steps >= 0
            if not whole or isinstance(self.max_steps, bool):
                raise ValueError(
                    f"max_steps={self.max_steps!r} is not valid: pass 'auto', or an integer, 0 "
                    "for length-scales that stay where they start."
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
        if self.boosting is not None and not (
            isinstance(self.boosting, str) and self.boosting == "auto"
        ):
            raise ValueError(
                f"boosting={self.boosting!r} is unknown: pass None, or 'auto' to stack boosted "
                "trees where held-out rows are predicted better with them."
            )
        self._encoding_names()
        self._check_kernel()

    def _encoding_names(self):
        given = self.encodings
        try:
            names = (given,) if isinstance(given, str) else tuple(given)
        except TypeError:
            names = ()
        for name in names:
            check_choice("encodings", name, ENCODINGS)
        if not names or len(set(names)) < len(names):
            raise ValueError(
                f"encodings={given!r} is not valid: name at least one of "
                f"{sorted(ENCODINGS)}, each once."
            )
        if not self._bandwidth_is_learned and names != ("standard",):
            raise ValueError(
                f"bandwidth={self.bandwidth!r} is in the features' own units, which only the "
                f"standard encoding has, got encodings={given!r}: pass encodings='standard', "
                "or bandwidth='learned'."
            )
        if self.readout == "local_linear" and "standard" not in names:
            raise ValueError(
                f"encodings={given!r} lacks 'standard', along which local lines run: add it, "
                "or choose another readout."
            )
        return tuple(sorted(names, key=ENCODINGS.index))

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
        if self.readout == "solve" and not kernel.positive_definite:
            raise ValueError(
                f"kernel={self.kernel!r} is not positive definite, so that "
                f"readout={self.readout!r} has no solution: choose 'gaussian', 'matern52' or "
                "'rational_quadratic', or readout='average' or 'local_linear'."
            )
        return kernel

    def _remember(self, X, values, sample_weight, task_data):
        """Learn the members, and predict the rows that judge each without themselves.

        Returns
        -------
        left_out : ndarray of shape (n_kinds, n_judged, n_outputs)
            In units of the members.
        folds : list of ndarray of int
            Rows that judge, those of all folds one after another.
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
        names, kinds = self._encoding_names(), self.columns_.kinds
        self.encodings_ = Encoding.learn_all(names, X, kinds, self.clip, self._fewest_bins)
        self._center(values, weights)
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        rng = np.random.default_rng(seed)
        judged = self._folds(len(X), rng)
        members = self._members(len(X), len(judged))
        options = Options(
            self.kernel_, self.max_steps, self._given_scales(),
            None if isinstance(self.ridge, str) else float(self.ridge),
        )  # fmt: skip
        context = self._init_callback_context(max_subtasks=len(judged) * len(members))
        context.call_on_fit_task_begin(estimator=self, **task_data)
        loss, found = self._loss(), {kind: [] for kind in members}
        for number, rows in enumerate(judged):
            for order, kind in enumerate(list(found)):
                own_rng = np.random.default_rng([seed, number, order])
                fit = members[kind].fit(self._training, rows, loss, own_rng, options)
                found[kind].append(fit)
                task = context.subcontext(task_name="member")
                task.call_on_fit_task_begin(estimator=self, **task_data)
                task.call_on_fit_task_end(estimator=self, **task_data)
            if number == 0 and len(found) > 1:
                first = {kind: fits[0][1] for kind, fits in found.items()}
                found = {kind: found[kind] for kind in self._worth_their_time(first, rows)}
        self.judged_rows_ = np.concatenate(judged)
        self.kinds_ = list(found)
        self.members_ = [member for fits in found.values() for member, _ in fits]
        left_out = [np.concatenate([left for _, left in fits]) for fits in found.values()]
        return np.stack(left_out), judged, context

    def _members(self, n_rows, n_folds):
        """The kinds of members to learn: a dict of names to what learns them."""
        if self.readout == "solve":
            return self._ridges(n_rows, n_folds)
        return {self.readout: LocalAverage(lines=self.readout == "local_linear")}

    def _worth_their_time(self, left_out, rows):
        """Kinds to go on with after the first fold."""
        return list(left_out)

    def _center(self, values, weights):
        """Set the targets, and what they are less, and in units of, as members see them."""
        self.values_ = values
        table = values.reshape(len(values), -1).astype(np.float64)
        self.center_, self.scale_ = np.zeros(table.shape[1]), np.ones(table.shape[1])
        if self._bandwidth_is_learned or not self._scales_targets:
            self.center_ = np.average(table, axis=0, weights=weights)
        if self._bandwidth_is_learned and self._scales_targets:
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

    # Whether targets are divided by their deviation.
    _scales_targets = True
    _fewest_bins = 20

    def _given_scales(self):
        """Logarithms of inverse length-scales that the user gave, None if they are learned."""
        if self._bandwidth_is_learned:
            return None
        n_features = self.n_features_in_
        bandwidth = np.broadcast_to(check_bandwidth(self.bandwidth, n_features), n_features)
        standard, scales = self.encodings_[0], -np.log(bandwidth)
        scales[standard.numeric] += np.log(standard.scale)
        return scales

    def _folds(self, n, rng):
        """Rows that judge each fold's members, which do not learn from them."""
        n_folds = self.n_folds
        if n_folds == "auto":
            n_folds = next(folds for most, folds in self._usual_folds.items() if n <= most)
            n_folds = 1 if n < 2 * n_folds else n_folds
        if n_folds > max(1, n // 2):
            raise ValueError(
                f"n_folds={n_folds!r} folds need two rows each, but only {n} rows "
                "have weight: pass fewer, or more rows."
            )
        shuffled = rng.permutation(n)
        if not self._bandwidth_is_learned or n < _FEWEST_TO_SPARE:
            return [np.sort(shuffled[:_MOST_JUDGED_OF_FEW])]
        most = n if n <= _SMALL else _MOST_JUDGED
        if n_folds < 4:
            folds = np.split(shuffled[: min(n // 4, most) * n_folds], n_folds)
        else:
            folds = [fold[:most] for fold in np.array_split(shuffled, n_folds)]
        return [np.sort(fold) for fold in folds]

    @property
    def _may_boost(self):
        asked = self.boosting is not None and self._bandwidth_is_learned
        return asked and len(self.keys_) >= FEWEST_ROWS

    @property
    def _training(self):
        if "training" not in self._memo:
            values = self.values_.reshape(len(self.keys_), -1)
            targets = (values - self.center_) / self.scale_
            self._memo["training"] = TrainingRows(
                self.keys_, targets, self.key_weights_, self.encodings_
            )
        return self._memo["training"]

    def _members_of(self, kind):
        n_folds = len(self.members_) // len(self.kinds_)
        first = self.kinds_.index(kind) * n_folds
        return self.members_[first : first + n_folds]

    @one_blas_thread()
    def _scores(self, X):
        """Predictions of each kind, the mean over its members; (n_kinds, n, n_outputs)."""
        kinds, training = [self._members_of(kind) for kind in self.kinds_], self._training
        scores = [
            [
                sum(m.predict(training, queries) for m in members) / len(members)
                for members in kinds
            ]
            for queries in training.query_blocks(X)
        ]
        return np.concatenate(scores, axis=1)

    def _effective_weights(self, X):
        total = 0.0
        for kind, share in zip(self.kinds_, self._shares_of_kinds(), strict=True):
            weights = [member.weights(self._training, X) for member in self._members_of(kind)]
            total = total + share.mean() * np.mean(weights, axis=0)
        return total

    def _describe(self):
        """Set what was learned, for people to read."""
        n_features = self.n_features_in_
        kernels = [member.kernel for member in self.members_]
        log_scale = np.mean([kernel.named()["scale"] for kernel in kernels], axis=0)
        self.length_scales_ = np.full((len(self.encodings_), n_features), np.inf)
        for own, encoding, log_scales in zip(
            self.length_scales_, self.encodings_, log_scale, strict=True
        ):
            used = np.unique(encoding.feature)
            own[used] = np.exp(-log_scales[used])
            if encoding.name == "standard":
                own[encoding.numeric] *= encoding.scale
        self.bandwidth_ = self.length_scales_[0].copy()
        sample = self._training.encode(self.keys_[:_MOST_DESCRIBED], np.float64)
        variances = np.concatenate([z.var(axis=0) for z in sample])
        squares = sum(np.square(np.concatenate(kernel.column_scales)) for kernel in kernels)
        relevance = np.bincount(
            np.concatenate(self._training.features), variances * squares, n_features
        )
        total = relevance.sum()
        self.feature_relevance_ = relevance / total if total > 0 else relevance
