"""Ax: a querier as a generation node."""

import math
from typing import Any

import numpy as np
from sklearn.base import clone

try:
    from ax.core.parameter import FixedParameter, ParameterType, RangeParameter
    from ax.core.trial_status import TrialStatus
    from ax.core.types import ComparisonOp
    from ax.exceptions.core import DataRequiredError, UnsupportedError
    from ax.generation_strategy.external_generation_node import ExternalGenerationNode
except ImportError as error:
    from .optional import missing

    raise missing("ax") from error

from ..queriers import AmortizedQuerier, AmortizedSafeQuerier
from ..queriers.safe import SafeQuerierMixin

# Runs that ended without a result.
_WITHOUT_RESULT = TrialStatus.FAILED, TrialStatus.ABANDONED


class QuerierNode(ExternalGenerationNode):
    """A querier as a node of a generation strategy of Ax.

    The objective's metric is the output that is learned; whether it is to be large or small is of
    no consequence. The outcome constraints are the limits of a querier that has some. Trials that
    failed or were abandoned are told as failed, running ones are pending.

    Parameters
    ----------
    querier : querier, default=None
        What chooses. None stands for ``AmortizedSafeQuerier()`` where the experiment has outcome
        constraints, and ``AmortizedQuerier()`` where it has none. It is cloned, and the clone's
        bounds and limits are those of the experiment. A querier without limits takes no notice
        of outcome constraints. A ``budget`` counts all trials of the experiment.
    name : str, default="sklearn_asal"
        Of the node.
    transition_criteria : sequence of TransitionCriterion, default=None
        When to go on to another node.

    Notes
    -----
    Parameters are ranges of floats, on a linear or logarithmic scale, or fixed. There has to be a
    trial with data before: attach one, or put a node before this one.

    Examples
    --------
    >>> from ax.api.client import Client
    >>> from ax.api.configs import RangeParameterConfig
    >>> from ax.generation_strategy.generation_strategy import GenerationStrategy
    >>> from sklearn_asal.adapters.ax import QuerierNode
    >>> client = Client()
    >>> client.configure_experiment(
    ...     [RangeParameterConfig(name="speed", bounds=(0, 6), parameter_type="float")]
    ... )
    >>> client.configure_optimization("torque", outcome_constraints=["heat <= 80"])
    >>> client.set_generation_strategy(GenerationStrategy(nodes=[QuerierNode()]))
    >>> first = client.attach_trial({"speed": 1.0})
    >>> status = client.complete_trial(first, {"torque": 3.0, "heat": 40.0})
    >>> len(client.get_next_trials(max_trials=2))
    2
    """

    def __init__(
        self,
        querier: Any = None,
        *,
        name: str = "sklearn_asal",
        transition_criteria: Any = None,
    ) -> None:
        # Where outputs are noisy a point may be proposed again; if not, no querier does.
        super().__init__(
            name=name, should_deduplicate=False, transition_criteria=transition_criteria
        )
        # Ax would draw random points instead of raising, which may be unsafe.
        self.fallback_specs: dict[Any, Any] = {}
        self.querier = querier
        self._space: Any = None
        self._fitted: Any = None
        self._failed: Any = None

    def update_generator_state(self, experiment: Any, data: Any) -> None:
        """Fit the querier to the trials of an experiment; Ax calls it.

        Parameters
        ----------
        experiment : ax.core.experiment.Experiment
        data : ax.core.data.Data

        Raises
        ------
        UnsupportedError
            The experiment has what queriers have not: parameters other than ranges of floats,
            constraints of parameters, several objectives, relative or composed constraints.
        DataRequiredError
            No trial has all measurements that are needed.
        """
        space = _Space(experiment.search_space)
        metric, limits = _metrics(experiment.optimization_config)
        querier = self.querier
        if querier is None:
            querier = AmortizedSafeQuerier() if limits else AmortizedQuerier()
        querier = clone(querier).set_params(bounds=space.bounds)
        safe = isinstance(querier, SafeQuerierMixin)
        if safe and limits:
            querier.set_params(
                safety_threshold=[bound for _, bound, _ in limits],
                safe_when=[side for _, _, side in limits],
            )
        names = [metric, *(name for name, _, _ in limits if safe)]
        X, measured, failed = _observations(experiment, data, space, names)
        # An output may be missing where safety was measured.
        known = ~np.isnan(measured[:, 1:] if len(names) > 1 else measured).any(axis=1)
        X, y, z = X[known], measured[known, 0], measured[known, 1:]
        if np.isnan(y).all():
            raise DataRequiredError(
                f"no trial has data for {', '.join(names)}: {self.name} needs at least one. Attach "
                "a trial and complete it, or put another node before this one."
            )
        querier.fit(X, y, z if len(names) > 1 else None)
        if len(failed):
            querier.tell(failed, status="failed")
        self._space, self._fitted, self._failed = space, querier, failed

    def get_next_candidate(self, pending_parameters: list[Any]) -> dict[str, Any]:
        """The next trial; Ax calls it.

        Parameters
        ----------
        pending_parameters : list of dict
            Of the trials that are being measured.

        Returns
        -------
        dict
            A value for each parameter.
        """
        space = self._space
        pending = space.points([space.point(values) for values in pending_parameters])
        # Ax counts abandoned trials among these.
        known = (pending[:, None] == self._failed).all(axis=2).any(axis=1)
        querier, pending = self._fitted, pending[~known]
        budget = querier.budget
        if budget is not None:
            budget -= len(querier.X_) + len(pending)
        return space.values(querier.query(budget=budget, pending=pending)[0])

    def _gen(self, *args, **kwargs):
        if kwargs.pop("fixed_features", None) is not None:
            raise UnsupportedError(
                "A querier takes no fixed parameters; fix them in the search space."
            )
        return super()._gen(*args, **kwargs)


class _Space:
    """A search space, and its points as rows; a logarithmic scale becomes a linear one."""

    def __init__(self, search_space):
        if search_space.parameter_constraints:
            raise UnsupportedError("A querier takes no constraints of parameters, only ranges.")
        self.ranges, self.fixed = [], {}
        for name, parameter in search_space.parameters.items():
            if isinstance(parameter, FixedParameter):
                self.fixed[name] = parameter.value
            elif _is_taken(parameter):
                self.ranges.append(parameter)
            else:
                raise UnsupportedError(
                    f"Parameter {name!r} is no range of floats on a linear or logarithmic scale, "
                    f"which is all a querier takes; got {parameter}."
                )
        self.bounds = [[_inner(p, p.lower), _inner(p, p.upper)] for p in self.ranges]

    def point(self, values):
        return [_inner(parameter, values[parameter.name]) for parameter in self.ranges]

    def points(self, found):
        """Rows, also where there are none."""
        return np.array(found, dtype=float).reshape(len(found), len(self.ranges))

    def values(self, point):
        values = dict(self.fixed)
        for parameter, value in zip(self.ranges, point.tolist(), strict=True):
            value = parameter.cast(10.0**value if parameter.log_scale else value)
            values[parameter.name] = min(max(value, parameter.lower), parameter.upper)
        return values


def _is_taken(parameter):
    is_range = isinstance(parameter, RangeParameter) and not parameter.logit_scale
    return is_range and parameter.parameter_type == ParameterType.FLOAT


def _inner(parameter, value):
    return math.log10(value) if parameter.log_scale else float(value)


def _metrics(config):
    """The metric of the objective, and name, bound and safe side of each limit."""
    names = config.objective.metric_names
    if len(names) != 1:
        raise UnsupportedError(f"A querier learns one output; the objective has {names}.")
    limits = []
    for constraint in config.outcome_constraints:
        (name, weight), *others = constraint.metric_weights
        if others or constraint.relative or weight == 0:
            raise UnsupportedError(f"A limit is a number for one metric; got {constraint}.")
        above = (constraint.op == ComparisonOp.GEQ) == (weight > 0)
        limits.append((name, constraint.bound / weight, "above" if above else "below"))
    return names[0], limits


def _observations(experiment, data, space, names):
    """Inputs and measurements of all trials that have some, and inputs of those that failed."""
    table = data.df
    keys = zip(table["trial_index"], table["arm_name"], table["metric_name"], strict=True)
    values = dict(zip(keys, table["mean"], strict=True))
    X, rows, failed = [], [], []
    for index, trial in sorted(experiment.trials.items()):
        for arm in trial.arms:
            point = space.point(arm.parameters)
            row = [values.get((index, arm.name, name), math.nan) for name in names]
            if trial.status in _WITHOUT_RESULT:
                failed.append(point)
            elif not all(map(math.isnan, row)):
                X.append(point)
                rows.append(row)
    measured = np.array(rows, dtype=float).reshape(len(rows), len(names))
    return space.points(X), measured, space.points(failed)
