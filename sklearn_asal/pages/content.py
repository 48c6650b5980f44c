"""What a page says of a campaign, from the lines of its log.

A querier may be of anybody's class, and raise anything: what it cannot do is said, and takes
nothing else from the page.
"""

import importlib.metadata
import json
import platform
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from .. import __version__
from ..displays.campaign_data import CampaignData, data_of
from ..log.campaign import missing, policy_of, view
from ..log.record import Proposal, Record, Run, record_of, report_of
from ..log.values import decoded
from ..names import suggestion
from ..queriers.base import BaseQuerier
from ..queriers.cut_short import ABORTED, FAILED
from ..queriers.progress import Progress
from .blocks import Block, Facts, Page, Picture, Section, Table, Text
from .figures import Figures

# Measurements that are listed while a campaign runs, and queries to look ahead.
_LAST, _AHEAD = 10, 10
_DIGITS = 6
_NONE = "–"
# Numbers with more decimals, or as large as that, are written with a power of ten.
_MOST_DECIMALS, _LARGE = 8, 1e9


@dataclass(frozen=True)
class Names:
    """What a log does not say.

    Attributes
    ----------
    y_name : str
    z_names : sequence of str or None
    units : dict of str to str
        By the names of features, output and limits.
    """

    y_name: str = "y"
    z_names: Sequence[str] | None = None
    units: dict[str, str] = field(default_factory=dict)

    def options(self) -> dict[str, Any]:
        """For displays."""
        return {"y_name": self.y_name, "z_name": self.z_names, "units": self.units}


class Campaign(NamedTuple):
    """A campaign that was read: its record, and where they can be made its querier and data."""

    record: Record
    querier: Any
    data: CampaignData | None
    warnings: list[str]


def check_names(record: Record, names: Names) -> None:
    """Raise where names are not of the campaign.

    Parameters
    ----------
    record : Record
    names : Names
        As the commands take them.

    Raises
    ------
    ValueError
        ``--limits`` has another number of names than there are limits, or ``--units`` has a name
        of nothing.
    """
    n_limits = len(record.limit_names) if "safety_threshold" in record.params else 0
    default = ["z"] if n_limits == 1 else [f"z[{j}]" for j in range(n_limits)]
    z_names = list(record.first["limit_names"] or default)[:n_limits]
    if names.z_names is not None:
        if len(names.z_names) != n_limits:
            has = f"{n_limits} limit(s) ({', '.join(z_names)})" if n_limits else "none to be named"
            raise ValueError(
                f"--limits has {len(names.z_names)} name(s), but the campaign has {has}; name "
                "each limit once, or leave --limits out."
            )
        z_names = list(names.z_names)
    known = [*record.feature_names, names.y_name, *z_names]
    for name in names.units:
        if name not in known:
            raise ValueError(
                f"--units: nothing is called {name!r}; the names are "
                f"{', '.join(map(repr, known))}{suggestion(name, known)}"
            )


def read(events: list[dict[str, Any]], name: str, names: Names) -> Campaign:
    """A campaign, as far as it can be had on this machine.

    Parameters
    ----------
    events : list of dict
    name : str
        Of the log.
    names : Names

    Returns
    -------
    Campaign
        Where the querier of the log cannot be made, such as one of a class or a policy that is not
        here, its place is None and a warning says why.
    """
    record, notes = record_of(events), []
    lost = missing(events)
    if lost:
        notes.append(
            f"{', '.join(lost)} could not be written to the log: figures, errors and proposals "
            "on this page are without."
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            querier = view(BaseQuerier, name, events=events)
        if record.first["policy"] and policy_of(querier) != record.first["policy"]:
            notes.append(
                f"The file of policy {record.first['policy']['name']} on this machine is not the "
                "one that the campaign began with."
            )
        return Campaign(record, querier, data_of(querier, **names.options()), notes)
    except Exception as error:
        notes.append(f"There are no figures and no errors: {error}")
        return Campaign(record, None, None, notes)


def running(campaign: Campaign, title: str, names: Names, figures: Figures) -> Page:
    """The page to look at while a campaign runs.

    Parameters
    ----------
    campaign : Campaign
    title : str
    names : Names
    figures : Figures

    Returns
    -------
    Page
    """
    sections = [
        *_notes(campaign),
        *_sections(campaign, names, figures),
        Section("The last measurements", [_table(campaign, names, _LAST)]),
    ]
    return Page(title, sections)


def for_the_records(
    campaign: Campaign, title: str, names: Names, figures: Figures, file: dict[str, str]
) -> Page:
    """The page with all that is known.

    Parameters
    ----------
    campaign : Campaign
    title : str
    names : Names
    figures : Figures
    file : dict of str to str
        Of the log: what there is to say of it.

    Returns
    -------
    Page
    """
    sections = [
        *_notes(campaign),
        *_sections(campaign, names, figures),
        Section("All measurements", [_table(campaign, names, None)]),
        Section("How it was done", _provenance(campaign, names, file)),
    ]
    return Page(title, sections)


def notice(title: str, text: str, is_warning: bool = False) -> Page:
    """A page that says one thing.

    Parameters
    ----------
    title, text : str
    is_warning : bool, default=False

    Returns
    -------
    Page
    """
    return Page(title, [Section("No campaign to show", [Text(text, is_warning)])])


def _notes(campaign):
    notes = [Text(text, is_warning=True) for text in campaign.warnings]
    return [Section("To be noted", notes)] if notes else []


def _sections(campaign, names, figures):
    """What both pages have: the state, the next point, the error, the figures."""
    querier, data = campaign.querier, campaign.data
    proposals, next_blocks = _next(campaign, names)
    sections = [
        Section("State", [Facts(_state(campaign))]),
        Section("The next measurement", next_blocks),
    ]
    if querier is None:
        return sections
    # What is pending has a mark of its own.
    pending = querier.pending_.tolist()
    proposals = proposals[[x not in pending for x in proposals.tolist()]]
    # Each figure by itself: what one cannot be drawn for does not take the others away.
    drawn: list[tuple[str, Any]] = [
        (
            _kind(data.X.shape[1]),
            lambda: figures.campaign(querier, data, proposals, names.options()),
        )
    ]
    if len(data.thresholds):
        reports = campaign.record.reports()
        drawn.append(
            ("Margins", lambda: figures.safety(querier, data, reports, names.options())),
        )
    sections += [Section(title, _picture(draw)) for title, draw in drawn]
    unit = names.units.get(names.y_name)
    enough = [
        *_enough(campaign, names),
        *_picture(lambda: figures.progress(querier, data, names.y_name, unit)),
    ]
    sections.insert(2, Section("Have I measured enough?", enough))
    return sections


def _kind(n_features):
    if n_features == 1:
        return "Curve"
    return "Map" if n_features <= 5 else "Inputs and outcomes"


def _picture(draw):
    try:
        picture: Picture | None = draw()
    except Exception as error:
        return [Text(f"This figure cannot be drawn: {error}", is_warning=True)]
    return [] if picture is None else [picture]


# -- state ---------------------------------------------------------------------------------


def _state(campaign):
    record, data = campaign.record, campaign.data
    kept = record.kept
    n_told = sum(not run.is_initial for run in kept)
    pairs = [("measurements", f"{len(kept)} ({len(kept) - n_told} of them to begin with)")]
    if data is not None and len(data.thresholds):
        n_known = int((data.status != FAILED).sum())
        pairs.append(("safe", f"{int(data.is_safe.sum())} of {n_known}"))
    for status in (ABORTED, FAILED):
        count = sum(run.status == status for run in kept)
        if count:
            unknown = " (nobody knows whether they were safe)" if status == FAILED else ""
            pairs.append((status, f"{count}{unknown}"))
    taken_back = len(record.runs) - len(kept)
    if taken_back:
        pairs.append(("taken back", str(taken_back)))
    budget = record.params.get("budget")
    if isinstance(budget, int):
        pairs.append(("budget", f"{n_told} of {budget} queries are told"))
    pairs.append(("last measurement", _when(record.runs[-1].time)))
    return pairs


def _when(time):
    return time[:19].replace("T", " ") + " UTC"


# -- next ----------------------------------------------------------------------------------


def _next(campaign, names):
    """Points to be marked, and what is said of them."""
    record, querier = campaign.record, campaign.querier
    none = np.empty((0, len(record.feature_names)))
    proposals, text = record.open, "Proposed, and not measured yet."
    if not proposals:
        if _is_from_pool(record):
            return none, [Text("It is chosen from a pool, which a log does not hold: ask for it.")]
        if querier is None:
            return none, [Text("Nothing is proposed that is not measured.")]
        try:
            points = _quietly(querier.query)
        except Exception as error:
            return none, [Text(f"There is none: {error}")]
        points = np.asarray(points, dtype=float)
        proposals = [Proposal("", x) for x in points.tolist()]
        text = "Nobody has asked for it yet. It would be:"
    reports = [report_of(one) for one in proposals]
    said = [
        querier.assess(one.x) if report is None and hasattr(querier, "assess") else report
        for one, report in zip(proposals, reports, strict=True)
    ]
    blocks: list[Block] = [Text(text)]
    blocks += [
        Facts(_expected(*pair, campaign, names)) for pair in zip(proposals, said, strict=True)
    ]
    return np.array([one.x for one in proposals], dtype=float), blocks


def _expected(proposal, report, campaign, names):
    """What a proposal is, and what is expected of it."""
    features, z_names = campaign.record.feature_names, _z_names(campaign, names)
    pairs = [
        (name, f"{_number(value)} {names.units.get(name, '')}".strip())
        for name, value in zip(features, proposal.x, strict=True)
    ]
    if report is not None:
        if report.p_safe is not None:
            pairs.append(("probability to be safe", _percent(report.p_safe)))
        said = [(names.y_name, report.y_mean, report.y_std)]
        if report.z_mean is not None:
            both = np.ravel(report.z_mean), np.ravel(report.z_std)
            said += [(name, both[0][j:], both[1][j:]) for j, name in enumerate(z_names)]
        pairs += [
            (f"expected {name}", f"{_spread(mean, std)} {names.units.get(name, '')}".strip())
            for name, mean, std in said
        ]
    if proposal.time:
        pairs.append(("proposed", _when(proposal.time)))
    return pairs


def _is_from_pool(record):
    return any(run.proposal is not None and run.proposal.from_pool for run in record.runs)


def _percent(p_safe):
    return _NONE if p_safe is None else f"{100 * float(np.ravel(p_safe)[0]):.1f} %"


def _spread(mean, std):
    """A mean with the digits that its standard deviation asks for, two of which are shown."""
    mean, std = float(mean[0]), float(std[0])
    if not (np.isfinite(mean) and np.isfinite(std) and std > 0):
        return f"{mean:.{_DIGITS}g} ± {std:.2g}"
    digits = 1 - int(f"{std:.1e}".partition("e")[2])
    if digits <= _MOST_DECIMALS and abs(mean) < _LARGE and std < _LARGE:
        digits = max(digits, 0)
        return f"{mean:.{digits}f} ± {std:.{digits}f}"
    digits += int(f"{mean:e}".partition("e")[2])
    return f"{mean:.{max(digits, 1)}e} ± {std:.1e}"


def _quietly(call):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return call()


# -- enough --------------------------------------------------------------------------------


def _enough(campaign, names):
    try:
        progress = _quietly(lambda: campaign.querier.progress(n_more=_AHEAD))
    except Exception as error:
        return [Text(f"The error cannot be said: {error}", is_warning=True)]
    if not np.isfinite(progress.rmse_upper):
        return [Text("Nothing can be said yet: measure outputs that differ from each other.")]
    y = names.y_name
    unit = names.units.get(y)

    def number(value):
        return f"{value:.3g}" + ("" if unit is None else f" {unit}")

    pairs = [
        ("expected error of a model", f"{number(progress.rmse)} (RMSE of {y})"),
        ("larger with 15 %", number(progress.rmse_upper)),
        (f"after {_AHEAD} more", number(progress.rmse_after[-1])),
        ("noise", number(progress.noise_std)),
    ]
    if progress.repeat_std is not None:
        freedom = f"{progress.repeat_dof} degrees of freedom"
        pairs.append(("scatter of repeats", f"{number(progress.repeat_std)} ({freedom})"))
    if campaign.data is not None and len(campaign.data.thresholds):
        pairs.append(("likely safe", f"{100 * progress.likely_safe:.0f} % of the bounds"))
    blocks = [Text(_verdict(progress, campaign.querier.stop_when, number)), Facts(pairs)]
    if _is_from_pool(campaign.record):
        blocks.append(Text("It is about all of the bounds, for a log does not hold the pool."))
    drift = progress.drift
    if drift is not None and drift.is_significant:
        blocks.append(
            Text(
                f"{y} has drifted by {number(drift.change)} (standard error {number(drift.std)}).",
                is_warning=True,
            )
        )
    return blocks


def _verdict(progress: Progress, stop_when: float | None, number: Any) -> str:
    if progress.is_enough:
        return f"Yes: the error is below {number(stop_when)} (stop_when) with 85 %."
    if progress.is_enough is not None:
        return f"Not yet: the error may be above {number(stop_when)} (stop_when)."
    if progress.rmse_after[-1] > 0.9 * progress.rmse:
        return "No error that would do was stated (stop_when). More measurements bring little."
    return "No error that would do was stated (stop_when). More measurements make it smaller."


# -- measurements --------------------------------------------------------------------------


def names_with_units(name: str, names: Names) -> str:
    """A name with its unit, if it has one."""
    unit = names.units.get(name)
    return name if unit is None else f"{name} ({unit})"


def _z_names(campaign, names):
    if campaign.data is not None and len(campaign.data.thresholds):
        return [] if campaign.data.is_output else campaign.data.z_names
    n = len(campaign.record.limit_names)
    given = names.z_names
    return list(given) if given is not None and len(given) == n else campaign.record.limit_names


def _table(campaign, names, last):
    """Measurements: all in their order, or the last ones from the newest on."""
    record, z_names = campaign.record, _z_names(campaign, names)
    titles = [names_with_units(n, names) for n in (*record.feature_names, names.y_name, *z_names)]
    header = ["number", "time (UTC)", *titles, "outcome", "note"]
    runs = record.runs if last is None else record.runs[: -last - 1 : -1]
    everything, predicted = last is None, False
    if everything:
        predicted = any(run.proposal is not None and run.proposal.report for run in runs)
    rows, marked = [], []
    for run in runs:
        z = [None] * len(z_names) if run.z is None else run.z
        z = z if isinstance(z, list) else [z]
        row = [
            _NONE if run.number is None else str(run.number),
            run.time[:19].replace("T", " "),
            *map(_number, run.x),
            *map(_number, (run.y, *z[: len(z_names)])),
        ]
        outcome, mark = _outcome(run, campaign.data)
        if predicted:
            report = report_of(run.proposal)
            row.append(_NONE if report is None else _spread(report.y_mean, report.y_std))
            row.append(_NONE if report is None else _percent(report.p_safe))
        rows.append([*row, outcome, run.note])
        marked.append(mark)
    if predicted:
        # What was known when it was proposed, for whoever looks back.
        header[-2:-2] = [f"{names.y_name} expected then", "probability to be safe then"]
    order = "in the order in which they were told" if everything else "the newest first"
    caption = (
        f"{order}; numbers as forget and correct take them; rounded to {_DIGITS} digits, of which "
        "the log has all"
    )
    return Table(caption, header, rows, marked)


def _outcome(run: Run, data: CampaignData | None) -> tuple[str, str]:
    """How a run ended, in words, and the kind of its row."""
    word, mark = run.status, ""
    if run.number is None:
        return "taken back", "forgotten"
    if run.status == "aborted":
        mark = "unsafe"
    elif run.status == "ok" and data is not None and len(data.thresholds):
        is_safe = bool(data.is_safe[run.number])
        word, mark = ("safe", "") if is_safe else ("unsafe", "unsafe")
    return (f"{word}, corrected" if run.event == "corrected" else word), mark


def _number(value):
    if value is None:
        return _NONE
    return f"{value:.{_DIGITS}g}" if isinstance(value, float) else str(value)


# -- provenance ----------------------------------------------------------------------------


def _provenance(campaign, names, file):
    record = campaign.record
    first, policy = record.first, record.first["policy"]
    pairs = [
        *file.items(),
        ("begun", f"{_when(first['time'])} by sklearn-asal {first['version']}"),
        ("querier", first["querier"].replace(":", ".")),
        ("policy", "none" if policy is None else policy["name"]),
    ]
    if policy is not None:
        pairs.append(("SHA-256 of the policy", policy["sha256"]))
    pairs.append(("proposals in the log", str(record.n_proposals)))
    units = [names_with_units(n, names) for n in record.feature_names]
    pairs.append(("inputs", ", ".join(units)))
    pairs.append(("output", names_with_units(names.y_name, names)))
    z_names = _z_names(campaign, names)
    if z_names:
        pairs.append(("limits on", ", ".join(names_with_units(n, names) for n in z_names)))
    versions = (f"{name} {_version(name)}" for name in ("numpy", "scipy", "matplotlib"))
    system = f"Python {platform.python_version()}, {', '.join(versions)}"
    pairs.append(("this page", f"sklearn-asal {__version__}, {system}"))
    rows = [[name, _value(one)] for name, one in record.params.items()]
    blocks: list[Block] = [
        Facts(pairs),
        Table("parameters, as they are now", ["name", "value"], rows),
    ]
    if record.changes:
        changes = [
            [_when(time), name, _value(one)]
            for time, changed in record.changes
            for name, one in changed.items()
        ]
        blocks.append(Table("parameters that were changed", ["time", "name", "value"], changes))
    return blocks


def _version(name):
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "of unknown version"


def _value(value):
    """A parameter as text."""
    try:
        return repr(decoded(value))
    except (ValueError, TypeError, AttributeError, ImportError):
        return json.dumps(value)
