"""What is known of rows all over a pool, brought up to date with each observation."""

import threading

import numpy as np

from .typical import FACTORS, NOISES, kernels


class Overview:
    """Rows that stand for a pool, and their covariances with observations, whitened.

    What belongs to an observation is kept, so that one more costs little.

    Parameters
    ----------
    rows : ndarray of shape (r, n_features)
        At unit scale.
    lengthscale : float or ndarray of shape (n_features,)
        The typical one.

    Attributes
    ----------
    lock : Lock
        To be held from :meth:`see` on until the last result is used.
    """

    def __init__(self, rows, lengthscale):
        self.rows, self.lengthscale = rows, lengthscale
        self.lock = threading.Lock()
        self._X = np.empty((0, rows.shape[1]))
        self._n = 0
        self._covariances = self._whitened = None

    def see(self, factors):
        """Take over the inputs of these factors, of this lengthscale; leading ones are known."""
        X = factors.X
        n, known = len(X), min(len(X), self._n)
        same = (X[:known] == self._X[:known]).all(axis=1)
        if not same.all():
            known = int(same.argmin())
        self._n = known  # should a line below fail
        if known == n:
            return
        if self._whitened is None or self._whitened.shape[1] < n:
            self._grow(2 * n)
        self._X[known:n] = X[known:]
        scaled = self.rows / self.lengthscale
        self._covariances[:, known:n] = kernels(X[known:] / self.lengthscale, scaled)
        each = len(NOISES)
        for i in range(len(FACTORS)):
            processes = slice(each * i, each * (i + 1))
            # Inverse factors are triangular: what is known stays as it was.
            new = factors.inverse[processes, known:]
            whitened = new.reshape(-1, n) @ self._covariances[i, :n]
            self._whitened[processes, known:n] = whitened.reshape(each, n - known, -1)
        self._n = n

    def _grow(self, capacity):
        old, n, r = (self._X, self._covariances, self._whitened), self._n, len(self.rows)
        self._X = np.empty((capacity, self.rows.shape[1]))
        self._covariances = np.empty((len(FACTORS), capacity, r))
        # Only ever summed up; half the memory is twice the speed.
        self._whitened = np.empty((len(FACTORS) * len(NOISES), capacity, r), np.float32)
        if n:
            self._X[:n], self._covariances[:, :n] = old[0][:n], old[1][:, :n]
            self._whitened[:, :n] = old[2][:, :n]

    def whitened(self, process):
        """Of one process, ``(n, r)``."""
        return self._whitened[process, : self._n]
