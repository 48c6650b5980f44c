"""How well hyperparameters are inferred: ``python -m sklearn_asal.benchmarks.inference``.

Data sets are simulated, so that the true hyperparameters are known. All methods but the last
integrate out the scale of the values, and the mean unless it is zero. The true hyperparameters are
drawn as those that the network was trained with, which is in its favour. The last method, for
comparison, infers none: it predicts, and takes values for zero-mean ones of about unit scale, as
they are here.
"""

import argparse
import time
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.linalg import lapack
from scipy.optimize import minimize
from scipy.special import logsumexp
from scipy.stats import qmc
from scipy.stats import t as student

from .._arguments import not_negative, positive
from ..settings import own_settings
from ..surrogates import AmortizedGP, PFNSurrogate
from ..surrogates.evidence import _LENGTHSCALES, _NOISES, unit
from ..surrogates.factors import InverseFactors
from ..surrogates.kernels import rbf, rbf_of_squares, squared_differences
from ..surrogates.likelihood import Prior
from ..trainer.systems import draw_hyperparameters, draw_inputs

#: The methods, in the order of the tables.
METHODS = "network", "bank", "gradient", "fitted", "isotropic", "oracle", "pfn"
# Most features of the last one.
_MOST_FEATURES = 8

_N_TEST, _JITTER = 50, 1e-9
# Shape of the inverse gamma prior on the variance of margins.
_SHAPE = 1.0
# The bank: sets, those that are kept, every which one is isotropic, and the ranges.
_N_SETS, _KEPT, _ISOTROPIC = 128, 12, 16
_LENGTHSCALE_RANGE, _NOISE_RANGE = (0.06, 1.6), (0.01, 0.5)
# Searches stay within these.
_LENGTHSCALE_BOUNDS, _NOISE_BOUNDS = (0.02, 50.0), (1e-3, 3.0)
_N_STEPS, _STEP, _LONGEST = 2, 1.0, 0.5


@dataclass(frozen=True, eq=False)
class DataSet:
    """Simulated observations, and what is to be predicted from them.

    Parameters
    ----------
    X : ndarray of shape (n, n_features)
        In the unit cube.
    y : ndarray of shape (n,)
    zero_mean : bool
        Whether they count as safety margins.
    X_test : ndarray of shape (m, n_features)
        Uniform.
    y_test, f_test : ndarray of shape (m,)
        Values there with and without noise.
    lengthscales : ndarray of shape (n_features,)
    noise : float
        Standard deviation; that of the signal is one.
    """

    X: np.ndarray
    y: np.ndarray
    zero_mean: bool
    X_test: np.ndarray
    y_test: np.ndarray
    f_test: np.ndarray
    lengthscales: np.ndarray
    noise: float


def draw_data_set(n_features, n, seed, number, n_test=_N_TEST):
    """One data set from a Gaussian process of zero mean.

    Parameters
    ----------
    n_features, n : int
    seed, number : int
        Not negative; the same give the same data set. Those of an odd number count as margins.
    n_test : int, default=50

    Returns
    -------
    DataSet
    """
    rng = np.random.default_rng([seed, n_features, n, number])
    (lengthscales,), (noise,) = draw_hyperparameters(rng, 1, n_features)
    points = np.vstack([draw_inputs(rng, 1, n, n_features)[0], rng.random((n_test, n_features))])
    covariance = rbf(points, points, lengthscales) + _JITTER * np.eye(len(points))
    f = np.linalg.cholesky(covariance) @ rng.standard_normal(len(points))
    y = f + noise * rng.standard_normal(len(points))
    X, X_test = points[:n], points[n:]
    return DataSet(X, y[:n], number % 2 == 1, X_test, y[n:], f[n:], lengthscales, noise)


class FixedGP:
    """Gaussian processes of given hyperparameters, weighted by their evidence.

    Parameters
    ----------
    X : ndarray of shape (n, n_features)
    y : ndarray of shape (n,)
    lengthscales : ndarray of shape (k, n_features)
    noises : ndarray of shape (k,)
        Standard deviations in units of the signal's.
    zero_mean : bool
        Whether the mean is zero, with an inverse gamma prior of shape one on the variance. Else
        it has a flat prior, and the variance one of ``1 / variance``.
    n_kept : int, optional
        So many most probable ones are kept.

    Attributes
    ----------
    log_evidence_ : ndarray of shape (k,)
        Of all, up to a constant.
    member_weights_ : ndarray of shape (n_kept,)
    dof_ : float
    """

    def __init__(self, X, y, lengthscales, noises, zero_mean, n_kept=None):
        factors = InverseFactors(X, lengthscales, noises, np.arange(len(noises)))
        whitened, location = factors.inverse @ y, np.zeros(len(noises))
        log_evidence = factors.log_determinant
        self.dof_ = len(y) + 2 * _SHAPE
        if not zero_mean:
            self.dof_ = len(y) - 1.0
            ones = factors.inverse.sum(axis=2)
            total = np.square(ones).sum(axis=1)
            location = (ones * whitened).sum(axis=1) / total
            whitened = whitened - location[:, None] * ones
            log_evidence = log_evidence - 0.5 * np.log(total)
        squares = np.square(whitened).sum(axis=1)
        self.log_evidence_ = log_evidence - 0.5 * self.dof_ * np.log(squares)
        kept = np.argsort(-self.log_evidence_, kind="stable")[:n_kept]
        weights = np.exp(self.log_evidence_[kept] - self.log_evidence_[kept[0]])
        self.member_weights_ = weights / weights.sum()
        self._factors, self._zero_mean = factors.subset(kept), zero_mean
        self._alpha, self._location = whitened[kept], location[kept]
        self._scale = np.sqrt(squares[kept] / self.dof_)

    def predict_members(self, X):
        """Location and scale of a measurement for each process, noise included.

        Parameters
        ----------
        X : ndarray of shape (m, n_features)

        Returns
        -------
        locations, scales : ndarray of shape (n_kept, m)
            Of Student t distributions with ``dof_`` degrees of freedom.
        """
        factors = self._factors
        V = factors.whitened(X, np.arange(len(factors.noises)), np.float64)
        locations = self._location[:, None] + (self._alpha[:, None] @ V)[:, 0]
        variances = np.maximum(1 - np.square(V).sum(axis=1), 0) + factors.noises[:, None] ** 2
        if not self._zero_mean:
            ones = factors.inverse.sum(axis=2)
            across = 1 - (ones[:, None] @ V)[:, 0]
            variances += across**2 / np.square(ones).sum(axis=1)[:, None]
        return locations, self._scale[:, None] * np.sqrt(variances)


def log_evidence(theta, squares, y, zero_mean):
    """Log evidence with scales integrated out, up to a constant, and its gradient.

    Parameters
    ----------
    theta : ndarray of shape (n_features + 1,)
        Logarithms of the lengthscales and of the noise in units of the signal.
    squares : ndarray of shape (n_features, n * n)
        From :func:`~sklearn_asal.surrogates.kernels.squared_differences`.
    y : ndarray of shape (n,)
    zero_mean : bool
        See :class:`FixedGP`.

    Returns
    -------
    value : float
    gradient : ndarray of shape (n_features + 1,)
    """
    n, noise = len(y), np.exp(2 * theta[-1])
    kernel = rbf_of_squares(squares, np.exp(theta[:-1]), n)
    factor = np.linalg.cholesky(kernel + noise * np.eye(n))
    half = lapack.dtrtri(factor, lower=1)[0]
    precision = half.T @ half
    weighted, value, dof, outer = precision @ y, np.log(half.diagonal()).sum(), n + 2 * _SHAPE, 0.0
    if not zero_mean:
        dof = n - 1.0
        ones = precision.sum(axis=1)
        total = ones.sum()
        weighted = weighted - weighted.sum() / total * ones
        value -= 0.5 * np.log(total)
        outer = np.multiply.outer(ones, ones / total)
    fit = y @ weighted
    outer = outer + np.multiply.outer(weighted, dof / fit * weighted) - precision
    of_lengthscales = 0.5 * np.exp(-2 * theta[:-1]) * (squares @ (outer * kernel).ravel())
    gradient = np.append(of_lengthscales, noise * outer.trace())
    return value - 0.5 * dof * np.log(fit), gradient


def infer(method, data, policy="any"):
    """Infer hyperparameters, and condition on the data.

    - ``network``: :class:`~sklearn_asal.surrogates.AmortizedGP`.
    - ``bank``: the best twelve of 128 fixed sets of hyperparameters, weighted by their evidence.
    - ``gradient``: two steps of ascent on the log evidence, from the most probable of the ten
      isotropic processes that the network looks at. A step is the gradient divided by the number
      of observations, at most 0.5 in each coordinate: the best of factors from 0.5 to 8 and of
      bounds from 0.25 to 2, by log predictive density on 50 data sets of each size, of seed 1.
    - ``fitted``: the maximum that L-BFGS finds from the same start, with the weak priors of
      :class:`~sklearn_asal.surrogates.ExactGP`.
    - ``isotropic``: the ten isotropic processes, weighted by their evidence.
    - ``oracle``: the true hyperparameters.
    - ``pfn``: :class:`~sklearn_asal.surrogates.PFNSurrogate`, which infers none.

    Parameters
    ----------
    method : str
        One of ``METHODS``.
    data : DataSet
    policy : str or path-like, default="any"
        Of ``network``.

    Returns
    -------
    model : FixedGP, AmortizedGP or PFNSurrogate
    """
    X, y, zero_mean = data.X, data.y, data.zero_mean
    n_features = X.shape[1]
    if method == "network":
        return AmortizedGP(policy, zero_mean=zero_mean).fit(X, y)
    if method == "pfn":
        return PFNSurrogate().fit(X, y)
    if method == "oracle":
        return FixedGP(X, y, data.lengthscales[None], np.array([data.noise]), zero_mean)
    if method == "bank":
        return FixedGP(X, y, *bank(n_features), zero_mean, _KEPT)
    lengthscales = np.repeat(unit(n_features) * _LENGTHSCALES, len(_NOISES))
    lengthscales = np.tile(lengthscales[:, None], n_features)
    noises = np.tile(_NOISES, len(_LENGTHSCALES))
    isotropic = FixedGP(X, y, lengthscales, noises, zero_mean)
    if method == "isotropic":
        return isotropic
    best = isotropic.log_evidence_.argmax()
    theta = np.log(np.append(lengthscales[best], noises[best]))
    squares = squared_differences(X, X)
    search = {"gradient": ascend, "fitted": _maximise}[method]
    theta = search(theta, lambda theta: log_evidence(theta, squares, y, zero_mean), len(y))
    return FixedGP(X, y, np.exp(theta[None, :-1]), np.exp(theta[-1:]), zero_mean)


@cache
def bank(n_features):
    """Sets of hyperparameters that are spread over wide ranges by a Sobol sequence.

    Parameters
    ----------
    n_features : int

    Returns
    -------
    lengthscales : ndarray of shape (128, n_features)
        Every sixteenth set is isotropic.
    noises : ndarray of shape (128,)
    """
    points = qmc.Sobol(n_features + 1, scramble=False).random_base2(_N_SETS.bit_length())
    points = points[1 : _N_SETS + 1]  # the first one is a corner
    (short, long), (quiet, loud) = _LENGTHSCALE_RANGE, _NOISE_RANGE
    lengthscales = unit(n_features) * short * (long / short) ** points[:, :-1]
    lengthscales[::_ISOTROPIC] = lengthscales[::_ISOTROPIC, :1]
    return lengthscales, quiet * (loud / quiet) ** points[:, -1]


def ascend(theta, objective, n, step=_STEP, longest=_LONGEST):
    """Two steps along the gradient.

    Parameters
    ----------
    theta : ndarray
    objective : callable
        ``objective(theta) -> value, gradient``.
    n : int
        Number of observations; the gradient grows with it.
    step : float, default=1.0
    longest : float, default=0.5
        No coordinate moves by more in a step.

    Returns
    -------
    ndarray
    """
    for _ in range(_N_STEPS):
        gradient = objective(theta)[1]
        theta = theta + np.clip(step / n * gradient, -longest, longest)
        theta = np.clip(theta, *_box(len(theta) - 1).T)
    return theta


def _maximise(theta, objective, n):
    n_features = len(theta) - 1
    prior = Prior(n_features)
    # Noise in units of the signal: the ratio of two log-normal numbers.
    mean = np.append(prior.mean[:-2], prior.mean[-1] - prior.mean[-2])
    std = np.append(prior.std[:-2], np.hypot(*prior.std[-2:]))

    def negated(theta):
        value, gradient = objective(theta)
        distance = (theta - mean) / std
        return 0.5 * distance @ distance - value, distance / std - gradient

    return minimize(negated, theta, jac=True, method="L-BFGS-B", bounds=_box(n_features)).x


def _box(n_features):
    return np.log([_LENGTHSCALE_BOUNDS] * n_features + [_NOISE_BOUNDS])


def score(model, data):
    """How well a model predicts the test values.

    Parameters
    ----------
    model : FixedGP, AmortizedGP or PFNSurrogate
    data : DataSet

    Returns
    -------
    log_density : float
        Mean log predictive density of the noisy values.
    rmse : float
        Of the predictive mean, against the function without noise.
    """
    if isinstance(model, PFNSurrogate):
        found = model.predict_bars(data.X_test)
        error = model.bars_.mean(found) - data.f_test
        log_densities = model.bars_.log_density(found, data.y_test)
        return log_densities.mean(), np.sqrt(np.mean(error**2))
    weights = model.member_weights_[:, None]
    locations, scales = model.predict_members(data.X_test)
    densities = student.logpdf(data.y_test, model.dof_, locations, scales)
    error = (weights * locations).sum(axis=0) - data.f_test
    return logsumexp(densities, b=weights, axis=0).mean(), np.sqrt(np.mean(error**2))


@own_settings()
def compare(n_tasks, seed, features, observations, policy="any", n_test=_N_TEST):
    """Scores of all methods on the same data sets.

    Parameters
    ----------
    n_tasks, seed : int
        Data sets of each size, and their seed.
    features, observations : sequence of int
        Sizes; observations are at least two.
    policy : str or path-like, default="any"
        Of the method ``network``.
    n_test : int, default=50

    Returns
    -------
    dict of str to ndarray of shape (len(features), len(observations), n_tasks, 3)
        For each method log predictive density, error, and seconds to fit. NaN for ``pfn`` with
        more than eight features.

    Raises
    ------
    ValueError
        Of fewer than two observations no scale is known.
    """
    if min(observations) < 2:
        raise ValueError(f"observations must be at least 2, got {min(observations)}")
    shape = len(features), len(observations), n_tasks, 3
    scores = {method: np.full(shape, np.nan) for method in METHODS}
    for i, j, number in np.ndindex(shape[:-1]):
        data = draw_data_set(features[i], observations[j], seed, number, n_test)
        for method in METHODS:
            if method == "pfn" and features[i] > _MOST_FEATURES:
                continue
            if number == 0:  # loads a policy, makes a bank
                infer(method, data, policy)
            begun = time.perf_counter()
            model = infer(method, data, policy)
            seconds = time.perf_counter() - begun
            scores[method][i, j, number] = *score(model, data), seconds
    return scores


def tables(scores, features, observations):
    """Lines of two tables, of log densities and of errors, and one of times.

    Parameters
    ----------
    scores : dict of str to ndarray
        From :func:`compare`.
    features, observations : sequence of int

    Returns
    -------
    list of str
    """
    lines = []
    heads = [f"{n_features}/{n}" for n_features in features for n in observations] + ["mean"]
    titles = "mean log predictive density of a noisy value", "RMSE against the noise-free function"
    for part, title in enumerate(titles):
        lines += [title, f"{'D/n':10}" + "".join(f"{head:>8}" for head in heads)]
        for method, values in scores.items():
            cells = values[..., part].mean(axis=2).ravel()
            row = [*cells, cells.mean()]
            lines.append(f"{method:10}" + "".join(f"{value:8.3f}" for value in row))
        lines.append("")
    times = [f"{name} {1e3 * values[..., 2].mean():.2f}" for name, values in scores.items()]
    return [*lines, "ms per fit: " + ", ".join(times)]


def main(arguments=None):
    """Compare, and print the tables.

    Parameters
    ----------
    arguments : list of str, optional
        By default those of the command line.
    """
    parser = argparse.ArgumentParser("python -m sklearn_asal.benchmarks.inference")
    add = parser.add_argument
    add("--tasks", type=positive, default=100, help="data sets of each size; default: %(default)s")
    add("--seed", type=not_negative, default=0, help="default: %(default)s")
    add("--features", type=positive, nargs="+", default=[1, 2, 3, 5, 8], help="default: 1 2 3 5 8")
    add("--observations", type=positive, nargs="+", default=[6, 15, 40], help="default: 6 15 40")
    add("--policy", default="any", help="name or file of the network; default: %(default)s")
    given = parser.parse_args(arguments)
    if min(given.observations) < 2:
        parser.error("--observations must be at least 2")
    sizes = given.features, given.observations
    print("\n".join(tables(compare(given.tasks, given.seed, *sizes, given.policy), *sizes)))


if __name__ == "__main__":
    main()
