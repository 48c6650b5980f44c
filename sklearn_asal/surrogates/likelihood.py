"""Marginal likelihoods of zero-mean GPs with an RBF kernel, with gradients, and their search.

Hyperparameters travel as one vector ``theta`` of natural logarithms: ``n_features``
lengthscales, the standard deviation of the signal, that of the noise.
"""

import numpy as np
from scipy.linalg import lapack
from scipy.optimize import minimize

from .kernels import rbf_of_squares

# Share of the signal variance on the diagonal: with it the Cholesky factorisation of a few
# thousand points succeeds in float64, whatever the hyperparameters.
JITTER = 1e-8
# Search range of the lengthscales; the distances of a unit cube tell nothing beyond it.
_LENGTHSCALES = 0.02, 50.0
# A search starts at the best of these lengthscales (in the unit square), with this noise as a
# share of the signal. More of them found no better optimum on the paper's functions.
_STARTS, _START_NOISE = (0.1, 0.25, 0.6, 1.5), 0.1


class Prior:
    """Independent log-normal priors on hyperparameters, for inputs and values of unit scale.

    Few points say little about hyperparameters, yet the likelihood alone often
    peaks at a function without bends or without noise, and the model is then sure
    of what it has not seen. These priors keep it doubtful until a few dozen
    points say otherwise. They were chosen on the paper's safe tasks.

    Parameters
    ----------
    n_features : int
        Lengthscales grow with its square root, as distances in the cube do.

    Attributes
    ----------
    mean, std : ndarray of shape (n_features + 2,)
        Of ``theta``.
    """

    # Median, and standard deviation of the logarithm.
    lengthscale = 0.3, 0.5
    signal = 1.0, 0.7
    noise = 0.1, 1.0

    def __init__(self, n_features):
        median, width = self.lengthscale
        median *= np.sqrt(n_features / 2)
        self.mean = np.log([median] * n_features + [self.signal[0], self.noise[0]])
        self.std = np.array([width] * n_features + [self.signal[1], self.noise[1]])

    def __call__(self, theta):
        """Logarithm of the density up to a constant, and its gradient.

        Parameters
        ----------
        theta : ndarray of shape (n_features + 2,)

        Returns
        -------
        value : float
        gradient : ndarray of shape (n_features + 2,)
        """
        distance = (theta - self.mean) / self.std
        return -0.5 * distance @ distance, -distance / self.std


def covariance(theta, squares, n):
    """Noise-free covariance matrix, without jitter.

    Parameters
    ----------
    theta : ndarray of shape (n_features + 2,)
    squares : ndarray of shape (n_features, n * k)
        From :func:`~sklearn_asal.surrogates.kernels.squared_differences`.
    n : int
        Number of rows.

    Returns
    -------
    covariance : ndarray of shape (n, k)
    """
    kernel = rbf_of_squares(squares, np.exp(theta[:-2]), n)
    kernel *= np.exp(2.0 * theta[-2])
    return kernel


def cholesky(matrix, diagonal):
    """Cholesky factor of a symmetric matrix plus a diagonal.

    Parameters
    ----------
    matrix : ndarray of shape (n, n)
    diagonal : float

    Returns
    -------
    L : ndarray of shape (n, n)
        Lower triangular, in Fortran order.

    Raises
    ------
    numpy.linalg.LinAlgError
        The sum is not positive definite.
    """
    K = matrix.copy()
    K.flat[:: len(K) + 1] += diagonal
    # The transpose of a symmetric matrix is itself, in the order that LAPACK works in.
    L, info = lapack.dpotrf(K.T, lower=1, overwrite_a=1)
    if info:
        raise np.linalg.LinAlgError("a covariance matrix is not positive definite.")
    return L


def inverse_cholesky(L):
    """Inverse of a lower triangular factor.

    Parameters
    ----------
    L : ndarray of shape (n, n)

    Returns
    -------
    inverse : ndarray of shape (n, n)
    """
    return lapack.dtrtri(L, lower=1)[0]


def exact_likelihood(theta, squares, y):
    """Log marginal likelihood and its gradient (paper, appendix-gp_details).

    Parameters
    ----------
    theta : ndarray of shape (n_features + 2,)
    squares : ndarray of shape (n_features, n * n)
        From :func:`~sklearn_asal.surrogates.kernels.squared_differences`.
    y : ndarray of shape (n,)

    Returns
    -------
    value : float
    gradient : ndarray of shape (n_features + 2,)
        With respect to ``theta``.
    """
    n = len(y)
    signal, noise = np.exp(2.0 * theta[-2:])
    kernel = covariance(theta, squares, n)
    L = cholesky(kernel, JITTER * signal + noise)
    alpha = lapack.dpotrs(L, y, lower=1)[0]
    fit = y @ alpha
    value = -0.5 * (fit + n * np.log(2 * np.pi)) - np.log(L.diagonal()).sum()
    inverse = lapack.dpotri(L, lower=1, overwrite_c=1)[0].T  # one triangle, the other zero
    d_noise = noise * (alpha @ alpha - inverse.trace())
    # Half of both triangles of the outer product, one of the inverse: the sums agree, for the
    # kernel is symmetric and differences vanish on the diagonal.
    weight = np.multiply.outer(0.5 * alpha, alpha)
    weight -= inverse
    weight *= kernel
    d_lengthscale = np.exp(-2.0 * theta[:-2]) * (squares @ weight.ravel())
    return value, np.concatenate([d_lengthscale, [fit - n - d_noise, d_noise]])


class SparseFactors:
    """Factors that the variational approximation is made of.

    Parameters
    ----------
    theta : ndarray of shape (n_features + 2,)
    inner : ndarray of shape (n_features, m * m)
        Squared differences of the inducing points.
    cross : ndarray of shape (n_features, m * n)
        Of inducing points and inputs.
    y : ndarray of shape (n,)

    Attributes
    ----------
    signal, noise : float
        Variances, the latter with jitter.
    Kmm, Kmn : ndarray of shape (m, m) and (m, n)
        Covariances of inducing points, and of these and inputs.
    L : ndarray of shape (m, m)
        Cholesky factor of ``Kmm`` with jitter.
    A : ndarray of shape (m, n)
        ``Kmn`` whitened by ``L``.
    AA : ndarray of shape (m, m)
        ``A @ A.T``.
    LB : ndarray of shape (m, m)
        Cholesky factor of ``AA`` plus noise.
    Ay, beta : ndarray of shape (m,)
        ``A @ y``, and the same divided by the matrix that ``LB`` factorises.
    """

    def __init__(self, theta, inner, cross, y):
        m = round(inner.shape[1] ** 0.5)
        self.signal, self.noise = np.exp(2.0 * theta[-2:])
        # As in the exact likelihood, so that without noise there is a factorisation, too.
        self.noise += JITTER * self.signal
        self.Kmm = covariance(theta, inner, m)
        self.Kmn = covariance(theta, cross, m)
        self.L = cholesky(self.Kmm, JITTER * self.signal)
        self.A = lapack.dtrtrs(self.L, self.Kmn, lower=1)[0]
        self.AA = self.A @ self.A.T
        self.LB = cholesky(self.AA, self.noise)
        self.Ay = self.A @ y
        self.beta = lapack.dpotrs(self.LB, self.Ay, lower=1)[0]


def sparse_bound(theta, inner, cross, y):
    """Variational lower bound of the log marginal likelihood (Titsias, 2009), and its gradient.

    Parameters
    ----------
    theta, inner, cross, y
        As for :class:`SparseFactors`. Inducing points are held fixed.

    Returns
    -------
    value : float
    gradient : ndarray of shape (n_features + 2,)
        With respect to ``theta``.
    """
    part = SparseFactors(theta, inner, cross, y)
    A, L, LB, signal, noise = part.A, part.L, part.LB, part.signal, part.noise
    m, n = A.shape
    lost = n * signal - part.AA.trace()  # variance that the inducing points do not explain
    value = -0.5 * (
        n * np.log(2 * np.pi)
        + (n - m) * np.log(noise)
        + 2 * np.log(LB.diagonal()).sum()
        + (y @ y - part.Ay @ part.beta + lost) / noise
    )
    alpha = (y - A.T @ part.beta) / noise
    W = lapack.dtrtrs(L, A, lower=1, trans=1)[0]
    # The derivatives with respect to Kmn and, with its sign turned, Kmm.
    d_cross = np.multiply.outer(W @ alpha, alpha)
    d_cross += (W @ A.T) @ lapack.dpotrs(LB, A, lower=1)[0] / noise
    d_inner = 0.5 * d_cross @ W.T
    jitter = JITTER * signal * d_inner.trace()
    d_cross *= part.Kmn
    d_inner *= part.Kmm
    d_lengthscale = np.exp(-2.0 * theta[:-2]) * (cross @ d_cross.ravel() - inner @ d_inner.ravel())
    d_signal = 2.0 * (d_cross.sum() - d_inner.sum() - jitter) - n * signal / noise
    spread = noise * np.square(inverse_cholesky(LB)).sum()
    d_total = noise * (alpha @ alpha) - (n - m + spread) + lost / noise
    share = JITTER * signal / noise  # of the jitter in the noise
    d_last = [d_signal + share * d_total, (1.0 - share) * d_total]
    return value, np.concatenate([d_lengthscale, d_last])


def with_prior(likelihood, prior):
    """Log likelihood plus log prior.

    Parameters
    ----------
    likelihood : callable
        ``likelihood(theta) -> value, gradient``.
    prior : Prior or None
        None stands for a flat one.

    Returns
    -------
    objective : callable
        ``objective(theta) -> value, gradient``.
    """
    if prior is None:
        return likelihood

    def objective(theta):
        value, gradient = likelihood(theta)
        more, slope = prior(theta)
        return value + more, gradient + slope

    return objective


def maximise(objective, n_features, y, *, n_restarts=0, start=None, max_iter=200):
    """L-BFGS-B within sensible bounds.

    Parameters
    ----------
    objective : callable
        ``objective(theta) -> value, gradient``.
    n_features : int
    y : ndarray of shape (n,)
        Its root mean square sets the range of the search.
    n_restarts : int, default=0
        Further runs, from the next best of the starting points, at most three.
    start : ndarray of shape (n_features + 2,), optional
        Starting point of a single run, in place of the best of those.
    max_iter : int, default=200

    Returns
    -------
    theta : ndarray of shape (n_features + 2,)
    value : float
    """
    scale = np.sqrt(np.mean(np.square(y))) or 1.0
    low, high = min(scale, 1.0), max(scale, 1.0)
    box = [_LENGTHSCALES] * n_features + [(1e-3 * low, 1e3 * high), (1e-4 * low, 10.0 * high)]
    box = np.log(box)
    if start is None:
        widen = np.sqrt(n_features / 2)
        points = [
            np.log([lengthscale * widen] * n_features + [scale, _START_NOISE * scale]).clip(*box.T)
            for lengthscale in _STARTS
        ]
        points = sorted(points, key=lambda theta: -objective(theta)[0])[: 1 + n_restarts]
    else:
        points = [start.clip(*box.T)]

    def negated(theta):
        value, gradient = objective(theta)
        return -value, -gradient

    options = {"maxiter": max_iter, "ftol": 1e-10, "gtol": 1e-4}
    runs = [
        minimize(negated, point, jac=True, method="L-BFGS-B", bounds=box, options=options)
        for point in points
    ]
    best = min(runs, key=lambda run: run.fun)
    return best.x, -float(best.fun)
