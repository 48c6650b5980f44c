"""CampaignDisplay: what was measured where, and what is expected elsewhere."""

import itertools
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from ..exceptions import BudgetExhaustedError, NoSafeCandidateError, PoolExhaustedError
from ..queriers.cut_short import OK
from ..space import by_feature
from ..validation import as_rows, finite_array, whole
from . import curve, parallel, plane
from .campaign_data import CampaignData, campaign_of, data_of, unlogged
from .sections import Section, section_of
from .style import axes_or_new, setting, shown

Kind = Literal["auto", "curve", "map", "slices", "parallel"]

_KINDS = "curve", "map", "slices", "parallel"
# More features than that are not shown pair by pair.
_MOST = 5
# Values of each feature, of which predictions are made.
_N_GRID = {"curve": 201, "map": 81, "slices": 41}
#: The ``gid`` of the text that says where other inputs are held.
HELD = "held"
# Small letters that fit into an inch.
_LETTERS = 12


class CampaignDisplay:
    """Measurements of a campaign, the predictions of its models, limits, and the next proposal.

    Make one by :meth:`from_querier` or :meth:`from_campaign`, which draw it as well.

    Parameters
    ----------
    data : CampaignData
        The observations.
    kind : {"curve", "map", "slices", "parallel"}
    features : tuple of int
        The features that are shown.
    sections : sequence of Section
        Predictions: one of each curve or map; none where the querier has no models.
    at : ndarray of shape (n_features,)
        Where features are in sections that are not along them.
    x_next : ndarray of shape (k, n_features)
        Proposals.
    pending : ndarray of shape (m, n_features)
        What is being measured.
    candidates : ndarray of shape (n_candidates, n_features) or None
        Rows of a pool.

    Attributes
    ----------
    figure_ : matplotlib.figure.Figure
    ax_ : matplotlib.axes.Axes
        With several panels an empty one that they are in.
    axes_ : ndarray of matplotlib.axes.Axes
        All panels.

    See Also
    --------
    SafetyDisplay : The same campaign over time.

    Examples
    --------
    >>> from sklearn_asal import AmortizedSafeQuerier
    >>> from sklearn_asal.displays import CampaignDisplay
    >>> querier = AmortizedSafeQuerier(bounds=[(0, 6), (-5, 30)])
    >>> querier = querier.fit([[3, 12], [2, 10], [3, 15]], [0.3, 0.1, 0.5], [1.0, 0.9, 0.4])
    >>> display = CampaignDisplay.from_querier(querier)
    >>> display.ax_.get_xlabel()
    'x0'
    """

    figure_: Any
    ax_: Any
    axes_: Any

    def __init__(
        self,
        *,
        data: CampaignData,
        kind: str,
        features: tuple[int, ...],
        sections: Sequence[Section],
        at: np.ndarray,
        x_next: np.ndarray,
        pending: np.ndarray,
        candidates: np.ndarray | None = None,
    ) -> None:
        self.data = data
        self.kind = kind
        self.features = features
        self.sections = sections
        self.at = at
        self.x_next = x_next
        self.pending = pending
        self.candidates = candidates

    @classmethod
    def from_querier(
        cls,
        querier: Any,
        *,
        kind: Kind = "auto",
        features: Sequence[int | str] | None = None,
        at: Literal["last", "best"] | ArrayLike | None = None,
        x_next: Literal["query"] | ArrayLike | None = "query",
        pool: Any = None,
        n_init: int | None = None,
        n_grid: int | None = None,
        y_name: str = "y",
        z_name: str | Sequence[str] | None = None,
        units: Mapping[str, str] | None = None,
        ax: Any = None,
        **plot_params: Any,
    ) -> "CampaignDisplay":
        """Draw the campaign of a fitted querier.

        Parameters
        ----------
        querier : querier
            Fitted. It is not changed, nor its log. Without models (``RandomQuerier``)
            measurements are shown alone.
        kind : {"auto", "curve", "map", "slices", "parallel"}, default="auto"
            Curves over one feature, a map of two, maps of all pairs of features, or parallel
            coordinates. "auto" goes by the number of features: one, two, three to five, more.
        features : sequence of int or str, default=None
            The features that are shown, by position or name; all by default.
        at : {"last", "best"}, array-like of shape (n_features,) or None, default=None
            Where the features are that a map does not show; the figure says it. None means at the
            first proposal that is drawn, or else at the first point that is pending, or else at
            the last measurement. "last" is the last measurement that was not cut short, "best" the
            safe one with the largest output; a point is in the user's units.
        x_next : "query", None or array-like of shape (k, n_features), default="query"
            Proposals that are marked. "query" asks the querier; if it has none to make, because
            the budget is spent or nothing is safe enough, none is marked.
        pool : array-like of shape (n_candidates, n_features) or CandidatePool, default=None
            The pool that "query" chooses from; it is shown, too.
        n_init : int, default=None
            So many observations count as initial points, which have no number. By default those
            that ``fit`` got.
        n_grid : int, default=None
            Values of each feature at which the models are asked: 201 in a curve, 81 in a map, 41
            in each of several maps.
        y_name : str, default="y"
            What the output is called.
        z_name : str or sequence of str of shape (n_limits,), default=None
            What the safety measurements are called; by default as their columns were in ``fit``.
        units : dict of str to str, default=None
            Units of features, output and safety measurements, by their names.
        ax : matplotlib.axes.Axes, default=None
            Where to draw; a new figure by default.
        **plot_params
            Of :meth:`plot`.

        Returns
        -------
        CampaignDisplay

        Raises
        ------
        sklearn.exceptions.NotFittedError
            The querier has no campaign.
        ValueError, TypeError
            Invalid arguments; the message names them.
        """
        querier = unlogged(querier)
        data = data_of(querier, n_init=n_init, y_name=y_name, z_name=z_name, units=units)
        n_features = data.X.shape[1]
        shown = _positions(features, data.feature_names)
        kind = _checked_kind(kind, shown)
        proposals, pending = _proposals(querier, x_next, pool, n_features), querier.pending_
        if at is None:
            at = [*proposals, *pending, "last"][0]
        point = _point(at, data)
        rows = getattr(pool, "X", pool)
        sections = []
        if hasattr(querier, "assess") and kind != "parallel":
            n = whole(_N_GRID[kind] if n_grid is None else n_grid, "n_grid", min_val=2)
            sets = [shown] if kind in ("curve", "map") else itertools.combinations(shown, 2)
            sections = [section_of(querier, data, one, point, n) for one in sets]
        display = cls(
            data=data,
            kind=kind,
            features=shown,
            sections=sections,
            at=point,
            x_next=proposals,
            pending=pending,
            candidates=None if rows is None else finite_array(rows, "pool"),
        )
        return display.plot(ax, **plot_params)

    @classmethod
    def from_campaign(
        cls,
        X: Any,
        y: ArrayLike | None = None,
        z: ArrayLike | None = None,
        *,
        querier_params: Mapping[str, Any] | None = None,
        n_init: int | None = None,
        x_next: Literal["query"] | ArrayLike | None = None,
        y_name: str = "y",
        z_name: str | Sequence[str] | None = None,
        **params: Any,
    ) -> "CampaignDisplay":
        """Draw a campaign from arrays, from a table, or from a log.

        Parameters
        ----------
        X : array-like of shape (n, n_features), table, path-like or CampaignLog
            - Inputs, with ``y``. Names of columns are kept.
            - A table of pandas or polars with columns for inputs, output and safety measurements,
              see :func:`~sklearn_asal.displays.measurements.measurements`; ``y_name`` and
              ``z_name`` say which are which.
            - The log of a campaign, or its path. It is read, and neither locked nor changed, so
              that the campaign may be going on.
        y : array-like of shape (n,), default=None
        z : array-like of shape (n,) or (n, n_limits), default=None
            None means that there are no limits, or, with a ``safety_threshold``, that they are on
            the output.
        querier_params : dict, default=None
            Of :class:`AmortizedSafeQuerier` or :class:`AmortizedQuerier`, whose models are of
            policy "any", such as ``bounds``, ``safety_threshold`` and ``safe_when``. By default
            the bounds are the range of ``X``. With a log, parameters in place of those in it.
        n_init : int, default=None
            So many observations count as initial points. By default what a log or a table says,
            or none.
        x_next
            See :meth:`from_querier`; by default no proposal is marked.
        y_name : str, default="y"
        z_name : str or sequence of str, default=None
        **params
            See :meth:`from_querier`.

        Returns
        -------
        CampaignDisplay

        Raises
        ------
        FileNotFoundError
            There is no such log.
        ValueError, TypeError
            Invalid data or arguments, or a damaged log.
        """
        campaign = campaign_of(X, y, z, querier_params, n_init=n_init, y_name=y_name, z_name=z_name)
        return cls.from_querier(campaign.querier, x_next=x_next, **campaign.names, **params)

    def plot(
        self,
        ax: Any = None,
        *,
        response: Literal["mean", "std", "p_safe"] = "mean",
        level: float = 0.95,
        numbers: bool | None = None,
        legend: bool = True,
    ) -> "CampaignDisplay":
        """Draw it, again or elsewhere.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None
            Where to draw; a new figure by default.
        response : {"mean", "std", "p_safe"}, default="mean"
            What maps and slices show: the expected output, its standard deviation, or the
            probability to be safe. Curves show all of these, and parallel coordinates none.
        level : float, default=0.95
            A point counts as safe from this probability on, and as unsafe below 1 minus that.
        numbers : bool, default=None
            Whether queries have their number, the position in ``X_``; by default in a single map.
        legend : bool, default=True

        Returns
        -------
        self

        Raises
        ------
        ValueError
            An invalid argument, such as ``response="p_safe"`` without limits, or in curves.
        """
        if response not in ("mean", "std", "p_safe"):
            raise ValueError(f"response must be 'mean', 'std' or 'p_safe', got {response!r}.")
        if not 0.5 < level < 1:
            raise ValueError(f"level must be above 0.5 and below 1, got {level!r}.")
        if response != "mean" and self.kind not in ("map", "slices"):
            raise ValueError(
                f"response={response!r} is for maps and slices, and not for kind={self.kind!r}; "
                "leave it out, or choose two features or more by features=."
            )
        if response == "p_safe" and any(one.p_safe is None for one in self.sections):
            raise ValueError("response='p_safe' needs a querier with limits; this one has none.")
        if self.kind == "curve":
            n_panels = curve.number_of_panels(self.data)
            self.ax_ = axes_or_new(ax, (6.4, 1.6 + 2.4 * n_panels))
            self.axes_ = curve.draw(self, self.ax_, level, legend)
        elif self.kind == "map":
            self.ax_ = axes_or_new(ax, (6.4, 5.2))
            self.axes_ = plane.draw_map(self, self.ax_, response, level, numbers, legend)
        elif self.kind == "slices":
            side = 1.4 + 2.3 * (len(self.features) - 1)
            self.ax_ = axes_or_new(ax, (side + 0.6, side))
            self.axes_ = plane.draw_slices(self, self.ax_, response, level, numbers, legend)
        else:
            self.ax_ = axes_or_new(ax, (2.0 + 1.2 * len(self.features), 4.2))
            self.axes_ = parallel.draw(self, self.ax_, legend)
        self.figure_ = self.ax_.figure
        self._say_where()
        return self

    def _say_where(self):
        """Say in the figure where inputs are held that panels do not show."""
        n_along = {"curve": 1, "map": 2, "slices": 2}.get(self.kind, 0)
        if not self.sections or n_along == len(self.at):
            return
        # With one section what it is along is on its axes.
        along = self.features if len(self.sections) == 1 else ()
        said = [
            setting(name, value, self.data.units)
            for j, (name, value) in enumerate(zip(self.data.feature_names, self.at, strict=True))
            if j not in along
        ]
        word = "about" if self.sections[0].is_moved else "at"
        text = f"other inputs {word} {', '.join(said)}"
        lines = textwrap.wrap(text, int(_LETTERS * self.figure_.get_figwidth()))
        first = self.axes_[0]
        # It may be wider than the panel: a blank title has its height in the layout.
        first.set_title("\n".join(" " * len(lines)), size="small")
        first.annotate(
            shown("\n".join(lines)),
            (0, 1),
            (0, 6),
            xycoords="axes fraction",
            textcoords="offset points",
            size="small",
            in_layout=False,
            gid=HELD,
        )


def _checked_kind(kind, shown):
    if kind == "auto":
        n = len(shown)
        return "curve" if n == 1 else "map" if n == 2 else "slices" if n <= _MOST else "parallel"
    if kind not in _KINDS:
        raise ValueError(f"kind must be 'auto', {', '.join(map(repr, _KINDS))}, got {kind!r}.")
    wanted = {"curve": (1, 1), "map": (2, 2), "slices": (2, 99), "parallel": (1, np.inf)}[kind]
    if not wanted[0] <= len(shown) <= wanted[1]:
        number = wanted[0] if wanted[0] == wanted[1] else f"{wanted[0]} or more"
        raise ValueError(
            f"kind={kind!r} shows {number} feature(s), not {len(shown)}; choose them by features=, "
            "or another kind."
        )
    return kind


def _positions(features, names):
    n = len(names)
    if features is None:
        return tuple(range(n))
    wanted = dict.fromkeys([features] if isinstance(features, (str, int)) else features, 0.0)
    if not wanted:
        raise ValueError("features must name one feature or more.")
    return tuple(by_feature(wanted, names, n, "features"))


def _point(at, data):
    """The point that sections go through."""
    if isinstance(at, str):
        if at == "last":
            return data.X[np.flatnonzero(data.status == OK)[-1]]
        if at != "best":
            raise ValueError(f"at must be 'last', 'best', a point or None, got {at!r}.")
        usable = data.is_safe & ~np.isnan(data.y)
        if not usable.any():
            raise ValueError("at='best' needs a safe measurement with an output; there is none.")
        return data.X[np.flatnonzero(usable)[data.y[usable].argmax()]]
    n_features = data.X.shape[1]
    point = finite_array(as_rows(at, n_features), "at")
    if point.shape != (1, n_features):
        raise ValueError(f"at must be one point with {n_features} features, got {point.shape}.")
    return point[0]


def _proposals(querier, x_next, pool, n_features):
    none = np.empty((0, n_features))
    if x_next is None:
        return none
    if isinstance(x_next, str):
        if x_next != "query":
            raise ValueError(f"x_next must be 'query', None or points, got {x_next!r}.")
        try:
            return finite_array(querier.query(pool=pool), "x_next")
        except (BudgetExhaustedError, NoSafeCandidateError, PoolExhaustedError):
            return none
    points = finite_array(as_rows(x_next, n_features), "x_next")
    if points.shape[1] != n_features:
        raise ValueError(f"x_next has {points.shape[1]} features, not {n_features}.")
    return points
