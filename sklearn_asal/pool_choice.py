"""How queriers of a policy choose among the rows of a pool."""

import contextlib
import weakref

import numpy as np

from . import choice
from .exceptions import SafetyWarning, warn_user
from .overview import Overview
from .surrogates.threads import one_thread
from .typical import NOISES, Factors, TypicalProcesses, typical_lengthscale, typical_noises

CHOICES = "auto", "informative", "uncertain", "nearest"

# If none of the first has this part of the probability that is asked for, looks that reach
# farther come first.
_HOPELESS = 0.5
# More rows than these are first asked for in single precision.
_FEW = 256
# All of so many observations are asked about rows, for each adds little to what is kept;
_HEARD = 512
# of more, so many nearest ones, for which all has to be worked out anew.
_NEAREST = 256
# So many sets of hyperparameters are remembered: of outputs, of margins, and where rows from all
# over the pool were too risky.
_SETS = 3

# What past calls learned of each querier's observations. None is part of its state.
_factors = weakref.WeakKeyDictionary()
_overviews = weakref.WeakKeyDictionary()


class RowChoice:
    """Of the rows of a pool the one that tells most; goes before the querier's base."""

    def _pool_weights(self, n_features):
        scale = typical_lengthscale(self._load(n_features)[1], "lengthscale")
        # One for all features is none: only ratios matter.
        return None if np.ndim(scale) == 0 else scale.min() / scale

    def _asks_all_over(self, n_features, n_observed):
        """Whether rows of all the pool are compared, and no proposal is needed."""
        chosen = self.pool_choice
        wanted = chosen == "informative" or (chosen == "auto" and choice.is_wide(n_features))
        # All observations are heard about these rows, and many would take long.
        return wanted and n_observed <= _HEARD

    def _pick_at_once(self, view, n_observed, X, y, margin):
        if not self._asks_all_over(X.shape[1], n_observed):
            return None
        with one_thread():
            taken = self._most_informative(view, n_observed, X, y, margin)
        return None if taken is None else view.equal(taken)

    def _most_informative(self, view, n_observed, X, y, margin):
        """Of rows from all over the pool; None if all are spent."""
        processes = self._processes(n_observed, X, y, "lengthscale", typical=True)
        points = choice.candidates(view, n_observed)
        with self._overview(view, processes) as overview:
            gain = processes.gain(points, overview, np.ones(len(overview.rows)))
        return choice.informative(view, points, gain)

    def _pick(self, view, point, n_observed, X, y, margin):
        look = choice.first_look(view, X.shape[1])
        if look[0] == 1 or self.pool_choice == "nearest":
            return view.nearest(point)
        points = choice.look(view, point, *look)
        with one_thread():
            variance, _ = self._processes(n_observed, X, y, "lengthscale", point).predict(points)
        return view.equal(points[choice.first_of_the_largest(variance)])

    @contextlib.contextmanager
    def _overview(self, view, processes):
        """Rows from all over a pool, with all that these processes expect to be observed."""
        every, key = _overviews.setdefault(self, {}), processes.factors.key
        known, rows = every.get(key), choice.references(view)
        if known is None or not (known.rows is rows or np.array_equal(known.rows, rows)):
            known = Overview(rows, processes.factors.lengthscale)
            _keep(every, key, known)
        with known.lock:
            known.see(processes.expected)
            yield known

    def _processes(self, n_observed, X, values, function, point=None, typical=False):
        """What tells rows from each other; those near a point, if there are many observations.

        ``typical`` asks for noises like those the policy was trained with.
        """
        header = self._load(X.shape[1])[1]
        lengthscale = typical_lengthscale(header, function)
        noises = typical_noises(header) if typical else NOISES
        X, pending = X[:n_observed], X[n_observed:]
        values = values[:n_observed]
        if n_observed > _HEARD:
            away = np.square((X - point) / lengthscale).sum(axis=1)
            near = np.sort(np.argpartition(away, _NEAREST)[:_NEAREST])
            return TypicalProcesses(X[near], values[near], lengthscale, pending=pending)
        known = _factors.setdefault(self, {})
        key = Factors.key_of(lengthscale, noises)
        processes = TypicalProcesses(X, values, lengthscale, known.get(key), pending, noises)
        _keep(known, key, processes.factors)
        return processes

    def _asked_of_pools(self):
        """Whether rows of a pool have been compared."""
        return self in _factors

    def _grow(self, X):
        """Take over what was told, so that the next query need not."""
        if len(X) > _HEARD:
            return
        known, overviews = _factors[self], _overviews.get(self, {})
        for key, factors in known.items():
            known[key] = factors = factors.of(X)
            if key in overviews:
                with overviews[key].lock:
                    overviews[key].see(factors)


class SafeRowChoice:
    """The same of rows that are safe enough; goes before the class that has :class:`RowChoice`."""

    def _pick_at_once(self, view, n_observed, X, y, margin):
        return self.pool_safety and super()._pick_at_once(view, n_observed, X, y, margin)

    def _most_informative(self, view, n_observed, X, y, margin):
        """The same of those that are safe enough, for what may be safe, and at a price."""
        margins = self._processes(n_observed, X, margin, "safety_lengthscale", typical=True)
        points = choice.candidates(view, n_observed)
        too_risky, price = choice.risky(margins.positive(points), self.pool_safety)
        if too_risky.all():
            return None
        points, price = points[~too_risky], price[~too_risky]
        with self._overview(view, margins) as overview:
            weights = choice.may_be_safe(margins.likely(overview))
        outputs = self._processes(n_observed, X, y, "lengthscale", typical=True)
        with self._overview(view, outputs) as overview:
            gain = outputs.gain(points, overview, weights)
        return choice.informative(view, points, gain, price)

    def _pick(self, view, point, n_observed, X, y, margin):
        if not self.pool_safety:
            return view.nearest(point)
        uncertain, most = self.pool_choice != "nearest", -1.0
        looks = choice.looks(view, X.shape[1], uncertain)
        with one_thread():
            processes = self._processes(n_observed, X, margin, "safety_lengthscale", point)
            while looks:
                points = choice.look(view, point, *looks.pop(0))
                if not len(points):
                    continue  # all of this selection are spent
                # Of many rows only those that are safe are worth to be looked at closely.
                many = len(points) > _FEW
                variance, safe = (
                    (None, processes.positive(points)) if many else processes.predict(points)
                )
                enough = np.flatnonzero(safe >= self.pool_safety)
                if len(enough):
                    points = points[enough]
                    if not uncertain:
                        return view.equal(points[0])
                    variance = processes.predict(points)[0] if many else variance[enough]
                    return view.equal(points[choice.first_of_the_largest(variance)])
                if most < 0 and safe.max() < _HOPELESS * self.pool_safety:
                    looks = choice.farther_first(looks)
                if safe.max() > most:
                    most, taken = safe.max(), points[safe.argmax()]
        warn_user(
            f"no row of the pool near to a proposal is safe with probability "
            f"pool_safety={self.pool_safety}; the safest of those near is proposed. If many rows "
            "should be safe, z_scale may be too large.",
            SafetyWarning,
        )
        return view.equal(taken)


def _keep(known, key, new):
    """Remember it, and not too many."""
    if key not in known and len(known) >= _SETS:
        known.clear()
    known[key] = new
