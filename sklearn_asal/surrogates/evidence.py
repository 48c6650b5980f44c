"""What the marginal likelihood says about hyperparameters, in a form for any number of features."""

import numpy as np

from .factors import grown

# Processes at which the evidence and its gradient are taken: one lengthscale for all features.
_LENGTHSCALES = np.array([0.1, 0.2, 0.4, 0.8, 1.6])
_NOISES = np.array([0.03, 0.3])
_VARIANCES = np.tile(_NOISES**2, len(_LENGTHSCALES))
# Digits that are told apart.
_DIGITS = 9
# So little of the sum of squares comes from rounding.
_LITTLE = 1e-12
#: Numbers that :func:`features` has of each feature, and of all together.
N_OWN, N_SHARED = 17, 43


def unit(n_features):
    """The lengthscale that counts as one: distances grow with the number of features.

    Parameters
    ----------
    n_features : int

    Returns
    -------
    float
    """
    return max(np.sqrt(n_features / 2), 1.0)


def rank_features(X, *outcomes, pending=()):
    """A rank for each feature that depends on what was measured, not on its place.

    Parameters
    ----------
    X : ndarray of shape (n, n_features)
    *outcomes : ndarray of shape (n,)
        They tell columns with the same values apart, as those of a factorial design.
    pending : ndarray of shape (m, n_features), optional
        Rows without outcomes, which tell apart what is still equal.

    Returns
    -------
    ndarray of int of shape (n_features,)
    """
    keys = np.sort(X, axis=0).T.round(_DIGITS).tolist()
    for values in outcomes:
        apart = values - values.min()
        products = X.T @ (apart / (apart.max() or 1.0))
        for key, product in zip(keys, products.round(_DIGITS).tolist(), strict=True):
            key.append(product)
    for row in pending:
        for key, value in zip(keys, row.tolist(), strict=True):
            key.append(value)
    return np.argsort(sorted(range(len(keys)), key=keys.__getitem__))


class Probed:
    """What inputs alone say: covariances of the processes at which the evidence is taken.

    Parameters
    ----------
    X : ndarray of shape (..., n, n_features)
        In the unit cube.

    Attributes
    ----------
    X : ndarray of shape (..., n, n_features)
    kernels : ndarray of shape (..., 5, n, n)
        One for each lengthscale, without noise.
    precision : ndarray of shape (..., 10, n, n)
        Inverse covariances of measurements, for each lengthscale and noise.
    log_determinant : ndarray of shape (..., 10)
        Of the precisions, halved.
    """

    def __init__(self, X):
        n = X.shape[-2]
        squares = np.square(X[..., :, None, :] - X[..., None, :, :])
        kernels = _kernels(squares.sum(axis=-1)[..., None, :, :], X.shape[-1])
        covariance = _of_each(kernels, axis=-3) + _VARIANCES[:, None, None] * np.eye(n)
        factors = np.linalg.cholesky(covariance)
        diagonal = np.diagonal(factors, axis1=-2, axis2=-1)
        self._set(X, squares, kernels, np.linalg.inv(covariance), -np.log(diagonal).sum(axis=-1))

    def of(self, X):
        """That of other inputs; quick where they are these and a few more.

        Parameters
        ----------
        X : ndarray of shape (n, n_features)

        Returns
        -------
        Probed
        """
        return grown(self, X) or Probed(X)

    def with_row(self, X):
        """With one more row (block inversion).

        Parameters
        ----------
        X : ndarray of shape (n + 1, n_features)

        Returns
        -------
        Probed
        """
        n, n_features = len(X) - 1, X.shape[1]
        squares = np.zeros((n + 1, n + 1, n_features))
        squares[:n, :n] = self.squares
        squares[n, :n] = squares[:n, n] = np.square(X[:n] - X[n])
        kernels = np.ones((len(_LENGTHSCALES), n + 1, n + 1))
        kernels[:, :n, :n] = self.kernels
        new = _kernels(squares[n, :n].sum(axis=1), n_features)[:, 0]
        kernels[:, n, :n] = kernels[:, :n, n] = new
        row = _of_each(new, axis=0)
        against = (self.precision @ row[:, :, None])[:, :, 0]
        pivot = 1 + _VARIANCES - (row * against).sum(axis=1)
        precision = np.empty((len(pivot), n + 1, n + 1))
        precision[:, :n, :n] = self.precision + _outer(against, pivot)
        precision[:, n, :n] = precision[:, :n, n] = -against / pivot[:, None]
        precision[:, n, n] = 1 / pivot
        found = object.__new__(Probed)
        found._set(X, squares, kernels, precision, self.log_determinant - 0.5 * np.log(pivot))
        return found

    def _set(self, X, squares, kernels, precision, log_determinant):
        n, n_features = X.shape[-2:]
        self.X, self.squares, self.kernels = X, squares, kernels
        self.precision, self.log_determinant = precision, log_determinant
        self._of_scale = np.square(unit(n_features) * _LENGTHSCALES)[:, None]
        flat = kernels.reshape(*kernels.shape[:-2], n * n)
        self.variation = flat @ self._flat_squares() / (n * self._of_scale)
        self.of_determinant = self._contracted(precision)
        self.trace = np.trace(precision, axis1=-2, axis2=-1)

    def _flat_squares(self):
        return self.squares.reshape(*self.squares.shape[:-3], -1, self.X.shape[-1])

    def _contracted(self, weights):
        """Sums of weights times derivatives of the kernels by log lengthscale, ``(..., 10, D)``."""
        product = (_of_each(self.kernels, axis=-3) * weights).reshape(*weights.shape[:-2], -1)
        return product @ self._flat_squares() / _of_each(self._of_scale, axis=-2)


def features(probed, values, zero_mean):
    """What is known of hyperparameters, for each feature and for all together.

    Of ten processes with one lengthscale for all features: how probable each is, and the
    gradient of its log evidence with respect to the logarithms of the lengthscales and of the
    noise. The scale of the values is integrated out, and so is a constant mean unless it is zero.

    Parameters
    ----------
    probed : Probed
        Of inputs of shape (..., n, n_features).
    values : ndarray of shape (..., n)
    zero_mean : bool

    Returns
    -------
    own : ndarray of shape (..., n_features, N_OWN)
    shared : ndarray of shape (..., N_SHARED)
        Neither depends on the units of the values, nor on the order of rows.
    """
    X, precision = probed.X, probed.precision
    n, n_features = X.shape[-2:]
    if not zero_mean:
        values = values - values.mean(axis=-1, keepdims=True)
    size = np.sqrt(np.square(values).mean(axis=-1, keepdims=True))
    values = values / np.where(size > 0, size, 1.0)
    weighted = (precision @ values[..., None, :, None])[..., 0]
    squares = (weighted * values[..., None, :]).sum(axis=-1)
    log_evidence, dof = probed.log_determinant, n + 2.0
    outer, of_trace = 0.0, -probed.trace
    if not zero_mean:
        dof = n - 1.0
        ones = precision.sum(axis=-1)
        total = ones.sum(axis=-1)
        location = weighted.sum(axis=-1) / total
        squares = squares - location**2 * total
        weighted = weighted - location[..., None] * ones
        log_evidence = log_evidence - 0.5 * np.log(total)
        outer = _outer(ones, total)
        of_trace = of_trace + np.square(ones).sum(axis=-1) / total
    squares = np.maximum(squares, _LITTLE * n)
    log_evidence = log_evidence - 0.5 * dof * np.log(squares / max(dof, 1.0))
    outer = outer + dof * _outer(weighted, squares)
    gradient = 0.5 * (probed._contracted(outer) - probed.of_determinant)
    of_noise = _VARIANCES * (of_trace + dof * np.square(weighted).sum(axis=-1) / squares)
    log_evidence = log_evidence - log_evidence.max(axis=-1, keepdims=True)
    probability = np.exp(log_evidence)
    probability /= probability.sum(axis=-1, keepdims=True)
    root, turned = np.sqrt(n), np.swapaxes(gradient, -1, -2) / np.sqrt(n)
    expected = (turned * probability[..., None, :]).sum(axis=-1, keepdims=True)
    variation = np.swapaxes(probed.variation, -1, -2)
    own = np.concatenate([turned, variation, X.std(axis=-2)[..., None], expected], axis=-1)
    facts = np.log(n), np.log(n_features), float(zero_mean)
    facts = np.broadcast_to(facts, (*X.shape[:-2], len(facts)))
    shared = [log_evidence / root, probability, of_noise / root, np.log(squares / n), facts]
    return np.arcsinh(own), np.arcsinh(np.concatenate(shared, axis=-1))


def _kernels(distance, n_features):
    """Of each lengthscale, from squared distances of shape ``(..., 1, n, m)``."""
    scales = np.square(unit(n_features) * _LENGTHSCALES)
    return np.exp(-0.5 / scales[:, None, None] * distance)


def _of_each(array, axis):
    """What belongs to a lengthscale, for each process with it."""
    return np.repeat(array, len(_NOISES), axis=axis)


def _outer(vector, divisor):
    return vector[..., :, None] * (vector / divisor[..., None])[..., None, :]
