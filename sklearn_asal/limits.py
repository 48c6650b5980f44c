"""Safety limits: margins of measurements, and what safe means in words."""

import numpy as np

from .scaling import bounded_ratio, is_auto, root_mean_square, unit_distance
from .validation import finite_number, is_boolean


def safety_margins(z, threshold, when, scale):
    """Distance to each limit, at unit scale; zero or more is safe.

    Parameters
    ----------
    z : ndarray of shape (n,) or (n, n_limits)
        Booleans mean safe and not safe, whatever the threshold: their margins are 1 and -1.
    threshold : float or sequence of float
    when : {"above", "below"} or a sequence of these
    scale : float, "auto" or sequence of float
        "auto" takes the root mean square of ``z - threshold`` (one where that
        is zero). The threshold itself never moves.

    Returns
    -------
    ndarray of shape (n, n_limits)
        ``(z - threshold) / scale``, with its sign turned where safe is below.

    Raises
    ------
    ValueError
        A parameter is not a finite number, unknown, or has the wrong length.
    """
    Z, thresholds, signs, boolean = _sides(z, threshold, when)
    if is_auto(scale):
        scales = _auto_scales(Z, thresholds, boolean)
    else:
        scales = [_scale(value) for value in _each(scale, len(signs), "z_scale")]
        if boolean is not None:
            scales = np.where(boolean, 1.0, scales)
    scales = [sign * value for sign, value in zip(signs, scales, strict=True)]
    return unit_distance(Z, _row(thresholds), _row(scales))


def distances_to_limits(z, threshold, when):
    """Distance to each limit in the units of ``z``; zero or more is safe.

    Parameters
    ----------
    z, threshold, when
        See :func:`safety_margins`.

    Returns
    -------
    ndarray of shape (n, n_limits)
    """
    Z, thresholds, signs, _ = _sides(z, threshold, when)
    return np.array(signs) * (Z - np.array(thresholds))


def margin_scales(z, threshold, when):
    """Root mean square distance from each limit, with 1 in place of 0.

    Parameters
    ----------
    z, threshold, when
        See :func:`safety_margins`.

    Returns
    -------
    ndarray of shape (n_limits,)
    """
    Z, thresholds, _, boolean = _sides(z, threshold, when)
    return _auto_scales(Z, thresholds, boolean)


def _auto_scales(Z, thresholds, boolean):
    distances = bounded_ratio(Z, _row(thresholds), 1.0)
    largest = np.maximum(np.abs(Z).max(axis=0), np.abs(thresholds))
    scales = root_mean_square(distances, largest)
    return scales if boolean is None else np.where(boolean, 1.0, scales)


def boolean_limits(z):
    """Which limits are measured as safe or not safe, without a distance.

    Parameters
    ----------
    z : ndarray of shape (n,) or (n, n_limits)
        NaN, beside booleans, means that nothing was measured.

    Returns
    -------
    bool ndarray of shape (n_limits,)
    """
    columns = z.reshape(len(z), -1).T
    if z.dtype == object:
        columns = [column[column == column] for column in columns]
    return np.array([is_boolean(column) for column in columns])


def without_distance(z, threshold, when):
    """Limits that are measured in flags or counts, with some measurements at the limit itself.

    Parameters
    ----------
    z, threshold, when
        See :func:`safety_margins`.

    Returns
    -------
    list of tuple (limit, value)
        The number of the limit, and a threshold that tells safe values from others.
    """
    Z, thresholds, signs, _ = _sides(z, threshold, when)
    found = []
    for j, (column, limit) in enumerate(zip(Z.T, thresholds, strict=True)):
        if len(column) < 2 or not (column == limit).any():
            continue
        values, whole = np.unique(column), (column == np.round(column)).all()
        beyond = ((column - limit) * signs[j] > 0).any()
        flags = len(values) <= 2 and (whole or len(column) > 2)
        # Counts are never below 0, so that a limit of 0 leaves them on one side.
        one_sided = not beyond or (limit == 0 and values[0] == 0)
        if flags or (whole and len(column) > 2 and one_sided):
            gap = 1.0 if whole else np.ptp(values)
            # Safe is what lies beyond the limit, or else what lies at it.
            found.append((j, float(limit + signs[j] * (gap if beyond else -gap) / 2)))
    return found


def like_flags(z, threshold, when):
    """Limits beyond 0 and 1 of measurements that have these two values only.

    Parameters
    ----------
    z, threshold, when
        See :func:`safety_margins`.

    Returns
    -------
    list of int
        Their numbers.
    """
    Z, thresholds, _, _ = _sides(z, threshold, when)
    both = zip(Z.T, thresholds, strict=True)
    beyond = [(j, column) for j, (column, limit) in enumerate(both) if not 0 <= limit <= 1]
    return [j for j, column in beyond if np.unique(column).tolist() == [0.0, 1.0]]


def _sides(z, threshold, when):
    """Measurements ``(n, n_limits)``; threshold and sign of each limit; None or which are booleans.

    Booleans become margins, with a threshold of zero.
    """
    Z, boolean = z.reshape(len(z), -1), None
    n_limits = Z.shape[1]
    thresholds = [
        finite_number(value, "safety_threshold")
        for value in _each(threshold, n_limits, "safety_threshold")
    ]
    signs = [1 if _relation(side) == ">=" else -1 for side in _each(when, n_limits, "safe_when")]
    if z.dtype != np.float64:
        boolean = boolean_limits(z)
        numbers = Z.astype(np.float64)
        Z = np.where(boolean, 2.0 * numbers - 1.0, numbers)
        thresholds = [0.0 if b else value for b, value in zip(boolean, thresholds, strict=True)]
        signs = [1 if b else sign for b, sign in zip(boolean, signs, strict=True)]
    return Z, thresholds, signs, boolean


def _row(values):
    # A plain number saves the time of making an array.
    return values[0] if len(values) == 1 else np.array(values)


def _scale(value):
    if is_auto(value):
        raise ValueError("z_scale must be 'auto' for all limits or a number for each of them.")
    return finite_number(value, "z_scale", positive=True, auto=True)


def safety_rule(threshold, when, boolean=()):
    """Say in words what safe means.

    Parameters
    ----------
    threshold, when
        See :func:`safety_margins`.
    boolean : sequence of bool, default=()
        Which limits are measured as safe or not safe; none by default.

    Returns
    -------
    str

    Examples
    --------
    >>> from sklearn_asal.limits import safety_rule
    >>> safety_rule(350.0, "below")
    'safe means z <= 350.0'
    >>> safety_rule([0.0, 2.5], ["above", "below"])
    'safe means z[0] >= 0.0 and z[1] <= 2.5'
    >>> safety_rule(0.0, "above", [True])
    'safe means z is True'
    """
    n_limits = max(np.size(threshold), np.size(when), len(boolean))
    boolean = boolean if len(boolean) else [False] * n_limits
    limits = zip(
        _each(when, n_limits, "safe_when"),
        _each(threshold, n_limits, "safety_threshold"),
        boolean,
        strict=True,
    )
    single = n_limits == 1 and np.ndim(threshold) == np.ndim(when) == 0
    terms = (
        f"{'z' if single else f'z[{j}]'} {'is True' if flag else f'{_relation(side)} {value}'}"
        for j, (side, value, flag) in enumerate(limits)
    )
    return f"safe means {' and '.join(terms)}"


def _relation(side):
    if side not in ("above", "below"):
        raise ValueError(f"safe_when must be 'above' or 'below', got {side!r}.")
    return ">=" if side == "above" else "<="


def _each(value, n_limits, name):
    """A scalar for every limit, or one value for each."""
    single = isinstance(value, (float, int, str)) or np.ndim(value) == 0
    values = [value] * n_limits if single else list(value)
    if len(values) != n_limits:
        raise ValueError(
            f"{name} has {len(values)} values, but z has {n_limits} column(s), one for each limit."
        )
    return values
