"""What the flags of ``next`` state: limits, bounds, settings, constraints."""

import math
import re
from dataclasses import dataclass

from ..names import suggestion
from ..space import Grid, Integer, Log
from .numbers import parsed, written
from .sheet import title_of

_RELATION = re.compile(r"(.+?)(<=|>=|=<|=>|≤|≥|<|>|==|=)(.+)")
_BELOW, _ABOVE, _EQUAL = ("<=", "=<", "≤", "<"), (">=", "=>", "≥", ">"), ("=", "==")
_FACTOR = r"(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"


@dataclass(frozen=True)
class Limit:
    """A limit of a column.

    Attributes
    ----------
    column : str
    side : {"above", "below"}
        Where it is safe.
    value : float
    """

    column: str
    side: str
    value: float

    def __str__(self):
        sign = "<=" if self.side == "below" else ">="
        return f"{self.column} {sign} {written(self.value)}"

    def holds(self, value):
        """Whether a measurement keeps the limit.

        Parameters
        ----------
        value : float

        Returns
        -------
        bool
        """
        return value <= self.value if self.side == "below" else value >= self.value


def limits_of(texts):
    """The limits of ``--limit``.

    Parameters
    ----------
    texts : sequence of str
        Such as "temperature <= 850".

    Returns
    -------
    list of Limit

    Raises
    ------
    ValueError
        Something else.
    """
    limits = []
    for text in texts:
        found = _RELATION.fullmatch(text.strip())
        if not found or found[2] in _EQUAL or parsed(found[3]) is None:
            raise ValueError(
                f"--limit {text!r} is not understood. State a column, <= or >=, and a number with "
                'a decimal point, all in quotes: --limit "temperature <= 850".'
            )
        side = "below" if found[2] in _BELOW else "above"
        limits.append(Limit(title_of(found[1]), side, parsed(found[3])))
    return limits


def thresholds(limits):
    """Limits as queriers take them.

    Parameters
    ----------
    limits : list of Limit

    Returns
    -------
    safety_threshold : float or list of float
    safe_when : str or list of str
    """
    if len(limits) == 1:
        return limits[0].value, limits[0].side
    return [limit.value for limit in limits], [limit.side for limit in limits]


def bounds_of(texts, inputs):
    """The bounds of ``--bounds``.

    Parameters
    ----------
    texts : sequence of str
        Such as "rpm=900:4000", "gear=1:6:integer", "leak=1e-9:1e-3:log", "size=0.1,0.2,0.5".
    inputs : sequence of str

    Returns
    -------
    dict of str to (tuple of float, Integer, Log or Grid)

    Raises
    ------
    ValueError
        Something else.
    """
    bounds = {}
    for name, text in _by_input(texts, inputs, "--bounds"):
        try:
            bounds[name] = _feature(text)
        except (ValueError, TypeError) as error:
            raise ValueError(
                f"--bounds {name}={text} is not understood: {error} Write {name}=LOW:HIGH with "
                f"decimal points, {name}=LOW:HIGH:integer, {name}=LOW:HIGH:log, or its values, "
                f"such as {name}=1,2,5."
            ) from error
    return bounds


def _feature(text):
    parts, kinds = [part.strip().lower() for part in text.split(":")], set()
    while len(parts) > 1 and parts[-1] in ("integer", "log"):
        kinds.add(parts.pop())
    numbers = parts[0].split(",") if len(parts) == 1 and "," in parts[0] else parts
    values = [parsed(number) for number in numbers]
    if None in values:
        raise ValueError(f"{numbers[values.index(None)]!r} is not a number.")
    log = "log" in kinds
    if numbers is not parts:
        return Grid(values, log)
    if len(values) != 2:
        raise ValueError("it needs two numbers.")
    if "integer" in kinds:
        if not all(value.is_integer() for value in values):
            raise ValueError("its ends are not whole numbers.")
        return Integer(*map(int, values), log)
    if log:
        return Log(*values)
    if not values[0] < values[1]:
        raise ValueError("the first number has to be the smaller one.")
    return tuple(values)


def settings_of(texts, inputs, flag):
    """Numbers for some inputs, of ``--fixed`` and ``--max-step``.

    Parameters
    ----------
    texts : sequence of str
        Such as "rpm=2000".
    inputs : sequence of str
    flag : str

    Returns
    -------
    dict of str to float

    Raises
    ------
    ValueError
        Something else.
    """
    settings = {}
    for name, text in _by_input(texts, inputs, flag):
        settings[name] = parsed(text)
        if settings[name] is None:
            raise ValueError(f"{flag} {name}={text}: {text!r} is not a number.")
    return settings


def _by_input(texts, inputs, flag):
    """Yield the input that each of some texts is about, and what it says."""
    seen = set()
    for text in texts:
        name, equals, value = text.rpartition("=")
        name = title_of(name)
        if not equals:
            raise ValueError(f"{flag} {text!r} is not understood. Write {flag} {inputs[0]}=...")
        if name not in inputs:
            raise ValueError(
                f"{flag} {text}: {name!r} is not one of the inputs, "
                f"{', '.join(inputs)}{suggestion(name, inputs)}"
            )
        if name in seen:
            raise ValueError(f"{flag} is given twice for {name}.")
        seen.add(name)
        yield name, value.strip()


def constraint_of(text, inputs):
    """A linear constraint of ``--constraint``.

    Parameters
    ----------
    text : str
        Such as "0.5*rpm + load <= 2000": a sum of inputs with factors, and a number.
    inputs : sequence of str

    Returns
    -------
    scipy.optimize.LinearConstraint

    Raises
    ------
    ValueError
        Something else.
    """
    from scipy.optimize import LinearConstraint

    found = _RELATION.fullmatch(text.strip())
    weights = _sum(found[1], inputs) if found else None
    value = parsed(found[3]) if found else None
    if weights is None or value is None:
        unknown = [
            f" {word!r} is not one of the inputs{suggestion(word, inputs)}"
            for word in re.findall(r"[^\W\d]\w+", found[1] if found else "")
            if not any(word in name for name in inputs)
        ]
        raise ValueError(
            f"--constraint {text!r} is not understood.{''.join(unknown[:1])} State a sum of inputs "
            "with factors, <=, >= or =, and a number: "
            f'--constraint "0.5*{inputs[0]} + {inputs[-1]} <= 100".'
        )
    low = -math.inf if found[2] in _BELOW else value
    return LinearConstraint([weights], low, math.inf if found[2] in _ABOVE else value)


def _sum(text, inputs):
    """The factor of each input, None for what is no sum."""
    names = "|".join(map(re.escape, sorted(inputs, key=len, reverse=True)))
    term = re.compile(
        rf"\s*([-+])\s*(?:({_FACTOR})\s*\*\s*)?({names})(?:\s*([*/])\s*({_FACTOR}))?\s*(?=[-+]|$)"
    )
    text = title_of(text)
    text = text if text.startswith(("-", "+")) else f"+{text}"
    weights, end = [0.0] * len(inputs), 0
    while end < len(text):
        found = term.match(text, end)
        if not found:
            return None
        sign, before, name, operation, after = found.groups()
        weight, after = float(f"{sign}{before or 1}"), float(after or 1)
        if operation == "/" and after == 0:
            return None
        weights[inputs.index(name)] += weight / after if operation == "/" else weight * after
        end = found.end()
    return weights
