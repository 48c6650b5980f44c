"""Between the user's units and unit scale: inputs, outputs and safety measurements."""

import functools
import math
import re
from numbers import Integral

import numpy as np
from sklearn.utils import check_array, check_scalar

# Unit-scale values are kept below this, so that later squares and sums stay finite. As an array,
# for NumPy takes half a microsecond to make one of a plain number.
_LARGEST = np.array(1e100)
_LEAST = -_LARGEST
# Policies see values of about -4 to 4 in training. Beyond 10 a scale is wrong rather than a tail
# long; a spread below 0.02 over half the domain is less than the noise they are trained with.
_TOO_LARGE = 10.0
_TOO_SMALL = 0.02
# Overshoot, in widths of the box, that counts as rounding.
_ROUNDING = 1e-6


def finite_array(data, name, *, ndim=2):
    """Copy finite real numbers into a float64 array, or say what is wrong with which input.

    Parameters
    ----------
    data : array-like
    name : str
        What the user calls it; part of every error message.
    ndim : {1, 2}, default=2
        2 demands rows and columns; 1 leaves the shape to the caller.

    Returns
    -------
    ndarray of float64

    Raises
    ------
    TypeError, ValueError
        Sparse, complex, text, NaN, infinite, empty, or of the wrong dimension.
    """
    if data is None:
        raise ValueError(f"{name} is None; an array of numbers is needed.")
    if type(data) is np.ndarray and data.dtype == np.float64 and data.ndim == ndim and data.size:
        # What a control loop passes: the checks below take longer than a policy's answer.
        if np.isfinite(data).all():
            return np.array(data, order="C")
    try:
        raw = np.asarray(data)
        if raw.dtype == object and any(isinstance(value, (str, bytes)) for value in raw.flat):
            raise ValueError("text where numbers are needed")
        # dtype="numeric", not float64: the latter would silently turn text into numbers.
        array = check_array(
            data, dtype="numeric", ensure_2d=ndim == 2, allow_nd=ndim != 2, input_name=name
        )
        # One memory layout, for the last digit of a sum may depend on it.
        array = np.array(array, dtype=np.float64, order="C")
        # A wider integer or float type may become infinite only now.
        return check_array(array, ensure_2d=False, allow_nd=True, input_name=name)
    except (TypeError, ValueError, OverflowError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        named = re.search(rf"\b{name}\b", str(error))
        raise kind(str(error) if named else f"{name}: {error}") from error


def as_rows(data, n_columns):
    """Make a single row, or a column where there is one only, two-dimensional."""
    if data is None:
        return None
    if hasattr(data, "to_frame") and n_columns > 1:
        return data.to_frame().T  # a row of a DataFrame keeps its column names
    if not hasattr(data, "ndim"):
        try:
            data = np.asarray(data)
        except ValueError:  # ragged; validation says so with a name
            return data
    return np.reshape(data, (-1, 1) if n_columns == 1 else (1, -1)) if data.ndim < 2 else data


def observations(X, y, z=None, x_name="X"):
    """Validate observations; copies of shape ``(n, n_features)``, ``(n,)`` and that of ``z``.

    A single column of ``y`` or ``z`` becomes one-dimensional.

    Raises
    ------
    TypeError, ValueError
        Naming the input at fault.
    """
    X = finite_array(X, x_name)
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    columns = []
    for name, data in (("y", y), ("z", z)):
        if data is None:
            columns.append(None)
            continue
        single = np.isscalar(data) or getattr(data, "ndim", None) == 0
        if isinstance(data, float):  # an array is checked faster
            data = np.array([data])
        elif single:
            data = [data]
        values = finite_array(data, name, ndim=1)
        if values.ndim == 2 and values.shape[1] == 1:
            values = values[:, 0]
        if values.ndim > (1 if name == "y" else 2):
            allowed = "(n,)" if name == "y" else "(n,) or (n, n_limits)"
            raise ValueError(f"{name} must have shape {allowed}, got {values.shape}.")
        if len(values) != len(X):
            raise ValueError(
                f"{name} has {len(values)} entries, but {x_name} has {len(X)} rows; "
                "every observation needs one."
            )
        columns.append(values)
    return X, *columns


def check_features(querier, data, n_features, name, expected):
    """Compare number and, where both sides have them, names of features with those expected."""
    if expected is not None and n_features != expected:
        raise ValueError(
            f"{name} has {n_features} features, but {type(querier).__name__} is expecting "
            f"{expected} features as input."
        )
    columns = getattr(data, "columns", None)
    names = getattr(querier, "feature_names_in_", None)
    # Plain arrays pass, for query returns one; so do columns without text for names.
    if columns is None or names is None or not all(isinstance(name, str) for name in columns):
        return
    if list(columns) != list(names):
        raise ValueError(
            "The feature names should match those that were passed during fit: "
            f"{name} has {list(columns)}, fit had {list(names)}."
        )


def limit_names(z):
    """Names of the limits, when ``z`` is a DataFrame or one labelled row; else None."""
    labels = getattr(z, "columns", getattr(z, "index", None))
    if labels is None or callable(labels) or not all(isinstance(name, str) for name in labels):
        return None
    return list(labels)


class Box:
    """The box that queries are chosen from, and its map to the unit cube.

    Parameters
    ----------
    bounds : None, pair of float, or array-like of shape (n_features, 2)
        Lower and upper limit of each feature in the user's units. One pair
        holds for every feature, None means ``(0, 1)``.
    n_features : int

    Raises
    ------
    ValueError
        Limits that are not finite, not ordered, or of the wrong number.

    Examples
    --------
    >>> from sklearn_asal.space import Box
    >>> box = Box([(0, 6), (-5, 30)], n_features=2)
    >>> box.to_unit([[3, 30]])
    array([[0.5, 1. ]])
    >>> box.from_unit([[0.5, 0.0]])
    array([[ 3., -5.]])
    """

    def __init__(self, bounds, n_features):
        limits = _limits(bounds)
        if limits.shape == (2,):
            limits = np.tile(limits, (n_features, 1))
        if limits.shape != (n_features, 2):
            raise ValueError(
                f"bounds must hold one (low, high) pair for each of the {n_features} features, "
                f"shape ({n_features}, 2); its shape is {limits.shape}."
            )
        self.lower, self.upper = limits.T.copy()
        with np.errstate(over="ignore", invalid="ignore"):
            self.width = self.upper - self.lower
        for j in np.flatnonzero(~((self.width > 0) & np.isfinite(self.width))):
            raise ValueError(
                f"bounds of feature {j} must be finite with low < high, got "
                f"({self.lower[j]:g}, {self.upper[j]:g})."
            )

    @classmethod
    def of(cls, bounds, n_features):
        """The box of these arguments, the same object where one has been made already."""
        limits = _limits(bounds)
        return _box(limits.tobytes(), limits.shape, n_features)

    def to_unit(self, X):
        """Map points in the user's units, ``(n, n_features)``, so that the box is the unit cube."""
        return _bounded_ratio(X, self.lower, self.width)

    def from_unit(self, points):
        """Map points of the unit cube to the user's units, never outside the bounds."""
        X = np.asarray(points) * self.width
        X += self.lower
        np.maximum(X, self.lower, out=X)
        return np.minimum(X, self.upper, out=X)

    def outside(self, X, tolerance=_ROUNDING):
        """Rows of ``X`` beyond the bounds by more than ``tolerance`` widths, a bool ``(n,)``."""
        slack = tolerance * self.width
        low, high = self.lower - slack, self.upper + slack
        columns = np.ascontiguousarray(np.transpose(X))  # loops over few features are slow
        return ((columns < low[:, None]) | (columns > high[:, None])).any(axis=0)

    def complaint(self, X):
        """What to say about measured points outside the bounds; None if there are none."""
        outside = self.outside(X)
        if not outside.any():
            return None
        j = np.abs(self.to_unit(X) - 0.5).max(axis=0).argmax()
        return (
            f"{outside.sum()} of {len(X)} measured points lie outside bounds: feature {j} reaches "
            f"from {X[:, j].min():.6g} to {X[:, j].max():.6g}, but its bounds are "
            f"({self.lower[j]:.6g}, {self.upper[j]:.6g}). The points are kept and used; proposals "
            "stay inside. If X has other units, or queries may lie there, set "
            "bounds=[(low, high), ...] in the units of X."
        )


def _limits(bounds):
    try:
        return np.asarray((0.0, 1.0) if bounds is None else bounds, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"bounds must hold one (low, high) pair of numbers for each feature: {error}"
        ) from error


@functools.lru_cache(maxsize=64)
def _box(limits, shape, n_features):
    return Box(np.frombuffer(limits).reshape(shape), n_features)


def standardized(y, loc, scale):
    """Outputs at the scale the policies are trained on: ``(y - loc) / scale``.

    Parameters
    ----------
    y : ndarray of shape (n,)
    loc, scale : float or "auto"
        "auto" takes the mean and the standard deviation (one where that is
        zero) of ``y`` itself.

    Returns
    -------
    ndarray of shape (n,)

    Raises
    ------
    ValueError
        ``y_loc`` not finite, ``y_scale`` not finite or not positive.
    """
    if is_auto(loc) or is_auto(scale):
        mean, deviation = moments(y)
    loc = mean if is_auto(loc) else _number(loc, "y_loc")
    scale = deviation if is_auto(scale) else _number(scale, "y_scale", positive=True)
    return _bounded_ratio(y, loc, scale)


def moments(y):
    """Mean and standard deviation, with 1 in place of a deviation of 0."""
    largest = np.abs(y).max() or 1.0  # divided out first: moments of huge values overflow
    return largest * np.mean(y / largest), largest * np.std(y / largest) or 1.0


def safety_margins(z, threshold, when, scale):
    """Distance to each limit, at unit scale; zero or more is safe.

    Parameters
    ----------
    z : ndarray of shape (n,) or (n, n_limits)
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
    if is_auto(scale):
        return _bounded_ratio(_margins(z, threshold, when), 0.0, margin_scales(z, threshold, when))
    Z, thresholds, signs = _sides(z, threshold, when)
    scales = [
        sign * _number(value, "z_scale", positive=True)
        for sign, value in zip(signs, _each(scale, len(signs), "z_scale"), strict=True)
    ]
    return _bounded_ratio(Z, _row(thresholds), _row(scales))


def safety_margin(z, threshold, when, scale):
    """The smallest of each row's :func:`safety_margins`, ``(n,)``."""
    margins = safety_margins(z, threshold, when, scale)
    return margins[:, 0] if margins.shape[1] == 1 else margins.min(axis=1)


def margin_scales(z, threshold, when):
    """Root mean square distance from each limit, ``(n_limits,)``, with 1 in place of 0."""
    scales = np.sqrt(np.mean(_margins(z, threshold, when) ** 2, axis=0))
    return np.where(scales == 0, 1.0, scales)


def _margins(z, threshold, when):
    Z, thresholds, signs = _sides(z, threshold, when)
    return _bounded_ratio(Z, _row(thresholds), _row(signs))


def _sides(z, threshold, when):
    """Measurements ``(n, n_limits)``, and the threshold and sign of each limit."""
    Z = z.reshape(len(z), -1)
    n_limits = Z.shape[1]
    thresholds = [
        _number(value, "safety_threshold")
        for value in _each(threshold, n_limits, "safety_threshold")
    ]
    signs = [1 if _relation(side) == ">=" else -1 for side in _each(when, n_limits, "safe_when")]
    return Z, thresholds, signs


def _row(values):
    # A plain number saves the time of making an array.
    return values[0] if len(values) == 1 else np.array(values)


def safety_rule(threshold, when):
    """Say in words what safe means.

    Examples
    --------
    >>> from sklearn_asal.space import safety_rule
    >>> safety_rule(350.0, "below")
    'safe means z <= 350.0'
    >>> safety_rule([0.0, 2.5], ["above", "below"])
    'safe means z[0] >= 0.0 and z[1] <= 2.5'
    """
    n_limits = max(np.size(threshold), np.size(when))
    if np.ndim(threshold) == np.ndim(when) == 0:
        return f"safe means z {_relation(when)} {threshold}"
    limits = zip(
        _each(when, n_limits, "safe_when"),
        _each(threshold, n_limits, "safety_threshold"),
        strict=True,
    )
    terms = (f"z[{j}] {_relation(side)} {value}" for j, (side, value) in enumerate(limits))
    return f"safe means {' and '.join(terms)}"


def _relation(side):
    if side not in ("above", "below"):
        raise ValueError(f"safe_when must be 'above' or 'below', got {side!r}.")
    return ">=" if side == "above" else "<="


def _bounded_ratio(values, loc, scale):
    with np.errstate(over="ignore"):
        ratio = (values - loc) / scale
    # np.clip would take three times as long.
    return np.minimum(np.maximum(ratio, _LEAST, out=ratio), _LARGEST, out=ratio)


def is_auto(value):
    """Whether a scaling parameter is to be estimated; also right for arrays."""
    return isinstance(value, str) and value == "auto"


def whole(value, name, min_val=None):
    """``check_scalar`` for integers, quicker for a plain one."""
    if type(value) is int and (min_val is None or value >= min_val):
        return value
    return check_scalar(value, name, Integral, min_val=min_val)


def _number(value, name, positive=False):
    """One finite number; a zero-dimensional array counts as one, a bool or text does not."""
    try:
        if isinstance(value, (str, bool)):
            raise TypeError
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if is_auto(value) and name != "safety_threshold":
        raise ValueError(f"{name} must be 'auto' for all limits or a number for each of them.")
    if not math.isfinite(number) or (positive and number <= 0):
        kind = "positive finite" if positive else "finite"
        auto = "" if name == "safety_threshold" else " or 'auto'"
        raise ValueError(f"{name} must be a {kind} number{auto}, got {value!r}.")
    return number


def _each(value, n_limits, name):
    """A scalar for every limit, or one value for each."""
    single = isinstance(value, (float, int, str)) or np.ndim(value) == 0
    values = [value] * n_limits if single else list(value)
    if len(values) != n_limits:
        raise ValueError(
            f"{name} has {len(values)} values, but z has {n_limits} column(s), one for each limit."
        )
    return values


def off_scale(unit, values, centre=None):
    """Whether values are far larger or smaller than unit scale.

    Too small is said only of ten or more points that reach over half the domain:
    points close together may well have equal outputs.

    Parameters
    ----------
    unit : ndarray of shape (n, n_features)
        Inputs at unit scale.
    values : ndarray of shape (n,)
    centre : float, optional
        What the spread is measured from; the mean by default.

    Returns
    -------
    bool
    """
    if np.abs(values).max() > _TOO_LARGE:
        return True
    if len(values) < 10:
        return False
    deviations = values - (values.mean() if centre is None else centre)
    if np.vdot(deviations, deviations) >= values.size * _TOO_SMALL**2:
        return False
    return np.ptp(unit, axis=0).max() >= 0.5
