"""What a measurement is worth, how safe it is, and the search for the best one."""

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_ndtr, logsumexp, ndtr

# Rows worked on at a time, where what is needed of each is many numbers.
_ROWS = 4096
# Scores closer than this count as equal, so that rounding does not decide.
_TIE = 1e-9
# How far inside the safe set the solver aims, in log probability: it misses by about 1e-7.
_SLACK = 1e-5


def predicted(model, X):
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
            f"n = {shape[-1]} rows; it returned {_described(answer)}. A regressor of scikit-learn "
            "needs a subclass whose predict asks for the deviation (return_std=True)."
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


def entropy(std):
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


def min_unsafe(std, p_safe, gamma):
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


def variance_reduction(model, X, reference):
    """How much a measurement lowers the variance of the function, averaged over points.

    Parameters
    ----------
    model : surrogate
        Fitted, with a method ``covariance``.
    X : ndarray of shape (n, n_features)
        Where to measure.
    reference : ndarray of shape (k, n_features)
        Where the variance matters.

    Returns
    -------
    reduction : ndarray of shape (n,)
    """
    std = predicted(model, X)[1]
    reduction = np.empty(len(X))
    for start in range(0, len(X), _ROWS):
        rows = slice(start, start + _ROWS)
        covariance = model.covariance(X[rows], reference)
        reduction[rows] = np.square(covariance).mean(axis=1)
    return reduction / np.square(std)


def safe_probability(limits, X):
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
        if not hasattr(model, "predict_members"):
            mean, std = predicted(model, X)
            p_safe *= ndtr(mean / std)
            continue
        for start in range(0, len(X), _ROWS):
            rows = slice(start, start + _ROWS)
            answer = model.predict_members(X[rows])
            means, stds = _moments(model, answer, "predict_members", (-1, len(X[rows])))
            p_safe[rows] *= ndtr(means / stds).mean(axis=0)
    return p_safe


def first_best(scores):
    """Index of the first score that equals the highest one, rounding aside."""
    return int((scores >= scores.max() - _TIE).argmax())


def refine(model, limits, starts, gamma, soft=False):
    """Climb from good candidates to a better point of the unit cube.

    Parameters
    ----------
    model : surrogate
        Of the output, fitted; its predictive entropy is climbed.
    limits : list of surrogate
        Of the safety margins; empty without a constraint.
    starts : ndarray of shape (k, n_features)
        Candidates, the best one first.
    gamma : float
        With limits, the tolerated probability of being unsafe.
    soft : bool, default=False
        Climb the score of eq-acq_minunsafe, without a constraint.

    Returns
    -------
    point : ndarray of shape (n_features,)
        The best point found that keeps the constraint, or the first start.
    """
    hard = bool(limits) and not soft
    required = np.log1p(-gamma)

    def negated(x):
        _, std, _, slope = model.predict_gradient(x)
        score, gradient = np.log(std), slope / std
        if soft:
            log_safe, d_log_safe = _log_safe(limits, x)
            unsafe = -np.expm1(log_safe)
            score -= np.log(max(gamma, unsafe))
            if unsafe > gamma:
                gradient = gradient + np.exp(log_safe) / unsafe * d_log_safe
        return -score, -gradient

    constraint = {
        "type": "ineq",
        "fun": lambda x: _log_safe(limits, x)[0] - required - _SLACK,
        "jac": lambda x: _log_safe(limits, x)[1],
    }
    best, cost = starts[0], negated(starts[0])[0]
    for start in starts:
        run = minimize(
            negated,
            start,
            jac=True,
            method="SLSQP",
            bounds=[(0.0, 1.0)] * len(start),
            constraints=[constraint] if hard else [],
            options={"maxiter": 20, "ftol": 1e-6},
        )
        x = np.clip(run.x, 0.0, 1.0)
        # The solver may fail, or end outside the safe set.
        if not np.isfinite(x).all() or (hard and _log_safe(limits, x)[0] < required):
            continue
        found = negated(x)[0]
        if found < cost - _TIE:
            best, cost = x, found
    return best


def _log_safe(limits, x):
    """Logarithm of the joint probability of being safe at one point, and its gradient."""
    value, gradient = 0.0, np.zeros_like(x)
    for model in limits:
        if hasattr(model, "predict_members"):
            mean, std, d_mean, d_std = model.predict_members_gradient(x)
        else:
            mean, std, d_mean, d_std = map(np.stack, zip(model.predict_gradient(x)))
        ratio = mean / std
        log_p = logsumexp(log_ndtr(ratio)) - np.log(len(ratio))
        density = np.exp(-0.5 * ratio**2 - 0.5 * np.log(2 * np.pi) - log_p) / len(ratio)
        value += log_p
        gradient = gradient + density / std @ (d_mean - ratio[:, None] * d_std)
    return value, gradient


def refinable(model, limits):
    """Whether these models have all the gradients that :func:`refine` follows."""
    return hasattr(model, "predict_gradient") and all(
        hasattr(limit, "predict_members_gradient")
        if hasattr(limit, "predict_members")
        else hasattr(limit, "predict_gradient")
        for limit in limits
    )
