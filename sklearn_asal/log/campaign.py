"""What a querier writes to its log, and how one is made that goes on from it."""

import hashlib
import importlib
import inspect
import json
import warnings
from pathlib import Path

import numpy as np

from ..exceptions import warn_user
from .file import FORMAT, CampaignLog
from .values import MISSING, decoded, encoded, rows


def begin(querier, data, has_z, names, z_names, library):
    """Write the first line: parameters and initial observations.

    Parameters
    ----------
    querier : BaseQuerier
    data : tuple
        Inputs, outputs, safety measurements or None, and status.
    has_z : bool
        Whether safety measurements were given.
    names, z_names : sequence of str or None
    library : str or None
        Of the tables that were given.

    Raises
    ------
    ValueError
        The file holds a campaign already.
    """
    from .. import __version__

    log = opened(querier)
    if log.size:
        raise ValueError(
            f"{log.path} holds a campaign already. Go on with it by "
            f"{type(querier).__name__}.resume({str(log.path)!r}), or pass another path as log."
        )
    X, y, z, _ = data
    querier._logged = _params(querier)
    log.write(
        "campaign",
        format=FORMAT,
        version=__version__,
        querier=f"{type(querier).__module__}:{type(querier).__qualname__}",
        params=querier._logged,
        policy=policy_of(querier),
        X=rows(X),
        y=rows(y),
        z=rows(z) if has_z else None,
        feature_names=None if names is None else list(map(str, names)),
        limit_names=z_names,
        library=library,
    )
    querier._log_size = log.size


def record(querier, event, safely=True, **facts):
    """Append what happened.

    Parameters
    ----------
    querier : BaseQuerier
        With a campaign that is logged.
    event : str
    safely : bool, default=True
        See :meth:`CampaignLog.write`.
    **facts
        Arrays of measurements, and what JSON can hold.

    Raises
    ------
    RuntimeError
        Somebody else wrote to the log meanwhile, or does so.
    """
    log = opened(querier)
    with log.writing:
        if log.size != querier._log_size:
            log.close()
            raise RuntimeError(
                f"{log.path} is not as this querier left it. Go on by "
                f"{type(querier).__name__}.resume({str(log.path)!r})."
            )
        params, before = _params(querier), querier._logged
        if params != before:
            changed = {name: one for name, one in params.items() if one != before.get(name)}
            log.write("params", params=changed)
            querier._logged, querier._log_size = params, log.size
        facts = {
            key: rows(one) if isinstance(one, np.ndarray) else one for key, one in facts.items()
        }
        log.write(event, safely=safely, **facts)
        querier._log_size = log.size


def close(querier):
    """Let others write to the log of a querier.

    Parameters
    ----------
    querier : BaseQuerier
    """
    for log in querier.log, querier.__dict__.get("_open_log"):
        if isinstance(log, CampaignLog):
            log.close()


def opened(querier):
    """The open log of a querier.

    Parameters
    ----------
    querier : BaseQuerier

    Returns
    -------
    CampaignLog
    """
    log = querier.log
    if not isinstance(log, CampaignLog):
        known = querier.__dict__.get("_open_log")
        if known is None or known.path != Path(log):
            known = querier._open_log = CampaignLog(log)
        log = known
    log.open()
    return log


def resume(kind, path, params):
    """A querier that goes on with a campaign.

    Parameters
    ----------
    kind : type
        The class that is asked for.
    path : str, path-like or CampaignLog
    params : dict
        Parameters in place of those in the log.

    Returns
    -------
    BaseQuerier
        Of the class in the log.

    Raises
    ------
    TypeError
        The campaign is one of another class.
    ValueError
        The log is damaged, or a parameter has to be passed again.
    """
    log = path if isinstance(path, CampaignLog) else CampaignLog(path)
    log.read()  # before anything is locked or mended
    log.open()
    try:
        log.repair()
        events = log.read()
        querier = _replayed(kind, log, events, params)
    except BaseException:
        log.close()
        raise
    querier.log = path if isinstance(path, CampaignLog) else str(path)
    if querier.log is not log:
        querier._open_log = log
    querier._logged, querier._log_size = _params(querier), log.size
    _check_policy(querier, events[0], log)
    if params:
        log.write("params", params={name: querier._logged[name] for name in params})
        querier._log_size = log.size
    return querier


def view(kind, path, params=None, events=None):
    """A querier with the campaign of a log that it does not write to, for looking at.

    The file is read, and neither locked nor mended, for its campaign may be going on. What was
    begun to be written when it was read is left out.

    Parameters
    ----------
    kind : type
        The class that is asked for, such as ``BaseQuerier``.
    path : str, path-like or CampaignLog
    params : dict, optional
        Parameters in place of those in the log. One that could not be written, and is not here,
        has its default.
    events : list of dict, optional
        Lines of the file, if they have been read.

    Returns
    -------
    BaseQuerier
        Of the class in the log, with ``log=None``.

    Raises
    ------
    FileNotFoundError
        There is no such file.
    TypeError
        The campaign is one of another class.
    ValueError, ImportError
        The log is damaged or of a later version, or its class cannot be imported.

    Warns
    -----
    UserWarning
        A parameter could not be written.
    """
    log = path if isinstance(path, CampaignLog) else CampaignLog(path)
    events, params = log.read() if events is None else events, dict(params or {})
    lost = [name for name in missing(events) if name not in params]
    if lost:
        warn_user(
            f"{log.path}: {', '.join(lost)} could not be written to the log, and "
            f"{'has its default' if len(lost) == 1 else 'have their defaults'}.",
            UserWarning,
        )
        known = inspect.signature(_class(events[0])).parameters
        params = {name: known[name].default for name in lost} | params
    return _replayed(kind, log, events, params)


def missing(events):
    """Parameters that could not be written.

    Parameters
    ----------
    events : list of dict

    Returns
    -------
    list of str
    """
    written = [event["params"] for event in events if event["event"] in ("campaign", "params")]
    return list(dict.fromkeys(k for params in written for k in params if params[k] == MISSING))


def _replayed(kind, log, events, params):
    """A querier that was told what a log says, without a log of its own."""
    querier = _begun(kind, log, events[0], params)
    with warnings.catch_warnings():
        # What they warn of was said when it was told.
        warnings.simplefilter("ignore")
        querier.fit(*_first(events[0]))
        _restore_names(querier, events[0])
        for number, event in enumerate(events[1:], start=2):
            _replay(querier, event, number, log)
    return querier.set_params(**params)


def _params(querier):
    """Parameters as JSON; MISSING for what cannot be written."""
    written = {}
    for name, value in querier.get_params(deep=False).items():
        if name != "log":
            try:
                written[name] = encoded(value)
            except TypeError:
                written[name] = MISSING
    # As they are read, so that they can be compared.
    return json.loads(json.dumps(written))


def _class(first):
    module, _, name = first["querier"].partition(":")
    found = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found


def _begun(kind, log, first, given):
    found = _class(first)
    if not issubclass(found, kind):
        raise TypeError(
            f"{log.path} is a campaign of {found.__name__}; resume it by {found.__name__}.resume."
        )
    params = {}
    for parameter, value in first["params"].items():
        if value == MISSING:
            if parameter not in given:
                raise ValueError(
                    f"{log.path}: the parameter {parameter} could not be written to the log; pass "
                    f"it again, as resume(path, {parameter}=...)."
                )
            params[parameter] = given[parameter]
        else:
            params[parameter] = decoded(value)
    return found(**params)


def _first(event):
    y = [np.nan if value is None else value for value in event["y"]]
    return np.array(event["X"], dtype=float), y, event["z"]


def _restore_names(querier, first):
    if first["feature_names"] is not None:
        querier.feature_names_in_ = np.array(first["feature_names"], dtype=object)
    querier._z_names, querier._library = first["limit_names"], first["library"]


def _replay(querier, event, number, log):
    name = event["event"]
    if name in ("proposal", "report"):
        return
    if name == "tell":
        index = event["index"]
        querier.tell(
            np.array(event["x"], dtype=float),
            event["y"] if any(value is not None for value in event["y"]) else None,
            event["z"],
            index=None if index is None else np.array(index),
            status="ok" if event["status"] is None else event["status"],
        )
    elif name == "forget":
        querier.forget(np.array(event["index"]))
    elif name == "correct":
        y = [np.nan if value is None else value for value in event["y"]]
        status = ["ok"] * len(y) if event["status"] is None else event["status"]
        querier.correct(np.array(event["index"]), y, event["z"], status=status)
    elif name == "params":
        known = {key: decoded(one) for key, one in event["params"].items() if one != MISSING}
        querier.set_params(**known)
    elif name == "ask":
        querier._hand_out(np.array(event["points"], dtype=float))
    elif name == "withdraw":
        querier.withdraw(None if event["x"] is None else np.array(event["x"], dtype=float))
    else:
        raise ValueError(
            f"{log.path}, line {number}: {name!r} is unknown to this version; update the package."
        )


def policy_of(querier):
    """The name of a policy, and a checksum of its file; None without any.

    Parameters
    ----------
    querier : BaseQuerier

    Returns
    -------
    dict of str to str or None
    """
    policy = getattr(querier, "policy", None)
    if policy is None:
        return None
    from ..policies.registry import ANY, locate

    path = locate(ANY if policy == "auto" else policy, safe=querier._safe)
    return {"name": str(policy), "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}


def _check_policy(querier, first, log):
    if first["policy"] and policy_of(querier) != first["policy"]:
        warn_user(
            f"{log.path}: the file of policy {first['policy']['name']} is not the one that the "
            "campaign began with; proposals may differ.",
            UserWarning,
        )
