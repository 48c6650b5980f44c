"""Simulated systems with 1 to 10 features, whose hyperparameters a network learns to infer."""

import numpy as np

from ..surrogates.evidence import Probed, features, unit

#: Most features and observations of a simulated data set.
MOST_FEATURES, MOST_ROWS = 10, 96
# Hyperparameters never leave these: lengthscales, and noises in units of the signal.
_LENGTHSCALES, _NOISES = (0.05, 8.0), (0.005, 0.6)
_JITTER = 1e-9


def draw_hyperparameters(rng, n, n_features):
    """Broad priors: related lengthscales in most systems, independent ones in the others.

    In some systems with related lengthscales a third of the features hardly matter.

    Parameters
    ----------
    rng : numpy.random.Generator
    n, n_features : int

    Returns
    -------
    lengthscales : ndarray of shape (n, n_features)
        In the unit cube.
    noises : ndarray of shape (n,)
        Standard deviations in units of the signal's.
    """
    typical = unit(n_features) * _log_uniform(rng, 0.08, 1.6, (n, 1))
    spread = np.where(rng.random((n, 1)) < 0.15, 0.0, 1.2 * rng.random((n, 1)))
    related = typical * np.exp(spread * rng.standard_normal((n, n_features)))
    idle = (rng.random((n, 1)) < 0.3) & (rng.random((n, n_features)) < 0.3)
    related = np.where(idle, related * _log_uniform(rng, 3.0, 10.0, related.shape), related)
    independent = _log_uniform(rng, 0.08, 2.5, related.shape)
    lengthscales = np.where(rng.random((n, 1)) < 0.6, related, independent)
    return lengthscales.clip(*_LENGTHSCALES), _log_uniform(rng, *_NOISES, n)


def draw_inputs(rng, n, rows, n_features):
    """Inputs as campaigns have them: scattered, begun in a corner, or with many on the border.

    Parameters
    ----------
    rng : numpy.random.Generator
    n, rows, n_features : int

    Returns
    -------
    ndarray of shape (n, rows, n_features)
    """
    uniform = rng.random((n, rows, n_features))
    initial = np.arange(rows)[:, None] < rng.integers(1, rows + 1, (n, 1, 1))
    width = _log_uniform(rng, 0.05, 1.0, (n, 1, 1))
    corner = rng.random((n, 1, n_features)) * (1 - width) + width * uniform
    border = np.clip(1.4 * uniform - 0.2, 0.0, 1.0)
    kind = rng.random((n, 1, 1))
    X = np.where((kind > 0.35) & initial, corner, uniform)
    return np.where((kind > 0.7) & ~initial, border, X)


def draw_values(rng, X, lengthscales, noises, zero_mean):
    """Measurements of functions from Gaussian processes; some are bent, some margins lifted.

    What the process says is never quite true of a real system.

    Parameters
    ----------
    rng : numpy.random.Generator
    X : ndarray of shape (n, rows, n_features)
    lengthscales : ndarray of shape (n, n_features)
    noises : ndarray of shape (n,)
    zero_mean : bool
        Whether they are safety margins.

    Returns
    -------
    ndarray of shape (n, rows)
    """
    n, rows = X.shape[:2]
    scaled = X / lengthscales[:, None]
    distance = np.square(scaled[:, :, None] - scaled[:, None]).sum(axis=-1)
    factor = np.linalg.cholesky(np.exp(-0.5 * distance) + _JITTER * np.eye(rows))
    values = (factor @ rng.standard_normal((n, rows, 1)))[..., 0]
    bend = rng.uniform(0.3, 1.2, (n, 1))
    bent = np.sinh(bend * (values + rng.uniform(-1, 1, (n, 1)))) / np.sinh(bend) / 1.2
    values = np.where(rng.random((n, 1)) < 0.25, bent, values)
    if zero_mean:
        lifted = rng.random((n, 1)) < 0.5
        values = values + np.where(lifted, rng.standard_normal((n, 1)), 0.0)
    return values + noises[:, None] * rng.standard_normal(values.shape)


def draw_examples(rng, n):
    """Evidence of simulated data sets of one size, and what is to be inferred from it.

    Parameters
    ----------
    rng : numpy.random.Generator
    n : int

    Returns
    -------
    own : ndarray of float32 of shape (n, n_features, N_OWN)
    shared : ndarray of float32 of shape (n, N_SHARED)
    log_lengthscales : ndarray of float32 of shape (n, n_features)
        Relative to :func:`~sklearn_asal.surrogates.evidence.unit`.
    log_noises : ndarray of float32 of shape (n,)
    """
    n_features = int(rng.integers(1, MOST_FEATURES + 1))
    rows = int(_log_uniform(rng, 1, MOST_ROWS + 1))
    zero_mean = bool(rng.random() < 0.5)
    lengthscales, noises = draw_hyperparameters(rng, n, n_features)
    X = draw_inputs(rng, n, rows, n_features)
    values = draw_values(rng, X, lengthscales, noises, zero_mean)
    own, shared = features(Probed(X), values, zero_mean)
    found = own, shared, np.log(lengthscales / unit(n_features)), np.log(noises)
    return tuple(part.astype(np.float32) for part in found)


def _log_uniform(rng, low, high, shape=()):
    return np.exp(rng.uniform(np.log(low), np.log(high), shape))
