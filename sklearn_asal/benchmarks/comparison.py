"""Simulated campaigns of the policy for any number of features, beside those of other methods."""

import numpy as np
import torch
from sklearn.base import BaseEstimator
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from tqdm import tqdm

from ..queriers import (
    AmortizedQuerier,
    AmortizedSafeQuerier,
    GPQuerier,
    GPSafeQuerier,
    RandomQuerier,
)
from ..surrogates import AmortizedGP, EnsembleGP, RegressorSurrogate
from ..trainer.presets import PRESETS
from ..trainer.priors import LogUniform
from ..trainer.simulator import draw_tasks, simulate
from ..trainer.threads import one_torch_thread
from .simulated import Querying

#: What is compared.
METHODS = "any", "isotropic", "oracle", "random"
#: Where lengthscales come from; each feature gets one of its own.
PRIORS = "broad", "paper"
_BROAD = LogUniform(0.15, 2.0)
# The oracle compares as many points as policy ``any``: only what it knows is to differ.
_N_CANDIDATES = 600


def compare(
    n_features,
    *,
    safe=False,
    prior="broad",
    n_tasks=100,
    n_queries=30,
    seed=1,
    n_test=200,
    gamma=0.02,
    policy="any",
    progress=False,
):
    """Let four methods carry out the same simulated campaigns.

    ``any`` is the policy. ``isotropic`` is an :class:`~sklearn_asal.surrogates.EnsembleGP`: one
    lengthscale for all features. ``oracle`` knows the Gaussian processes that a task was drawn
    from, with a limit also the prior mean of the margins. These three choose by variance
    reduction. ``random`` knows nothing, not even the limit.

    Parameters
    ----------
    n_features : int
    safe : bool, default=False
        Whether there is a limit. Tasks are those of preset safe-2d, else those of preset 2d, with
        ``n_features`` features.
    prior : {"broad", "paper"}, default="broad"
        Lengthscales of outputs and margins are log-uniform from 0.15 to 2 for each feature, or as
        in the preset.
    n_tasks, n_queries : int, default=100, 30
    seed : int, default=1
        Of the tasks.
    n_test : int, default=200
        Uniform test points of each task; with a limit those count that are safe.
    gamma : float, default=0.02
        Tolerated share of unsafe queries, of all methods but ``random``.
    policy : str or path-like, default="any"
        Name or file of a policy that infers hyperparameters.
    progress : bool, default=False
        Show a progress bar, if standard error is a terminal.

    Returns
    -------
    results : iterator of dict
        One for each method, as soon as its campaigns are over: ``method``, ``n_features``,
        ``prior``, ``tasks``, ``queries``, ``seed``; ``rmse`` of the posterior mean under the true
        hyperparameters after the last query, against the noise-free function; ``rmse_of_model``,
        the same of the method's own model, of ``random`` of the true process; with a limit
        ``unsafe_share`` of the queries by the noise-free margin. An error is None if no task has a
        safe test point.

    Raises
    ------
    ValueError
        Another prior.

    Examples
    --------
    >>> from sklearn_asal.benchmarks.comparison import compare
    >>> for result in compare(2, n_tasks=1, n_queries=1):
    ...     print(result["method"], result["queries"])
    any 1
    isotropic 1
    oracle 1
    random 1
    """
    if prior not in PRIORS:
        raise ValueError(f"prior must be one of {', '.join(PRIORS)}, got {prior!r}")
    preset = _preset(n_features, safe, prior, n_queries)
    facts = {
        "n_features": n_features,
        "prior": prior,
        "tasks": n_tasks,
        "queries": n_queries,
        "seed": seed,
    }
    batches = _draw(preset, n_tasks, n_test, seed)
    return _results(facts, batches, gamma, policy, progress)


def _results(facts, batches, gamma, policy, progress):
    total = len(METHODS) * facts["tasks"]
    with tqdm(total=total, unit="campaign", disable=None if progress else True) as bar:
        for method in METHODS:
            bar.set_description(method)
            yield {"method": method} | facts | _measured(method, batches, gamma, policy, bar)


def _preset(n_features, safe, prior, n_queries):
    """What tasks are drawn from; its objective needs nothing more of them."""
    preset = PRESETS["safe-2d" if safe else "2d"].replace(
        n_features=n_features, max_budget=n_queries, objective="S_H" if safe else "H", n_grid=0
    )
    if prior == "paper":
        return preset
    return preset.replace(lengthscale=_BROAD, safety_lengthscale=_BROAD)


def _draw(preset, n_tasks, n_test, seed):
    """Tasks and their test points, as many at a time as are carried out together."""
    generator, batches = torch.Generator().manual_seed(seed), []
    for start in range(0, n_tasks, Querying.chunk):
        n = min(Querying.chunk, n_tasks - start)
        tasks = draw_tasks(preset, n, 1, 1, generator, n_queries=preset.max_budget)
        batches.append((tasks, torch.rand((n, n_test, preset.n_features), generator=generator)))
    return batches


class TrueProcess(BaseEstimator):
    """The Gaussian processes that a task was drawn from, as a surrogate.

    Parameters
    ----------
    output : GaussianProcessRegressor
        With the true hyperparameters, as of all that is not optimised.
    margin : GaussianProcessRegressor, optional
        Of the margins less their prior mean.
    margin_mean : SafetyMean, optional
        That prior mean, of this task alone.
    zero_mean : bool, default=False
        Whether it stands for the margins; queriers set it.

    Attributes
    ----------
    model_ : RegressorSurrogate
    """

    def __init__(self, output, margin=None, margin_mean=None, zero_mean=False):
        self.output = output
        self.margin = margin
        self.margin_mean = margin_mean
        self.zero_mean = zero_mean

    def fit(self, X, y):
        """Condition on data.

        Parameters
        ----------
        X : ndarray of shape (n, n_features)
        y : ndarray of shape (n,)

        Returns
        -------
        self
        """
        regressor = self.margin if self.zero_mean else self.output
        self.model_ = RegressorSurrogate(regressor).fit(X, y - self._prior_mean(X))
        return self

    def update(self, X, y):
        """The same as :meth:`fit`; by this method queriers tell outputs from margins.

        Parameters
        ----------
        X, y
            See :meth:`fit`.

        Returns
        -------
        self
        """
        return self.fit(X, y)

    def predict(self, X):
        """Mean and standard deviation of a measurement, noise included.

        Parameters
        ----------
        X : ndarray of shape (m, n_features)

        Returns
        -------
        mean, std : ndarray of shape (m,)
        """
        mean, std = self.model_.predict(X)
        return mean + self._prior_mean(X), std

    def covariance(self, A, B):
        """Covariance of noise-free values at two sets of points.

        Parameters
        ----------
        A : ndarray of shape (n, n_features)
        B : ndarray of shape (k, n_features)

        Returns
        -------
        ndarray of shape (n, k)
        """
        return self.model_.covariance(A, B)

    def _prior_mean(self, X):
        if not self.zero_mean:
            return 0.0
        return self.margin_mean(torch.from_numpy(np.array(X))[None])[0].numpy()


@torch.inference_mode()
@one_torch_thread()
def _measured(method, batches, gamma, policy, bar):
    """How good a method's campaigns are."""
    errors, unsafe = [], []
    for tasks, x in batches:
        truths = [_truth(tasks, i) for i in range(len(tasks))]
        queriers = [_querier(method, tasks.safe, truth, gamma, policy) for truth in truths]
        rollout = simulate(Querying(queriers), tasks)
        if tasks.safe:
            unsafe.append((tasks.q(rollout.X) < 0)[rollout.queried])
        counts = tasks.q(x) >= 0 if tasks.safe else torch.ones(x.shape[:2], dtype=torch.bool)
        for i in range(len(tasks)):
            if counts[i].any():
                data = rollout.X[i].double().numpy(), rollout.Y[i].double().numpy()
                f = tasks.f[[i]](x[[i]])[0].double().numpy()
                test = x[i].double().numpy(), f, counts[i].numpy()
                models = truths[i], _model(method, truths[i], policy)
                errors.append([_rmse(model.fit(*data), *test) for model in models])
        bar.update(len(tasks))
    rmse = np.mean(errors, axis=0).tolist() if errors else (None, None)
    result = dict(zip(("rmse", "rmse_of_model"), rmse, strict=True))
    if unsafe:
        result["unsafe_share"] = torch.cat(unsafe).double().mean().item()
    return result


def _truth(tasks, i):
    output = _process(tasks.kernel, i)
    if not tasks.safe:
        return TrueProcess(output)
    return TrueProcess(output, _process(tasks.safety_kernel, i), tasks.safety_mean[[i]])


def _process(kernel, i):
    variance, noise = kernel.variance[i].item(), kernel.noise[i].item()
    shape = ConstantKernel(variance, "fixed") * RBF(kernel.lengthscale[i].numpy(), "fixed")
    return GaussianProcessRegressor(shape, alpha=noise, optimizer=None)


def _querier(method, safe, truth, gamma, policy):
    if method == "random":
        return RandomQuerier()
    options = {"gamma": gamma} if safe else {}
    if method == "any":
        return (AmortizedSafeQuerier if safe else AmortizedQuerier)(policy, **options)
    options["acquisition"] = "variance_reduction"
    kind = GPSafeQuerier if safe else GPQuerier
    if method == "isotropic":
        return kind("ensemble", **options)
    return kind(truth, n_candidates=_N_CANDIDATES, **options)


def _model(method, truth, policy):
    """What a method knows of the outputs."""
    if method == "any":
        return AmortizedGP(policy)
    return EnsembleGP() if method == "isotropic" else truth


def _rmse(model, x, f, counts):
    return float(np.sqrt(np.mean(np.square(model.predict(x)[0] - f)[counts])))
