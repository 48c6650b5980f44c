"""Predictive models that conventional active learning refits at each step.

A surrogate is a scikit-learn estimator with ``fit(X, y)``, where inputs fill the unit cube
and values are of unit scale, and ``predict(X) -> mean, std`` of a measurement, noise
included. The same data have to give the same model. Optional methods are

``predict_gradient(x)``
    Without it proposals are not refined.
``covariance(A, B)``
    Needed for variance reduction.
``condition(X, y)``
    Other data, the same hyperparameters. Points proposed but not yet measured enter by it;
    without it, by ``fit``.
``predict_members(X)`` and ``predict_members_gradient(x)``
    Moments of each member of a mixture, for safety probabilities that are exact. Without
    the second, proposals are not refined under limits.

Those here have them all.
"""

from .exact import ExactGP
from .mixture import MixtureGP
from .sparse import SparseGP

__all__ = ["SURROGATES", "ExactGP", "MixtureGP", "SparseGP"]

#: What queriers call them.
SURROGATES = {"exact": ExactGP, "sparse": SparseGP, "mixture": MixtureGP}
