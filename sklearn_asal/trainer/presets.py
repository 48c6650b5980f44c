"""What a policy is trained on and how: one frozen dataclass, and the shipped policies' values."""

import dataclasses
import inspect
import json
import math
import textwrap

from ..policies.architecture import CHOICES, checked_lags
from ..policies.networks import build
from .objectives import OBJECTIVES
from .priors import DISTRIBUTIONS, TOTAL_VARIANCE, LogUniform, ShiftedExponential, Uniform

#: Fields without effect on a policy that is not safe.
OF_SAFETY = (
    "gamma",
    "safety_weight",
    "safety_lengthscale",
    "safety_shape",
    "mean_variance",
    "safe_centre",
    "direct_weight",
)


def _field(default, about, kind=None):
    """A field with its description, and with what the documentation says of its type."""
    return dataclasses.field(default=default, metadata={"help": about, "kind": kind})


def _documented(cls):
    """Append a section of parameters, made of the fields, to the class's documentation."""
    lines = [inspect.cleandoc(cls.__doc__), "", "Parameters", "----------"]
    for field in dataclasses.fields(cls):
        kind = field.metadata["kind"] or field.type.__name__
        text = textwrap.indent(textwrap.fill(field.metadata["help"], 92), 4 * " ")
        lines += [f"{field.name} : {kind}, default={field.default!r}", text]
    cls.__doc__ = "\n".join(lines)
    return cls


_DISTRIBUTION = "Uniform, LogUniform or ShiftedExponential"
_Distribution = Uniform | LogUniform | ShiftedExponential


@_documented
@dataclasses.dataclass(frozen=True)
class Preset:
    """Everything that defines a training run, apart from where it runs."""

    name: str = _field("custom", "Of the policy.")
    n_features: int = _field(2, "Number of inputs, D.")
    safe: bool = _field(True, "Whether there is a safety signal.")
    n_init: int = _field(5, "Number of initial observations.")
    max_budget: int = _field(40, "Largest number of queries T of a campaign.")
    random_budget: bool = _field(
        True, "Draw the number of queries uniformly from 1 to T for each task, instead of T."
    )
    objective: str = _field(
        "S_Hmean",
        'H, I, S_H or S_I, these with "mean" behind (H_mean, S_Hmean), S_H_division, '
        "S_Hmean_division or DAD; see sklearn_asal.trainer.objectives.",
    )
    n_grid: int = _field(
        0, "Grid points of I, I_mean, S_I and S_Imean; safe ones if the policy is."
    )
    grid: str = _field(
        "arcsine",
        "How the grid of I and I_mean is distributed: the paper's Beta(1/2, 1/2), dense towards "
        "the border; evenly, like the points at which a model is asked; or half of each. That of "
        "S_I is even.",
        '{"arcsine", "uniform", "both"}',
    )
    n_contrastive: int = _field(0, "Contrastive functions of DAD.")
    contrast_correlation: float = _field(
        0.0,
        "Of these and the true function. Above 0, the information about a function counts that is "
        "known already, up to a remainder of 1 - contrast_correlation of its variance.",
    )
    gamma: float = _field(
        0.05,
        "Tolerance of the safe objectives (eq-safe_gp_logprob_objective): up to this "
        "probability, being unsafe costs nothing.",
    )
    safety_weight: float = _field(1.0, "Of the safe objectives' safety term; 1 in the paper.")
    lengthscale: _Distribution = _field(  # noqa: RUF009
        ShiftedExponential(0.2, 10.0), "Of outputs, in sides of the unit cube.", _DISTRIBUTION
    )
    variance: Uniform = _field(
        Uniform(0.9616, 1.0), "Of the signal; the noise variance is 1.0001 less it."
    )
    safety_lengthscale: _Distribution = _field(  # noqa: RUF009
        ShiftedExponential(0.2, 10.0), "Of safety, in sides of the unit cube.", _DISTRIBUTION
    )
    safety_shape: Uniform = _field(Uniform(5.0, 40.0), "Of w in eqS-sech_mean.")
    mean_variance: Uniform = _field(
        Uniform(0.5, 0.5),
        "Of c^2 in eqS-sech_mean, the share of the variance that is certain to peak at the centre.",
    )
    safe_centre: Uniform = _field(
        Uniform(0.5, 0.5),
        "Of each coordinate of that centre, around which the initial points lie; in the paper 0.5.",
    )
    lags: tuple = _field(
        (),
        "Features that are earlier values of one signal, as (later, earlier, step): on the unit "
        "cube, the later one is within step of the earlier. Binds queries and grid.",
        "tuple of (int, int, float)",
    )
    n_fourier: int = _field(100, "Fourier features of each simulated function.")
    n_kernels: int = _field(32, 'Kernels in a batch (table "Batch sizes").')
    n_functions: int = _field(1, "Functions for each kernel.")
    n_noises: int = _field(1, "Noise realisations for each function.")
    kind: str = _field(
        "reader",
        "Of the network: ReaderNetwork or the paper's TransformerNetwork (with 512 hidden units).",
        '{"reader", "transformer"}',
    )
    embedding: int = _field(128, "Width of the network's embeddings.")
    hidden: int = _field(256, "Width of its hidden layers.")
    heads: int = _field(8, "Heads of its attention.")
    layers: int = _field(2, "Number of its attention layers.")
    pooling: str = _field(
        "sqrt",
        "Whether the sum of a set's embeddings is divided by the square root of their number.",
        '{"sqrt", "sum"}',
    )
    output: str = _field(
        "clip",
        "How the next input is bounded: by clipping with a projected gradient, or by the paper's "
        "tanh.",
        '{"clip", "tanh"}',
    )
    lead: bool = _field(
        True, "Whether the reader's queries begin at Sobol anchors, and are offsets from them."
    )
    lead_reach: float = _field(
        0.2,
        "How much of each axis the anchors cover before training; 0.2 is the box of the initial "
        "points.",
    )
    standardize: bool = _field(
        True, "Bring inputs and budget to zero mean and unit variance; the paper leaves both raw."
    )
    centre_gain: float = _field(
        0.05,
        "Factor on the last layer's initial weights; below one, first queries are near the centre.",
    )
    budget_encoder: bool = _field(True, "Whether the network is told the number of queries left.")
    steps: int = _field(1500, "Updates of the whole run; the schedule depends on it.")
    lr: float = _field(1e-3, "Peak learning rate of RAdam.")
    schedule: str = _field(
        "cosine",
        "Warm-up and cosine decay to final_lr * lr, or the paper's 2 % less every 50 steps.",
        '{"cosine", "step"}',
    )
    warmup: int = _field(30, 'Steps of linear warm-up ("cosine" only).')
    final_lr: float = _field(0.02, 'Last learning rate, as a fraction of lr ("cosine" only).')
    direct_steps: int = _field(
        100,
        "First steps, without backpropagation through the rollout: a query's gradient leaves out "
        "how it changes the policy's later queries.",
    )
    direct_weight: float = _field(
        1.0, "Factor on safety_weight in these steps. Below one, a safe policy begins bold."
    )
    clip_query: float = _field(
        10.0,
        "After these, clip each query's gradient at this many batch medians; 0 turns it off.",
    )
    clip_norm: float = _field(1.0, "Clip the 2-norm of the whole gradient.")
    average: float = _field(
        0.98,
        "Decay of the exponential moving average of the weights that is validated and kept; 0 "
        "keeps the plain weights.",
    )
    seed: int = _field(0, "Of the initial weights and of the tasks.")

    def __post_init__(self):
        counts = (
            "n_features n_init max_budget n_fourier n_kernels n_functions n_noises embedding "
            "hidden heads layers steps"
        )
        for name in counts.split():
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        for name, choices in {
            "objective": tuple(OBJECTIVES),
            "schedule": ("cosine", "step"),
            "grid": ("arcsine", "uniform", "both"),
            **CHOICES,
        }.items():
            if getattr(self, name) not in choices:
                raise ValueError(
                    f"{name} must be one of {', '.join(choices)}, got {getattr(self, name)!r}"
                )
        if self.objective.startswith("S_") and not self.safe:
            raise ValueError(f"objective {self.objective!r} needs safe=True")
        for name, needed in (("n_grid", self.needs_grid), ("n_contrastive", self.needs_contrast)):
            if needed and getattr(self, name) < 1:
                raise ValueError(f"objective {self.objective!r} needs {name}, got 0")
        if self.contrast_correlation and self.n_functions > 1:
            raise ValueError(
                "contrast_correlation needs n_functions=1, for contrastive functions belong to a "
                f"kernel; got n_functions={self.n_functions}"
            )
        if self.embedding % self.heads:
            raise ValueError(f"heads must divide embedding={self.embedding}, got {self.heads}")
        for name, low, high in (
            ("gamma", 0, 1),
            ("contrast_correlation", 0, 1),
            ("average", 0, 1),
            ("final_lr", 0, 1.001),
            ("clip_query", 0, math.inf),
            ("warmup", 0, math.inf),
            ("direct_steps", 0, math.inf),
        ):
            if not low <= getattr(self, name) < high:
                raise ValueError(f"{name} must be in [{low}, {high}), got {getattr(self, name)}")
        for name in (
            "lr",
            "clip_norm",
            "centre_gain",
            "safety_weight",
            "direct_weight",
            "lead_reach",
        ):
            if not 0 < getattr(self, name) < math.inf:
                raise ValueError(f"{name} must be positive, got {getattr(self, name)}")
        object.__setattr__(self, "lags", checked_lags(self.lags, self.n_features))
        self._check_priors()

    def _check_priors(self):
        for name in ("lengthscale", "safety_lengthscale", "safety_shape", "safe_centre"):
            for end in dataclasses.astuple(getattr(self, name)):
                if isinstance(end, tuple) and len(end) != self.n_features:
                    raise ValueError(
                        f"{name} needs one value, or one for each of {self.n_features} features; "
                        f"got {len(end)}"
                    )
        for name in ("lengthscale", "safety_lengthscale", "safety_shape"):
            if not getattr(self, name).range[0] > 0:
                raise ValueError(f"{name} must be positive, got {getattr(self, name)}")
        if not 0 <= self.safe_centre.range[0] <= self.safe_centre.range[1] <= 1:
            raise ValueError(f"safe_centre must be in [0, 1], got {self.safe_centre}")
        low, high = self.variance.range
        if not 0 < low <= high < TOTAL_VARIANCE:
            raise ValueError(f"variance must be in (0, {TOTAL_VARIANCE}), got {self.variance}")
        if self.safe and not 0 <= self.mean_variance.range[0] <= self.mean_variance.range[1] < low:
            raise ValueError(
                f"mean_variance must be at least 0 and less than variance, got {self.mean_variance}"
            )

    @property
    def needs_grid(self):
        """Whether the objective compares with a grid."""
        return self.objective in ("I", "I_mean", "S_I", "S_Imean")

    @property
    def needs_contrast(self):
        """Whether the objective compares with other functions."""
        return self.objective == "DAD"

    @property
    def batch(self):
        """Tasks a step."""
        return self.n_kernels * self.n_functions * self.n_noises

    def learning_rate(self, step):
        """Learning rate of a step.

        Parameters
        ----------
        step : int
            Counted from zero.

        Returns
        -------
        float
        """
        if self.schedule == "step":
            return self.lr * 0.98 ** (step // 50)
        rise = min(1.0, (step + 1) / max(self.warmup, 1))
        done = min(1.0, max(0, step - self.warmup) / max(self.steps - self.warmup, 1))
        fall = self.final_lr + (1 - self.final_lr) * 0.5 * (1 + math.cos(math.pi * done))
        return self.lr * rise * fall

    def network(self):
        """A freshly initialised network of this preset.

        Returns
        -------
        ReaderNetwork or TransformerNetwork
        """
        shared = (
            "n_features safe kind embedding hidden heads layers pooling output lags lead "
            "max_budget standardize"
        )
        architecture = {name: getattr(self, name) for name in shared.split()}
        architecture["budget"] = self.budget_encoder
        architecture["lead"] &= self.kind == "reader"
        start = {"centre_gain": self.centre_gain}
        if architecture["lead"]:
            start["lead_reach"] = self.lead_reach
        return build(architecture, **start)

    def to_dict(self):
        """As JSON-serialisable values.

        Returns
        -------
        dict
        """
        values = {}
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            for kind, prior in DISTRIBUTIONS.items():
                if isinstance(value, prior):
                    value = {"kind": kind, **dataclasses.asdict(value)}
            values[field.name] = value
        return json.loads(json.dumps(values))

    @classmethod
    def from_dict(cls, values):
        """The inverse of :meth:`to_dict`.

        Parameters
        ----------
        values : dict

        Returns
        -------
        Preset
        """
        values = dict(values)
        for key, value in values.items():
            if isinstance(value, dict):
                value = {k: tuple(v) if isinstance(v, list) else v for k, v in value.items()}
                values[key] = DISTRIBUTIONS[value.pop("kind")](**value)
        return cls(**values)

    def with_batch(self, batch):
        """A copy with another number of tasks a step, by its number of kernels.

        Parameters
        ----------
        batch : int

        Returns
        -------
        Preset

        Raises
        ------
        ValueError
            ``batch`` is not a multiple of ``n_functions * n_noises``.
        """
        each = self.n_functions * self.n_noises
        if batch % each:
            raise ValueError(
                f"batch must be a multiple of n_functions * n_noises = {each}, got {batch}"
            )
        return self.replace(n_kernels=batch // each)

    def replace(self, **changes):
        """A copy with some fields changed.

        Parameters
        ----------
        **changes
            Fields and their values.

        Returns
        -------
        Preset

        Raises
        ------
        ValueError
            A value that is none for its field; the message names the field.
        """
        return dataclasses.replace(self, **changes)


# S_H counts how surprising outputs are, S_I what they tell about the whole safe region.
_SAFE = Preset(objective="S_Imean", n_grid=100, direct_weight=0.5)
_AL = Preset(safe=False, objective="I_mean", n_grid=100, n_init=1, max_budget=30, lead_reach=1.0)
# DAD: one length, no budget encoder, 200 contrastive functions. Most campaigns tell these apart
# and have no gradient, so that clipping at a median would leave nothing of the others.
_DAD = _AL.replace(
    clip_query=0.0,
    objective="DAD",
    n_grid=0,
    n_contrastive=200,
    direct_steps=0,
    random_budget=False,
    budget_encoder=False,
)
_FLUID = Uniform(
    (0.24, 1.59, 0.415, 0.3, 0.15, 1.7, 0.22), (0.72, 4.77, 1.245, 0.9, 0.45, 5.1, 0.66)
)

#: By name, the policies of the paper.
PRESETS = {
    preset.name: preset
    for preset in (
        _SAFE.replace(name="safe-2d"),
        _SAFE.replace(name="safe-3d", n_features=3, max_budget=60, n_grid=150),
        _SAFE.replace(
            name="safe-7d-fluid",
            n_features=7,
            n_grid=200,
            # n[k], n[k-1], n[k-2], n[k-3], v[k], v[k-1], v[k-3].
            lags=((2, 3, 0.3), (1, 2, 0.3), (0, 1, 0.3), (5, 6, 0.6), (4, 5, 0.3)),
            n_init=10,
            max_budget=100,
            lengthscale=_FLUID,
            safety_lengthscale=_FLUID,
            safety_shape=Uniform(
                (10.42, 1.57, 6.02, 8.33, 16.66, 1.47, 11.36),
                (41.66, 6.29, 24.1, 33.34, 66.67, 5.89, 45.45),
            ),
        ),
        _AL.replace(name="1d", n_features=1),
        _AL.replace(name="2d"),
        _AL.replace(name="5d", n_features=5, n_init=20, max_budget=40, n_grid=500),
        _DAD.replace(name="dad-1d", n_features=1, max_budget=20),
        _DAD.replace(name="dad-2d"),
        _DAD.replace(name="dad-5d", n_features=5, n_init=20, max_budget=40),
    )
}
