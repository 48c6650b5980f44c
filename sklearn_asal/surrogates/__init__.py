"""Predictive models that conventional active learning refits at each step.

A surrogate is a scikit-learn estimator with ``fit(X, y)``, where inputs fill the unit cube
and values are of unit scale, and ``predict(X) -> mean, std`` of a measurement, noise
included. The same data have to give the same model. Optional methods are
``predict_gradient(x)``, without which proposals are not refined, and ``covariance(A, B)``,
which variance reduction needs; those here have both.
"""

from .exact import ExactGP
from .mixture import MixtureGP
from .sparse import SparseGP

__all__ = ["SURROGATES", "ExactGP", "MixtureGP", "SparseGP"]

#: What queriers call them.
SURROGATES = {"exact": ExactGP, "sparse": SparseGP, "mixture": MixtureGP}
