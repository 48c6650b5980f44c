"""How far ``progress`` can be relied on: ``python -m sklearn_asal.benchmarks.progress``.

Campaigns of policy ``any`` on the simulated tasks of
:func:`~sklearn_asal.benchmarks.comparison.compare`, without and with a limit. Three tables:

- the expected error over the true one. True is the root mean square difference of the predicted
  mean, by the models of ``progress``, and the noise-free function. Both are about the points that
  these models hold for likely safe; without a limit about all. Also the error that had been
  expected from there twice as many queries before.
- where ``stop_when`` ends campaigns, beside a clairvoyant who stops at the first true error that is
  small enough. Campaigns that reach it neither way within the queries are left out.
- drift that is found where there is one, of so many standard deviations of the noise from the first
  measurement to the last, and where there is none.
"""

import argparse
import warnings
from dataclasses import dataclass

import numpy as np
import torch

from .._arguments import not_negative, positive, positive_number
from ..queriers import AmortizedQuerier, AmortizedSafeQuerier
from ..settings import own_settings
from ..trainer.threads import one_torch_thread
from .comparison import PRIORS, _draw, _preset
from .simulated import _ignore_scales

# The factor that an expected error may be off, and that one at the end of a campaign may be too
# large.
_FACTOR, _TOO_LARGE = 1.5, 1.2


@dataclass(frozen=True, eq=False)
class System:
    """One simulated system.

    Parameters
    ----------
    tasks : Tasks
    i : int
        Which of them it is.
    x : ndarray of shape (m, n_features)
        Uniform test points.
    rng : numpy.random.Generator
        Of the noise.
    """

    tasks: object
    i: int
    x: np.ndarray
    rng: np.random.Generator

    def output(self, x):
        """Noise-free outputs, ``(n,)``."""
        return _evaluated(self.tasks.f[[self.i]], x)

    def margin(self, x):
        """Noise-free margins, ``(n,)``; None without a limit."""
        if not self.tasks.safe:
            return None
        mean, deviation = self.tasks.safety_mean[[self.i]], self.tasks.q_raw[[self.i]]
        return _evaluated(mean, x) + _evaluated(deviation, x)

    @property
    def noise(self):
        """Standard deviation of the noise of the output."""
        return self.tasks.kernel.noise[self.i].item() ** 0.5

    def begin(self, drift=0.0, n=1, **params):
        """A campaign with its initial points.

        Parameters
        ----------
        drift : float, default=0.0
            Of the output from the first measurement to the last.
        n : int, default=1
            Number of queries.
        **params
            Of the querier.

        Returns
        -------
        Campaign
        """
        return Campaign(self, drift, n, params)


class Campaign:
    """One campaign of policy ``any`` on a system; see :meth:`System.begin`."""

    def __init__(self, system, drift, n, params):
        kind = AmortizedQuerier
        if system.tasks.safe:
            kind, params = AmortizedSafeQuerier, {"on_no_safe": "least_unsafe", **params}
        X = system.tasks.X[system.i].double().numpy()
        self.system, self._slope, self._n_measured = system, drift / (len(X) + n - 1), 0
        self.querier = kind(random_state=system.i, **params).fit(*self._measured(X))

    def _measured(self, X):
        system, n = self.system, len(X)
        order = self._n_measured + np.arange(n)
        self._n_measured += n
        y = system.output(X) + system.noise * system.rng.standard_normal(n) + self._slope * order
        margin = system.margin(X)
        if margin is None:
            return X, y
        std = system.tasks.safety_kernel.noise[system.i].item() ** 0.5
        return X, y, margin + std * system.rng.standard_normal(n)

    def step(self):
        """Measure what the querier proposes."""
        self.querier.tell(*self._measured(self.querier.query()))

    def true_error(self):
        """Of the likely safe test points, NaN without any, and of those that are truly safe."""
        system = self.system
        report = self.querier.assess(system.x)
        squares = np.square(report.y_mean - system.output(system.x))
        likely = truly = np.ones(len(squares), dtype=bool)
        if report.p_safe is not None:
            likely, truly = report.p_safe >= 0.5, system.margin(system.x) >= 0
        return [np.sqrt(squares[rows].mean()) if rows.any() else np.nan for rows in (likely, truly)]


def _evaluated(function, x):
    return function(torch.tensor(x[None], dtype=torch.float32))[0].double().numpy()


def systems(n_features, safe, prior, n_tasks, n_queries, seed, n_test=300):
    """Simulated systems, those of :func:`~sklearn_asal.benchmarks.comparison.compare`.

    Parameters
    ----------
    n_features : int
    safe : bool
    prior : {"broad", "paper"}
    n_tasks, n_queries, seed : int
    n_test : int, default=300

    Yields
    ------
    System
    """
    number = 0
    for tasks, x in _draw(_preset(n_features, safe, prior, n_queries), n_tasks, n_test, seed):
        for i in range(len(tasks)):
            rng = np.random.default_rng([seed, number])
            yield System(tasks, i, x[i].double().numpy(), rng)
            number += 1


@own_settings()
@torch.inference_mode()
@one_torch_thread()
def errors(system, n_queries, at, ahead=()):
    """Expected and true errors in the course of a campaign.

    Parameters
    ----------
    system : System
    n_queries : int
    at : sequence of int
        After so many queries.
    ahead : sequence of int, default=()
        After so many of these, that of twice as many queries is expected as well.

    Returns
    -------
    dict of int to list of float
        Expected error, its upper quantile, true errors of the points that are likely and truly
        safe, and the error expected after twice as many queries or NaN.
    """
    campaign, found = system.begin(), {}
    with warnings.catch_warnings():
        _ignore_scales()
        for k in range(1, n_queries + 1):
            campaign.step()
            if k in at:
                more = k if k in ahead else 0
                progress = campaign.querier.progress(n_more=more)
                later = progress.rmse_after[-1] if more else np.nan
                now = progress.rmse, progress.rmse_upper, *campaign.true_error(), later
                found[k] = list(map(float, now))
    return found


@own_settings()
@torch.inference_mode()
@one_torch_thread()
def drift_found(system, n_queries, repeat_every, size):
    """What is said of the drift of a campaign at its end.

    Parameters
    ----------
    system : System
    n_queries, repeat_every : int
    size : float
        In standard deviations of the noise.

    Returns
    -------
    p_value : float
    ratio : float
        Pooled standard deviation of the repeats over that of the noise.
    """
    campaign = system.begin(size * system.noise, n_queries, repeat_every=repeat_every)
    with warnings.catch_warnings():
        _ignore_scales()
        for _ in range(n_queries):
            campaign.step()
    progress = campaign.querier.progress()
    return progress.drift.p_value, progress.repeat_std / system.noise


def stops(courses, error):
    """Where campaigns end.

    Parameters
    ----------
    courses : list of dict
        From :func:`errors`, after each query.
    error : float
        That is small enough.

    Returns
    -------
    reached : ndarray of shape (n_stopped,)
        True errors at the end over ``error``, of campaigns that end within the queries.
    extra : ndarray of shape (n,)
        Queries over those of the clairvoyant less one, of campaigns that he ends; infinite where
        the others do not end.
    """
    reached, extra = [], []
    for course in courses:
        ends = [k for k, values in course.items() if values[1] <= error]
        could = [k for k, values in course.items() if values[2] <= error]
        if ends:
            reached.append(course[ends[0]][2] / error)
        if could:
            extra.append((ends[0] if ends else np.inf) / could[0] - 1)
    return np.array(reached), np.array(extra)


def _table_of_errors(courses, at):
    lines = [
        f"{'queries':>8}{'true':>8}{'safe':>8}{'median':>8}{'within':>8}{'upper':>8}{'ahead':>8}"
    ]
    for k in at:
        now = np.array([course[k] for course in courses])
        now = now[np.isfinite(now[:, 2])]
        ratio = now[:, 0] / now[:, 2]
        within = np.abs(np.log(ratio)) <= np.log(_FACTOR)
        upper = now[:, 2] <= now[:, 1]
        ahead = [course[k // 2][4] / course[k][2] for course in courses if k // 2 in course]
        values = now[:, 2].mean(), np.nanmean(now[:, 3]), np.median(ratio)
        line = f"{k:8}" + "".join(f"{value:8.3f}" for value in values)
        line += f"{within.mean():8.1%}{upper.mean():8.1%}"
        ahead = np.array(ahead)[np.isfinite(ahead)] if ahead else np.empty(0)
        lines.append(line + (f"{np.median(ahead):8.3f}" if len(ahead) else f"{'':8}"))
    return lines


def _table_of_stops(courses, sizes):
    lines = [f"{'stop_when':>10}{'ended':>8}{'good':>8}{'extra':>8}"]
    for size in sizes:
        reached, extra = stops(courses, size)
        good = np.mean(reached <= _TOO_LARGE) if len(reached) else np.nan
        median = np.median(extra) if len(extra) else np.nan
        lines.append(f"{size:10.3g}{len(reached):8}{good:8.1%}{median:8.1%}")
    return lines


def main(arguments=None):
    """Measure, and print the tables.

    Parameters
    ----------
    arguments : list of str, optional
        By default those of the command line.
    """
    parser = argparse.ArgumentParser("python -m sklearn_asal.benchmarks.progress")
    add = parser.add_argument
    add("--features", type=positive, nargs="+", default=[2, 3, 5], help="default: 2 3 5")
    add("--tasks", type=positive, default=200, help="campaigns of each kind; default: %(default)s")
    add(
        "--few",
        type=positive,
        default=60,
        help="of these, of stops and drift; default: %(default)s",
    )
    add("--queries", type=positive, nargs="+", default=[10, 20, 40], help="default: 10 20 40")
    add("--stop-when", type=positive_number, nargs="+", default=[0.1, 0.2, 0.3, 0.5])
    add("--repeat-every", type=positive, default=5, help="default: %(default)s")
    add("--drift", type=positive_number, default=3.0, help="in noises; default: %(default)s")
    add("--prior", choices=PRIORS, default="broad", help="default: %(default)s")
    add("--seed", type=not_negative, default=1, help="default: %(default)s")
    given = parser.parse_args(arguments)
    longest, at = max(given.queries), sorted(given.queries)
    for n_features in given.features:
        for safe in (False, True):
            kind = n_features, safe, given.prior
            few = min(given.few, given.tasks)
            print(f"{n_features} inputs, {'with' if safe else 'without'} a limit, {given.prior}")
            each, ahead = range(1, longest + 1), [k for k in at if 2 * k in at]
            courses = [
                errors(system, longest, *((each, ahead) if number < few else (at,)))
                for number, system in enumerate(systems(*kind, given.tasks, longest, given.seed))
            ]
            print("\n".join(_table_of_errors(courses, at)))
            print("\n".join(_table_of_stops(courses[:few], given.stop_when)), flush=True)
            for size in (0.0, given.drift):
                found = [
                    drift_found(system, longest, given.repeat_every, size)
                    for system in systems(*kind, few, longest, given.seed)
                ]
                p_values, ratios = np.transpose(found)
                share = np.mean(p_values < 0.05)
                print(
                    f"drift of {size:g} noises found in {share:.1%} of {len(found)} campaigns; "
                    f"repeats show {np.median(ratios):.2f} of the noise",
                    flush=True,
                )
            print()


if __name__ == "__main__":
    main()
