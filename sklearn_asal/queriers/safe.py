"""What a querier adds that keeps safety measurements within limits."""

import numpy as np

from ..exceptions import DataScaleWarning, SafetyWarning, warn_user
from ..limits import (
    boolean_limits,
    like_flags,
    margin_scales,
    safety_margins,
    safety_rule,
    without_distance,
)
from ..scaling import is_auto, off_scale
from ..validation import whole
from .cut_short import OK
from .lipschitz import LipschitzBound
from .neighbourhood import Neighbourhood

# Measurements that tell a constant from chance.
_FEW = 5


class SafeQuerierMixin:
    """What a querier adds that keeps safety measurements within limits.

    Goes before :class:`BaseQuerier` in the list of bases. The class's own
    constructor stores the parameters below, besides those of the base.

    Parameters
    ----------
    safety_threshold : float or sequence of float of shape (n_limits,), default=0.0
        The limit of the safety measurement, in its own units. It never moves.
    safe_when : {"above", "below"} or a sequence of these, default="above"
        Safe means ``z >= safety_threshold``, or ``<=`` for "below". Booleans mean safe and not
        safe by themselves, whatever these two are.
    z_scale : float, "auto" or sequence of float, default=1.0
        What counts as one unit of safety margin: the standard deviation of the
        measurement over the domain. "auto" takes the root mean square distance
        of the measurements at hand from the limit, which does not shrink when
        they lie close together. With several limits (columns of ``z``) a row's
        margin is the smallest of its margins, each in units of its own scale.
    max_violations : int, default=None
        After so many measurements that violate a limit, aborted runs included, only the
        neighbourhood of measurements that were safe is proposed: points within
        ``0.05 * sqrt(n_features)`` of one of them, in the unit cube. Of a pool, rows in it; where
        there are none, the row nearest to a safe measurement. Each query warns of that. 0 means
        from the beginning; None means never.
    """

    _has_limits = True

    @property
    def safety_rule(self) -> str:
        """What safe means, in words, such as ``"safe means z >= 0.0"``."""
        return self._rule_for(getattr(self, "z_", None))

    def _rule_for(self, z):
        boolean = () if z is None or z.dtype == np.float64 else boolean_limits(z)
        return safety_rule(self.safety_threshold, self.safe_when, boolean)

    def _safety_signal(self, y, z):
        return y if z is None else z

    def _check_setup(self, n_features, budget=None):
        super()._check_setup(n_features, budget)
        most = getattr(self, "max_violations", None)
        if most is not None:
            whole(most, "max_violations", min_val=0)
        bound = getattr(self, "lipschitz", None)
        if bound is not None:
            _as_bound(bound)

    def _check_region(self, n_features, names):
        super()._check_region(n_features, names)
        bound = getattr(self, "lipschitz", None)
        if bound is not None:
            _as_bound(bound).by_position(names, n_features)

    def _restricts(self, fixed, box):
        return getattr(self, "lipschitz", None) is not None or super()._restricts(fixed, box)

    def _certified(self, data, names):
        bound = getattr(self, "lipschitz", None)
        if bound is None:
            return None
        X, _, z, status = data
        if status is not None and not (status == OK).all():
            X, z = X[status == OK], z[status == OK]
        bound = _as_bound(bound).by_position(names, X.shape[1])
        return bound.certified(X, z, self.safety_threshold, self.safe_when)

    def _nearby(self, history):
        most = getattr(self, "max_violations", None)
        if most is None:
            return None
        safe = history.observed.worst_margin >= 0
        if (~safe).sum() < most:
            return None
        if not safe.any():
            raise ValueError(
                f"max_violations={most} is reached and no observation is safe, so that there is "
                "no neighbourhood of safe ones to propose. Tell a safe observation, check "
                "safety_threshold and safe_when, or raise max_violations."
            )
        return Neighbourhood(history.observed.X[safe])

    def _warn_of_violations(self):
        # The same words each time.
        warn_user(
            f"max_violations={self.max_violations} is reached: only points near to measurements "
            "that were safe are proposed. Raise max_violations to have others proposed as well.",
            SafetyWarning,
        )

    def _margins(self, z):
        return safety_margins(z, self.safety_threshold, self.safe_when, self.z_scale)

    def _complaints(self, data, history):
        found = super()._complaints(data, history)
        z, margin = data[2], history.margin
        worst = history.worst_margin
        if (
            self._needs_unit_scale
            and not is_auto(self.z_scale)
            and off_scale(history.X, worst, 0.0)
        ):
            scales = margin_scales(z, self.safety_threshold, self.safe_when)
            found["z_scale"] = (
                DataScaleWarning,
                f"the safety margin reaches from {worst.min():.3g} to {worst.max():.3g} after "
                f"scaling by z_scale={self.z_scale} ({self._rule_for(z)}), but should be about one "
                "in size over the domain. Set z_scale: these observations suggest "
                f"{', '.join(f'{scale:.3g}' for scale in scales)}; 'auto' estimates it anew at "
                "each query.",
            )
        if worst.max() < 0:
            found["safety_threshold"] = (
                SafetyWarning,
                f"none of the {len(z)} observations is safe: {self._rule_for(z)}. Check "
                "safety_threshold and safe_when; exploration has to start from something safe.",
            )
        else:
            found.update(self._of_sensors(data[0], z))
        if z.dtype != np.float64:
            found["z"] = (
                SafetyWarning,
                "z says whether measurements are safe, but not how far they are from the limit. "
                "A distance teaches far more: pass the measured number and safety_threshold where "
                "there is one.",
            )
        elif (margin == 0).any():
            for j, between in without_distance(z, self.safety_threshold, self.safe_when):
                found[f"limit {j}"] = (SafetyWarning, self._of_flags(z, j, between))
        return found

    def _of_sensors(self, X, z):
        """What is odd about measurements that hardly differ."""
        if z.dtype != np.float64 or len(z) < _FEW:
            return {}
        signals, found = z.reshape(len(z), -1), {}
        low, high = signals.min(axis=0), signals.max(axis=0)
        if (low == high).any() and np.ptp(X, axis=0).any():
            for j in np.flatnonzero(low == high):
                found[f"stuck {j}"] = (
                    SafetyWarning,
                    f"{_called(z, j)} is {low[j]:g} in all {len(z)} observations, as of a sensor "
                    "that is stuck. How it changes is unknown, and so is where it passes the limit "
                    f"({self._rule_for(z)}).",
                )
        if ((low == 0) & (high == 1)).any():
            for j in like_flags(z, self.safety_threshold, self.safe_when):
                found[f"flags {j}"] = (
                    SafetyWarning,
                    f"{_called(z, j)} has the values 0 and 1 only, which look like flags, but the "
                    f"limit is a number ({self._rule_for(z)}). Pass the measured number, or "
                    "booleans that mean safe and not safe.",
                )
        return found

    def _of_flags(self, z, j, between):
        values = np.unique(z if z.ndim == 1 else z[:, j])
        listed = ", ".join(f"{value:g}" for value in values[:4]) + ", ..." * (len(values) > 4)
        return (
            f"{_called(z, j)} has the values {listed} and the limit is one of them "
            f"({self._rule_for(z)}), so that its distance from the limit says little, and what "
            "lies at the limit counts as safe. Of flags and counts, set safety_threshold between "
            f"two values, such as {between:g}; or pass booleans, True for safe."
        )

    def __repr__(self, N_CHAR_MAX=700):
        text = super().__repr__(N_CHAR_MAX)
        # scikit-learn leaves defaults out, but what safe means should always be said.
        for name in ("safety_threshold", "safe_when"):
            if f"{name}=" not in text:
                comma = "" if text.endswith("()") else ", "
                text = f"{text[:-1]}{comma}{name}={getattr(self, name)!r})"
        return text


def _called(z, j):
    """What messages call the j-th safety measurement."""
    return "z" if z.ndim == 1 else f"z[{j}]"


def _as_bound(bound):
    """``lipschitz`` as a bound, where slopes alone are stated."""
    return bound if isinstance(bound, LipschitzBound) else LipschitzBound(bound)
