"""What a policy is trained on and how: one frozen dataclass, and the shipped policies' values."""

import dataclasses
import json
import math

from ..policies.architecture import CHOICES, build, checked_lags
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


@dataclasses.dataclass(frozen=True)
class Preset:
    """Everything that defines a training run, apart from where it runs.

    Parameters
    ----------
    name : str
    n_features : int
        D.
    safe : bool
        Whether there is a safety signal.
    n_init, max_budget : int
        Initial points; largest number of queries T.
    random_budget : bool
        Draw T_sim uniformly from 1 to T for each task, instead of T.
    objective : str
        H, I, S_H or S_I, these with "mean" behind (H_mean, S_Hmean), S_H_division,
        S_Hmean_division or DAD; see :mod:`~sklearn_asal.trainer.objectives`.
    n_grid : int
        Grid points of I, I_mean, S_I and S_Imean; safe ones where the policy is.
    grid : {"arcsine", "uniform", "both"}
        How the grid of I and I_mean is distributed: the paper's Beta(1/2, 1/2), dense towards the
        border; evenly, like the points at which a model is asked; or half of each. That of S_I is
        even.
    n_contrastive : int
        Contrastive functions of DAD.
    gamma : float
        Tolerance of the safe objectives (eq-safe_gp_logprob_objective).
    safety_weight : float
        Of their safety term; 1 in the paper.
    lengthscale, safety_lengthscale : Uniform, LogUniform or ShiftedExponential
        Of outputs and of safety, in sides of the unit cube.
    variance : Uniform
        Of the signal; the noise variance is 1.0001 less it.
    safety_shape : Uniform
        Of w in eqS-sech_mean.
    mean_variance : Uniform
        Of c^2 in eqS-sech_mean, the share of the variance that is certain to peak at the centre.
    safe_centre : Uniform
        Of each coordinate of that centre, around which the initial points lie; in the paper 0.5.
    lags : tuple of (int, int, float)
        Features that are earlier values of one signal, as ``(later, earlier, step)``: on the unit
        cube, the later one is within ``step`` of the earlier. Binds queries and grid.
    n_fourier : int
        Features of each simulated function.
    n_kernels, n_functions, n_noises : int
        Batch make-up (table "Batch sizes"): kernels, functions for each, noises for each.
    kind : {"reader", "transformer"}
        Of the network: :class:`~sklearn_asal.policies.reader.ReaderNetwork` or the paper's
        :class:`~sklearn_asal.policies.network.PolicyNetwork` (with 512 hidden units).
    embedding, hidden, heads, layers, pooling, output, standardize, centre_gain, budget_encoder
        Of the network, see there.
    lead : bool
        Whether the reader's queries follow a Sobol sequence as far as it learns to.
    lead_reach : float
        How much of each axis they cover before training; 0.2 is the box of the initial points.
    steps : int
        Updates of the whole run; the schedule depends on it.
    lr : float
        Peak learning rate of RAdam.
    schedule : {"cosine", "step"}
        Warm-up and cosine decay to ``final_lr * lr``, or the paper's 2 % less every 50 steps.
    warmup : int
        Steps of linear warm-up ("cosine" only).
    final_lr : float
        As a fraction of ``lr`` ("cosine" only).
    direct_steps : int
        First steps, whose gradient of a query leaves out how it changes the policy's later queries.
    direct_weight : float
        Factor on ``safety_weight`` in these steps. Below one, a safe policy begins bold.
    clip_query : float
        After these, clip each query's gradient at this many batch medians; 0 turns it off.
    clip_norm : float
        Clip the 2-norm of the whole gradient.
    average : float
        Decay of the exponential moving average of the weights that is validated and kept; 0
        keeps the plain weights.
    seed : int
    """

    name: str = "custom"
    n_features: int = 2
    safe: bool = True
    n_init: int = 5
    max_budget: int = 40
    random_budget: bool = True
    objective: str = "S_Hmean"
    n_grid: int = 0
    grid: str = "arcsine"
    n_contrastive: int = 0
    gamma: float = 0.05
    safety_weight: float = 1.0
    lengthscale: Uniform | LogUniform | ShiftedExponential = ShiftedExponential(0.2, 10.0)
    variance: Uniform = Uniform(0.9616, 1.0)
    safety_lengthscale: Uniform | LogUniform | ShiftedExponential = ShiftedExponential(0.2, 10.0)
    safety_shape: Uniform = Uniform(5.0, 40.0)
    mean_variance: Uniform = Uniform(0.5, 0.5)
    safe_centre: Uniform = Uniform(0.5, 0.5)
    lags: tuple = ()
    n_fourier: int = 100
    n_kernels: int = 32
    n_functions: int = 1
    n_noises: int = 1
    kind: str = "reader"
    embedding: int = 128
    hidden: int = 256
    heads: int = 8
    layers: int = 2
    pooling: str = "sqrt"
    output: str = "clip"
    lead: bool = True
    lead_reach: float = 0.2
    standardize: bool = True
    centre_gain: float = 0.05
    budget_encoder: bool = True
    steps: int = 1500
    lr: float = 1e-3
    schedule: str = "cosine"
    warmup: int = 30
    final_lr: float = 0.02
    direct_steps: int = 100
    direct_weight: float = 1.0
    clip_query: float = 10.0
    clip_norm: float = 1.0
    average: float = 0.98
    seed: int = 0

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
        if self.embedding % self.heads:
            raise ValueError(f"heads must divide embedding={self.embedding}, got {self.heads}")
        for name, low, high in (
            ("gamma", 0, 1),
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
        """Learning rate of the given step, counted from zero."""
        if self.schedule == "step":
            return self.lr * 0.98 ** (step // 50)
        rise = min(1.0, (step + 1) / max(self.warmup, 1))
        done = min(1.0, max(0, step - self.warmup) / max(self.steps - self.warmup, 1))
        fall = self.final_lr + (1 - self.final_lr) * 0.5 * (1 + math.cos(math.pi * done))
        return self.lr * rise * fall

    def network(self):
        """A freshly initialised network of this preset."""
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
        """As JSON-serialisable values."""
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
        """The inverse of :meth:`to_dict`."""
        values = dict(values)
        for key, value in values.items():
            if isinstance(value, dict):
                value = {k: tuple(v) if isinstance(v, list) else v for k, v in value.items()}
                values[key] = DISTRIBUTIONS[value.pop("kind")](**value)
        return cls(**values)

    def with_batch(self, batch):
        """A copy with ``batch`` tasks a step, by its number of kernels.

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
        """A copy with some fields changed."""
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
