"""What a measurement is worth, how safe it is, and which candidate is best."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from ._typing import FloatArray, Surrogate

# Rows worked on at a time, where what is needed of each is many numbers.
_ROWS = 4096
#: Scores closer than this count as equal, so that rounding does not decide; some of them are
#: computed in single precision.
TIE = 1e-5
#: A point that may be safe with a smaller probability is not worth to be known.
POSSIBLY_SAFE = 0.16
# Risk is the probability of being unsafe in units of gamma. The logarithm of a gain is lowered by
# so much times the risk, and candidates of a higher risk than the limit are never taken.
_PENALTY, _LARGEST_RISK = 0.35, 6.0
# In place of a gain of nothing, whose logarithm is infinite.
_NOTHING = np.finfo(np.float64).tiny


@dataclass(frozen=True, eq=False)
class Report:
    """What the models expect of measurements at some points, in the user's units.

    Attributes
    ----------
    y_mean, y_std : ndarray of shape (n,)
        Predicted output and its standard deviation, noise included.
    p_safe : ndarray of shape (n,) or None
        Probability that a measurement keeps all limits. This and the next are None
        for a querier without limits.
    z_mean, z_std : ndarray of shape (n,) or (n, n_limits), or None
        Predicted safety measurements and their standard deviations, noise included. Of a limit
        that is measured in booleans, the share that is expected to be True.
    guard : tuple of GuardAction of length n, or None
        What the guard did to each proposal
        (:class:`~sklearn_asal.queriers.guard.GuardAction`); None where there was no guard, and in
        it where a measurement is repeated.
    """

    y_mean: FloatArray
    y_std: FloatArray
    p_safe: FloatArray | None = None
    z_mean: FloatArray | None = None
    z_std: FloatArray | None = None
    guard: tuple[Any, ...] | None = None


def predicted(model: Surrogate, X: FloatArray) -> tuple[FloatArray, FloatArray]:
    """What a surrogate predicts, checked, for it may be anybody's.

    Parameters
    ----------
    model : surrogate
        Fitted.
    X : ndarray of shape (n, n_features)

    Returns
    -------
    mean, std : ndarray of shape (n,)

    Raises
    ------
    ValueError
        Not that: other shapes, NaN, infinity, or a standard deviation of zero or less.
    """
    return _moments(model, model.predict(X), "predict", (len(X),))


def _moments(model, answer, method, shape):
    called = f"surrogate {type(model).__name__}: {method}(X)"
    wanted = "(n,)" if len(shape) == 1 else "(n_members, n)"
    try:
        mean, std = (np.asarray(part, dtype=np.float64) for part in answer)
    except (TypeError, ValueError):
        mean = std = np.empty(0)
    # The number of members is the model's own affair.
    if mean.shape != std.shape or mean.ndim != len(shape) or mean.shape[-1:] != shape[-1:]:
        raise ValueError(
            f"{called} must return two arrays of shape {wanted}, mean and standard deviation, for "
            f"n = {shape[-1]} rows; it returned {_described(answer)}."
        )
    if not (np.isfinite(mean).all() and np.isfinite(std).all() and (std > 0).all()):
        raise ValueError(
            f"{called} must return finite means and finite standard deviations > 0, noise "
            f"included; of n = {shape[-1]} rows it returned {(~np.isfinite(mean)).sum()} means "
            f"and {(~np.isfinite(std)).sum()} deviations that are not finite, and "
            f"{(std <= 0).sum()} deviations of zero or less."
        )
    return mean, std


def _described(answer):
    if isinstance(answer, (tuple, list)):
        return f"{type(answer).__name__} of {', '.join(map(_described, answer)) or 'nothing'}"
    shape = getattr(answer, "shape", None)
    return type(answer).__name__ + ("" if shape is None else f" of shape {tuple(shape)}")


def entropy(std: ArrayLike) -> FloatArray:
    """Entropy of a Gaussian prediction (eqS-gp_posterior_entropy).

    Parameters
    ----------
    std : array-like
        Predictive standard deviation, noise included.

    Returns
    -------
    entropy : ndarray
        In nats.
    """
    return 0.5 * np.log(2 * np.pi * np.e) + np.log(std)


def predicted_entropy(model: Surrogate, X: FloatArray) -> FloatArray:
    """Entropy of what a surrogate predicts.

    Parameters
    ----------
    model : surrogate
        Fitted. Without a method ``entropy`` of its own its predictions count as Gaussian.
    X : ndarray of shape (n, n_features)

    Returns
    -------
    entropy : ndarray of shape (n,)
        In nats.

    Raises
    ------
    ValueError
        See :func:`predicted`.
    """
    if hasattr(model, "entropy"):
        return model.entropy(X)
    return entropy(predicted(model, X)[1])


def min_unsafe(std: ArrayLike, p_safe: ArrayLike, gamma: float) -> FloatArray:
    """Information and safety in one score (eq-acq_minunsafe).

    ``-log p(y_hat) - log max(gamma, 1 - p_safe)``, with the predicted mean for y_hat.

    Parameters
    ----------
    std : array-like
        Predictive standard deviation of the output, noise included.
    p_safe : array-like
        Probability of being safe.
    gamma : float
        Tolerated probability of being unsafe, above 0.

    Returns
    -------
    score : ndarray
    """
    surprise = 0.5 * np.log(2 * np.pi) + np.log(std)
    return surprise - np.log(np.maximum(gamma, 1.0 - np.asarray(p_safe)))


def variance_reduction(
    model: Any,
    X: FloatArray,
    reference: FloatArray,
    weights: FloatArray,
    n_members: int | None = None,
) -> FloatArray:
    """How much measurements lower the posterior variance of a reference set.

    Integrated variance reduction (Cohn, 1996; Seo et al., 2000), with the integral as a weighted
    sum over the reference set.

    Parameters
    ----------
    model : surrogate
        Fitted, with a method ``covariance``, or with a ``variance_reduction`` of its own.
    X : ndarray of shape (n, n_features)
        Where to measure.
    reference : ndarray of shape (k, n_features)
        Where the variance matters.
    weights : ndarray of shape (k,)
        How much each of these points matters.
    n_members : int, optional
        Of a model that is averaged over members, so many most probable ones.

    Returns
    -------
    reduction : ndarray of shape (n,)
        Weighted mean of the reductions.
    """
    total = weights.sum() or 1.0
    if hasattr(model, "variance_reduction"):
        some = {} if n_members is None else {"n_members": n_members}
        return model.variance_reduction(X, reference, weights, **some) / total
    std = predicted(model, X)[1]
    reduction = np.empty(len(X))
    for start in range(0, len(X), _ROWS):
        rows = slice(start, start + _ROWS)
        covariance = model.covariance(X[rows], reference)
        reduction[rows] = np.square(covariance) @ weights
    return reduction / (total * np.square(std))


def price_of_risk(p_safe: FloatArray, gamma: float) -> FloatArray:
    """What is taken off the logarithm of a gain: in proportion to ``(1 - p_safe) / gamma``.

    In simulation the share of unsafe queries comes out near gamma, where a bound of gamma on every
    single query may trap a campaign in a corner of the safe region.

    Parameters
    ----------
    p_safe : ndarray of shape (n,)
        Probability of being safe.
    gamma : float
        Tolerated share of unsafe queries.

    Returns
    -------
    price : ndarray of shape (n,)
    """
    return _PENALTY * (1.0 - p_safe) / gamma


def log_gain(gain: FloatArray) -> FloatArray:
    """Logarithm of a gain, in whose differences units are of no consequence.

    Parameters
    ----------
    gain : ndarray of shape (n,)
        Not negative.

    Returns
    -------
    ndarray of shape (n,)
        Finite also where nothing is gained.
    """
    return np.log(np.maximum(gain, _NOTHING))


def required_probability(gamma: float, priced: bool) -> float:
    """The probability of being safe that a candidate must have to be taken at all.

    Parameters
    ----------
    gamma : float
        Tolerated probability of being unsafe.
    priced : bool
        Whether risk has a price, see :func:`price_of_risk`; then up to six times gamma is
        tolerated, and nothing is ruled out from a gamma of one sixth on.

    Returns
    -------
    float
    """
    return max(1.0 - (_LARGEST_RISK if priced else 1.0) * gamma, 0.0)


def possibly_safe(limits: Sequence[Surrogate], reference: FloatArray) -> FloatArray:
    """Weights of a reference set: one where a point may be safe, else zero.

    Parameters
    ----------
    limits : list of surrogate
        See :func:`probability_of_feasibility`.
    reference : ndarray of shape (k, n_features)

    Returns
    -------
    weights : ndarray of shape (k,)
    """
    p_safe = np.ones(len(reference))
    for model in limits:
        if hasattr(model, "probability_at"):  # which knows the reference set of the query before
            p_safe *= model.probability_at(reference)
        else:
            p_safe *= probability_of_feasibility([model], reference)
    return (p_safe >= POSSIBLY_SAFE).astype(float)


def probability_of_feasibility(limits: Sequence[Surrogate], X: FloatArray) -> FloatArray:
    """Probability that a measurement keeps all limits (eqS-gp_posterior_cdf).

    Parameters
    ----------
    limits : list of surrogate
        One fitted model for each limit's margin, safe where >= 0. They count as
        independent, so the joint probability is the product. Of a mixture it is the
        mean over the members, not the probability of a Gaussian with its moments.
    X : ndarray of shape (n, n_features)

    Returns
    -------
    p_safe : ndarray of shape (n,)
    """
    p_safe = np.ones(len(X))
    for model in limits:
        for start in range(0, len(X), _ROWS):
            rows = slice(start, start + _ROWS)
            p_safe[rows] *= _probability_of_positive(model, X[rows])
    return p_safe


def _probability_of_positive(model, X):
    if hasattr(model, "probability_of_positive"):
        return model.probability_of_positive(X)
    if not hasattr(model, "predict_members"):
        mean, std = predicted(model, X)
        return ndtr(mean / std)
    answer = model.predict_members(X)
    means, stds = _moments(model, answer, "predict_members", (-1, len(X)))
    return ndtr(means / stds).mean(axis=0)


def argbest(scores: FloatArray, points: FloatArray, tie: float = TIE) -> int:
    """Index of the candidate with the highest score.

    Of scores that are equal but for rounding, the one whose point comes first in lexicographic
    order, so that nothing depends on the order of the candidates.

    Parameters
    ----------
    scores : ndarray of shape (n,)
    points : ndarray of shape (n, n_features)
    tie : float, default=1e-5
        What differs by less, relative to the best if that is more than one in size, is equal.

    Returns
    -------
    int
    """
    best = scores.max()
    tied = np.flatnonzero(scores >= best - tie * max(1.0, abs(best)))
    return int(tied[0] if len(tied) == 1 else tied[np.lexsort(points[tied].T[::-1])[0]])
