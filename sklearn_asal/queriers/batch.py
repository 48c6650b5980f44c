"""Proposals for many campaigns in one call."""

import functools
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import joblib
import numpy as np
from sklearn.base import clone

from ..exceptions import NoSafeCandidateError, SafetyWarning, warn_user
from ..limits import boolean_limits
from ..policies.runtime import LARGEST, told_budget
from ..scaling import is_auto
from ..settings import numpy_defaults
from ..space import box_of, by_name
from ..threads import one_thread
from ..validation import column_names
from .history import SAME, Cache, History, moved_nearby, unrepeated


@numpy_defaults
def propose_many(querier, histories, budgets=None):
    """The next point of each of many campaigns, in batches and on all cores.

    Parameters
    ----------
    querier : AmortizedQuerier or AmortizedSafeQuerier
    histories, budgets
        See :meth:`AmortizedQuerier.propose_many`, also for what is returned and raised.

    Returns
    -------
    points : ndarray of shape (n_campaigns, n_features)
    """
    histories, together, lengths, left = _validated(querier, histories, budgets)
    policy = querier._load(together[0].shape[1])
    restricted = querier._restricts(None, box_of(querier.bounds, together[0].shape[1]))
    if restricted or policy.picks or getattr(querier, "on_no_safe", None) == "raise":
        return _by_queries(querier, histories, left)
    starts = np.append(0, lengths.cumsum())
    runtime = policy.runtime
    everything = scaled = querier._at_unit_scale(*together, Cache())
    if any(is_auto(getattr(querier, name, None)) for name in ("y_loc", "y_scale", "z_scale")):
        scaled = _each_on_its_own(querier, together, starts)
    worst = scaled.worst_margin
    if querier._safe and querier.on_no_safe is None:
        has_safe = np.logical_or.reduceat(worst >= 0, starts[:-1])
        if not has_safe.all():  # which may be an error
            return _by_queries(querier, histories, left)
    _warn(querier, together, everything, worst, starts)
    if policy.infers:
        points = _one_by_one(querier, together, starts)
        _put_repeats(querier, points, scaled, lengths, starts)
        return scaled.box.from_unit(points)
    if budgets is not None:
        querier._check_setup(
            runtime.n_features, max((one for one in left if one is not None), default=None)
        )
    querier._warn_of_boldness(policy, None)
    unplanned = [n for one, n in zip(left, lengths.tolist(), strict=True) if one is None]
    querier._warn_of_end(max(unplanned, default=0), policy)
    rows = runtime.rows(scaled.X, scaled.y, worst, LARGEST)
    of_policy = functools.cache(lambda one, n: told_budget(policy.header, one, n))
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
    points = points.clip(0.0, 1.0)
    _keep_nearby(querier, points, scaled, lengths, starts)
    _move_repeated(points, scaled, lengths, starts)
    if querier._safe and querier._guards:
        points = _guarded(querier, together, starts, points)
    _put_repeats(querier, points, scaled, lengths, starts)
    return scaled.box.from_unit(points)


def _by_queries(querier, histories, left):
    """What queries answer, one after another."""
    querier, points = clone(querier).set_output(transform="default"), []
    for i, (history, budget) in enumerate(zip(histories, left, strict=True)):
        try:
            points.append(querier.query(*history, budget=budget)[0])
        except NoSafeCandidateError:
            raise
        except ValueError as error:
            raise type(error)(f"campaign {i}: {error}") from error
    return np.array(points)


def _guarded(querier, together, starts, points):
    """What a guard proposes in place of each of the points, on all cores."""

    @numpy_defaults
    def guarded(i):
        history = querier._at_unit_scale(*_part(together, starts, i), Cache())
        return querier._guarded(points[i], history, None)

    with one_thread(), ThreadPoolExecutor(joblib.cpu_count()) as pool:
        moved, actions = zip(*pool.map(guarded, range(len(points))), strict=True)
    querier._warn_of_guard(actions)
    return np.array(moved)


def _part(together, starts, i):
    """Data of one campaign."""
    rows = slice(starts[i], starts[i + 1])
    return [None if part is None else part[rows] for part in together]


def _one_by_one(querier, together, starts):
    """What models choose for each campaign, on all cores."""

    @numpy_defaults
    def choose(i):
        data = _part(together, starts, i)
        history = querier._at_unit_scale(*data, Cache())
        nearby = querier._nearby(history)
        history = replace(history, nearby=nearby)
        rng = np.random.default_rng([querier._seed(data[0]), len(history.X)])
        chosen, _, p_safe = querier._by_models()._choose(history, None, rng)
        point, action = querier._guarded(querier._checked(chosen, history), history, None)
        return querier._checked(point, history), p_safe, action, nearby is not None

    with one_thread(), ThreadPoolExecutor(joblib.cpu_count()) as pool:
        found = pool.map(choose, range(len(starts) - 1))
        points, p_safe, actions, restricted = zip(*found, strict=True)
    if any(restricted):
        querier._warn_of_violations()
    querier._warn_of_risk(min((p for p in p_safe if p is not None), default=None))
    querier._warn_of_guard([one for one in actions if one is not None])
    return np.array(points)


def _each_on_its_own(querier, together, starts):
    """Observations at unit scale where "auto" scales each campaign on its own."""
    parts = (
        [None] * (len(starts) - 1) if part is None else np.split(part, starts[1:-1])
        for part in together
    )
    each = [querier._at_unit_scale(*part, Cache()) for part in zip(*parts, strict=True)]
    columns = zip(*((one.X, one.y, one.margin) for one in each), strict=True)
    X, y, margin = (None if c[0] is None else np.concatenate(c) for c in columns)
    return History(X, y, margin, len(X), each[0].box, each[0].cache)


def _move_repeated(points, scaled, lengths, starts):
    """Move proposals that would repeat an experiment, in place; see ``unrepeated``."""
    owner = np.repeat(np.arange(len(lengths)), lengths)
    near = (np.abs(scaled.X - points[owner]) <= SAME).all(axis=1)
    for i in np.unique(owner[near]):
        part = slice(starts[i], starts[i + 1])
        history = replace(
            scaled, X=scaled.X[part], y=scaled.y[part], margin=None, n_observed=lengths[i]
        )
        points[i] = unrepeated(points[i], history)


def _put_repeats(querier, points, scaled, lengths, starts):
    """Put what is to be repeated in place of proposals; see ``repeat_every``."""
    if querier.repeat_every is None:
        return
    for i in range(len(lengths)):
        part = slice(starts[i], starts[i + 1])
        margin = None if scaled.margin is None else scaled.margin[part]
        parts = {"X": scaled.X[part], "y": scaled.y[part], "margin": margin}
        repeated = querier._repeated(replace(scaled, **parts, n_observed=int(lengths[i])), None)
        if repeated is not None:
            points[i] = repeated[0]


def _keep_nearby(querier, points, scaled, lengths, starts):
    """Move proposals into the neighbourhood of safe measurements, see ``max_violations``."""
    most = getattr(querier, "max_violations", None)
    if most is None:
        return
    unsafe = np.add.reduceat((scaled.worst_margin < 0).astype(int), starts[:-1])
    restricted = np.flatnonzero(unsafe >= most)
    for i in restricted:
        part = slice(starts[i], starts[i + 1])
        parts = {name: getattr(scaled, name)[part] for name in ("X", "y", "margin")}
        history = replace(scaled, **parts, n_observed=int(lengths[i]))
        try:
            history = replace(history, nearby=querier._nearby(history))
        except ValueError as error:
            raise ValueError(f"campaign {i}: {error}") from error
        points[i] = moved_nearby(points[i], history)
    if len(restricted):
        querier._warn_of_violations()


def _validated(querier, histories, budgets):
    """All campaigns, their validated data together, their lengths and their budgets."""
    try:
        histories = list(histories)
    except TypeError as error:
        raise TypeError(
            "histories must be a sequence of tuples (X, y) or (X, y, z), got "
            f"{type(histories).__name__}."
        ) from error
    if not histories:
        raise ValueError("histories is empty; at least one campaign is needed.")
    left = _budgets(querier, budgets, len(histories))
    data = [_one(querier, 0, histories[0])]
    first = histories[0], data[0]
    joined = _joined(histories)
    if joined is None:
        for i, history in enumerate(histories[1:], start=1):
            data.append(_one(querier, i, history, first))
        lengths = np.array([len(X) for X, _, _ in data])
        parts = zip(*data, strict=True)
        together = [None if part[0] is None else np.concatenate(part) for part in parts]
    else:
        X, y, *z = joined
        lengths = np.fromiter((len(history[1]) for history in histories), int)
        z = querier._safety_signal(y, z[0] if z else None) if querier._safe else None
        together = [X, y, z]
    return histories, together, lengths, left


def _one(querier, i, history, first=None):
    """Validated data of one campaign; ``first`` has the history and the data of the first."""
    try:
        if not isinstance(history, (tuple, list)) or len(history) not in (2, 3):
            raise ValueError("a history must be a tuple (X, y) or (X, y, z).")
        rest = (*history[1:], None)[:2]
        X = by_name(history[0], querier.bounds, "X")
        X, y, z, _ = querier._data(X, *rest, "propose_many", missing=False)[1]
        data = X, y, z if querier._safe else None
        if first is not None:
            _check_alike(querier, history, data, *first)
    except (TypeError, ValueError) as error:
        raise type(error)(f"campaign {i}: {error}") from error
    return data


def _check_alike(querier, history, data, first, first_data):
    """Two campaigns have the same measurements, of the same shapes, and names of features."""
    has, had = (len(one) == 3 and one[2] is not None for one in (history, first))
    if querier._safe and has != had:
        raise ValueError(
            f"z is {'given' if has else 'missing'}, but campaign 0 has "
            f"{'some' if had else 'none'}; give it for all campaigns or for none."
        )
    for name, now, before in zip(("X", "z"), history[::2], first[::2], strict=False):
        names, known = column_names(now), column_names(before)
        if names is not None and known is not None and names != known:
            kind = "features" if name == "X" else "limits"
            raise ValueError(
                f"{name} has the {kind} {names}, campaign 0 has {known}; bring the columns into "
                "the same order."
            )
    for name, now, before in zip("Xyz", data, first_data, strict=True):
        if now is not None and now.shape[1:] != before.shape[1:]:
            raise ValueError(f"{name} has shape {now.shape}, that of campaign 0 {before.shape}.")
    if data[2] is not None and (boolean_limits(data[2]) != boolean_limits(first_data[2])).any():
        raise ValueError("z mixes booleans and numbers with those of campaign 0. Pass one of them.")


def _budgets(querier, budgets, n_campaigns):
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
            left.append(querier._queries_left(budget, 0, 1))
        except (TypeError, ValueError) as error:
            raise type(error)(f"campaign {i}: {error}") from error
    return left


def _warn(querier, together, history, margin, starts):
    """Warn of all observations as if of one campaign, and of a campaign with nothing safe."""
    querier._warn((*together, None), querier._names(None), history=history)
    if margin is None or (margin < 0).all():  # said already
        return
    hopeless = np.flatnonzero(np.maximum.reduceat(margin, starts[:-1]) < 0)
    if len(hopeless):
        warn_user(
            f"none of the observations of campaign {hopeless[0]} is safe"
            f"{f', nor of {len(hopeless) - 1} others' if len(hopeless) > 1 else ''}: "
            f"{querier._rule_for(together[2])}. Check safety_threshold and "
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
        joined = [np.concatenate(column, dtype=np.float64, casting="no") for column in columns]
        lengths = [list(map(len, column)) for column in columns]
    except (TypeError, ValueError):  # of other types or shapes
        return None
    # One column of y or z is made one-dimensional, which is none of our business here.
    dimensions = [part.ndim for part in joined]
    if dimensions not in ([2, 1], [2, 1, 1], [2, 1, 2]) or joined[-1].shape[1:] == (1,):
        return None
    if 0 in lengths[0] or any(column != lengths[0] for column in lengths[1:]):
        return None
    return joined if all(np.isfinite(part).all() for part in joined) else None
