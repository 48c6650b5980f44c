"""The queriers that the contract suite runs on, all for two features.

To put a new querier under the contract, add a line to ``QUERIERS``; the name of
a safe one has to contain "Safe".
"""

import functools
import tempfile
from pathlib import Path

import numpy as np

from sklearn_asal import (
    AmortizedQuerier,
    AmortizedSafeQuerier,
    GPQuerier,
    GPSafeQuerier,
    RandomQuerier,
)
from sklearn_asal.adapters.strategies import StrategyQuerier
from sklearn_asal.queriers.base import BaseQuerier
from sklearn_asal.queriers.safe import SafeQuerierMixin

_folder = tempfile.TemporaryDirectory(prefix="sklearn-asal-tests-")


@functools.cache
def policy_file(safe, n_features=2):
    """The path of an untrained policy whose answers depend visibly on all it is shown."""
    import torch

    from sklearn_asal.policies.checkpoint import save_policy
    from sklearn_asal.policies.reader import ReaderNetwork

    with torch.random.fork_rng():
        torch.manual_seed(n_features)
        network = ReaderNetwork(
            n_features, safe, embedding=16, hidden=32, heads=2, output="tanh", centre_gain=2.0
        )
    path = Path(_folder.name) / f"{'safe' if safe else 'plain'}-{n_features}.safetensors"
    save_policy(network, path, {"n_init": 5, "max_budget": 40, "noise_std": [0.1, 0.1]})
    return str(path)


class UniformQuerier(BaseQuerier):
    """The least that a subclass has to do."""

    def _select(self, history, candidates, budget, rng):
        point = rng.random(history.X.shape[1])
        return point if candidates is None else candidates.nearest(point)[0]


class BestSafeQuerier(SafeQuerierMixin, BaseQuerier):
    """Near the weighted mean of what was measured; reads all it is given."""

    def __init__(
        self,
        *,
        bounds=None,
        budget=None,
        random_state=None,
        safety_threshold=0.0,
        safe_when="above",
        y_loc=0.0,
        y_scale=1.0,
        z_scale=1.0,
        constraints=None,
        max_step=None,
        log=None,
        stop_when=None,
        repeat_every=None,
    ):
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
        self.safety_threshold = safety_threshold
        self.safe_when = safe_when
        self.z_scale = z_scale

    def _select(self, history, candidates, budget, rng):
        margin = history.worst_margin
        weight = np.exp(-(np.tanh(history.y) ** 2)) * (1 + np.tanh(margin)) + 0.1
        step = 0.01 * rng.random(history.X.shape[1]) + 0.001 * (budget or 0)
        point = np.tanh(history.X).T @ weight / weight.sum() + step
        return point if candidates is None else candidates.nearest(point)[0]


class FarthestQuerier(StrategyQuerier):
    """A strategy that needs no package: the candidate that is farthest from all observations."""

    def _pick(self, X, y, points, seed):
        return np.linalg.norm(points[:, None] - X, axis=2).min(axis=1).argmax()


# Arbitrary data leave nothing safe more often than not.
_BOLD = {"on_no_safe": "least_unsafe"}

QUERIERS = {
    "UniformQuerier": UniformQuerier,
    "BestSafeQuerier": BestSafeQuerier,
    "AmortizedQuerier": lambda **params: AmortizedQuerier(
        **{"policy": policy_file(False), **params}
    ),
    "AmortizedSafeQuerier": lambda **params: AmortizedSafeQuerier(
        **{"policy": policy_file(True), "guard": False, **_BOLD, **params}
    ),
    "AmortizedSafeQuerier, guarded": lambda **params: AmortizedSafeQuerier(
        **{"policy": policy_file(True), **_BOLD, **params}
    ),
    "AmortizedQuerier, any": AmortizedQuerier,
    "AmortizedSafeQuerier, any": lambda **params: AmortizedSafeQuerier(**{**_BOLD, **params}),
    "AmortizedSafeQuerier, any, guarded": lambda **params: AmortizedSafeQuerier(
        **{"guard": True, **_BOLD, **params}
    ),
    "GPQuerier": lambda **params: GPQuerier(**{"n_candidates": 500, **params}),
    "GPSafeQuerier": lambda **params: GPSafeQuerier(**{"n_candidates": 500, **_BOLD, **params}),
    "GPSafeQuerier, guarded": lambda **params: GPSafeQuerier(
        **{
            "surrogate": "ensemble",
            "acquisition": "variance_reduction",
            **_BOLD,
            "guard": True,
            **params,
        }
    ),
    "GPSafeQuerier, amortized": lambda **params: GPSafeQuerier(
        **{
            "surrogate": "amortized",
            "acquisition": "variance_reduction",
            **_BOLD,
            **params,
        }
    ),
    "GPSafeQuerier, ensemble": lambda **params: GPSafeQuerier(
        **{
            "surrogate": "ensemble",
            "acquisition": "variance_reduction",
            **_BOLD,
            **params,
        }
    ),
    "GPSafeQuerier, pfn": lambda **params: GPSafeQuerier(
        **{"surrogate": "pfn", "n_candidates": 100, "on_no_safe": "least_unsafe", **params}
    ),
    "RandomQuerier": RandomQuerier,
    "FarthestQuerier": FarthestQuerier,
}


def found_by_threes(querier, pool, n_times):
    """Rows of a pool that a campaign takes, three at a time; all are measured as safe."""
    found = []
    for _ in range(n_times):
        points, rows = querier.query(pool=pool, n_queries=3, return_indices=True)
        found += rows.tolist()
        querier.tell(points, points.sum(axis=1) - 1, np.ones(3))
    return found
