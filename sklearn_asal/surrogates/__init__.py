"""Predictive models that conventional active learning refits at each step.

A surrogate is a scikit-learn estimator with ``fit(X, y)``, where inputs fill the unit cube
and values are of unit scale, and ``predict(X) -> mean, std`` of a measurement, noise
included. The same data have to give the same model. Optional methods are

``covariance(A, B)``
    Needed for variance reduction.
``condition(X, y)``
    Other data, the same hyperparameters. Points proposed but not yet measured enter by it;
    without it, by ``fit``.
``predict_members(X)``
    Moments of each member of a mixture, for safety probabilities that are exact.
``probability_of_positive(X)``
    Of a mixture whose members have other weights, and of other distributions than Gaussian ones.
``entropy(X)``
    Of predictions that are not Gaussian.
``update(X, y)``
    As ``fit``, but quick where the data begin with those of the call before; the querier keeps
    the model between queries, then.
``variance_reduction(X, reference, weights)`` and ``probability_at(reference)``
    Quicker ways to what follows from ``covariance`` and ``predict``; the first is the weighted sum
    of the reductions.
``zero_mean``
    A parameter that queriers set to True in models of safety margins: far from data a margin is
    as likely to be negative as positive.
``probed``
    An attribute by which models of the same inputs share what these alone say. Predictions of such
    a model are averaged over members, and its ``variance_reduction`` takes ``n_members`` as well,
    for so many most probable ones.
``scale_free``
    An attribute that is True where values need not be near unit scale.

``ExactGP``, ``SparseGP`` and ``MixtureGP`` have the first three. ``PFNSurrogate`` and
``TabPFNSurrogate`` are transformers, which know no covariances. ``RegressorSurrogate`` and
``GPyTorchSurrogate`` make surrogates of models of other packages, and ``as_surrogate`` of
whatever may be one.
"""

from .adapters import SURROGATES, GPyTorchSurrogate, RegressorSurrogate, as_surrogate
from .amortized import AmortizedGP
from .ensemble import EnsembleGP
from .exact import ExactGP
from .mixture import MixtureGP
from .pfn import PFNSurrogate
from .sparse import SparseGP
from .tabpfn import TabPFNSurrogate

__all__ = [
    "SURROGATES",
    "AmortizedGP",
    "EnsembleGP",
    "ExactGP",
    "GPyTorchSurrogate",
    "MixtureGP",
    "PFNSurrogate",
    "RegressorSurrogate",
    "SparseGP",
    "TabPFNSurrogate",
    "as_surrogate",
]
