"""Proposals for many campaigns in one call."""

import functools
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np

from .exceptions import SafetyWarning, warn_user
from .policies.runtime import LARGEST, told_budget
from .space import Box, is_auto
from .surrogates.threads import one_thread


class ManyCampaigns:
    """What gives a querier of a policy its ``propose_many``; goes before the querier's base."""

    def propose_many(self, histories, budgets=None):
        """Propose the next point of each of many campaigns.

        What a loop of ``query(X, y, z, budget=...)`` returns, in batches and on all cores.

        Parameters
        ----------
        histories : sequence of tuple
            For each campaign ``(X, y)`` or ``(X, y, z)`` as in ``query``, in the user's units.
            Their lengths may differ; those of one length are quickest side by side.
        budgets : int or sequence of int, default=None
            Queries left, one number for all or one for each campaign. By default
            ``self.budget``.

        Returns
        -------
        points : ndarray of shape (n_campaigns, n_features)
            In the user's units and inside the bounds.

        Raises
        ------
        BudgetExhaustedError
            A budget below one.
        ValueError, TypeError
            Invalid data or parameters; the message names the campaign.

        Warns
        -----
        DataScaleWarning, SafetyWarning
            As in ``query``, about the observations of all campaigns together.

        Examples
        --------
        >>> from sklearn_asal import AmortizedSafeQuerier
        >>> querier = AmortizedSafeQuerier("2d")
        >>> first = [[0.5, 0.5]], [0.3], [1.0]
        >>> second = [[0.5, 0.5], [0.6, 0.4]], [0.1, 0.2], [1.1, 0.9]
        >>> querier.propose_many([first, second], budgets=[10, 9]).shape
        (2, 2)
        """
        together, lengths, left = self._histories(histories, budgets)
        starts = np.append(0, lengths.cumsum())
        runtime, header = self._load(together[0].shape[1])
        # "auto" scales each campaign on its own.
        auto = any(is_auto(getattr(self, name, None)) for name in ("y_loc", "y_scale", "z_scale"))
        scale = super()._at_unit_scale  # none of this is worth to be remembered
        _, X, y, margin = scaled = scale(*together)
        if auto:
            parts = (
                [None] * len(lengths) if part is None else np.split(part, starts[1:-1])
                for part in together
            )
            each = zip(*(scale(*part)[1:] for part in zip(*parts, strict=True)), strict=True)
            X, y, margin = (None if p[0] is None else np.concatenate(p) for p in each)
        self._warn_all(together, scaled, margin, starts)
        if budgets is not None:
            self._check_setup(
                runtime.n_features, max((one for one in left if one is not None), default=None)
            )
        self._warn_of_boldness(runtime.n_features)
        self._warn_of_no_pool("propose_many takes none; pass one to query")
        unplanned = [n for one, n in zip(left, lengths.tolist(), strict=True) if one is None]
        self._warn_of_end(max(unplanned, default=0), header)
        rows = runtime.rows(X, y, margin, LARGEST)
        of_policy = functools.cache(lambda one, n: told_budget(header, one, n))
        left = np.array(list(map(of_policy, left, lengths.tolist())))
        # Campaigns of about one length together, so that there is little padding.
        order, batches, first = np.argsort(lengths, kind="stable"), [], 0
        for last, longest in enumerate(lengths[order].tolist()):
            if (last + 1 - first) * longest > runtime.batch and last > first:
                batches.append(order[first:last])
                first = last
        batches.append(order[first:])
        points = np.empty((len(lengths), runtime.n_features))

        def work(batch):
            longest, mask = lengths[batch[-1]], None
            if lengths[batch[0]] == longest and batch[-1] - batch[0] == len(batch) - 1:
                together = rows[:, starts[batch[0]] : starts[batch[-1] + 1]]
                together = together.reshape(len(rows), len(batch), longest, -1)
            else:
                step = np.arange(longest)
                mask = step < lengths[batch, None]
                together = rows[:, starts[batch, None] + mask * step]  # padded with first rows
                mask = None if mask.all() else mask
            points[batch] = runtime.decide_many(left[batch], together, mask)

        workers = min(joblib.cpu_count(), len(batches))
        with one_thread(), ThreadPoolExecutor(workers) as pool:
            list(pool.map(work, batches))
        return Box.of(self.bounds, runtime.n_features).from_unit(points.clip(0.0, 1.0))

    def _histories(self, histories, budgets):
        """Validated data of all campaigns together, their lengths and their budgets."""
        try:
            histories = list(histories)
        except TypeError as error:
            raise TypeError(
                "histories must be a sequence of tuples (X, y) or (X, y, z), got "
                f"{type(histories).__name__}."
            ) from error
        if not histories:
            raise ValueError("histories is empty; at least one campaign is needed.")
        left = self._budgets(budgets, len(histories))
        data = [self._history(0, histories[0])]
        first = histories[0], data[0]
        joined = _joined(histories)
        if joined is None:
            for i, history in enumerate(histories[1:], start=1):
                data.append(self._history(i, history, first))
            lengths = np.array([len(X) for X, _, _ in data])
            parts = zip(*data, strict=True)
            together = [None if part[0] is None else np.concatenate(part) for part in parts]
        else:
            X, y, *z = joined
            lengths = np.fromiter((len(history[1]) for history in histories), int)
            z = self._measurements(y, z[0] if z else None) if self._safe else None
            together = [X, y, z]
        return together, lengths, left

    def _history(self, i, history, first=None):
        """Validated data of one campaign; ``first`` has the history and the data of the first."""
        try:
            if not isinstance(history, (tuple, list)) or len(history) not in (2, 3):
                raise ValueError("a history must be a tuple (X, y) or (X, y, z).")
            X, y, z = self._data(*history, *(None,) * (3 - len(history)), "propose_many")[1]
            data = X, y, z if self._safe else None
            if first is not None:
                self._check_alike(history, data, *first)
        except (TypeError, ValueError) as error:
            raise type(error)(f"campaign {i}: {error}") from error
        return data

    def _check_alike(self, history, data, first, first_data):
        """Two campaigns have the same measurements, of the same shapes, and names of features."""
        has, had = (len(one) == 3 and one[2] is not None for one in (history, first))
        if self._safe and has != had:
            raise ValueError(
                f"z is {'given' if has else 'missing'}, but campaign 0 has "
                f"{'some' if had else 'none'}; give it for all campaigns or for none."
            )
        names, known = (getattr(one[0], "columns", None) for one in (history, first))
        if names is not None and known is not None and list(names) != list(known):
            raise ValueError(
                f"X has the features {list(names)}, campaign 0 has {list(known)}; bring the "
                "columns into the same order."
            )
        for name, now, before in zip("Xyz", data, first_data, strict=True):
            if now is not None and now.shape[1:] != before.shape[1:]:
                raise ValueError(
                    f"{name} has shape {now.shape}, that of campaign 0 {before.shape}."
                )

    def _budgets(self, budgets, n_campaigns):
        """Queries left of each campaign."""
        if np.ndim(budgets) == 0:
            budgets = [budgets] * n_campaigns
        elif isinstance(budgets, np.ndarray):
            budgets = budgets.tolist()
        budgets = list(budgets)
        if len(budgets) != n_campaigns:
            raise ValueError(f"{len(budgets)} budgets are given for {n_campaigns} campaigns.")
        if set(map(type, budgets)) == {int} and min(budgets) > 0:  # the usual, quickly
            return budgets
        left = []
        for i, budget in enumerate(budgets):
            try:
                left.append(self._queries_left(budget, 0, 1))
            except (TypeError, ValueError) as error:
                raise type(error)(f"campaign {i}: {error}") from error
        return left

    def _warn_all(self, together, scaled, margin, starts):
        """Warn of all observations as if of one campaign, and of a campaign with nothing safe."""
        self._warn(together, scaled=scaled)
        if margin is None or (margin < 0).all():  # said already
            return
        hopeless = np.flatnonzero(np.maximum.reduceat(margin, starts[:-1]) < 0)
        if len(hopeless):
            warn_user(
                f"none of the observations of campaign {hopeless[0]} is safe"
                f"{f', nor of {len(hopeless) - 1} others' if len(hopeless) > 1 else ''}: "
                f"{self.safety_rule}. Check safety_threshold and "
                "safe_when; exploration has to start from something safe.",
                SafetyWarning,
            )


def _joined(histories):
    """Arrays of all campaigns, one after the other; None unless each is a tuple of finite arrays
    of matching shapes, for then only the first has to be validated.

    Validation takes as long as the policy's answer.
    """
    if set(map(type, histories)) != {tuple} or len(set(map(len, histories))) > 1:
        return None
    columns = list(zip(*histories, strict=True))
    if any(set(map(type, column)) != {np.ndarray} for column in columns):
        return None
    try:
        joined = [np.concatenate(column) for column in columns]
        lengths = [list(map(len, column)) for column in columns]
    except (TypeError, ValueError):  # of other shapes than the first, or none
        return None
    # One column of y or z is made one-dimensional, which is none of our business here.
    dimensions = [part.ndim for part in joined]
    if dimensions not in ([2, 1], [2, 1, 1], [2, 1, 2]) or joined[-1].shape[1:] == (1,):
        return None
    if any(part.dtype != np.float64 for part in joined):
        return None
    if 0 in lengths[0] or any(column != lengths[0] for column in lengths[1:]):
        return None
    return joined if all(np.isfinite(part).all() for part in joined) else None
