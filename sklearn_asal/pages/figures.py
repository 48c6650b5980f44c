"""The figures of a campaign, as pictures."""

import hashlib
import io
import pickle
import warnings
from typing import Any

import numpy as np

from ..displays import CampaignDisplay, ProgressDisplay, SafetyDisplay
from ..displays.progress import replayed
from ..displays.style import with_unit
from ..queriers.progress import Progress
from .blocks import Picture

# Pixels of a picture for each one of the page, for screens with small ones; and the latter an inch.
_SHARP, _DPI = 2, 80
# Errors that are worked out for the figure of the progress.
_MOST = 32


class Figures:
    """Draws the figures of a campaign, and none of them twice.

    It uses neither pyplot nor the user's settings of matplotlib. One thread at a time.
    """

    def __init__(self) -> None:
        self._drawn: dict[str, tuple[str, Picture]] = {}
        self._errors: dict[str, Progress] = {}

    def campaign(self, querier: Any, data: Any, x_next: np.ndarray, names: Any) -> Picture:
        """The map, or what there is of more or fewer features.

        Parameters
        ----------
        querier : querier
        data : CampaignData
        x_next : ndarray of shape (k, n_features)
        names : dict
            Of the displays.

        Returns
        -------
        Picture
        """

        def draw(ax):
            CampaignDisplay.from_querier(
                querier, x_next=x_next if len(x_next) else None, ax=ax, **names
            )

        n = data.X.shape[1]
        if n == 1:
            size = (7.0, 3.0 + 2.2 * len(data.thresholds))
        elif n == 2:
            size = (7.0, 6.0)
        else:
            size = (3.0 + 2.2 * (n - 1), 2.0 + 2.2 * (n - 1)) if n <= 5 else (5.0 + 0.8 * n, 5.5)
        shown = ", ".join(with_unit(name, data.units) for name in data.feature_names)
        expected = f", and the expected {with_unit(data.y_name, data.units)}"
        alt = (
            f"{len(data.X)} measurements over {shown}"
            f"{expected if hasattr(querier, 'assess') and n <= 5 else ''}."
        )
        if len(data.thresholds) and n <= 5:
            alt += " It is marked where measurements are expected to be safe."
        if len(x_next):
            alt += f" {len(x_next)} proposal(s) are marked with a star."
        marked = x_next.tolist(), querier.pending_.tolist()
        return self._picture("campaign", size, alt, draw, _key(querier), marked, names)

    def safety(self, querier: Any, data: Any, reports: Any, names: Any) -> Picture:
        """Safety measurements run by run; arguments as before."""

        def draw(ax):
            SafetyDisplay.from_querier(querier, reports=reports, ax=ax, **names)

        limits = ", ".join(with_unit(name, data.units) for name in data.z_names)
        alt = (
            f"{limits} of each of {len(data.X)} runs beside the limit, and as predicted; "
            f"{int(data.is_safe.sum())} runs were safe."
        )
        size = (9.0, 2.0 + 2.4 * len(data.thresholds))
        return self._picture("safety", size, alt, draw, _key(querier), names)

    def progress(self, querier: Any, data: Any, y_name: str, unit: str | None) -> Picture | None:
        """The expected error over the measurements; None where nothing can be said.

        Returns
        -------
        Picture or None
        """
        # Powers of two, so that what is known can be used again.
        every = 1
        while (len(data.X) - data.n_init) / every > _MOST:
            every *= 2

        def ask(n, then):
            key = _key(then)
            if key not in self._errors:
                self._errors[key] = then.progress()
            return key, self._errors[key]

        answers = replayed(querier, data, every, ask)
        self._errors = dict(answers.values())  # and no others
        known = {n: one for n, (_, one) in answers.items() if np.isfinite(one.rmse_upper)}
        if not known:
            return None
        errors = list(known.values())

        def draw(ax):
            ProgressDisplay.from_values(
                list(known),
                [one.rmse for one in errors],
                errors[-1].noise_std,
                rmse_upper=[one.rmse_upper for one in errors],
                stop_when=querier.stop_when,
                y_name=y_name,
                y_unit=unit,
                ax=ax,
            )

        alt = (
            f"Expected error over the number of measurements: {errors[0].rmse:.3g} after "
            f"{min(known)}, {errors[-1].rmse:.3g} after {max(known)}; noise "
            f"{errors[-1].noise_std:.3g}."
        )
        return self._picture("progress", (7.0, 4.4), alt, draw, _key(querier), y_name, unit)

    def _picture(self, name, size, alt, draw, *key):
        import matplotlib.style
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        known = self._drawn.get(name)
        mark = repr(key)
        if known is None or known[0] != mark:
            file = io.BytesIO()
            with matplotlib.style.context("default"), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of signs that a font has not
                figure = Figure(figsize=size, layout="constrained", dpi=_DPI)
                FigureCanvasAgg(figure)
                draw(figure.subplots())
                figure.savefig(file, format="png", dpi=_SHARP * _DPI)
            pixels = round(size[0] * _DPI), round(size[1] * _DPI)
            known = self._drawn[name] = mark, Picture(name, alt, file.getvalue(), pixels)
        return known[1]


def _key(querier):
    """What figures of a campaign depend on, as text."""
    params = {name: repr(one) for name, one in querier.get_params(deep=False).items()}
    told = querier.X_, querier.y_, querier.z_, querier.status_, querier.n_told_
    return hashlib.sha256(pickle.dumps((params, told))).hexdigest()
