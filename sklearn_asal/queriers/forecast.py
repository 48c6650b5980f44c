"""Where the error of a model matters, and what the next queries would make of it."""

import numpy as np

from ..acquisition import (
    argbest,
    log_gain,
    price_of_risk,
    probability_of_feasibility,
    required_probability,
)
from ..pool import sobol

# Points that are looked at; more of them where few are likely safe. So many of those that are
# likely safe are enough for the error.
_LOOKED_AT, _FEW, _ENOUGH = (512, 4096), 32, 128
# From this probability on a point is likely safe.
_LIKELY = 0.5
# Candidates are compared by so many members.
_N_LEADING = 4
# The share of unsafe queries that is tolerated, as by policy "any".
_GAMMA = 0.02


class LikelySafe:
    """Points all over the bounds, or rows all over a pool, that are more likely safe than not.

    Parameters
    ----------
    history : History
    candidates : Candidates or None
    limits : list of surrogate
        Models of the margins; without any, all points count.

    Attributes
    ----------
    points : ndarray of shape (m, n_features)
        At most 128; where no point is likely safe, the one that is most likely so.
    share : float
        Share of the bounds, or of the pool, that is likely safe.
    """

    def __init__(self, history, candidates, limits):
        self._history, self._candidates = history, candidates
        for n in _LOOKED_AT:
            looked = self._looked_at(n)
            p_safe = probability_of_feasibility(limits, looked)
            likely = np.flatnonzero(p_safe >= _LIKELY)
            if len(likely) >= _FEW or len(looked) < n:
                break
        self.share = len(likely) / len(looked)
        if not len(likely):
            likely = np.array([argbest(p_safe, looked[:, self._by_rank])])
        if len(likely) > _ENOUGH:
            # The beginning of a Sobol sequence is spread best, and of a pool every so many rows.
            step = 1 if candidates is None else len(likely) / _ENOUGH
            likely = likely[(np.arange(_ENOUGH) * step).astype(int)]
        self.points = looked[likely]

    @property
    def _by_rank(self):
        """Order of the features in which points are compared."""
        return np.argsort(self._history.feature_rank)

    def _looked_at(self, n):
        if self._candidates is not None:
            return self._candidates.points[self._candidates.subsample(n)]
        rank = self._history.feature_rank
        return sobol(n, len(rank))[:, rank]

    def error_after(self, n_more, error, output, limits):
        """Expected error after each of the next queries, chosen one after another.

        Of a few hundred points the one is taken that lowers the posterior variance most, less the
        price of its risk; see :meth:`GPSafeQuerier._select`.

        Parameters
        ----------
        n_more : int
        error : RootMeanSquareError
            Of ``points``.
        output : AmortizedGP
            Whose error it is.
        limits : list of surrogate

        Returns
        -------
        ndarray of shape (n_more,)
            The last number again and again where nothing more may be measured.
        """
        found = np.full(n_more, error.quantiles([0.5])[0])
        if not n_more:
            return found
        points = self._possible()
        price = np.zeros(len(points))
        if limits:
            p_safe = probability_of_feasibility(limits, points)
            eligible = p_safe >= required_probability(_GAMMA, True)
            points, price = points[eligible], price_of_risk(p_safe[eligible], _GAMMA)
        weights, pending = np.ones(len(self.points)), np.empty((0, points.shape[1]))
        for j in range(n_more):
            if not len(points):
                break
            gain = output.variance_reduction(points, self.points, weights, _N_LEADING)
            best = argbest(log_gain(gain) - price, points[:, self._by_rank])
            pending = np.vstack([pending, points[best]])
            found[j:] = error.quantiles_after(pending, [0.5])[0]
            if self._candidates is not None:
                points, price = np.delete(points, best, axis=0), np.delete(price, best)
        return found

    def _possible(self):
        """Points that may be measured next."""
        candidates, n = self._candidates, _LOOKED_AT[0]
        if candidates is None:
            points = self._looked_at(n)
            return points[self._history.is_free(points)]
        positions = candidates.subsample(n)
        return candidates.points[positions[candidates.is_available(positions)]]
