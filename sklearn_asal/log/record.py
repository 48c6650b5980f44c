"""What happened in a campaign, as its log tells it."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..acquisition import Report
from ..space import box_of
from .values import decoded

_REPORTED = "y_mean", "y_std", "p_safe", "z_mean", "z_std"
# A measurement is of the proposal nearest to it, if that is no farther away along any axis, in
# widths of the bounds; as ``tell`` settles what is pending.
_NEAR = 0.02
# Proposals so far back are not looked for any more when something is told.
_REMEMBERED = 200


@dataclass
class Proposal:
    """A point that was proposed.

    Attributes
    ----------
    time : str
        As it is in the log, in UTC.
    x : list of float
    from_pool : bool
    report : dict of str to (float or list of float), or None
        What models expected of it: ``y_mean``, ``y_std``, and with limits ``p_safe``, ``z_mean``,
        ``z_std``; None where no report was asked for.
    """

    time: str
    x: list[float]
    from_pool: bool = False
    report: dict[str, Any] | None = None


@dataclass
class Run:
    """A measurement.

    Attributes
    ----------
    time : str
        When it was told, as it is in the log, in UTC.
    event : {"initial", "told", "corrected", "forgotten"}
    is_initial : bool
        Whether it was passed to ``fit``.
    number : int or None
        Its position in ``X_``; None for what was forgotten.
    x : list of float
    y : float or None
    z : float, bool, list or None
    status : {"ok", "aborted", "failed"}
    note : str
    proposal : Proposal or None
        What it was measured for.
    """

    time: str
    event: str
    is_initial: bool
    number: int | None
    x: list[float]
    y: float | None
    z: Any
    status: str
    note: str = ""
    proposal: Proposal | None = None


@dataclass
class Record:
    """A campaign.

    Attributes
    ----------
    first : dict
        The first line of the log.
    params : dict
        Parameters as they are now, as JSON.
    changes : list of (str, dict)
        Times, and parameters that changed then.
    runs : list of Run
        In the order in which they were told, those that were forgotten among them.
    open : list of Proposal
        Handed out, or proposed by the last query, and not measured.
    n_proposals : int
        Points that were proposed in all.
    feature_names, limit_names : list of str
        ``x0``, ``x1``, ..., and ``z`` or ``z0``, ``z1``, ... where they have no names.
    """

    first: dict[str, Any]
    params: dict[str, Any]
    feature_names: list[str]
    limit_names: list[str]
    changes: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    open: list[Proposal] = field(default_factory=list)
    n_proposals: int = 0

    @property
    def kept(self) -> list[Run]:
        """Measurements that were not forgotten, as in ``X_``."""
        return [run for run in self.runs if run.number is not None]

    def reports(self) -> list[Report | None]:
        """What was expected of each measurement since ``fit``; None where nobody said."""
        return [report_of(run.proposal) for run in self.kept if not run.is_initial]


def record_of(events: list[dict[str, Any]]) -> Record:
    """What happened, from the lines of a log. No querier is asked.

    Parameters
    ----------
    events : list of dict
        Of :meth:`CampaignLog.read`.

    Returns
    -------
    Record

    Raises
    ------
    ValueError
        A line is not what a querier writes.
    """
    lines = enumerate(events, start=1)
    try:
        return _record(lines)
    except (KeyError, TypeError, IndexError, AttributeError, ValueError) as error:
        number = next(lines, (len(events) + 1, None))[0] - 1
        raise ValueError(
            f"line {number} of the log is damaged: {type(error).__name__}: {error}. Restore the "
            "file from a backup."
        ) from None


def _record(lines):
    _, first = next(lines)
    record = Record(first, dict(first["params"]), *_names(first))
    z, box = first["z"], box_of(decoded(first["params"]["bounds"]), len(first["X"][0]))
    for i, (x, y) in enumerate(zip(first["X"], first["y"], strict=True)):
        z_i = None if z is None else z[i]
        record.runs.append(Run(first["time"], "initial", True, i, x, y, z_i, "ok"))
    places = list(range(len(record.runs)))  # in ``runs``, by position in ``X_``
    remembered: list[Proposal] = []
    last: list[Proposal] = []
    pending: list[Proposal] = []
    for _, event in lines:
        name, time = event["event"], event["time"]
        if name == "proposal":
            last = [Proposal(time, x, event["index"] is not None) for x in event["points"]]
            record.n_proposals += len(last)
            remembered = [*remembered, *last][-_REMEMBERED:]
        elif name == "report":
            _expect(last, event)
        elif name == "ask":
            pending, last = pending + last, []
        elif name == "withdraw":
            pending = [] if event["x"] is None else _without(pending, event["x"], box)
        elif name == "params":
            record.params |= event["params"]
            record.changes.append((time, event["params"]))
        elif name == "tell":
            for i, x in enumerate(event["x"]):
                run = Run(time, "told", False, None, x, *_outcome(event, i))
                run.note = event.get("note") or ""
                run.proposal = found = _nearest(remembered, x, box)
                if not any(one is found for one in last):
                    last = []  # proposed from less than is known now
                remembered, last, pending = (
                    [one for one in some if one is not found]
                    for some in (remembered, last, pending)
                )
                places.append(len(record.runs))
                record.runs.append(run)
        elif name == "correct":
            for i, position in enumerate(event["index"]):
                run = record.runs[places[position]]
                run.event = "corrected"
                run.y, run.z, run.status = _outcome(event, i)
        elif name == "forget":
            for position in event["index"]:
                record.runs[places[position]].event = "forgotten"
            gone = set(event["index"])
            places = [place for position, place in enumerate(places) if position not in gone]
    for run in record.runs:
        run.number = None
    for position, place in enumerate(places):
        record.runs[place].number = position
    record.open = pending + last
    return record


def report_of(proposal: Proposal | None) -> Report | None:
    """What was expected of a proposal, as queriers report it.

    Parameters
    ----------
    proposal : Proposal or None

    Returns
    -------
    Report or None
    """
    if proposal is None or proposal.report is None:
        return None
    parts: dict[str, Any] = {name: np.array([one]) for name, one in proposal.report.items()}
    return Report(**parts)


def _names(first):
    """Names of features and of limits."""
    z = first["z"]
    n_limits = 0 if z is None else len(z[0]) if isinstance(z[0], list) else 1
    limits = ["z"] if n_limits == 1 else [f"z{j}" for j in range(n_limits)]
    features = first["feature_names"] or [f"x{j}" for j in range(len(first["X"][0]))]
    return features, first["limit_names"] or limits


def _outcome(event, i):
    """Output, safety measurement and status of one of several that were told."""
    z, status = event["z"], event["status"]
    return event["y"][i], None if z is None else z[i], "ok" if status is None else status[i]


def _expect(proposals, event):
    """Keep a report with the proposals that it is about."""
    parts = {name: event[name] for name in _REPORTED if event.get(name) is not None}
    if "y_mean" in parts and all(len(part) == len(proposals) for part in parts.values()):
        for i, proposal in enumerate(proposals):
            proposal.report = {name: part[i] for name, part in parts.items()}


def _nearest(proposals, x, box):
    """The proposal that a measurement is of, None if there is none."""
    if not proposals:
        return None
    points = box.to_unit(np.array([one.x for one in proposals], dtype=float))
    away = np.abs(points - box.to_unit(np.array([x], dtype=float))).max(axis=1)
    # Of equally near ones the last.
    i = len(away) - 1 - away[::-1].argmin()
    return proposals[i] if away[i] <= _NEAR else None


def _without(proposals, points, box):
    for x in points:
        found = _nearest(proposals, x, box)
        proposals = [one for one in proposals if one is not found]
    return proposals
