"""Refit a model at each step, search for the best point."""

import functools
from numbers import Integral

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_scalar

from .acquisition import (
    entropy,
    first_best,
    min_unsafe,
    predicted,
    refinable,
    refine,
    safe_probability,
    variance_reduction,
)
from .base import BaseQuerier
from .exceptions import NoSafeCandidateError
from .report import Report
from .space import Box, as_rows, check_features, finite_array, is_auto, moments
from .surrogates import SURROGATES
from .surrogates.threads import one_thread

# Points whose average variance "variance_reduction" lowers.
_N_REFERENCE = 200
# Points that "random" asks at once whether they are safe; mostly the first of them will do.
_ASKED = 4096


class ModelSearch(BaseQuerier):
    """What queriers with and without limits share: models, search and report."""

    # The priors on the hyperparameters are for values near unit scale.
    _needs_unit_scale = True
    _acquisitions = ("entropy", "variance_reduction")

    def query(
        self,
        X=None,
        y=None,
        z=None,
        *,
        budget=None,
        pool=None,
        n_queries=1,
        return_indices=False,
        return_report=False,
    ):
        """Propose where to measure next. Never changes the querier.

        Like the ``query`` of every querier, with one more parameter. All rows of a
        pool are compared. The choice does not depend on the budget, but a spent
        one raises. With ``n_queries`` above 1, points already chosen lower the
        uncertainty about the output where they lie; hyperparameters, and all that
        is said about safety, come from the observations alone.

        Parameters
        ----------
        X, y, z, budget, pool, n_queries, return_indices
            See :meth:`BaseQuerier.query`.
        return_report : bool, default=False
            Return what the models expect of the proposals, given the observations
            (see :meth:`assess`).

        Returns
        -------
        points : ndarray of shape (n_queries, n_features)
            In the user's units and inside the bounds.
        indices : ndarray of int of shape (n_queries,)
            Positions of the points in the pool; only with ``return_indices``.
        report : Report
            Only with ``return_report``.

        Raises
        ------
        NoSafeCandidateError
            Nothing is safe enough; ``GPSafeQuerier`` only.
        NotFittedError, BudgetExhaustedError, PoolExhaustedError, ValueError, TypeError
            See :meth:`BaseQuerier.query`.
        """
        answer = super().query(
            X,
            y,
            z,
            budget=budget,
            pool=pool,
            n_queries=n_queries,
            return_indices=return_indices,
        )
        if not return_report:
            return answer
        parts = answer if return_indices else (answer,)
        return *parts, self.assess(parts[0], X, y, z)

    def assess(self, x, X=None, y=None, z=None):
        """What the models expect of measurements at any points, proposed by whomever.

        Parameters
        ----------
        x : array-like of shape (n_features,) or (n, n_features)
            In the user's units.
        X, y, z : array-like, default=None
            Observations to use in place of the campaign's.

        Returns
        -------
        report : Report

        Raises
        ------
        sklearn.exceptions.NotFittedError
            Neither data nor a campaign.
        ValueError, TypeError
            Invalid data or parameters.
        """
        _, data = self._data(X, y, z, "assess(x, X, y)")
        n_features = data[0].shape[1]
        self._check_setup(n_features)
        x = as_rows(x, n_features)
        x_ = finite_array(x, "x")
        check_features(self, x, x_.shape[1], "x", n_features)
        points = Box.of(self.bounds, n_features).to_unit(x_)
        with one_thread():
            X_, y_, margins = _in_order(*self._at_unit_scale(*data)[1:])
            mean, std = predicted(self._model(X_, y_), points)
            limits = self._limits(X_, margins)
            margin = [predicted(model, points) for model in limits]
            p_safe = safe_probability(limits, points) if limits else None
        loc = moments(data[1])[0] if is_auto(self.y_loc) else float(self.y_loc)
        scale = moments(data[1])[1] if is_auto(self.y_scale) else float(self.y_scale)
        return Report(loc + scale * mean, scale * std, p_safe, *self._raw_limits(margin, data[2]))

    def _raw_limits(self, margin, z):
        return None, None

    def _check_setup(self, n_features, budget=None):
        surrogate, names = self.surrogate, ", ".join(map(repr, SURROGATES))
        if isinstance(surrogate, type):
            raise ValueError(f"surrogate must be an instance: {surrogate.__name__}(), or {names}.")
        named = isinstance(surrogate, str)
        if named:
            known = surrogate in SURROGATES
        else:
            known = hasattr(surrogate, "fit") and hasattr(surrogate, "predict")
        if not known:
            raise ValueError(
                f"surrogate must be one of {names} or an estimator whose predict returns mean and "
                f"standard deviation, got {surrogate!r}."
            )
        if self.acquisition not in self._acquisitions:
            raise ValueError(
                f"acquisition must be one of {', '.join(map(repr, self._acquisitions))}, got "
                f"{self.acquisition!r}."
            )
        if self.acquisition == "variance_reduction" and not (
            named or hasattr(surrogate, "covariance")
        ):
            raise ValueError(
                "acquisition='variance_reduction' needs a surrogate with a method "
                f"covariance(A, B), which {type(surrogate).__name__} lacks; choose another "
                f"acquisition, or as surrogate {names}."
            )
        check_scalar(self.candidates, "candidates", Integral, min_val=1)
        check_scalar(self.refine, "refine", Integral, min_val=0)

    def _model(self, X, values, pending=None):
        """A fitted surrogate; the same for the same data, whatever came before.

        Pending inputs and their values count as data, but not in the choice of
        hyperparameters if the surrogate can do without.
        """
        surrogate = self.surrogate
        model = SURROGATES[surrogate]() if isinstance(surrogate, str) else clone(surrogate)
        if pending is None or len(pending[0]) == 0:
            return model.fit(X, values)
        everything = np.vstack([X, pending[0]]), np.append(values, pending[1])
        if not hasattr(model, "condition"):
            return model.fit(*everything)
        return model.fit(X, values).condition(*everything)

    def _limits(self, X, margins):
        return [] if margins is None else [self._model(X, margin) for margin in margins.T]

    def _propose_in_turn(self, campaign, n_observed, X, y, margin, left, rng, candidates):
        if candidates is not None and candidates.n_left == 0:
            return np.zeros(X.shape[1])  # anything: the base finds no row for it and says so
        with one_thread():
            # A guessed margin would pass for a measured one, and the next proposal would be
            # called safe on the strength of it. Uncertainty about the output is another matter.
            pending = X[n_observed:], y[n_observed:]
            margin = None if margin is None else margin[:n_observed]
            X, y, margins = _in_order(X[:n_observed], y[:n_observed], margin)
            output = functools.partial(self._model, X, y, pending)
            if candidates is None:
                points = rng.random((self.candidates, X.shape[1]))
            else:
                points = candidates.points
            limits = self._limits(X, margins)
            if not limits:
                return self._best(output, points, rng, candidates is None)
            required = 1.0 - self.gamma
            if self.acquisition == "random":
                point = _any_safe(limits, points, required, rng)
                if point is not None:
                    return point
            p_safe = safe_probability(limits, points)
            if self.acquisition == "min_unsafe":
                return self._best(output, points, rng, candidates is None, limits, p_safe)
            if candidates is None and (p_safe < required).all():
                # In many dimensions uniform points miss the safe set altogether.
                points = _between(X, points, rng)
                p_safe = safe_probability(limits, points)
            safe = p_safe >= required
            if safe.any():
                return self._best(output, points[safe], rng, candidates is None, limits)
            least = p_safe.argmax()
            if self.on_no_safe == "least_unsafe":
                return points[least]
            raise NoSafeCandidateError(points[least], float(p_safe[least]), required)

    def _best(self, output, points, rng, free, limits=(), p_safe=None):
        """The best of the points that may be proposed, and refined where any point may."""
        if self.acquisition == "random":
            return points[rng.integers(len(points))]
        model = output()
        if self.acquisition == "variance_reduction":
            reference = points[rng.integers(len(points), size=_N_REFERENCE)]
            return points[first_best(variance_reduction(model, points, reference))]
        std = predicted(model, points)[1]
        score = entropy(std) if p_safe is None else min_unsafe(std, p_safe, self.gamma)
        if not (free and self.refine and refinable(model, limits)):
            return points[first_best(score)]
        starts = points[np.argsort(-score, kind="stable")[: self.refine]]
        gamma = self.gamma if limits else 0.0
        return refine(model, limits, starts, gamma, soft=p_safe is not None)


def _any_safe(limits, points, required, rng):
    """One of the points that are safe enough, each as likely as the others, or None."""
    order = rng.permutation(len(points))
    for start in range(0, len(points), _ASKED):
        asked = points[order[start : start + _ASKED]]
        safe = np.flatnonzero(safe_probability(limits, asked) >= required)
        if len(safe):
            return asked[safe[0]]
    return None


def _in_order(X, y, margins):
    """Sort observations: rounding depends on their order, and ties among points on rounding."""
    columns = () if margins is None else margins.T
    order = np.lexsort((*columns, y, *X.T))
    return X[order], y[order], None if margins is None else margins[order]


def _between(X, points, rng):
    """Random points on the way from an observation to each of the points."""
    origin = X[rng.integers(len(X), size=len(points))].clip(0.0, 1.0)
    return origin + rng.random((len(points), 1)) * (points - origin)
