"""Any network at deployment, in torch."""

import os

import numpy as np
import torch

from .networks import restore
from .runtime import Runtime, clipped

if hasattr(os, "register_at_fork"):
    # OpenMP's threads are not in the child, which would wait for them.
    os.register_at_fork(after_in_child=lambda: torch.set_num_threads(1))


class TorchRuntime(Runtime):
    """Answers of a network by the network itself.

    For kinds of network without a runtime in NumPy.

    Parameters
    ----------
    architecture, weights, dtype
        See :class:`~sklearn_asal.policies.runtime.Runtime`, also for the attributes.
    """

    def __init__(self, architecture, weights, dtype=np.float32):
        super().__init__(architecture, weights, dtype)
        weights = {name: torch.from_numpy(np.array(weight)) for name, weight in weights.items()}
        self._network = restore(architecture, weights).to(_torch_dtype(self.dtype))
        nothing = self._network.tokens(*self._parts(np.empty((1, 0, self._n_columns))))
        self._widths = [part.shape[-1] for part in nothing]
        self.token_width = sum(self._widths)

    def rows(self, X, y, margin=None, largest=np.inf):
        """See :meth:`Runtime.rows`; inputs, then values."""
        rows = np.empty((1, *X.shape[:-1], self._n_columns))
        rows[0, ..., : self.n_features] = X
        rows[0, ..., self.n_features] = y
        if self.safe:
            rows[0, ..., -1] = margin
        return clipped(rows, largest, self.dtype)

    @torch.inference_mode()
    def tokens(self, rows):
        """See :meth:`Runtime.tokens`."""
        return torch.cat(self._network.tokens(*self._parts(rows)), -1).numpy()

    @torch.inference_mode()
    def decide(self, budget, tokens):
        """See :meth:`Runtime.decide`."""
        tokens = torch.from_numpy(np.ascontiguousarray(tokens)).split(self._widths, -1)
        return self._network.decide(self._budgets(budget, 1), tokens)[0].numpy()

    @torch.inference_mode()
    def decide_many(self, budget, rows, mask=None):
        """See :meth:`Runtime.decide_many`."""
        mask = None if mask is None else torch.from_numpy(np.ascontiguousarray(mask))
        budgets = self._budgets(budget, rows.shape[1])
        return self._network(budgets, *self._parts(rows[0]), mask=mask).numpy()

    @property
    def _n_columns(self):
        return self.n_features + 1 + self.safe

    def _parts(self, rows):
        """Inputs, outputs and margins."""
        rows = torch.from_numpy(np.ascontiguousarray(rows, self.dtype))
        x, *values = rows.split([self.n_features, *[1] * (1 + self.safe)], -1)
        return x, *(value.squeeze(-1) for value in values)

    def _budgets(self, budget, n_campaigns):
        return torch.from_numpy(np.full(n_campaigns, budget, self.dtype))


def _torch_dtype(dtype):
    return torch.from_numpy(np.empty(0, dtype)).dtype
