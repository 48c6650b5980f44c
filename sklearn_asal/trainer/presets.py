"""What a policy is trained on and how: one frozen dataclass, and the shipped policies' values."""

import dataclasses
import json
import math

from .priors import DISTRIBUTIONS, ShiftedExponential, Uniform

# By whether there is a safety signal.
OBJECTIVES = {False: ("H",), True: ("S_H", "H")}


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
    objective : {"H", "S_H"}
    gamma : float
        Tolerance of the safe objectives (eq-safe_gp_logprob_objective).
    lengthscale, safety_lengthscale : Uniform or ShiftedExponential
    variance : Uniform
        Of the signal; the noise variance is 1.0001 less it.
    safety_shape : Uniform
        Of w in eqS-sech_mean.
    mean_variance : float
        c^2 in eqS-sech_mean.
    n_fourier : int
        Features of each simulated function.
    n_kernels, n_functions, n_noises : int
        Batch make-up (table "Batch sizes"): kernels, functions for each, noises for each.
    embedding, hidden, heads, layers, output, standardize, centre_gain, budget_encoder
        Of the network, see :class:`~sklearn_asal.policies.network.PolicyNetwork`.
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
    clip_query : float
        Clip each query's gradient at this many batch medians; 0 turns it off.
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
    objective: str = "S_H"
    gamma: float = 0.05
    lengthscale: Uniform | ShiftedExponential = ShiftedExponential(0.2, 10.0)
    variance: Uniform = Uniform(0.9616, 1.0)
    safety_lengthscale: Uniform | ShiftedExponential = ShiftedExponential(0.2, 10.0)
    safety_shape: Uniform = Uniform(5.0, 40.0)
    mean_variance: float = 0.5
    n_fourier: int = 100
    n_kernels: int = 10
    n_functions: int = 5
    n_noises: int = 1
    embedding: int = 128
    hidden: int = 512
    heads: int = 8
    layers: int = 2
    output: str = "sin"
    standardize: bool = True
    centre_gain: float = 0.05
    budget_encoder: bool = True
    steps: int = 2000
    lr: float = 3e-4
    schedule: str = "cosine"
    warmup: int = 200
    final_lr: float = 0.02
    clip_query: float = 3.0
    clip_norm: float = 1.0
    average: float = 0.0
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
            "objective": OBJECTIVES[self.safe],
            "schedule": ("cosine", "step"),
            "output": ("sin", "tanh"),
        }.items():
            if getattr(self, name) not in choices:
                raise ValueError(
                    f"{name} must be one of {', '.join(choices)}, got {getattr(self, name)!r}"
                )
        if not 0 <= self.gamma < 1:
            raise ValueError(f"gamma must be in [0, 1), got {self.gamma}")
        if not self.lr > 0:
            raise ValueError(f"lr must be positive, got {self.lr}")
        if not 0 <= self.average < 1:
            raise ValueError(f"average must be in [0, 1), got {self.average}")

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
        from ..policies.network import PolicyNetwork

        return PolicyNetwork(
            self.n_features,
            self.safe,
            self.budget_encoder,
            embedding=self.embedding,
            hidden=self.hidden,
            heads=self.heads,
            layers=self.layers,
            output=self.output,
            max_budget=self.max_budget,
            standardize=self.standardize,
            centre_gain=self.centre_gain,
        )

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


PRESETS = {
    preset.name: preset
    for preset in (
        Preset("safe-2d"),
        Preset("safe-3d", n_features=3, max_budget=60),
    )
}
