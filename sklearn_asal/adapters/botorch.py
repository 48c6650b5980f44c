"""BoTorch: a querier that proposes candidates, and an acquisition function as a querier."""

import warnings
from typing import Any

from scipy.stats import qmc

try:
    import torch
    from botorch.acquisition import qNegIntegratedPosteriorVariance
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import SingleTaskGP
    from botorch.optim import optimize_acqf
    from botorch.utils.sampling import manual_seed
    from gpytorch.mlls import ExactMarginalLogLikelihood
except ImportError as error:
    from .optional import missing

    raise missing("botorch") from error

from .._typing import Bounds, Location, RandomState, Scale, StrPath
from ..log import CampaignLog
from ..queriers.base import BaseQuerier
from ..validation import whole
from .rows import ready

# Rows of a pool that are scored at a time.
_ROWS = 128


def propose(
    train_X: "torch.Tensor",
    train_Y: "torch.Tensor",
    bounds: "torch.Tensor",
    q: int = 1,
    *,
    train_Z: "torch.Tensor | None" = None,
    querier: Any = None,
    X_pending: "torch.Tensor | None" = None,
    choices: "torch.Tensor | None" = None,
) -> "torch.Tensor":
    """Candidates of a querier, in the place of ``optimize_acqf``.

    Parameters
    ----------
    train_X : Tensor of shape (n, d)
        Inputs in the user's units.
    train_Y : Tensor of shape (n, 1) or (n,)
        Outputs.
    bounds : Tensor of shape (2, d)
        Lower and upper limit of each input. They replace those of the querier.
    q : int, default=1
        Number of candidates. They are chosen one after another.
    train_Z : Tensor of shape (n, n_limits) or (n,), default=None
        Safety measurements. For a querier with limits None means that the output is its own.
    querier : querier, default=None
        What chooses. None stands for ``AmortizedSafeQuerier()`` with ``train_Z``, else
        ``AmortizedQuerier()``. It is cloned, never fitted itself.
    X_pending : Tensor of shape (m, d), default=None
        Points that are being measured.
    choices : Tensor of shape (n_choices, d), default=None
        The only points that may be proposed; those that were measured are left out.

    Returns
    -------
    Tensor of shape (q, d)
        Of the data type and on the device of ``train_X``.

    Raises
    ------
    ValueError, TypeError
        Invalid data; several outputs.
    BudgetExhaustedError, PoolExhaustedError, NoSafeCandidateError
        See the querier's ``query``.

    Examples
    --------
    >>> import torch
    >>> from sklearn_asal.adapters.botorch import propose
    >>> X, bounds = torch.tensor([[1.0, 2.0], [3.0, 1.0]]), torch.tensor([[0.0, 0.0], [5.0, 4.0]])
    >>> propose(X, torch.tensor([[0.3], [0.1]]), bounds, q=2).shape
    torch.Size([2, 2])
    """
    X, y, z, pending, pool = map(_array, (train_X, train_Y, train_Z, X_pending, choices))
    limits = _array(bounds)
    if y.ndim > 1 and y.shape[-1] != 1:
        raise ValueError(
            f"train_Y has {y.shape[-1]} outputs; pass the one to be learned, train_Y[:, [j]]. "
            "What must stay within limits is train_Z."
        )
    if limits.shape != (2, X.shape[-1]):
        raise ValueError(
            f"bounds must have shape (2, {X.shape[-1]}), lower limits in the first row; got "
            f"{limits.shape}."
        )
    if pending is not None and pending.shape[1:] != X.shape[1:]:
        raise ValueError(f"X_pending must have shape (m, {X.shape[-1]}), got {pending.shape}.")
    querier = ready(querier, z is not None).set_params(bounds=limits.T)
    answer = querier.query(X, y, z, pool=pool, n_queries=q, pending=pending)
    return torch.as_tensor(answer, dtype=train_X.dtype, device=train_X.device)


def _array(tensor):
    return None if tensor is None else torch.as_tensor(tensor).detach().cpu().double().numpy()


class BoTorchQuerier(BaseQuerier):
    """What lowers the average variance of BoTorch's standard model most.

    ``qNegIntegratedPosteriorVariance`` of a ``SingleTaskGP`` that is fitted anew for each query.
    All rows of a pool are compared.

    Parameters
    ----------
    n_points : int, default=256
        Number of points over which the variance is averaged: of a Sobol sequence, or rows that are
        spread over the pool.
    num_restarts, raw_samples : int, default=5 and 128
        Of ``optimize_acqf``, where there is no pool. With twice as many it found the same.
    bounds, budget, random_state, y_loc, y_scale, constraints, max_step, log, stop_when, \
            repeat_every
        As for :class:`~sklearn_asal.RandomQuerier`.

    Examples
    --------
    >>> from sklearn_asal.adapters.botorch import BoTorchQuerier
    >>> BoTorchQuerier(bounds=(0, 10)).query([[0.0], [5.0]], [0.1, 0.2]).shape
    (1, 1)
    """

    def __init__(
        self,
        *,
        n_points: int = 256,
        num_restarts: int = 5,
        raw_samples: int = 128,
        bounds: Bounds = None,
        budget: int | None = None,
        random_state: RandomState = None,
        y_loc: Location = 0.0,
        y_scale: Scale = 1.0,
        constraints: Any = None,
        max_step: Any = None,
        log: StrPath | CampaignLog | None = None,
        stop_when: float | None = None,
        repeat_every: int | None = None,
    ) -> None:
        super().__init__(
            bounds=bounds,
            budget=budget,
            random_state=random_state,
            y_loc=y_loc,
            y_scale=y_scale,
            constraints=constraints,
            max_step=max_step,
            log=log,
            stop_when=stop_when,
            repeat_every=repeat_every,
        )
        self.n_points = n_points
        self.num_restarts = num_restarts
        self.raw_samples = raw_samples

    def _check_setup(self, n_features, budget=None):
        for name in ("n_points", "num_restarts", "raw_samples"):
            whole(getattr(self, name), name, min_val=1)

    def _select(self, history, candidates, budget, rng):
        n_features = history.X.shape[1]
        if candidates is None:
            points = qmc.Sobol(n_features, seed=rng).random(self.n_points)
        else:
            points = candidates.reference(self.n_points)
        known = history.in_order().complete.observed
        X, y, points = (torch.tensor(part) for part in (known.X, known.y, points.copy()))
        pending = torch.tensor(history.pending) if len(history.pending) else None
        with manual_seed(int(rng.integers(2**31))), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about scales of few values, and retries
            model = SingleTaskGP(X, y[:, None])
            fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
            acquisition = qNegIntegratedPosteriorVariance(model, points, X_pending=pending)
            if candidates is None:
                cube = torch.tensor([[0.0], [1.0]], dtype=X.dtype).expand(2, n_features)
                best, _ = optimize_acqf(acquisition, cube, 1, self.num_restarts, self.raw_samples)
                return best[0].numpy().clip(0.0, 1.0)
            available = candidates.available
            rows = torch.tensor(candidates.points[available])[:, None]
            with torch.no_grad():
                values = torch.cat([acquisition(part) for part in rows.split(_ROWS)])
        return available[int(values.argmax())]
