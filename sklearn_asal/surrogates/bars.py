"""Predictions as histograms: bars between quantiles of the prior, with half-normal tails."""

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr
from sklearn.utils import check_array

from .._typing import FloatArray

_ROOT = np.sqrt(2 / np.pi)


class Bars:
    """Distributions that are piecewise uniform (Riemann distributions; Müller et al., 2022).

    The first and the last bar are half-normal tails, so that every number has a density. Each
    method takes the probabilities of the bars, a row for each distribution.

    Parameters
    ----------
    borders : array-like of shape (n_bars - 1,)
        Where one bar ends and the next begins; increasing.
    tails : array-like of shape (2,)
        Scales of the two half-normal distributions, below the first border and above the last.

    Raises
    ------
    ValueError
        Borders that do not increase, fewer than two of them, or scales that are not positive.
    """

    def __init__(self, borders: ArrayLike, tails: ArrayLike) -> None:
        self.borders = check_array(borders, ensure_2d=False, dtype=np.float64)
        self.tails = check_array(tails, ensure_2d=False, dtype=np.float64)
        self.widths = np.diff(self.borders)
        if self.borders.ndim != 1 or len(self.borders) < 2 or not (self.widths > 0).all():
            raise ValueError(f"borders must be two or more increasing numbers, got {borders!r}")
        if self.tails.shape != (2,) or not (self.tails > 0).all():
            raise ValueError(f"tails must be two positive numbers, got {tails!r}")
        low, high = _ROOT * self.tails  # mean distances from the borders
        middles = 0.5 * (self.borders[1:] + self.borders[:-1])
        self._means = np.concatenate([self.borders[:1] - low, middles, self.borders[-1:] + high])
        low, high = (1 - _ROOT**2) * self.tails**2
        self._variances = np.concatenate([[low], self.widths**2 / 12, [high]])
        low, high = 0.5 * np.log(0.5 * np.pi * np.e * self.tails**2)
        self._entropies = np.concatenate([[low], np.log(self.widths), [high]])

    @classmethod
    def of_draws(cls, draws: ArrayLike, n_bars: int = 100) -> "Bars":
        """Bars that are equally probable for the distribution of some draws.

        Parameters
        ----------
        draws : array-like of shape (n,)
        n_bars : int, default=100

        Returns
        -------
        Bars
            The tails are the likeliest for the draws beyond the borders.
        """
        draws = np.asarray(draws, dtype=np.float64)
        borders = np.quantile(draws, np.arange(1, n_bars) / n_bars)
        beyond = borders[0] - draws[draws < borders[0]], draws[draws > borders[-1]] - borders[-1]
        return cls(borders, [np.sqrt(np.mean(np.square(distances))) for distances in beyond])

    @property
    def n_bars(self) -> int:
        """Number of bars, the tails included."""
        return len(self.borders) + 1

    def log_density(self, probabilities: FloatArray, y: ArrayLike) -> FloatArray:
        """Log densities of values.

        Parameters
        ----------
        probabilities : ndarray of shape (n, n_bars)
        y : array-like of shape (n,)

        Returns
        -------
        ndarray of shape (n,)
            Minus infinity where a bar has no probability.
        """
        y = np.asarray(y, dtype=np.float64)
        which = np.searchsorted(self.borders, y)
        beyond = np.maximum(np.maximum(self.borders[0] - y, y - self.borders[-1]), 0.0)
        # Half-normal densities at their borders, as of a bar that is so wide.
        width = np.concatenate([self.tails[:1], _ROOT * self.widths, self.tails[1:]]) / _ROOT
        scale = np.where(which == 0, *self.tails)
        with np.errstate(divide="ignore"):
            log_probability = np.log(np.take_along_axis(probabilities, which[:, None], 1)[:, 0])
        return log_probability - np.log(width[which]) - 0.5 * np.square(beyond / scale)

    def cdf(self, probabilities: FloatArray, y: float) -> FloatArray:
        """Probabilities of values up to a number.

        Parameters
        ----------
        probabilities : ndarray of shape (n, n_bars)
        y : float

        Returns
        -------
        ndarray of shape (n,)
        """
        low, high = self.tails
        share = np.concatenate(
            [
                [2 * ndtr(min(y - self.borders[0], 0.0) / low)],
                np.clip((y - self.borders[:-1]) / self.widths, 0.0, 1.0),
                [2 * ndtr(max(y - self.borders[-1], 0.0) / high) - 1],
            ]
        )
        return np.clip(probabilities @ share, 0.0, 1.0)  # but for rounding

    def mean(self, probabilities: FloatArray) -> FloatArray:
        """Means.

        Parameters
        ----------
        probabilities : ndarray of shape (n, n_bars)

        Returns
        -------
        ndarray of shape (n,)
        """
        return probabilities @ self._means

    def variance(self, probabilities: FloatArray) -> FloatArray:
        """Variances.

        Parameters
        ----------
        probabilities : ndarray of shape (n, n_bars)

        Returns
        -------
        ndarray of shape (n,)
        """
        off = np.square(self._means - self.mean(probabilities)[:, None])
        return np.einsum("nb,nb->n", probabilities, off + self._variances)

    def entropy(self, probabilities: FloatArray) -> FloatArray:
        """Differential entropies: ``-sum p log(p / width)``, with those of the tails.

        Parameters
        ----------
        probabilities : ndarray of shape (n, n_bars)

        Returns
        -------
        ndarray of shape (n,)
            In nats.
        """
        possible = np.where(probabilities > 0, probabilities, 1.0)
        surprise = np.einsum("nb,nb->n", probabilities, np.log(possible))
        return probabilities @ self._entropies - surprise
