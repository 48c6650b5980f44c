"""Benchmark functions of the paper (label appendix-experiment_details-datasets), and two more."""

import numpy as np

from .function import Function

_SQUARE = [(-1, 1), (-1, 1)]
# Centres of the safe region's parts, and their common width.
_LOBES, _WIDTH = [(0.0, 0.0), (0.05, 0.75), (-0.7, -0.3), (0.6, -0.5)], 0.25


def sinus() -> Function:
    """Sinus, 1-D: `sin(20 x)` on [0, 1], without safety.

    The paper leaves it as it is, so `output` equals `f` (mean 0.030, standard deviation 0.700).

    Returns
    -------
    function : Function
    """
    return Function("sinus", [(0, 1)], _sinus)


def branin() -> Function:
    """Branin, 2-D on [-5, 10] x [0, 15], without safety.

    Returns
    -------
    function : Function
        Normalised over its box; `f` has its three minima (0.397887) at (-pi, 12.275),
        (pi, 2.275) and (9.42478, 2.475).
    """
    return Function("branin", [(-5, 10), (0, 15)], _branin).normalise()


def simionescu() -> Function:
    """Simionescu, 2-D on [-1.25, 1.25]^2, with a lobed safe region around the centre.

    Returns
    -------
    function : Function
        Output and safety normalised over the box.
    """
    bounds = [(-1.25, 1.25), (-1.25, 1.25)]
    return Function("simionescu", bounds, _simionescu, _simionescu_safety).normalise()


def townsend() -> Function:
    """Townsend, 2-D on [-2.25, 2.25] x [-2.5, 1.75], with a safe region around the centre.

    Returns
    -------
    function : Function
        Output and safety normalised over the box.
    """
    bounds = [(-2.25, 2.25), (-2.5, 1.75)]
    return Function("townsend", bounds, _townsend, _townsend_safety).normalise()


def lobes() -> Function:
    """Lobes, 2-D on [-1, 1]^2: three safe lobes, each joined to the safe centre by a neck.

    Not of the paper.

    Returns
    -------
    function : Function
        Output and safety normalised over the box.
    """
    return Function("lobes", _SQUARE, _lobes, _lobes_safety).normalise()


def edge() -> Function:
    """Edge, 2-D on [-1, 1]^2: the limit passes close to the centre, which is safe.

    Not of the paper.

    Returns
    -------
    function : Function
        Output and safety normalised over the box; a quarter of the centre box is unsafe.
    """
    return Function("edge", _SQUARE, _edge, _edge_safety).normalise()


def _sinus(X):
    return np.sin(20 * X[:, 0])


def _branin(X):
    x1, x2 = X.T
    # The paper's text lacks the square on the bracket; this is the standard function.
    bracket = x2 - 5.1 / (4 * np.pi**2) * x1**2 + 5 / np.pi * x1 - 6
    return bracket**2 + 10 * (1 - 1 / (8 * np.pi)) * np.cos(x1) + 10


def _simionescu(X):
    x1, x2 = X.T
    return 0.1 * x1 * x2


def _simionescu_safety(X):
    x1, x2 = X.T
    # arctan2 differs from arctan(x1 / x2) by multiples of pi, which cos(8 .) does not see, and it
    # is the limit at x2 = 0; at the origin, where there is no limit, the angle counts as 0.
    radius = 1 + 0.2 * np.cos(8 * np.arctan2(x1, x2))
    return radius**2 - x1**2 - x2**2


def _townsend(X):
    x1, x2 = X.T
    return -(np.cos((x1 - 0.1) * x2) ** 2) - x1 * np.sin(3 * x1 + x2)


def _townsend_safety(X):
    x1, x2 = X.T
    # The angle from the x2 axis, as in the paper: x1 is the first argument.
    b = np.arctan2(x1, x2)
    across = 2 * np.cos(b) - np.cos(2 * b) / 2 - np.cos(3 * b) / 4 - np.cos(4 * b) / 8
    return across**2 + (2 * np.sin(b)) ** 2 - x1**2 - x2**2


def _lobes(X):
    x1, x2 = X.T
    return np.sin(3 * x1 + x2) + np.cos(3 * x2)


def _lobes_safety(X):
    distances = ((X[:, None] - np.array(_LOBES)) ** 2).sum(axis=2)
    return np.exp(-distances / (2 * _WIDTH**2)).sum(axis=1) - 0.45


def _edge(X):
    x1, x2 = X.T
    return np.sin(3 * x1) + np.cos(2 * x1 + 3 * x2)


def _edge_safety(X):
    x1, x2 = X.T
    return 0.2 + np.sin(2 * x1) + 0.5 * np.sin(3 * x2)
